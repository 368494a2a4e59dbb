"""Cosines that do not depend on anything but the two vectors."""

from __future__ import annotations

import math
import sys

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sidecar.retrieval.vectors import Vectors, cosine_table, cosines, inverse_lengths, quantised


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
    """Shuffled components, cut-out rows, any chunk, and Python's whole numbers: one result, bit for bit."""
    codes = quantised(some_vectors(seed, rows, dimension))
    inverse = inverse_lengths(codes)
    task = quantised(some_vectors(seed + 1, 1, dimension))[0]
    result = cosines(codes, inverse, task)
    order = np.random.default_rng(seed).permutation(dimension)
    shuffled = np.ascontiguousarray(codes[:, order])
    assert result.tobytes() == cosines(shuffled, inverse_lengths(shuffled), task[order]).tobytes()
    for at in range(rows):
        alone = np.ascontiguousarray(codes[at : at + 1])
        assert result[at].tobytes() == cosines(alone, inverse_lengths(alone), task).tobytes()
    half = rows // 2
    parts = [cosines(codes[:half], inverse[:half], task), cosines(codes[half:], inverse[half:], task)]
    assert result.tobytes() == np.concatenate(parts).tobytes()
    some = np.arange(rows, dtype=np.int32)[::-2]
    assert result[some].tobytes() == cosines(codes.take(some, axis=0), inverse[some], task).tobytes()
    products = [sum(a * b for a, b in zip(row, task.tolist(), strict=True)) for row in codes.tolist()]
    own = sum(each * each for each in task.tolist())
    exact = np.array(products, np.float64) * inverse * (1.0 / math.sqrt(own) if own else 0.0)
    assert result.tobytes() == (np.clip(exact, -1, 1) + 0.0).tobytes()


def test_a_product_counts_no_reference_away() -> None:
    """However often cosines are asked for, there are as many references to None: on Python 3.11 a server that runs out
    of them ends."""
    codes = quantised(some_vectors(1, 8, 16))
    inverse = inverse_lengths(codes)
    before = sys.getrefcount(None)
    for _ in range(500):
        cosines(codes, inverse, codes[0])
        cosine_table(codes[:2], codes, inverse)
    assert abs(sys.getrefcount(None) - before) < 100


@settings(max_examples=60, deadline=None)
@given(**CASES)
def test_a_table_of_cosines_is_the_same_whoever_else_asks(seed: int, rows: int, dimension: int) -> None:
    """One vector alone, a few, all at once, rows cut out: one result for each pair, which is the cosine's."""
    codes = quantised(some_vectors(seed, rows, dimension))
    inverse = inverse_lengths(codes)
    table = cosine_table(codes, codes, inverse)
    assert np.array_equal(table, table.T)  # of two, each is as near to the other: what one tells the other holds
    for first, last in ((0, 1), (rows // 3, rows // 3 + 3), (rows // 2, rows)):
        assert table[first:last].tobytes() == cosine_table(codes[first:last], codes, inverse).tobytes()
        cut = cosine_table(codes, codes[first:last], inverse[first:last])
        assert np.ascontiguousarray(table[:, first:last]).tobytes() == cut.tobytes()
    for at in range(rows):
        assert table[at] == pytest.approx(cosines(codes, inverse, codes[at]), abs=1e-6)


@settings(max_examples=40, deadline=None)
@given(**CASES)
def test_a_cosine_is_near_the_true_one(seed: int, rows: int, dimension: int) -> None:
    """Each vector turns by half a step a component at most; on average far less."""
    given_vectors, task = some_vectors(seed, rows, dimension), some_vectors(seed + 1, 1, dimension)[0]
    codes = quantised(given_vectors)
    result = cosines(codes, inverse_lengths(codes), quantised(task)[0])
    wide, wide_task = given_vectors.astype(np.float64), task.astype(np.float64)
    lengths = np.linalg.norm(wide, axis=1) * np.linalg.norm(wide_task)
    true = np.divide(wide @ wide_task, lengths, out=np.zeros(rows), where=lengths > 0)
    turned = np.sqrt(dimension) / 2 * (inverse_lengths(codes) + inverse_lengths(quantised(task)))
    assert (np.abs(result - true) <= 1.1 * turned + 1e-6).all()


def test_the_usual_error_is_small() -> None:
    """At 256 dimensions the root mean square error is below 1e-3."""
    random = np.random.default_rng(7)
    given_vectors, task = random.standard_normal((5000, 256)), random.standard_normal(256)
    codes = quantised(given_vectors.astype(np.float32))
    result = cosines(codes, inverse_lengths(codes), quantised(task.astype(np.float32))[0])
    true = given_vectors @ task / np.linalg.norm(given_vectors, axis=1) / np.linalg.norm(task)
    assert np.sqrt(np.mean((result - true) ** 2)) < 1e-3


def test_vectors_are_compared_by_direction() -> None:
    """The same direction is 1, the opposite -1 and last, a right angle 0; a zero vector is 0 to all."""
    matrix = quantised(np.array([[-1, 0], [0, 1], [1, 1], [1e-20, 0], [3e30, 0], [0, 0]], np.float32))
    result = cosines(matrix, inverse_lengths(matrix), quantised(np.array([5, 0], np.float32))[0])
    assert result.tolist() == pytest.approx([-1, 0, 0.5**0.5, 1, 1, 0], abs=1e-3)
    assert result[[0, 1, 3, 4, 5]].tolist() == [-1, 0, 1, 1, 0]


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_what_is_not_finite_is_refused(bad: float) -> None:
    """No NaN ever enters a matrix."""
    with pytest.raises(ValueError, match="finite"):
        quantised(np.array([[1.0, bad]], np.float32))


def test_another_dimension_is_refused() -> None:
    """A task of another dimension is an error, not a wrong number."""
    matrix = quantised(np.ones((2, 3), np.float32))
    with pytest.raises(ValueError, match="dimension 3"):
        cosines(matrix, inverse_lengths(matrix), np.ones(2, np.int8))
