"""The gates before any score: who may not be in a packet at all, and for which first reason.

Pure functions over the columns of a snapshot.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from sidecar.domain import LeftOutReason, Micros
from sidecar.features import NO_TIME, Columns

PASSED = 0

# Code k (from 1) stands for GATES[k - 1]. The order decides which reason is told when several hold.
GATES: tuple[LeftOutReason, ...] = (
    LeftOutReason.FILTERED,
    LeftOutReason.SUPPRESSED,
    LeftOutReason.RATED_UNHELPFUL,
    LeftOutReason.EXPIRED,
    LeftOutReason.NOT_YET_VALID,
    LeftOutReason.SUPERSEDED,
    LeftOutReason.NOT_A_CANDIDATE,
)
FILTERED_CODE = 1 + GATES.index(LeftOutReason.FILTERED)
NOT_A_CANDIDATE_CODE = 1 + GATES.index(LeftOutReason.NOT_A_CANDIDATE)


def gate_codes(
    columns: Columns,
    allowed: NDArray[np.bool_] | None,
    superseded: NDArray[np.bool_],
    as_of: Micros,
    known: NDArray[np.bool_] | None = None,
) -> NDArray[np.int8]:
    """The first gate that stops each row, shape (n,): PASSED, or an index into GATES from 1; -1 for tombstones.

    `allowed` is the request's filter (None lets all pass); `superseded` is resolved at `as_of`. What was not yet
    `known` is not yet valid; None where all was.
    """
    codes = np.zeros(len(columns), dtype=np.int8)
    not_yet = columns.valid_from_time > as_of
    if known is not None:
        not_yet |= ~known
    stops = (
        ~allowed if allowed is not None else None,
        columns.suppressed,
        columns.unhelpful > 0,
        (columns.valid_until_time != NO_TIME) & (columns.valid_until_time <= as_of),
        not_yet,
        superseded,
    )
    for code in range(len(stops), 0, -1):  # from the last to the first, so that the first one stays
        stop = stops[code - 1]
        if stop is not None:
            codes[stop] = code
    codes[~columns.live] = -1
    return codes


@dataclass(frozen=True, slots=True)
class Gates:
    """Codes of n rows, and what follows from them: the pinned rows that passed and the others, ascending, these also as
    a mask of shape (n,), and how many rows each gate stopped."""

    codes: NDArray[np.int8]
    pinned: NDArray[np.int64]
    others: NDArray[np.int64]
    is_other: NDArray[np.bool_]
    stopped: Mapping[LeftOutReason, int]

    @staticmethod
    def of(codes: NDArray[np.int8], columns: Columns) -> Gates:
        """Derives what follows from codes."""
        passed = codes == PASSED
        others = passed & ~columns.pinned
        pinned = passed & columns.pinned
        return Gates(codes, np.flatnonzero(pinned), np.flatnonzero(others), others, gate_counts(codes))

    def narrowed(self, rows: NDArray[np.int32], columns: Columns) -> Gates:
        """The same where only `rows` are candidates."""
        codes = self.codes.copy()
        is_candidate = np.zeros(len(codes), bool)
        is_candidate[rows] = True
        codes[~is_candidate & (codes == PASSED)] = NOT_A_CANDIDATE_CODE
        return Gates.of(codes, columns)

    def of_part(self, rows: NDArray[np.int32], candidates: NDArray[np.bool_], columns: Columns) -> Gates:
        """Of the `rows` of a part, whose columns are `columns` and of which some are candidates: the others that
        passed are none, nor is whatever is not in the part."""
        codes = self.codes[rows]
        codes[~candidates & (codes == PASSED)] = NOT_A_CANDIDATE_CODE
        found = Gates.of(codes, columns)
        passed, scored = (len(gates.pinned) + len(gates.others) for gates in (self, found))
        stopped = dict(self.stopped)
        if passed > scored:
            stopped[LeftOutReason.NOT_A_CANDIDATE] = passed - scored
        return replace(found, stopped=stopped)


def gate_counts(codes: NDArray[np.int8]) -> dict[LeftOutReason, int]:
    """How many rows each gate stopped, reasons that stopped none left out."""
    counts = np.bincount(codes[codes > PASSED], minlength=len(GATES) + 1)
    return {reason: int(count) for reason, count in zip(GATES, counts[1:], strict=True) if count}
