"""`simulate` on the demo's memories, without an embedder, which is quick and needs no model file."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from sidecar.cli.failures import ExitCode
from sidecar.cli.group import cli

FAST = ("--embedder", "none", "--weights", "default", "--rounds", "2", "--sessions", "60")


def simulated(*arguments: object) -> tuple[int, dict[str, Any]]:
    """The exit code and the answer of `simulate --json`."""
    found = CliRunner().invoke(cli, ["simulate", "--json", *FAST, *map(str, arguments)])
    return found.exit_code, json.loads(found.stdout or found.stderr)


def test_previews_serve_and_gates_refuse() -> None:
    """The same packets in the first round: what previews learn serves in the second, what a gate refuses does not."""
    code, found = simulated("--preview")
    assert code == 0
    first, second = found["rounds"]
    assert (first["packets"], first["reported_packets"], first["serves_next"]) == (60, 60, True)
    assert second["ndcg_served"] == first["ndcg_learned"] != first["ndcg_served"]
    assert sum(first["weights"].values()) == pytest.approx(1.0, abs=1e-6)
    assert simulated("--preview")[1] == found
    code, gated = simulated()
    assert code == 0
    assert gated["rounds"][0]["ndcg_served"] == first["ndcg_served"]
    assert gated["rounds"][0]["refused_by"] == ["sessions"]
    assert gated["rounds"][1]["ndcg_served"] == first["ndcg_served"]
    shown = CliRunner().invoke(cli, ["simulate", *FAST])
    assert "refused: sessions" in shown.stdout


def test_habits_are_the_agents_and_the_log_can_be_trained_on(tmp_path: Path) -> None:
    """Of two agents one reports a tenth of its packets; `train` reads what --out wrote as any log."""
    log = tmp_path / "log.parquet"
    agents = ("--agent", "loud:share=0.5", "--agent", "silent:report=0.1,share=0.5,patience=0.8,slip=0.1,use=0.5")
    _, found = simulated("--sessions", 200, "--preview", "--out", log, *agents)
    reported = sum(each["reported_packets"] for each in found["rounds"])
    assert 0.45 < reported / 400 < 0.65
    trained = CliRunner().invoke(cli, ["train", str(log), "--preview", "--dry-run", "--json"])
    assert trained.exit_code == 0
    answer = json.loads(trained.stdout)
    shares = {each["agent"]: each["reported"] / each["packets"] for each in answer["reports_by_agent"]}
    assert shares["loud"] == 1.0
    assert shares["silent"] < 0.2


def test_any_preset_is_evaluated_on_what_it_wrote(tmp_path: Path) -> None:
    """Those that measure in ways of their own too; the preset that served scores as was logged."""
    log = tmp_path / "log.parquet"
    simulated("--out", log)  # refused by gates, so that one preset serves all rounds
    for preset in ("default", "engine", "smartctx", "importance"):
        done = CliRunner().invoke(cli, ["evaluate", preset, str(log), "--json"])
        assert done.exit_code == 0
        found = json.loads(done.stdout)
        assert (found["packets"], found["packets_without_measures"]) == (120, 0)
        if preset == "default":
            assert found["ndcg"]["difference"] == 0.0
            assert found["off_policy"]["estimates"]["SNIPS"]["difference"] == pytest.approx(0.0, abs=1e-12)


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (("--agent", "a:mood=1"), ExitCode.USAGE, "'mood' is no habit; the habits are use, slip"),
        (("--agent", "a:use=2"), ExitCode.USAGE, "use is 2; it must be in [0, 1]"),
        (("--agent", "a:use=x"), ExitCode.USAGE, "use is 'x'; it must be a number"),
        (("--agent", ":use=1"), ExitCode.USAGE, "needs a name"),
        (("--agent", "a", "--agent", "a:use=1"), ExitCode.USAGE, "is named twice"),
        (("--weights", "smartctx"), ExitCode.USAGE, "cannot be trained from"),
        (("--weights", "engin"), ExitCode.NOT_FOUND, "Did you mean 'engine'"),
        (("--out", "log.csv"), ExitCode.USAGE, "must end in .parquet"),
        (("nowhere.json",), ExitCode.NOT_FOUND, "nowhere.json"),
        (("empty.json",), ExitCode.USAGE, "two at least are needed"),
    ],
)
def test_what_cannot_be_simulated_is_said(
    arguments: tuple[str, ...], code: ExitCode, words: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Before anything is played, with what is allowed."""
    monkeypatch.chdir(tmp_path)
    memory = {"id": "m", "content": "a text", "created_at": "2026-01-01T00:00:00Z", "session": "s"}
    (tmp_path / "empty.json").write_text(json.dumps({"id": "n", "memories": [memory], "queries": []}))
    found = CliRunner().invoke(cli, ["simulate", *FAST, *arguments])
    assert (found.exit_code, words in found.output) == (code, True), found.output
