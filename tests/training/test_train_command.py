from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from sidecar.cli.failures import ExitCode
from sidecar.cli.group import cli
from sidecar.features import FEATURE_NAMES
from sidecar.weights import PRESETS
from sidecar.weights.artifact import read_artifact
from tests.training.logs import log_of, make_packet, write_log
from tests.training.made import Truth, make_dataset
from tests.training.test_dataset import PLAIN

BASE = """listen = "127.0.0.1:0"

[weights.start.features]
semantic = 0.25
lexical = 0.25
handles = 0.25
context = 0.25
"""
FOUR = ("semantic", "lexical", "handles", "context")
TRUTH = Truth(dict(zip(FOUR, (0.45, 0.3, 0.2, 0.05), strict=True)), pool=3, packets_a_session=2)


@pytest.fixture(autouse=True)
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home of its own, with equal weights in its settings, and its working folder."""
    settings = tmp_path / "settings.toml"
    settings.write_text(BASE)
    monkeypatch.setenv("MEMORY_RANKER_CONFIG", str(settings))
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    return tmp_path


def ran(*arguments: object) -> Result:
    """What a command did."""
    return CliRunner().invoke(cli, [str(each) for each in arguments])


def as_json(*arguments: object) -> tuple[int, dict[str, Any]]:
    found = ran(*arguments, "--json")
    return found.exit_code, json.loads(found.stdout)


def as_json_error(*arguments: object) -> tuple[int, dict[str, Any]]:
    """The same for a command that fails."""
    found = ran(*arguments, "--json")
    return found.exit_code, json.loads(found.stderr)


def tree(folder: Path) -> dict[str, bytes]:
    """Every file of a folder."""
    return {str(path.relative_to(folder)): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


def log(path: Path, truth: Truth = TRUTH, sessions: int = 320, seed: int = 1) -> Path:
    """An export of a log with that truth."""
    write_log(path, log_of(make_dataset(truth, sessions=sessions, seed=seed)))
    return path


def test_a_log_becomes_a_model_that_can_be_served(place: Path) -> None:
    """Trained with 0: weights that moved towards what is used, within the caps, in an artifact that verifies."""
    code, found = as_json("train", log(place / "log.jsonl"), "--base", "start", "--out", "model")
    assert code == 0
    assert found["outcome"] == "trained"
    artifact = read_artifact(place / "model")
    assert artifact.version == found["version"]
    assert artifact.provenance.gates["train"] == "passed"
    weights = dict(zip(FEATURE_NAMES, artifact.weights.values.tolist(), strict=True))
    assert weights["semantic"] > 0.28
    assert weights["context"] == pytest.approx(0.20, abs=1e-6)  # .25 less one step of .05
    assert sum(weights.values()) <= 1.0
    assert found["promotion"] == artifact.provenance.gates["promote"]
    names = {"manifest.json", "weights.json", "golden.json", "gates.json", "model_card.md", "report.html"}
    assert set(tree(place / "model")) == names
    gates = json.loads((place / "model" / "gates.json").read_text())
    assert {gate["gate"] for gate in gates} >= {"sessions", "report_share", "standard_errors", "ndcg", "off_policy"}
    assert all(gate.keys() == {"stage", "gate", "value", "threshold", "passed", "words"} for gate in gates)
    assert "| context | 0.2500 | 0.2000 |" in (place / "model" / "model_card.md").read_text()


def test_the_same_data_and_seed_give_the_same_bytes(place: Path) -> None:
    """Twice, and from another reader: the folders are equal, file by file."""
    path = log(place / "log.jsonl", sessions=280)
    assert ran("export-log", path, "--out", "log.parquet").exit_code == 0
    for source, out in ((path, "one"), (path, "two"), ("log.parquet", "three")):
        assert ran("train", source, "--base", "start", "--seed", "7", "--out", out).exit_code == 0
    assert tree(place / "one") == tree(place / "two") == tree(place / "three")
    assert ran("train", path, "--base", "start", "--seed", "8", "--out", "four").exit_code == 0
    assert tree(place / "four")["manifest.json"] != tree(place / "one")["manifest.json"]


def test_a_preview_goes_all_the_way_and_cannot_be_promoted(place: Path) -> None:
    """With 60 sessions, which no gate would let pass."""
    path = log(place / "log.jsonl", sessions=60)
    assert ran("train", path, "--base", "start", "--out", "model").exit_code == ExitCode.GATED
    code, found = as_json("train", path, "--base", "start", "--preview", "--out", "preview")
    assert code == 0
    artifact = read_artifact(place / "preview")
    assert artifact.provenance.preview
    assert artifact.provenance.gates == {"train": "skipped", "promote": "skipped"}
    moved = {each["feature"]: each["after"] - each["before"] for each in found["weights"]}
    assert moved["semantic"] > 0.1
    assert "cannot be promoted" in (place / "preview" / "model_card.md").read_text()


def test_a_dry_run_writes_nothing(place: Path) -> None:
    """All is computed, with the version that it would have."""
    path = log(place / "log.jsonl")
    before = tree(place)
    code, found = as_json("train", path, "--base", "start", "--dry-run")
    assert (code, found["folder"]) == (0, "")
    assert tree(place) == before
    assert ran("train", path, "--base", "start", "--out", "model").exit_code == 0
    assert read_artifact(place / "model").version == found["version"]


def test_a_refusal_says_what_is_missing(place: Path) -> None:
    """Exit code 9, the gate's words, nothing written and nothing overwritten."""
    (place / "model").mkdir()
    found = ran("train", log(place / "log.jsonl", sessions=4), "--base", "start", "--out", "model")
    assert found.exit_code == ExitCode.GATED
    assert "Not enough data" in found.stdout
    assert "more are needed" in found.stdout
    assert list((place / "model").iterdir()) == []


def test_a_model_is_never_written_over(place: Path) -> None:
    """Said before the run, not after it."""
    (place / "model").mkdir()
    (place / "model" / "manifest.json").write_text("{}")
    found = ran("train", log(place / "log.jsonl", sessions=4), "--out", "model")
    assert found.exit_code == ExitCode.USAGE
    assert "never written over" in found.output


def test_what_fails_is_no_refusal(place: Path) -> None:
    """A missing log, a broken one, weights that are not there: other codes than a gate's, with the way out."""
    missing = ran("train", "nowhere.jsonl")
    assert (missing.exit_code, "there is no log" in missing.output) == (ExitCode.NOT_FOUND, True)
    (place / "broken.jsonl").write_text('{"packet_id": 3')
    assert "line 1" in ran("train", "broken.jsonl").output
    path = log(place / "log.jsonl", sessions=4)
    code, found = as_json_error("train", path, "--base", "strat")
    assert (code, found["error"]["reason"]) == (ExitCode.NOT_FOUND, "UNKNOWN_WEIGHTS")
    assert ran("train", path, "--base", "no/such").exit_code == ExitCode.NOT_FOUND
    for words in ("--base: ", "Did you mean 'start'", "folder or archive", "a model's version"):
        assert words in found["error"]["message"]
    assert "cannot be started from" in ran("train", path, "--base", "smartctx").output
    assert "there is no gate setting" in ran("train", path, "--gate", "x=1").output
    assert ran("train", path, "--gate", "top_k").exit_code == ExitCode.USAGE


@pytest.mark.parametrize(
    "command", [("train",), ("evaluate", "engine"), ("train-importance",), ("export-log", "--out", "x")]
)
def test_a_window_that_ends_before_it_begins_is_refused(place: Path, command: tuple[str, ...]) -> None:
    """As the command line's fault, before the log is read."""
    code, found = as_json_error(*command, place, "--from", "2024-01-01", "--until", "2023-01-01")
    assert (code, "--until 2023-01-01" in found["error"]["message"]) == (ExitCode.USAGE, True)
    assert "is not before" in found["error"]["message"]


@pytest.mark.parametrize("command", [("train", "--base", "start"), ("evaluate", "engine")])
def test_a_namespace_without_a_packet_is_not_there(place: Path, command: tuple[str, ...]) -> None:
    """Not too few data of it: its name is told."""
    code, found = as_json_error(*command, log(place / "log.jsonl", sessions=4), "--namespace", "nosuch")
    assert (code, found["error"]["reason"]) == (ExitCode.NOT_FOUND, "NOT_FOUND")
    assert "no packet of 'nosuch'" in found["error"]["message"]


@pytest.mark.parametrize("command", [("train", "nowhere.jsonl"), ("simulate",)])
@pytest.mark.parametrize(
    ("flags", "says"),
    [
        (("--max-l1", "nan"), "--max-l1"),
        (("--max-step", "NaN"), "--max-step"),
        (("--max-step", "-1"), "--max-step"),
        (("--gate", "confidence=nan"), "confidence is 'nan'; must be from 0.5"),
        (("--gate", "bootstrap_rounds=0"), "bootstrap_rounds is '0'; must be from 100"),
    ],
)
def test_numbers_out_of_bounds_are_refused(command: tuple[str, ...], flags: tuple[str, ...], says: str) -> None:
    """By the command line, before anything is read or played; also with --json."""
    code, found = as_json_error(*command, *flags)
    assert (code, says in found["error"]["message"]) == (ExitCode.USAGE, True)


def test_gates_are_set_by_name(place: Path) -> None:
    """A person may lower a threshold; what was asked for is what counts."""
    path = log(place / "log.jsonl", sessions=80)
    lowered = ["least_fit_sessions=40", "least_held_out_sessions=20", "least_effective_sessions=30"]
    flags = [each for setting in [*lowered, "most_standard_error=0.2"] for each in ("--gate", setting)]
    assert ran("train", path, "--base", "start", "--out", "model", *flags).exit_code == 0
    assert ran("train", path, "--base", "start", "--out", "other").exit_code == ExitCode.GATED


def test_a_model_starts_the_next_one(place: Path) -> None:
    """--base takes a model's folder: a chain of capped runs goes on where the last one stopped."""
    path = log(place / "log.jsonl")
    assert ran("train", path, "--base", "start", "--out", "first").exit_code == 0
    code, found = as_json("train", path, "--base", place / "first", "--out", "second")
    assert code == 0
    first, second = (read_artifact(place / name) for name in ("first", "second"))
    assert second.provenance.base_version == first.version
    before = {each["feature"]: each["before"] for each in found["weights"]}
    assert before["semantic"] == first.weights.values[FEATURE_NAMES.index("semantic")]
    assert second.weights.values[FEATURE_NAMES.index("semantic")] > before["semantic"]


def test_one_namespace_can_be_fitted_alone(place: Path) -> None:
    """Its weights stand beside common ones that stay as they are."""
    path = log(place / "log.jsonl", replace(TRUTH, namespace="mine"))
    assert ran("train", path, "--base", "start", "--namespace", "mine", "--out", "model").exit_code == 0
    artifact = read_artifact(place / "model")
    assert set(artifact.namespaces) == {"mine"}
    context = FEATURE_NAMES.index("context")
    assert artifact.weights.values[context] == 0.25
    assert artifact.namespaces["mine"].values[context] == pytest.approx(0.2, abs=1e-6)
    assert "| context | 0.2500 | 0.2000 |" in (place / "model" / "model_card.md").read_text()


def test_the_settings_weights_are_where_a_run_starts(place: Path) -> None:
    """Without --base it is what a server with these settings serves."""
    _, found = as_json("train", log(place / "log.jsonl"), "--dry-run")
    default = dict(zip(FEATURE_NAMES, PRESETS["default"].values.tolist(), strict=True))
    assert {each["feature"]: each["before"] for each in found["weights"] if each["before"]} == pytest.approx(
        {name: value for name, value in default.items() if value}
    )


def test_an_export_of_a_log_is_whole_or_not_there(place: Path) -> None:
    """A broken source leaves no file; the name must say what it is."""
    write_log(place / "log.jsonl", [make_packet("p", PLAIN)])
    code, found = as_json("export-log", "log.jsonl", "--out", "log.parquet")
    assert (code, found["rows"]) == (0, 1)
    (place / "broken.jsonl").write_text('{"packet_id": 3')
    assert ran("export-log", "broken.jsonl", "--out", "other.parquet").exit_code == ExitCode.USAGE
    assert not any("other" in name for name in tree(place))
    assert ran("export-log", "log.jsonl", "--out", "log.csv").exit_code == ExitCode.USAGE


def test_every_long_step_is_told_on_a_terminal(
    place: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """Reading, half-lives, weights, namespaces, movement and comparison each have a bar; a pipe has none."""
    path = log(place / "log.jsonl", sessions=60)
    flags = ["train", str(path), "--base", "start", "--preview", "--dry-run"]
    assert cli.main(flags, standalone_mode=False) in (0, None)
    assert capfd.readouterr().err == ""
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("TERM", "xterm")
    assert cli.main(flags, standalone_mode=False) in (0, None)
    said = capfd.readouterr().err
    assert [step for step in ("log", "half-lives", "weights", "movement", "comparison") if step not in said] == []


def test_a_person_may_let_a_run_go_further(place: Path) -> None:
    """--max-l1 and --max-step move the caps of one run; all other gates stay."""
    path = log(place / "log.jsonl")
    _, capped = as_json("train", path, "--base", "start", "--dry-run")
    code, free = as_json("train", path, "--base", "start", "--dry-run", "--max-l1", "2", "--max-step", "1")
    assert code == 0
    assert capped["eta"][""] < free["eta"][""] <= 1.0
