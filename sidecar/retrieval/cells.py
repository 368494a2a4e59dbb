"""Rows by where their vectors lie, so that the nearest of a million are found among a few thousand.

An inverted file over the snapshot's own vectors: k-means gives the centres of cells, every row belongs to the cell of
the nearest centre, and a task looks at the rows of the cells nearest to it. Cosines are exact; only which rows are
looked at is not.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sidecar.domain import Floats
from sidecar.retrieval.vectors import Codes, Vectors, cosines, inverse_lengths, quantised

MOST_CELLS = 4_096
CELLS_PER_ROOT = 2.0
"""Cells are this many times the root of the number of rows."""
MOST_PER_CELL = 1.0
"""Cells are made anew once rows are this many times the square of their number: four times as many as they were."""
SAMPLES_PER_CELL = 40
ROUNDS = 8
AT_ONCE = 16_384
"""Rows that are given to their cells in one call: short enough to be stopped between two."""
SEED = 1

Rows = NDArray[np.int32]


@dataclass(frozen=True, slots=True, eq=False)
class Cells:
    """`centres` (cells, d), also as whole `numbers`, which a cache holds, with their `inverse` lengths; `cell` (rows,)
    says where each row belongs; `rows` are all rows, cell by cell, those of the i-th at [starts[i], starts[i + 1])."""

    centres: Vectors
    numbers: Codes
    inverse: Floats
    cell: Rows
    rows: Rows
    starts: NDArray[np.int64]

    @staticmethod
    def of(centres: Vectors, cell: Rows) -> Cells:
        """Sorts the rows by their cells."""
        starts = np.zeros(len(centres) + 1, np.int64)
        np.cumsum(np.bincount(cell, minlength=len(centres)), out=starts[1:])
        numbers = quantised(centres)
        return Cells(
            centres, numbers, inverse_lengths(numbers), cell, np.argsort(cell, kind="stable").astype(np.int32), starts
        )

    def __len__(self) -> int:
        """Rows that have a cell: the first ones of the snapshot."""
        return len(self.cell)

    def near(self, task: Codes, count: int) -> Rows:
        """At least `count` rows, if there are so many: those of the cells nearest to `task`, in no order."""
        nearness = cosines(self.numbers, self.inverse, task)
        mean = max(1.0, len(self.cell) / len(self.centres))
        some = min(len(self.centres), 4 + int(2 * count / mean))
        nearest = np.argpartition(-nearness, some - 1)[:some] if some < len(nearness) else np.arange(len(nearness))
        nearest = nearest[np.argsort(-nearness[nearest])]
        found: list[Rows] = []
        for cell in nearest.tolist():
            found.append(self.rows[self.starts[cell] : self.starts[cell + 1]])
            count -= len(found[-1])
            if count <= 0:
                break
        return np.concatenate(found)

    def extended(self, matrix: Codes, go_on: Callable[[], bool]) -> Cells | None:
        """With the rows of `matrix` that came since, in the cells there are. None once `go_on` says no."""
        added = assign(self.centres, matrix[len(self) :], go_on)
        return None if added is None else Cells.of(self.centres, np.concatenate((self.cell, added)))

    def suit(self, matrix: Codes) -> bool:
        """False for a matrix of another dimension, or so many rows that cells should be made anew."""
        rows, dimension = matrix.shape
        return bool(dimension == self.centres.shape[1] and rows < MOST_PER_CELL * len(self.centres) ** 2)


def make_cells(matrix: Codes, go_on: Callable[[], bool] = lambda: True) -> Cells | None:
    """Cells of the rows of `matrix`, shape (n, d), n above 0. Takes seconds, on one thread and mostly without Python's
    lock; None once `go_on` says no, which is asked now and then."""
    rows, dimension = matrix.shape
    if not dimension:
        return Cells.of(np.zeros((1, 0), np.float32), np.zeros(rows, np.int32))
    import faiss  # takes longer to load than all else that a start needs, and only large namespaces need it

    cells = int(min(MOST_CELLS, max(1.0, CELLS_PER_ROOT * rows**0.5)))
    chosen = np.random.default_rng(SEED).permutation(rows)[: SAMPLES_PER_CELL * cells]
    chosen.sort()
    sample, centres = matrix[chosen].astype(np.float32), None
    sample *= inverse_lengths(matrix[chosen])[:, None].astype(np.float32)
    for _ in range(ROUNDS):
        if not go_on():
            return None
        means = faiss.Kmeans(dimension, cells, niter=1, spherical=True, seed=SEED, min_points_per_centroid=1)
        means.train(sample, init_centroids=centres)
        centres = np.ascontiguousarray(means.centroids, dtype=np.float32)
    assert centres is not None
    cell = assign(centres, matrix, go_on)
    return None if cell is None else Cells.of(centres, cell)


def assign(centres: Vectors, matrix: Codes, go_on: Callable[[], bool] = lambda: True) -> Rows | None:
    """The nearest centre of each row, shape (n,); None once `go_on` says no."""
    found = np.zeros(len(matrix), np.int32)
    if not centres.shape[1]:
        return found
    import faiss

    index = faiss.IndexFlatIP(centres.shape[1])
    index.add(centres)
    for first in range(0, len(matrix), AT_ONCE):
        if not go_on():
            return None
        some = matrix[first : first + AT_ONCE].astype(np.float32)  # of any length: the nearest centre is the same
        found[first : first + AT_ONCE] = index.search(some, 1)[1][:, 0]
    return found
