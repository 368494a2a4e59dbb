"""The weights of wordings that are shipped are those that the shipped pairs give."""

from __future__ import annotations

import json

import numpy as np
import pytest

from sidecar.importance.wording import FILE
from training.wording_fit import PAIRS, SIDES, Pair, agreement, bounds_of, fit, loss_of, names_of, read_pairs


@pytest.fixture(scope="module")
def pairs() -> list[Pair]:
    return read_pairs(PAIRS)


def test_the_shipped_weights_are_where_the_loss_is_least(pairs: list[Pair]) -> None:
    """As far as three decimals go, and signs that are given: from zero to them the gradient falls to a fiftieth."""
    shipped = json.loads(FILE.read_text(encoding="utf-8"))
    names = names_of(pairs)
    loss, count = loss_of(pairs, names)
    weights = np.array([shipped[side]["weights"].get(name, 0.0) for side, name in names])
    assert {name for side in SIDES for name in shipped[side]["weights"]} <= {name for _, name in names}
    at_zero, before = loss(np.zeros(count))
    at_shipped, after = loss(weights)
    assert at_shipped < at_zero / 2
    held = [
        weight == 0.0 and ((least == 0.0 and slope > 0) or (most == 0.0 and slope < 0))
        for weight, slope, (least, most) in zip(weights, after, bounds_of(names), strict=True)
    ]
    assert np.abs(after[~np.array(held)]).max() < np.abs(before).max() / 50


def test_what_is_fitted_to_some_holds_for_others(pairs: list[Pair]) -> None:
    """Every tenth pair of each author left out, in all languages."""
    left_out = pairs[::10]
    found = fit([pair for at, pair in enumerate(pairs) if at % 10])
    assert agreement(found, left_out) > 0.88
