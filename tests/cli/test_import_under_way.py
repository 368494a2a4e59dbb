"""An import under way: its bar, a server that goes and comes back, and Ctrl-C."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from sidecar.cli.failures import ExitCode
from tests.cli.conftest import Run
from tests.cli.test_import import line
from tests.serving import running


def test_an_import_goes_on_when_the_server_comes_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """10,000 memories, the server stopped and started in between: all are in, once."""
    monkeypatch.chdir(tmp_path)
    Path("memories.jsonl").write_text("\n".join(line(number) for number in range(10_000)))
    with running(tmp_path) as first:
        command = [sys.executable, "-m", "sidecar.cli", "import", "memories.jsonl", "--json", "--address", first.listen]
        importing = subprocess.Popen([*command, "--timeout", "60"], stdout=subprocess.PIPE, text=True)
        while first.client.status().memory_count < 2000:
            assert importing.poll() is None
    with running(tmp_path) as second:
        output, _ = importing.communicate(timeout=100)
        assert importing.returncode == 0
        assert json.loads(output)["created"] == 10_000
        assert second.client.status().memory_count == 10_000


def test_an_import_that_breaks_off_says_how_far_it_came(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The server does not come back: code 5, and the line up to which everything is in."""
    monkeypatch.chdir(tmp_path)
    Path("memories.jsonl").write_text("\n".join(line(number) for number in range(10_000)))
    with running(tmp_path) as first:
        command = [sys.executable, "-m", "sidecar.cli", "import", "memories.jsonl", "--address", first.listen]
        importing = subprocess.Popen([*command, "--timeout", "5"], stderr=subprocess.PIPE, text=True)
        while first.client.status().memory_count < 2000:
            assert importing.poll() is None
    _, said = importing.communicate(timeout=60)
    assert importing.returncode == ExitCode.UNAVAILABLE
    assert "this run was acknowledged up to memories.jsonl, line" in said


def test_ctrl_c_in_an_import_says_how_much_is_in(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Code 130, the number that was acknowledged, and that it can be run again."""
    monkeypatch.chdir(tmp_path)
    Path("memories.jsonl").write_text("\n".join(line(number) for number in range(50_000)))
    with running(tmp_path) as found:
        command = [sys.executable, "-m", "sidecar.cli", "import", "memories.jsonl", "--address", found.listen]
        importing = subprocess.Popen(command, stderr=subprocess.PIPE, text=True, stdout=subprocess.DEVNULL)
        while found.client.status().memory_count < 2000:
            assert importing.poll() is None
        importing.send_signal(signal.SIGINT)
        _, said = importing.communicate(timeout=60)
        assert importing.returncode == ExitCode.INTERRUPTED
        words = said.split()
        assert words[0] == "interrupted:"
        assert 0 < int(words[1].replace(",", "")) <= found.client.status().memory_count
        assert "run it again" in said
    assert "Traceback" not in said


def on_a_terminal(*arguments: str, **environ: str) -> bytes:
    """All that a command shows on a terminal, where it ends well."""
    import pty

    leader, follower = pty.openpty()
    command = [sys.executable, "-m", "sidecar.cli", *arguments]
    started = subprocess.Popen(
        command, stdout=follower, stderr=follower, env={**os.environ, "TERM": "xterm", **environ}
    )
    os.close(follower)
    shown = b""
    try:
        while piece := os.read(leader, 65_536):
            shown += piece
    except OSError:
        pass  # the other end is closed
    finally:
        os.close(leader)
    assert started.wait(timeout=60) == 0, shown
    return shown


def test_the_bar_counts_what_is_acknowledged(run: Run) -> None:
    """On a terminal the numbers beside the bar are the server's acknowledgements, of all memories of the file."""
    Path("memories.jsonl").write_text("\n".join(line(number) for number in range(1000)))
    assert b"/1000" in on_a_terminal("import", "memories.jsonl")


@pytest.mark.parametrize(
    ("flags", "term"),
    [(["--no-color"], "xterm"), (["--no-color", "--json"], "xterm"), ([], "dumb")],
)
def test_where_no_colour_is_wanted_the_bar_has_none(run: Run, flags: list[str], term: str) -> None:
    """Nor has a table; a terminal that cannot move back gets no bar at all."""
    Path("memories.jsonl").write_text("\n".join(map(line, range(20))))
    colour = re.compile(rb"\x1b\[[0-9;]*m")
    assert colour.search(on_a_terminal("import", "memories.jsonl"))
    shown = on_a_terminal("import", "memories.jsonl", *flags, TERM=term)
    assert not colour.search(shown)
    assert (b"/20" in shown) == (term == "xterm")
    assert not colour.search(on_a_terminal("list", *flags, TERM=term))
