"""Reads memories, whole or in part, and the ids by which everything is named.

Pure. What is wrong is added to the violations, so that a caller hears of all of it at once.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from memoryranker.v1 import memory_pb2, types_pb2

from sidecar.domain import DEFAULT_KIND
from sidecar.errors import Violations
from sidecar.rpc.validation import (
    ID_BYTES,
    NAMESPACE_BYTES,
    REQUEST_ID_BYTES,
    check_count,
    check_range,
    check_text,
    check_texts,
    check_visible,
    read_struct,
    read_time,
    read_vector,
    shown,
)

CONTENT_BYTES = 65_536
MAX_NAMED = 200

FIELDS = (
    "content",
    "kind",
    "create_time",
    "valid_from_time",
    "valid_until_time",
    "superseded_by",
    "source_thread",
    "source_sequence",
    "subject",
    "tags",
    "metadata",
    "relevance",
    "importance_override",
    "emotion",
    "pinned",
    "suppressed",
    "token_count",
    "embedding",
)
"""What a caller writes of a memory besides its id, in the order of the proto."""

_MESSAGES = ("create_time", "valid_from_time", "valid_until_time", "metadata")
_PRESENT = ("source_sequence", "relevance", "importance_override", "emotion", "token_count")
_CLEARED: Mapping[str, Any] = {
    "kind": DEFAULT_KIND,
    "superseded_by": "",
    "source_thread": "",
    "subject": "",
    "tags": (),
    "metadata": {},
    "pinned": False,
    "suppressed": False,
}
"""What a cleared field holds; the others hold None."""

_TEXT_BYTES = {"kind": 64, "superseded_by": 256, "source_thread": 256, "subject": 256}


def read_fields(bad: Violations, path: str, message: types_pb2.Memory, dimension: int | None) -> dict[str, Any]:
    """The fields of a memory that are set, by name, as `Memory` holds them."""
    given: dict[str, Any] = {}
    if message.content:
        check_text(bad, f"{path}.content", message.content, 1, CONTENT_BYTES)
        check_visible(bad, f"{path}.content", message.content)
        given["content"] = message.content
    for name, most in _TEXT_BYTES.items():
        if value := getattr(message, name):
            check_text(bad, f"{path}.{name}", value, 0, most)
            given[name] = value
    for name in ("create_time", "valid_from_time", "valid_until_time"):
        if message.HasField(name):
            given[name] = read_time(bad, f"{path}.{name}", getattr(message, name))
    if (start := given.get("valid_from_time")) and (end := given.get("valid_until_time")) and start >= end:
        words = "is at or after valid_until_time, so it would never be served; must be before it"
        bad.add(f"{path}.valid_from_time", words)
    for name in ("relevance", "importance_override", "emotion"):
        if message.HasField(name):
            given[name] = getattr(message, name)
            check_range(bad, f"{path}.{name}", given[name], 0, 1)
    if message.HasField("source_sequence"):
        given["source_sequence"] = message.source_sequence
    if message.tags:
        check_texts(bad, f"{path}.tags", message.tags, 64, 1, 128)
        given["tags"] = tuple(dict.fromkeys(message.tags))
    if message.HasField("metadata"):
        given["metadata"] = read_struct(bad, f"{path}.metadata", message.metadata)
    for name in ("pinned", "suppressed"):
        if message.HasField(name):
            given[name] = getattr(message, name)
    if message.HasField("token_count"):
        given["token_count"] = message.token_count
        check_range(bad, f"{path}.token_count", message.token_count, 1, 1_000_000)
    if message.embedding:
        given["embedding"] = read_vector(bad, f"{path}.embedding", message.embedding, dimension)
    return given


def read_memory(bad: Violations, path: str, message: types_pb2.Memory, dimension: int | None) -> dict[str, Any]:
    """The fields of a memory that is written as a whole: it must have an id and a content."""
    read_id(bad, f"{path}.id", message.id)
    if not message.content:
        check_text(bad, f"{path}.content", message.content, 1, CONTENT_BYTES)
    return read_fields(bad, path, message, dimension)


def faults(message: types_pb2.Memory, dimension: int | None) -> str:
    """What is wrong with a memory that is to be written as a whole, in words; "" if nothing is. With `dimension` None a
    vector may have any length. What depends on the memory as it stands in the store is not looked at."""
    bad = Violations()
    read_memory(bad, "", message, dimension)
    return "; ".join(f"{each.field.removeprefix('.')} {each.description}" for each in bad.found)


def read_changes(bad: Violations, request: memory_pb2.UpdateMemoryRequest, dimension: int) -> dict[str, Any]:
    """The fields that an update names, by name; those that it clears have their defaults."""
    named = types_pb2.Memory()
    paths = list(dict.fromkeys(request.update_mask.paths))
    if not paths:
        bad.add("update_mask", f"is empty; must name at least one of {', '.join(FIELDS)}")
    check_count(bad, "update_mask.paths", len(paths), 0, MAX_NAMED)
    for i, name in enumerate(paths[:MAX_NAMED]):
        if name not in FIELDS:
            bad.add(f"update_mask.paths[{i}]", f"is {shown(name)}; must be one of {', '.join(FIELDS)}")
        elif name == "tags":
            named.tags.extend(request.memory.tags)
        elif name in _MESSAGES:
            if request.memory.HasField(name):
                getattr(named, name).CopyFrom(getattr(request.memory, name))
        elif name not in _PRESENT or request.memory.HasField(name):
            setattr(named, name, getattr(request.memory, name))
    changes = read_fields(bad, "memory", named, dimension)
    for name in paths:
        if name in ("content", "create_time") and name not in changes:
            bad.add(f"memory.{name}", "is unset; it can be changed and not cleared")
        elif name in FIELDS:
            changes.setdefault(name, _CLEARED.get(name))
    return changes


def read_id(bad: Violations, path: str, value: str) -> str:
    """The id of a memory."""
    check_text(bad, path, value, 1, ID_BYTES)
    return value


def read_namespace(bad: Violations, value: str, path: str = "namespace") -> str:
    """A namespace that must be named: empty never means all."""
    check_text(bad, path, value, 1, NAMESPACE_BYTES)
    return value


def read_request_id(bad: Violations, value: str) -> None:
    """A request id, which may be unset."""
    check_text(bad, "request_id", value, 0, REQUEST_ID_BYTES)
