"""Half-lives by kind: how fast use falls with age, from the ages that were logged (LEARNING section 6). Pure.

For each kind and each point of a grid, the recency of its memories is computed and the weights are fitted anew: the
profile likelihood, with the other kinds at their own best. A half-life moves only where that rises by more than chance
would, and by one doubling or halving in a run at most.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sidecar.domain import Floats
from sidecar.features import FEATURE_NAMES, PARTLY_FED_BY_USE, RAW_NAMES
from sidecar.weights import Weights
from training.capped import CappedRows
from training.dataset import Codes, Dataset
from training.linear import LEAST_VARYING_SESSIONS, ROUGH, Problem, best_slope, solve, varying
from training.pairs import Pairs

FACTORS = tuple(2.0 ** (step / 2) for step in range(-4, 5))
"""The grid, as multiples of the half-life that serves."""
MOST_FACTOR = 2.0
"""One doubling or halving in one run."""
LEAST_GAIN = 1.92
"""By how much the log-likelihood must rise: half of the 95 % point of chi-square with one degree of freedom."""
MOST_SESSIONS = 2_000
"""Sessions that are looked at, at most."""
ROUNDS = 2
PRIOR = 0.01
"""A little of the prior of the fit, so that the weights of every point exist."""

_RECENCY = FEATURE_NAMES.index("recency")
_WITHOUT = PARTLY_FED_BY_USE.index("recency")
_AGE, _CREATE_AGE = RAW_NAMES.index("age_days"), RAW_NAMES.index("create_age_days")


@dataclass(frozen=True, slots=True)
class HalfLife:
    """What the profile says of one kind, in days. `best` is the grid's likeliest, `new` what one run moves to.

    `profile` has the log-likelihood at each of FACTORS, relative to the half-life that serves.
    """

    kind: str
    old: float
    best: float
    new: float
    gain: float
    profile: tuple[float, ...]
    sessions: int


def fit_half_lives(
    dataset: Dataset,
    pairs: Pairs,
    weights: Weights,
    *,
    seed: int = 0,
    least_sessions: int = LEAST_VARYING_SESSIONS,
    progress: Callable[[int, int], None] = lambda done, total: None,
) -> list[HalfLife]:
    """The half-lives of the kinds that stand in pairs of enough sessions, by kind."""
    if not len(pairs):
        return []
    if len(pairs.sessions) > MOST_SESSIONS:
        chosen = np.zeros(len(pairs.sessions), bool)
        chosen[np.random.default_rng(seed).permutation(len(pairs.sessions))[:MOST_SESSIONS]] = True
        pairs = pairs.of_sessions(chosen)
    kind, raw = dataset.kind[pairs.row], dataset.raw[pairs.row]
    known: dict[int, int] = {}
    for code, name in enumerate(dataset.kinds):
        rows = kind == code
        sessions = len(np.unique(pairs.session[rows[pairs.better] | rows[pairs.worse]]))
        # Of a kind that was not logged, no half-life says anything.
        if name and sessions >= least_sessions and raw[rows, _AGE].any():
            known[code] = sessions
    problem = Problem.of(pairs, weights, np.union1d(varying(pairs), [_RECENCY]))
    found: dict[int, HalfLife] = {}
    done = 0
    # A kind whose half-life is wrong bends the others': the second round sees them at their best.
    for _ in range(ROUNDS if len(known) > 1 else 1):
        for code in sorted(known, key=lambda code: -known[code]):
            progress(done, ROUNDS * len(known))
            name, rows = dataset.kinds[code], kind == code
            found[code] = _fit_one(name, problem, raw, rows, weights, known[code])
            problem = _aged(
                problem, raw, rows, found[code].best if found[code].new != found[code].old else found[code].old
            )
            done += 1
        if all(each.new == each.old for each in found.values()):
            break
    progress(ROUNDS * len(known), ROUNDS * len(known))
    return [found[code] for code in sorted(found)]


def _fit_one(
    name: str, start_from: Problem, raw: Floats, rows: NDArray[np.bool_], weights: Weights, sessions: int
) -> HalfLife:
    old = weights.half_life_days.get(name, weights.half_life_days["default"])
    pairs, columns = start_from.pairs, start_from.columns
    losses = []
    start: Floats | None = None
    for factor in FACTORS:
        problem = _aged(start_from, raw, rows, old * factor)
        slope = best_slope(problem) if start is None else 0.0
        centre = slope * problem.base[columns] if start is None else start
        precision = PRIOR * np.diag(np.diag(problem.information(centre)))
        start = solve(problem, np.zeros(len(columns)), precision, np.maximum(centre, 1e-3), ROUGH)
        losses.append(problem.loss(start)[0])
    # A session counts as one observation, however many pairs it has: they are not independent.
    profile = len(pairs.sessions) * (losses[FACTORS.index(1.0)] - np.array(losses)) / float(pairs.weight.sum())
    best = int(np.argmax(profile))
    gain = float(profile[best])
    factor = FACTORS[best] if gain >= LEAST_GAIN else 1.0
    new = old * float(np.clip(factor, 1 / MOST_FACTOR, MOST_FACTOR))
    return HalfLife(name, old, old * FACTORS[best], new, gain, tuple(profile.tolist()), sessions)


def _aged(problem: Problem, raw: Floats, rows: NDArray[np.bool_], days: float) -> Problem:
    features, without_use = problem.rows.features.copy(), problem.rows.without_use.copy()
    features[rows, _RECENCY] = np.exp2(-raw[rows, _AGE] / days)
    without_use[rows, _WITHOUT] = np.exp2(-raw[rows, _CREATE_AGE] / days)
    return replace(problem, rows=CappedRows(features, without_use, problem.rows.caps, problem.rows.family_cap))


def with_half_lives(dataset: Dataset, days: Mapping[str, float]) -> Dataset:
    """The data set as it would have been scored with these half-lives, for the kinds that are named; the rest is as
    logged, and so are memories whose log has no age for how recent they were, as that of a simulation."""
    if not days:
        return dataset
    changes: dict[str, Any] = {}
    for prefix in ("", "pool_"):
        features: Floats = getattr(dataset, f"{prefix}features").copy()
        without_use: Floats = getattr(dataset, f"{prefix}without_use").copy()
        raw: Floats = getattr(dataset, f"{prefix}raw")
        kind: Codes = getattr(dataset, f"{prefix}kind")
        ageless = (raw[:, _AGE] == 0.0) & (features[:, _RECENCY] < 1.0)
        for name, half_life in days.items():
            if name in dataset.kinds:
                rows = (kind == dataset.kinds.index(name)) & ~ageless
                features[rows, _RECENCY] = np.exp2(-raw[rows, _AGE] / half_life)
                without_use[rows, _WITHOUT] = np.exp2(-raw[rows, _CREATE_AGE] / half_life)
        changes |= {f"{prefix}features": features, f"{prefix}without_use": without_use}
    return replace(dataset, **changes)


def moved(found: list[HalfLife]) -> dict[str, float]:
    """The half-lives that change, by kind."""
    return {each.kind: each.new for each in found if each.new != each.old}
