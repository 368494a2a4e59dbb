"""Golden rows: what an artifact's weights make of chosen feature rows, so that serving code proves itself on them.

They are computed when an artifact is written and again, by whatever code wants to serve it; the numbers must be equal
to the last bit. Pure.
"""

from __future__ import annotations

import itertools
import math
import random
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from sidecar.features import FEATURE_NAMES, PARTLY_FED_BY_USE
from sidecar.plurals import counted
from sidecar.weights.linear import Weights, contributions

LEAST_ROWS = 32
_RANDOM_ROWS = 32
_OF_A_NAMESPACE = 4
_MANY_NAMESPACES = 200
"""From more on, one row for each."""
_MOST_AT_STEPS = 64

Row = dict[str, Any]


def golden_rows(weights: Weights, namespaces: Mapping[str, Weights], seed: int) -> list[Row]:
    """Rows for the common weights (corners, each feature alone, both sides of a curve's steps, random ones) and a few
    for each namespace that has its own."""
    chance = random.Random(seed)
    inputs = list(_inputs(weights, chance))
    rows = [_scored(row, weights) for row in inputs]
    of_each = _OF_A_NAMESPACE if len(namespaces) <= _MANY_NAMESPACES else 1
    for namespace in sorted(namespaces):
        picked = [_random(chance) for _ in range(of_each)]
        rows += [{"namespace": namespace} | _scored(row, namespaces[namespace]) for row in picked]
    return rows


def golden_faults(rows: Any, weights: Weights, namespaces: Mapping[str, Weights]) -> list[str]:
    """What is wrong with the rows of an artifact when these weights score them here, in words; empty if nothing is."""
    if not isinstance(rows, list) or len(rows) < LEAST_ROWS:
        count = counted(len(rows), "row") if isinstance(rows, list) else "no rows"
        return [f"golden.json has {count}; at least {LEAST_ROWS} are needed"]
    for number, row in enumerate(rows):
        try:
            own = namespaces[row["namespace"]] if "namespace" in row else weights
            again = _scored(row, own)
            different = [key for key in ("contributions", "score") if row[key] != again[key]]
        except (KeyError, TypeError, ValueError, IndexError, OverflowError) as error:
            return [f"golden row {number} cannot be read ({error})"]
        if different:
            given, found = row["score"], again["score"]
            return [f"golden row {number} is scored {found!r} here and {given!r} where it was made ({different[0]})"]
    return []


def _scored(row: Mapping[str, Any], weights: Weights) -> Row:
    features = np.array([row["features"]], dtype=np.float64)
    if features.shape != (1, len(FEATURE_NAMES)):
        raise ValueError(f"features have shape {features.shape[1:]}, not ({len(FEATURE_NAMES)},)")
    without = {name: float(row["without_use"][name]) for name in PARTLY_FED_BY_USE}
    if not all(map(math.isfinite, [*features[0].tolist(), *without.values()])):
        raise ValueError("a value is not finite")
    found = contributions(features, {name: np.array([value]) for name, value in without.items()}, weights)
    return {
        "features": features[0].tolist(),
        "without_use": without,
        "contributions": found.matrix[0].tolist(),
        "score": float(found.score[0]),
    }


def _inputs(weights: Weights, chance: random.Random) -> Iterable[Row]:
    d = len(FEATURE_NAMES)
    yield _row([0.0] * d)
    yield _row([1.0] * d)
    yield _row([1.0] * d, without=0.0)
    for index in range(d):
        yield _row([float(index == other) for other in range(d)])
    for index, curve in enumerate(weights.curves):
        steps = [] if curve is None else curve.thresholds[:: -(-len(curve.thresholds) // _MOST_AT_STEPS)].tolist()
        for step, other in itertools.product(steps, (-1.0, None, 2.0)):
            at = step if other is None else math.nextafter(step, other)
            yield _row([min(max(at, 0.0), 1.0) * (index == other_index) for other_index in range(d)])
    for _ in range(_RANDOM_ROWS):
        yield _random(chance)


def _random(chance: random.Random) -> Row:
    row = _row([chance.random() for _ in FEATURE_NAMES])
    # Use never lowers the features that it feeds in part.
    share = chance.random()
    return row | {"without_use": {name: value * share for name, value in row["without_use"].items()}}


def _row(features: list[float], without: float | None = None) -> Row:
    own = {name: features[FEATURE_NAMES.index(name)] for name in PARTLY_FED_BY_USE}
    return {
        "features": features,
        "without_use": own if without is None else dict.fromkeys(own, without),
    }
