"""What holds for every feature, whatever it measures."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sidecar.features import (
    BY_NAME,
    FEATURE_NAMES,
    OTHERS_KNOWN,
    RAW_NAMES,
    REGISTRY,
    SCHEMA_HASH,
    USE_FAMILY,
    WAYS,
    Columns,
    Feature,
    Kept,
    View,
    feature_matrix,
    known_values,
    other_ways_at,
    raw_matrix,
)
from sidecar.features.importance import without_use
from sidecar.features.registry import schema_hash
from tests.features.building import columns, no_match, only, view, views

USE_COLUMNS = ("helpful", "used", "seen", "use_sessions", "reported_sessions", "importance_use")
each_feature = pytest.mark.parametrize("feature", REGISTRY, ids=lambda feature: feature.name)


def test_the_features_and_their_order_are_those_of_the_design() -> None:
    """The registry has the sixteen features, in the order of every contribution list."""
    assert " ".join(FEATURE_NAMES) == (
        "kind_prior relevance semantic lexical handles subject thread dates statement "
        "recency frequency use_rate rating importance emotion context"
    )
    assert USE_FAMILY == ("frequency", "use_rate", "rating")


@given(views())
def test_values_stay_in_their_bounds(any_view: View) -> None:
    """Whatever the columns and matches are, every value of every variant is a finite float64 in [0, 1]."""
    matrix = feature_matrix(any_view)
    assert matrix.shape == (len(any_view.columns), len(REGISTRY))
    assert matrix.dtype == np.float64
    assert np.isfinite(matrix).all()
    assert ((matrix >= 0.0) & (matrix <= 1.0)).all()


@given(st.data(), views())
def test_other_ways_are_those_that_did_not_score(data: st.DataObject, any_view: View) -> None:
    """Each way of a feature but the view's own, with the values, to the last bit, that a view of that way has; of some
    rows in any order where a task is needed."""
    n = len(any_view.columns)
    rows = np.array(data.draw(st.permutations(range(n)))[: data.draw(st.integers(0, n))], np.intp)
    known, of_task = known_values(any_view).other_ways, other_ways_at(any_view, rows)
    own = {f"{name}:{way}" for name, way in any_view.variants.items()}
    assert {*known, *of_task} == set(WAYS) - own
    assert len(known) == OTHERS_KNOWN
    for name in (*known, *of_task):
        feature, _, way = name.partition(":")
        as_way = replace(any_view, variants={**any_view.variants, feature: way}, memo={}, kept=Kept())
        whole = as_way.value(BY_NAME[feature])
        assert np.array_equal(known[name], whole) if name in known else np.array_equal(of_task[name], whole[rows])


@given(views())
def test_importance_without_use_stays_in_its_bounds(any_view: View) -> None:
    """The importance that a memory would have without use is a finite number in [0, 1]."""
    own = without_use(any_view)
    assert own.shape == (len(any_view.columns),)
    assert ((own >= 0.0) & (own <= 1.0)).all()


@given(views())
def test_values_stay_in_their_bounds_before_they_are_clipped(any_view: View) -> None:
    """Clipping only takes off a last ulp: no formula leans on it."""
    for feature in REGISTRY:
        for function in feature.values.values():
            raw = function(any_view)
            assert ((raw >= -1e-12) & (raw <= 1 + 1e-12)).all(), feature.name


@given(views())
def test_raw_values_are_finite(any_view: View) -> None:
    """The ages and counts that are logged are finite and at least 0, one column a name."""
    raw = raw_matrix(any_view)
    assert raw.shape == (len(any_view.columns), len(RAW_NAMES))
    assert np.isfinite(raw).all()
    assert (raw >= 0.0).all()


@given(views(), st.data())
def test_a_value_depends_on_no_other_memory(any_view: View, data: st.DataObject) -> None:
    """Taking other memories away or listing them in another order changes no value, but for thread neighbours and, for
    the importance note, the most used memory."""
    count = len(any_view.columns)
    if not count:
        return
    wanted = data.draw(st.integers(0, count - 1))
    used = np.where(any_view.columns.live, any_view.columns.use_sessions, -1)
    near = {wanted, int(used.argmax())}
    for links in (any_view.columns.previous_row, any_view.columns.next_row):
        row = wanted
        for _ in range(2):  # as far as a passage goes
            row = int(links[row]) if row >= 0 else -1
            near |= {row} - {-1}
    # The neighbours' own passages lose their neighbours, so only the wanted row is compared.
    rows = data.draw(st.permutations(sorted(near)))
    alone = only(any_view, rows)
    assert (feature_matrix(alone)[rows.index(wanted)] == feature_matrix(any_view)[wanted]).all()


@given(views())
def test_features_that_need_no_task_ignore_it(any_view: View) -> None:
    """What is known before any task has the same value for every task."""
    other = replace(any_view, text=no_match(len(any_view.columns)), memo={}, kept=Kept())
    for feature in REGISTRY:
        if not feature.needs_task:
            assert (any_view.value(feature) == other.value(feature)).all(), feature.name


@given(views())
def test_features_that_need_a_task_are_zero_without_one(any_view: View) -> None:
    """Where nothing is asked, nothing matches."""
    without = replace(any_view, text=no_match(len(any_view.columns)), memo={}, kept=Kept())
    for feature in REGISTRY:
        if feature.needs_task:
            assert (without.value(feature) == 0.0).all(), feature.name


@given(views(), views())
def test_only_the_use_family_and_importance_read_reports_and_ratings(any_view: View, other: View) -> None:
    """Counts of uses and ratings reach a score through the use family and the use part of importance, nowhere else."""
    count = min(len(any_view.columns), len(other.columns))
    rows = list(range(count))
    before, donor = only(any_view, rows), only(other, rows).columns
    after = replace(
        before,
        columns=replace(before.columns, **{name: getattr(donor, name) for name in USE_COLUMNS}),
        memo={},
        kept=Kept(),
    )
    for feature in REGISTRY:
        if not feature.in_use_family and feature.name != "importance":
            assert (before.value(feature) == after.value(feature)).all(), feature.name
    assert (without_use(before) == without_use(after)).all()


def test_no_feature_can_see_a_serve() -> None:
    """Features read columns and text matches, and neither holds how often, when or where a memory was served."""
    readable = {*Columns.__dataclass_fields__, *View.__dataclass_fields__, *RAW_NAMES}
    told = ("serv", "expos", "offer", "shown", "impression", "packet", "place", "position")
    assert [name for name in sorted(readable) if any(part in name for part in told)] == []


def test_a_view_computes_each_value_once() -> None:
    """Features that build on others read the values that are served, not a second computation."""
    calls = []

    def count_calls(seen: View) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
        calls.append(seen)
        return np.ones(len(seen.columns))

    feature = Feature("counted", "a test", {"default": count_calls})
    one = view(columns(2))
    assert one.value(feature) is one.value(feature)
    assert len(calls) == 1


def test_a_last_ulp_beyond_the_bounds_is_clipped() -> None:
    """A sum that rounds to just above 1 is served as 1."""
    feature = Feature("rounding", "a test", {"default": lambda seen: np.array([1.0 + 2e-16, -1e-17])})
    assert feature.compute(view(columns(2))).tolist() == [1.0, 0.0]


def test_an_unknown_variant_is_refused() -> None:
    """A variant that a feature does not have is a KeyError, never another variant's values."""
    with pytest.raises(KeyError):
        REGISTRY[0].compute(view(columns(1)), "nonsense")


@each_feature
def test_every_feature_says_where_its_values_come_from(feature: Feature) -> None:
    """A feature declares a source in words, a default variant, and a version from 1."""
    assert feature.source
    assert "default" in feature.values
    assert feature.version >= 1


def test_an_empty_namespace_has_empty_matrices() -> None:
    """No memories give matrices of no rows, with all their columns."""
    assert feature_matrix(view(columns(0))).shape == (0, len(FEATURE_NAMES))
    assert raw_matrix(view(columns(0))).shape == (0, len(RAW_NAMES))


@settings(max_examples=30)
@given(st.permutations(range(len(REGISTRY))))
def test_the_schema_hash_changes_with_the_order(order: list[int]) -> None:
    """Features in another order are another schema, in the same order the same."""
    assert (schema_hash([REGISTRY[index] for index in order]) == SCHEMA_HASH) == (order == sorted(order))


@each_feature
def test_the_schema_hash_changes_with_name_version_and_raw_values(feature: Feature) -> None:
    """A renamed, re-versioned, dropped or differently logged feature is another schema; other words are not."""

    def hash_with(*changed: Feature) -> str:
        index = REGISTRY.index(feature)
        return schema_hash([*REGISTRY[:index], *changed, *REGISTRY[index + 1 :]])

    assert hash_with(feature) == SCHEMA_HASH
    assert hash_with(replace(feature, source="the same in other words")) == SCHEMA_HASH
    changes = {
        hash_with(replace(feature, name=f"{feature.name}_2")),
        hash_with(replace(feature, version=feature.version + 1)),
        hash_with(replace(feature, raw={**feature.raw, "one_more": lambda seen: np.zeros(len(seen.columns))})),
        hash_with(),
    }
    assert len(changes | {SCHEMA_HASH}) == 5
