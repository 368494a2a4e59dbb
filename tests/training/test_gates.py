from __future__ import annotations

import re
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from sidecar.audit.metrics import ndcg_at, order
from sidecar.features import FEATURE_NAMES
from sidecar.store.log import LogRow
from sidecar.weights import make_weights
from tests.training.logs import HOUR, make_packet, make_report
from tests.training.logs import START as AT
from tests.training.made import Agent, Truth, make_dataset
from tests.training.test_dataset import PLAIN
from training.dataset import Cutoffs, Dataset, build_dataset
from training.gates import (
    Gate,
    GateSettings,
    changed,
    coverage,
    data_gates,
    fit_gates,
    of_agents,
    refused,
    silent_agents,
)
from training.held_out import Shown, bootstrap, ndcg_by_session, served_scores, split_by_time
from training.linear import fit_linear
from training.model import Model
from training.movement import Candidates, MovementCaps, capped_movement, with_values
from training.off_policy import Estimate, OffPolicy
from training.pairs import MOST_ROWS, make_pairs
from training.promotion import (
    HeldOut,
    Promotion,
    compare,
    decide,
    namespace_gates,
    ndcg_gates,
    off_policy_gates,
    starvation_gates,
)
from training.run import TrainSettings, train

FOUR = ("semantic", "lexical", "handles", "context")
START = make_weights("start", dict.fromkeys(FOUR, 0.25))
SETTINGS = GateSettings()
TRUTH = Truth(dict(zip(FOUR, (0.4, 0.3, 0.2, 0.1), strict=True)), pool=4)
DEVIATION = 0.2
"""By session, of the difference in nDCG: what two near models differ by on packets of ten."""


def found(dataset: Dataset, settings: GateSettings = SETTINGS) -> dict[str, Gate]:
    """The gates that need no fit, by name."""
    agents = coverage(dataset)
    kept = of_agents(dataset, silent_agents(agents, settings))
    return {gate.gate: gate for gate in data_gates(dataset, make_pairs(dataset, kept), agents, settings)}


def test_enough_sound_data_pass_every_gate() -> None:
    """400 sessions of one agent that reports: nothing is refused, and every gate has words."""
    gates = found(make_dataset(TRUTH, sessions=400, seed=1))
    assert refused(list(gates.values())) == []
    assert all(gate.words.endswith(".") for gate in gates.values())


@pytest.mark.parametrize(
    ("truth", "sessions", "gate", "says"),
    [
        (replace(TRUTH, agents=(Agent("a", 0.0),)), 50, "sessions", "no report of use on any"),
        (replace(TRUTH, used=0.0), 50, "sessions", "none of their memories was used"),
        (TRUTH, 150, "sessions", "more are needed"),
        (replace(TRUTH, agents=(Agent("a", 0.1),)), 400, "report_share", "20% are needed"),
        (replace(TRUTH, memories=30), 400, "used_memories", "different memories were used"),
        (replace(TRUTH, memories=12, used=1.0, slope=60.0), 400, "used_memories", "widen the window"),
    ],
)
@pytest.mark.parametrize("form", ["linear", "curves"])
def test_missing_data_are_refused_in_words(truth: Truth, sessions: int, gate: str, says: str, form: str) -> None:
    """What is missing, how much, and how to get it; nothing is fitted, in neither form."""
    dataset = make_dataset(truth, sessions=sessions, seed=1)
    failed = found(dataset)[gate]
    assert failed.passed is False
    assert says in failed.words
    run = train(dataset, Model(START), TrainSettings(form=form))
    assert run.trained is None
    assert failed.words in [each.words for each in run.refusals]


def test_an_empty_log_is_said_to_be() -> None:
    """Without a packet nothing is computed, and the words say where packets come from."""
    gates = found(build_dataset([], Cutoffs(event=1, ingest=1)))
    assert "no packet in this window" in gates["sessions"].words
    assert gates["sessions"].passed is False


def test_one_memory_may_not_be_most_of_what_was_used() -> None:
    """A memory with more than a fifth of all uses is named."""
    dataset = make_dataset(TRUTH, sessions=400, seed=1)
    keys = dataset.memory_key.copy()
    keys[(dataset.used > 0) & (dataset.packet % 2 == 0)] = 7
    failed = found(replace(dataset, memory_key=keys))["one_memory"]
    assert failed.passed is False
    assert "'m00007'" in failed.words
    assert "pin it" in failed.words


def test_an_agent_that_hardly_reports_is_left_out_and_named() -> None:
    """It blocks nothing, and its few reports are not learned from."""
    truth = replace(TRUTH, agents=(Agent("heard", 0.7, share=0.3), Agent("silent", 0.02, share=0.7)))
    dataset = make_dataset(truth, sessions=2_000, seed=1)
    gate = found(dataset)["report_share"]
    assert gate.passed is True
    assert "'silent'" in gate.words
    assert gate.value == pytest.approx(0.7, abs=0.06)
    pairs = make_pairs(dataset, of_agents(dataset, silent_agents(coverage(dataset), SETTINGS)))
    assert {dataset.packets.agent[i] for i in dataset.packet[pairs.row]} == {"heard"}


def test_other_schemas_and_numbers_that_are_none_are_refused() -> None:
    """More than one feature schema; a NaN feature, by its packet and memory; a grade outside [0, 1]."""
    dataset = make_dataset(TRUTH, sessions=300, seed=1)
    assert found(replace(dataset, other_schemas={"old": 3}))["feature_schemas"].passed is False
    gate = found(replace(dataset, own_measures={"smartctx": 3}))["feature_schemas"]
    assert (gate.passed, "3 more are left out" in gate.words) == (True, True)
    features = dataset.features.copy()
    features[17, FEATURE_NAMES.index("lexical")] = np.nan
    failed = found(replace(dataset, features=features))["sound_numbers"]
    assert failed.passed is False
    assert "'p1'" in failed.words
    assert "lexical" in failed.words
    everyone_else = replace(build_dataset([]), other_schemas={"old": 3})
    assert "this version's features" in found(everyone_else)["sessions"].words
    grades = dataset.used.copy()
    grades[30] = 1.7
    assert found(replace(dataset, used=grades))["sound_numbers"].passed is False


def test_an_unsure_fit_is_refused() -> None:
    """Too few effective sessions, or a weight with a standard error above .05."""
    noisy = fit_linear(make_pairs(make_dataset(replace(TRUTH, slope=0.5), sessions=120, seed=1)), START, lambdas=(0.0,))
    gates = {gate.gate: gate for gate in fit_gates(noisy, SETTINGS)}
    assert gates["standard_errors"].passed is False
    assert "times the sessions" in gates["standard_errors"].words
    sure = fit_linear(make_pairs(make_dataset(TRUTH, sessions=1_000, seed=1)), START)
    assert refused(fit_gates(sure, SETTINGS)) == []
    loud = replace(sure, effective_sessions=80.0)
    assert [gate.gate for gate in refused(fit_gates(loud, SETTINGS))] == ["effective_sessions"]


def test_the_last_sessions_are_held_out_whole() -> None:
    """By their start, disjoint, a fifth and 50 at least."""
    dataset = make_dataset(replace(TRUTH, packets_a_session=3), sessions=400, seed=1)
    pairs = make_pairs(dataset)
    split = split_by_time(dataset, pairs, 0.2, 50)
    session = dataset.packets.session
    assert not set(session[split.fit]) & set(session[split.held_out])
    assert len(set(session[split.held_out])) == pytest.approx(0.2 * len(pairs.sessions), abs=2)
    assert dataset.packets.session_start[split.fit].max() < dataset.packets.session_start[split.held_out].min()
    few = split_by_time(dataset, make_pairs(dataset, session < 100), 0.2, 50)
    assert len(set(session[few.held_out & (session < 100)])) == pytest.approx(50, abs=2)


def test_ndcg_is_that_of_the_evaluation() -> None:
    """The vectorised figure against `sidecar.audit.metrics`, with ties."""
    dataset = make_dataset(TRUTH, sessions=60, seed=2)
    scores = np.round(served_scores(dataset, START), 1)
    mine = ndcg_by_session(dataset, scores, np.ones(60, bool), 5)
    for session, value in zip(mine.session.tolist(), mine.value.tolist(), strict=True):
        rows = np.flatnonzero(dataset.packet == session)
        by_id = {dataset.memory_id[dataset.memory_key[row]]: float(scores[row]) for row in rows}
        used = {dataset.memory_id[dataset.memory_key[row]] for row in rows if dataset.used[row] > 0}
        assert value == pytest.approx(ndcg_at(5, order(by_id), used), abs=1e-12)


def outcome(mean: float, seed: int, sessions: int = 400) -> Promotion:
    """What becomes of weights with that true difference."""
    apart = np.random.default_rng(seed).normal(mean, DEVIATION, sessions)
    difference = bootstrap(apart, rounds=SETTINGS.bootstrap_rounds, confidence=SETTINGS.confidence, seed=seed)
    gates = ndcg_gates(HeldOut(0.5, 0.5 + float(apart.mean()), difference), SETTINGS)
    return decide([], gates)


@pytest.mark.parametrize(("mean", "least", "most"), [(-0.02, 0, 0), (0.03, 80, 100), (0.0, 0, 11)])
def test_the_ndcg_gate_has_power_and_holds(mean: float, least: int, most: int) -> None:
    """Of 100 seeds with 400 held-out sessions and a deviation of .2: harmful never, helpful 80 times, nothing 5 %."""
    count = sum(outcome(mean, seed) is Promotion.AUTOMATIC for seed in range(100))
    assert least <= count <= most


def test_random_feedback_is_hardly_ever_promoted() -> None:
    """Fits on uses that have nothing to do with the memories: of 40 at most 7 would be promoted automatically."""
    promoted = 0
    for seed in range(40):
        dataset = make_dataset(replace(TRUTH, slope=0.0, pool=0), sessions=300, seed=seed)
        pairs = make_pairs(dataset)
        split = split_by_time(dataset, pairs, 0.2, 50)
        fit = fit_linear(make_pairs(dataset, split.fit), START, seed=seed, lambdas=(0.01, 0.3))
        moved = capped_movement(START, fit.weights, Candidates.of(dataset), MovementCaps())
        new = with_values(START, moved.weights)
        result = compare(
            dataset, served_scores(dataset, START), served_scores(dataset, new), split.held_out, SETTINGS, seed
        )
        promoted += ndcg_gates(result, SETTINGS)[0].passed is True
    assert promoted <= 7


def test_a_person_may_promote_what_surely_does_not_fall() -> None:
    """Lower bound above -.01 and a mean above 0; with too little it says how many sessions would do."""
    few = np.random.default_rng(4).normal(0.004, 0.05, 200)
    difference = replace(bootstrap(few, rounds=500, confidence=0.95, seed=1), mean=0.002, lower_bound=-0.004)
    gates = ndcg_gates(HeldOut(0.5, 0.502, difference), SETTINGS)
    assert decide([], gates) is Promotion.PERSON
    assert "sessions on" in gates[0].words
    assert decide([], ndcg_gates(HeldOut(0.5, 0.49, replace(difference, mean=-0.001)), SETTINGS)) is Promotion.REFUSED
    assert decide([Gate("x", 0.0, 1.0, False, "no.")], gates) is Promotion.REFUSED


def test_no_namespace_is_sacrificed_to_the_others() -> None:
    """Weights that serve most namespaces better and one surely worse are refused, with its name; none is judged by a
    few sessions, and bounds hold for all at once."""
    one, other = (make_dataset(replace(TRUTH, namespace="n"), sessions=400, seed=seed) for seed in (3, 4))
    names = ("many", "few", "odd")
    of_packet = np.array(names, dtype=object)[np.digitize(np.arange(400), [300, 320])]
    dataset = replace(one, packets=replace(one.packets, namespace=tuple(of_packet)))
    held_out = np.ones(400, bool)
    before = served_scores(dataset, START)
    odd = (of_packet == "odd")[dataset.packet]
    truth = np.where(dataset.used > 0, 1.0, 0.0)
    better = np.where(odd, -truth, truth)
    (gate,) = namespace_gates(dataset, before, better, held_out, SETTINGS)
    assert gate.passed is False
    assert "In 1 of 2 namespaces" in gate.words
    assert "'odd'" in gate.words
    (fine,) = namespace_gates(dataset, before, np.where(odd, before, truth), held_out, SETTINGS)
    assert fine.passed
    few = np.isin(of_packet, ["few"])
    (nobody,) = namespace_gates(dataset, before, better, few, SETTINGS)
    assert nobody.passed is None
    assert namespace_gates(other, served_scores(other, START), served_scores(other, START), held_out, SETTINGS) == []
    # By chance alone hardly any of many namespaces is said to lose.
    refused = 0
    for seed in range(40):
        dice = np.random.default_rng(seed)
        tenth = replace(one, packets=replace(one.packets, namespace=tuple(f"n{i % 10}" for i in range(400))))
        (gate,) = namespace_gates(tenth, dice.random(len(tenth)), dice.random(len(tenth)), held_out, SETTINGS)
        refused += gate.passed is False
    assert refused <= 7  # 99 % bound of 5 % in 40


def test_starvation_must_not_get_worse() -> None:
    """A model that shows fewer memories is refused, whatever its nDCG."""
    old, same, worse = Shown(0.5, 0.1, 0.2), Shown(0.51, 0.1, 0.2), Shown(0.5, 0.1, 0.3)
    assert refused(starvation_gates(old, same, SETTINGS)) == []
    assert [gate.gate for gate in refused(starvation_gates(old, worse, SETTINGS))] == ["starvation_never"]


def off_policy(snips: tuple[float, float], dr: tuple[float, float], sufficient: bool = True) -> OffPolicy:
    estimates = {
        name: Estimate(0.3, sum(pair) / 2, *pair) for name, pair in (("SNIPS", snips), ("DR", dr), ("IPS", dr))
    }
    return OffPolicy(estimates, 100, 60, 80.0, sufficient)


@pytest.mark.parametrize(
    ("given", "names"),
    [
        (None, {"off_policy": None}),
        (off_policy((-0.3, -0.1), (-0.3, -0.1), sufficient=False), {"off_policy": None}),
        (off_policy((-0.1, 0.1), (-0.1, 0.1)), {"off_policy": True, "off_policy_agreement": True}),
        (off_policy((-0.3, -0.1), (-0.2, 0.1)), {"off_policy": False, "off_policy_agreement": True}),
        (off_policy((0.2, 0.3), (-0.1, 0.1)), {"off_policy": True, "off_policy_agreement": False}),
    ],
)
def test_the_reserved_slots_are_heard(given: OffPolicy | None, names: dict[str, Any]) -> None:
    """INSUFFICIENT neither passes nor blocks, harm refuses, and so does a contradiction between estimators."""
    assert {gate.gate: gate.passed for gate in off_policy_gates(given)} == names


def test_settings_are_named_and_checked() -> None:
    """A gate's threshold is set by its name; an unknown one is an error that lists them."""
    assert changed(SETTINGS, {"least_fit_sessions": "80", "top_k": "5"}).least_fit_sessions == 80
    with pytest.raises(ValueError, match="there is no gate setting 'leest'; there are least_fit_sessions"):
        changed(SETTINGS, {"leest": "1"})
    with pytest.raises(ValueError, match="must be a number"):
        changed(SETTINGS, {"top_k": "many"})


@pytest.mark.parametrize(
    ("name", "value", "says"),
    [
        ("confidence", "2", "must be from 0.5 to 0.999"),
        ("confidence", "nan", "must be from 0.5 to 0.999"),
        ("bootstrap_rounds", "0", "must be from 100 to 100,000"),
        ("top_k", "0", "must be from 1 to 1,000"),
        ("held_out_share", "5", "must be from 0.0 to 0.9"),
        ("held_out_share", "nan", "must be from 0.0 to 0.9"),
        ("most_standard_error", "0", "must be from 0.001 to 100.0"),
        ("most_starvation", "inf", "must be from 0.0 to 1.0"),
        ("least_fit_sessions", "0", "must be from 1 to 1,000,000,000"),
        ("least_curve_folds", "-1", "must be from 0 to 100"),
    ],
)
def test_a_setting_out_of_bounds_is_refused(name: str, value: str, says: str) -> None:
    """In words with the setting, the value and both bounds; NaN is within none."""
    with pytest.raises(ValueError, match=re.escape(f"{name} is {value!r}; {says}")):
        changed(SETTINGS, {name: value})


def test_every_default_and_bound_is_taken() -> None:
    """What a setting is without being set, and the ends of its range, may be written out."""
    for each in fields(GateSettings):
        for value in (each.default, each.metadata["low"], each.metadata["high"]):
            assert getattr(changed(SETTINGS, {each.name: str(value)}), each.name) == value


def test_open_packets_are_said_not_to_count() -> None:
    """One of five was reported on and four are OPEN: the share is of one packet, and the words say so."""
    packets = [make_packet(f"p{number}", PLAIN, create_time=AT + number) for number in range(5)]
    rows: list[LogRow] = [*packets, make_report("p0", ["p0-m0"], at=AT + HOUR)]
    gate = found(build_dataset(rows, Cutoffs(event=AT + HOUR, ingest=AT + 2 * HOUR)))["report_share"]
    assert (gate.value, gate.passed) == (1.0, True)
    assert gate.words.startswith("Of 1 packet 100% were reported on. 4 more have no report yet: still OPEN")


def test_the_page_has_every_gate_and_setting() -> None:
    """docs/training.md names each, with its default."""
    page = (Path(__file__).parents[2] / "docs" / "training.md").read_text()
    for each in fields(GateSettings):
        assert re.search(rf"`{each.name}` {re.escape(f'{each.default:g}')}\b", page), each.name
    dataset = make_dataset(TRUTH, sessions=300, seed=1)
    gates = {*found(dataset), *(gate.gate for gate in fit_gates(fit_linear(make_pairs(dataset), START), SETTINGS))}
    gates |= {gate.gate for gate in off_policy_gates(off_policy((-0.1, 0.1), (-0.1, 0.1)))}
    gates |= {gate.gate for gate in starvation_gates(Shown(0, 0, 0), Shown(0, 0, 0), SETTINGS)}
    assert [gate for gate in sorted({*gates, "ndcg", "ndcg_by_a_person"}) if f"`{gate}`" not in page] == []


def test_a_huge_packet_is_sampled_by_its_hardest_memories() -> None:
    """12,000 memories in one packet, half of them used: pairs of the first used and unused ones, and all others'."""
    dataset = make_dataset(replace(TRUTH, items=12_000, memories=12_000, used=6_000.0), sessions=1, seed=1)
    pairs = make_pairs(dataset)
    assert len(pairs) == MOST_ROWS**2
    assert dataset.place[pairs.row].max() < 500
