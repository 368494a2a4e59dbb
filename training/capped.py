"""Scores of rows under weights that are still being fitted, with every contribution cap inside, and their slopes. Pure.

The same rule as `sidecar.weights.linear.contributions`, for weights of any scale: u = scale * w. Scores scale with u.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from sidecar.domain import Floats
from sidecar.features import FEATURE_NAMES, PARTLY_FED_BY_USE, USE_FAMILY
from sidecar.weights import Weights

FAMILY = [FEATURE_NAMES.index(name) for name in USE_FAMILY]
PARTLY = [(FEATURE_NAMES.index(name), column) for column, name in enumerate(PARTLY_FED_BY_USE)]


def stated_caps(weights: Weights) -> Floats:
    """The caps that somebody set, infinite elsewhere, shape (d,): a cap that equals the weight follows the weight."""
    return np.where(weights.caps != weights.values, weights.caps, np.inf)


@dataclass(frozen=True, slots=True)
class CappedRows:
    """n rows, and the caps for weights of scale 1: `caps` (d,), and one for all that use feeds."""

    features: Floats
    without_use: Floats
    caps: Floats
    family_cap: float
    most: Floats = field(init=False)
    """The largest value of each feature, shape (d,): what no row reaches need not be looked for."""
    most_partly: tuple[float, ...] = field(init=False)
    """By how much use raises the features of PARTLY at most."""

    def __post_init__(self) -> None:
        partly = (self.features[:, j] - self.without_use[:, k] for j, k in PARTLY)
        object.__setattr__(self, "most", self.features.max(axis=0, initial=0.0))
        object.__setattr__(self, "most_partly", tuple(float(each.max(initial=0.0)) for each in partly))

    def scores(self, u: Floats, scale: float) -> Floats:
        """Shape (n,)."""
        score: Floats = self.features @ u
        for j in self._binding(u, scale):
            score -= np.maximum(self.features[:, j] * u[j] - scale * self.caps[j], 0.0)
        if self._family_may_bind(u, scale):
            score -= np.maximum(self._family(u, scale) - scale * self.family_cap, 0.0)
        return score

    def pulled_back(self, u: Floats, scale: float, pull: Floats) -> tuple[Floats, float]:
        """The slope of sum(pull * scores) in u, shape (d,), and in the scale."""
        slope: Floats = pull @ self.features
        of_scale = 0.0
        for j in self._binding(u, scale):
            capped = np.where(self.features[:, j] * u[j] > scale * self.caps[j], pull, 0.0)
            slope[j] -= capped @ self.features[:, j]
            of_scale += self.caps[j] * capped.sum()
        if self._family_may_bind(u, scale):
            over = np.where(self._family(u, scale) > scale * self.family_cap, pull, 0.0)
            for j in FAMILY:
                free = self.features[:, j] * u[j] <= scale * self.caps[j]
                slope[j] -= (over * free) @ self.features[:, j]
                of_scale -= _times(self.caps[j], (over * ~free).sum())
            for j, k in PARTLY:
                value, own = self.features[:, j], self.without_use[:, k]
                more = over * (value > own)
                free, own_free = value * u[j] <= scale * self.caps[j], own * u[j] <= scale * self.caps[j]
                slope[j] -= more @ (free * value - own_free * own)
                of_scale -= _times(self.caps[j], more @ (own_free.astype(float) - free))
            of_scale += self.family_cap * over.sum()
        return slope, of_scale

    def slopes(self, u: Floats, scale: float) -> tuple[Floats, Floats]:
        """The slope of each row's own score in u, shape (n, d), and in the scale, shape (n,)."""
        slope = self.features.copy()
        of_scale = np.zeros(len(slope))
        for j in self._binding(u, scale):
            capped = self.features[:, j] * u[j] > scale * self.caps[j]
            slope[capped, j] = 0.0
            of_scale[capped] += self.caps[j]
        if self._family_may_bind(u, scale):
            over = self._family(u, scale) > scale * self.family_cap
            for j in FAMILY:
                free = self.features[:, j] * u[j] <= scale * self.caps[j]
                slope[over, j] = 0.0
                of_scale -= np.where(over & ~free, _finite(self.caps[j]), 0.0)
            for j, k in PARTLY:
                value, own = self.features[:, j], self.without_use[:, k]
                more = over & (value > own)
                free, own_free = value * u[j] <= scale * self.caps[j], own * u[j] <= scale * self.caps[j]
                slope[:, j] -= more * (free * value - own_free * own)
                of_scale -= more * _finite(self.caps[j]) * (own_free.astype(float) - free)
            of_scale += over * self.family_cap
        return slope, of_scale

    def _binding(self, u: Floats, scale: float) -> list[int]:
        """Features whose cap some row meets."""
        return [int(j) for j in np.flatnonzero(u * self.most > scale * self.caps)]

    def _family_may_bind(self, u: Floats, scale: float) -> bool:
        caps = scale * self.caps
        most = sum(min(u[j] * self.most[j], caps[j]) for j in FAMILY)
        most += sum(min(u[j] * by, caps[j]) for (j, _), by in zip(PARTLY, self.most_partly, strict=True))
        return float(most) > scale * self.family_cap

    def _family(self, u: Floats, scale: float) -> Floats:
        total = np.zeros(len(self.features))
        for j in FAMILY:
            total += np.minimum(self.features[:, j] * u[j], scale * self.caps[j])
        for j, k in PARTLY:
            part = np.minimum(self.features[:, j] * u[j], scale * self.caps[j])
            total += np.maximum(part - np.minimum(self.without_use[:, k] * u[j], scale * self.caps[j]), 0.0)
        return total


def _finite(cap: float) -> float:
    return float(cap) if np.isfinite(cap) else 0.0


def _times(cap: float, amount: float) -> float:
    return _finite(cap) * float(amount)
