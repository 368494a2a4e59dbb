"""Filling a packet: budgets fixed first, then the best that fit, never two that say the same.

Greedy with skipping: a memory that does not fit is passed over and the next one tried. So with a bigger budget the
first memory on which two packets differ is one the bigger budget admits, and it alone exceeds what the smaller held.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from sidecar.domain import Floats, LeftOutReason

# A tenth of the budget for each reserved slot: taken off as one floor, so that the ranked part grows with the whole.
SLOT_SHARE_INVERSE = 10
FIRST_CHUNK = 128

Rows = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Budgets:
    """Tokens for the ranked and pinned part, and for each reserved slot; None means no limit."""

    ranked: int | None
    slot: int | None


def split_budget(token_budget: int | None, slots: int) -> Budgets:
    """Divides a packet's budget before anything is filled (LEARNING section 8, step 1).

    The ranked part is what remains of the whole after one floor, so it never shrinks as the whole grows. What a slot
    does not spend is not given back.
    """
    if token_budget is None:
        return Budgets(None, None)
    if slots == 0:
        return Budgets(token_budget, 0)
    kept = token_budget * slots // SLOT_SHARE_INVERSE
    return Budgets(token_budget - kept, kept // slots)


class ByScore:
    """Rows in chunks, highest score first and ties by id, sorted no further than they are asked for.

    `score` has a value for each entry of `rows`; `ids` is by row; `upcoming` hears of each chunk before it is handed
    out. To be gone through once.
    """

    def __init__(
        self, rows: Rows, score: Floats, ids: Sequence[str], upcoming: Callable[[Rows], None] = lambda _: None
    ) -> None:
        self._rows = rows
        self._score = score
        self._ids = ids
        self._upcoming = upcoming
        self._left: NDArray[np.bool_] | None = None

    @property
    def rest(self) -> Rows:
        """Rows that were not handed out yet, in no order."""
        if self._left is not None:
            self._rows, self._score = self._rows[self._left], self._score[self._left]
            self._left = None
        return self._rows

    def __iter__(self) -> Iterator[Rows]:
        size = FIRST_CHUNK
        while len(rows := self.rest):
            score = self._score
            if len(rows) > size:
                least = np.partition(score, len(score) - size)[len(score) - size]
                self._left = score < least  # all that tie with the last one come along
                top = np.flatnonzero(score >= least)
                chunk = self._sorted(rows[top], score[top])
            else:
                self._left = np.zeros(len(rows), dtype=bool)
                chunk = self._sorted(rows, score)
            self._upcoming(chunk)
            yield chunk
            size *= 4

    def _sorted(self, rows: Rows, score: Floats) -> Rows:
        order = np.argsort(-score, kind="stable")
        rows, score = rows[order], score[order]
        ties = score[1:] == score[:-1]
        if ties.any():
            starts = np.flatnonzero(np.append(True, ~ties))
            for start, end in zip(starts.tolist(), [*starts[1:].tolist(), len(rows)], strict=True):
                if end - start > 1:
                    rows[start:end] = sorted(rows[start:end].tolist(), key=self._ids.__getitem__)
        return rows


@dataclass(slots=True)
class Fill:
    """What was admitted, in order, and what was passed over for which reason."""

    rows: list[int] = field(default_factory=list)
    tokens: int = 0
    passed_over: list[tuple[LeftOutReason, Rows]] = field(default_factory=list)
    next_budget: int | None = None
    """The least budget above the given one that would admit something that did not fit; None if all fitted."""

    def leave_out(self, reason: LeftOutReason, rows: Rows) -> None:
        """Notes rows that were not admitted."""
        if len(rows):
            self.passed_over.append((reason, rows))

    def reason_of(self, row: int) -> LeftOutReason | None:
        """Why `row` was passed over; None if it was not among the candidates, or was admitted."""
        return next((reason for reason, rows in self.passed_over if (rows == row).any()), None)


def fill(
    candidates: ByScore,
    tokens: NDArray[np.int64],
    places: int,
    budget: int | None,
    says_the_same: Callable[[int], bool],
    admitted: Callable[[int], None],
    spent: int = 0,
) -> Fill:
    """Admits candidates in order until the places are taken.

    `tokens` is by row; `spent` is what was taken of the whole budget before, `budget` what is left of it. A row above
    the whole is OVERSIZED, one above what is left BUDGET, one that `says_the_same` as an admitted memory
    NEAR_DUPLICATE; those that are met after the last place is taken are OUTRANKED. `admitted` is told of each row that
    goes in.
    """
    result = Fill()
    if places <= 0:
        result.leave_out(LeftOutReason.OUTRANKED, candidates.rest)
        return result
    for chunk in candidates:
        sizes = tokens[chunk]
        position = 0
        while position < len(chunk):
            if len(result.rows) >= places:
                result.leave_out(LeftOutReason.OUTRANKED, np.concatenate((chunk[position:], candidates.rest)))
                return result
            if budget is not None:
                fits = np.flatnonzero(sizes[position:] <= budget - result.tokens)
                end = position + int(fits[0]) if len(fits) else len(chunk)
                skipped, oversized = chunk[position:end], sizes[position:end] > budget + spent
                result.leave_out(LeftOutReason.OVERSIZED, skipped[oversized])
                result.leave_out(LeftOutReason.BUDGET, skipped[~oversized])
                if end > position:
                    needed = result.tokens + int(sizes[position:end].min())
                    result.next_budget = needed if result.next_budget is None else min(result.next_budget, needed)
                position = end
                if position == len(chunk):
                    break
            row = int(chunk[position])
            if says_the_same(row):
                result.leave_out(LeftOutReason.NEAR_DUPLICATE, chunk[position : position + 1])
            else:
                admitted(row)
                result.rows.append(row)
                result.tokens += int(tokens[row])
            position += 1
    return result
