"""Reserved slots: what is logged is what is drawn, in every shape of pool."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sidecar.ranking.reserved import ReserveSettings, chance_of, default_slots, draw, least_fit, place

SETTINGS = ReserveSettings()
SALT = bytes(range(32))


def exact_inclusion(fit: list[float], reported: list[int], slots: int) -> list[float]:
    """Inclusion propensities by walking every order of drawing; a second, slow implementation of the rule."""
    strata = [[i for i, n in enumerate(reported) if (n > 0) == kind] for kind in (False, True)]
    filled = [stratum for stratum in strata if stratum]
    inclusion = [0.0] * len(fit)

    def mixture(members: list[int]) -> dict[int, float]:
        weight = {i: math.exp(fit[i] / SETTINGS.temperature) for i in members}
        total = sum(weight.values())
        half = SETTINGS.epsilon
        return {i: half / len(members) + (1 - half) * weight[i] / total for i in members}

    if slots == 1:
        for stratum in filled:
            for i, g in mixture(stratum).items():
                inclusion[i] += g / len(filled)
    elif len(filled) == 2:
        for stratum in filled:
            for i, g in mixture(stratum).items():
                inclusion[i] += g
    else:
        alone = mixture(filled[0])
        if len(alone) == 1:
            inclusion[filled[0][0]] = 1.0
        for first, second in itertools.permutations(alone, 2):
            p = alone[first] * alone[second] / (1 - alone[first])
            inclusion[first] += p
            inclusion[second] += p
    return inclusion


pools = st.integers(1, 24).flatmap(
    lambda n: st.tuples(
        st.lists(st.floats(0, 1), min_size=n, max_size=n),
        st.lists(st.integers(0, 4), min_size=n, max_size=n),
    )
)


@given(pool=pools, slots=st.sampled_from([1, 2]), packet=st.integers(0, 2**32))
def test_logged_propensities_are_those_of_the_rule(
    pool: tuple[list[float], list[int]], slots: int, packet: int
) -> None:
    """The inclusion propensity of each member equals the sum over all orders of drawing."""
    fit, reported = pool
    outcome = draw(np.array(fit), reported, slots, chance_of(SALT, str(packet), SETTINGS.policy), SETTINGS)
    assert outcome.inclusion_propensity == pytest.approx(exact_inclusion(fit, reported, slots), abs=1e-9)
    assert len(set(outcome.drawn)) == len(outcome.drawn) == min(slots, len(fit))


@given(pool=pools, slots=st.sampled_from([1, 2]), packet=st.integers(0, 2**32))
def test_a_draw_can_be_replayed(pool: tuple[list[float], list[int]], slots: int, packet: int) -> None:
    """The same salt, packet id and pool give the same draw and places; another salt is free to differ."""
    fit, reported = pool
    once = draw(np.array(fit), reported, slots, chance_of(SALT, str(packet), SETTINGS.policy), SETTINGS)
    again = draw(np.array(fit), reported, slots, chance_of(SALT, str(packet), SETTINGS.policy), SETTINGS)
    assert once.drawn == again.drawn


@pytest.mark.parametrize("slots", [1, 2])
@pytest.mark.parametrize("size", [1, 2, 3, 7, 24])
@pytest.mark.parametrize("mixed", [False, True])
def test_frequencies_follow_the_propensities(slots: int, size: int, mixed: bool) -> None:
    """Over 4,000 packet ids, chi-square of drawn against logged stays below its .999 quantile (Wilson-Hilferty), and
    the mean of the sum of 1/pi over the drawn is the pool's size."""
    rng = np.random.default_rng(size * 10 + slots)
    fit = rng.random(size)
    reported = [int(i % 2) if mixed else 0 for i in range(size)]
    draws = 4_000
    counts = np.zeros(size)
    inverse = 0.0
    for packet in range(draws):
        outcome = draw(fit, reported, slots, chance_of(SALT, f"{size}-{mixed}-{packet}", SETTINGS.policy), SETTINGS)
        for i in outcome.drawn:
            counts[i] += 1
            inverse += 1 / outcome.inclusion_propensity[i]
        pi = outcome.inclusion_propensity
    assert inverse / draws == pytest.approx(size, rel=0.15)
    variance = draws * pi * (1 - pi)
    z = np.where(variance > 0, (counts - draws * pi) / np.sqrt(np.maximum(variance, 1e-12)), 0.0)
    assert (counts[variance == 0] == draws).all()
    degrees = max(size - 1, 1)
    limit = degrees * (1 - 2 / (9 * degrees) + 3.2905 * math.sqrt(2 / (9 * degrees))) ** 3
    # Each z^2 has mean 1, and negative correlation between members only narrows their sum.
    assert (z**2).sum() <= limit + degrees


@given(n=st.integers(1, 30), k=st.integers(0, 2), packet=st.integers(0, 2**32))
def test_places_are_distinct_and_among_the_last(n: int, k: int, packet: int) -> None:
    """The drawn stand at distinct places among the last max(k, n - 2), and every place has a probability in (0, 1]."""
    k = min(k, n)
    places = place(n, k, chance_of(SALT, str(packet), SETTINGS.policy))
    assert len(set(places.drawn)) == k
    assert all(n - max(k, n - 2) <= p < n for p in places.drawn)
    assert len(places.probability) == n
    assert all(0 < chance <= 1 for chance in places.probability)


@pytest.mark.parametrize(("n", "k"), [(6, 1), (6, 2), (12, 2), (3, 2), (2, 2), (4, 1)])
def test_position_probabilities_are_those_of_the_choice(n: int, k: int) -> None:
    """q of every memory, ranked ones too, equals its share over all equally likely choices of places."""
    window = list(range(n - max(k, n - 2), n))
    share: dict[tuple[int, int], float] = {}
    choices = list(itertools.combinations(window, k))
    for taken in choices:
        others = [p for p in range(n) if p not in taken]
        for turn, p in enumerate(others):
            share[turn, p] = share.get((turn, p), 0.0) + 1 / len(choices)
    for packet in range(50):
        places = place(n, k, chance_of(SALT, str(packet), SETTINGS.policy))
        others = [p for p in range(n) if p not in places.drawn]
        for turn, p in enumerate(others):
            assert places.probability[p] == pytest.approx(share[turn, p])
        for p in places.drawn:
            assert places.probability[p] == pytest.approx(1 / len(window))


def test_slots_grow_with_the_packet() -> None:
    """No slot below 6 items, one from 6, two from 12."""
    assert [default_slots(n) for n in (1, 5, 6, 11, 12, 200)] == [0, 0, 1, 1, 2, 2]


def test_least_fit_falls_back_to_the_floor() -> None:
    """Where nothing is ranked only the floor counts; else a share of the last ranked memory's fit."""
    assert least_fit(SETTINGS, None) == SETTINGS.floor
    assert least_fit(SETTINGS, 0.5) == pytest.approx(0.3)
    assert least_fit(SETTINGS, 0.01) == SETTINGS.floor
