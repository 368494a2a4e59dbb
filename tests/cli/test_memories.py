"""Storing, reading, changing and deleting memories over the command line, against a real server."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import Result

from tests.cli.conftest import Run

LINES = """\
{"id": "m1", "content": "Deploys need a green canary for 30 minutes", "kind": "decision", "tags": ["deploy"]}
{"id": "m2", "content": "The canary dashboard is called lighthouse", "metadata": {"team": "infra", "n": 3}}
{"id": "m3", "content": "开船时间没有时区", "kind": "debugging", "create_time": "2026-03-20T09:33:46+08:00"}
"""


def document(result: Result) -> Any:
    """The one JSON document on standard output."""
    assert result.exit_code == 0, result.output
    return json.loads(result.stdout)


def test_every_field_of_a_memory_can_be_given_and_is_returned(run: Run) -> None:
    """What the flags say is what `get` shows, field by field."""
    put = run(
        *["put", "text", "--id", "m1", "--kind", "failure", "--create-time", "2026-09-01T10:00:00+02:00"],
        *["--valid-from-time", "2026-09-02", "--valid-until-time", "2027-01-01", "--superseded-by", "m9"],
        *["--source-thread", "t", "--source-sequence", "0", "--subject", "priya", "--tag", "a", "--tag", "b"],
        *["--metadata", "team=infra", "--metadata", "n=3", "--metadata", 'deep={"x": [true]}', "--relevance", "0"],
        *[
            "--importance-override",
            "0.9",
            "--emotion",
            "0.25",
            "--pinned",
            "--suppressed",
            "--token-count",
            "7",
            "--json",
        ],
    )
    assert document(put)["outcome"] == "created"
    found = document(run("get", "m1", "--json"))
    found.pop("update_time")
    found.pop("importance")
    found.pop("ratings", None)
    assert found == {
        "id": "m1",
        "content": "text",
        "kind": "failure",
        "create_time": "2026-09-01T08:00:00Z",
        "valid_from_time": "2026-09-02T00:00:00Z",
        "valid_until_time": "2027-01-01T00:00:00Z",
        "superseded_by": "m9",
        "source_thread": "t",
        "source_sequence": 0,
        "subject": "priya",
        "tags": ["a", "b"],
        "metadata": {"team": "infra", "n": 3, "deep": {"x": [True]}},
        "relevance": 0.0,
        "importance_override": 0.9,
        "emotion": 0.25,
        "pinned": True,
        "suppressed": True,
        "token_count": 7,
    }


def test_a_text_comes_from_a_flag_a_file_or_standard_input(run: Run, tmp_path: Path) -> None:
    """All three give the same memory: the id is made from the text, so the second and third change nothing."""
    (tmp_path / "note.md").write_text("naïve 开船\n", encoding="utf-8")
    outcomes = [
        document(run("put", "naïve 开船\n", "--json")),
        document(run("put", "--file", "note.md", "--json")),
        document(run("put", "-", "--json", stdin="naïve 开船\n")),
    ]
    assert [each["outcome"] for each in outcomes] == ["created", "unchanged", "unchanged"]
    assert len({each["memory_id"] for each in outcomes}) == 1
    assert document(run("get", outcomes[0]["memory_id"], "--json"))["content"] == "naïve 开船\n"


def test_a_refused_memory_says_which_field_and_why(run: Run) -> None:
    """Code 4, the reason on standard error, nothing on standard output."""
    result = run("put", " \t ", "--id", "m1")
    assert result.exit_code == 4
    assert result.stdout == ""
    assert "content" in result.stderr


def test_a_number_that_no_message_holds_is_refused_and_not_a_traceback(run: Run) -> None:
    """Beyond 64 bits the client itself has no place for it."""
    result = run("put", "text", "--source-sequence", str(2**70))
    assert (result.exit_code, result.stdout) == (4, "")
    assert "Traceback" not in result.stderr


@pytest.mark.parametrize(
    "command",
    [("put", "x"), ("update", "m1"), ("list",), ("delete", "--yes"), ("rank", "x"), ("why", "m1", "--task", "x")],
)
def test_a_whole_number_that_would_be_changed_is_refused(run: Run, command: tuple[str, ...]) -> None:
    """As metadata and in a filter: path, value, limit and the way out."""
    run("put", "x", "--id", "m1", "--metadata", "ref=1234567890123456768")
    found = run(*command, "--metadata", "ref=1234567890123456789")
    assert found.exit_code == 4
    assert ".ref is 1234567890123456789;" in found.stderr.replace("metadata_equals", "metadata")
    assert "up to 9,007,199,254,740,992: write it as a string" in found.stderr
    assert len(document(run("list", "--metadata", "ref=1234567890123456768", "--json"))["memories"]) == 1


def test_many_memories_come_from_json_lines(run: Run, tmp_path: Path) -> None:
    """All lines of a file are stored, and a second time nothing changes."""
    (tmp_path / "m.jsonl").write_text(LINES, encoding="utf-8")
    first = document(run("put", "--jsonl", "m.jsonl", "--json"))
    assert (first["created"], first["refused"]) == (3, [])
    again = document(run("put", "--jsonl", "-", "--json", stdin=LINES))
    assert (again["created"], again["unchanged"]) == (0, 3)


def test_bad_lines_are_listed_and_good_ones_stored(run: Run) -> None:
    """A cut-off line, one with two objects, one the server refuses: code 6, each by number, the others are there."""
    lines = [json.dumps({"id": f"m{number}", "content": f"memory {number}"}) for number in range(1, 101)]
    lines[56] = lines[56][:-5]
    lines[79] = lines[79] * 2
    lines[10] = json.dumps({"id": "m11", "content": "too important", "importance_override": 3.0})
    lines[11] = json.dumps({"id": "m12", "content": "x", "knd": "fact"})
    result = run("put", "--jsonl", "-", "--json", stdin="\n".join(lines))
    assert result.exit_code == 6
    found = json.loads(result.stdout)
    assert found["created"] == 96
    assert [each["line"] for each in found["refused"]] == [11, 12, 57, 80]
    assert "did you mean 'kind'" in found["refused"][1]["message"]
    assert len(document(run("list", "--json"))["memories"]) == 96
    shown = run("put", "--jsonl", "-", stdin="\n".join(lines))
    assert "line 57" in shown.stderr
    assert "4 of 100 lines were refused" in shown.stderr


def test_when_every_line_is_refused_the_batch_is_refused(run: Run) -> None:
    """Nothing was done, so it is not "partly done"."""
    result = run("put", "--jsonl", "-", stdin="{\n[]\n")
    assert result.exit_code == 4
    assert "2 of 2 lines were refused; nothing was stored." in result.stderr


def test_a_line_with_a_value_of_the_wrong_kind_or_a_doubled_key_is_told(run: Run) -> None:
    """By field and key, and it does not go in."""
    lines = ['{"content": "x", "token_count": "many"}', '{"content": "x", "kind": "fact", "kind": "decision"}']
    shown = run("put", "--jsonl", "-", stdin="\n".join(lines)).stderr
    assert "token_count is 'many'; must be a whole number" in shown
    assert "the key 'kind' stands twice" in shown


def test_a_pin_is_taken_back(run: Run) -> None:
    """By --no-pinned, and by false in a line."""
    line = '{"id": "m1", "content": "text", "pinned": false}'
    for unpin, stdin in (
        (["put", "text", "--id", "m1", "--no-pinned"], None),
        (["put", "--jsonl", "-"], line),
        (["import", "-", "--format", "jsonl"], line),
    ):
        run("put", "text", "--id", "m1", "--pinned")
        assert document(run("get", "m1", "--json"))["pinned"] is True
        assert run(*unpin, stdin=stdin).exit_code == 0
        assert document(run("get", "m1", "--json"))["pinned"] is False


@pytest.mark.parametrize("command", [("put", "--jsonl", "-"), ("import", "-", "--format", "jsonl")])
def test_what_is_null_or_empty_changes_nothing_and_says_so(run: Run, command: tuple[str, ...]) -> None:
    """Named by field, with what clears one; nothing is said where nothing is stored yet."""
    line = '{"id": "m1", "content": "text", "importance_override": null, "tags": []}'
    assert "null or empty" not in run(*command, stdin=line).stderr
    run("put", "text", "--id", "m1", "--tag", "a", "--importance-override", "0.5")
    shown = run(*command, stdin=line)
    assert shown.exit_code == 0
    assert "null or empty, so what is stored stays: importance_override (1), tags (1)" in shown.stderr
    assert "--clear FIELD" in shown.stderr
    assert document(run("get", "m1", "--json"))["tags"] == ["a"]


def test_what_list_prints_can_be_put_into_another_namespace(run: Run) -> None:
    """A round trip over JSON Lines keeps every memory."""
    run("put", "--jsonl", "-", stdin=LINES)
    memories = document(run("list", "--json", "--embedding"))["memories"]
    copied = run(*["put", "--jsonl", "-", "--namespace", "copy"], stdin="\n".join(map(json.dumps, memories)))
    assert copied.exit_code == 0, copied.output
    again = document(run("list", "--json", "--embedding", "--namespace", "copy"))["memories"]
    for each in (*memories, *again):
        each.pop("update_time")
    assert again == memories


def test_list_filters_and_shows_contents_whole_in_a_pipe(run: Run) -> None:
    """Filters are the server's; nothing is shortened where no terminal is."""
    run("put", "--jsonl", "-", stdin=LINES)
    run("put", "x" * 400, "--id", "long", "--kind", "decision")

    def ids(*flags: str) -> list[str]:
        return [each["id"] for each in document(run("list", "--json", *flags))["memories"]]

    assert ids() == ["long", "m1", "m2", "m3"]
    assert ids("--kind", "decision") == ["long", "m1"]
    assert ids("--tag", "deploy") == ["m1"]
    assert ids("--metadata", "team=infra", "--metadata", "n=3") == ["m2"]
    assert ids("--until", "2026-04-01") == ["m3"]
    assert ids("--id", "m1", "--id", "m2", "--exclude-id", "m1") == ["m2"]
    assert ids("--limit", "2") == ["long", "m1"]
    shown = run("list", "--kind", "decision").stdout
    assert "x" * 400 in shown
    assert "Deploys need a green canary for 30 minutes" in shown


def test_update_changes_what_is_named_and_nothing_else(run: Run) -> None:
    """Pin, suppress, clear; other fields keep their values."""
    run("put", "--jsonl", "-", stdin=LINES)
    changed = document(run("update", "m1", "--pinned", "--tag", "canary", "--superseded-by", "m2", "--json"))
    assert (changed["pinned"], changed["tags"], changed["superseded_by"]) == (True, ["canary"], "m2")
    assert (changed["kind"], changed["content"]) == ("decision", "Deploys need a green canary for 30 minutes")
    cleared = document(run("update", "m1", "--no-pinned", "--clear", "superseded_by", "--clear", "tags", "--json"))
    assert (cleared["pinned"], cleared["tags"], cleared["superseded_by"]) == (False, [], "")


def test_what_is_not_there_is_told_apart(run: Run) -> None:
    """Get and update of an unknown id: code 3, and with --json the reason as a field on standard error."""
    for arguments in (["get", "m9"], ["update", "m9", "--pinned"]):
        result = run(*arguments, "--json")
        assert (result.exit_code, result.stdout) == (3, "")
        error = json.loads(result.stderr)["error"]
        assert (error["reason"], error["exit_code"]) == ("MEMORY_NOT_FOUND", 3)


def test_delete_says_what_is_gone_and_what_never_was(run: Run) -> None:
    """One of two: code 6 and both named. None of one: code 3."""
    run("put", "--jsonl", "-", stdin=LINES)
    result = run("delete", "m1", "typo")
    assert result.exit_code == 6
    assert "1 deleted" in result.stdout
    assert "typo" in result.stderr
    assert run("delete", "m1").exit_code == 3
    assert run("delete", "m2").exit_code == 0


def test_delete_by_filter_asks_first(run: Run) -> None:
    """Without --yes the number of memories is shown; anything but yes leaves them all."""
    run("put", "--jsonl", "-", stdin=LINES)
    refused = run("delete", "--kind", "fact", stdin="n\n")
    assert refused.exit_code == 1
    assert "deletes memories for good: 1 of the namespace" in refused.stderr
    nobody = run("delete", "--kind", "fact", stdin="")
    assert nobody.exit_code == 2
    assert "add --yes" in nobody.stderr
    assert len(document(run("list", "--json"))["memories"]) == 3
    assert run("delete", "--kind", "fact", stdin="y\n").exit_code == 0
    assert run("delete", "--tag", "deploy", "--yes").exit_code == 0
    assert [each["id"] for each in document(run("list", "--json"))["memories"]] == ["m3"]


def test_namespaces_and_status_count(run: Run) -> None:
    """Both see what was stored; `status` has a namespace's numbers only when asked."""
    run("put", "--jsonl", "-", stdin=LINES)
    status = document(run("status", "--json"))
    name = status["namespace"]["namespace"]
    assert status["namespace"]["memory_count"] == 3
    assert name in [each["namespace"] for each in document(run("namespaces", "--json"))["namespaces"]]
    assert name in run("namespaces").stdout
    nothing = run("list", "--namespace", f"{name}-not")
    assert (nothing.exit_code, nothing.stdout) == (0, f"The namespace {name}-not has no memories.\n")
    assert "passes the filter" in run("list", "--kind", "no-such").stdout
    assert "model_version" in run("status").stdout


def test_stored_text_is_shown_as_data(run: Run) -> None:
    """An escape sequence in a memory does not reach the terminal, in no table and no list of fields."""
    run("put", "a\x1b[2Jb", "--id", "evil", "--subject", "s\x1b[2J")
    for arguments in (["list"], ["get", "evil"], ["rank", "a"]):
        result = run(*arguments)
        assert "\x1b" not in result.stdout
        assert "\\x1b[2J" in result.stdout
    assert document(run("get", "evil", "--json"))["content"] == "a\x1b[2Jb"
