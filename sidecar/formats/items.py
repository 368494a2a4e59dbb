"""What a file holds, piece by piece: memories, rows of the log, and what cannot be read. Each knows where it stood."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

FIELDS = (
    "id",
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
"""The API's names for what a caller writes of a memory."""
OUTPUT_ONLY = ("update_time", "importance", "ratings")
"""What the server alone sets; skipped, as the rows of the log bring it."""


@dataclass(frozen=True, slots=True)
class MemoryItem:
    """A memory. `fields` has an id, a content, and the other API fields that were given: times as datetimes with a
    zone, an embedding as numbers or bytes. `place` is its line, or its number in a list, from 1. `unsaid` names the
    fields that were given null or empty."""

    place: int
    fields: Mapping[str, Any]
    unsaid: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class LogItem:
    """A row of the log, as the line it is."""

    place: int
    line: bytes


@dataclass(frozen=True, slots=True)
class Header:
    """What an export says of itself: format version, and which embedder made the vectors."""

    place: int
    embedder: str


@dataclass(frozen=True, slots=True)
class Problem:
    """Something that does not go in, and why. `place` is 0 for a whole file, `memory_id` "" where none is known."""

    place: int
    memory_id: str
    message: str


Item: TypeAlias = MemoryItem | LogItem | Header | Problem


def unsaid(given: Mapping[str, Any]) -> tuple[str, ...]:
    """The API's fields in `given` that are null or empty: they say as much as no field at all. Empty metadata are
    metadata, and clear what was there."""
    return tuple(name for name, value in given.items() if name in FIELDS and (value is None or value in ("", [])))


def unsaid_words(times: Mapping[str, int]) -> str:
    """Says which fields were given null or empty, and how often."""
    names = ", ".join(f"{name} ({count})" for name, count in times.items())
    return f"null or empty, so what is stored stays: {names}; `memory-ranker update ID --clear FIELD` clears a field"


def made_id(content: str, *where: object) -> str:
    """The id of a memory that was given none: the same for the same text at the same place."""
    digest = hashlib.sha256(content.encode("utf-8", "surrogatepass"))
    for each in where:
        digest.update(b"\0" + repr(each).encode("utf-8", "surrogatepass"))
    return "m-" + digest.hexdigest()[:16]
