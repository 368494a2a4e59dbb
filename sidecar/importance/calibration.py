"""Weights that follow from which of two was worth more, shrunk to the common ones. Pure and deterministic.

A namespace's own ratings give such pairs (what the user rated higher and lower), and so does use (what was used and
what was shown beside it and was not). Fits a pairwise logistic model on the simplex, with a Gaussian pull to the common
weights whose strength is that of PRIOR_MEMORIES memories: few ratings move little, many move as far as they agree.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence

import numpy as np

from sidecar.domain import Floats

PRIOR_MEMORIES = 30.0
SHARPNESS = 8.0
"""How surely a difference of a whole score decides which of two is worth more."""
FEWEST_RATED = 4
STEPS = 400
TOLERANCE = 1e-9

Values = Mapping[str, float | None]


def fit_weights(
    common: Mapping[str, float], better: Sequence[Values], worse: Sequence[Values], evidence: float
) -> dict[str, float]:
    """Weights by the names of `common` that put `better[i]` above `worse[i]`.

    `evidence` is how many independent memories, or sessions, the pairs come from: they all count together as so many.
    A signal that is absent in either of a pair says nothing there. Each weight is at least 0; the sum is as before.
    """
    names = list(common)
    start = np.array([common[name] for name in names], dtype=np.float64)
    if not better or not evidence or not start.sum():
        return dict(common)
    apart = np.array(
        [[_apart(one.get(name), other.get(name)) for name in names] for one, other in zip(better, worse, strict=True)]
    )
    total = float(start.sum())
    weights = _descend(apart, start / total, evidence) * total
    return dict(zip(names, weights.tolist(), strict=True))


def calibrate(common: Mapping[str, float], rated: Sequence[tuple[float, Values]]) -> dict[str, float]:
    """Weights for a user from their ratings, (rating, values) of each rated memory. The common ones below
    FEWEST_RATED."""
    if len(rated) < FEWEST_RATED:
        return dict(common)
    better, worse = [], []
    for (one, one_values), (other, other_values) in itertools.combinations(rated, 2):
        if one != other:
            high, low = (one_values, other_values) if one > other else (other_values, one_values)
            better.append(high)
            worse.append(low)
    return fit_weights(common, better, worse, float(len(rated)))


def _apart(one: float | None, other: float | None) -> float:
    return 0.0 if one is None or other is None else one - other


def _descend(apart: Floats, start: Floats, evidence: float) -> Floats:
    """Projected gradient from the common weights; the objective is convex and its curvature is known."""
    scaled = SHARPNESS * apart
    # Pull of PRIOR_MEMORIES, per unit of distance, against `evidence` memories that share one unit of likelihood each.
    pull = PRIOR_MEMORIES
    largest = float(np.linalg.eigvalsh(scaled.T @ scaled / len(scaled)).max())
    step = 1.0 / (0.25 * evidence * largest + pull)
    weights = start
    for _ in range(STEPS):
        slope = -evidence * (scaled.T @ (1.0 / (1.0 + np.exp(scaled @ weights)))) / len(scaled)
        moved = _onto_simplex(weights - step * (slope + pull * (weights - start)))
        done = float(np.abs(moved - weights).max()) < TOLERANCE
        weights = moved
        if done:
            break
    return weights


def _onto_simplex(point: Floats) -> Floats:
    """The nearest point whose coordinates are at least 0 and sum to 1 (Held, Wolfe & Crowder 1974)."""
    ordered = np.sort(point)[::-1]
    sums = np.cumsum(ordered) - 1.0
    counts = np.arange(1, len(point) + 1)
    last = int(np.flatnonzero(ordered - sums / counts > 0)[-1])
    return np.asarray(np.maximum(point - sums[last] / counts[last], 0.0))
