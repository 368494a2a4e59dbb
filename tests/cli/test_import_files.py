"""The files of an import: pipes, foreign lines, entries of folders that cannot be read, times out of range, and what is
told of an import that broke off."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from sidecar.cli.failures import ExitCode
from tests.cli.conftest import Run
from tests.cli.test_import import call, document, line
from tests.serving import WITHOUT_PRIVILEGES, ended, running


def fed(path: str | int, data: bytes) -> threading.Thread:
    """Writes into a pipe from a thread of its own, as another process would."""

    def write() -> None:
        with open(path, "wb") as pipe:
            pipe.write(data)

    thread = threading.Thread(target=write, daemon=True)
    thread.start()
    return thread


def too_long(name: str) -> None:
    """A Markdown file of more than the 64 MiB that are read of one, which takes no room on the disk."""
    with open(name, "wb") as file:
        file.write(b"- a bullet\n")
        file.truncate((64 << 20) + 1)


@pytest.mark.parametrize("name", ["pipe", "pipe.jsonl", "/dev/fd"])
def test_a_pipe_is_read_once_and_whole(run: Run, name: str) -> None:
    """A named one and a shell's <(...): more than any buffer holds, every line under its own number."""
    lines = [line(number, content=f"{number} " + "x" * 1500) for number in range(1, 101)]
    lines[79] = lines[79][:20]
    data = "\n".join(lines).encode()
    if name == "/dev/fd":
        reader, writer = os.pipe()
        name, feeder = f"/dev/fd/{reader}", fed(writer, data)
    else:
        os.mkfifo(name)
        reader, feeder = -1, fed(name, data)
    found = document(run("import", name, "--json"), ExitCode.PARTLY)
    feeder.join(30)
    assert (found["created"], [each["line"] for each in found["refused"]]) == (99, [80])
    if reader >= 0:
        os.close(reader)


def test_markdown_from_a_pipe_lies_in_no_folder(run: Run) -> None:
    """What it imports is told and not followed, as of standard input; the rest goes in."""
    text = b"- be brief\n- see @docs/style.md, ask @priya\n"
    os.mkfifo("pipe")
    feeder = fed("pipe", text)
    piped, given = document(run("import", "pipe", "--json")), document(run("import", "-", "--json", stdin=text))
    feeder.join(30)
    words = "line 2: imports @docs/style.md, which is not followed; name that file itself"
    for name, found in (("pipe", piped), ("-", given)):
        assert (found["created"], found["refused"], found["notes"]) == (2, [], [f"{name}, {words}"])


def test_with_a_map_lines_are_foreign_whatever_their_type(run: Run) -> None:
    """A `type` of theirs is no row of our log; without a --map it is one."""
    types = ("report", "note", "export", "rating", "packet")
    Path("foreign.jsonl").write_text("\n".join(json.dumps({"type": each, "text": f"a {each}"}) for each in types))
    found = document(run("import", "foreign.jsonl", "--map", "content=text", "--map", "kind=type", "--json"))
    assert (found["created"], found["refused"], found["log"]) == (5, [], {"imported": 0, "known": 0})
    stored = {each["content"]: each["kind"] for each in document(run("list", "--json"))["memories"]}
    assert stored == {f"a {each}": each for each in types}


def test_one_bad_entry_of_a_folder_holds_up_no_other(run: Run) -> None:
    """Links that lead nowhere, in a circle or to a folder, a pipe, a file that is too long: told by name."""
    Path("notes/inner.md").mkdir(parents=True)
    Path("notes/good.md").write_text("- one\n- @loop.md\n")
    Path("notes/inner.md/also.md").write_text("- two\n")
    Path("notes/.#good.md").symlink_to("priya@laptop.4711")
    Path("notes/loop.md").symlink_to("loop.md")
    Path("notes/loop").symlink_to("loop")
    Path("notes/folder.md").symlink_to("inner.md")
    os.mkfifo("notes/pipe.md")
    too_long("notes/long.md")
    found = document(run("import", "notes", "--json"), ExitCode.PARTLY)
    assert found["created"] == 2
    assert {(each["file"], each["line"]): each["message"] for each in found["refused"]} == {
        ("notes/.#good.md", 0): "cannot be read: No such file or directory",
        ("notes/folder.md", 0): "is no file; name it by itself",
        ("notes/good.md", 2): "imports @loop.md, which is not there (notes/loop.md)",
        ("notes/long.md", 0): "has more than 64 MiB; make JSON Lines of it",
        ("notes/loop.md", 0): "cannot be read: Too many levels of symbolic links",
        ("notes/pipe.md", 0): "is no file; name it by itself",
    }
    told = run("import", "notes")
    assert told.exit_code == ExitCode.PARTLY
    assert "\nnotes/loop.md: cannot be read: Too many levels" in told.stderr


def imported_without_privileges(*arguments: str) -> subprocess.CompletedProcess[str]:
    """What an import says that may not read what its user may not."""
    return ended([sys.executable, "-c", WITHOUT_PRIVILEGES, "-m", "sidecar.cli", "import", *arguments])


@pytest.mark.skipif(os.geteuid() == 0 and sys.platform != "linux", reason="root may read anything")
def test_a_folder_below_that_cannot_be_read_is_told(run: Run) -> None:
    """One that cannot be listed, and what lies in one that cannot be entered: by path, and the rest goes in. Named
    itself, it ends the import."""
    for name in ("open", "shut/below", "listed"):
        Path("notes", name).mkdir(parents=True)
        Path("notes", name, "note.md").write_text(f"- of {name}\n")
    Path("notes/shut").chmod(0)
    Path("notes/listed").chmod(0o444)
    try:
        told = imported_without_privileges("notes", "--json")
        found = json.loads(told.stdout)
        named = imported_without_privileges("notes/shut")
    finally:
        Path("notes/shut").chmod(0o755)
        Path("notes/listed").chmod(0o755)
    assert (told.returncode, found["created"]) == (ExitCode.PARTLY, 1)
    assert {(each["file"], each["line"]): each["message"] for each in found["refused"]} == {
        ("notes/listed/note.md", 0): "cannot be read: Permission denied",
        ("notes/shut", 0): "cannot be read: Permission denied",
    }
    assert (named.returncode, "cannot read notes/shut: Permission denied" in named.stderr) == (ExitCode.USAGE, True)
    assert run("import", "notes").exit_code == 0


def test_a_folder_of_nothing_good_ends_with_the_code_for_refused(run: Run) -> None:
    """As a file of nothing good does."""
    Path("notes").mkdir()
    Path("notes/broken.md").symlink_to("nowhere.md")
    assert run("import", "notes").exit_code == ExitCode.REFUSED


@pytest.mark.parametrize(
    ("name", "code", "words"),
    [
        ("loop", ExitCode.USAGE, "cannot read loop: Too many levels of symbolic links"),
        ("broken.md", ExitCode.NOT_FOUND, "cannot read broken.md: No such file"),
        ("long.md", ExitCode.USAGE, "long.md has more than 64 MiB"),
    ],
)
def test_a_named_file_that_cannot_be_read_ends_the_import_before_it_begins(
    run: Run, name: str, code: ExitCode, words: str
) -> None:
    """Nothing goes in of the others either."""
    Path("loop").symlink_to("loop")
    Path("broken.md").symlink_to("nowhere.md")
    too_long("long.md")
    Path("good.jsonl").write_text(line(1))
    found = run("import", "good.jsonl", name)
    assert found.exit_code == code, found.output
    assert words in found.stderr
    assert document(run("list", "--json"))["memories"] == []


@pytest.mark.parametrize(
    "given",
    [
        *("0001-01-01T00:00:00+14:00", "9999-12-31T23:59:59-14:00", "1899-12-31", "1900-01-01T00:00:00+14:00"),
        *("2201-01-01", 1e300, 8e15, -3e9),
    ],
)
@pytest.mark.parametrize("field", ["create_time", "valid_until_time"])
def test_a_time_out_of_range_is_told_as_it_was_given(run: Run, field: str, given: str | float) -> None:
    """The field, the value and the range; nothing of Python's."""
    Path("memories.jsonl").write_text(line(1, **{field: given}) + "\n" + line(2, **{field: "2200-12-31T23:59:59Z"}))
    found = document(run("import", "memories.jsonl", "--json"), ExitCode.PARTLY)
    assert [each["message"] for each in found["refused"]] == [
        f"{field}: {given!r} is out of range; must be a time in the years 1900 to 2200, in UTC"
    ]


@pytest.mark.parametrize("given", ["0001-01-01T00:00:00+14:00", "9999-12-31T23:59:59-14:00"])
def test_a_time_that_no_message_holds_is_told_by_every_command(run: Run, given: str) -> None:
    """Of a line, of a flag, and of a moment to rank as of."""
    Path("memories.jsonl").write_text(line(1, create_time=given))
    range_ = "must be a time in the years 1900 to 2200, in UTC"
    for command in (("put", "--jsonl", "memories.jsonl"), ("put", "x", "--create-time", given)):
        found = run(*command)
        assert (found.exit_code, f"create_time is {given}; {range_}" in found.stderr) == (ExitCode.REFUSED, True)
    found = run("rank", "x", "--as-of", given)
    assert (found.exit_code, f"{given} is out of range; {range_}" in found.stderr) == (ExitCode.REFUSED, True)


def test_what_is_told_of_a_full_store_is_of_this_run_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A second import has fewer lines acknowledged than are in: it does not say that nothing more is. An export names
    the memories whose importances the full store could not take, and another store works them out."""
    monkeypatch.chdir(tmp_path)
    Path("many.jsonl").write_text("\n".join(line(number) for number in range(3000)))
    for name in ("full", "copy"):
        Path(name).mkdir()
    with running(tmp_path / "full", quota_bytes=1_200_000) as full:
        for _ in range(3):
            found = call("import", "many.jsonl", "--address", full.listen)
            assert found.exit_code == ExitCode.ERROR
            told = " ".join(found.stderr.split())
            assert "STORE_FULL" in told
            assert "(this run was acknowledged up to many.jsonl, line" in told or "(nothing of this run was ack" in told
            assert "and what was in before still is; run it again when that is mended" in told
        exported = call("export", "--output", "store.jsonl", "--json", "--address", full.listen)
    waiting = document(exported)["unscored_count"]
    rows = [json.loads(each) for each in Path("store.jsonl").read_text().splitlines()]
    assert waiting == sum(row.get("type") == "memory_state" and "importance_content" not in row for row in rows) > 0
    assert f"{waiting:,} memories had no importance yet" in exported.stderr
    assert "worked out anew at the import" in exported.stderr
    with running(tmp_path / "copy") as copy:
        assert call("import", "store.jsonl", "--address", copy.listen).exit_code == 0
        while copy.client.status("default").namespace.unscored_count:
            pass
        again = call("export", "--output", "again.jsonl", "--json", "--address", copy.listen)
        assert (document(again)["unscored_count"], again.stderr) == (0, "")
        without = call("export", "--output", "plain.jsonl", "--no-log", "--address", copy.listen)
        assert (without.exit_code, without.stderr) == (0, "")


@pytest.mark.parametrize("dry", [[], ["--dry-run"]])
def test_an_empty_section_is_told_with_its_line(run: Run, dry: list[str]) -> None:
    """In words and with --json, from a file and from a pipe; it is no fault."""
    text = "## Never commit secrets\n\n## Notes\n"
    Path("rules.md").write_text(text)
    for name in ("rules.md", "-"):
        words = f"{name}, line 3: left out, as no memory stands below it: Notes"
        found = run("import", name, *dry, stdin=text)
        assert (found.exit_code, words in found.stderr) == (0, True), found.output
        told = run("import", name, *dry, "--json", stdin=text)
        assert (told.exit_code, json.loads(told.stdout)["notes"][:1]) == (0, [words])


def test_a_mention_that_is_no_file_is_text_and_a_missing_text_is_told(run: Run) -> None:
    """The first with a note and code 0, the second with code 6; one that is there is followed, whatever its ending."""
    Path("a.md").write_text("- icons end in @2x.png and come from @/components, says @maria\n- @setup.cfg\n")
    Path("setup.cfg").write_text("- from setup\n")
    found = run("import", "a.md", "--dry-run", "--json")
    first = [each["memory"]["content"] for each in json.loads(found.stdout)["first"]]
    assert (found.exit_code, first[0], first[-1]) == (
        0,
        "icons end in @2x.png and come from @/components, says @maria",
        "from setup",
    )
    assert json.loads(found.stdout)["notes"][:2] == [
        "a.md, line 1: says @2x.png, which is no file here; kept as text",
        "a.md, line 1: says @/components, which is no file here; kept as text",
    ]
    Path("b.md").write_text("- one\n- see @gone.md\n")
    missing = run("import", "b.md", "--dry-run")
    assert (missing.exit_code, "b.md, line 2: imports @gone.md, which is not there" in missing.stderr) == (6, True)
