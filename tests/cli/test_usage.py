"""What the command line refuses before it asks any server, and how it says so."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import click
import pytest
from click.testing import CliRunner, Result

from sidecar.cli.failures import MEANINGS, ExitCode
from sidecar.cli.group import cli
from sidecar.config import resolve
from tests.serving import ended

NOWHERE = "unix:/nonexistent/memory-ranker.sock"


def run(*arguments: str, stdin: str | None = None) -> Result:
    return CliRunner().invoke(cli, arguments, input=stdin, prog_name="memory-ranker")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["put"], "exactly one of TEXT, --file and --jsonl"),
        (["put", "text", "--jsonl", "x.jsonl"], "exactly one"),
        (["put", "--jsonl", "x.jsonl", "--kind", "fact"], "every line has its own"),
        (["put", "text", "--create-time", "yesterday"], "is no time. Write 2026-10-01"),
        (["put", "text", "--metadata", "no-equals-sign"], "is not KEY=VALUE"),
        (["put", "text", "--embedding", "[1, true]"], "is not a JSON list of numbers"),
        (["update", "m1"], "at least one field"),
        (["update", "m1", "--pinned", "--clear", "pinned"], "both set and cleared"),
        (["update", "m1", "--clear", "id"], "'id' is not one of"),
        (["delete"], "name ids or give a filter"),
        (["delete", "m1", "--kind", "fact"], "name ids or give a filter"),
        (["rank", "x", "--weights", "default", "--model", "v1"], "exclude each other"),
        (["rank", "x", "--weights", '{"lexical": '], "--weights is not JSON"),
        (["rank", "x", "--weights", '{"lexical": "much"}'], "holds no weights"),
        (
            ["rank", "x", "--weights", '{"features": {"lexical": 1}, "cap": {}}'],
            "unknown part 'cap'; did you mean 'caps'",
        ),
        (["why", "m1"], "name a packet and a memory, or a memory and --task"),
        (["why", "p1", "m1", "--task", "x"], "name one memory and no packet"),
        (["why", "p1", "m1", "--max-items", "5"], "only with --task"),
        (["report-use"], "name the packet"),
        (["report-use", "p1", "--complete", "--incomplete"], "exclude each other"),
        (["report-use", "p1", "--json-payload", "{}"], "one of the two"),
        (["report-use", "--json-payload", "{"], "the payload is not JSON"),
        (["report-use", "--json-payload", "[]"], "no JSON object"),
        (["report-use", "--json-payload", "{}"], "packet_id is no text"),
        (["report-use", "--json-payload", '{"packet_id": "p", "used": []}'], "unknown name 'used'"),
        (["report-use", "--json-payload", '{"packet_id": "p", "used_memory_ids": "m1"}'], "no list of texts"),
        (["report-use", "--json-payload", '{"packet_id": "p", "kind": "guess"}'], "one of explicit, inferred"),
        (["report-use", "--json-payload", '{"packet_id": "p", "kind": "echo", "channel": "echo"}'], "twice"),
        (["rate", "m1", "good"], "'good' is not one of"),
        (["get", "m1", "--address", "/tmp/socket"], "write unix:PATH or HOST:PORT"),
        (["status", "-a", "127.0.0.1:99999"], "is no address: write unix:PATH or HOST:PORT, with a port up to 65535"),
        (["status", "-a", "host:"], "'host:' is no address"),
        (["status", "-a", "unix:"], "'unix:' is no address"),
        (["status", "-a", f"unix:/{'a' * 107}"], "a socket path of at most 107 bytes"),
        (["status", "-a", "unix-abstract:x"], "an abstract socket has no file mode"),
        (["get", "m1", "--namespace", ""], "name a namespace"),
        (["get", "m1", "--timeout", "0"], "0<x<=86400"),
        (["get", "m1", "--timeout", "nan"], "nan is not in the range 0<x<=86400"),
        (["config", "--defaults", "--json"], "TOML, not JSON"),
        (["config", "--threads", "many"], "a whole number from 1 to 64"),
        (["serve", "--listen", "0.0.0.0:7070"], "this machine alone"),
        (["no-such-command"], "No such command"),
    ],
)
def test_what_cannot_be_meant_is_refused_with_the_way_out(
    arguments: list[str], words: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A wrong command line ends with code 2, says on standard error what is wrong, and asks no server."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MEMORY_RANKER_LISTEN", NOWHERE)
    if arguments[0] in ("config", "serve"):
        monkeypatch.delenv("MEMORY_RANKER_LISTEN")
    result = run(*arguments)
    assert result.exit_code == ExitCode.USAGE, result.output
    assert words in " ".join(result.stderr.split())
    assert result.stdout == ""


@pytest.mark.parametrize(
    "arguments",
    [
        ["put", "--file"],
        ["put", "--jsonl"],
        ["import"],
        ["export", "--output"],
        ["rank", "x", "--candidates"],
        ["report-output", "p1"],
        ["report-output", "p1", "--tool-calls"],
        ["promote"],
        ["models", "--get", "v1", "--out"],
        ["backup"],
        ["backup", "copy", "--data"],
        ["restore"],
        ["check", "--data"],
        ["check", "--repair", "--into"],
        ["config", "--config"],
        ["serve", "--config"],
        ["eval"],
        ["train"],
        ["train", "log", "--out"],
        ["train-importance", "log", "--domain", "code", "--out"],
        ["evaluate", "default"],
        ["export-log", "log", "--out"],
        ["simulate"],
        ["simulate", "--out"],
    ],
    ids=" ".join,
)
def test_an_empty_path_is_refused_alike_by_every_command(
    arguments: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Code 2: it is not taken for the working directory, nor for standard input, and nothing is made."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MEMORY_RANKER_LISTEN", NOWHERE)
    result = run(*arguments, "", stdin="")
    assert result.exit_code == ExitCode.USAGE, result.output
    assert "is empty: name a f" in " ".join(result.stderr.split())
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "arguments",
    [
        ["put", "--file", "missing"],
        ["put", "--jsonl", "missing"],
        ["put", "text", "--embedding", "@missing"],
        ["import", "missing"],
        ["import", "missing", "--dry-run"],
        ["rank", "x", "--weights", "missing.toml"],
        ["rank", "x", "--candidates", "missing"],
        ["report-output", "p1", "missing"],
        ["report-output", "p1", "--tool-calls", "missing"],
        ["promote", "./missing"],
        ["rollback", "--data", "missing"],
        ["backup", "copy", "--data", "missing"],
        ["restore", "missing", "--data", "new"],
        ["check", "--data", "missing"],
        ["reindex", "--data", "missing", "--embedder", "none"],
        ["eval", "missing"],
        ["train", "missing"],
        ["train", "missing.parquet"],
        ["train", "missing.db"],
        ["train", "--base", "./missing"],
        ["evaluate", "default", "missing"],
        ["evaluate", "./missing"],
        ["evaluate", "default", "--against", "./missing"],
        ["simulate", "--weights", "./missing"],
        ["train-importance", "missing.db", "--domain", "code"],
        ["export-log", "missing", "--out", "log.parquet"],
    ],
    ids=" ".join,
)
def test_a_path_that_is_not_there_is_told_alike_by_every_command(
    arguments: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Code 3, one line that names the path once and does not show how the program speaks of it, and nothing is made."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MEMORY_RANKER_LISTEN", NOWHERE)
    result = run(*arguments)
    assert result.exit_code == ExitCode.NOT_FOUND, result.output
    (line,) = result.stderr.strip().splitlines()
    assert line.startswith("Error: ")
    assert line.replace(str(tmp_path), "").count("missing") == 1
    assert "Errno" not in line
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "arguments",
    [
        ["put", "--file", "file"],
        ["rank", "x", "--candidates", "file"],
        ["rank", "x", "--weights", "file.json"],
        ["eval", "file"],
        ["train", "file"],
        ["train", "file.parquet"],
        ["train", "notes.md"],
        ["evaluate", "default", "file"],
        ["export-log", "file", "--out", "log.parquet"],
    ],
    ids=" ".join,
)
def test_a_file_that_is_something_else_is_told_alike_by_every_command(
    arguments: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Code 2, whatever it should have been, and it is named."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MEMORY_RANKER_LISTEN", NOWHERE)
    for name in ("file", "file.json", "file.parquet"):
        (tmp_path / name).write_bytes(b"\xff\xfe no text")
    (tmp_path / "notes.md").write_bytes("\ufeff\n\n# Notes\n- The packet_id is long.\n".encode())
    result = run(*arguments)
    assert result.exit_code == ExitCode.USAGE, result.output
    assert next(each for each in arguments if each.startswith(("file", "notes"))) in result.stderr


def test_a_usage_error_is_a_json_object_with_json() -> None:
    """With --json a wrong command line too is one JSON object on standard error."""
    result = run("why", "m1", "--json")
    assert result.exit_code == ExitCode.USAGE
    assert result.stdout == ""
    error = json.loads(result.stderr)["error"]
    assert (error["reason"], error["exit_code"]) == ("USAGE", 2)
    assert "--task" in error["message"]


@pytest.mark.parametrize("given", ["unix:~/none.sock", "unix://none.sock"])
def test_an_address_is_read_as_the_server_reads_it(given: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """So that one variable says to both where the socket lies."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(Path.cwd()))
    monkeypatch.setenv("MEMORY_RANKER_LISTEN", given)
    listen = resolve({}, os.environ).settings.listen
    result = run("status", "--timeout", "0.2")
    assert (result.exit_code, f"{listen} " in result.stderr) == (ExitCode.UNAVAILABLE, True), result.stderr


def test_without_a_server_the_address_and_the_way_out_are_named() -> None:
    """No server: code 5, and the message has the address and the command that starts one."""
    result = run("status", "--address", NOWHERE)
    assert result.exit_code == ExitCode.UNAVAILABLE
    assert result.stderr.count(NOWHERE.removeprefix("unix:")) == 1
    assert "memory-ranker serve" in result.stderr
    assert "(No such file or directory)" in result.stderr


def test_no_option_takes_what_is_no_number_for_a_number_in_its_range() -> None:
    """NaN is below and above nothing, so a range of click's own lets it in."""
    group = click.Context(cli)
    ranges = [
        (name, parameter)
        for name in cli.list_commands(group)
        if (command := cli.get_command(group, name)) is not None
        for parameter in command.params
        if isinstance(parameter.type, click.FloatRange)
    ]
    assert {"train", "simulate"} <= {name for name, _ in ranges}
    for _, parameter in ranges:
        with pytest.raises(click.BadParameter, match="nan is not in the range"):
            parameter.type.convert("nan", parameter, group)


def test_help_lists_every_exit_code() -> None:
    """The help of the group has the table of exit codes."""
    shown = run("--help").stdout
    for code, words in MEANINGS.items():
        assert f"{int(code)}  " in shown
        assert words in " ".join(shown.split())


@pytest.mark.parametrize("name", sorted(cli.commands))
def test_every_command_has_a_summary_an_example_and_words_for_each_option(name: str) -> None:
    """--help of every command starts with a sentence, explains all options and ends with an example."""
    command = cli.commands[name]
    assert command.help
    assert command.short_help
    assert "memory-ranker " + name in (command.epilog or "")
    for parameter in command.params:
        assert parameter.param_type_name == "argument" or getattr(parameter, "help", None), parameter.name


def test_help_loads_neither_arrays_nor_the_wire() -> None:
    """`memory-ranker --help` and the parsing of any command load no NumPy, FAISS, gRPC or embedder."""
    code = (
        "import sys, sidecar.cli.group; "
        "print(sorted({'numpy', 'faiss', 'grpc', 'wordllama', 'google.protobuf', 'rich'} & set(sys.modules)))"
    )
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "[]"


def test_one_openmp_thread_is_asked_for_before_anything_else_is_loaded() -> None:
    """Importing the command line sets OMP_NUM_THREADS to 1, and leaves another wish as it is."""
    code = "import os, sidecar.cli; print(os.environ['OMP_NUM_THREADS'])"
    for given, expected in ((None, "1"), ("3", "3")):
        environ = {"PATH": "/usr/bin"} | ({"OMP_NUM_THREADS": given} if given else {})
        found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, env=environ)
        assert found.stdout.strip() == expected


def test_a_thread_that_hangs_does_not_hold_up_the_exit(tmp_path: Path) -> None:
    """A command that has ended has ended, with its output whole, whatever a library left running."""
    info = tmp_path / "extension-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: extension\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[memory_ranker.commands]\nhang = extension:hang\n")
    (tmp_path / "extension.py").write_text(
        "import threading, click\n@click.command()\ndef hang():\n"
        "    threading.Thread(target=threading.Event().wait).start()\n"
        "    click.echo('done')\n    click.get_current_context().exit(3)\n"
    )
    environ = {"PATH": "/usr/bin", "PYTHONPATH": str(tmp_path)}
    found = ended([sys.executable, "-m", "sidecar.cli", "hang"], env=environ)
    assert (found.returncode, found.stdout) == (3, "done\n")


def test_other_packages_add_commands_and_a_broken_one_does_no_harm(tmp_path: Path) -> None:
    """An entry point is a command like any other; one that cannot be loaded says so, in the help and when it is run."""
    info = tmp_path / "extension-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: extension\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(
        "[memory_ranker.commands]\ngreet = extension:greet\nlost = extension_missing:lost\n"
    )
    (tmp_path / "extension.py").write_text(
        "import click\n@click.command(short_help='Greet.')\ndef greet():\n    click.echo('hello')\n"
    )

    def call(*arguments: str) -> subprocess.CompletedProcess[str]:
        environ = {"PATH": "/usr/bin", "PYTHONPATH": str(tmp_path)}
        return ended([sys.executable, "-m", "sidecar.cli", *arguments], env=environ)

    shown = call("--help").stdout
    assert "Greet." in shown
    assert "lost" in shown
    assert call("greet").stdout == "hello\n"
    broken = call("lost", "--any", "thing")
    assert broken.returncode == ExitCode.ERROR
    assert "cannot be loaded" in broken.stderr
