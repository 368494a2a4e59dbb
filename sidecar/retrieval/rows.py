"""Which row holds which memory, which rows stand beside it in its thread, and which row replaces it.

A Directory is shared by the snapshots of one namespace and written by one writer. Readers only look ids up, and each
trusts a row only if its own snapshot knows it as live.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

from sidecar.domain import Memory

RowColumn = NDArray[np.int32]
Mask = NDArray[np.bool_]
_Place = tuple[bool, int, int, str, int]


class Directory:
    """Finds rows by id and by key, and keeps the links between rows."""

    def __init__(self) -> None:
        self._newest: dict[str, int] = {}
        self._earlier: dict[str, list[int]] = {}
        self.by_key: dict[int, int] = {}
        self._threads: dict[str, list[_Place]] = {}
        self._replaced_by: dict[str, list[int]] = {}

    def find(self, memory_id: str, live: Mask) -> int | None:
        """The live row of an id for a reader with the mask `live`, or None."""
        row = self._newest.get(memory_id)
        if row is None:
            return None
        if row < len(live) and live[row]:
            return row
        for row in reversed(self._earlier.get(memory_id, ())):
            if row < len(live) and live[row]:
                return row
        return None

    def add(self, row: int, memory: Memory) -> None:
        """Notes that `row` now holds `memory`."""
        before = self._newest.get(memory.id)
        if before is not None:  # before the newest is overwritten, as a reader may still need the row
            self._earlier.setdefault(memory.id, []).append(before)
        self._newest[memory.id] = row
        self.by_key[memory.key] = row
        if memory.superseded_by and memory.superseded_by != memory.id:
            self._replaced_by.setdefault(memory.superseded_by, []).append(row)

    def link_thread(self, row: int, memory: Memory, previous_row: RowColumn, next_row: RowColumn) -> None:
        """Puts a row between its neighbours in the source thread."""
        if not memory.source_thread:
            return
        thread = self._threads.setdefault(memory.source_thread, [])
        place = _place(row, memory)
        insort(thread, place)
        at = bisect_left(thread, place)
        _link(thread[at - 1][-1] if at else -1, row, previous_row, next_row)
        _link(row, thread[at + 1][-1] if at + 1 < len(thread) else -1, previous_row, next_row)

    def unlink_thread(self, row: int, memory: Memory, previous_row: RowColumn, next_row: RowColumn) -> None:
        """Takes a row out of its source thread and joins its neighbours."""
        if not memory.source_thread:
            return
        thread = self._threads[memory.source_thread]
        del thread[bisect_left(thread, _place(row, memory))]
        _link(int(previous_row[row]), int(next_row[row]), previous_row, next_row)
        previous_row[row] = next_row[row] = -1

    def replaced_by(self, memory_id: str) -> Sequence[int]:
        """Rows, also dead ones, that name `memory_id` as their replacement."""
        return self._replaced_by.get(memory_id, ())

    @classmethod
    def of(cls, memories: Iterable[Memory]) -> Directory:
        """The directory of memories in rows 0, 1, ..., all live and already linked."""
        directory = cls()
        for row, memory in enumerate(memories):
            directory.add(row, memory)
            if memory.source_thread:
                directory._threads.setdefault(memory.source_thread, []).append(_place(row, memory))
        for thread in directory._threads.values():
            thread.sort()
        return directory


def _place(row: int, memory: Memory) -> _Place:
    """Order in a thread: by sequence; those without one after them, by the time they were learned; then by id."""
    sequence = memory.source_sequence
    return (sequence is None, sequence or 0, memory.create_time, memory.id, row)


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
