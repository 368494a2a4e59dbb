"""The linear form: contributions that are capped, add up, and tell use from the rest."""

from __future__ import annotations

import functools
import math
import operator

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from sidecar.domain import Floats
from sidecar.errors import InvalidRequestError
from sidecar.features import FEATURE_NAMES, USE_FAMILY
from sidecar.features.recency import HALF_LIFE_DAYS
from sidecar.weights import Contributions, Weights, contributions, make_weights

IMPORTANCE = FEATURE_NAMES.index("importance")
RECENCY = FEATURE_NAMES.index("recency")
FAMILY = [FEATURE_NAMES.index(name) for name in USE_FAMILY]
OTHERS = [index for index in range(len(FEATURE_NAMES)) if index not in FAMILY]


def features(count: int = 1, **given: float) -> Floats:
    """A matrix of `count` rows whose named columns have the given values, all others 0."""
    matrix = np.zeros((count, len(FEATURE_NAMES)))
    for name, value in given.items():
        matrix[:, FEATURE_NAMES.index(name)] = value
    return matrix


def scored(matrix: Floats, importance: Floats, weights: Weights) -> Contributions:
    """Contributions of memories whose importance without use is given, and whose recency no use has touched."""
    return contributions(matrix, {"importance": importance, "recency": matrix[:, RECENCY]}, weights)


def parts(found: Contributions) -> dict[str, float]:
    """The first row's contributions by name, zeros left out."""
    return {name: part for name, part in zip(FEATURE_NAMES, found.matrix[0].tolist(), strict=True) if part}


_unit = st.floats(0.0, 1.0)


@st.composite
def weights_of_any_kind(draw: st.DrawFn) -> Weights:
    """Any weights that pass the checks."""
    count = len(FEATURE_NAMES)
    shares = draw(st.lists(_unit, min_size=count, max_size=count).filter(lambda given: sum(given) > 0))
    total = max(sum(shares), 1.0) * draw(st.floats(1.0, 4.0))
    values = {name: share / total for name, share in zip(FEATURE_NAMES, shares, strict=True)}
    assume(sum(values.values()) > 0)
    caps = draw(st.dictionaries(st.sampled_from(FEATURE_NAMES), _unit))
    return make_weights("any", values, caps=caps, use_family_cap=draw(_unit))


@st.composite
def feature_rows(draw: st.DrawFn) -> tuple[Floats, Floats]:
    """Features of up to four memories, and the importance of each without use."""
    count = draw(st.integers(0, 4))
    cells = draw(st.lists(_unit, min_size=count * len(FEATURE_NAMES), max_size=count * len(FEATURE_NAMES)))
    own = draw(st.lists(_unit, min_size=count, max_size=count))
    return np.array(cells).reshape(count, len(FEATURE_NAMES)), np.array(own)


@given(feature_rows(), weights_of_any_kind())
def test_contributions_sum_left_to_right_to_the_score(rows: tuple[Floats, Floats], weights: Weights) -> None:
    """Adding up what is sent, one after the other, gives the score to the last bit."""
    found = scored(*rows, weights)
    for row, score in zip(found.matrix.tolist(), found.score.tolist(), strict=True):
        assert functools.reduce(operator.add, row, 0.0) == score


@given(feature_rows(), weights_of_any_kind())
def test_scores_and_contributions_stay_in_their_bounds(rows: tuple[Floats, Floats], weights: Weights) -> None:
    """No contribution is negative or above its cap or its weight, and no score leaves [0, 1] by more than rounding."""
    found = scored(*rows, weights)
    assert (found.matrix >= 0.0).all()
    assert (found.matrix <= weights.caps).all()
    assert (found.matrix <= weights.values).all()
    assert ((found.score >= 0.0) & (found.score <= 1.0 + 1e-12)).all()


@given(feature_rows(), weights_of_any_kind())
def test_what_use_feeds_shares_one_cap(rows: tuple[Floats, Floats], weights: Weights) -> None:
    """use_rate, frequency, rating and the use part of importance together never pass the family's cap."""
    found = scored(*rows, weights)
    own = np.minimum(rows[1] * weights.values[IMPORTANCE], weights.caps[IMPORTANCE])
    use_of_importance = np.maximum(found.matrix[:, IMPORTANCE] - own, 0.0)
    assert (found.matrix[:, FAMILY].sum(axis=1) + use_of_importance <= weights.use_family_cap + 1e-12).all()


@given(feature_rows(), weights_of_any_kind())
def test_the_family_cap_takes_nothing_from_other_features(rows: tuple[Floats, Floats], weights: Weights) -> None:
    """A memory that is used everywhere keeps what it has for anything but use."""
    found = scored(*rows, weights)
    untouched = [index for index in OTHERS if index != IMPORTANCE]
    plain = np.minimum(rows[0] * weights.values, weights.caps)
    assert (found.matrix[:, untouched] == plain[:, untouched]).all()
    own = np.minimum(rows[1] * weights.values[IMPORTANCE], weights.caps[IMPORTANCE])
    assert (found.matrix[:, IMPORTANCE] >= np.minimum(own, plain[:, IMPORTANCE]) - 1e-12).all()


@given(feature_rows(), weights_of_any_kind(), st.integers(0, len(FEATURE_NAMES) - 1), _unit)
def test_a_higher_value_never_lowers_a_score(
    rows: tuple[Floats, Floats], weights: Weights, column: int, value: float
) -> None:
    """Raising any one feature lowers no score, caps or not."""
    matrix, own = rows
    raised = matrix.copy()
    raised[:, column] = np.maximum(raised[:, column], value)
    before, after = scored(matrix, own, weights).score, scored(raised, own, weights).score
    assert (after >= before - 1e-12).all()


@given(feature_rows(), weights_of_any_kind(), _unit)
def test_task_fit_knows_nothing_of_use(rows: tuple[Floats, Floats], weights: Weights, value: float) -> None:
    """Task fit is in [0, 1] and the same to the last bit whatever the use family and the use part of importance are."""
    matrix, own = rows
    used = matrix.copy()
    used[:, [*FAMILY, IMPORTANCE]] = value
    fit = scored(matrix, own, weights).task_fit
    assert ((fit >= 0.0) & (fit <= 1.0)).all()
    assert (fit == scored(used, own, weights).task_fit).all()


@given(weights_of_any_kind())
def test_task_fit_reaches_one(weights: Weights) -> None:
    """A memory that has all of everything but use fits the task wholly, unless the weights see nothing but use."""
    fit = scored(np.ones((1, len(FEATURE_NAMES))), np.ones(1), weights).task_fit[0]
    sees_more = bool(np.minimum(weights.values, weights.caps)[OTHERS].sum() > 0)
    assert fit == pytest.approx(1.0 if sees_more else 0.0)


@given(feature_rows(), weights_of_any_kind())
def test_scoring_leaves_its_input_alone(rows: tuple[Floats, Floats], weights: Weights) -> None:
    """Features are shared by the log and the explanation, so scoring changes none of them."""
    matrix, own = rows
    copy = matrix.copy()
    scored(matrix, own, weights)
    assert (matrix == copy).all()


@given(feature_rows(), weights_of_any_kind())
def test_a_memory_scores_the_same_alone_and_among_others(rows: tuple[Floats, Floats], weights: Weights) -> None:
    """No memory's score depends on which others are scored with it."""
    matrix, own = rows
    together = scored(matrix, own, weights)
    for row in range(len(matrix)):
        alone = scored(matrix[row : row + 1], own[row : row + 1], weights)
        assert alone.score[0] == together.score[row]
        assert alone.task_fit[0] == together.task_fit[row]


def test_the_order_of_the_score_shown_is_the_order_sorted_on() -> None:
    """Thirty mixed memories, listed by score, are listed by the sum of what they show."""
    rng = np.random.default_rng(7)
    raw = rng.random(len(FEATURE_NAMES))
    weights = make_weights("learned", dict(zip(FEATURE_NAMES, (raw / raw.sum() * 0.999).tolist(), strict=True)))
    found = scored(rng.random((30, len(FEATURE_NAMES))), rng.random(30), weights)
    listed = np.argsort(-found.score)
    shown = [functools.reduce(operator.add, found.matrix[row].tolist(), 0.0) for row in listed]
    assert shown == sorted(shown, reverse=True)


def test_a_contribution_is_weight_times_value_up_to_its_cap() -> None:
    """By hand: .5 * .8 = .4 is capped at .3, .25 * .5 = .125 is not."""
    weights = make_weights("t", {"lexical": 0.5, "semantic": 0.25}, caps={"lexical": 0.3})
    assert parts(scored(features(lexical=0.8, semantic=0.5), np.zeros(1), weights)) == {
        "lexical": 0.3,
        "semantic": 0.125,
    }


def test_the_use_family_is_scaled_down_together() -> None:
    """By hand: .2 + .2 + .1 of use under a cap of .25 are halved, and .3 of words stays."""
    weights = make_weights("t", {"lexical": 0.3, "frequency": 0.2, "use_rate": 0.2, "rating": 0.1}, use_family_cap=0.25)
    found = scored(features(lexical=1, frequency=1, use_rate=1, rating=1), np.zeros(1), weights)
    assert parts(found) == pytest.approx({"lexical": 0.3, "frequency": 0.1, "use_rate": 0.1, "rating": 0.05})
    assert found.score[0] == pytest.approx(0.55)


def test_the_use_part_of_importance_is_in_the_family() -> None:
    """By hand: importance .7, without use .5, weight .5: .25 is its own, .1 comes from use.

    With a frequency of .5 * .6 = .3 the family has .4; under a cap of .2 it is halved: frequency .15, importance .3.
    """
    weights = make_weights("t", {"importance": 0.5, "frequency": 0.5}, use_family_cap=0.2)
    found = scored(features(importance=0.7, frequency=0.6), np.array([0.5]), weights)
    assert parts(found) == pytest.approx({"importance": 0.3, "frequency": 0.15})
    assert found.task_fit[0] == pytest.approx(0.25 / 0.5)


def test_what_use_adds_to_recency_is_in_the_family() -> None:
    """By hand: an old memory (recency .1) that was used today (1.0) at weight .5 gains .45 from use; a family cap of .2
    leaves .05 of its own and .2 of use, and task fit sees the .05 alone."""
    weights = make_weights("t", {"recency": 0.5}, use_family_cap=0.2)
    untouched = {"importance": np.zeros(1), "recency": np.array([0.1])}
    found = contributions(features(recency=1.0), untouched, weights)
    assert parts(found) == pytest.approx({"recency": 0.25})
    assert found.task_fit[0] == pytest.approx(0.1)


def test_importance_that_use_has_lowered_frees_nothing_in_the_family() -> None:
    """A use part below the rest makes no room for popularity."""
    weights = make_weights("t", {"importance": 0.5, "frequency": 0.5}, use_family_cap=0.2)
    found = scored(features(importance=0.3, frequency=1.0), np.array([0.8]), weights)
    assert parts(found) == pytest.approx({"importance": 0.15, "frequency": 0.2})


def test_weights_of_use_alone_have_no_task_fit() -> None:
    """Where nothing but use is weighed, task fit is 0 and not a division by 0."""
    weights = make_weights("t", {"frequency": 0.1, "use_rate": 0.2, "rating": 0.3})
    assert scored(np.ones((2, len(FEATURE_NAMES))), np.ones(2), weights).task_fit.tolist() == [0.0, 0.0]


def test_popularity_cannot_own_a_packet_by_default() -> None:
    """Weights that name no cap for the use family have one of .35."""
    weights = make_weights("t", {"lexical": 0.4, "frequency": 0.6})
    assert scored(features(frequency=1), np.zeros(1), weights).score[0] == pytest.approx(0.35)


# make_weights


def test_weights_take_what_is_given_and_default_the_rest() -> None:
    """A feature without a weight weighs 0, a cap is its weight, a half-life the shipped one."""
    weights = make_weights(
        "mine",
        {"lexical": 0.5, "recency": 0.5},
        caps={"recency": 0.1},
        half_life_days={"decision": 365.0, "recipe": 2.0},
        variants={"lexical": "smartctx"},
    )
    by_name = dict(zip(FEATURE_NAMES, weights.values.tolist(), strict=True))
    caps = dict(zip(FEATURE_NAMES, weights.caps.tolist(), strict=True))
    assert weights.version == "mine"
    assert (by_name["lexical"], by_name["recency"], by_name["semantic"]) == (0.5, 0.5, 0.0)
    assert (caps["lexical"], caps["recency"], caps["semantic"]) == (0.5, 0.1, 0.0)
    assert weights.use_family_cap == 0.35
    assert weights.half_life_days == {**HALF_LIFE_DAYS, "decision": 365.0, "recipe": 2.0}
    assert weights.variants == {"lexical": "smartctx"}


def test_every_bad_field_is_listed_at_once() -> None:
    """One answer names every field that is wrong, with its value and its limit."""
    with pytest.raises(InvalidRequestError) as caught:
        make_weights(
            "t",
            {"lexcal": 0.5, "semantic": 1.5, "recency": math.nan, "rating": -0.1},
            caps={"lexical": 2.0, "nonsense": 0.1},
            use_family_cap=math.inf,
            half_life_days={"fact": 0.0, "decision": 36_501.0, "attempt": math.nan, "debugging": -1.0},
            variants={"lexical": "sideways", "nonsense": "default"},
            path="weights.values",
        )
    said = {each.field: each.description for each in caught.value.violations}
    assert set(said) == {
        "weights.values.features.lexcal",
        "weights.values.features.semantic",
        "weights.values.features.recency",
        "weights.values.features.rating",
        "weights.values.caps.lexical",
        "weights.values.caps.nonsense",
        "weights.values.use_family_cap",
        "weights.values.half_life_days.fact",
        "weights.values.half_life_days.decision",
        "weights.values.half_life_days.attempt",
        "weights.values.half_life_days.debugging",
        "weights.values.variants.lexical",
        "weights.values.variants.nonsense",
    }
    assert len(caught.value.violations) == len(said)
    assert "1.5" in said["weights.values.features.semantic"]
    assert "[0, 1]" in said["weights.values.features.semantic"]
    assert "36500" in said["weights.values.half_life_days.fact"]


@pytest.mark.parametrize(
    ("given", "words"), [({"lexical": 0.6, "semantic": 0.5}, "1.1"), ({"lexical": 0.0}, "all 0"), ({}, "all 0")]
)
def test_weights_sum_to_at_most_one_and_are_not_all_zero(given: dict[str, float], words: str) -> None:
    """Weights that would leave [0, 1] or score nothing are refused, also when something else is wrong as well."""
    with pytest.raises(InvalidRequestError) as caught:
        make_weights("t", given, use_family_cap=7.0)
    said = {each.field: each.description for each in caught.value.violations}
    assert words in said["weights.features"]
    assert "weights.use_family_cap" in said


def test_a_sum_that_rounds_above_one_is_taken() -> None:
    """Ten tenths are one, whatever floating point makes of them, up to 1.000001."""
    make_weights("t", dict.fromkeys(FEATURE_NAMES[:10], 0.1))
    make_weights("t", {"lexical": 0.5, "semantic": 0.5000009})
    with pytest.raises(InvalidRequestError, match=r"1\.000002"):
        make_weights("t", {"lexical": 0.5, "semantic": 0.500002})
