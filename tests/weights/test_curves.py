"""The curves form: step functions by look-up, in the same sums and under the same family cap as the linear form."""

from __future__ import annotations

import functools
import math
import operator

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sidecar.domain import Floats
from sidecar.errors import InvalidRequestError
from sidecar.features import FEATURE_NAMES, PARTLY_FED_BY_USE, USE_FAMILY
from sidecar.weights import Weights, contributions, make_curve_weights, make_weights
from sidecar.weights.curves import Curve

_unit = st.floats(0.0, 1.0)


@st.composite
def curves(draw: st.DrawFn, top: float = 1.0) -> Curve:
    """Any curve, also with thresholds that lie as close as floats do."""
    near = st.builds(
        lambda at, step: min(1.0, at + step * 2.0**-50), st.sampled_from([0.0, 0.3, 0.5]), st.integers(0, 9)
    )
    thresholds = sorted(set(draw(st.lists(st.one_of(_unit, near), max_size=40))))
    count = len(thresholds)
    values = sorted(draw(st.lists(st.floats(0.0, top), min_size=count, max_size=count)))
    return Curve(np.array(thresholds), np.array([0.0, *values]))


@given(curves(), st.lists(_unit, max_size=50))
def test_a_curve_is_what_searchsorted_says(curve: Curve, drawn: list[float]) -> None:
    """On any rows, at every threshold and right beside it, the value is values[searchsorted(thresholds, x, left)]."""
    at = curve.thresholds.tolist()
    beside = [min(max(math.nextafter(each, way), 0.0), 1.0) for each in at for way in (-1.0, 2.0)]
    x = np.array([0.0, 1.0, *drawn, *at, *beside])
    expected = curve.values[np.searchsorted(curve.thresholds, x, side="left")]
    assert curve(x).tolist() == expected.tolist()


def test_a_value_at_a_threshold_goes_left() -> None:
    """x <= threshold takes the lower value, as the trees decide."""
    assert Curve(np.array([0.5]), np.array([0.0, 1.0]))(np.array([0.5, 0.5000001])).tolist() == [0.0, 1.0]


@pytest.mark.parametrize("bad", [math.nan, math.inf, 1.5])
@pytest.mark.parametrize("steps", [1, 3_000])
def test_what_is_no_feature_value_is_refused(bad: float, steps: int) -> None:
    """NaN among good values is an error, never the curve's last step."""
    curve = Curve(np.arange(steps) / steps, np.arange(steps + 1) / steps)
    with pytest.raises(ValueError, match="features are in"):
        curve(np.array([0.1, bad, 0.2]))


@st.composite
def curve_weights(draw: st.DrawFn) -> Weights:
    """Any weights of the curves form."""
    names = draw(st.lists(st.sampled_from(FEATURE_NAMES), min_size=1, unique=True))
    tables = {}
    for name in names:
        curve = draw(curves(1.0 / len(names)).filter(lambda each: each.top > 0.0))
        tables[name] = {"thresholds": curve.thresholds.tolist(), "values": curve.values.tolist()}
    return make_curve_weights("any", tables, use_family_cap=draw(_unit))


@st.composite
def rows(draw: st.DrawFn) -> tuple[Floats, dict[str, Floats]]:
    """Features of up to four memories, and what those that use feeds in part are without it: never more."""
    count = draw(st.integers(0, 4))
    cells = draw(st.lists(_unit, min_size=count * len(FEATURE_NAMES), max_size=count * len(FEATURE_NAMES)))
    features = np.array(cells).reshape(count, len(FEATURE_NAMES))
    without = {name: features[:, FEATURE_NAMES.index(name)] * draw(_unit) for name in PARTLY_FED_BY_USE}
    return features, without


@given(rows(), curve_weights())
def test_contributions_of_curves_sum_and_stay_in_bounds(
    given_rows: tuple[Floats, dict[str, Floats]], weights: Weights
) -> None:
    """They sum left to right to the score, which stays in [0, 1]; what is not fed by use is the curve's own value."""
    features, without = given_rows
    found = contributions(features, without, weights)
    for row, score in zip(found.matrix.tolist(), found.score.tolist(), strict=True):
        assert functools.reduce(operator.add, row, 0.0) == score
        assert all(part >= 0.0 for part in row)
        assert score <= 1.0
    for index, name in enumerate(FEATURE_NAMES):
        if name not in USE_FAMILY + PARTLY_FED_BY_USE:
            curve = weights.curves[index]
            own = curve(features[:, index]) if curve else np.zeros(len(features))
            assert found.matrix[:, index].tolist() == own.tolist()


@given(rows(), curve_weights())
def test_use_adds_no_more_than_the_familys_cap_to_curves(
    given_rows: tuple[Floats, dict[str, Floats]], weights: Weights
) -> None:
    """The family's curves and what use adds to importance and recency, f(with) - f(without), stay below one cap."""
    features, without = given_rows
    found = contributions(features, without, weights)
    added = np.zeros(len(features))
    for index, name in enumerate(FEATURE_NAMES):
        if name in USE_FAMILY:
            added += found.matrix[:, index]
        elif name in PARTLY_FED_BY_USE and (curve := weights.curves[index]):
            added += found.matrix[:, index] - curve(without[name])
    assert (added <= weights.use_family_cap + 1e-12).all()


@given(rows(), curve_weights())
def test_task_fit_of_curves_does_not_know_of_use(
    given_rows: tuple[Floats, dict[str, Floats]], weights: Weights
) -> None:
    """Task fit is the same whatever use says, and in [0, 1]."""
    features, without = given_rows
    unused = features.copy()
    for name in USE_FAMILY:
        unused[:, FEATURE_NAMES.index(name)] = 0.0
    for name in PARTLY_FED_BY_USE:
        unused[:, FEATURE_NAMES.index(name)] = without[name]
    fit = contributions(features, without, weights).task_fit
    assert fit.tolist() == contributions(unused, without, weights).task_fit.tolist()
    assert ((fit >= 0.0) & (fit <= 1.0)).all()


def test_a_fine_curve_is_nearly_the_line_that_it_follows() -> None:
    """Curves cut from straight lines score as the linear weights do, to the width of a step."""
    steps = 2_000
    thresholds = (np.arange(1, steps) / steps).tolist()
    shares = {"lexical": 0.5, "use_rate": 0.3, "importance": 0.2}
    tables = {
        name: {"thresholds": thresholds, "values": (share * np.arange(steps) / (steps - 1)).tolist()}
        for name, share in shares.items()
    }
    line, curve = make_weights("l", shares), make_curve_weights("c", tables)
    features = np.random.default_rng(3).random((200, len(FEATURE_NAMES)))
    without = {name: features[:, FEATURE_NAMES.index(name)] * 0.5 for name in PARTLY_FED_BY_USE}
    first, second = contributions(features, without, line), contributions(features, without, curve)
    np.testing.assert_allclose(first.score, second.score, atol=3 / steps)
    np.testing.assert_allclose(first.task_fit, second.task_fit, atol=3 / steps)


@pytest.mark.parametrize(
    ("table", "words"),
    [
        ({"thresholds": [0.5], "values": [0.0]}, "one value more"),
        ({"thresholds": [0.5, 0.5], "values": [0.0, 0.1, 0.2]}, "ascend strictly"),
        ({"thresholds": [1.5], "values": [0.0, 0.1]}, "outside"),
        ({"thresholds": [0.5], "values": [0.1, 0.2]}, "start at 0"),
        ({"thresholds": [0.5, 0.6], "values": [0.0, 0.2, 0.1]}, "descends"),
        ({"thresholds": [0.5], "values": [0.0, 1.5]}, "at most 1"),
        ({"thresholds": [0.5], "values": [0.0, math.nan]}, "not finite"),
        ({"thresholds": [0.5], "values": [0.0, 0.0]}, "flat"),
        ({"thresholds": 0.5, "values": [0.0, 0.2]}, "lists of numbers"),
        ({"thresholds": [0.5], "values": [0, 10**400]}, "lists of numbers"),
        ({"thresholds": [0.5], "values": [False, True]}, "lists of numbers"),
    ],
)
def test_a_bad_curve_is_refused_with_its_name(table: dict[str, object], words: str) -> None:
    """Whatever a curve may not be is told with the feature's name."""
    with pytest.raises(InvalidRequestError, match=words):
        make_curve_weights("bad", {"lexical": table})


def test_curves_that_could_pass_one_are_refused() -> None:
    """The tops may sum to 1 and no more; unknown names are told too."""
    high = {"thresholds": [0.5], "values": [0.0, 0.6]}
    with pytest.raises(InvalidRequestError, match=r"tops that sum to 1\.2"):
        make_curve_weights("bad", {"lexical": high, "semantic": high})
    with pytest.raises(InvalidRequestError, match="is no feature"):
        make_curve_weights("bad", {"lexicl": high})
