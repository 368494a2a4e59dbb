"""`import` over the command line, against a real server: formats, bad lines, second imports and dry runs."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from sidecar.cli.failures import ExitCode
from sidecar.cli.group import cli
from tests.cli.conftest import Run

NOBODY = "unix:/nowhere/socket"


def call(*arguments: str) -> Result:
    return CliRunner().invoke(cli, arguments, prog_name="memory-ranker")


def document(result: Result, code: int = ExitCode.OK) -> Any:
    assert result.exit_code == code, result.output
    return json.loads(result.stdout)


def line(number: int, **fields: Any) -> str:
    return json.dumps({"id": f"m{number}", "content": f"memory {number}", **fields})


def test_good_lines_go_in_and_bad_ones_are_told_by_number(run: Run) -> None:
    """Of 100 lines, one is cut off and one holds two objects: 98 are stored, 57 and 80 are named, the code is 6."""
    lines = [line(number) for number in range(1, 101)]
    lines[56] = lines[56][:20]
    lines[79] = line(80) + line(800)
    Path("memories.jsonl").write_text("\n".join(lines) + "\n")
    found = document(run("import", "memories.jsonl", "--json"), ExitCode.PARTLY)
    assert found["created"] == 98
    assert [each["line"] for each in found["refused"]] == [57, 80]
    assert "more than one object" in found["refused"][1]["message"]
    assert len(document(run("list", "--json", "--limit", "1000"))["memories"]) == 98
    told = run("import", "memories.jsonl")
    assert told.exit_code == ExitCode.PARTLY
    assert "0 created, 0 updated, 98 unchanged" in told.stdout
    assert "memories.jsonl, line 57" in told.stderr


@pytest.mark.parametrize("end", ["\n", "\r\n", "\n\n\r\n  \n"])
@pytest.mark.parametrize("mark", ["", "\ufeff"])
def test_line_ends_blank_lines_and_a_mark_are_no_content(run: Run, end: str, mark: str) -> None:
    """Files of every editor give the same memories; numbers count all lines."""
    text = mark + end.join([line(1), line(2), '{"id": "cut', line(3)])
    Path("memories.jsonl").write_bytes(text.encode())
    found = document(run("import", "memories.jsonl", "--json"), ExitCode.PARTLY)
    assert found["created"] == 3
    assert [each["line"] for each in found["refused"]] == [2 * len(end.split("\n")) - 1]


def test_what_the_server_refuses_is_told_by_line_too(run: Run) -> None:
    """A value out of bounds, a time that is none, an unknown field, a doubled id: each with its line and the field."""
    bad = [line(2, relevance=7), line(3, create_time="soon"), line(4, importence=1), line(1, content="again"), "[1]"]
    Path("memories.jsonl").write_text("\n".join([line(1), *bad, line(5)]))
    found = document(run("import", "memories.jsonl", "--json"), ExitCode.PARTLY)
    assert found["created"] == 2
    words = {each["line"]: each["message"] for each in found["refused"]}
    assert sorted(words) == [2, 3, 4, 5, 6]
    for number, expected in ((2, "relevance"), (3, "create_time"), (4, "importance"), (5, "line 1"), (6, "object")):
        assert expected in words[number]


def test_an_over_long_line_is_told_and_stops_nothing(run: Run) -> None:
    """More than a message holds: the line and the limit are named, all the others go in; so with `put --jsonl`."""
    huge = [
        line(2, content="x" * 4_400_000),
        line(3, metadata={"m": "x" * 5_000_000}),
        line(4, embedding=[0.5] * 10**6),
    ]
    row = json.dumps({"type": "rating", "memory_id": "m1", "reason": "x" * 4_400_000})
    Path("memories.jsonl").write_text("\n".join([line(1), *huge, line(5), row]))
    found = document(run("import", "memories.jsonl", "--json"), ExitCode.PARTLY)
    assert found["created"] == 2
    assert [each["line"] for each in found["refused"]] == [2, 3, 4, 6]
    assert found["refused"][0]["message"] == "content has 4,400,000 bytes; must have 1 to 65,536"
    put = document(run("put", "--jsonl", "memories.jsonl", "--json"), ExitCode.PARTLY)
    assert put["unchanged"] == 2
    assert [each["line"] for each in put["refused"]] == [2, 3, 4, 6]
    assert put["refused"][0]["message"] == "content has 4,400,000 bytes; must have 1 to 65,536"


def test_a_good_line_goes_in_whatever_was_wrong_with_one_of_its_id(run: Run) -> None:
    """Before it or after it; only a second good one is a double."""
    bad = [line(1, relevance=7), line(1, embedding=[0.5]), line(1, content="\u200b")]
    Path("memories.jsonl").write_text("\n".join([*bad, line(1), line(1, content="again"), line(1, relevance=-1)]))
    found = document(run("import", "memories.jsonl", "--json"), ExitCode.PARTLY)
    assert found["created"] == 1
    assert [each["line"] for each in found["refused"]] == [1, 2, 3, 5, 6]
    assert "the id of line 4" in found["refused"][3]["message"]
    assert document(run("get", "m1", "--json"))["content"] == "memory 1"


def test_a_dry_run_refuses_what_the_import_would(run: Run) -> None:
    """In the same words; without a server the length of vectors is not known."""
    values: list[dict[str, Any]] = [
        {"importance_override": 3.0},
        {"content": "a\0b"},
        {"content": "\u200b\u2060"},
        {"token_count": 0},
        {"embedding": "AAAA"},
        {"tags": ["x" * 129]},
        {"metadata": {"ref": 2**53 + 1}},
        {"valid_from_time": "2026-02-01", "valid_until_time": "2026-01-01"},
    ]
    rows = [{"type": "rating", "namespace": "n", "memory_id": "m0", "rating": "superb", "time": "2026-01-01T00:00:00Z"}]
    lines = [line(number, **value) for number, value in enumerate(values, 1)]
    Path("memories.jsonl").write_text("\n".join([*lines, *map(json.dumps, rows), line(100)]))
    looked = document(run("import", "memories.jsonl", "--dry-run", "--json"), ExitCode.PARTLY)
    assert (looked["memories"], looked["log_rows"]) == (1, 0)
    done = document(run("import", "memories.jsonl", "--json"), ExitCode.PARTLY)
    assert done["created"] == 1
    assert [each["line"] for each in done["refused"]] == list(range(1, 10))
    assert looked["refused"] == done["refused"]
    alone = document(run("import", "memories.jsonl", "--dry-run", "--json", "--address", NOBODY), ExitCode.PARTLY)
    words = alone["refused"].pop(4)["message"]
    assert words == "embedding has 3 bytes; must have four for each number, a little-endian float32"
    assert alone["refused"] == [each for each in done["refused"] if each["line"] != 5]
    assert alone["notes"] == []


def test_a_dry_run_knows_how_long_vectors_are(run: Run) -> None:
    """By the server's store; where none answers, vectors are told as not compared, and why."""
    Path("memories.jsonl").write_text("\n".join([line(1), line(2, embedding=[0.5] * 3)]))
    found = document(run("import", "memories.jsonl", "--dry-run", "--json"), ExitCode.PARTLY)
    assert (found["memories"], found["notes"]) == (1, [])
    ((number, words),) = [(each["line"], each["message"]) for each in found["refused"]]
    assert (number, words.startswith("embedding has 12 bytes; must have 1,024")) == (2, True)
    alone = run("import", "memories.jsonl", "--dry-run", "--address", NOBODY)
    assert (alone.exit_code, "2 memories would go into" in alone.stdout) == (ExitCode.OK, True)
    assert "no vector was compared with a store" in alone.stderr
    assert NOBODY in alone.stderr
    assert document(run("list", "--json"))["memories"] == []


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-le", "utf-16-be"])
@pytest.mark.parametrize("name", ["memories.jsonl", "MEMORY.md", "-"])
def test_a_file_in_utf_16_is_told_as_such(run: Run, encoding: str, name: str) -> None:
    """Once, with what to do, and not by the byte."""
    data = f"{line(1)}\n{line(2)}\n".encode(encoding)
    Path("MEMORY.md").write_bytes(data)
    Path("memories.jsonl").write_bytes(data)
    found = document(run("import", name, "--json", stdin=data), ExitCode.REFUSED)
    assert [each["message"] for each in found["refused"]] == ["seems to be UTF-16; save the file as UTF-8"]


def test_a_number_of_thousands_of_digits_is_told_as_such(run: Run) -> None:
    """In our words, not in Python's."""
    Path("memories.jsonl").write_text(line(1).replace("{", '{"source_sequence": ' + "9" * 5000 + ", ", 1))
    for command in (("import", "memories.jsonl"), ("put", "--jsonl", "memories.jsonl")):
        found = run(*command)
        assert found.exit_code == ExitCode.REFUSED
        assert "a whole number in it has 5,000 digits; write it as a string" in found.stderr


def test_a_file_of_an_unknown_kind_is_not_guessed_at(run: Run) -> None:
    """A table is no Markdown, unless someone says so."""
    Path("y.csv").write_text("id,content\n1,x\n")
    found = run("import", "y.csv", "--dry-run")
    assert found.exit_code == ExitCode.USAGE
    assert "y.csv has the ending .csv" in found.stderr
    assert "--format" in found.stderr
    assert run("import", "y.csv", "--dry-run", "--format", "markdown").exit_code == 0


def test_a_file_of_nothing_good_ends_with_the_code_for_refused(run: Run) -> None:
    """All refused is another end than some refused."""
    Path("memories.jsonl").write_text('{"id": "a"}\n{"content": ""}\n')
    assert run("import", "memories.jsonl").exit_code == ExitCode.REFUSED


def test_a_second_import_changes_nothing(run: Run) -> None:
    """Also of formats without ids: same ids, nothing written, the score version stays."""
    Path("MEMORY.md").write_text("# Memory\n\nWe deploy on Tuesdays.\n\n## Go\n- use tabs\n- use tabs\n- run gofmt\n")
    Path("memory").mkdir()
    Path("memory/2026-04-01.md").write_text("- met Priya\n")
    Path("notes.jsonl").write_text('{"content": "no id"}\n{"content": "ok", "create_time": 1}\n')
    Path("store.json").write_text(
        json.dumps({"id": "c", "memories": [{"id": "D1", "content": "hi", "session": 1}], "queries": []})
    )
    arguments = ("import", "MEMORY.md", "memory", "notes.jsonl", "store.json", "--json")
    first, second = document(run(*arguments)), document(run(*arguments))
    assert (first["created"], first["unchanged"]) == (8, 0)
    assert (second["created"], second["updated"], second["unchanged"]) == (0, 0, 8)
    assert second["score_version"] == first["score_version"]


def test_what_a_file_says_stands_after_its_import(run: Run) -> None:
    """Also where a memory was changed or deleted since: an import is no way to add only what is new."""
    Path("memories.jsonl").write_text("\n".join([line(1), line(2, subject="it"), line(3)]))
    assert document(run("import", "memories.jsonl", "--json"))["created"] == 3
    run("update", "m1", "--content", "another text")
    run("update", "m2", "--clear", "subject")
    run("delete", "m3")
    again = document(run("import", "memories.jsonl", "--json"))
    assert (again["created"], again["updated"], again["unchanged"]) == (1, 2, 0)
    assert document(run("get", "m1", "--json"))["content"] == "memory 1"
    assert document(run("import", "memories.jsonl", "--json"))["unchanged"] == 3


def test_markdown_becomes_memories_that_can_be_understood_alone(run: Run) -> None:
    """Bullets and paragraphs with their headings, their file as thread, their order, and the day of a daily note."""
    Path("memory").mkdir()
    Path("memory/2026-04-01.md").write_text(
        "# Wednesday\n\n## Deploys\n- canary first\n  - for 30 minutes\n\nAll well.\n"
    )
    assert run("import", "memory").exit_code == 0
    found = sorted(document(run("list", "--json"))["memories"], key=lambda each: each["source_sequence"])
    assert [each["content"] for each in found] == [
        "Deploys: canary first\n- for 30 minutes",
        "Deploys: All well.",
    ]
    assert {each["source_thread"] for each in found} == {"memory/2026-04-01.md"}
    assert {each["create_time"] for each in found} == {"2026-04-01T00:00:00Z"}


def test_a_second_import_of_a_markdown_file_changes_nothing(run: Run) -> None:
    """Code goes into the store as it stands, with its tabs, and is the same when it comes again."""
    Path("notes.md").write_text(
        "---\n\n- ```make\n  all:\n  \tcc\n  ```\n- ask @maria <!-- soon -->\n\n---\n\n> a\n> b\n"
    )
    assert document(run("import", "notes.md", "--json"))["created"] == 3
    found = {each["content"] for each in document(run("list", "--json"))["memories"]}
    assert found == {"```make\nall:\n\tcc\n```", "ask @maria", "a\nb"}
    again = document(run("import", "notes.md", "--json"))
    assert (again["created"], again["updated"], again["unchanged"]) == (0, 0, 3)


def test_imported_files_follow_and_cycles_and_gaps_are_told(run: Run) -> None:
    """@paths go from the file that names them; a circle is taken once; what is missing is an error with its line."""
    Path("docs").mkdir()
    Path("CLAUDE.md").write_text("- be brief\n\nSee @docs/style.md and @docs/gone.md, ask @priya.\n`@docs/code.md`\n")
    Path("docs/style.md").write_text("- use tabs\n- @../CLAUDE.md\n- @more.md\n")
    Path("docs/more.md").write_text("- and spaces\n")
    Path("docs/code.md").write_text("- not imported\n")
    found = document(run("import", "CLAUDE.md", "--json"), ExitCode.PARTLY)
    assert found["created"] == 4
    assert [(each["file"], each["line"]) for each in found["refused"]] == [("CLAUDE.md", 3)]
    assert "docs/gone.md" in found["refused"][0]["message"]
    assert any("docs/style.md, line 2" in note and "CLAUDE.md" in note for note in found["notes"])
    threads = {each["source_thread"] for each in document(run("list", "--json"))["memories"]}
    assert threads == {"CLAUDE.md", "docs/style.md", "docs/more.md"}


def test_foreign_fields_are_mapped_and_the_rest_is_named(run: Run) -> None:
    """Dots reach into objects and lists, metadata takes its own keys, numbers are times and ids."""
    given = {"pk": 7, "msg": {"parts": [{"text": "hello"}]}, "ts": 1_775_000_000_000, "from": "priya", "noise": 1}
    Path("chat.jsonl").write_text(json.dumps(given))
    maps = ["content=msg.parts.0.text", "id=pk", "create_time=ts", "metadata.author=from", "subject=from"]
    flags = [flag for each in maps for flag in ("--map", each)]
    found = document(run("import", "chat.jsonl", "--json", *flags))
    assert found["created"] == 1
    assert any("noise" in note for note in found["notes"])
    memory = document(run("get", "7", "--json"))
    assert (memory["content"], memory["subject"], memory["metadata"]) == ("hello", "priya", {"author": "priya"})
    assert memory["create_time"] == "2026-03-31T23:33:20Z"


@pytest.mark.parametrize("bad", ["content", "contnt=a", "content=", "=a", "metadata.=a"])
def test_a_map_that_is_none_is_an_error_of_the_command_line(run: Run, bad: str) -> None:
    """Before anything is read."""
    Path("chat.jsonl").write_text("{}")
    assert run("import", "chat.jsonl", "--map", bad).exit_code == ExitCode.USAGE


def test_a_dry_run_shows_what_would_go_in_and_needs_no_server(run: Run) -> None:
    """Memories, problems and the same exit code, and nothing is sent."""
    Path("memories.jsonl").write_text("\n".join([line(1), "{", line(2)]))
    shown = run("import", "memories.jsonl", "--dry-run", "--address", NOBODY)
    assert shown.exit_code == ExitCode.PARTLY
    assert "2 memories would go into namespace" in shown.stdout
    assert "memory 1" in shown.stdout
    assert "line 2" in shown.stderr
    found = document(run("import", "memories.jsonl", "--dry-run", "--json"), ExitCode.PARTLY)
    assert (found["memories"], len(found["refused"])) == (2, 1)
    assert document(run("list", "--json"))["memories"] == []


def test_standard_input_is_read_in_every_format(run: Run) -> None:
    """JSON Lines, a document, and Markdown are told apart by how they begin."""
    assert document(run("import", "-", "--json", stdin=line(1) + "\n" + line(2)))["created"] == 2
    assert document(run("import", "-", "--json", stdin=f"[\n{line(3)},\n{line(4)}\n]"))["created"] == 2
    assert document(run("import", "-", "--json", stdin='{"memories": [' + line(5) + "]}"))["created"] == 1
    assert document(run("import", "-", "--json", stdin="- a bullet\n- another\n"))["created"] == 2


@pytest.mark.parametrize(("name", "code"), [("gone.jsonl", ExitCode.NOT_FOUND), ("empty", ExitCode.USAGE)])
def test_what_cannot_be_read_is_an_error_that_names_it(run: Run, name: str, code: ExitCode) -> None:
    """The message names the file and why."""
    Path("empty").mkdir()
    found = run("import", name)
    assert found.exit_code == code
    assert name in found.stderr


def test_a_map_to_no_field_names_the_fields(run: Run) -> None:
    """Code 2; the nearest field if one is near, else all of them."""
    Path("foreign.jsonl").write_text('{"when": "2026-01-02"}\n')
    found = run("import", "foreign.jsonl", "--map", "xyz=when")
    assert found.exit_code == ExitCode.USAGE
    assert "unknown field 'xyz'; the fields are " in found.stderr
    assert "create_time" in found.stderr
    assert "did you mean 'content'?" in run("import", "foreign.jsonl", "--map", "contents=when").stderr


def test_a_line_without_content_is_told_as_such_by_put(run: Run) -> None:
    """`put --jsonl` names what is missing, not a value that nobody wrote."""
    found = run("put", "--jsonl", "-", stdin='{"id": "m1"}\n')
    assert found.exit_code == ExitCode.REFUSED
    assert "line 1 (m1): content is missing" in found.stderr
