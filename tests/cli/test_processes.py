"""Whole processes: the server's start and end, Ctrl-C, and pipes that close."""

from __future__ import annotations

import json
import os
import shlex
import signal
import socket
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from memoryranker.client import Client

from sidecar.cli.connection import Connection
from sidecar.cli.failures import ExitCode
from sidecar.store.store import Store
from tests.serving import TELLING, WITHOUT_PRIVILEGES, ended, finished, started

COMMAND = (sys.executable, "-m", "sidecar.cli")


def start(arguments: Sequence[str], **options: Any) -> subprocess.Popen[str]:
    environ = {name: value for name, value in os.environ.items() if not name.startswith("MEMORY_RANKER_")}
    return subprocess.Popen(
        [*COMMAND, *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**environ, **TELLING},
        **options,
    )


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_serve_says_once_that_it_is_ready_and_stops_in_order(number: int, folder: Path) -> None:
    """One line with the address when it takes calls; a signal ends it with code 0 and nothing on standard output."""
    address = f"unix:{folder}/own.sock"
    process = start(["serve", "--data", str(folder / "own"), "--listen", address, "--log-format", "json"])
    assert process.stderr is not None
    ready = json.loads(process.stderr.readline())
    assert address in ready["message"]
    process.send_signal(number)
    done = finished(process)
    assert (done.returncode, done.stdout) == (0, "")
    assert all(json.loads(line)["level"] == "info" for line in done.stderr.splitlines())


def test_a_second_server_says_in_one_line_who_has_the_address(server: Connection, folder: Path) -> None:
    """Code 7, one line; the first server goes on."""
    process = start(["serve", "--data", str(folder / "other"), "--listen", server.address])
    done = finished(process)
    assert (done.returncode, done.stdout) == (ExitCode.TAKEN, "")
    assert len(done.stderr.splitlines()) == 1
    assert server.address.removeprefix("unix:") in done.stderr
    with server.client() as client:
        client.status()


def test_a_second_server_on_a_store_says_in_one_line_who_has_it(server: Connection, folder: Path) -> None:
    """Code 7, one line that names the folder."""
    process = start(["serve", "--data", str(folder / "store"), "--listen", f"unix:{folder}/second.sock"])
    done = finished(process)
    assert (done.returncode, done.stdout) == (ExitCode.TAKEN, "")
    assert len(done.stderr.splitlines()) == 1
    assert str(folder / "store") in done.stderr


def test_ctrl_c_ends_a_waiting_command_quietly(folder: Path) -> None:
    """Code 130 and not a word, while a server that never answers is waited for."""
    path = folder / "silent.sock"
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(path))
        listener.listen()
        process = start(["status", "--address", f"unix:{path}", "--timeout", "60"])
        with listener.accept()[0]:
            process.send_signal(signal.SIGINT)
            assert process.communicate(timeout=30) == ("", "")
    assert process.returncode == ExitCode.INTERRUPTED


def test_no_answer_in_time_names_the_address_and_the_timeout(folder: Path) -> None:
    """Code 5; a longer --timeout is the way out."""
    path = folder / "slow.sock"
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(path))
        listener.listen()
        process = start(["status", "--address", f"unix:{path}", "--timeout", "0.2"])
        output, said = process.communicate(timeout=30)
    assert (process.returncode, output) == (ExitCode.UNAVAILABLE, "")
    assert str(path) in said


def test_a_server_that_loads_is_waited_for_and_said_to_load(folder: Path) -> None:
    """Code 5 after --timeout, with the way to wait longer."""
    with started(f"unix:{folder}/loading.sock"):
        done = finished(start(["status", "--address", f"unix:{folder}/loading.sock", "--timeout", "2"]))
    assert (done.returncode, done.stdout) == (ExitCode.UNAVAILABLE, "")
    assert done.stderr == (
        f"Error: NOT_READY: unix:{folder}/loading.sock still loads its memories, after 2 s; wait longer with --timeout "
        "SECONDS\n"
    )


@pytest.mark.parametrize(
    "arguments",
    [
        ["config", "--defaults"],
        ["namespaces", "--json"],
        ["status"],
        ["export"],
        ["export", "--output", "/dev/stdout"],
        ["export", "--help"],
        ["--help"],
        ["--version"],
    ],
    ids=" ".join,
)
def test_a_reader_that_stops_reading_is_no_error_to_shout_about(server: Connection, arguments: list[str]) -> None:
    """`memory-ranker config --defaults | head -1` says nothing; the code is that of a tool which the pipe kills."""
    with server.client() as client:
        client.upsert("default", [{"id": "m1", "content": "text"}])
    reader, writer = os.pipe()
    os.close(reader)
    environ = {**os.environ, "MEMORY_RANKER_LISTEN": server.address}
    found = subprocess.run([*COMMAND, *arguments], stdout=writer, stderr=subprocess.PIPE, text=True, env=environ)
    os.close(writer)
    assert (found.returncode, found.stderr) == (ExitCode.CLOSED, "")


@pytest.mark.parametrize("arguments", ["put text --id closed1", "list", "list --json", "export", "--help"])
def test_a_closed_output_is_told_before_anything_is_done(server: Connection, arguments: str) -> None:
    """Code 1 in one line, and the memory is not there."""
    found = shell(f"{arguments} >&-", server)
    assert (found.returncode, found.stdout) == (ExitCode.ERROR, "")
    assert found.stderr.splitlines() == [
        "Error: standard output is closed, nothing was done; send it to /dev/null if it is not wanted"
    ]
    assert shell("get closed1", server).returncode == ExitCode.NOT_FOUND


@pytest.mark.parametrize("arguments", ["import -", "put --file -", "put --jsonl -", "purge default"])
def test_a_closed_input_is_an_empty_one(server: Connection, arguments: str) -> None:
    """It ends as `</dev/null` does."""
    closed, empty = (shell(f"{arguments} {given}", server) for given in ("<&-", "</dev/null"))
    assert (closed.returncode, closed.stdout, closed.stderr) == (empty.returncode, empty.stdout, empty.stderr)
    assert "Traceback" not in closed.stderr


@pytest.mark.parametrize(("arguments", "code"), [("status", 0), ("get nope", ExitCode.NOT_FOUND), ("get", 2)])
def test_a_closed_error_output_changes_no_code(server: Connection, arguments: str, code: int) -> None:
    """What would be said there is lost, and nothing else: it does not end up where the answer goes."""
    found = shell(f"{arguments} 2>&-", server)
    assert (found.returncode, bool(found.stdout)) == (code, code == 0)


def shell(line: str, server: Connection) -> subprocess.CompletedProcess[str]:
    """Runs a command as a shell does, with its redirections."""
    environ = {**os.environ, "MEMORY_RANKER_LISTEN": server.address}
    command = f"exec {shlex.join(COMMAND)} {line}"
    return subprocess.run(["sh", "-c", command], capture_output=True, text=True, env=environ, timeout=60)


def test_a_full_disk_behind_the_output_is_told_in_a_line() -> None:
    """Code 1, and no traceback."""
    with open("/dev/full", "w") as full:
        found = subprocess.run([*COMMAND, "config", "--json"], stdout=full, stderr=subprocess.PIPE, text=True)
    assert found.returncode == ExitCode.ERROR
    assert found.stderr.splitlines() == [
        "Error: cannot write the output: No space left on device; make room, or send it elsewhere"
    ]


def test_a_batch_that_breaks_off_says_how_far_it_came(folder: Path) -> None:
    """The server stops between two batches: code 5, and the message has the last line that was stored."""
    lines = "".join(f'{{"id": "m{number}", "content": "memory {number}"}}\n' for number in range(1, 1502))
    address = f"unix:{folder}/broken.sock"
    served = start(["serve", "--data", str(folder / "broken"), "--listen", address])
    assert served.stderr is not None
    assert "serving on" in served.stderr.readline()
    writer = start(["put", "--jsonl", "-", "--address", address, "--timeout", "30"], stdin=subprocess.PIPE)
    assert writer.stdin is not None
    with Client(address) as client:
        # Enough lines for a batch; the pipe stays open.
        writer.stdin.write("".join(lines.splitlines(keepends=True)[:1400]))
        writer.stdin.flush()
        while not any(each.memory_count for each in client.namespaces()):
            pass
    served.terminate()
    finished(served)
    output, said = writer.communicate(lines.splitlines()[1400], timeout=60)
    assert (writer.returncode, output) == (ExitCode.UNAVAILABLE, "")
    assert "stored up to line" in said


@pytest.mark.skipif(os.geteuid() == 0 and sys.platform != "linux", reason="root may read anything")
@pytest.mark.parametrize("command", [("check", "--data"), ("evaluate", "default")])
def test_a_folder_that_may_not_be_read_is_named(tmp_path: Path, command: tuple[str, ...]) -> None:
    """A command that opens a store's folder itself says which folder it may not read, as `serve` does, and no more."""
    shut = tmp_path / "shut"
    with Store.open(shut / "there"):
        pass
    shut.chmod(0)
    try:
        done = ended(
            [sys.executable, "-c", WITHOUT_PRIVILEGES, "-m", "sidecar.cli", *command, shut / "there"],
        )
    finally:
        shut.chmod(0o755)
    assert done.returncode == ExitCode.TAKEN, done.stderr
    (line,) = done.stderr.strip().splitlines()
    assert all(words in line for words in ("STORE_UNAVAILABLE", str(shut), "Permission denied"))
