"""What a rescore makes of the feedback: priors of the use rate, and the use part of each importance. Pure.

The use part stands beside the content part and the user's word, and `features.importance.combine` makes the score of
the three. It is anchored so that a memory used as often as its kind's mean keeps the score that it had without any use:
what was never reported, what is new, and what is average are alike.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from sidecar.domain import ImportanceLine, ImportancePart, Micros, closing
from sidecar.features.importance import BASELINE, USE_SHARE, combine
from sidecar.features.use_rate import PRIOR
from sidecar.store.rescores import ScoredMemory

DEFAULT = "default"
FEWEST_MEMORIES = 30
"""A kind with fewer reported memories takes the prior of all kinds together; with fewer in all, the first prior stays.
"""
KAPPAS = tuple(float(kappa) for kappa in np.geomspace(4.0, 50.0, 24))
"""What kappa may be: between 4 and 50 sessions of evidence."""
LEAST_MU, MOST_MU = 0.01, 0.95
SAME = 1e-9

Prior = tuple[float, float]


@dataclass(frozen=True, slots=True)
class Move:
    """A use part that changes, and the score with the old one and with the new. `is_capped`: it would go further."""

    standing: ScoredMemory
    use: float | None
    from_score: float
    to_score: float
    rate: float
    mean: float
    is_capped: bool
    own: float
    kappa: float

    def part(self, now: Micros) -> ImportancePart:
        """How the use part came about: from the score without use, by so much as the use rate moves it. As sure as the
        reported sessions are many beside those that the prior stands for."""
        assert self.use is not None
        seen = self.standing.counts.seen
        lines = [ImportanceLine("without_use", self.own, 1.0, self.own)]
        for factor, added in zip(("use_rate", "rounding"), closing(self.own, self.use), strict=False):
            lines.append(ImportanceLine(factor, self.rate, 1.0, added))
        return ImportancePart(seen / (seen + self.kappa), now, (self.reason,), tuple(lines))

    @property
    def reason(self) -> str:
        """Why, in words."""
        counts = self.standing.counts
        if self.use is None:
            return "no report on it counts any more: the score stands without use"
        words = (
            f"used in {counts.used:.4g} of {counts.seen:.4g} reported sessions: rate {self.rate:.3f}, "
            f"{'above' if self.rate > self.mean else 'below' if self.rate < self.mean else 'as'} "
            f"the mean {self.mean:.3f} of {self.standing.kind}"
        )
        if self.standing.override is not None:
            words += "; the user's word stands"
        elif self.is_capped:
            words += "; the rest follows in later runs"
        return words


def fit_priors(used_and_seen: Mapping[str, Sequence[tuple[float, float]]]) -> dict[str, Prior]:
    """(mu, kappa) by kind from (used, seen) of every memory with complete explicit reports, in sessions.

    mu is the share of all sessions; kappa the likeliest of a beta-binomial among KAPPAS, with that mu.
    """
    together = [pair for pairs in used_and_seen.values() for pair in pairs]
    pooled = _fit(together) if len(together) >= FEWEST_MEMORIES else PRIOR[DEFAULT]
    own = {kind: _fit(pairs) for kind, pairs in used_and_seen.items() if len(pairs) >= FEWEST_MEMORIES}
    return {**own, DEFAULT: pooled}


def _fit(pairs: Sequence[tuple[float, float]]) -> Prior:
    used, seen = math.fsum(pair[0] for pair in pairs), math.fsum(pair[1] for pair in pairs)
    mu = min(max(used / seen, LEAST_MU), MOST_MU)
    return mu, max(KAPPAS, key=lambda kappa: _likelihood(pairs, mu, kappa))


def _likelihood(pairs: Iterable[tuple[float, float]], mu: float, kappa: float) -> float:
    """Log-likelihood of the beta-binomial, but for what does not depend on kappa."""
    a, b = mu * kappa, (1 - mu) * kappa
    return math.fsum(_log_beta(used + a, seen - used + b) - _log_beta(a, b) for used, seen in pairs)


def _log_beta(a: float, b: float) -> float:
    return math.lgamma(a) + math.lgamma(b) - math.lgamma(a + b)


def moves(standings: Sequence[ScoredMemory], priors: Mapping[str, Prior], max_move: float) -> list[Move]:
    """The use parts that change, largest moves of a score first; no score moves by more than `max_move`."""
    found = [move for each in standings if (move := _move(each, priors, max_move)) is not None]
    return sorted(found, key=lambda move: (-abs(move.to_score - move.from_score), move.standing.key))


def _move(standing: ScoredMemory, priors: Mapping[str, Prior], max_move: float) -> Move | None:
    counts = standing.counts
    mean, kappa = priors.get(standing.kind) or priors[DEFAULT]
    rate = (counts.used + kappa * mean) / (counts.seen + kappa)
    own = BASELINE.get(standing.kind, BASELINE[DEFAULT]) if standing.content is None else standing.content
    before = own if standing.use is None else standing.use
    wanted = use_part(own, rate, mean) if counts.seen > 0 else own
    most = max_move / USE_SHARE
    reached = min(max(wanted, before - most), before + most)
    is_capped = abs(reached - wanted) > SAME
    # Nothing known of use and a use part that says nothing are the same score: only one of them is written.
    use = None if counts.seen <= 0 and not is_capped else reached
    if standing.use is None and (use is None or abs(use - own) <= SAME):
        return None
    if standing.use is not None and use is not None and abs(use - standing.use) <= SAME:
        return None
    from_score, to_score = _score(standing, standing.use), _score(standing, use)
    return Move(standing, use, from_score, to_score, rate, mean, is_capped, own, kappa)


def use_part(own: float, rate: float, mean: float) -> float:
    """The use part for a use rate: `own` at the kind's mean, 1 at a rate of 1, 0 at a rate of 0, linear between."""
    if rate >= mean:
        return own + (1 - own) * (rate - mean) / (1 - mean)
    return own * rate / mean


def _score(standing: ScoredMemory, use: float | None) -> float:
    parts = [
        np.array([np.nan if part is None else part], np.float64) for part in (standing.content, use, standing.override)
    ]
    baseline = np.array([BASELINE.get(standing.kind, BASELINE[DEFAULT])])
    return float(combine(parts[0], parts[1], parts[2], baseline)[0])
