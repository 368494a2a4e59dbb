"""Where an export goes: a file that is there whole or not at all, a link, a pipe, or nowhere, in words."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from sidecar.cli.connection import Connection
from sidecar.cli.failures import ExitCode
from tests.cli.conftest import Run
from tests.cli.test_import import line
from tests.serving import ended, running, wait_until_scored


def test_an_export_is_there_whole_or_not_at_all(run: Run, folder: Path, server: Connection) -> None:
    """Killed in the middle, it leaves the old file as it was, and no half one under any name but a hidden part's."""
    for start in range(0, 4000, 1000):
        lines = "\n".join(line(number, content=f"{number} " + "x" * 3000) for number in range(start, start + 1000))
        assert run("import", "-", stdin=lines).exit_code == 0
    Path("store.jsonl").write_text("the old one")
    command = [sys.executable, "-m", "sidecar.cli", "export", "--output", "store.jsonl"]
    for number, leaves in ((signal.SIGTERM, False), (signal.SIGKILL, True)):
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        while process.poll() is None and not any(part.stat().st_size for part in Path().glob(".store.jsonl.*")):
            pass
        process.send_signal(number)
        process.communicate(timeout=30)
        assert process.returncode != 0
        assert Path("store.jsonl").read_text() == "the old one"
        assert bool(list(Path().glob(".store.jsonl.*"))) == leaves
    assert run("export", "--output", "store.jsonl").exit_code == 0
    assert len(Path("store.jsonl").read_bytes().splitlines()) >= 4001


def test_an_export_that_cannot_be_written_says_why(run: Run) -> None:
    """The folder is not there: code 3, and the file's name."""
    run("put", "text", "--id", "m1")
    found = run("export", "--output", "nowhere/store.jsonl")
    assert found.exit_code == ExitCode.NOT_FOUND
    assert "nowhere/store.jsonl" in found.stderr


def test_an_exported_file_is_its_owners_alone(run: Run) -> None:
    """Memories are nobody else's business."""
    assert run("put", "secret", "--id", "m1").exit_code == 0
    assert run("export", "--output", "store.jsonl").exit_code == 0
    assert Path("store.jsonl").stat().st_mode & 0o777 == 0o600


def test_an_export_goes_where_a_link_points(run: Run) -> None:
    """The link stays one, also where it points at what is not there yet; what it points at is replaced as a whole."""
    Path("there").mkdir()
    Path("there/old.jsonl").write_text("the old one")
    run("put", "text", "--id", "m1")
    for name in ("old.jsonl", "new.jsonl"):
        Path(name).symlink_to(f"there/{name}")
        assert run("export", "--output", name).exit_code == 0
        assert Path(name).is_symlink()
        assert len(Path(f"there/{name}").read_text().splitlines()) == 3
    assert sorted(path.name for path in Path("there").iterdir()) == ["new.jsonl", "old.jsonl"]


def test_two_exports_of_one_store_are_the_same_lines(folder: Path) -> None:
    """Byte for byte, after a restart too, but for the first line, which tells the export's time."""
    deep = {f"k{number}": {"b": number, "a": [{"d": 1, "c": 2}]} for number in range(20)}
    place = folder / "twice"
    place.mkdir()
    found = []
    for _ in range(2):
        with running(place) as served:
            served.client.upsert("default", [{"id": f"m{number}", "content": "x", "metadata": deep} for number in "12"])
            wait_until_scored(served.client, "default")
            command = [sys.executable, "-m", "sidecar.cli", "export", "--address", served.listen]
            found += [ended(command).stdout.splitlines()[1:] for _ in range(2)]
    assert len(found[0]) == 4
    assert all(each == found[0] for each in found)


def test_a_pipe_and_a_device_are_written_to_and_stay_what_they_are(run: Run) -> None:
    """Nothing takes their place."""
    run("put", "text", "--id", "m1")
    os.mkfifo("pipe")
    read: list[str] = []
    reader = threading.Thread(target=lambda: read.append(Path("pipe").read_text()), daemon=True)
    reader.start()
    assert run("export", "--output", "pipe").exit_code == 0
    reader.join(30)
    assert len(read[0].splitlines()) == 3
    assert Path("pipe").is_fifo()
    Path("null").symlink_to("/dev/null")
    assert run("export", "--output", "null").exit_code == 0
    assert Path("null").is_char_device()
    full = run("export", "--output", "/dev/full")
    assert (full.exit_code, "cannot write /dev/full: No space left" in full.stderr) == (ExitCode.ERROR, True)


@pytest.mark.parametrize("output", ["/dev/stdout", "/dev/fd/1", "-"])
def test_standard_output_by_any_name_gets_the_lines_and_nothing_else(run: Run, output: str) -> None:
    """Through a pipe, and at the end of what a file holds already."""
    run("put", "text", "--id", "m1")
    command = [sys.executable, "-m", "sidecar.cli", "export", "--output", output]
    piped = ended(command)
    assert (piped.returncode, len(piped.stdout.splitlines())) == (0, 3)
    Path("log").write_text("the old one\n")
    with open("log", "a") as log:
        assert subprocess.run(command, stdout=log).returncode == 0
    old, *lines = Path("log").read_text().splitlines()
    assert (old, [json.loads(each).get("type") for each in lines]) == ("the old one", ["export", None, "memory_state"])


def test_a_pipe_of_the_shells_is_written_to(run: Run) -> None:
    """As `--output >(gzip > x.gz)` names one."""
    run("put", "text", "--id", "m1")
    reader, writer = os.pipe()
    with open(reader, "rb") as pipe:
        assert run("export", "--output", f"/dev/fd/{writer}").exit_code == 0
        os.close(writer)
        assert len(pipe.read().splitlines()) == 3


@pytest.mark.parametrize(
    ("output", "code", "words"),
    [
        (".", ExitCode.ERROR, "cannot write .: Is a directory"),
        ("folder", ExitCode.ERROR, "cannot write folder: Is a directory"),
        ("loop", ExitCode.ERROR, "cannot write loop: Too many levels"),
        ("", ExitCode.USAGE, "'--output': is empty: name a file"),
    ],
)
def test_an_output_that_is_no_file_is_told(run: Run, output: str, code: ExitCode, words: str) -> None:
    """In a line, and nothing is left behind."""
    run("put", "text", "--id", "m1")
    Path("folder").mkdir()
    Path("loop").symlink_to("loop")
    found = run("export", "--output", output)
    assert found.exit_code == code, found.output
    assert words in found.stderr
    assert sorted(os.listdir()) == ["folder", "loop"]


def test_a_namespace_that_is_not_there_is_not_exported(run: Run) -> None:
    """Code 3, and the old file stays; a namespace whose memories are gone is there all the same."""
    Path("store.jsonl").write_text("the old one")
    for output in ("store.jsonl", "-"):
        found = run("export", "--output", output, "--namespace", "nope")
        assert (found.exit_code, found.stdout) == (ExitCode.NOT_FOUND, "")
        assert "there is no namespace nope: nothing was ever stored in it" in found.stderr
    assert Path("store.jsonl").read_text() == "the old one"
    run("put", "text", "--id", "m1")
    run("delete", "m1")
    assert run("export", "--output", "store.jsonl").exit_code == 0
