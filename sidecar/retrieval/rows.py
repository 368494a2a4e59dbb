"""Which row holds which memory, which rows stand beside it in its thread, and which row replaces it.

A Directory is shared by the snapshots of one namespace and written by one writer. Readers only look ids up, and each
trusts a row only if its own snapshot knows it as live. All but the threads that were written to last is found through
the marks and columns that the index holds anyway.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sidecar.features.view import NO_TIME
from sidecar.retrieval.lexical import InvertedIndex

RowColumn = NDArray[np.int32]
Mask = NDArray[np.bool_]
Marks = InvertedIndex[tuple[Any, ...]]
_Place = tuple[bool, int, int, str, int]

KNOWN_THREADS = 1_024
"""Threads whose order is kept at hand; then all are forgotten and begin anew."""


class Directory:
    """Finds rows by id and by key, and keeps the links between rows."""

    def __init__(self, marks: Marks, keys: NDArray[np.int64]) -> None:
        """`keys` are of the rows that are there already."""
        self._marks = marks
        self._order = np.argsort(keys, kind="stable")
        self._keys = keys[self._order]
        self._added: dict[int, int] = {}
        self._threads: dict[int, list[_Place]] = {}

    def find(self, memory_id: str, live: Mask) -> int | None:
        """The live row of an id for a reader with the mask `live`, or None."""
        mark = ("id", memory_id)
        if mark not in self._marks:  # as for every memory that is new
            return None
        rows, _ = self._marks.find(mark, live)
        return int(rows[-1]) if len(rows) else None

    def row_of_key(self, key: int) -> int | None:
        """The row that a key was given last, also if it is dead or newer than the reader."""
        row = self._added.get(key)
        if row is None:
            at = int(self._keys.searchsorted(key))
            if at < len(self._keys) and self._keys[at] == key:
                row = int(self._order[at])
        return row

    def rows_of_keys(self, keys: Sequence[int]) -> NDArray[np.intp]:
        """The same of many keys at once; -1 for none. Shape (len(keys),)."""
        rows = np.array([self._added.get(key, -1) for key in keys], np.intp)
        unknown = np.flatnonzero(rows < 0)
        if len(unknown) and len(self._keys):
            wanted = np.array(keys, np.int64)[unknown]
            at = np.minimum(self._keys.searchsorted(wanted), len(self._keys) - 1)
            rows[unknown] = np.where(self._keys[at] == wanted, self._order[at], -1)
        return rows

    def add(self, row: int, key: int) -> None:
        """Notes that `row` now holds the memory of that key. Its marks must be there already."""
        self._added[key] = row

    def replaced_by(self, memory_id: str, live: Mask) -> list[int]:
        """Live rows that name `memory_id` as their replacement."""
        mark = ("replaced by", memory_id)
        if mark not in self._marks:
            return []
        rows: list[int] = self._marks.find(mark, live)[0].tolist()
        return rows

    def link_thread(
        self, row: int, thread: int, places: Places, live: Mask, previous_row: RowColumn, next_row: RowColumn
    ) -> None:
        """Puts a row, whose marks are there already, between its neighbours in the source thread of that hash."""
        known = self._threads.get(thread)
        place = places.of(row)
        if known is None:
            if len(self._threads) >= KNOWN_THREADS:
                self._threads = {}
            rows, _ = self._marks.find_hashed(thread, live)
            # Rows of the same change that come later are not linked yet.
            known = self._threads[thread] = sorted(places.of(other) for other in rows[rows < row].tolist())
        insort(known, place)
        at = bisect_left(known, place)
        _link(known[at - 1][-1] if at else -1, row, previous_row, next_row)
        _link(row, known[at + 1][-1] if at + 1 < len(known) else -1, previous_row, next_row)

    def unlink_thread(
        self, row: int, thread: int, places: Places, previous_row: RowColumn, next_row: RowColumn
    ) -> None:
        """Takes a row out of its source thread and joins its neighbours."""
        known = self._threads.get(thread)
        if known is not None:
            del known[bisect_left(known, places.of(row))]
        _link(int(previous_row[row]), int(next_row[row]), previous_row, next_row)
        previous_row[row] = next_row[row] = -1


class Places:
    """Where rows stand in their threads."""

    def __init__(self, sequence: NDArray[np.int64], create_time: NDArray[np.int64], ids: Sequence[str]) -> None:
        """`sequence` is NO_TIME for a row without one."""
        self._sequence = sequence
        self._create_time = create_time
        self._ids = ids

    def of(self, row: int) -> _Place:
        """Order in a thread: by sequence; those without one after them, by the time they were learned; then by id."""
        sequence = int(self._sequence[row])
        no_sequence = sequence == NO_TIME
        return (no_sequence, 0 if no_sequence else sequence, int(self._create_time[row]), self._ids[row], row)


def _link(left: int, right: int, previous_row: RowColumn, next_row: RowColumn) -> None:
    if left >= 0:
        next_row[left] = right
    if right >= 0:
        previous_row[right] = left


def without_cycles(replacement: RowColumn, create_time: NDArray[np.int64], ids: Sequence[str]) -> RowColumn:
    """The same links with every cycle opened at the member that survives: learned last, then of the greatest id.

    `replacement` holds for each row the live row that replaces it, or -1. Shape (n,); the input is not changed.
    """
    linked = np.flatnonzero(replacement >= 0)
    jump = replacement
    for _ in range(len(linked).bit_length() + 1):
        if not (jump[linked] >= 0).any():
            return replacement
        jump = _jump_further(jump, jump)
    opened = replacement.copy()
    seen: set[int] = set()
    for start in set(jump[jump >= 0].tolist()):  # after so many steps only cycles are left to stand on
        if start in seen:
            continue
        cycle = [start]
        while (following := int(replacement[cycle[-1]])) != start:
            cycle.append(following)
        seen.update(cycle)
        opened[max(cycle, key=lambda row: (create_time[row], ids[row]))] = -1
    return opened


def hidden(replacement: RowColumn, valid: Mask) -> Mask:
    """True for rows that some valid row replaces, directly or through a chain. `replacement` is free of cycles."""
    reached = np.append(valid, False)[replacement]
    jump = replacement
    while (jump >= 0).any():
        reached |= np.append(reached, False)[jump]
        jump = _jump_further(jump, jump)
    return reached


def _jump_further(jump: RowColumn, by: RowColumn) -> RowColumn:
    further: RowColumn = np.append(by, np.int32(-1))[jump]
    return further
