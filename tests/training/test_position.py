from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from sidecar.domain import Segment
from tests.training.made import Truth, make_dataset
from training.dataset import SEGMENTS, Dataset
from training.pairs import make_pairs
from training.position import LEAST_EXPOSURES, estimate_positions

TRUTH = Truth({"semantic": 1.0}, slope=0.0, used=4.0)


def drawn(late: float, packets: int, seed: int = 1) -> Dataset:
    """Packets of twelve with one reserved memory at a place that chance gave, from the third on; of those from the
    eighth on a use is seen with the probability `late`, of the others always."""
    dataset = make_dataset(TRUTH, sessions=packets, seed=seed)
    dice = np.random.default_rng(seed)
    places = dice.integers(3, 13, packets)
    segment = dataset.segment.copy()
    segment[np.arange(packets) * 12 + places - 1] = SEGMENTS.index(Segment.RESERVED)
    unseen = (dataset.used > 0) & (dataset.place >= 8) & (dice.random(len(dataset)) > late)
    return replace(
        dataset,
        segment=segment,
        used=np.where(unseen, 0.0, dataset.used),
        unused=np.where(unseen, 1.0, dataset.unused),
    )


def every(dataset: Dataset) -> np.ndarray:
    return np.ones(len(dataset.packets), bool)


def test_places_that_are_looked_at_less_are_found() -> None:
    """Half the looks from the eighth place on: theta near .5 there, near 1 between, and pairs are weighted by it."""
    dataset = drawn(0.5, 6_000)
    found = estimate_positions(dataset, every(dataset))
    bins = {each.name: each for each in found.bins}
    assert found.in_use
    assert found.reference == "early"
    assert bins["late"].theta == pytest.approx(0.5, abs=0.08)
    assert bins["late"].high < 1.0
    assert bins["middle"].low < 1.0 < bins["middle"].high
    theta = found.of_rows(dataset)
    assert theta is not None
    assert set(theta[dataset.place == 1]) == {1.0}  # no draw ever gave the first place
    plain, weighted = make_pairs(dataset), make_pairs(dataset, theta=theta)
    late = dataset.place[plain.row[plain.better]] >= 8
    assert weighted.weight[late] / plain.weight[late] == pytest.approx(1 / bins["late"].theta)


def test_alike_places_stay_alike() -> None:
    """Where every place is looked at alike, two intervals of 95 % give theta in few of 40 logs."""
    used = 0
    for seed in range(40):
        dataset = drawn(1.0, 3_000, seed)
        used += estimate_positions(dataset, every(dataset)).in_use
    assert used <= 9


def test_too_few_draws_say_nothing() -> None:
    """Below the least number of exposures in two bins there is no theta, and where nothing was used no interval."""
    few = drawn(0.1, LEAST_EXPOSURES)
    assert estimate_positions(few, every(few)).of_rows(few) is None
    many = drawn(0.1, 3_000)
    silent = replace(many, used=np.zeros_like(many.used), unused=np.ones_like(many.unused))
    assert not estimate_positions(silent, every(silent)).in_use


def swapped(dataset: Dataset, second: float, packets: int, seed: int = 1) -> Dataset:
    """The same, and in every packet the first two places were given by chance; a use at the second place is seen with
    the probability `second`."""
    dice = np.random.default_rng(seed)
    unseen = (dataset.used > 0) & (dataset.place == 2) & (dice.random(len(dataset)) > second)
    return replace(
        dataset,
        position_probability=np.where(dataset.place <= 2, 0.5, dataset.position_probability),
        used=np.where(unseen, 0.0, dataset.used),
        unused=np.where(unseen, 1.0, dataset.unused),
    )


def test_the_first_place_is_known_where_neighbours_swapped() -> None:
    """The second is looked at .7 times as often as the first, the late ones half as often as the other drawn ones: all
    are then known against the first, and chained intervals are wider."""
    dataset = swapped(drawn(0.5, 6_000), 0.7, 6_000)
    found = estimate_positions(dataset, every(dataset))
    bins = {each.name: each for each in found.bins}
    assert (found.reference, found.in_use) == ("first", True)
    assert bins["early"].theta == pytest.approx(0.7, abs=0.05)
    assert bins["early"].high < 1.0
    assert bins["late"].theta == pytest.approx(0.5 * bins["early"].theta, abs=0.08)
    alone = {each.name: each for each in estimate_positions(drawn(0.5, 6_000), every(dataset)).bins}
    assert bins["late"].high / bins["late"].low > alone["late"].high / alone["late"].low
    # One of the two alone was no swap; nor is a packet whose first places a draw could have had.
    half = replace(dataset, position_probability=np.where(dataset.place == 1, 0.5, 1.0))
    assert estimate_positions(half, every(half)).reference == "early"
