"""What a feature may look at: the columns of one namespace, and how its memories match one task.

Everything is an array over the same n rows. A feature sees other memories only through namespace statistics (document
frequencies, mean length) and thread neighbours, never through their scores.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from operator import is_
from typing import Any, TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray

from sidecar.domain import Floats, Micros

NO_TIME = np.iinfo(np.int64).min
"""Stands in a time column where there is no time."""

MOST_WORDS = 2_000
"""Words of tasks of which something is kept, in one namespace and for one purpose."""
MOST_BYTES_OF_TERMS = 16_000_000
"""Of the arrays that are kept for common terms, in one namespace."""

Rows: TypeAlias = NDArray[np.intp]
Key = TypeVar("Key", bound=Hashable)
Made = TypeVar("Made")


@dataclass(frozen=True, slots=True)
class Columns:
    """The memories of a namespace as arrays of n rows. Never written after it was published.

    `kind` indexes `kinds`. Unset floats are NaN (importance parts) or 0 (relevance, emotion). `superseded` is already
    resolved: True where a living memory replaces this one, through chains. `previous_row` and `next_row` are the
    neighbours in the source thread, -1 for none. `asks` is True for one that ends in a question mark. Rows that are not
    `live` are tombstones.
    """

    ids: Sequence[str]
    live: NDArray[np.bool_]
    key: NDArray[np.int64]
    kinds: tuple[str, ...]
    kind: NDArray[np.int32]
    create_time: NDArray[np.int64]
    update_time: NDArray[np.int64]
    valid_from_time: NDArray[np.int64]
    valid_until_time: NDArray[np.int64]
    relevance: Floats
    emotion: Floats
    importance_content: Floats
    importance_use: Floats
    importance_override: Floats
    tokens: NDArray[np.int32]
    asks: NDArray[np.bool_]
    pinned: NDArray[np.bool_]
    suppressed: NDArray[np.bool_]
    superseded: NDArray[np.bool_]
    helpful: NDArray[np.int32]
    unhelpful: NDArray[np.int32]
    used: Floats
    seen: Floats
    use_sessions: NDArray[np.int32]
    reported_sessions: NDArray[np.int32]
    last_use_time: NDArray[np.int64]
    previous_row: NDArray[np.int32]
    next_row: NDArray[np.int32]

    def __len__(self) -> int:
        return len(self.live)


def changed_rows(before: Columns, after: Columns) -> NDArray[np.int32]:
    """The rows whose numbers differ, ascending. `after` has the same rows, and may have more, which count as different;
    numbers that stand at the same place in memory are not looked at."""
    rows = len(before)
    differs = np.ones(len(after), bool)
    differs[:rows] = False
    for name in Columns.__slots__:
        one, other = getattr(before, name), getattr(after, name)
        # Columns begin where their array begins: two of one array have what both have in common.
        if isinstance(one, np.ndarray) and one is not other and (one.base is None or one.base is not other.base):
            other = other[:rows]
            found = one != other
            if one.dtype.kind == "f":
                found &= (one == one) | (other == other)  # no number twice is no difference
            differs[:rows] |= found
    return np.flatnonzero(differs).astype(np.int32)


class Words(dict[Key, Made]):
    """What `make` gives of each word of tasks, made the first time; of as many as MOST_WORDS, then they begin anew."""

    __slots__ = ("_make",)

    def __init__(self, make: Callable[[Key], Made]) -> None:
        self._make = make

    def __missing__(self, word: Key) -> Made:
        if len(self) >= MOST_WORDS:
            self.clear()
        made = self[word] = self._make(word)
        return made


class Same:
    """Equal to another that holds the very same objects. It keeps them alive: no others can come to their place."""

    __slots__ = ("_objects",)
    __hash__ = None  # type: ignore[assignment]

    def __init__(self, *objects: object) -> None:
        self._objects = objects

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Same) and all(map(is_, self._objects, other._objects))


class Kept:
    """What was made of things that stay as they are, by name, for the next task. Lives as long as they do.

    Safe from many threads: two that ask for the same at once may both make it, and what they make is equal.
    """

    __slots__ = ("_made", "_room", "_terms")

    def __init__(self, room: int = MOST_BYTES_OF_TERMS) -> None:
        self._made: dict[Hashable, Any] = {}
        self._terms: dict[tuple[str, str], Floats] = {}
        self._room = room

    @property
    def keeps_terms(self) -> bool:
        """False where there is no room for arrays of terms: for rows that no other task asks for."""
        return self._room > 0

    def once(self, name: Hashable, make: Callable[[], Made]) -> Made:
        """What `make` gives, made the first time."""
        try:
            made: Made = self._made[name]
        except KeyError:
            made = self._made[name] = make()
        return made

    def latest(self, name: Hashable, of: object, make: Callable[[], Made]) -> Made:
        """What `make` gives for `of`; of a name only the latest is kept."""
        found = self._made.get(name)
        if found is None or found[0] != of:
            found = self._made[name] = (of, make())
        made: Made = found[1]
        return made

    def of_term(self, name: str, term: str, make: Callable[[], Floats]) -> Floats:
        """The same for an array of a term, while there is room for it; then all that is kept of terms begins anew."""
        found = self._terms.get((name, term))
        if found is None:
            found = make()
            if (len(self._terms) + 1) * found.nbytes > self._room:
                self._terms = {}
            self._terms[name, term] = found
        return found


@dataclass(frozen=True, slots=True)
class TermMatch:
    """Where one term of the task stands: rows that bear it (ascending, each once), and how often.

    `idf` is its inverse document frequency in the namespace, above 0 also for a term that no memory bears.
    """

    term: str
    idf: float
    rows: NDArray[np.int32]
    counts: NDArray[np.int32]
    is_stop_word: bool = False


@dataclass(frozen=True, slots=True)
class TaskWord:
    """A word of the task as a person counts words: its length in characters, and which terms it gave."""

    length: int
    terms: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class TextMatches:
    """How the n memories match one task's text. Made by `sidecar.retrieval`.

    `cosine` in [-1, 1], NaN where memory or task has no vector; `trust` in (0, 1] says how far it goes for this task.
    `terms` are the task's distinct terms, unseen ones with no rows; `lengths` counts the terms of each memory without
    stop words. `handles` are the task's concrete handles, weighted by `idf`. `subject_field` and `subject_prefix` are
    the rows, ascending, that are about whom the task asks: by their subject field, by the speaker they begin with.
    `days_off` is how far each memory was learned from the dates that the task names, in days (see
    `sidecar.retrieval.dates`), None where it names none. `context_terms` come from goals, projects and files.
    """

    cosine: Floats
    trust: float
    terms: tuple[TermMatch, ...]
    words: tuple[TaskWord, ...]
    lengths: Floats
    mean_length: float
    handles: tuple[TermMatch, ...]
    context_terms: tuple[TermMatch, ...]
    subject_field: NDArray[np.int32]
    subject_prefix: NDArray[np.int32]
    days_off: Floats | None


@dataclass(frozen=True, slots=True)
class View:
    """All that features read for one task at one time. Values are computed once and kept for features that build on
    them."""

    columns: Columns
    text: TextMatches
    as_of_time: Micros
    half_life_days: Mapping[str, float]
    use_prior: Mapping[str, tuple[float, float]]
    """(mu, kappa) of the use rate by kind, frozen between rescores; "default" for kinds not named."""
    emotion_enabled: bool = False
    variants: Mapping[str, str] = field(default_factory=dict)
    """Which variant of a feature to take, by feature name; a preset that repeats a note carries that note's own."""
    most_uses: float | None = None
    """Sessions that used the most used memory of the whole namespace; None: of these rows."""
    memo: dict[str, Floats] = field(default_factory=dict)
    """Values of this task."""
    kept: Kept = field(default_factory=Kept)
    """For what follows from the memories' texts and threads alone, whatever the task."""

    @property
    def nothing(self) -> Floats:
        """0 for every row. A feature that returns this very array says that no row has anything, and costs nothing."""
        return self.once("", lambda: np.zeros(len(self.columns)))

    def once(self, name: str, make: Callable[[], Floats]) -> Floats:
        """What `make` gives, which several values build on, made the first time. Nobody writes to it."""
        found = self.memo.get(name)
        if found is None:
            found = self.memo[name] = make()
        return found

    def value(self, feature: Feature) -> Floats:
        """Values of `feature` for all rows, shape (n,), float64 in [0, 1]."""
        found = self.memo.get(feature.name)
        if found is None:
            found = self.memo[feature.name] = feature.compute(self, self.variants.get(feature.name, "default"))
        return found

    def by_kind(self, table: Mapping[str, float]) -> Floats:
        """Looks `table` up for each row's kind; kinds not named take "default". Shape (n,)."""
        of_kind = np.array([table.get(kind, table["default"]) for kind in self.columns.kinds] or [0.0])
        return of_kind.take(self.columns.kind)


@dataclass(frozen=True, slots=True)
class Feature:
    """A feature's declaration.

    `source` says in words where the value comes from. `needs_task` is False for what is known before any task; what is
    not known before is never negative, and in an array of its own, which may be written to.
    `in_use_family` marks what use feeds: it shares one cap and has no part in task fit. `raw` names the ages and counts
    behind the value, which are logged so that a half-life can be refitted. `version` grows with any change of meaning.
    """

    name: str
    source: str
    values: Mapping[str, Callable[[View], Floats]]
    needs_task: bool = False
    in_use_family: bool = False
    without_use: Callable[[View], Floats] | None = None
    """Of a feature that use feeds in part: its value as if nothing were known of use. None: all of it or nothing."""
    raw: Mapping[str, Callable[[View], Floats]] = field(default_factory=dict)
    values_at: Mapping[str, Callable[[View, Rows], Floats]] = field(default_factory=dict)
    """Of one that needs a task and is measured in several ways: the values of some rows alone, to the last bit."""
    version: int = 1

    def compute(self, view: View, variant: str = "default") -> Floats:
        """Values for all rows, shape (n,), clipped into [0, 1] against the last ulp. KeyError: unknown variant."""
        values = self.values[variant](view)
        if values is view.nothing:
            return values
        if self.needs_task:
            return np.minimum(values, 1.0, out=values)
        return np.minimum(np.maximum(values, 0.0), 1.0)
