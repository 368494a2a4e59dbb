"""`report-output` against a real server."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.conftest import Run
from tests.cli.test_memories import document

LINES = '{"id": "m1", "content": "Deploys go through tools/ship.sh"}\n{"id": "m2", "content": "Deploys are loud"}\n'


@pytest.fixture
def packet(run: Run) -> str:
    run("put", "--jsonl", "-", stdin=LINES)
    return str(document(run("rank", "deploy it", "--json"))["packet_id"])


def test_an_output_is_read_from_a_file_or_standard_input(run: Run, packet: str, tmp_path: Path) -> None:
    """Each use is shown with its handle and how sure it is."""
    (tmp_path / "answer.md").write_text("I ran tools/ship.sh.\n")
    shown = run("report-output", packet, "answer.md")
    assert shown.exit_code == 0
    assert "m1  used (.80)  path tools/ship.sh" in shown.stdout
    piped = document(run("report-output", packet, "--json", stdin="I ran tools/ship.sh."))
    assert [match["memory_id"] for match in piped["matches"]] == ["m1"]
    assert "No memory of the packet was found" in run("report-output", packet, stdin="Done.").stdout


def test_tool_calls_are_lines_of_json(run: Run, packet: str, tmp_path: Path) -> None:
    """Arguments are a text or any JSON; a line that is no call is named."""
    calls = "\n".join(json.dumps({"name": "shell", "arguments": each}) for each in ("ls", {"run": "tools/ship.sh"}))
    (tmp_path / "calls.jsonl").write_text(calls)
    found = document(run("report-output", packet, "--tool-calls", "calls.jsonl", "--json", stdin="Done."))
    assert [match["memory_id"] for match in found["matches"]] == ["m1"]
    assert "m1" in run("report-output", packet, "--tool-calls", "-", stdin=calls).stdout
    bad = run("report-output", packet, "--tool-calls", "-", stdin='{"name": "ok"}\n{"arguments": 1}\n')
    assert (bad.exit_code, "line 2: has no name" in bad.stderr) == (2, True)
    assert run("report-output", packet, "-", "--tool-calls", "-", stdin="").exit_code == 2


def test_what_is_read_aloud_is_said_to_be_an_echo(run: Run) -> None:
    """It is shown apart from uses."""
    content = "The heating in the cellar must be looked after every September or the guarantee is void."
    run("put", "--id", "h1", content)
    packet = document(run("rank", "heating", "--json"))["packet_id"]
    assert "h1  repeated word for word" in run("report-output", packet, stdin=content).stdout
