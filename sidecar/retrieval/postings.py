"""Postings packed into four arrays: what an inverted index looks like at rest, in memory or mapped from a file."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sidecar.retrieval.table import Array

Rows = NDArray[np.int32]

PARTS = 1 << 13
"""Keys that are packed at a time: few enough that nobody waits long for the interpreter, and that packing a million
memories takes little more room than the result."""


@dataclass(frozen=True, slots=True, eq=False)
class Packed:
    """Keys' hashes in ascending order; the postings of the i-th stand at [starts[i], starts[i + 1]) of `rows`,
    ascending, and of `counts`. All rows are below `row_count`."""

    hashes: NDArray[np.uint64]
    starts: NDArray[np.int64]
    rows: Rows
    counts: Rows
    row_count: int
    ordered: memoryview
    """The same hashes, for a search without NumPy's detours."""

    @staticmethod
    def of(hashes: NDArray[np.uint64], starts: NDArray[np.int64], rows: Rows, counts: Rows, row_count: int) -> Packed:
        """Takes the arrays as they are."""
        return Packed(hashes, starts, rows, counts, row_count, hashes.data)

    @staticmethod
    def from_arrays(arrays: Mapping[str, Array], row_count: int) -> Packed:
        """From what `arrays` gave. ValueError if they do not belong together."""
        hashes, starts, rows, counts = (arrays[name] for name in ("hashes", "starts", "rows", "counts"))
        if len(starts) != len(hashes) + 1 or len(rows) != len(counts) or starts[0] != 0 or starts[-1] != len(rows):
            raise ValueError("the postings' arrays do not belong together")
        return Packed.of(hashes, starts, rows, counts, row_count)

    def arrays(self) -> dict[str, Array]:
        """What a file keeps."""
        return {"hashes": self.hashes, "starts": self.starts, "rows": self.rows, "counts": self.counts}

    def find(self, key: int) -> tuple[Rows, Rows] | None:
        """Rows and counts of a hash, None if no row bears it."""
        at = bisect_left(self.ordered, key)
        if at == len(self.ordered) or self.ordered[at] != key:
            return None
        start, end = self.starts[at], self.starts[at + 1]
        return self.rows[start:end], self.counts[start:end]

    def among(self, keys: Sequence[int]) -> list[bool]:
        """True for each hash that some row bears."""
        if not len(self.hashes):
            return [False] * len(keys)
        asked = np.array(keys, dtype=np.uint64)
        found: list[bool] = (self.hashes.take(self.hashes.searchsorted(asked), mode="clip") == asked).tolist()
        return found


EMPTY = Packed.of(
    np.empty(0, np.uint64), np.zeros(1, np.int64), np.empty(0, np.int32), np.empty(0, np.int32), row_count=0
)


def pack(
    base: Packed, tail: Mapping[int, Sequence[Rows]], live: NDArray[np.bool_], row_of: NDArray[np.int32]
) -> Packed:
    """The postings of `base` and `tail` (hash -> rows, counts; all above the base's rows) of live rows alone, each row
    renumbered by `row_of`, which keeps their order."""
    added = np.array(sorted(tail), dtype=np.uint64)
    hashes = np.union1d(base.hashes, added)
    found_hashes, sizes, rows, counts = [], [], [], []
    for first in range(0, len(hashes), PARTS):
        some = hashes[first : first + PARTS]
        parts = list(_of_some(base, tail, some, added))
        at = np.concatenate([np.repeat(np.searchsorted(some, own), lengths) for own, lengths, _, _ in parts])
        all_rows, all_counts = (np.concatenate([part[i] for part in parts]) for i in (2, 3))
        kept = live[all_rows]
        at, all_rows, all_counts = at[kept], row_of[all_rows[kept]], all_counts[kept]
        order = np.argsort(at, kind="stable")
        bearing = np.bincount(at, minlength=len(some))
        borne = bearing > 0
        found_hashes.append(some[borne])
        sizes.append(bearing[borne])
        rows.append(all_rows[order])
        counts.append(all_counts[order])
    if not found_hashes:
        return EMPTY
    starts = np.concatenate((np.zeros(1, np.int64), np.cumsum(np.concatenate(sizes), dtype=np.int64)))
    return Packed.of(
        np.concatenate(found_hashes),
        starts,
        np.concatenate(rows).astype(np.int32, copy=False),
        np.concatenate(counts).astype(np.int32, copy=False),
        int(np.count_nonzero(live)),
    )


def _of_some(
    base: Packed, tail: Mapping[int, Sequence[Rows]], some: NDArray[np.uint64], added: NDArray[np.uint64]
) -> Iterator[tuple[NDArray[np.uint64], NDArray[np.int64], Rows, Rows]]:
    """Hashes within `some`, how many postings each has, rows, counts: of the base, then of the tail."""
    first, last = base.hashes.searchsorted(some[0]), base.hashes.searchsorted(some[-1], side="right")
    start, end = base.starts[first], base.starts[last]
    yield base.hashes[first:last], np.diff(base.starts[first : last + 1]), base.rows[start:end], base.counts[start:end]
    own = added[added.searchsorted(some[0]) : added.searchsorted(some[-1], side="right")]
    if len(own):
        postings = [tail[key] for key in own.tolist()]
        yield (
            own,
            np.array([len(of_key[0]) for of_key in postings], dtype=np.int64),
            np.concatenate([of_key[0] for of_key in postings]),
            np.concatenate([of_key[1] for of_key in postings]),
        )
