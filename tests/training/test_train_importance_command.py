"""`train-importance` beside a running server: what it says, what it writes, and that the sidecar takes it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from sidecar.cli.failures import ExitCode
from sidecar.cli.group import cli
from sidecar.config import resolve
from sidecar.importance.settings import SignalWeights
from sidecar.importance.settled import settled_importance
from tests.serving import Running, running, wait_until_scored
from training.commands.train_importance import _rounded


@pytest.fixture(autouse=True)
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A home of its own, without settings."""
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("MEMORY_RANKER_CONFIG", raising=False)


def ran(*arguments: object) -> tuple[int, dict[str, Any]]:
    found = CliRunner().invoke(cli, ["train-importance", "--json", *map(str, arguments)])
    return found.exit_code, json.loads(found.stdout or found.stderr)


def work(server: Running, sessions: int) -> None:
    """An agent that is served rules and chatter alike, and whose work is the chatter."""
    memories = [{"id": f"rule{n}", "content": f"Never restart worker {n} before 06:00, only after"} for n in range(6)]
    memories += [{"id": f"chat{n}", "content": f"They laughed about worker {n} over coffee, funny"} for n in range(6)]
    server.client.upsert("agent-7", memories)
    wait_until_scored(server.client, "agent-7")
    for number in range(sessions):
        packet = server.client.rank("agent-7", max_items=12, reserved_slots=0, session_id=f"s{number}")
        used = [item.memory.id for item in packet.items if item.memory.id.startswith("chat")]
        server.client.report_use(packet.packet_id, used=used, complete=True)


def test_too_few_sessions_are_insufficient(tmp_path: Path) -> None:
    """Exit code 9; the weights stay, and nothing is written."""
    with running(tmp_path) as server:
        work(server, 5)
        code, found = ran(tmp_path / "data", "--out", tmp_path / "importance.toml")
        assert code == ExitCode.GATED
        assert found["gain"] is None
        assert found["after"] == found["before"]
        assert not found["settings"]
        assert not (tmp_path / "importance.toml").exists()
        shown = CliRunner().invoke(cli, ["train-importance", str(tmp_path / "data")])
        assert "INSUFFICIENT" in shown.stdout


def test_what_cannot_be_trained_on_is_refused_in_words(tmp_path: Path) -> None:
    """An export has no importances, the common weights are no domain, and a folder without a store has no log."""
    log = tmp_path / "log.jsonl"
    log.write_text("")
    assert ran(log)[0] == ExitCode.USAGE
    assert ran(tmp_path, "--domain", "common")[0] == ExitCode.USAGE
    code, found = ran(tmp_path)
    assert code != 0
    assert "no store" in found["error"]["message"]


def test_weights_are_rounded_to_what_sums_to_one() -> None:
    """What is left over goes to the largest."""
    third = SignalWeights(content=1 / 3, user=1 / 3, access=1 / 3, emotion=0.0, context=0.0)
    found = _rounded(third)
    assert sorted(found.values()) == [0.0, 0.0, 0.3333, 0.3333, 0.3334]


def test_weights_from_use_are_taken_by_the_sidecar(tmp_path: Path) -> None:
    """Where the content misleads, it gets less weight, and access more; the printed tables, put into a settings file,
    count in that namespace alone; the same log and seed give the same tables."""
    with running(tmp_path) as server:
        work(server, 80)
        code, found = ran(
            tmp_path / "data", "--namespace", "agent-7", "--domain", "learned by 7", "--out", tmp_path / "i"
        )
        again = ran(tmp_path / "data", "--namespace", "agent-7", "--domain", "learned by 7")[1]
    assert code == 0, found
    assert found == again
    assert found["sessions"] == 80
    assert found["gain"]["low"] > 0
    assert found["after"]["content"] < found["before"]["content"]
    assert found["after"]["access"] > found["before"]["access"]
    assert found["after"]["user"] == found["before"]["user"]
    tables = (tmp_path / "i").read_text()
    assert tables == found["settings"]
    settings = tmp_path / "settings.toml"
    settings.write_text(tables)
    taken = settled_importance(resolve({}, {"HOME": str(tmp_path)}, settings).settings)
    assert taken.of_domain(namespace="agent-7").by_name() == found["after"]
    assert taken.of_domain(namespace="another") == SignalWeights()
