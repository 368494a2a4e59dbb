"""The use family: frequency, use_rate and rating. What they promise about sessions, reports and marks."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sidecar.features import BY_NAME
from sidecar.features.use_rate import PRIOR
from tests.features.building import columns, values

frequency = BY_NAME["frequency"]
use_rate = BY_NAME["use_rate"]
rating = BY_NAME["rating"]

_count = st.integers(0, 10_000)


# frequency


def test_frequency_is_the_logarithm_of_sessions_full_at_fifty() -> None:
    """No session is 0, fifty are 1, and half of the way is a factor of sqrt(51)."""
    found = values(frequency, columns(4, use_sessions=[0, 1, 7, 50]))
    assert found == pytest.approx([0.0, math.log(2) / math.log(51), math.log(8) / math.log(51), 1.0])


def test_the_linear_variant_is_the_notes_access_bonus() -> None:
    """Times .10 it is sessions / 50, cut off at .10."""
    memories = columns(6, use_sessions=[0, 1, 3, 5, 6, 1000])
    bonus = 0.10 * values(frequency, memories, variants={"frequency": "smartctx"})
    assert bonus == pytest.approx([0.0, 0.02, 0.06, 0.10, 0.10, 0.10], abs=1e-15)


@pytest.mark.parametrize("variant", ["default", "smartctx"])
@given(one=_count, other=_count)
def test_more_sessions_never_lower_frequency(variant: str, one: int, other: int) -> None:
    """Frequency does not fall with sessions that used the memory."""
    fewer, more = sorted((one, other))
    found = values(frequency, columns(2, use_sessions=[fewer, more]), variants={"frequency": variant})
    assert found[0] <= found[1]


def test_frequency_levels_off() -> None:
    """Ten thousand sessions count no more than fifty."""
    found = values(frequency, columns(2, use_sessions=[50, 10_000]))
    assert found[0] == found[1] == 1.0


def test_fifty_uses_in_one_session_never_beat_one_in_each_of_fifty() -> None:
    """Sessions are what counts: one long conversation cannot crown a memory, by frequency or by use rate."""
    memories = columns(2, use_sessions=[1, 50], reported_sessions=[1, 50], used=[1.0, 50.0], seen=[1.0, 50.0])
    for feature in (frequency, use_rate):
        crowned, known = values(feature, memories)
        assert crowned < known, feature.name


# use_rate


def test_use_rate_is_shrunk_to_its_kinds_mean() -> None:
    """(U + kappa mu) / (V + kappa): unreported is mu, eight uses in ten sessions pull half-way with kappa 10."""
    found = values(use_rate, columns(3, used=[0.0, 8.0, 0.0], seen=[0.0, 10.0, 10.0]), use_prior={"default": (0.2, 10)})
    assert found == pytest.approx([0.2, 0.5, 0.1])


def test_each_kind_has_its_own_prior() -> None:
    """The frozen mean and strength of a kind apply to it, the default's to kinds not named."""
    prior = {"decision": (0.6, 4.0), "default": (0.2, 10.0)}
    memories = columns(2, kinds=["decision", "fact"], used=[1.0, 1.0], seen=[4.0, 4.0])
    assert values(use_rate, memories, use_prior=prior) == pytest.approx([(1 + 2.4) / 8, (1 + 2) / 14])


def test_a_new_memory_is_not_at_zero() -> None:
    """A memory without reports has the mean, so it stands above one that was seen often and never used."""
    new, ignored = values(use_rate, columns(2, seen=[0.0, 20.0]))
    assert new == PRIOR["default"][0]
    assert ignored < new


_seen = st.floats(0.0, 1e6)
_weight = st.floats(0.0, 1.0)


@given(seen=_seen, share=_weight, more=_weight)
def test_an_unused_report_never_raises_the_use_rate(seen: float, share: float, more: float) -> None:
    """One more session that saw the memory and did not use it, by whatever weight, raises nothing."""
    used = share * seen
    found = values(use_rate, columns(2, used=[used, used], seen=[seen, seen + more]))
    assert found[1] <= found[0]


@given(seen=_seen, share=_weight, confidence=_weight)
def test_a_sure_use_never_lowers_the_use_rate(seen: float, share: float, confidence: float) -> None:
    """One more session that used it, as surely as it saw it, lowers nothing; one more sure the better."""
    used = share * seen
    before, unsure, sure = values(
        use_rate, columns(3, used=[used, used + confidence, used + 1], seen=[seen, seen + 1, seen + 1])
    )
    assert sure >= before - 1e-15
    assert sure >= unsure


@given(used=_seen, share=_weight, mu=_weight, kappa=st.floats(4.0, 50.0))
def test_the_use_rate_lies_between_the_mean_and_the_share(used: float, share: float, mu: float, kappa: float) -> None:
    """Shrinking never overshoots."""
    seen = used / share if share > 1e-6 else used
    (found,) = values(use_rate, columns(1, used=[used], seen=[seen]), use_prior={"default": (mu, kappa)})
    raw = used / seen if seen else mu
    assert min(mu, raw) - 1e-9 <= found <= max(mu, raw) + 1e-9


# rating


def test_each_helpful_rater_halves_what_is_left() -> None:
    """No mark is 0, one .5, two .75, and no number of marks leaves the bounds."""
    found = values(rating, columns(4, helpful=[0, 1, 2, 2**31 - 1]))
    assert found.tolist() == [0.0, 0.5, 0.75, 1.0]


def test_an_unhelpful_mark_is_a_gate_and_not_a_value() -> None:
    """An unhelpful mark changes no value, so that taking it back restores everything."""
    found = values(rating, columns(2, helpful=[1, 1], unhelpful=[0, 3]))
    assert found[0] == found[1]


@given(st.lists(st.integers(0, 60), min_size=2, max_size=8))
def test_more_helpful_raters_never_lower_the_rating(raters: list[int]) -> None:
    """A positive mark is a durable boost."""
    found = values(rating, columns(len(raters), helpful=sorted(raters)))
    assert (np.diff(found) >= 0).all()
