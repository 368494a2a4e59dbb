"""An inverted index: which rows bear a key, and how often. Exact, append-only, readable while it grows.

A reader at n rows sees postings below n only, so older snapshots stay valid while a writer appends. What a namespace's
statistics rest on (document frequencies, live rows) is derived from the reader's own live mask, never counted on
the side.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping, Sequence
from typing import Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

from sidecar.retrieval.hashing import PLAIN, Hasher
from sidecar.retrieval.postings import EMPTY, Packed, Rows, pack

Key = TypeVar("Key", bound=Hashable)

_UNUSED = np.iinfo(np.int32).max
_NO_ROWS: Rows = np.empty(0, dtype=np.int32)
_COUNT_BITS = 20
_MOST_COUNTED = (1 << _COUNT_BITS) - 1
_FEW = 48
BYTES_A_KEY = 150
"""Of a key that is not packed."""


class _Block:
    """Postings of one key: rows in ascending order above their counts; spare room is filled with _UNUSED."""

    __slots__ = ("array", "used")

    def __init__(self, array: Rows, used: int) -> None:
        self.array = array
        self.used = used

    @staticmethod
    def of(postings: list[int]) -> _Block:
        return _Block(_split(postings), len(postings))

    def extend(self, postings: list[int]) -> None:
        used = self.used + len(postings)
        if used > self.array.shape[1]:
            grown = np.full((2, 2 * used), _UNUSED, dtype=np.int32)
            grown[:, : self.used] = self.array[:, : self.used]
            self.array = grown
        # The counts first: a posting exists for a reader from the moment its row is below the reader's n.
        if len(postings) == 1:  # what one new memory adds
            self.array[1, self.used] = postings[0] & _MOST_COUNTED
            self.array[0, self.used] = postings[0] >> _COUNT_BITS
        else:
            added = _split(postings)
            self.array[1, self.used : used] = added[1]
            self.array[0, self.used : used] = added[0]
        self.used = used


def _split(postings: list[int]) -> Rows:
    """Rows above counts, from postings of one int each."""
    if len(postings) <= _FEW:  # faster without NumPy's detours; most keys of a batch are borne by few of its memories
        rows = [posting >> _COUNT_BITS for posting in postings]
        return np.array((rows, [posting & _MOST_COUNTED for posting in postings]), dtype=np.int32)
    packed = np.array(postings, dtype=np.int64)
    return np.stack((packed >> _COUNT_BITS, packed & _MOST_COUNTED)).astype(np.int32)


class InvertedIndex(Generic[Key]):
    """Key -> rows and counts. One writer at a time; any number of readers.

    What was packed last stands in a few arrays; what came since, in a dict. Keys are kept as hashes.
    """

    def __init__(self, hasher: Hasher = PLAIN, base: Packed = EMPTY) -> None:
        """`base` holds the postings of rows that are there already."""
        self._hasher = hasher
        self._base = base
        # Most keys occur once: those are kept as one int, row above count.
        self._postings: dict[int, int | _Block] = {}

    def extend(self, start: int, documents: Sequence[Mapping[Key, int]]) -> None:
        """Adds the keys and counts of rows `start`, `start + 1`, ..., which must be above all rows added before."""
        gathered: dict[Key, list[int]] = {}
        for row, counts in enumerate(documents, start):
            above = row << _COUNT_BITS
            for key, count in counts.items():
                posting = above | (count if count < _MOST_COUNTED else _MOST_COUNTED)
                if (known := gathered.get(key)) is None:
                    gathered[key] = [posting]
                else:
                    known.append(posting)
        for key, postings in gathered.items():
            hashed = self._hasher.of(key)
            found = self._postings.get(hashed)
            if isinstance(found, _Block):
                found.extend(postings)
            elif found is None and len(postings) == 1:
                self._postings[hashed] = postings[0]
            else:
                self._postings[hashed] = _Block.of(postings if found is None else [found, *postings])

    def hash_of(self, key: Key) -> int:
        """What `find_hashed` finds a key by."""
        return self._hasher.of(key)

    def find(self, key: Key, live: NDArray[np.bool_], all_live: bool = False) -> tuple[Rows, Rows]:
        """Live rows that bear `key`, ascending, and their counts. `live` is the reader's own mask of n rows.

        `all_live` says that no row is dead, which saves looking.
        """
        return self.find_hashed(self._hasher.of(key), live, all_live)

    def find_hashed(self, key: int, live: NDArray[np.bool_], all_live: bool = False) -> tuple[Rows, Rows]:
        """The same, by the hash of a key."""
        rows, counts = self._added(key, len(live))
        if self._base.row_count and (found := self._base.find(key)) is not None:
            rows, counts = (
                found if not len(rows) else (np.concatenate((found[0], rows)), np.concatenate((found[1], counts)))
            )
        if all_live or not len(rows):
            return rows, counts
        alive = live[rows]
        return rows[alive], counts[alive]

    def __contains__(self, key: Key) -> bool:
        """False if no row bears the key; True if some row does, though it may be dead or newer than the reader."""
        hashed = self._hasher.of(key)
        return hashed in self._postings or (self._base.row_count > 0 and self._base.find(hashed) is not None)

    def among(self, keys: Sequence[Key]) -> list[bool]:
        """The same of many keys at once."""
        hashes, added = self._hasher.of_all(keys), self._postings
        return [is_packed or key in added for key, is_packed in zip(hashes, self._base.among(hashes), strict=True)]

    @property
    def unpacked(self) -> int:
        """Keys that came since the index was packed."""
        return len(self._postings)

    @property
    def nbytes(self) -> int:
        """What it takes in memory, about."""
        packed = sum(array.nbytes for array in self._base.arrays().values())
        return packed + BYTES_A_KEY * len(self._postings)

    def packed(self, live: NDArray[np.bool_]) -> Packed:
        """The postings of the live rows alone, renumbered without gaps, in the same order."""
        row_of = np.cumsum(live, dtype=np.int32) - 1
        tail = {key: self._added(key, len(live)) for key in list(self._postings)}
        return pack(self._base, {key: found for key, found in tail.items() if len(found[0])}, live, row_of)

    def _added(self, key: int, n: int) -> tuple[Rows, Rows]:
        """Rows below n, with their counts, that came since the index was packed."""
        found = self._postings.get(key)
        if found is None:
            return _NO_ROWS, _NO_ROWS
        if isinstance(found, int):
            row = found >> _COUNT_BITS
            if row >= n:
                return _NO_ROWS, _NO_ROWS
            return np.array((row,), dtype=np.int32), np.array((found & _MOST_COUNTED,), dtype=np.int32)
        array = found.array
        rows, counts = array[:, : array[0].searchsorted(np.int32(n))]
        return rows, counts


def inverse_document_frequency(live: int, bearing: int) -> float:
    """Of a key that `bearing` of `live` memories bear: log(1 + (N - df + .5) / (df + .5)), always above 0."""
    return math.log(1.0 + (live - bearing + 0.5) / (bearing + 0.5))
