"""What other weights would have got out of the reserved slots, estimated from draws whose chances were logged. Pure.

Each drawn memory has the logged propensity pi of being in its packet, and the propensity that it would have had under
the weights in question: the same draw from the same pool by their task fits, which is a soft policy, so that the ratio
of the two stays bounded. The reward is use (0 to 1); packets without a report are missing data and stay out.

With w = target / pi over n draws, r the reward, and q a prediction of it:
    IPS        sum w r / n                          (Horvitz and Thompson 1952)
    SNIPS      sum w r / sum w                      (Swaminathan and Joachims 2015)
    DM         sum over the pools of target q / n
    DR         DM + sum w (r - q) / n               (Dudik, Langford and Li 2011)
    Switch-DR  the same, its correction only where w <= tau   (Wang, Agarwal and Dudik 2017)

Draws of one session are not independent: every interval is clustered by session, with Student's t at G - 1 degrees of
freedom for G sessions, from the linearised ratio of two sums.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.stats import t as student

from sidecar.domain import Floats
from sidecar.plurals import counted

ESTIMATORS = ("IPS", "SNIPS", "DM", "DR", "Switch-DR")
MIN_SESSIONS = 30
"""Fewer sessions with a reported draw are too few for an interval that holds what it promises."""
MIN_EFFECTIVE_DRAWS = 50.0
SWITCH_TAU = 5.0
RIDGE = 1.0
FOLDS = 5


@dataclass(frozen=True, slots=True)
class Draws:
    """Reported reserved exposures, and the whole pools that they were drawn from (of no other packet).

    Of the n drawn: `reward` in [0, 1], `propensity` in (0, 1], `target` in [0, 1], `session` (whole numbers) and
    `features` of shape (n, d). Of the m members of all pools, drawn ones too: the same with `pool_` before the name.
    """

    reward: Floats
    propensity: Floats
    target: Floats
    session: NDArray[np.int64]
    features: Floats
    pool_target: Floats
    pool_session: NDArray[np.int64]
    pool_features: Floats

    @property
    def weight(self) -> Floats:
        """target / propensity of every draw."""
        ratio: Floats = self.target / self.propensity
        return ratio


@dataclass(frozen=True, slots=True)
class Estimate:
    """A use rate of reserved slots, and how far it lies above what was logged; the interval is of that difference."""

    value: float
    difference: float
    low: float
    high: float


@dataclass(frozen=True, slots=True)
class OffPolicy:
    """The estimates by name. `sufficient` is False where there is too little to go by: then they decide nothing."""

    estimates: Mapping[str, Estimate]
    draw_count: int
    session_count: int
    effective_draws: float
    sufficient: bool

    @property
    def words(self) -> str:
        """What it comes to, in one sentence."""
        if not self.sufficient:
            return (
                f"INSUFFICIENT: {counted(self.draw_count, 'reported draw')} in "
                f"{counted(self.session_count, 'session')}, worth {self.effective_draws:.0f} even ones; "
                f"{MIN_SESSIONS} sessions and {MIN_EFFECTIVE_DRAWS:.0f} are needed. Keep a reserved slot and report "
                "more packets"
            )
        shown = ", ".join(
            f"{name} {each.difference:+.3f} [{each.low:+.3f}, {each.high:+.3f}]"
            for name, each in self.estimates.items()
        )
        return f"use of reserved memories against what was logged: {shown}"

    @property
    def harmful(self) -> bool:
        """True if the interval of SNIPS or of DR lies wholly below 0."""
        return self.sufficient and any(self.estimates[name].high < 0.0 for name in ("SNIPS", "DR"))

    @property
    def at_odds(self) -> bool:
        """True if SNIPS and DR have intervals that do not meet: then one of them is wrong, and no one knows which."""
        one, other = self.estimates["SNIPS"], self.estimates["DR"]
        return self.sufficient and (one.low > other.high or other.low > one.high)


def estimate(draws: Draws, *, confidence: float = 0.95, tau: float = SWITCH_TAU) -> OffPolicy:
    """All estimates. ValueError without a draw, or with a propensity of 0: what cannot happen cannot be weighted."""
    if not len(draws.reward):
        raise ValueError("there is no reported draw from a reserved slot")
    if not np.all(draws.propensity > 0.0):
        raise ValueError("a drawn memory has an inclusion propensity of 0")
    weight, n = draws.weight, len(draws.reward)
    predicted, pool_predicted = predict(draws)
    sessions, of_draw = np.unique(draws.session, return_inverse=True)
    of_pool = np.searchsorted(sessions, draws.pool_session)
    if not np.isin(draws.pool_session, sessions).all():
        raise ValueError("there is a pool of a session without a reported draw")

    def by_session(values: Floats) -> Floats:
        return sums_by(of_draw, values, len(sessions))

    count = by_session(np.ones(n))
    modelled = sums_by(of_pool, draws.pool_target * pool_predicted, len(sessions))
    correction = weight * (draws.reward - predicted)
    rewarded = by_session(weight * draws.reward)
    sums: dict[str, tuple[Floats, Floats]] = {
        "IPS": (rewarded, count),
        "SNIPS": (rewarded, by_session(weight)),
        "DM": (modelled, count),
        "DR": (modelled + by_session(correction), count),
        "Switch-DR": (modelled + by_session(np.where(weight <= tau, correction, 0.0)), count),
    }
    logged = (by_session(draws.reward), count)
    effective = float(weight.sum() ** 2 / np.square(weight).sum()) if weight.any() else 0.0
    return OffPolicy(
        estimates={name: _difference(*pair, *logged, confidence) for name, pair in sums.items()},
        draw_count=n,
        session_count=len(sessions),
        effective_draws=effective,
        sufficient=len(sessions) >= MIN_SESSIONS and effective >= MIN_EFFECTIVE_DRAWS,
    )


def sums_by(group: NDArray[np.intp], values: Floats, count: int) -> Floats:
    """The sum of the values of each of `count` groups."""
    return np.bincount(group, values, count).astype(np.float64, copy=False)


def _difference(above: Floats, below: Floats, logged: Floats, count: Floats, confidence: float) -> Estimate:
    value = float(above.sum() / below.sum()) if below.sum() else 0.0
    was = float(logged.sum() / count.sum())
    influence = (above - value * below) / (below.sum() or 1.0) - (logged - was * count) / count.sum()
    low, high = _around(value - was, influence, confidence)
    return Estimate(value, value - was, low, high)


def _around(centre: float, influence: Floats, confidence: float) -> tuple[float, float]:
    clusters = len(influence)
    if clusters < 2:
        return -np.inf, np.inf
    error = np.sqrt(clusters / (clusters - 1) * np.square(influence).sum())
    reach = float(student.ppf(0.5 + confidence / 2.0, clusters - 1) * error)
    return centre - reach, centre + reach


def predict(draws: Draws) -> tuple[Floats, Floats]:
    """What reward the features let one expect, in [0, 1]: of the draws and of the pools, each predicted by a ridge
    regression on the other folds of sessions, so that no session predicts itself."""
    fold_of = {session: index % FOLDS for index, session in enumerate(np.unique(draws.session).tolist())}
    fold = np.array([fold_of[session] for session in draws.session.tolist()])
    pool_fold = np.array([fold_of[session] for session in draws.pool_session.tolist()])
    predicted, pool_predicted = np.zeros(len(draws.reward)), np.zeros(len(draws.pool_target))
    for each in range(FOLDS):
        rest = fold != each
        centre = draws.reward[rest].mean() if rest.any() else 0.0
        middle = draws.features[rest].mean(axis=0) if rest.any() else np.zeros(draws.features.shape[1])
        x = draws.features[rest] - middle
        slope = np.linalg.solve(x.T @ x + RIDGE * np.eye(x.shape[1]), x.T @ (draws.reward[rest] - centre))
        predicted[fold == each] = centre + (draws.features[fold == each] - middle) @ slope
        pool_predicted[pool_fold == each] = centre + (draws.pool_features[pool_fold == each] - middle) @ slope
    return np.clip(predicted, 0.0, 1.0), np.clip(pool_predicted, 0.0, 1.0)
