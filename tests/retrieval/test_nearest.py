"""The nearest rows are those that a comparison with all finds, whichever way they are taken piece by piece."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sidecar.domain import Change, Memory
from sidecar.retrieval import contents, nearest, vectors
from sidecar.retrieval.snapshot import Snapshot, empty_snapshot


def snapshot_of(rows: int, seed: int) -> Snapshot:
    """Vectors of few values, so that many products are equal; some are zero, and some rows are dead."""
    made = np.random.default_rng(seed).integers(-1, 2, (rows, 4)).astype(np.float32)
    added = tuple(Memory(id=f"m{i}", content="a note", key=i + 1, embedding=made[i]) for i in range(rows))
    snapshot = empty_snapshot().apply(Change("n", 1, upserted=added))
    return snapshot.apply(Change("n", 2, deleted_keys=tuple(range(1, rows + 1, 5))))


@given(
    rows=st.integers(1, 60),
    k=st.integers(1, 20),
    at_once=st.integers(1, 70),
    every=st.sampled_from((2, 7)),
    seed=st.integers(0, 1_000),
)
def test_they_are_those_of_a_comparison_with_all(rows: int, k: int, at_once: int, every: int, seed: int) -> None:
    """Of those that are asked about, few or most, in the order of their cosines; of two equal ones the older first,
    also where only one of them has room: which it is must not depend on dead rows or on how many are compared."""
    snapshot = snapshot_of(rows, seed)
    asked = vectors.quantised(np.random.default_rng(seed + 1).integers(-1, 2, (3, 4)).astype(np.float32))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(nearest, "ROWS_AT_ONCE", at_once)
        patch.setattr(nearest, "BATCH", 2)
        among = snapshot.columns.live & (np.arange(rows) % every != 1)
        found = nearest.nearest(snapshot, asked, k, among)
    matrix = snapshot.contents.table.column(contents.VECTOR)
    usable = np.flatnonzero(among & matrix.any(axis=1))
    table = vectors.cosine_table(asked, matrix[usable], vectors.inverse_lengths(matrix[usable]))
    for place in range(len(asked)):
        count = min(k, len(usable)) if asked[place].any() else 0
        own, cosines = found.rows[place][:count].tolist(), found.cosines[place][:count].tolist()
        assert (found.rows[place][count:] == -1).all()
        assert np.isnan(found.cosines[place][count:]).all()
        assert cosines == np.sort(table[place])[::-1][:count].tolist()
        of_row = dict(zip(usable.tolist(), table[place].tolist(), strict=True))
        assert cosines == [of_row[row] for row in own]
        assert own == sorted(of_row, key=lambda row: (-of_row[row], row))[:count]


def test_only_the_newest_are_compared_where_that_is_asked_for() -> None:
    snapshot = snapshot_of(50, seed=3)
    found = nearest.nearest(
        snapshot, vectors.quantised(np.ones((1, 4), np.float32)), 50, snapshot.columns.live, most_rows=10
    )
    assert set(found.rows[0].tolist()) - {-1} == set(np.flatnonzero(snapshot.columns.live)[-10:].tolist())
