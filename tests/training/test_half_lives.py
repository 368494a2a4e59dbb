from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from sidecar.features import FEATURE_NAMES, PARTLY_FED_BY_USE, RAW_NAMES
from sidecar.weights import make_weights
from tests.training.made import Truth, make_dataset
from training.dataset import Dataset
from training.half_lives import fit_half_lives, moved, with_half_lives
from training.pairs import make_pairs

RECENCY = FEATURE_NAMES.index("recency")
WEIGHTS = make_weights("w", {"semantic": 0.5, "recency": 0.5}, use_family_cap=1.0)


def aged(days: float, sessions: int, seed: int) -> Dataset:
    """Memories of two kinds and up to 400 days old; uses follow recency at that half-life, 'fact' at the served 90."""
    dice = np.random.default_rng(seed)
    dataset = make_dataset(Truth({"semantic": 1.0}), sessions=sessions, seed=seed)
    n = len(dataset)
    age = dice.uniform(0, 400, n)
    kind = dice.integers(0, 2, n).astype(np.int32)
    raw = np.zeros((n, len(RAW_NAMES)))
    raw[:, RAW_NAMES.index("age_days")] = raw[:, RAW_NAMES.index("create_age_days")] = age
    true = np.exp2(-age / np.where(kind == 0, days, 90.0))
    odds = 3 * dataset.features[:, FEATURE_NAMES.index("semantic")] + 5 * true
    used = dice.random(n) < 1 / (1 + np.exp(5.5 - odds))
    features = dataset.features.copy()
    features[:, RECENCY] = np.exp2(-age / np.where(kind == 0, 180.0, 90.0))
    without = dataset.without_use.copy()
    without[:, PARTLY_FED_BY_USE.index("recency")] = features[:, RECENCY]
    return replace(
        dataset,
        kinds=("decision", "fact"),
        kind=kind,
        raw=raw,
        features=features,
        without_use=without,
        used=used.astype(float),
        unused=(~used).astype(float),
    )


def test_a_half_life_moves_to_where_use_says_and_by_one_halving_at_most() -> None:
    """Decisions are used as if they aged three times as fast: from 180 days to 90 in one run; facts stay."""
    dataset = aged(60.0, sessions=1_000, seed=1)
    found = {each.kind: each for each in fit_half_lives(dataset, make_pairs(dataset), WEIGHTS)}
    assert found["decision"].best == pytest.approx(60.0, rel=0.3)
    assert found["decision"].new == 90.0
    assert found["fact"].new == pytest.approx(90.0, rel=0.5)
    assert moved(list(found.values()))["decision"] == 90.0


def test_a_right_half_life_stays() -> None:
    """Where use follows the half-life that serves, chance moves it in few of 8 logs."""
    count = 0
    for seed in range(8):
        dataset = aged(180.0, sessions=300, seed=seed)
        count += "decision" in moved(fit_half_lives(dataset, make_pairs(dataset), WEIGHTS))
    assert count <= 2


def test_too_little_is_no_reason_to_move() -> None:
    """Kinds of few sessions, memories without ages and kinds that were not logged keep their half-life."""
    dataset = aged(10.0, sessions=20, seed=1)
    assert fit_half_lives(dataset, make_pairs(dataset), WEIGHTS) == []
    many = aged(10.0, sessions=300, seed=1)
    assert fit_half_lives(replace(many, raw=np.zeros_like(many.raw)), make_pairs(many), WEIGHTS) == []
    unnamed = replace(many, kinds=("", "fact"))
    assert [each.kind for each in fit_half_lives(unnamed, make_pairs(unnamed), WEIGHTS)] == ["fact"]


def test_a_data_set_is_aged_anew_for_the_kinds_that_are_named() -> None:
    """Others keep what was logged, to the last bit."""
    dataset = aged(60.0, sessions=10, seed=1)
    again = with_half_lives(dataset, {"decision": 90.0})
    decisions = dataset.kind == 0
    assert again.features[~decisions].tobytes() == dataset.features[~decisions].tobytes()
    age = dataset.raw[decisions, RAW_NAMES.index("age_days")]
    assert again.features[decisions, RECENCY] == pytest.approx(np.exp2(-age / 90.0))
    assert with_half_lives(dataset, {}) is dataset
