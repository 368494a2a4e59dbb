"""Who states another value of the same attribute of the same subject, found by these words however the rest is put.

Of many that do, one to each side in time is enough to tell: the next newer, the last older, one of the same time. So a
long row of values costs each of them no more than a short one, and what a new value changes are those next to it.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sidecar.domain import Memory
from sidecar.importance.claims import HAPPENED
from sidecar.importance.standing import Standing
from sidecar.retrieval.snapshot import Snapshot
from sidecar.retrieval.stated import stated

Rows = NDArray[np.int32]


@dataclass(frozen=True, slots=True)
class Claimed:
    """Ids of those that count and state another value, one at most of each: the next newer, the last older, one of the
    same time; and of all to which the memory itself is one of these. What it replaces, or is replaced by, is none of
    them; `about` has it, too."""

    newer: tuple[str, ...] = ()
    older: tuple[str, ...] = ()
    same_time: tuple[str, ...] = ()
    concerns: tuple[str, ...] = ()
    about: tuple[str, ...] = ()


def claimed(snapshot: Snapshot, memory: Memory, row: int | None, standing: Standing) -> Claimed:
    """Looks for them; a memory that states nothing has none."""
    claim = stated(memory)
    if claim is None or memory.kind in HAPPENED:
        return Claimed()
    group = _Group(snapshot, claim[:2], row, standing)
    others = np.setdiff1d(group.rows, group.of_value(claim[2]))
    if not len(others):
        return Claimed()
    apart = group.times[others] - memory.create_time
    counted = standing.counting[others]
    concerned = [group.next_to(others, apart, side) for side in (-1, 1)]
    concerned.append(_tied(group, others[apart == 0], claim[2], memory, standing))
    sides = [
        group.extreme(others[counted & (apart > 0)], -1),
        group.extreme(others[counted & (apart < 0)], 1),
        group.extreme(others[counted & (apart == 0)], -1),
    ]
    newer, older, same_time = (group.names(group.unlinked(rows, memory)) for rows in sides)
    return Claimed(newer, older, same_time, group.names(np.concatenate(concerned)), group.names(np.concatenate(sides)))


class _Group:
    """The memories of one subject and attribute but for one row."""

    def __init__(self, snapshot: Snapshot, claim: tuple[str, str], row: int | None, standing: Standing) -> None:
        self._snapshot = snapshot
        self._claim = claim
        self._standing = standing
        columns = snapshot.columns
        rows = self._find(("claim", *claim))
        happened = [code for code, kind in enumerate(columns.kinds) if kind in HAPPENED]
        self.rows: Rows = rows[(rows != (-1 if row is None else row)) & ~np.isin(columns.kind[rows], happened)]
        self.times = columns.create_time

    def of_value(self, value: str) -> Rows:
        return self._find(("claim", *self._claim, value))

    def value_of(self, row: int) -> str:
        claim = stated(self._snapshot.memories[row])
        return "" if claim is None else claim[2]

    def names(self, rows: Rows) -> tuple[str, ...]:
        return tuple(self._snapshot.columns.ids[row] for row in rows.tolist())

    def unlinked(self, rows: Rows, memory: Memory) -> Rows:
        """Those that neither replace a memory nor are replaced by it."""
        ids, memories = self._snapshot.columns.ids, self._snapshot.memories
        kept = [
            row
            for row in rows.tolist()
            if memory.superseded_by != ids[row] and not (memory.id and memories[row].superseded_by == memory.id)
        ]
        return np.array(kept, dtype=np.int32)

    def extreme(self, rows: Rows, sign: int) -> Rows:
        """The last of rows in time, then by id; with sign -1 the first. No row of none."""
        if not len(rows):
            return rows
        times = sign * self.times[rows]
        tied = rows[times == times.max()].tolist()
        chosen = (max if sign > 0 else min)(tied, key=self._snapshot.columns.ids.__getitem__)
        return np.array([chosen], dtype=np.int32)

    def next_to(self, others: Rows, apart: NDArray[np.int64], side: int) -> Rows:
        """Those of `others` before (side -1) or after (1) a memory from which nothing else of another value than theirs
        separates it. `apart` is how much later than it they are."""
        counted = self.rows[self._standing.counting[self.rows]]
        now = self.times[others[:1]] - apart[:1]
        beside = counted[side * (self.times[counted] - now) > 0]
        reach = side * apart
        if not len(beside):
            return others[reach > 0]
        nearest = self.extreme(beside, -side)
        if np.isin(nearest, others)[0]:
            # All of one value stand next to it: as far as the first of another one.
            nearest = self.extreme(np.setdiff1d(beside, self.of_value(self.value_of(int(nearest[0])))), -side)
        limit = side * (self.times[nearest] - now)
        return others[(reach > 0) & (reach <= limit)] if len(nearest) else others[reach > 0]

    def _find(self, mark: tuple[str, ...]) -> Rows:
        return self._snapshot.contents.marks.find(mark, self._standing.there)[0]


def _tied(group: _Group, tied: Rows, value: str, memory: Memory, standing: Standing) -> Rows:
    """Those of the same time to which the memory is the one that is named: the first by id of all that count and say
    something else."""
    none = tied[:0]
    if not len(tied):
        return none
    peers = group.rows[(group.times[group.rows] == memory.create_time) & standing.counting[group.rows]]
    first = [row for row in peers.tolist() if group.names(np.array([row], np.int32))[0] < memory.id]
    if not first:
        return tied
    values = group.of_value(group.value_of(min(first, key=lambda row: group.names(np.array([row], np.int32))[0])))
    is_next = bool(np.isin(first, values).all()) and not np.isin(first[0], group.of_value(value))
    return tied[np.isin(tied, values)] if is_next else none
