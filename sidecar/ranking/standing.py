"""What is known of a namespace's memories before any task: made once, and used for all tasks until something changes.

A use, a rating, a new memory or other weights make it anew; so does the next minute, as memories grow older.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from sidecar.domain import Floats, Micros
from sidecar.features import OTHERS_KNOWN, RAW_NAMES, REGISTRY, View, other_ways, raw_columns, values_without_use
from sidecar.features.recency import whole_minute
from sidecar.ranking.gates import Gates, gate_codes
from sidecar.retrieval.part import Part
from sidecar.retrieval.snapshot import Snapshot
from sidecar.weights import KNOWN, Known, Weights, known_parts

WIDTH = 2 * len(REGISTRY) + len(RAW_NAMES) + OTHERS_KNOWN
"""Numbers that are known of a row: values, contributions, the ages and counts behind them, and values in other ways, in
this order."""


@dataclass(frozen=True, slots=True)
class Standing:
    """What is known of n memories: `matrix` has shape (k, n), and `places` says which of the WIDTH numbers each of its
    rows holds. What is 0 throughout is left out. The contributions of `known` are among them."""

    known: Known
    tokens: NDArray[np.int64]
    matrix: Floats
    places: NDArray[np.intp]
    other_ways: tuple[str, ...]
    """What the last OTHERS_KNOWN of the WIDTH numbers are."""
    made_of: tuple[object, ...]

    def at(self, rows: list[int], values: Mapping[int, Floats], parts: Mapping[int, Floats]) -> Details:
        """All numbers of some rows, with `values` and `parts` of the task's features by index, each of shape (n,)."""
        taken = np.array(rows, dtype=np.intp)
        found = np.zeros((WIDTH, len(rows)))
        found[self.places] = self.matrix.take(taken, axis=1)
        for index, column in values.items():
            found[index] = column.take(taken)
        for index, column in parts.items():
            found[len(REGISTRY) + index] = column.take(taken)
        by_row = found.T.copy()
        d, r = len(REGISTRY), WIDTH - OTHERS_KNOWN
        return Details(by_row[:, :d], by_row[:, d : 2 * d], by_row[:, 2 * d : r], by_row[:, r:])


class Details(NamedTuple):
    """What is known of m rows: shapes (m, d), (m, d), (m, r) and (m, OTHERS_KNOWN)."""

    features: Floats
    contributions: Floats
    raw: Floats
    other_ways: Floats


def standing(snapshot: Snapshot | Part, view: View, weights: Weights) -> Standing:
    """What is known of the snapshot's memories at the view's time, by these weights."""
    # Told apart by identity: what was made keeps its sources alive, so that no other object can have their place.
    of = (id(weights), id(view.use_prior), view.emotion_enabled, whole_minute(view.as_of_time))
    return snapshot.kept.latest(("standing", weights.version), of, lambda: standing_of(view, weights))


def standing_of(view: View, weights: Weights) -> Standing:
    """The same, made now."""
    values = {index: view.value(REGISTRY[index]) for index in KNOWN}
    known = known_parts(values, values_without_use(view), len(view.columns), weights)
    d = len(REGISTRY)
    columns = {index: column for index, column in values.items() if column.any()}
    columns |= {d + index: column for index, column in known.parts.items()}
    others = other_ways(view)
    behind = (*raw_columns(view), *others.values())
    columns |= {2 * d + index: column for index, column in enumerate(behind) if column.any()}
    matrix = np.stack(list(columns.values())) if columns else np.empty((0, len(view.columns)))
    by_place = dict(zip(columns, matrix, strict=True))
    return Standing(
        known=replace(known, parts={place - d: row for place, row in by_place.items() if d <= place < 2 * d}),
        tokens=view.columns.tokens.astype(np.int64),
        matrix=matrix,
        places=np.array(list(columns), dtype=np.intp),
        other_ways=tuple(others),
        made_of=(weights, view.use_prior),
    )


def gates_at(snapshot: Snapshot, as_of_time: Micros) -> Gates:
    """The gates as they stand at a time for a request that filters nothing."""

    def make() -> Gates:
        columns = snapshot.columns
        codes = gate_codes(columns, None, snapshot.superseded_at(as_of_time), as_of_time)
        return Gates.of(codes, columns)

    return snapshot.kept.latest("gates", snapshot.era(as_of_time), make)
