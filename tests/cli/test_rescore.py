"""`rescore` and `purge` against a real server."""

from __future__ import annotations

import os

import pytest

from tests.cli.conftest import Run
from tests.cli.test_memories import LINES, document


@pytest.fixture
def namespace(run: Run) -> str:
    """A namespace in which m1 was used, and m2 and m3 were not."""
    run("put", "--jsonl", "-", stdin=LINES)
    for number in range(6):
        packet = document(run("rank", "canary", "--session", f"s{number}", "--json"))["packet_id"]
        run("report-use", packet, "m1")
    return os.environ["MEMORY_RANKER_NAMESPACE"]


def test_a_rescore_is_shown_then_applied_then_undone(run: Run, namespace: str) -> None:
    """The table says who moves, by how much and why; nothing is written before --apply."""
    shown = run("rescore").stdout
    assert "above the mean" in shown
    assert "3 of 3 memories would move." in shown
    assert "Nothing was written" in shown
    applied = document(run("rescore", "--apply", "--json"))
    assert applied["moved_count"] == 3
    assert "scores are as they were" in run("rescore", "--restore", applied["run_id"]).stdout
    again = run("rescore", "--apply").stdout
    assert "undo it with --restore" in again
    assert run("rescore", "--restore", "no-such-run").exit_code == 3


def test_a_schedule_is_printed_and_nothing_done(run: Run, namespace: str) -> None:
    """Timers for systemd and cron, with the weekly audit."""
    printed = run("rescore", "--schedule").stdout
    assert "OnCalendar" in printed
    assert "memory-ranker audit" in printed
    assert document(run("rescore", "--json"))["moved_count"] == 3
    assert run("rescore", "--schedule", "--apply").exit_code == 2


def test_purge_needs_the_name_twice(run: Run, namespace: str) -> None:
    """A slip removes nothing; the name typed at the prompt, or given with --yes, does."""
    assert run("purge", namespace, "--yes", "another").exit_code == 2
    assert run("purge", namespace, stdin="another\n").exit_code == 2
    nobody = run("purge", namespace, stdin="")
    assert (nobody.exit_code, f"--yes {namespace}" in nobody.stderr) == (2, True)
    assert len(document(run("list", "--json"))["memories"]) == 3
    assert "3 memories and 6 packets removed" in run("purge", namespace, stdin=f"{namespace}\n").stdout
    assert document(run("list", "--json"))["memories"] == []
    gone = run("purge", namespace, "--yes", namespace)
    assert (gone.exit_code, f"there is no namespace {namespace}" in gone.stderr) == (3, True)
    # Packets alone, of a caller's own memories, are something to remove.
    run("rank", "x", "--candidates", "-", stdin='{"id": "own", "content": "x"}')
    again = document(run("purge", namespace, "--yes", namespace, "--json"))
    assert (again["memory_count"], again["packet_count"]) == (0, 1)
