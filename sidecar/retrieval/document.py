"""What the index keeps of one memory: its terms, and marks for everything else that is looked up exactly."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from sidecar.domain import Memory
from sidecar.retrieval.handles import find_handles
from sidecar.retrieval.stated import stated
from sidecar.retrieval.subjects import name_marks
from sidecar.retrieval.tokenizer import count_terms

Mark = tuple[Any, ...]
"""A namespace of look-ups, then what is looked up: ("tag", "urgent"), ("handle", "ticket", "ops-1234"), ..."""


@dataclass(frozen=True, slots=True)
class Document:
    """`length` counts the terms that are no stop words."""

    terms: Mapping[str, int]
    length: int
    marks: Mapping[Mark, int]


def document_of(memory: Memory) -> Document:
    """Reads a memory. Pure: the same memory gives the same document."""
    terms, length = count_terms(memory.content)
    return Document(terms, length, dict.fromkeys(_marks(memory), 1))


def _marks(memory: Memory) -> Iterator[Mark]:
    yield ("id", memory.id)
    if memory.superseded_by and memory.superseded_by != memory.id:
        yield ("replaced by", memory.superseded_by)
    for tag in memory.tags:
        yield ("tag", tag)
    if memory.source_thread:
        yield ("thread", memory.source_thread)
    if memory.subject:
        yield ("subject", memory.subject)
    if (claim := stated(memory)) is not None:
        subject, attribute, value = claim
        yield ("claim", subject, attribute)
        yield ("claim", subject, attribute, value)
    for handle in find_handles(memory.content):
        yield ("handle", *handle)
    yield from name_marks(memory.content, memory.subject)
    for path, value in metadata_paths(memory.metadata):
        yield ("key", path)
        if is_scalar(value):
            yield value_mark(path, value)


def metadata_paths(metadata: Mapping[str, Any], above: str = "") -> Iterator[tuple[str, Any]]:
    """Every key with its value, nested ones with dots between: {"a": {"b": 1}} gives "a" and "a.b"."""
    for key, value in metadata.items():
        path = f"{above}.{key}" if above else key
        yield path, value
        if isinstance(value, Mapping):
            yield from metadata_paths(value, path)


def is_scalar(value: Any) -> bool:
    """True for JSON's null, booleans, numbers and strings."""
    return value is None or isinstance(value, bool | int | float | str)


def value_mark(path: str, value: Any) -> Mark:
    """The mark of a scalar at a path. Booleans are no numbers; 1 and 1.0 are the same JSON number."""
    if isinstance(value, bool | str) or value is None:
        return ("value", path, type(value).__name__, value)
    return ("value", path, "number", float(value))


def same_json(a: Any, b: Any) -> bool:
    """Equality of JSON values: true is not 1."""
    if isinstance(a, Mapping) and isinstance(b, Mapping):
        return a.keys() == b.keys() and all(same_json(a[key], b[key]) for key in a)
    if isinstance(a, list | tuple) and isinstance(b, list | tuple):
        return len(a) == len(b) and all(map(same_json, a, b))
    return is_scalar(a) and is_scalar(b) and value_mark("", a) == value_mark("", b)
