"""An inverted index: which rows bear a key, and how often. Exact, append-only, readable while it grows.

A reader at n rows sees postings below n only, so older snapshots stay valid while a writer appends. What a namespace's
statistics rest on (document frequencies, live rows) is derived from the reader's own live mask, never counted on
the side.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterator, Mapping
from typing import Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

Rows = NDArray[np.int32]
Key = TypeVar("Key", bound=Hashable)

_UNUSED = np.iinfo(np.int32).max
_NO_ROWS: Rows = np.empty(0, dtype=np.int32)
_COUNT_BITS = 20


class _Block:
    """Postings of one key: rows in ascending order above their counts; spare room is filled with _UNUSED."""

    __slots__ = ("array", "used")

    def __init__(self, array: Rows, used: int) -> None:
        self.array = array
        self.used = used

    def append(self, row: int, count: int) -> None:
        if self.used == self.array.shape[1]:
            grown = np.full((2, 2 * self.used), _UNUSED, dtype=np.int32)
            grown[:, : self.used] = self.array
            self.array = grown
        # The count first: a posting exists for a reader from the moment its row is below the reader's n.
        self.array[1, self.used] = count
        self.array[0, self.used] = row
        self.used += 1


class InvertedIndex(Generic[Key]):
    """Key -> rows and counts. One writer at a time; any number of readers."""

    def __init__(self) -> None:
        # Most keys occur once: those are kept as one int, row above count.
        self._postings: dict[Key, int | _Block] = {}

    def add(self, row: int, counts: Mapping[Key, int]) -> None:
        """Adds the keys of `row`, which must be above all rows added before."""
        postings = self._postings
        for key, count in counts.items():
            count = min(count, (1 << _COUNT_BITS) - 1)
            found = postings.get(key)
            if found is None:
                postings[key] = row << _COUNT_BITS | count
            elif isinstance(found, int):
                first, first_count = found >> _COUNT_BITS, found & ((1 << _COUNT_BITS) - 1)
                block = np.array(((first, row), (first_count, count)), dtype=np.int32)
                postings[key] = _Block(block, 2)
            else:
                found.append(row, count)

    def find(self, key: Key, live: NDArray[np.bool_], all_live: bool = False) -> tuple[Rows, Rows]:
        """Live rows that bear `key`, ascending, and their counts. `live` is the reader's own mask of n rows.

        `all_live` says that no row is dead, which saves looking.
        """
        found = self._postings.get(key)
        if found is None:
            return _NO_ROWS, _NO_ROWS
        if isinstance(found, int):
            row = found >> _COUNT_BITS
            if row >= len(live) or not live[row]:
                return _NO_ROWS, _NO_ROWS
            return np.array((row,), dtype=np.int32), np.array((found & ((1 << _COUNT_BITS) - 1),), dtype=np.int32)
        array = found.array
        rows, counts = array[:, : array[0].searchsorted(np.int32(len(live)))]
        if all_live:
            return rows, counts
        alive = live[rows]
        return rows[alive], counts[alive]

    def __iter__(self) -> Iterator[Key]:
        """All keys, also those that only dead or newer rows bear. A copy: safe while a writer appends."""
        return iter(list(self._postings))

    def compacted(self, live: NDArray[np.bool_]) -> InvertedIndex[Key]:
        """A new index of the live rows alone, renumbered without gaps, in the same order."""
        row_of = np.cumsum(live, dtype=np.int32) - 1
        fresh: InvertedIndex[Key] = InvertedIndex()
        for key in list(self._postings):
            rows, counts = self.find(key, live)
            if len(rows) == 1:
                fresh._postings[key] = int(row_of[rows[0]]) << _COUNT_BITS | int(counts[0])
            elif len(rows):
                fresh._postings[key] = _Block(np.stack((row_of[rows], counts)), len(rows))
        return fresh


def inverse_document_frequency(live: int, bearing: int) -> float:
    """Of a key that `bearing` of `live` memories bear: log(1 + (N - df + .5) / (df + .5)), always above 0."""
    return math.log(1.0 + (live - bearing + 0.5) / (bearing + 0.5))
