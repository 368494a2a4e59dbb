"""How features become contributions: a score is their sum, so every contribution is its own explanation.

In the linear form contribution_j = min(w_j * x_j, cap_j); in the curves form it is the value of a step function at x_j.
What use feeds (use_rate, frequency, rating, and what use adds to importance and recency) shares one family cap on top:
popularity alone can never own a packet.
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from sidecar.domain import Floats
from sidecar.errors import Violations
from sidecar.features import BY_NAME, FEATURE_NAMES, PARTLY_FED_BY_USE, USE_FAMILY
from sidecar.features.recency import HALF_LIFE_DAYS
from sidecar.weights.curves import SUM_TOLERANCE, Curve, make_curves, table_of

USE_FAMILY_CAP = 0.35
MAX_HALF_LIFE_DAYS = 36_500.0

_FAMILY = [FEATURE_NAMES.index(name) for name in USE_FAMILY]
_NOT_FAMILY = [index for index in range(len(FEATURE_NAMES)) if index not in _FAMILY]
_PARTLY = {name: FEATURE_NAMES.index(name) for name in PARTLY_FED_BY_USE}
KNOWN = tuple(index for index, name in enumerate(FEATURE_NAMES) if not BY_NAME[name].needs_task)
"""The features, by index, whose values are known before any task; all that use feeds is among them."""


@dataclass(frozen=True, slots=True)
class Weights:
    """Checked weights. `values` and `caps` have shape (d,), in the order of FEATURE_NAMES.

    `version` is a preset's name, a model's version, or "request". `variants` lets a preset that repeats a known note
    carry that note's own transforms. With `curves`, one for each feature or None, a contribution is a curve's value,
    `values` are the curves' tops, and so are `caps` where nobody set one.
    """

    version: str
    values: Floats
    caps: Floats
    use_family_cap: float = USE_FAMILY_CAP
    half_life_days: Mapping[str, float] = field(default_factory=lambda: HALF_LIFE_DAYS)
    variants: Mapping[str, str] = field(default_factory=dict)
    curves: tuple[Curve | None, ...] = ()
    weighted: tuple[int, ...] = field(init=False, repr=False, compare=False)
    """The features that count, by index, ascending."""
    fit_total: float = field(init=False, repr=False, compare=False)
    """The most that task fit could reach before it is scaled into [0, 1]."""
    _pairs: tuple[tuple[float, float], ...] = field(init=False, repr=False, compare=False)
    """Weight and cap of each feature."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "weighted", tuple(np.flatnonzero(self.values).tolist()))
        object.__setattr__(self, "fit_total", float(np.minimum(self.values, self.caps)[_NOT_FAMILY].sum()))
        object.__setattr__(self, "_pairs", tuple(zip(self.values.tolist(), self.caps.tolist(), strict=True)))

    @property
    def form(self) -> str:
        """linear or curves."""
        return "curves" if self.curves else "linear"

    @property
    def identity(self) -> str:
        """Changes with anything that changes a score."""
        tables = (self.half_life_days, self.variants)
        parts = [self.version, self.values.tolist(), self.caps.tolist(), self.use_family_cap]
        curves = [table_of(self.curves)] if self.curves else []
        return repr(parts + [sorted(table.items()) for table in tables] + curves)

    def part(self, index: int, values: Floats) -> Floats:
        """What a feature of these values contributes, before what use feeds is capped. Shape (n,)."""
        if self.curves and (curve := self.curves[index]):
            return curve(values)
        weight, cap = self._pairs[index]
        found: Floats = values * weight
        return found if cap >= weight else np.minimum(found, cap)


@dataclass(frozen=True, slots=True)
class Contributions:
    """What each feature adds for n memories.

    `matrix` has shape (n, d); `score` is its sum from left to right, so a reader who adds up what is shown gets the
    score to the last bit; `task_fit` in [0, 1] is the same without the use family.
    """

    matrix: Floats
    score: Floats
    task_fit: Floats


@dataclass(frozen=True, slots=True)
class Known:
    """What is known of n memories' scores before any task.

    `parts` are contributions of shape (n,) by feature, of which those that are 0 throughout may be left out; `task_fit`
    is their share in task fit, which is not yet divided by `fit_total`. `weighted` are all features that count, by
    index.
    """

    parts: Mapping[int, Floats]
    task_fit: Floats
    weighted: tuple[int, ...]
    fit_total: float


def known_parts(values: Mapping[int, Floats], without_use: Mapping[str, Floats], n: int, weights: Weights) -> Known:
    """Weighs what is known before a task: `values` by feature of KNOWN, each of shape (n,).

    `without_use` has, for each feature of PARTLY_FED_BY_USE, its value if nothing were known of use, shape (n,). What
    use adds to those counts into the family like what is fed by use alone.
    """
    weighted = [index for index in weights.weighted if index in values]
    parts = {index: weights.part(index, values[index]) for index in weighted}
    own = {index: weights.part(index, without_use[name]) for name, index in _PARTLY.items() if index in weighted}
    use_adds = {index: parts[index] for index in _FAMILY if index in weighted}
    use_adds |= {index: np.maximum(parts[index] - part, 0.0) for index, part in own.items()}
    task_fit = np.zeros(n)
    for index in weighted:
        if index not in _FAMILY:
            task_fit += own.get(index, parts[index])
    family = sum(use_adds.values(), start=np.zeros(n))
    over = family > weights.use_family_cap
    if over.any():
        excess = 1.0 - weights.use_family_cap / family[over]
        for index, added in use_adds.items():
            capped = parts[index].copy()
            capped[over] -= added[over] * excess
            parts[index] = capped
    return Known(parts, task_fit, weights.weighted, weights.fit_total)


def add_up(known: Known, of_task: Mapping[int, Floats]) -> tuple[Floats, Floats]:
    """Score and task fit of n memories, from contributions known before and those of the task, by feature."""
    score = np.zeros_like(known.task_fit)
    task_fit = known.task_fit.copy()
    # Left to right, as a reader of the contributions adds them up (NumPy's own sum is pairwise).
    for index in known.weighted:
        if (part := of_task.get(index)) is not None:
            score += part
            task_fit += part
        elif (part := known.parts.get(index)) is not None:
            score += part
    if known.fit_total > 0:
        task_fit /= known.fit_total
        np.minimum(task_fit, 1.0, out=task_fit)
    return score, task_fit


def contributions(features: Floats, without_use: Mapping[str, Floats], weights: Weights) -> Contributions:
    """Scores n memories from features of shape (n, d); `without_use` as for known_parts."""
    n = len(features)
    known = known_parts({index: features[:, index] for index in KNOWN}, without_use, n, weights)
    of_task = {index: weights.part(index, features[:, index]) for index in weights.weighted if index not in KNOWN}
    matrix = np.zeros((n, len(FEATURE_NAMES)))
    for index, part in (*known.parts.items(), *of_task.items()):
        matrix[:, index] = part
    return Contributions(matrix, *add_up(known, of_task))


def _within_one(values: Floats) -> Floats:
    """The weights less what rounding or the tolerance puts above 1: contributions add up to no more than weights do,
    so that no score passes 1, not even by its last bit."""
    while (total := functools.reduce(operator.add, values.tolist())) > 1.0:
        values = np.nextafter(values / total, 0.0)
    return values


def make_weights(
    version: str,
    features: Mapping[str, float],
    *,
    caps: Mapping[str, float] | None = None,
    use_family_cap: float | None = None,
    half_life_days: Mapping[str, float] | None = None,
    variants: Mapping[str, str] | None = None,
    path: str = "weights",
) -> Weights:
    """Checks weights and makes them ready to serve.

    Raises InvalidRequestError that lists every violation under `path`: unknown names, values outside [0, 1], a sum
    above 1 or no weight above 0, half-lives outside (0, 36500] days.
    """
    bad = Violations()
    if _is_sound(bad, f"{path}.features", features):
        total = sum(features.values())
        if total > 1.0 + SUM_TOLERANCE:
            bad.add(f"{path}.features", f"sum to {total:.9g}; must sum to at most 1, so that a score stays in [0, 1]")
        elif total <= 0.0:
            bad.add(f"{path}.features", "are all 0; at least one must be above 0")
    _is_sound(bad, f"{path}.caps", caps or {})
    if use_family_cap is not None and not _in_unit(use_family_cap):
        bad.add(f"{path}.use_family_cap", f"is {use_family_cap!r}; must be in [0, 1]")
    _check_half_lives(bad, path, half_life_days or {})
    for name, variant in (variants or {}).items():
        if name not in BY_NAME or variant not in BY_NAME[name].values:
            bad.add(f"{path}.variants.{name}", f"is {variant!r}; no such variant")
    bad.raise_if_any()
    values = _within_one(np.array([float(features.get(name, 0.0)) for name in FEATURE_NAMES]))
    return Weights(
        version=version,
        values=values,
        caps=np.array(
            [float((caps or {}).get(name, value)) for name, value in zip(FEATURE_NAMES, values, strict=True)]
        ),
        use_family_cap=USE_FAMILY_CAP if use_family_cap is None else float(use_family_cap),
        half_life_days={**HALF_LIFE_DAYS, **(half_life_days or {})},
        variants=dict(variants or {}),
    )


def make_curve_weights(
    version: str,
    curves: Mapping[str, Any],
    *,
    caps: Mapping[str, float] | None = None,
    use_family_cap: float | None = None,
    half_life_days: Mapping[str, float] | None = None,
    path: str = "weights",
) -> Weights:
    """Checks curves, {feature: {"thresholds": [...], "values": [...]}}, and makes them ready to serve.

    Raises InvalidRequestError that lists every violation under `path`, as `make_weights` does; a curve above its
    feature's cap is one.
    """
    bad = Violations()
    made = make_curves(curves, bad, f"{path}.curves")
    if _is_sound(bad, f"{path}.caps", caps or {}):
        for name, curve in zip(FEATURE_NAMES, made, strict=bool(made)):
            if curve and curve.top > (cap := (caps or {}).get(name, 1.0)):
                bad.add(f"{path}.curves.{name}", f"reaches {curve.top!r}; its cap is {cap!r}")
    if use_family_cap is not None and not _in_unit(use_family_cap):
        bad.add(f"{path}.use_family_cap", f"is {use_family_cap!r}; must be in [0, 1]")
    _check_half_lives(bad, path, half_life_days or {})
    bad.raise_if_any()
    tops = np.array([curve.top if curve else 0.0 for curve in made])
    return Weights(
        version=version,
        values=tops,
        caps=np.array([float((caps or {}).get(name, top)) for name, top in zip(FEATURE_NAMES, tops, strict=True)]),
        use_family_cap=USE_FAMILY_CAP if use_family_cap is None else float(use_family_cap),
        half_life_days={**HALF_LIFE_DAYS, **(half_life_days or {})},
        curves=made,
    )


def _check_half_lives(bad: Violations, path: str, half_life_days: Mapping[str, float]) -> None:
    for kind, days in half_life_days.items():
        if not 0 < days <= MAX_HALF_LIFE_DAYS:
            bad.add(
                f"{path}.half_life_days.{kind}", f"is {days!r}; must be above 0 and at most {MAX_HALF_LIFE_DAYS:g} days"
            )


def _in_unit(value: float) -> bool:
    return 0.0 <= value <= 1.0  # which NaN is not


def _is_sound(bad: Violations, path: str, table: Mapping[str, float]) -> bool:
    """True if every name is a feature and every value in [0, 1]; notes those that are not."""
    before = len(bad.found)
    for name, value in table.items():
        if name not in FEATURE_NAMES:
            bad.add(f"{path}.{name}", f"is no feature; the features are {', '.join(FEATURE_NAMES)}")
        elif not _in_unit(value):
            bad.add(f"{path}.{name}", f"is {value!r}; must be in [0, 1]")
    return len(bad.found) == before
