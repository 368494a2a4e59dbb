"""Which format a file has."""

from __future__ import annotations

import pytest

from sidecar.formats import documents
from sidecar.formats.detect import detect
from sidecar.formats.items import MemoryItem, Problem


@pytest.mark.parametrize(
    ("name", "head", "expected"),
    [
        ("a.jsonl", b"anything", "jsonl"),
        ("a.NDJSON", b"", "jsonl"),
        ("CLAUDE.md", b"{", "markdown"),
        ("-", b'{"content": "x"}\n{"content": "y"}\n', "jsonl"),
        ("-", b'\xef\xbb\xbf\r\n{"content": "x"}', "jsonl"),
        ("a.json", b'{"id": "c", "memories": [], "queries": []}', "json"),
        ("a.json", b'{"content": "x", "data": []}', "jsonl"),
        ("a.json", b'{\n  "memories": [', "json"),
        ("a.json", b"[{}", "json"),
        ("-", b"- a bullet", "markdown"),
        ("-", b"", "markdown"),
        ("notes", b"- a bullet", "markdown"),
        ("a.log", b'{"content": "x"}', "jsonl"),
    ],
)
def test_a_format_is_told_by_name_or_beginning(name: str, head: bytes, expected: str) -> None:
    """The ending decides where there is a telling one."""
    assert detect(name, head) == expected


@pytest.mark.parametrize("name", ["y.csv", "a.json", "folder.d/b.2.TSV"])
def test_what_neither_name_nor_beginning_tell_is_not_guessed(name: str) -> None:
    """It says how to tell the format."""
    with pytest.raises(ValueError, match="--format, jsonl or json or markdown"):
        detect(name, b"id,content\n1,x\n")


def test_data_for_evaluation_keeps_ids_times_and_sessions() -> None:
    """Its names become the API's, a session is a thread; the queries stay behind."""
    text = b"""{"id": "c1", "memories": [
        {"id": "D1:1", "content": "hi", "created_at": "2023-05-08T13:56:00+00:00", "session": 1},
        {"id": "m2", "content": "x", "importance": 0.5, "source_thread": "own", "source_sequence": 9, "session": 2},
        {"id": "bad"}], "queries": [{"qid": "q", "query": "?", "relevant": []}]}"""
    one, two, bad = documents.read(text, {})
    assert isinstance(one, MemoryItem)
    assert (one.fields["source_thread"], one.fields["source_sequence"]) == ("c1/1", 1)
    assert one.fields["create_time"].isoformat() == "2023-05-08T13:56:00+00:00"
    assert isinstance(two, MemoryItem)
    assert (two.fields["source_thread"], two.fields["source_sequence"]) == ("own", 9)
    assert two.fields["importance_override"] == 0.5
    assert bad == Problem(3, "bad", "content is missing or empty")


@pytest.mark.parametrize("text", [b"{}", b"3", b'{"memories": {}}', b"[", b"\xff"])
def test_a_document_without_a_list_says_so(text: bytes) -> None:
    """Before anything of it goes in."""
    with pytest.raises(ValueError, match=r"."):
        list(documents.read(text, {}))
