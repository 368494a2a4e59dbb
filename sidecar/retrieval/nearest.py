"""The memories of a namespace that stand nearest to given vectors: all of the snapshot's own matrix are compared."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from sidecar.domain import Floats
from sidecar.retrieval import contents
from sidecar.retrieval.lexical import inverse_document_frequency
from sidecar.retrieval.snapshot import Snapshot
from sidecar.retrieval.tokenizer import tokenize
from sidecar.retrieval.vectors import Codes, Vectors, cosine_table

Mask = NDArray[np.bool_]

BATCH = 256
ROWS_AT_ONCE = 16_384
"""Vectors, and rows that they are compared with at a time: enough to be fast, few enough to take little memory."""


class Nearest(NamedTuple):
    """Rows and cosines of the nearest, each shape (n, k), nearest first; row -1 and cosine NaN where there is none."""

    rows: NDArray[np.int64]
    cosines: Floats


def nearest(snapshot: Snapshot, wanted: Codes, k: int, among: Mask, most_rows: int | None = None) -> Nearest:
    """The k nearest rows of the mask `among` to each of n quantised vectors, shape (n, dimension); a zero vector has
    none.

    `most_rows` bounds how many living rows are compared: the newest ones then.
    """
    n = len(wanted)
    rows = np.full((n, k), -1, dtype=np.int64)
    cosines = np.full((n, k), np.nan)
    matrix = snapshot.contents.table.column(contents.VECTOR)
    if not n or not len(matrix) or not matrix.shape[1] or wanted.shape[1:] != matrix.shape[1:]:
        return Nearest(rows, cosines)
    inverse = snapshot.contents.table.column(contents.INVERSE_LENGTH)
    first = 0
    if most_rows is not None and snapshot.live_count > most_rows:
        first = int(np.flatnonzero(snapshot.columns.live)[-most_rows])  # which dead rows are left changes nothing
    allowed = among[first:] & (inverse[first:] > 0.0)
    candidates = np.flatnonzero(allowed)
    if not len(candidates):
        return Nearest(rows, cosines)
    is_most = 2 * len(candidates) >= len(allowed)  # to copy them would take longer than to compare a few more
    if is_most:
        compared, lengths, left_out = matrix[first:], inverse[first:], ~allowed
    else:
        compared, lengths, left_out = matrix[first:][candidates], inverse[first:][candidates], None
    found = min(k, len(candidates))
    for start in range(0, n, BATCH):
        best, places = _best(wanted[start : start + BATCH], compared, lengths, left_out, found)
        rows[start : start + BATCH, :found] = first + (places if is_most else candidates[places])
        cosines[start : start + BATCH, :found] = best
    nothing = ~wanted.any(axis=1)
    rows[nothing], cosines[nothing] = -1, np.nan
    return Nearest(rows, cosines)


def _best(
    asked: Codes, compared: Codes, inverse: Floats, left_out: Mask | None, k: int
) -> tuple[Vectors, NDArray[np.int64]]:
    """The k greatest cosines of each vector asked with those compared, descending, and where they stand; of equal
    ones the first goes first. At least k are not left out. Twice as fast as FAISS, whose lists are made for a few
    vectors and many rows."""
    found_cosines, found_places = [], []
    for first in range(0, len(compared), ROWS_AT_ONCE):
        some = slice(first, first + ROWS_AT_ONCE)
        cosines = cosine_table(asked, compared[some], inverse[some])
        if left_out is not None:
            cosines[:, np.flatnonzero(left_out[some])] = -np.inf
        best = _greatest(cosines, k)
        found_cosines.append(np.take_along_axis(cosines, best, axis=1))
        found_places.append(best + first)
    cosines, places = np.concatenate(found_cosines, axis=1), np.concatenate(found_places, axis=1)
    order = np.lexsort((places, -cosines))[:, :k]
    return np.take_along_axis(cosines, order, axis=1), np.take_along_axis(places, order, axis=1)


def _greatest(cosines: Vectors, k: int) -> NDArray[np.int64]:
    """Where the k greatest of each row of numbers stand, all of fewer, in no order; of equal ones the first."""
    size = cosines.shape[1]
    if k >= size:
        return np.tile(np.arange(size), (len(cosines), 1))
    best = np.argpartition(cosines, size - k, axis=1)[:, size - k :]
    # Which of those that equal the least of them it takes depends on what stands around, dead rows included.
    least = np.take_along_axis(cosines, best, axis=1).min(axis=1)[:, None]
    reaching = (cosines >= least).sum(axis=1)
    for row in np.flatnonzero(reaching > k).tolist():
        above = np.flatnonzero(cosines[row] > least[row])
        equal = np.flatnonzero(cosines[row] == least[row])
        best[row] = np.concatenate((above, equal[: k - len(above)]))
    return best


def nearest_by_words(snapshot: Snapshot, text: str, k: int, among: Mask) -> Nearest:
    """The k rows of the mask `among` that bear most of a text's words, by their rarity: for namespaces without vectors.
    Shape (1, k).

    In the place of a cosine stands the share of the text's words that the other bears.
    """
    rows, shares = np.full((1, k), -1, dtype=np.int64), np.full((1, k), np.nan)
    live = snapshot.columns.live
    borne = np.zeros(len(snapshot))
    total = 0.0
    for term in dict.fromkeys(token.term for token in tokenize(text) if not token.is_stop_word):
        bearing, _ = snapshot.contents.terms.find(term, live, snapshot.contents.all_live)
        idf = inverse_document_frequency(snapshot.live_count, len(bearing))
        total += idf
        borne[bearing] += idf
    borne[~among] = 0.0
    found = np.argsort(-borne, kind="stable")[:k]
    found = found[borne[found] > 0.0]
    rows[0, : len(found)], shares[0, : len(found)] = found, borne[found] / (total or 1.0)
    return Nearest(rows, shares)


def vector_of(snapshot: Snapshot, row: int) -> Codes:
    """The vector of a row; zeros for one without."""
    found: Codes = snapshot.contents.table.column(contents.VECTOR)[row]
    return found
