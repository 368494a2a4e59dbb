"""The demo, as a stranger runs it."""

from __future__ import annotations

import json
import signal
from pathlib import Path

import pytest

from sidecar.cli import demo_store
from sidecar.cli.demo import TASKS, TRAP
from sidecar.cli.failures import ExitCode
from tests.cli.test_processes import start
from tests.serving import finished


def folders(output: str) -> Path:
    """The demo's folder, from its first line."""
    return Path(output.partition("Starting a server in ")[2].split()[0])


def test_the_demo_shows_the_whole_loop_and_leaves_nothing_behind() -> None:
    """Four packets, a miss, a report that moves what was used, the figures, the next steps; no folder stays."""
    process = start(["demo"])
    output, said = process.communicate(timeout=120)
    assert (process.returncode, said) == (0, "")
    store = demo_store.load()
    for name in TASKS:
        assert store.tasks[name].text in output
    assert f"{TRAP}: superseded." in output
    assert "use_rate +" in output
    assert "reserved p=." in output
    assert "nDCG@10" in output
    for command in ("serve", "put", "rank", "report-use", "why"):
        assert f"memory-ranker {command}" in output
    assert not folders(output).exists()


def test_the_demo_in_json_is_one_document_with_figures_that_mean_something() -> None:
    """What was used scores higher afterwards, the superseded trap is nowhere, and the default weights beat the rest."""
    process = start(["demo", "--json"])
    output, said = process.communicate(timeout=120)
    assert (process.returncode, said) == (0, "")
    found = json.loads(output)
    packets = [*found["packets"], found["packet_after_report"]]
    assert len(packets) == len(TASKS) + 1
    assert all(item["memory"]["id"] != TRAP for packet in packets for item in packet["items"])
    assert (found["miss"]["reason"], found["miss"]["served"]) == ("superseded", False)
    used = set(found["packets"][0]["relevant"]) & {item["memory"]["id"] for item in found["packets"][0]["items"]}
    assert used
    for move in found["moves"]:
        if move["memory_id"] in used:
            assert move["score_after"] > move["score_before"]
            assert move["changes"]["use_rate"] > 0
    quality = {each["weights"]: each for each in found["quality"]}
    assert quality["default"]["ndcg_at_10"] > 0.6
    for name in ("engine", "smartctx", "newest first"):
        assert quality[name]["ndcg_at_10"] < quality["default"]["ndcg_at_10"]
        assert 0.0 <= quality[name]["recall_at_10"] <= 1.0


@pytest.mark.parametrize(
    ("number", "code"), [(signal.SIGINT, ExitCode.INTERRUPTED), (signal.SIGTERM, 128 + signal.SIGTERM)]
)
def test_the_demo_cleans_up_when_it_is_stopped(number: int, code: int) -> None:
    """Ctrl-C and SIGTERM end it quietly; its server and its folder are gone."""
    process = start(["demo"])
    assert process.stdout is not None
    folder = folders(process.stdout.readline())
    assert "are stored" in process.stdout.readline()
    assert (folder / "s.sock").exists()
    process.send_signal(number)
    _, said = process.communicate(timeout=60)
    assert (process.returncode, said) == (code, "")
    # The server is stopped before its folder is removed, so that it can have no part in it any more.
    assert not folder.exists()


def test_kept_the_store_can_be_served(tmp_path: Path) -> None:
    """With --keep the folder stays, and the command that is shown serves its memories."""
    process = start(["demo", "--keep"])
    output, _ = process.communicate(timeout=120)
    folder = folders(output)
    try:
        assert f"memory-ranker serve --data {folder}/store" in output
        served = start(["serve", "--data", str(folder / "store"), "--listen", f"unix:{folder}/again.sock"])
        assert served.stderr is not None
        assert "258 memories" in served.stderr.readline()
        served.terminate()
        finished(served)
    finally:
        for path in sorted(folder.rglob("*"), reverse=True):
            path.rmdir() if path.is_dir() else path.unlink()
        folder.rmdir()


def test_the_demo_store_answers_every_task() -> None:
    """Every judged id is a memory of the store, and the shown tasks and the trap are there."""
    store = demo_store.load()
    ids = {memory["id"] for memory in store.memories}
    assert len(ids) == len(store.memories)
    assert all(task.relevant and task.relevant <= ids for task in store.tasks.values())
    assert TRAP in ids
    assert all(memory["create_time"] < store.end for memory in store.memories)
