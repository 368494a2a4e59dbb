"""Weights of importance from use, with a known truth."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from sidecar.domain import Floats
from sidecar.features import FEATURE_NAMES, RAW_NAMES
from sidecar.importance.settings import SignalWeights
from tests.training.made import Truth, make_dataset
from training.dataset import Dataset
from training.importance_fit import LEARNED, LEAST_SESSIONS, fit_domain, signals

COMMON = SignalWeights()
TRUTH = {"content": 0.10, "access": 0.55, "emotion": 0.05, "context": 0.05}
"""What use follows; with the user's .25 they sum to 1."""


def used_by(truth: dict[str, float], *, sessions: int, seed: int, slope: float = 12.0) -> tuple[Dataset, Floats]:
    """A log in which what is used follows a weighted sum of the signals, and those signals."""
    dataset = make_dataset(Truth({"semantic": 1.0}), sessions=sessions, seed=seed)
    dice = np.random.default_rng(seed)
    values = dice.random((len(dataset), len(LEARNED)))
    score = values @ np.array([truth[name] for name in LEARNED])
    used = dice.random(len(dataset)) < 1 / (1 + np.exp(-slope * (score - np.quantile(score, 0.8))))
    dataset = replace(dataset, used=used.astype(float), unused=(~used).astype(float), task_fit=np.zeros(len(dataset)))
    return dataset, values


def distance(one: SignalWeights, other: dict[str, float]) -> float:
    weights = one.by_name()
    return sum(abs(weights[name] - other[name]) for name in LEARNED)


def test_weights_move_to_what_use_follows() -> None:
    """Many sessions bring them most of the way; held-out use says that they are better; the user's weight stays."""
    dataset, values = used_by(TRUTH, sessions=600, seed=1)
    fit = fit_domain(dataset, values, COMMON)
    assert fit.is_better
    assert distance(fit.weights, TRUTH) < 0.4 * distance(COMMON, TRUTH)
    assert fit.weights.user == COMMON.user
    assert sum(fit.weights.by_name().values()) == pytest.approx(1.0, abs=1e-9)


def test_few_sessions_move_little_and_none_move_nothing() -> None:
    """They are held back as by 30 memories; below the least number nothing is said."""
    many, few = (
        fit_domain(*used_by(TRUTH, sessions=sessions, seed=2), COMMON).weights for sessions in (600, LEAST_SESSIONS + 5)
    )
    assert 0 < distance(few, COMMON.by_name()) < 0.7 * distance(many, COMMON.by_name())
    silent = fit_domain(*used_by(TRUTH, sessions=LEAST_SESSIONS - 5, seed=2), COMMON)
    assert silent.weights == COMMON
    assert silent.gain is None
    assert not silent.is_better


def test_random_use_is_no_better() -> None:
    """Of 20 logs in which use follows nothing at most 3 are called better (one in 20 is expected)."""
    called = 0
    for seed in range(20):
        dataset, values = used_by(TRUTH, sessions=120, seed=seed, slope=0.0)
        called += fit_domain(dataset, values, COMMON).is_better
    assert called <= 3


def test_what_fits_the_task_better_is_not_credited_to_importance() -> None:
    """Use follows the task's fit, which content goes with: only memories of like fit are compared, and content gains
    next to nothing."""
    dataset, values = used_by(TRUTH, sessions=400, seed=3, slope=0.0)
    dice = np.random.default_rng(3)
    fit = dice.random(len(dataset))
    used = dice.random(len(dataset)) < 1 / (1 + np.exp(-12 * (fit - 0.8)))
    values[:, LEARNED.index("content")] = np.clip(fit + dice.normal(0, 0.3, len(fit)), 0, 1)
    dataset = replace(dataset, task_fit=fit, used=used.astype(float), unused=(~used).astype(float))
    content = fit_domain(dataset, values, COMMON).weights.content
    blind = fit_domain(replace(dataset, task_fit=np.zeros(len(fit))), values, COMMON).weights.content
    assert content - COMMON.content < 0.3 * (blind - COMMON.content)


def test_a_signal_that_was_never_seen_keeps_its_weight() -> None:
    """Emotion is off in most namespaces: nothing is learned of it."""
    dataset, values = used_by(TRUTH, sessions=300, seed=4)
    values[:, LEARNED.index("emotion")] = np.nan
    assert fit_domain(dataset, values, COMMON).weights.emotion == COMMON.emotion


def test_signals_are_those_of_the_time_of_serving() -> None:
    """Access goes by the sessions that had used a memory by then; nobody's report is no zero; a packet without a
    context has none."""
    dataset = make_dataset(Truth({"semantic": 1.0}), sessions=2, seed=5)
    raw = np.zeros((len(dataset), len(RAW_NAMES)))
    raw[0, RAW_NAMES.index("use_sessions")] = raw[0, RAW_NAMES.index("reported_sessions")] = 9
    raw[1, RAW_NAMES.index("reported_sessions")] = 3
    features = dataset.features.copy()
    features[dataset.packet == 1, FEATURE_NAMES.index("context")] = 0.5
    dataset = replace(dataset, raw=raw, features=features)
    first = (dataset.packets.namespace[0], dataset.memory_id[dataset.memory_key[0]])
    values = signals(dataset, {first: {"content": 0.7, "emotion": None}})
    content, access, emotion, context = values.T
    assert content[0] == 0.7
    assert access[0] == pytest.approx(0.6 + 0.4)
    assert access[1] == pytest.approx(0.4)
    assert np.isnan(access[2])
    assert np.isnan(emotion).all()
    assert np.isnan(context[dataset.packet == 0]).all()
    assert (context[dataset.packet == 1] == 0.5).all()
