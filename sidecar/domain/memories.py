"""A memory, what its importance is made of, what use says of it, and which memories a filter lets pass."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sidecar.domain.words import DEFAULT_KIND, Micros


@dataclass(frozen=True, slots=True)
class Memory:
    """One memory as it stands. Field by field as in `memoryranker.v1.Memory`.

    `key` is the store's own number for it, never reused: a memory that is deleted and written again under the same id
    has a new key and so inherits nothing. `tokens` is what a packet is charged for the content: `token_count` if the
    caller brought it, else the server's count.
    """

    id: str
    content: str
    kind: str = DEFAULT_KIND
    create_time: Micros = 0
    update_time: Micros = 0
    valid_from_time: Micros | None = None
    valid_until_time: Micros | None = None
    superseded_by: str = ""
    source_thread: str = ""
    source_sequence: int | None = None
    subject: str = ""
    tags: tuple[str, ...] = ()
    metadata: Mapping[str, Any] = field(default_factory=dict)
    relevance: float | None = None
    importance_override: float | None = None
    emotion: float | None = None
    pinned: bool = False
    suppressed: bool = False
    token_count: int | None = None
    embedding: NDArray[np.float32] | None = None
    key: int = 0
    tokens: int = 0
    importance_content: float | None = None
    importance_use: float | None = None
    helpful: int = 0
    unhelpful: int = 0


@dataclass(frozen=True, slots=True)
class ImportanceLine:
    """One line of an importance's breakdown: value in [0, 1], None if it is absent; what it adds to the score. A factor
    with a dot is a part of the line of the signal before the dot."""

    factor: str
    value: float | None
    weight: float
    contribution: float

    @property
    def is_part(self) -> bool:
        """True for a part of a signal: it is already in that signal's contribution."""
        return "." in self.factor


def summed(lines: Iterable[ImportanceLine]) -> float:
    """The contributions of the lines that are no parts of a signal, from first to last, as a reader adds up."""
    total = 0.0
    for line in lines:
        if not line.is_part:
            total += line.contribution
    return total


class PartName(StrEnum):
    """The three stored parts of an importance."""

    CONTENT = "content"
    USE = "use"
    USER = "user"


@dataclass(frozen=True, slots=True)
class ImportancePart:
    """How a stored part of an importance came about: how sure it is, in [0, 1], when it was worked out, what moved it,
    in words, and its breakdown. Holds no word of a memory's text."""

    confidence: float
    time: Micros
    factors: tuple[str, ...] = ()
    lines: tuple[ImportanceLine, ...] = ()
    about: tuple[str, ...] = ()
    """Ids of the memories beside its own that a content part follows from, in their order."""

    @property
    def score(self) -> float:
        """The sum of the lines."""
        return summed(self.lines)


def closing(reached: float, wanted: float) -> tuple[float, ...]:
    """The contributions that bring a sum that has `reached` so far to exactly `wanted`, added in their order: one, and
    a second of the last bits where no single number in floating point does it."""
    apart = wanted - reached
    for candidate in (apart, math.nextafter(apart, math.inf), math.nextafter(apart, -math.inf)):
        if reached + candidate == wanted:
            return (candidate,)
    return apart, wanted - (reached + apart)


MOST_SESSIONS = 6
"""Other sessions that a theme counts, the first by time; what more of them would add to a score is next to nothing."""
FULL_THEME = 1.0 - 2.0**-MOST_SESSIONS
"""The value of a theme's line that no further session raises."""

SCORED_FIELDS = (
    *("content", "kind", "subject", "tags", "metadata", "emotion", "superseded_by", "source_thread", "create_time"),
    *("suppressed", "valid_from_time", "valid_until_time"),
)
"""Fields of a memory that the content part of its importance follows from, and what it is to others."""

STANDING_FIELDS = ("superseded_by", "suppressed", "valid_from_time", "valid_until_time")
"""Those of them that decide whether a memory can be served, and so whether it, and what it replaces, counts for
others."""


@dataclass(frozen=True, slots=True)
class ScoredContent:
    """The content part of `memory`'s importance, worked out from a namespace as it stood at `score_version`.

    `beside` has, of the memories that it follows from (`part.about`), when they were last changed, None for one that
    was not there. `concerns` are memories whose own parts may follow from this one: id -> the uniqueness that this one
    leaves them, None where it is something else to them. `repeats` are those whose theme it is, which concerns them
    unless theirs is full by earlier ones. `is_superseded` as it was by then; `is_in_ring` if it is replaced by what it
    replaces: which of a ring survives is seen when all of them are there.
    """

    memory: Memory
    part: ImportancePart
    score_version: int = 0
    beside: Mapping[str, Micros | None] = field(default_factory=dict)
    concerns: Mapping[str, float | None] = field(default_factory=dict)
    repeats: tuple[str, ...] = ()
    is_superseded: bool = False
    is_in_ring: bool = False

    def holds_for(self, memory: Memory) -> bool:
        """True if it follows from the memory as it stands."""
        return says_the_same(self.memory, memory)


def says_the_same(one: Memory, other: Memory) -> bool:
    """True if two states of a memory have the same content part of an importance, the neighbours being the same."""
    return all(getattr(one, name) == getattr(other, name) for name in SCORED_FIELDS)


def stands_alike(one: Memory, other: Memory) -> bool:
    """True if two states of a memory count for others alike."""
    return all(getattr(one, name) == getattr(other, name) for name in STANDING_FIELDS)


@dataclass(frozen=True, slots=True)
class UseCounts:
    """What use says of one memory (LEARNING section 4), over distinct sessions.

    `used` is U and `seen` is V, so 0 <= used <= seen; `use_sessions` are the sessions that used it (also from
    incomplete reports), `reported_sessions` those with seen > 0; `last_use_time` is None before the first use.
    """

    used: float = 0.0
    seen: float = 0.0
    use_sessions: int = 0
    reported_sessions: int = 0
    last_use_time: Micros | None = None


@dataclass(frozen=True, slots=True)
class Filter:
    """Which memories may take part; empty parts do not restrict. See `memoryranker.v1.Filter`."""

    kinds: frozenset[str] = frozenset()
    any_tags: frozenset[str] = frozenset()
    all_tags: frozenset[str] = frozenset()
    metadata_equals: Mapping[str, Any] = field(default_factory=dict)
    create_time_from: Micros | None = None
    create_time_until: Micros | None = None
    update_time_from: Micros | None = None
    update_time_until: Micros | None = None
    ids: frozenset[str] = frozenset()
    exclude_ids: frozenset[str] = frozenset()
    source_threads: frozenset[str] = frozenset()
    subjects: frozenset[str] = frozenset()

    @property
    def is_empty(self) -> bool:
        """True if it restricts nothing."""
        return self is NO_FILTER or self == NO_FILTER


NO_FILTER = Filter()
MOST_IN_FILTER = {
    "kinds": 64,
    "any_tags": 64,
    "all_tags": 64,
    "ids": 10_000,
    "exclude_ids": 10_000,
    "source_threads": 256,
    "subjects": 256,
}
"""How many values each list of a filter may have."""
