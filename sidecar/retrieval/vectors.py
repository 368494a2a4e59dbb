"""Exact cosines: the same two vectors have the same cosine to the last bit, whatever else is scored beside them.

A vector is kept as whole numbers from -127 to 127, of which the greatest in magnitude is 127: scalar quantisation to
eight bits, a scale for each vector. Dot products of those are whole numbers, so no order of summation, SIMD width,
thread count, position or neighbour can change a result. What is computed is the true cosine of the quantised vectors,
rounded once or twice. A component moves by at most half a step, so at 256 dimensions a cosine differs from that of the
original vectors by about 6e-4; the direction alone counts, and a vector's length never did.
"""

from __future__ import annotations

import math

import numpy as np
import simsimd
from numpy.typing import NDArray

from sidecar.domain import Floats

Vectors = NDArray[np.float32]
Codes = NDArray[np.int8]

MOST = 127
"""The greatest magnitude of a component."""
EXACT_DIMENSIONS = 2**24 // MOST**2
"""Up to so many, float32 holds every dot product and every sum on the way to it."""
FEW = 4
"""So many vectors asked about are compared one by one: to convert the others to floats would take longer."""
ROWS_AT_ONCE = 65_536
"""Rows of one call, which other threads wait for no longer than a few milliseconds."""


def quantised(vectors: Vectors) -> Codes:
    """The rows of `vectors`, shape (n, d) or (d,), as whole numbers, shape (n, d); a zero row stays zero.

    ValueError for rows that are not finite.
    """
    wide = np.atleast_2d(np.asarray(vectors, dtype=np.float64))
    greatest = np.abs(wide).max(axis=1, initial=0.0)
    if not np.isfinite(greatest).all():
        raise ValueError("a vector is not finite")
    greatest[greatest == 0.0] = 1.0
    codes: Codes = np.rint(wide * (MOST / greatest)[:, None]).astype(np.int8)
    return codes


def inverse_lengths(codes: Codes) -> Floats:
    """1 / length of each row of `codes`, 0 for a zero row. Shape (n,), float64."""
    squares = np.einsum("ij,ij->i", codes, codes, dtype=np.int64)
    inverse: Floats = np.divide(1.0, np.sqrt(squares), out=np.zeros(len(codes)), where=squares > 0)
    return inverse


def cosines(matrix: Codes, inverse: Floats, task: Codes) -> Floats:
    """Cosine of each of n rows with one vector, shape (n,), float64 in [-1, 1]; 0 for zero vectors.

    `matrix` is (n, d) and contiguous, `inverse` its inverse lengths, `task` is (d,). The products come straight from
    the matrix: there is no index that could fall out of step with it.
    """
    rows, dimension = matrix.shape
    if task.shape != (dimension,):
        raise ValueError(f"the task's vector has shape {task.shape}, the memories' have dimension {dimension}")
    if not (matrix.flags.c_contiguous and matrix.dtype == np.int8):
        raise ValueError("the matrix must be contiguous int8")
    # Not into an array by `out`: SimSIMD 6.5 then returns a None that it does not own, and Python 3.11 ends once it has
    # counted them all away.
    products = (
        [np.asarray(simsimd.dot(matrix[at : at + ROWS_AT_ONCE], task)) for at in range(0, rows, ROWS_AT_ONCE)]
        if dimension
        else []
    )
    cosine = products[0] if len(products) == 1 else np.concatenate(products or [np.zeros(rows)])
    squares = int(np.square(task, dtype=np.int64).sum())
    cosine *= inverse
    cosine *= 1.0 / math.sqrt(squares) if squares else 0.0
    np.maximum(cosine, -1.0, out=cosine)
    np.minimum(cosine, 1.0, out=cosine)
    cosine += 0.0  # no -0.0: a product of 0 with a negative number
    return cosine


def cosine_table(asked: Codes, matrix: Codes, inverse: Floats) -> Vectors:
    """Cosines of each of n vectors with each of m rows, shape (n, m), float32 in [-1, 1]: enough to find the nearest.
    The same two vectors have the same cosine in every table."""
    if len(asked) <= FEW or asked.shape[1] > EXACT_DIMENSIONS:
        table = _products(asked, matrix).astype(np.float32)
    else:
        table = asked.astype(np.float32) @ matrix.astype(np.float32).T
    # Of the two lengths together, so that either way round a cosine is the same.
    table *= np.multiply.outer(inverse_lengths(asked).astype(np.float32), inverse.astype(np.float32))
    found: Vectors = np.clip(table, -1.0, 1.0, out=table)
    return found


def _products(left: Codes, right: Codes) -> Floats:
    """The dot product of each row of one with each row of the other, whole numbers as float64."""
    if not len(left) or not len(right):
        return np.zeros((len(left), len(right)))
    return np.asarray(simsimd.cdist(left, right, metric="dot"))
