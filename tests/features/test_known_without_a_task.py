"""The features that look at a memory alone: kind_prior, relevance, recency, importance, emotion."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sidecar.domain import DAY, KNOWN_KINDS, SECOND
from sidecar.features import BY_NAME, View
from sidecar.features import kind_prior as kind_prior_module
from sidecar.features import recency as recency_module
from sidecar.features.importance import BASELINE, USE_SHARE, combine, without_use
from sidecar.features.recency import HALF_LIFE_DAYS
from tests.features.building import NOW, columns, days_ago, values, view, views

NAN = float("nan")
FIVE = ["decision", "fact", "preference", "failure", "attempt"]

kind_prior = BY_NAME["kind_prior"]
relevance = BY_NAME["relevance"]
recency = BY_NAME["recency"]
importance = BY_NAME["importance"]
emotion = BY_NAME["emotion"]


# kind_prior


def test_kind_priors_times_their_weight_are_the_known_ones() -> None:
    """Weight .35 gives decisions .35, facts .30, preferences .25, failures .20 and attempts .05."""
    for variants in ({}, {"kind_prior": "smartctx"}):
        found = 0.35 * values(kind_prior, columns(5, kinds=FIVE), variants=variants)
        assert found == pytest.approx([0.35, 0.30, 0.25, 0.20, 0.05], abs=1e-15)


def test_every_known_kind_has_its_own_prior_half_life_and_baseline() -> None:
    """No kind of the API falls back to the default by oversight."""
    for table in (kind_prior_module.PRIOR, HALF_LIFE_DAYS, BASELINE):
        assert set(table) == {*KNOWN_KINDS, "default"}


def test_a_kind_of_ones_own_takes_the_default_prior() -> None:
    """A word that is no known kind has the default prior, and none at all where the note's own rule is asked for."""
    own = columns(2, kinds=["recipe", "decision"])
    assert values(kind_prior, own).tolist() == [3 / 7, 1.0]
    assert values(kind_prior, own, variants={"kind_prior": "smartctx"}).tolist() == [0.0, 1.0]


# relevance, emotion


def test_relevance_is_the_stored_search_score() -> None:
    """The caller's own score comes through as it is, and 0 where there is none."""
    assert values(relevance, columns(3, relevance=[0.0, 0.37, 1.0])).tolist() == [0.0, 0.37, 1.0]


def test_emotion_counts_only_where_it_is_switched_on() -> None:
    """Stored salience is 0 until the namespace has opted in."""
    memories = columns(2, emotion=[0.8, 0.1])
    assert values(emotion, memories).tolist() == [0.0, 0.0]
    assert values(emotion, memories, emotion_enabled=True).tolist() == [0.8, 0.1]


# recency


@pytest.mark.parametrize(
    ("kind", "days"),
    [("decision", 180), ("fact", 90), ("preference", 120), ("failure", 45), ("attempt", 14), ("debugging", 7)],
)
def test_a_memory_halves_with_the_half_life_of_its_kind(kind: str, days: int) -> None:
    """Recency is 1 when new, 1/2 after a half-life and 1/8 after three; decisions decay slowly, debugging quickly."""
    ages = [days_ago(0), days_ago(days), days_ago(3 * days)]
    assert values(recency, columns(3, kinds=[kind] * 3, create_time=ages)).tolist() == [1.0, 0.5, 0.125]


def test_half_lives_come_with_the_weights() -> None:
    """The table in force decides, and its default stands for kinds that it does not name."""
    memories = columns(2, kinds=["fact", "recipe"], create_time=[days_ago(10)] * 2)
    assert values(recency, memories, half_life_days={"fact": 10.0, "default": 5.0}).tolist() == [0.5, 0.25]


@given(st.sampled_from([*KNOWN_KINDS, "recipe"]), st.integers(0, 3650 * DAY), st.integers(0, 3650 * DAY))
def test_an_older_memory_is_never_more_recent(kind: str, one: int, other: int) -> None:
    """Recency does not rise with age."""
    young, old = sorted((one, other))
    found = values(recency, columns(2, kinds=[kind] * 2, create_time=[NOW - young, NOW - old]))
    assert found[0] >= found[1]


def test_an_hour_makes_a_difference_to_every_kind() -> None:
    """Memories of one kind that are hours apart are told apart, newest first, even after 900 days."""
    for kind in KNOWN_KINDS:
        ages = [days_ago(900 + hour / 24) for hour in range(6)]
        found = values(recency, columns(6, kinds=[kind] * 6, create_time=ages))
        assert (np.diff(found) < 0).all(), kind


@given(views())
def test_a_time_ahead_of_now_is_age_zero(any_view: View) -> None:
    """A clock that steps back lifts no recency above 1, and no age is below 0. Now is the next whole minute."""
    assert (recency_module.age_days(any_view) >= 0.0).all()
    made_ahead = any_view.columns.create_time >= recency_module.whole_minute(any_view.as_of_time)
    assert (any_view.value(recency)[made_ahead] == 1.0).all()


def test_the_newer_memory_is_worth_more_also_within_a_minute() -> None:
    """Ages of one minute's tasks are the same, and yet two memories of one second apart never tie."""
    made = [NOW + 5 * SECOND, NOW + 6 * SECOND]
    at = [view(columns(2, create_time=made), as_of_time=NOW + second * SECOND).value(recency) for second in (6, 7, 60)]
    assert at[0].tolist() == at[1].tolist() == at[2].tolist()
    assert at[0][0] < at[0][1] < 1.0


def test_a_use_makes_a_memory_younger() -> None:
    """Age counts from the last use where that is later than creation, and an early use makes nothing older."""
    memories = columns(
        3, create_time=[days_ago(90), days_ago(90), days_ago(45)], last_use_time=[days_ago(45), NOW, days_ago(180)]
    )
    assert recency_module.age_days(view(memories)).tolist() == [45.0, 0.0, 45.0]


def test_a_use_ahead_of_a_clock_that_stepped_back_is_age_0() -> None:
    """A last use later than now neither lifts recency above 1 nor stops counting."""
    memories = columns(1, create_time=[days_ago(90)], last_use_time=[days_ago(-1)])
    assert values(recency, memories).tolist() == [1.0]


# importance


@pytest.mark.parametrize(
    ("kind", "baseline"),
    [("working", 0.3), ("episodic", 0.5), ("semantic", 0.7), ("procedural", 0.8), ("archival", 0.6)],
)
def test_a_memory_of_which_nothing_is_known_has_its_kinds_baseline(kind: str, baseline: float) -> None:
    """Without content, use and user parts, importance is the kind's baseline."""
    assert values(importance, columns(1, kinds=[kind])).tolist() == [baseline]


def test_a_kind_of_ones_own_takes_the_default_baseline() -> None:
    """A word that is no known kind starts in the middle."""
    assert values(importance, columns(1, kinds=["recipe"])).tolist() == [0.5]


@pytest.mark.parametrize(
    ("content", "use", "override", "expected"),
    [
        (NAN, NAN, NAN, 0.7),  # the baseline
        (0.9, NAN, NAN, 0.9),  # content alone
        (NAN, 0.2, NAN, 0.6 * 0.7 + 0.4 * 0.2),  # the baseline stands in for content
        (0.9, 0.2, NAN, 0.6 * 0.9 + 0.4 * 0.2),
        (0.0, 0.0, NAN, 0.0),  # a part of 0 is a part, not a missing one
        (0.9, 0.9, 0.1, 0.1),  # the user's word wins
        (NAN, NAN, 0.0, 0.0),  # also when it is 0
    ],
)
def test_importance_combines_its_parts(content: float, use: float, override: float, expected: float) -> None:
    """The user's word wins; else content and use share, a missing content being the baseline."""
    found = combine(np.array([content]), np.array([use]), np.array([override]), np.array([0.7]))
    assert found == pytest.approx([expected], abs=1e-15)


_part = st.just(NAN) | st.floats(0.0, 1.0)


@given(_part, _part, _part, st.floats(0.0, 1.0))
def test_importance_stays_between_its_parts(content: float, use: float, override: float, baseline: float) -> None:
    """Combining never leaves the range of what is combined."""
    score = float(combine(*(np.array([part]) for part in (content, use, override, baseline)))[0])
    own = baseline if math.isnan(content) else content
    parts = [override] if not math.isnan(override) else [own] if math.isnan(use) else [own, use]
    assert min(parts) - 1e-15 <= score <= max(parts) + 1e-15


@given(st.floats(0.0, 1.0), st.floats(0.0, 1.0), st.floats(0.0, 1.0))
def test_more_use_never_lowers_importance(content: float, one: float, other: float) -> None:
    """Importance does not fall when its use part rises."""
    less, more = sorted((one, other))
    found = values(importance, columns(2, importance_content=[content] * 2, importance_use=[less, more]))
    assert found[0] <= found[1]


def test_importance_without_use_leaves_the_use_part_out() -> None:
    """What goes into task fit knows of content and the user's word only."""
    memories = columns(
        3, importance_content=[0.5, NAN, 0.5], importance_use=[1.0, 0.0, 1.0], importance_override=[NAN, NAN, 0.2]
    )
    assert without_use(view(memories)).tolist() == [0.5, 0.7, 0.2]
    assert values(importance, memories) == pytest.approx(
        [(1 - USE_SHARE) * 0.5 + USE_SHARE, (1 - USE_SHARE) * 0.7, 0.2]
    )
