"""One missed memory, and the ways to pack its packet again with one thing changed.

Packing is done by the same functions that serve, so what is found here is what Rank does.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sidecar.domain import Filter, Memory, Micros
from sidecar.features import Columns
from sidecar.ranking.gates import Gates, gate_codes
from sidecar.ranking.occasion import Occasion
from sidecar.ranking.pipeline import Limits, Orders, Packed, Scored, asks_all, pack


@dataclass(frozen=True, slots=True)
class Change:
    """A change of one thing: `field` of the request, or of the memory as memory.FIELD; values are JSON, times in
    microseconds since 1970, and null stands for unset."""

    field: str
    from_json: str
    to_json: str
    message: str


def change(path: str, old: Any, new: Any, words: str) -> Change:
    """A change with its values as JSON and its words as a sentence."""
    return Change(path, json.dumps(old), json.dumps(new), words[0].upper() + words[1:])


def settled(old: int, good: int, admits: Callable[[int], bool]) -> int:
    """A number above `old` and up to `good` that admits, where neither one less nor half of the way from `old` does.
    `good` does, `old` does not.

    More is not always better, for a better memory may come in and take the room: so what was found is halved again
    until the half does not admit. The way gets shorter by half each time, so the tries are no more than the square of
    the digits of its length in base 2.
    """
    while True:
        bad = good - 1
        if bad > old and admits(bad):
            bad, good = old, bad
        while good - bad > 1:
            middle = (good + bad) // 2
            good, bad = (middle, bad) if admits(middle) else (good, middle)
        half = (old + good) // 2
        if half == old or not admits(half):
            return good
        good = half


@dataclass(frozen=True, slots=True)
class Again:
    """The same request with one thing changed that may move scores: `at` another time, or none; or once fields of the
    missed memory are `written`, by the names of domain.Memory, and all importances that follow from them stand.

    `use_times` has one of each report of uses; `undated` are ids of the caller's own memories that are taken to
    be learned at whatever time is ranked for."""

    at: Callable[[Micros | None], Occasion]
    written: Callable[[Mapping[str, Any]], Occasion]
    use_times: Callable[[], Sequence[Micros]] = tuple
    undated: frozenset[str] = frozenset()


@dataclass(slots=True)
class Case:
    """One missed row. `check` raises past the deadline; `again` ranks the request again; what is written is written
    `now`."""

    occasion: Occasion
    row: int
    check: Callable[[], None]
    again: Again
    now: Micros
    packed: Packed = field(init=False)
    _served: Scored = field(init=False)
    _orders: tuple[Orders, Orders] = field(default_factory=lambda: ({}, {}), init=False)

    def __post_init__(self) -> None:
        self._served = _narrowed(self.occasion.scored, self.occasion.candidates)
        self.packed = self.pack(self.limits)

    @property
    def limits(self) -> Limits:
        """What the packet was limited to."""
        return self.occasion.limits()

    @property
    def columns(self) -> Columns:
        """The memories as they were ranked."""
        return self.occasion.scored.columns

    @property
    def memory(self) -> Memory:
        """The missed memory."""
        return self.occasion.snapshot.memories[self.row]

    def twin(self) -> str:
        """Id of the memory in the packet that says the same, or ""."""
        twin = self.packed.seen.twin(self.row)
        return "" if twin is None else self.columns.ids[twin]

    def pack(self, limits: Limits, scored: Scored | None = None, is_written: bool = False) -> Packed:
        """The packet with other limits, or other memories, as Rank makes it: of candidates, where it chooses some. What
        is written just now is one of them."""
        self.check()
        if scored is None:
            return _packed(self.occasion, self._served, self.occasion.scored, limits, self._orders)
        return _packed(self.occasion, self._choose(scored, is_written), scored, limits)

    def _choose(self, scored: Scored, is_written: bool) -> Scored:
        rows = self.occasion.choose(scored.gates)
        if is_written and rows is not None:
            rows = np.append(rows, np.int32(self.row))
        return _narrowed(scored, rows)

    def admits(self, scored: Scored | None = None, limits: Limits | None = None, is_written: bool = False) -> bool:
        """True if the memory is in that packet."""
        return self.row in self.pack(limits or self.limits, scored, is_written).rows

    def admits_once_written(self, **fields: Any) -> bool:
        """True if the memory is in the packet that the request gets once these fields of it are written."""
        return self.holds(self.again.written(fields))

    def holds(self, other: Occasion) -> bool:
        """True if the memory is in the packet of another occasion."""
        row = other.snapshot.row_of_id.get(self.memory.id)
        self.check()
        served = _narrowed(other.scored, other.candidates)
        return row is not None and row in _packed(other, served, other.scored, other.limits()).rows

    def limits_at(self, **changes: Any) -> Limits:
        """The limits of the request with other fields."""
        return replace(self.occasion, request=replace(self.occasion.request, **changes)).limits()

    def regated(self, columns: Columns, wanted: Filter | None = None) -> Scored:
        """The same scores behind gates that are asked again."""
        wanted = self.occasion.request.filter if wanted is None else wanted
        return self._behind(columns, None if wanted.is_empty else self.occasion.snapshot.filter_mask(wanted))

    def rewritten(self, columns: Columns) -> Scored:
        """The same where the missed memory is written, with columns that move no score, and so has another
        update_time."""
        wanted, snapshot = self.occasion.request.filter, self.occasion.snapshot
        if wanted.is_empty:
            return self._behind(columns, None)
        allowed = snapshot.filter_mask(wanted)
        if self.occasion.request.candidates is None:
            start, end = wanted.update_time_from, wanted.update_time_until
            rest = replace(wanted, update_time_from=None, update_time_until=None)
            is_in_time = (start is None or start <= self.now) and (end is None or self.now < end)
            allowed[self.row] = is_in_time and snapshot.filter_mask(rest)[self.row]
        return self._behind(columns, allowed)

    def _behind(self, columns: Columns, allowed: NDArray[np.bool_] | None) -> Scored:
        occasion, as_of = self.occasion, self.occasion.as_of_time
        superseded = occasion.snapshot.superseded_at(as_of, occasion.known)
        codes = gate_codes(columns, allowed, superseded, as_of, occasion.known)
        return replace(occasion.scored, columns=columns, gates=Gates.of(codes, columns))

    def with_column(self, name: str, value: Any) -> Columns:
        """The memories, of which the missed one has another value."""
        changed = getattr(self.columns, name).copy()
        changed[self.row] = value
        return replace(self.columns, **{name: changed})


def _packed(
    occasion: Occasion,
    served: Scored,
    scored: Scored,
    limits: Limits,
    orders: tuple[Orders | None, Orders | None] = (None, None),
) -> Packed:
    """The packet of the candidates that are `served`; or of all that is `scored`, where Rank asks all. `orders` are of
    both."""
    packed = pack(served, limits, occasion.snapshot, orders[0])
    if not asks_all(served, limits, packed):
        return packed
    of_all = pack(scored, limits, occasion.snapshot, orders[1])
    # A budget that one of the candidates fits is another packet, too.
    needs = (packed.ranked.next_budget, of_all.ranked.next_budget)
    of_all.ranked.next_budget = min((need for need in needs if need is not None), default=None)
    return of_all


def _narrowed(scored: Scored, rows: NDArray[np.int32] | None) -> Scored:
    return scored if rows is None else replace(scored, gates=scored.gates.narrowed(rows, scored.columns))
