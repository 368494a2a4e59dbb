"""The features in their order, and what is derived from the order: names, schema hash, matrices."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from sidecar.domain import Floats
from sidecar.features import (
    context,
    dates,
    emotion,
    frequency,
    handles,
    importance,
    kind_prior,
    lexical,
    rating,
    recency,
    relevance,
    semantic,
    statement,
    subject,
    thread,
    use_rate,
)
from sidecar.features.view import Feature, Rows, View

REGISTRY: tuple[Feature, ...] = (
    kind_prior.FEATURE,
    relevance.FEATURE,
    semantic.FEATURE,
    lexical.FEATURE,
    handles.FEATURE,
    subject.FEATURE,
    thread.FEATURE,
    dates.FEATURE,
    statement.FEATURE,
    recency.FEATURE,
    frequency.FEATURE,
    use_rate.FEATURE,
    rating.FEATURE,
    importance.FEATURE,
    emotion.FEATURE,
    context.FEATURE,
)
BY_NAME = {feature.name: feature for feature in REGISTRY}
FEATURE_NAMES = tuple(BY_NAME)
USE_FAMILY = tuple(feature.name for feature in REGISTRY if feature.in_use_family)
PARTLY_FED_BY_USE = tuple(feature.name for feature in REGISTRY if feature.without_use)
RAW_NAMES = tuple(name for feature in REGISTRY for name in feature.raw)


def schema_hash(features: Sequence[Feature]) -> str:
    """Names what `features` log: changes with any change of their order, names, versions or raw values."""
    lines = (f"{feature.name}@{feature.version}:{','.join(feature.raw)}" for feature in features)
    return hashlib.sha256("\n".join(lines).encode()).hexdigest()[:16]


SCHEMA_HASH = schema_hash(REGISTRY)

WAYS = tuple(f"{feature.name}:{way}" for feature in REGISTRY if len(feature.values) > 1 for way in feature.values)
"""The ways to measure features that are measured in several, as feature:variant."""
_KNOWN = {index: feature for index, feature in enumerate(REGISTRY) if not feature.needs_task}
_KNOWN_IN_WAYS = tuple(feature for feature in _KNOWN.values() if len(feature.values) > 1)
OTHERS_KNOWN = sum(len(feature.values) - 1 for feature in _KNOWN_IN_WAYS)
"""How many ways that are known before any task are not those of a view, whichever it has."""


def feature_matrix(view: View) -> Floats:
    """Values of all features for all rows: shape (n, d), float64 in [0, 1], columns in the order of REGISTRY."""
    # Stacked by feature and turned: each column stays contiguous, which is how weights go through it.
    return np.stack([view.value(feature) for feature in REGISTRY]).T


class KnownValues(NamedTuple):
    """What is known of n rows before any task, each of shape (n,), float64 in [0, 1]."""

    values: dict[int, Floats]
    """Of the features that need no task, by index."""
    without_use: dict[str, Floats]
    """Of those of PARTLY_FED_BY_USE, if nothing were known of use."""
    other_ways: dict[str, Floats]
    """In those of WAYS that are not the view's."""


def known_values(view: View) -> KnownValues:
    """The same numbers that features compute one by one, in one array, which is clipped at once."""
    own = {feature.name: view.variants.get(feature.name, "default") for feature in _KNOWN.values()}
    others = [(feature, way) for feature in _KNOWN_IN_WAYS for way in feature.values if way != own[feature.name]]
    made = [feature.values[own[feature.name]](view) for feature in _KNOWN.values()]
    made += [feature.without_use(view) for feature in _KNOWN.values() if feature.without_use]
    made += [feature.values[way](view) for feature, way in others]
    matrix = np.concatenate(made).reshape(len(made), -1)
    np.maximum(matrix, 0.0, out=matrix)
    np.minimum(matrix, 1.0, out=matrix)
    rows = iter(matrix)
    return KnownValues(
        {index: next(rows) for index in _KNOWN},
        {name: next(rows) for name in PARTLY_FED_BY_USE},
        {f"{feature.name}:{way}": next(rows) for feature, way in others},
    )


def other_ways_at(view: View, rows: Rows) -> dict[str, Floats]:
    """The rest of it, of some rows, in any order. Each of shape (len(rows),)."""
    return {
        f"{feature.name}:{way}": value_at(view, rows)
        for feature in REGISTRY
        for way, value_at in feature.values_at.items()
        if way != view.variants.get(feature.name, "default")
    }


def raw_columns(view: View) -> list[Floats]:
    """The ages and counts behind the values, each of shape (n,), float64, in the order of RAW_NAMES."""
    return [function(view) for feature in REGISTRY for function in feature.raw.values()]


def raw_matrix(view: View) -> Floats:
    """The same as a matrix: shape (n, r)."""
    return np.stack(raw_columns(view)).T
