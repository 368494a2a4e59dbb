"""Cosines that do not depend on anything but the two vectors."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sidecar.retrieval.vectors import GRID, Vectors, cosines, inverse_lengths, snap


def some_vectors(seed: int, rows: int, dimension: int) -> Vectors:
    """Random rows, some sparse, some all alike, some of one component: the shapes that strain partial sums."""
    random = np.random.default_rng(seed)
    matrix = random.standard_normal((rows, dimension)) * random.choice([1e-6, 1.0, 1e6], size=(rows, 1))
    matrix[::4] *= random.random((len(matrix[::4]), dimension)) < 0.1
    matrix[1::7] = 1.0
    matrix[2::11] = 0.0
    matrix[2::11, 0] = -1.0
    return np.asarray(matrix, np.float32)


CASES = {
    "seed": st.integers(0, 2**32 - 1),
    "rows": st.integers(1, 70),
    "dimension": st.sampled_from((1, 2, 3, 7, 8, 15, 64, 100, 256, 384, 1536)),
}


@settings(max_examples=60, deadline=None)
@given(**CASES)
def test_a_cosine_is_the_same_in_any_order_and_company(seed: int, rows: int, dimension: int) -> None:
    """Shuffled components, cut-out rows, any chunk, FAISS, NumPy and exact integers: one result, bit for bit."""
    snapped = snap(some_vectors(seed, rows, dimension))
    inverse = inverse_lengths(snapped)
    task = snap(some_vectors(seed + 1, 1, dimension))[0]
    result = cosines(snapped, inverse, task)
    order = np.random.default_rng(seed).permutation(dimension)
    shuffled = np.ascontiguousarray(snapped[:, order])
    assert result.tobytes() == cosines(shuffled, inverse_lengths(shuffled), task[order]).tobytes()
    for at in range(rows):
        alone = np.ascontiguousarray(snapped[at : at + 1])
        assert result[at].tobytes() == cosines(alone, inverse_lengths(alone), task).tobytes()
    half = rows // 2
    parts = [cosines(snapped[:half], inverse[:half], task), cosines(snapped[half:], inverse[half:], task)]
    assert result.tobytes() == np.concatenate(parts).tobytes()
    whole_numbers = np.rint(snapped / GRID).astype(np.int64) @ np.rint(task / GRID).astype(np.int64)
    exact = whole_numbers.astype(np.float64) * float(GRID) ** 2
    assert (snapped @ task).tolist() == exact.tolist()
    own = inverse_lengths(task[None, :])[0]
    assert result.tobytes() == (np.clip(exact * inverse * own, -1, 1) + 0.0).tobytes()


@settings(max_examples=40, deadline=None)
@given(**CASES)
def test_a_cosine_is_near_the_true_one(seed: int, rows: int, dimension: int) -> None:
    """Within sqrt(d) * 2^-11 and a little always; on average far nearer."""
    given_vectors, task = some_vectors(seed, rows, dimension), some_vectors(seed + 1, 1, dimension)[0]
    snapped = snap(given_vectors)
    result = cosines(snapped, inverse_lengths(snapped), snap(task)[0])
    wide, wide_task = given_vectors.astype(np.float64), task.astype(np.float64)
    lengths = np.linalg.norm(wide, axis=1) * np.linalg.norm(wide_task)
    true = np.divide(wide @ wide_task, lengths, out=np.zeros(rows), where=lengths > 0)
    assert np.abs(result - true).max() <= np.sqrt(dimension) * 2**-11 + 1e-6


def test_the_usual_error_is_small() -> None:
    """At 256 dimensions the root mean square error is below 3e-4."""
    random = np.random.default_rng(7)
    given_vectors, task = random.standard_normal((5000, 256)), random.standard_normal(256)
    snapped = snap(given_vectors.astype(np.float32))
    result = cosines(snapped, inverse_lengths(snapped), snap(task.astype(np.float32))[0])
    true = given_vectors @ task / np.linalg.norm(given_vectors, axis=1) / np.linalg.norm(task)
    assert np.sqrt(np.mean((result - true) ** 2)) < 3e-4


def test_vectors_are_compared_by_direction() -> None:
    """The same direction is 1, the opposite -1 and last, a right angle 0; a zero vector is 0 to all."""
    matrix = snap(np.array([[-1, 0], [0, 1], [1, 1], [1e-20, 0], [3e30, 0], [0, 0]], np.float32))
    result = cosines(matrix, inverse_lengths(matrix), snap(np.array([5, 0], np.float32))[0])
    assert result.tolist() == pytest.approx([-1, 0, 0.5**0.5, 1, 1, 0], abs=1e-3)
    assert result[[0, 1, 3, 4, 5]].tolist() == [-1, 0, 1, 1, 0]


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_what_is_not_finite_is_refused(bad: float) -> None:
    """No NaN ever enters a matrix."""
    with pytest.raises(ValueError, match="finite"):
        snap(np.array([[1.0, bad]], np.float32))


def test_another_dimension_is_refused() -> None:
    """A task of another dimension is an error, not a wrong number."""
    matrix = snap(np.ones((2, 3), np.float32))
    with pytest.raises(ValueError, match="dimension 3"):
        cosines(matrix, inverse_lengths(matrix), np.ones(2, np.float32))
