"""Filling a packet: budgets fixed first, then the best that fit, never two that say the same.

Greedy with skipping: a memory that does not fit is passed over and the next one tried. So with a bigger budget the
first memory on which two packets differ is one the bigger budget admits, and it alone exceeds what the smaller held.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from operator import neg

import numpy as np
from numpy.typing import NDArray

from sidecar.domain import Floats, LeftOutReason

# A tenth of the budget for each reserved slot: taken off as one floor, so that the ranked part grows with the whole.
SLOT_SHARE_INVERSE = 10
FIRST_CHUNK = 64

Rows = NDArray[np.int64]
NO_ROWS: Rows = np.empty(0, dtype=np.int64)


@dataclass(frozen=True, slots=True)
class Budgets:
    """Tokens for the pinned and the ranked segment, and for each reserved slot; None means no limit."""

    pinned: int | None
    ranked: int | None
    slot: int | None


def split_budget(token_budget: int | None, slots: int, pinned: Rows = NO_ROWS, demand: int = 0) -> Budgets:
    """Divides a packet's budget before anything is filled (LEARNING section 8, step 1). What a part does not spend is
    not given back: so none depends on what happens to fit into another, and none shrinks as the whole grows.

    `pinned` are the sizes of all pinned memories that may be served, `demand` is the size of all others together. What
    slots leave is b. Pinned memories may take half of b, or what the others cannot use if that is more: a. The ranked
    segment has what those of a size up to a leave of b, and no more than the smallest size above a. For at the budget
    from which that one fits, as much as its size is left again: without the bound, the ranked segment would shrink
    there. No larger bound does.
    """
    if token_budget is None:
        return Budgets(None, None, None)
    kept = token_budget * slots // SLOT_SHARE_INVERSE
    whole, slot = token_budget - kept, kept // slots if slots else 0
    if not len(pinned):
        return Budgets(0, whole, slot)
    allowance = max(whole // 2, whole - demand)
    fits = pinned <= allowance
    ranked = min(demand, whole - min(int(pinned[fits].sum()), allowance))
    if not fits.all():
        ranked = min(ranked, int(pinned[~fits].min()))
    return Budgets(allowance, ranked, slot)


def split_places(places: int, pinned: int, others: int) -> tuple[int, int]:
    """Most memories of the pinned and of the ranked segment under a token budget, of so many that may be served: pinned
    ones have half of the places, rounded up, or what the others leave. One that does not fit keeps its place."""
    most = min(pinned, max(places - places // 2, places - others))
    return most, places - most


class ByScore:
    """Rows in chunks, highest score first and ties by id, sorted no further than they are asked for, and once for all
    who go through them. `score` has a value for each entry of `rows`; `ids` is by row."""

    def __init__(self, rows: Rows, score: Floats, ids: Sequence[str]) -> None:
        self.rows = rows
        self._chunks: list[Rows] = []
        self._left = rows
        self._score = score
        self._least: float | None = None
        self._ids = ids

    def __iter__(self) -> Iterator[Rows]:
        at = 0
        while at < len(self._chunks) or self._sort_on():
            yield self._chunks[at]
            at += 1

    def _sort_on(self) -> bool:
        """Sorts one chunk more; False if there is none."""
        if self._least is not None:
            left = self._score < self._least
            self._left, self._score = self._left[left], self._score[left]
        rows, score, size = self._left, self._score, FIRST_CHUNK * 4 ** len(self._chunks)
        if len(rows) > size:
            ordered = score.copy()
            ordered.partition(len(score) - size)
            self._least = ordered[len(score) - size]
            top = (score >= self._least).nonzero()[0]  # all that tie with the last one come along
            rows, score = rows.take(top), score.take(top)
        else:
            self._left, self._score, self._least = rows[:0], score[:0], None
        if len(rows):
            self._chunks.append(self._sorted(rows, score))
        return len(rows) > 0

    def _sorted(self, rows: Rows, score: Floats) -> Rows:
        order = np.negative(score).argsort(kind="stable")
        rows, score = rows.take(order), score.take(order)
        scores = score.tolist()
        if len(set(scores)) < len(scores):
            found = rows.tolist()
            by_id = sorted(zip(map(neg, scores), map(self._ids.__getitem__, found), found, strict=True))
            rows = np.array([row for *_, row in by_id], dtype=np.int64)
        return rows


@dataclass(slots=True)
class Fill:
    """What was admitted of `candidates`, which ascend, in order, and what was passed over for which reason."""

    candidates: Rows = field(default_factory=lambda: NO_ROWS)
    rows: list[int] = field(default_factory=list)
    tokens: int = 0
    passed_over: list[tuple[LeftOutReason, Rows]] = field(default_factory=list)
    """Of those that were met; what was never met is OUTRANKED."""
    next_budget: int | None = None
    """The least budget above the given one that would admit something that did not fit; None if all fitted."""

    def leave_out(self, reason: LeftOutReason, rows: Rows) -> None:
        """Notes rows that were not admitted."""
        if len(rows):
            self.passed_over.append((reason, rows))

    def left_out(self) -> dict[LeftOutReason, int]:
        """How many were passed over, by reason."""
        counts: dict[LeftOutReason, int] = {}
        outranked = len(self.candidates) - len(self.rows)
        for reason, rows in self.passed_over:
            counts[reason] = counts.get(reason, 0) + len(rows)
            outranked -= len(rows)
        return counts | {LeftOutReason.OUTRANKED: outranked} if outranked else counts

    def reason_of(self, row: int) -> LeftOutReason | None:
        """Why `row` was passed over; None if it was not among the candidates, or was admitted."""
        for reason, rows in self.passed_over:
            if (rows == row).any():
                return reason
        at = int(self.candidates.searchsorted(row))
        is_candidate = at < len(self.candidates) and self.candidates[at] == row
        return LeftOutReason.OUTRANKED if is_candidate and row not in self.rows else None


def fill(
    candidates: ByScore,
    tokens: NDArray[np.int64],
    places: int,
    budget: int | None,
    admits: Callable[[int], bool],
    upcoming: Callable[[list[int]], None] = lambda _: None,
) -> Fill:
    """Admits candidates in order until the places are taken. `upcoming` hears of rows before they are asked for.

    `tokens` is by row. A row above the budget is OVERSIZED, one above what is left of it BUDGET, one that `admits`
    refuses, since it says the same as another, NEAR_DUPLICATE; what was not met before the last place is taken is
    OUTRANKED.
    """
    result = Fill(candidates.rows)
    if places <= 0:
        return result
    for chunk in candidates:
        rows, sizes = chunk.tolist(), tokens.take(chunk)
        upcoming(rows)
        position = 0
        while position < len(rows):
            if budget is not None:
                position = _skip(result, chunk, sizes, position, budget)
                if position == len(rows):
                    break
            row = rows[position]
            if admits(row):
                result.rows.append(row)
                result.tokens += int(sizes[position])
                if len(result.rows) == places:
                    return result
            else:
                result.leave_out(LeftOutReason.NEAR_DUPLICATE, chunk[position : position + 1])
            position += 1
    return result


def _skip(result: Fill, chunk: Rows, sizes: NDArray[np.int64], position: int, budget: int) -> int:
    """The first place from `position` on whose row fits into what is left; those before it are passed over."""
    fits = (sizes[position:] <= budget - result.tokens).nonzero()[0]
    end = position + int(fits[0]) if len(fits) else len(chunk)
    if end > position:
        skipped, oversized = chunk[position:end], sizes[position:end] > budget
        result.leave_out(LeftOutReason.OVERSIZED, skipped[oversized])
        result.leave_out(LeftOutReason.BUDGET, skipped[~oversized])
        needed = result.tokens + int(sizes[position:end].min())
        result.next_budget = needed if result.next_budget is None else min(result.next_budget, needed)
    return end
