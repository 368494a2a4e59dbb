from __future__ import annotations

import time

import numpy as np
import pytest
from scipy.optimize import approx_fprime

from sidecar.features import FEATURE_NAMES, PARTLY_FED_BY_USE
from sidecar.weights import Weights, contributions, make_weights
from tests.training.made import Agent, Truth, make_dataset
from training.linear import LAMBDAS, Problem, fit_linear, varying
from training.movement import Candidates, MovementCaps, capped_movement, with_values
from training.pairs import make_pairs

FOUR = ("semantic", "lexical", "handles", "context")
START = make_weights("start", dict.fromkeys(FOUR, 0.25))


def learned(
    truth: Truth, *, sessions: int, seed: int = 1, start: Weights = START, prior: bool = True
) -> dict[str, float]:
    """The weights that a fit finds, by feature."""
    dataset = make_dataset(truth, sessions=sessions, seed=seed)
    found = fit_linear(make_pairs(dataset), start, lambdas=LAMBDAS if prior else (0.0,), seed=seed)
    return dict(zip(FEATURE_NAMES, found.weights.tolist(), strict=True))


def test_the_truth_is_learned_and_a_weight_of_nothing_stays_nothing() -> None:
    """From equal weights and (.4, .3, .3, 0) as the truth, each weight comes within .03 of it."""
    found = learned(Truth(dict(zip(FOUR, (0.4, 0.3, 0.3, 0.0), strict=True))), sessions=2_000)
    assert [found[name] for name in FOUR] == pytest.approx([0.4, 0.3, 0.3, 0.0], abs=0.03)
    assert sum(found.values()) == pytest.approx(1.0)


@pytest.mark.parametrize("seed", [1, 2])
def test_missing_reports_that_tell_something_bend_no_weight(seed: int) -> None:
    """Agents that report 70 % and 5 %, more often after some packets than others: within .03 of the truth, no prior."""
    agents = (Agent("often", 0.7), Agent("seldom", 0.05))
    truth = Truth(dict(zip(FOUR, (0.4, 0.3, 0.3, 0.0), strict=True)), agents=agents, informative=True)
    found = learned(truth, sessions=20_000, seed=seed, prior=False)
    assert [found[name] for name in FOUR] == pytest.approx([0.4, 0.3, 0.3, 0.0], abs=0.03)


def test_slopes_are_what_differences_say_also_where_caps_bind() -> None:
    """The analytic slope against finite differences, with feature caps and the family cap at work."""
    dice = np.random.default_rng(3)
    names = ("semantic", "lexical", "recency", "use_rate", "frequency", "importance", "rating")
    dataset = make_dataset(Truth(dict.fromkeys(names, 1 / 7)), sessions=40, seed=2)
    weights = make_weights(
        "capped", dict.fromkeys(names, 0.14), caps={"semantic": 0.05, "use_rate": 0.06}, use_family_cap=0.2
    )
    pairs = make_pairs(dataset)
    problem = Problem.of(pairs, weights, varying(pairs))
    for _ in range(5):
        v = dice.uniform(0.2, 3.0, len(problem.columns))
        slope = problem.loss(v)[1]
        near = approx_fprime(v, lambda x: problem.loss(x)[0], 1e-7)
        assert slope == pytest.approx(near, abs=2e-5)
        assert problem.session_slopes(v).sum(axis=0) == pytest.approx(slope, abs=1e-9)


def test_scores_inside_the_fit_are_the_served_ones() -> None:
    """Whatever the scale, a row's score in the fit is scale times what serving gives it."""
    names = ("semantic", "recency", "use_rate", "frequency", "importance")
    dataset = make_dataset(Truth(dict.fromkeys(names, 0.2)), sessions=30, seed=5)
    weights = make_weights("w", dict.fromkeys(names, 0.2), caps={"recency": 0.1}, use_family_cap=0.25)
    pairs = make_pairs(dataset)
    problem = Problem.of(pairs, weights, varying(pairs))
    u, scale = problem.spread(7.0 * weights.values[problem.columns])
    own = {name: pairs.without_use[:, k] for k, name in enumerate(PARTLY_FED_BY_USE)}
    served = contributions(pairs.features, own, weights).score
    assert problem.rows.scores(u, scale) / scale == pytest.approx(served, abs=1e-12)


def test_a_feature_that_does_not_vary_keeps_its_weight() -> None:
    """The fitted ones share the rest, and nothing is said of its error."""
    start = make_weights("start", {**dict.fromkeys(FOUR, 0.2), "relevance": 0.2})
    dataset = make_dataset(Truth(dict(zip(FOUR, (0.4, 0.3, 0.3, 0.0), strict=True))), sessions=1_000, seed=1)
    found = fit_linear(make_pairs(dataset), start)
    relevance = FEATURE_NAMES.index("relevance")
    assert found.weights[relevance] == 0.2
    assert np.isnan(found.standard_errors[relevance])
    assert found.weights.sum() == pytest.approx(1.0)
    assert found.weights[FEATURE_NAMES.index("semantic")] == pytest.approx(0.4 * 0.8, abs=0.04)


def test_nothing_to_learn_keeps_the_weights() -> None:
    """Without a pair the old weights stand; so do they where the fit says nothing but 0."""
    nothing = make_dataset(Truth(dict.fromkeys(FOUR, 0.25), agents=(Agent("silent", 0.0),)), sessions=20, seed=1)
    assert fit_linear(make_pairs(nothing), START).weights.tolist() == START.values.tolist()
    against = make_dataset(Truth(dict.fromkeys(FOUR, 0.25), slope=-6.0), sessions=400, seed=1)
    assert fit_linear(make_pairs(against), START).weights.tolist() == START.values.tolist()


def test_standard_errors_are_those_of_a_repeated_experiment() -> None:
    """The mean stated error is near the spread of the weights over 40 logs of the same truth."""
    truth = Truth(dict(zip(FOUR, (0.4, 0.3, 0.2, 0.1), strict=True)), packets_a_session=3)
    found, errors = [], []
    for seed in range(40):
        fit = fit_linear(make_pairs(make_dataset(truth, sessions=150, seed=seed)), START, lambdas=(0.0,))
        found.append(fit.weights[fit.fitted])
        errors.append(fit.standard_errors[fit.fitted])
    ratio = np.mean(errors, axis=0) / np.std(found, axis=0, ddof=1)
    assert ratio == pytest.approx(np.ones(4), abs=0.35)


def test_few_data_stay_close_to_the_old_weights() -> None:
    """With 60 sessions the chosen prior keeps a right old model nearer the truth than no prior would."""
    truth = Truth({"semantic": 0.4, "lexical": 0.3, "handles": 0.2, "context": 0.1})
    old = make_weights("old", truth.weights)
    few = [learned(truth, sessions=60, seed=seed, start=old) for seed in range(5)]
    free = [learned(truth, sessions=60, seed=seed, start=old, prior=False) for seed in range(5)]

    def away(found: dict[str, float]) -> float:
        return sum(abs(found[name] - truth.weights[name]) for name in FOUR)

    assert np.mean([away(each) for each in few]) < np.mean([away(each) for each in free])


def test_an_agent_weighs_no_more_than_its_share() -> None:
    """Where others report, one agent's pairs have at most the stated share of all weight."""
    agents = (Agent("loud", 1.0, share=0.95), Agent("quiet", 1.0, share=0.05))
    dataset = make_dataset(Truth(dict.fromkeys(FOUR, 0.25), agents=agents), sessions=600, seed=4)
    pairs = make_pairs(dataset)
    packet = dataset.packet[pairs.row[pairs.better]]
    loud = np.array([name == "loud" for name in dataset.packets.agent])[packet]
    assert pairs.weight.sum() == pytest.approx(1.0)
    assert pairs.weight[loud].sum() == pytest.approx(0.9, abs=0.03)
    free = make_pairs(dataset, max_agent_share=1.0)
    assert free.weight[loud].sum() == pytest.approx(0.95, abs=0.03)


def test_a_session_weighs_the_same_however_many_packets_it_has() -> None:
    """One packet or nine: the session's pairs sum to the same."""
    dataset = make_dataset(Truth(dict.fromkeys(FOUR, 0.25), packets_a_session=9), sessions=50, seed=1)
    weight = make_pairs(dataset).session_weight
    assert weight == pytest.approx(np.full(len(weight), 1 / len(weight)), rel=1e-9)


def test_movement_is_capped_along_the_way() -> None:
    """L1 .20, .05 each, and 80 % of the top K kept; the reason is named, and all the way is allowed when it is near."""
    dataset = make_dataset(Truth(dict.fromkeys(FOUR, 0.25), pool=8), sessions=60, seed=1)
    candidates = Candidates.of(dataset)
    far = make_weights("far", {"semantic": 1.0}).values
    moved = capped_movement(START, far, candidates, MovementCaps())
    assert moved.step == pytest.approx(0.05)
    assert moved.l1 <= 0.2
    assert "one weight" in moved.stopped_by
    near = START.values + 0.001 * (far - START.values)
    assert capped_movement(START, near, candidates, MovementCaps()).eta == 1.0
    free = MovementCaps(max_l1=9.0, max_step=9.0)
    by_overlap = capped_movement(START, far, candidates, free)
    assert 0.0 < by_overlap.eta < 1.0
    assert by_overlap.overlap >= 0.8
    assert "top 10" in by_overlap.stopped_by
    onward = with_values(START, START.values + min(1.0, by_overlap.eta * 1.1) * (far - START.values))
    before, after = (candidates.top(candidates.scores(each), 10) for each in (START, onward))
    assert len(np.intersect1d(before, after)) < 0.85 * len(before)


def test_the_fit_is_the_same_every_time() -> None:
    """Same data and seed, same bits."""
    dataset = make_dataset(Truth(dict.fromkeys(FOUR, 0.25)), sessions=100, seed=1)
    one, other = (fit_linear(make_pairs(dataset), START, seed=7) for _ in range(2))
    assert one.weights.tobytes() == other.weights.tobytes()
    assert one.standard_errors.tobytes() == other.standard_errors.tobytes()


def test_ten_thousand_packets_fit_in_seconds() -> None:
    """A tenth of the size that is measured elsewhere, with a generous bound."""
    truth = Truth(dict.fromkeys(FOUR, 0.25), packets_a_session=2)
    dataset = make_dataset(truth, sessions=5_000, seed=1)
    began = time.monotonic()
    fit_linear(make_pairs(dataset), START)
    assert time.monotonic() - began < 30
