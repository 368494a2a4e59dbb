"""What is known of a namespace's memories before any task: made once, and used for all tasks until something changes.

A use, a rating or a write moves it on by the rows that it touches. Other weights make it anew; so does the next minute,
as memories grow older.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from sidecar.domain import Floats, Micros
from sidecar.features import (
    OTHERS_KNOWN,
    RAW_NAMES,
    REGISTRY,
    Columns,
    Kept,
    Same,
    View,
    changed_rows,
    known_values,
    raw_columns,
)
from sidecar.features.recency import whole_minute
from sidecar.ranking.gates import Gates, gate_codes
from sidecar.retrieval.part import Part
from sidecar.retrieval.snapshot import Snapshot
from sidecar.weights import Known, Weights, known_parts

WIDTH = 2 * len(REGISTRY) + len(RAW_NAMES) + OTHERS_KNOWN
"""Numbers that are known of a row: values, contributions, the ages and counts behind them, and values in other ways, in
this order."""
MOST_MOVED = 0.5
"""The share of a namespace's rows that is moved on at most; of more, all are made anew."""
MOST_WEIGHTS = 4
"""Weights by which a namespace's standing is kept; then all is forgotten and begins anew."""


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
    of: tuple[object, ...] = (Same(weights, view.use_prior), view.emotion_enabled, whole_minute(view.as_of_time))
    if isinstance(snapshot, Part):
        return snapshot.kept.latest(("standing", weights.version), of, lambda: standing_of(view, weights))
    # Where the next score version finds it, which moves the standing of a few memories alone.
    of = (*of, view.columns.kinds, snapshot.most_uses)
    kept: dict[str, tuple[object, Columns, Standing]] = snapshot.kept_of_rows.once("standing", dict)
    known, made = kept.get(weights.version), None
    if known is not None and known[0] == of:
        if known[1] is view.columns:
            return known[2]
        made = _moved_on(known[2], known[1], view, weights, snapshot)
    made = made or standing_of(view, weights)
    if known is None and len(kept) >= MOST_WEIGHTS:
        kept.clear()
    kept[weights.version] = of, view.columns, made
    return made


def _moved_on(before: Standing, columns: Columns, view: View, weights: Weights, snapshot: Snapshot) -> Standing | None:
    """The standing of a view from that of other columns of the same rows, or the first of them; None if it is to be
    made anew, for many rows changed, or numbers are known that were 0 throughout."""
    count = len(view.columns)
    if len(columns) > count or len(rows := changed_rows(columns, view.columns)) > MOST_MOVED * count:
        return None
    if not len(rows):
        return before
    part = Part.of(snapshot, rows)
    some = standing_of(replace(view, columns=part.columns, most_uses=snapshot.most_uses, memo={}, kept=Kept()), weights)
    if not np.isin(some.places, before.places).all():
        return None
    matrix, task_fit, tokens = (_grown(each, count) for each in (before.matrix, before.known.task_fit, before.tokens))
    matrix[:, rows] = 0.0
    matrix[np.ix_(before.places.searchsorted(some.places), rows)] = some.matrix
    task_fit[rows], tokens[rows] = some.known.task_fit, some.tokens
    return replace(
        before,
        known=replace(before.known, parts=_parts(before.places, matrix), task_fit=task_fit),
        tokens=tokens,
        matrix=matrix,
    )


def _grown(array: NDArray[Any], count: int) -> NDArray[Any]:
    """A copy with room for so many rows, which are its last axis."""
    grown = np.empty((*array.shape[:-1], count), array.dtype)
    grown[..., : array.shape[-1]] = array
    return grown


def _parts(places: NDArray[np.intp], matrix: Floats) -> dict[int, Floats]:
    """The contributions in a Standing's matrix, by feature."""
    d = len(REGISTRY)
    return {place - d: row for place, row in zip(places.tolist(), matrix, strict=True) if d <= place < 2 * d}


def standing_of(view: View, weights: Weights) -> Standing:
    """The same, made now."""
    found = known_values(view)
    known = known_parts(found.values, found.without_use, len(view.columns), weights)
    d, parts = len(REGISTRY), dict(sorted(known.parts.items()))
    columns = [*found.values.values(), *parts.values(), *raw_columns(view), *found.other_ways.values()]
    matrix = np.concatenate(columns).reshape(len(columns), -1)
    places = np.array([*found.values, *(d + index for index in parts), *range(2 * d, WIDTH)], dtype=np.intp)
    has_any = matrix.any(axis=1)
    matrix, places = matrix[has_any], places[has_any]
    return Standing(
        known=replace(known, parts=_parts(places, matrix)),
        tokens=view.columns.tokens.astype(np.int64),
        matrix=matrix,
        places=places,
        other_ways=tuple(found.other_ways),
    )


def gates_at(snapshot: Snapshot, as_of_time: Micros) -> Gates:
    """The gates as they stand at a time for a request that filters nothing."""

    def make() -> Gates:
        columns = snapshot.columns
        codes = gate_codes(columns, None, snapshot.superseded_at(as_of_time), as_of_time)
        return Gates.of(codes, columns)

    columns = snapshot.columns
    of = Same(columns.suppressed, columns.pinned, columns.unhelpful, columns.valid_from_time, columns.valid_until_time)
    return snapshot.kept_of_texts.latest("gates", (of, snapshot.era(as_of_time)), make)
