"""Exact cosines: the same two vectors have the same cosine to the last bit, whatever else is scored beside them.

Unit vectors are snapped to multiples of 2^-11. Every product of two components is then a multiple of 2^-22, and every
partial sum of a dot product stays below 2 (Cauchy-Schwarz), so it has at most 23 significant bits and float32 holds
it exactly: no order of summation, SIMD width, thread count, position or neighbour can change a result. What is
computed is the true cosine of the snapped vectors, rounded once. Snapping moves a component by at most 2^-12, so the
cosine differs from that of the original vectors by at most about sqrt(d) * 2^-11, and on average by 2e-4.
"""

from __future__ import annotations

import math

import faiss
import numpy as np
from numpy.typing import NDArray

from sidecar.domain import Floats

Vectors = NDArray[np.float32]

GRID = np.float32(2**-11)


def snap(vectors: Vectors) -> Vectors:
    """Unit vectors on the grid, shape (n, d), float32; a zero row stays zero.

    ValueError for rows that are not finite, or too long or too short to have a length in float64.
    """
    wide = np.atleast_2d(np.asarray(vectors, dtype=np.float64))
    lengths = np.sqrt(np.einsum("ij,ij->i", wide, wide))
    if not np.isfinite(lengths).all():
        raise ValueError("a vector is not finite")
    lengths[lengths == 0.0] = 1.0
    return np.asarray(np.rint(wide / lengths[:, None] / GRID) * GRID, dtype=np.float32)


def inverse_lengths(snapped: Vectors) -> Floats:
    """1 / length of each row of `snapped`, 0 for a zero row. Shape (n,), float64. The squares add up exactly, too."""
    squares = np.einsum("ij,ij->i", snapped, snapped, dtype=np.float64)
    inverse: Floats = np.divide(1.0, np.sqrt(squares), out=np.zeros(len(snapped)), where=squares > 0.0)
    return inverse


def cosines(matrix: Vectors, inverse: Floats, task: Vectors) -> Floats:
    """Cosine of each of n snapped rows with one snapped vector, shape (n,), float64 in [-1, 1]; 0 for zero vectors.

    `matrix` is (n, d) and contiguous, `inverse` its inverse lengths, `task` is (d,). FAISS computes the products
    straight from the matrix: there is no index that could fall out of step with it.
    """
    rows, dimension = matrix.shape
    if task.shape != (dimension,):
        raise ValueError(f"the task's vector has shape {task.shape}, the memories' have dimension {dimension}")
    products = np.empty(rows, dtype=np.float32)
    if rows:
        if not (matrix.flags.c_contiguous and matrix.dtype == np.float32):
            raise ValueError("the matrix must be contiguous float32")
        task = np.ascontiguousarray(task, dtype=np.float32)
        faiss.fvec_inner_products_ny(  # type: ignore[attr-defined]  # its stub file lacks the C functions
            faiss.swig_ptr(products), faiss.swig_ptr(task), faiss.swig_ptr(matrix), dimension, rows
        )
    return _cosines(products, inverse, task)


def cosines_at(matrix: Vectors, inverse: Floats, task: Vectors, rows: NDArray[np.int32]) -> Floats:
    """The same of some rows alone, to the last bit, without copying them. Shape (len(rows),)."""
    products = np.empty(len(rows), dtype=np.float32)
    if len(rows):
        task = np.ascontiguousarray(task, dtype=np.float32)
        at = rows.astype(np.int64)
        pointers = [faiss.swig_ptr(array) for array in (products, task, matrix, at)]
        faiss.fvec_inner_products_by_idx(*pointers, matrix.shape[1], 1, len(rows))  # type: ignore[attr-defined]  # as above
    return _cosines(products, inverse[rows], task)


def _cosines(products: Vectors, inverse: Floats, task: Vectors) -> Floats:
    squares = float(task.astype(np.float64).dot(task))  # exact in any order, as above
    own = 1.0 / math.sqrt(squares) if squares else 0.0
    cosine: Floats = products * inverse
    cosine *= own
    np.maximum(cosine, -1.0, out=cosine)
    np.minimum(cosine, 1.0, out=cosine)
    cosine += 0.0  # no -0.0: its sign goes by the summation
    return cosine
