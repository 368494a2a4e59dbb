"""The curves form: one step function per feature, which is what an additive tree model comes to.

A curve's value is looked up, so its contribution is as exact and as free as a weight times a value. Everything else
(the use family's cap, task fit, the sums) is the linear form's, in `sidecar.weights.linear`.
"""

from __future__ import annotations

import functools
import itertools
import math
import operator
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sidecar.domain import Floats
from sidecar.errors import Violations
from sidecar.features import FEATURE_NAMES
from sidecar.plurals import counted

SUM_TOLERANCE = 1e-6
_GRIDS = (256, 1_024, 4_096)
_MOST_STEPS = 4


@dataclass(frozen=True, slots=True)
class Curve:
    """A step function on [0, 1]: values[number of thresholds below x], so that x at a threshold takes the left value.

    `thresholds` ascends strictly; `values` has one number more and never descends.
    """

    thresholds: Floats
    values: Floats
    _first: NDArray[np.intp] = field(init=False, repr=False, compare=False)
    _ends: Floats = field(init=False, repr=False, compare=False)
    _steps: int = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        # A cell of an even grid says where the search begins; the few thresholds inside the cell are then compared one
        # by one. That is searchsorted's answer, at a tenth of its time, since x * a power of two is exact.
        for cells in _GRIDS:
            starts = np.searchsorted(self.thresholds, np.arange(cells + 1) / cells, side="left")
            steps = int(np.diff(starts, append=len(self.thresholds)).max())
            if steps <= 1:
                break
        object.__setattr__(self, "_first", starts)
        object.__setattr__(self, "_ends", np.append(self.thresholds, np.inf))
        object.__setattr__(self, "_steps", steps)

    @property
    def top(self) -> float:
        """The largest value."""
        return float(self.values[-1])

    def __call__(self, x: Floats) -> Floats:
        """The value at each x in [0, 1], shape (n,). Raises ValueError on NaN and on anything above 1."""
        if not len(x):
            return np.zeros(0)
        if not x.max() <= 1.0:  # NaN is the largest of whatever it is among
            raise ValueError(f"a curve was asked for its value at {x.max()!r}; features are in [0, 1]")
        if self._steps > _MOST_STEPS:
            found: NDArray[np.intp] = np.searchsorted(self.thresholds, x, side="left")
        else:
            cells = len(self._first) - 1
            found = self._first.take((x * cells).astype(np.intp), mode="clip")
            for _ in range(self._steps):
                found += x > self._ends.take(found, mode="clip")
        return self.values.take(found, mode="clip")


def make_curves(given: Mapping[str, Any], bad: Violations, path: str = "curves") -> tuple[Curve | None, ...]:
    """The curves of {feature: {"thresholds": [...], "values": [...]}}, in the order of FEATURE_NAMES; None where a
    feature has none or a flat one.

    Notes every violation under `path`: unknown names, thresholds outside [0, 1] or not ascending strictly, values that
    do not start at 0, descend, leave [0, 1] or are not one more than the thresholds; tops that sum to more than 1.
    """
    before = len(bad.found)
    curves: dict[str, Curve] = {}
    for name, table in given.items():
        at = f"{path}.{name}"
        if name not in FEATURE_NAMES:
            bad.add(at, f"is no feature; the features are {', '.join(FEATURE_NAMES)}")
            continue
        try:
            thresholds, values = _numbers(table["thresholds"]), _numbers(table["values"])
        except (KeyError, TypeError, OverflowError) as error:
            bad.add(at, f"must hold the lists of numbers thresholds and values ({error})")
            continue
        found = list(_faults(thresholds, values))
        for fault in found:
            bad.add(at, fault)
        if not found:
            curves[name] = Curve(np.array(thresholds), np.array(values))
    if len(bad.found) == before:
        total = sum(curve.top for curve in curves.values())
        if total > 1.0 + SUM_TOLERANCE:
            bad.add(path, f"have tops that sum to {total:.9g}; at most 1, so that a score stays in [0, 1]")
        elif total <= 0.0:
            bad.add(path, "are all flat; at least one must rise above 0")
    if len(bad.found) > before:
        return ()
    return _within_one(tuple(_rising(curves.get(name)) for name in FEATURE_NAMES))


def table_of(curves: Sequence[Curve | None]) -> dict[str, dict[str, list[float]]]:
    """The same as plain data, as `make_curves` reads it."""
    return {
        name: {"thresholds": curve.thresholds.tolist(), "values": curve.values.tolist()}
        for name, curve in zip(FEATURE_NAMES, curves, strict=True)
        if curve is not None
    }


def _numbers(given: Any) -> list[float]:
    if not isinstance(given, list) or not all(type(each) in (int, float) for each in given):
        raise TypeError("not a list of numbers")
    return [float(each) for each in given]


def _faults(thresholds: list[float], values: list[float]) -> Sequence[str]:
    if not all(map(math.isfinite, thresholds + values)):
        return ["holds numbers that are not finite"]
    faults = []
    if len(values) != len(thresholds) + 1:
        faults.append(
            f"has {counted(len(thresholds), 'threshold')} and {counted(len(values), 'value')}; one value more is needed"
        )
    if any(not 0.0 <= each <= 1.0 for each in thresholds):
        faults.append("has thresholds outside [0, 1]")
    if any(b <= a for a, b in itertools.pairwise(thresholds)):
        faults.append("has thresholds that do not ascend strictly")
    if values and values[0] != 0.0:
        faults.append(f"starts at {values[0]!r}; must start at 0")
    if any(b < a for a, b in itertools.pairwise(values)):
        faults.append("descends; more of a feature must never lower a score")
    if values and not values[-1] <= 1.0:
        faults.append(f"reaches {values[-1]!r}; at most 1")
    return faults


def _rising(curve: Curve | None) -> Curve | None:
    return curve if curve is not None and curve.top > 0.0 else None


def _within_one(curves: tuple[Curve | None, ...]) -> tuple[Curve | None, ...]:
    """The curves less what rounding or the tolerance puts above 1: no score passes 1, not even by its last bit."""
    while (total := functools.reduce(operator.add, (each.top for each in curves if each), 0.0)) > 1.0:
        curves = tuple(each and Curve(each.thresholds, np.nextafter(each.values / total, 0.0)) for each in curves)
    return curves
