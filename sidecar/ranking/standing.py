"""What is known of a namespace's memories before any task: made once, and used for all tasks until something changes.

A use, a rating, a new memory or other weights make it anew; so does the next minute, as memories grow older.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sidecar.domain import Floats, Micros
from sidecar.features import RAW_NAMES, REGISTRY, View, raw_columns, values_without_use
from sidecar.features.recency import whole_minute
from sidecar.ranking.gates import Gates, gate_codes
from sidecar.retrieval.part import Part
from sidecar.retrieval.snapshot import Snapshot
from sidecar.weights import KNOWN, Known, Weights, known_parts


@dataclass(frozen=True, slots=True)
class Standing:
    """Of n memories: `values` of features by index, contributions, and the ages and counts behind them (`raw`, by
    index in RAW_NAMES), each of shape (n,). Values and raw that are 0 throughout are left out."""

    values: Mapping[int, Floats]
    known: Known
    raw: Mapping[int, Floats]
    tokens: NDArray[np.int64]
    made_of: tuple[object, ...]

    def raw_at(self, rows: list[int]) -> Floats:
        """Ages and counts of some rows, shape (len(rows), r)."""
        return at_rows(self.raw, rows, len(RAW_NAMES))


def at_rows(columns: Mapping[int, Floats], rows: list[int], width: int) -> Floats:
    """Some rows of columns by index, as a matrix with 0 where there is no column. Shape (len(rows), width)."""
    found = np.zeros((width, len(rows)))
    taken = np.array(rows, dtype=np.intp)
    for index, column in columns.items():
        found[index] = column.take(taken)
    return np.ascontiguousarray(found.T)


def standing(snapshot: Snapshot | Part, view: View, weights: Weights) -> Standing:
    """What is known of the snapshot's memories at the view's time, by these weights."""
    # Told apart by identity: what was made keeps its sources alive, so that no other object can have their place.
    of = (id(weights), id(view.use_prior), view.emotion_enabled, whole_minute(view.as_of_time))
    return snapshot.kept.latest(("standing", weights.version), of, lambda: standing_of(view, weights))


def standing_of(view: View, weights: Weights) -> Standing:
    """The same, made now."""
    values = {index: view.value(REGISTRY[index]) for index in KNOWN}
    return Standing(
        values={index: column for index, column in values.items() if column.any()},
        known=known_parts(values, values_without_use(view), len(view.columns), weights),
        raw={index: column for index, column in enumerate(raw_columns(view)) if column.any()},
        tokens=view.columns.tokens.astype(np.int64),
        made_of=(weights, view.use_prior),
    )


def gates_at(snapshot: Snapshot, as_of_time: Micros) -> Gates:
    """The gates as they stand at a time for a request that filters nothing."""

    def make() -> Gates:
        columns = snapshot.columns
        codes = gate_codes(columns, None, snapshot.superseded_at(as_of_time), as_of_time)
        return Gates.of(codes, columns)

    return snapshot.kept.latest("gates", snapshot.era(as_of_time), make)
