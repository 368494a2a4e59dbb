"""Curves: from a log to a model that serves."""

from __future__ import annotations

import functools
import json
import operator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

from sidecar.cli.failures import ExitCode
from sidecar.cli.group import cli
from sidecar.domain import Floats
from sidecar.features import FEATURE_NAMES
from sidecar.weights import Weights, contributions, make_curve_weights, make_weights
from sidecar.weights.artifact import read_artifact
from tests.promises.frozen import text
from tests.training.logs import features_of, log_of, make_packet, make_report, write_log
from tests.training.made import Truth, make_dataset
from tests.training.test_end_to_end import moving, trained, work
from training.curves import STEPS, as_curve, blended, capped_curves, fit_curves, ranking_of
from training.dataset import Dataset, build_dataset
from training.gates import GateSettings
from training.lambdarank import curves_of
from training.model import Model
from training.movement import Candidates, MovementCaps
from training.pairs import MOST_ROWS, make_pairs
from training.promotion import Promotion
from training.run import Run, TrainSettings, train

FOUR = ("semantic", "lexical", "handles", "context")
TRUTH = Truth(dict(zip(FOUR, (0.4, 0.3, 0.3, 0.0), strict=True)), slope=9.0, pool=3)
START = make_weights("start", {**dict.fromkeys(FOUR, 0.2), "importance": 0.2})
LOWER = GateSettings(least_curve_sessions=500, most_standard_error=0.2)
FLAGS = [
    flag
    for name, value in (
        ("least_fit_sessions", 60),
        ("least_held_out_sessions", 30),
        ("most_standard_error", 0.5),
        ("least_curve_sessions", 100),
        ("least_effective_sessions", 40),
        ("least_used_memories", 20),
    )
    for flag in ("--gate", f"{name}={value}")
]


def bent(dataset: Dataset) -> Dataset:
    """The same uses of features that were measured on another scale: what mattered evenly is now all in the top fifth
    of one feature and the bottom fifth of another, as no straight line can say."""
    semantic, lexical = (FEATURE_NAMES.index(name) for name in FOUR[:2])

    def measured(values: Floats) -> Floats:
        found = values.copy()
        found[:, semantic] **= 0.1
        found[:, lexical] **= 8
        return found

    return replace(dataset, features=measured(dataset.features), pool_features=measured(dataset.pool_features))


@pytest.fixture(scope="module")
def run() -> Run:
    """A run in a world of bent features, from straight and equal weights."""
    dataset = bent(make_dataset(TRUTH, sessions=900, seed=1))
    return train(dataset, Model(START), TrainSettings(form="curves", gates=LOWER))


def test_curves_win_where_the_truth_is_no_line(run: Run) -> None:
    """Every gate passes: proved equal to the booster, better on the held-out sessions and on three time folds in a row,
    also than linear weights of the same sessions."""
    assert [gate.words for gate in (*run.train_gates, *run.promote_gates) if gate.passed is False] == []
    assert run.trained is not None
    assert run.trained.promotion is Promotion.AUTOMATIC
    assert len(run.trained.folds) == 3
    assert all(fold.curves > fold.linear > 0.0 for fold in run.trained.folds)
    gates = {gate.gate: gate for gate in (*run.train_gates, *run.promote_gates)}
    proof = gates["curves_are_the_booster"]
    assert proof.value is not None
    assert proof.value <= 1e-12
    assert gates["curve_sessions"].passed
    assert run.trained.movements[""].overlap >= 0.8


def test_what_varies_in_no_packet_keeps_its_line(run: Run) -> None:
    """importance is 0 throughout: its weight of .2 stays, in steps, and the fitted curves share the rest."""
    assert run.trained is not None
    fit, weights = run.trained.fit, run.trained.new.common
    index = FEATURE_NAMES.index("importance")
    assert not fit.fitted[index]
    x = np.linspace(0, 1, 999)
    assert weights.part(index, x) == pytest.approx(0.2 * x, abs=0.2 / STEPS)
    assert weights.values.sum() == pytest.approx(1.0, abs=1e-3)
    assert np.isfinite(fit.standard_errors[fit.fitted]).all()


def test_curves_against_a_straight_truth_are_refused() -> None:
    """Linear weights say it as well with less: curves win no three folds in a row."""
    dataset = make_dataset(TRUTH, sessions=700, seed=2)
    found = train(dataset, Model(START), TrainSettings(form="curves", gates=LOWER))
    assert found.trained is not None
    gates = {gate.gate: gate for gate in found.promote_gates}
    assert gates["curve_folds"].passed is False
    assert "train with --form linear" in gates["curve_folds"].words
    assert found.trained.promotion is Promotion.REFUSED


def test_a_curve_stays_below_its_cap() -> None:
    """That of its feature, and that of what use feeds; the next run knows the feature's cap still."""
    truth = Truth({"semantic": 0.5, "use_rate": 0.5})
    dataset = make_dataset(truth, sessions=300, seed=3)
    base = make_weights("w", {"semantic": 0.5, "use_rate": 0.1}, caps={"semantic": 0.3}, use_family_cap=0.2)
    fit = fit_curves(dataset, make_pairs(dataset), base, k=10, groups=0)
    tops = dict(zip(FEATURE_NAMES, fit.weights.tolist(), strict=True))
    assert fit.clipped == ("semantic", "use_rate")
    assert tops["semantic"] == pytest.approx(0.3)
    assert tops["use_rate"] == pytest.approx(0.2)
    again = fit_curves(dataset, make_pairs(dataset), fit.curves, k=10, groups=0)
    assert dict(zip(FEATURE_NAMES, again.weights.tolist(), strict=True))["semantic"] == pytest.approx(0.3)
    rows = dataset.features
    without = {name: np.zeros(len(rows)) for name in ("importance", "recency")}
    assert contributions(rows, without, fit.curves).score.max() <= 0.5


def test_a_mix_of_curves_lies_between_them() -> None:
    """At every x, for lines as well, and all the way is the new one itself."""
    line = make_weights("line", {"semantic": 0.5, "lexical": 0.5}, caps={"lexical": 0.2})
    steps = {"thresholds": [0.25, 0.5], "values": [0.0, 0.1, 0.6]}
    curve = make_curve_weights("curve", {"semantic": steps})
    x = np.linspace(0, 1, 1_001)
    for share in (0.0, 0.3, 1.0):
        mixed = blended(line, curve, share)
        for name in ("semantic", "lexical", "handles"):
            index = FEATURE_NAMES.index(name)
            expected = (1 - share) * line.part(index, x) + share * curve.part(index, x)
            assert mixed.part(index, x) == pytest.approx(expected, abs=0.5 / STEPS)
    assert blended(line, curve, 1.0) is curve
    assert as_curve(curve, FEATURE_NAMES.index("lexical")).top == 0.0


def test_one_run_of_curves_keeps_most_of_every_top() -> None:
    """Curves that would turn packets over come as far as four fifths of the top stay; free, all the way."""
    dataset = make_dataset(replace(TRUTH, pool=20), sessions=60, seed=4)
    old = make_weights("old", {"semantic": 1.0})
    new = make_curve_weights(
        "new", {"lexical": {"thresholds": [0.2, 0.4, 0.6, 0.8], "values": [0, 0.25, 0.5, 0.75, 1]}}
    )
    candidates = Candidates.of(dataset)
    found, movement = capped_curves(old, new, candidates, MovementCaps())
    assert 0.0 < movement.eta < 1.0
    assert movement.overlap >= 0.8
    assert "top 10" in movement.stopped_by
    assert found.form == "curves"
    free, all_the_way = capped_curves(old, new, candidates, MovementCaps(), free=True)
    assert (free, all_the_way.eta) == (new, 1.0)
    assert all_the_way.overlap < 0.8


def test_groups_are_packets_and_weights_are_sessions() -> None:
    """LightGBM's groups hold one packet's labelled rows; a packet's rows weigh as much as its session says."""
    dataset = make_dataset(replace(TRUTH, packets_a_session=2), sessions=40, seed=5)
    pairs = make_pairs(dataset)
    ranking = ranking_of(dataset, pairs, np.arange(4))
    assert ranking.group.sum() == len(ranking.grade) == len(pairs.row)
    ends = np.cumsum(ranking.group)
    for start, end in zip([0, *ends[:-1]], ends, strict=True):
        rows = pairs.row[start:end]
        assert len(set(dataset.packet[rows].tolist())) == 1
        assert (ranking.grade[start:end] == (dataset.used[rows] > 0)).all()
        assert len(set(ranking.weight[start:end].round(9).tolist())) == 1
    paired = np.bincount(dataset.packets.session[np.unique(dataset.packet[pairs.row])], minlength=40)
    of_session = dataset.packets.session[dataset.packet[pairs.row]]
    two, one = (ranking.weight[paired[of_session] == count] for count in (2, 1))
    assert np.unique(two.round(9)).tolist() == pytest.approx([one.max() / 2], rel=1e-6)


def test_a_packet_of_thousands_is_a_group_that_lightgbm_takes() -> None:
    """It refuses groups of more than 10,000 rows: a packet's hardest memories alone are in pairs."""
    names = [f"m{i}" for i in range(12_000)]
    rows = [features_of({"semantic": value}) for value in np.random.default_rng(1).random(12_000)]
    dataset = build_dataset([make_packet("wide", rows, ids=names), make_report("wide", names[::3])])
    ranking = ranking_of(dataset, make_pairs(dataset), np.arange(3))
    assert ranking.group.tolist() == [2 * MOST_ROWS]
    assert ranking.grade.sum() == MOST_ROWS


@pytest.mark.parametrize("flags", [[], ["--preview"]])
def test_nothing_to_learn_is_a_refusal(tmp_path: Path, flags: list[str]) -> None:
    """A log of three sessions, and random use in a preview: words, code 9, and no file."""
    sessions = 30 if flags else 3
    dataset = make_dataset(replace(TRUTH, slope=0.0), sessions=sessions, seed=6)
    write_log(tmp_path / "log.jsonl", log_of(dataset))
    code, found = trained(
        tmp_path / "log.jsonl", "--form", "curves", "--base", "engine", "--out", tmp_path / "m", *flags
    )
    assert code == ExitCode.GATED
    refused = {gate["gate"]: gate["words"] for gate in found["gates"] if gate["passed"] is False}
    if "--preview" in flags:
        assert "nothing to serve" in refused["curves_are_the_booster"]
    else:
        assert "more are needed" in refused["sessions"]
    assert not (tmp_path / "m").exists()


def test_what_cannot_be_is_said_at_once(tmp_path: Path) -> None:
    """Curves of one namespace, a linear run from curves, a base with a note's own transforms."""
    write_log(tmp_path / "log.jsonl", log_of(make_dataset(TRUTH, sessions=3, seed=7)))
    run = functools.partial(CliRunner().invoke, cli)
    log = str(tmp_path / "log.jsonl")
    found = run(["train", log, "--form", "curves", "--namespace", "n"])
    assert (found.exit_code, "curves serve all namespaces alike" in found.output) == (ExitCode.USAGE, True)
    found = run(["train", log, "--form", "curves", "--base", "smartctx"])
    assert (found.exit_code, "cannot be started from" in found.output) == (ExitCode.USAGE, True)


def test_curves_are_trained_promoted_served_explained_and_taken_back(tmp_path: Path) -> None:
    """Beside a running server, from its own log, with --force, for so few sessions win no folds: each score is the sum
    of the contributions shown, which are the curves' values; ExplainMiss knows them; they shadow, and a rollback leads
    back."""
    with moving(tmp_path) as (server, now):
        work(server, now, 160)
        client = server.client
        form = ["--form", "curves", *FLAGS]
        code, found = trained(tmp_path / "data", "--out", tmp_path / "model", *form)
        assert code == 0, found
        artifact = read_artifact(tmp_path / "model")
        assert artifact.form == "curves"
        assert "lightgbm" in artifact.provenance.library_versions
        gates = {gate["gate"] for gate in json.loads((tmp_path / "model" / "gates.json").read_text())}
        assert gates >= {"curves_are_the_booster", "standard_errors", "ndcg", "curve_sessions", "curve_folds"}

        promote = ["promote", str(tmp_path / "model"), "--address", server.listen]
        assert CliRunner().invoke(cli, [*promote, "--role", "shadow"]).exit_code == 0
        shadowed = client.rank("n", text(1))
        assert client.get_packet("n", shadowed.packet_id).shadow_version == artifact.version
        promoted = CliRunner().invoke(cli, [*promote, "--force", "a test"])
        assert promoted.exit_code == 0, promoted.output
        packet = client.rank("n", text(1), explain="full")
        assert packet.model_version == artifact.version
        relevance = FEATURE_NAMES.index("relevance")
        curve = artifact.weights.curves[relevance]
        assert curve is not None
        for item in packet.items:
            assert functools.reduce(operator.add, item.contributions, 0.0) == item.score
            assert item.contributions[relevance] == curve(np.array([item.features[relevance]]))[0]
        served = {item.memory.id for item in packet.items}
        missed = next(f"m{i:03}" for i in range(90) if f"m{i:03}" not in served)
        explained = client.explain_miss("n", missed, packet_id=packet.packet_id)
        assert explained.message
        lost = sum(gap.admitted_contribution - gap.contribution for gap in explained.gaps)
        assert lost == pytest.approx(explained.admitted_score - explained.score)
        # The next run starts from the curves that serve, and asks no folds: it replaces no linear model.
        code, chained = trained(tmp_path / "data", "--dry-run", "--preview", "--form", "curves")
        assert (code, chained["folder"]) == (0, "")
        assert "curve_folds" not in {gate["gate"] for gate in chained["gates"]}
        assert CliRunner().invoke(cli, ["train", str(tmp_path / "data"), "--dry-run"]).exit_code == ExitCode.USAGE
        back = CliRunner().invoke(cli, ["rollback", "--reason", "a test", "--address", server.listen])
        assert back.exit_code == 0, back.output
        assert client.rank("n", text(1)).model_version == "default"


def test_the_same_data_and_seed_give_the_same_curves(tmp_path: Path) -> None:
    """Byte for byte, every file; a dry run has the same version and writes nothing; another seed gives another."""
    write_log(tmp_path / "log.jsonl", log_of(make_dataset(TRUTH, sessions=150, seed=8)))
    flags = [tmp_path / "log.jsonl", "--form", "curves", "--preview", "--base", "engine"]
    folders = [tmp_path / "one", tmp_path / "two"]
    for folder in folders:
        assert trained(*flags, "--out", folder)[0] == 0
    one, two = ({path.name: path.read_bytes() for path in sorted(folder.iterdir())} for folder in folders)
    assert one == two
    names = {"manifest.json", "curves.json", "golden.json", "gates.json", "model_card.md", "report.html"}
    assert set(one) == names
    code, dry = trained(*flags, "--dry-run")
    assert (code, dry["version"], dry["folder"]) == (0, read_artifact(folders[0]).version, "")
    assert trained(*flags, "--dry-run", "--seed", 9)[1]["version"] != dry["version"]


def test_curves_of_a_step_are_read_as_they_were_built() -> None:
    """A weight's line in steps starts at 0 and ends half a step below the weight, so that no score passes 1."""
    line: Weights = make_weights("line", {"semantic": 1.0})
    curve = as_curve(line, FEATURE_NAMES.index("semantic"))
    assert (curve.values[0], curve.top) == (0.0, 1.0 - 0.5 / STEPS)
    assert curves_of([]) == {}
