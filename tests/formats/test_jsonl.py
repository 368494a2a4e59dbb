"""Lines of JSON: what comes out is what went in, and a bad line hides no other."""

from __future__ import annotations

import base64
import datetime
import io
import json
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from memoryranker.client import MemoryFields, memory
from memoryranker.v1 import types_pb2

from sidecar.cli.plain import plain
from sidecar.formats import jsonl
from sidecar.formats.items import FIELDS, Header, LogItem, MemoryItem, Problem
from sidecar.formats.mapping import parse_maps

texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=40)
ids = texts.filter(bool)
units = st.floats(0, 1)
times = st.integers(-2_208_988_800_000_000, 7_289_654_399_999_999).map(
    lambda micros: datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC) + datetime.timedelta(microseconds=micros)
)
json_values = st.recursive(
    st.none() | st.booleans() | st.floats(allow_nan=False, allow_infinity=False) | texts,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3),
    max_leaves=8,
)
memories = st.fixed_dictionaries(
    {"id": ids, "content": ids},
    optional={
        "kind": ids,
        "create_time": times,
        "valid_from_time": times,
        "valid_until_time": times,
        "superseded_by": ids,
        "source_thread": ids,
        "source_sequence": st.integers(-(2**63), 2**63 - 1),
        "subject": ids,
        "tags": st.lists(ids, max_size=3),
        "metadata": st.dictionaries(texts, json_values, min_size=1, max_size=4),
        "relevance": units,
        "importance_override": units,
        "emotion": units,
        "pinned": st.booleans(),
        "suppressed": st.booleans(),
        "token_count": st.integers(1, 1_000_000),
        "embedding": st.lists(st.floats(width=32, allow_nan=False, allow_infinity=False), min_size=1, max_size=4),
    },
)


def exported(message: types_pb2.Memory) -> bytes:
    """A memory's line, as `export` writes it."""
    vector = message.embedding
    rest = types_pb2.Memory()
    rest.CopyFrom(message)
    rest.ClearField("embedding")
    return jsonl.memory_line(plain(rest) | ({"embedding": base64.b64encode(vector).decode()} if vector else {}))


@given(st.lists(memories, max_size=4))
@example([{"id": "a", "content": "x", "metadata": {"zero": -0.0, "large": 1e300, "small": 5e-324}}])
@example([{"id": "a", "content": "\u2028\u0085\x1c\r\n\ufeff\U0001f600\x7f"}])
def test_every_memory_comes_back_as_it_was(given_: list[dict[str, Any]]) -> None:
    """Whatever its text holds: line separators, marks, escapes, characters of every plane, numbers to the last bit."""
    messages = [memory(**each) for each in given_]
    file = b"".join(map(exported, messages))
    found = list(jsonl.read(io.BytesIO(file)))
    assert [item.place for item in found] == list(range(1, len(messages) + 1))
    read = [memory(**item.fields) for item in found if isinstance(item, MemoryItem)]
    assert [each.SerializeToString(deterministic=True) for each in read] == [
        each.SerializeToString(deterministic=True) for each in messages
    ]


@given(st.lists(memories, min_size=2, max_size=5), st.data())
def test_a_cut_line_hides_no_other(given_: list[dict[str, Any]], data: st.DataObject) -> None:
    """Wherever it is cut, it alone is told, by its number."""
    lines = [exported(memory(**each)) for each in given_]
    bad = data.draw(st.integers(0, len(lines) - 1))
    cut = lines[bad].rstrip(b"\n")
    lines[bad] = cut[: data.draw(st.integers(1, len(cut) - 1))] + b"\r\n"
    found = list(jsonl.read(lines))
    assert [item.place for item in found if isinstance(item, Problem)] == [bad + 1]
    assert len([item for item in found if isinstance(item, MemoryItem)]) == len(lines) - 1


def test_the_fields_are_those_that_a_client_writes() -> None:
    """One list of names, in this package, the client and the API."""
    assert set(FIELDS) == {"id", *MemoryFields.__annotations__}
    assert set(FIELDS) <= {field.name for field in types_pb2.Memory.DESCRIPTOR.fields}


@pytest.mark.parametrize(
    ("line", "says"),
    [
        (b'{"id": "a", "content": "x"', "not a whole JSON object"),
        (
            b'{"id": "a", "content": "x"} {"id": "b", "content": "y"}',
            "more than one object, the second at character 29",
        ),
        (b'{"id": "a", "content": "\xff"}', "not UTF-8, at byte 25"),
        (b'{"id": "a", "content": "x", "relevance": NaN}', "NaN"),
        (b'{"id": "a", "content": "x", "content": "y"}', "the key 'content' stands twice"),
        (b'["a"]', "not a JSON object"),
        (b'"a"', "not a JSON object"),
        (b"[" * 100_000, "JSON object"),
        (b'{"id": "a"}', "content is missing"),
        (b'{"id": "a", "content": ["x"]}', "content: ['x'] is not a text"),
        (b'{"id": "a", "content": "x", "create_time": true}', "create_time: True is no time"),
        (b'{"id": "a", "content": "x", "embedding": "?"}', "embedding"),
        (b'{"id": "a", "content": "x", "importence_override": 1}', "did you mean 'importance_override'"),
        (b'{"type": "export", "version": 2}', "version 2"),
    ],
)
def test_a_bad_line_says_what_is_wrong(line: bytes, says: str) -> None:
    """In words that name the field or the place."""
    (found,) = jsonl.read([line])
    assert isinstance(found, Problem)
    assert says in found.message


def test_rows_of_the_log_and_the_header_are_no_memories() -> None:
    """They are told by their type; a memory that has one is refused for its unknown field."""
    lines = [jsonl.header_line("n", "e@1", "now"), b'{"type":"packet","x":1}\n', b'{"type":"packet","content":"x"}']
    header, row, bad = jsonl.read(lines)
    assert header == Header(1, "e@1")
    assert row == LogItem(2, b'{"type":"packet","x":1}')
    assert isinstance(bad, Problem)
    assert "unknown field 'type'" in bad.message


def test_a_memory_without_an_id_gets_the_same_one_every_time() -> None:
    """From its text, and from its time and place where it has some; other fields may change."""

    def made(**fields: Any) -> str:
        (item,) = jsonl.read([json.dumps({"content": "x", **fields}).encode()])
        assert isinstance(item, MemoryItem)
        return str(item.fields["id"])

    assert made() == made(kind="decision", tags=["a"])
    different = [made(), made(create_time=1), made(create_time=2), made(source_thread="t"), made(source_sequence=1)]
    assert len(set(different)) == len(different)


@pytest.mark.parametrize(
    ("given_", "expected"),
    [
        ("2026-04-01", "2026-04-01T00:00:00+00:00"),
        ("2026-04-01T10:00:00+02:00", "2026-04-01T10:00:00+02:00"),
        (1_775_000_000, "2026-03-31T23:33:20+00:00"),
        (1_775_000_000.5, "2026-03-31T23:33:20.500000+00:00"),
        (1_775_000_000_000, "2026-03-31T23:33:20+00:00"),
        (1_775_000_000_000_000, "2026-03-31T23:33:20+00:00"),
    ],
)
def test_times_are_texts_or_numbers(given_: object, expected: str) -> None:
    """Seconds, milliseconds and microseconds since 1970 are told apart by their size."""
    (item,) = jsonl.read([json.dumps({"content": "x", "create_time": given_}).encode()])
    assert isinstance(item, MemoryItem)
    assert item.fields["create_time"].isoformat() == expected


def test_maps_take_foreign_fields_and_name_what_is_left() -> None:
    """A mapped field wins; a path that leads nowhere gives nothing; keys with dots are found."""
    maps = parse_maps(["content=a.b.c", "tags=labels", "metadata.x=m.y", "metadata.z=none", "subject=who"])
    lines = [b'{"a": {"b.c": "text"}, "labels": ["l"], "m": {"y": 1}, "other": 2, "kind": "fact", "content": "no"}']
    aside: dict[str, int] = {}
    (item,) = jsonl.read(lines * 1, maps, aside)
    assert isinstance(item, MemoryItem)
    fields = {name: value for name, value in item.fields.items() if name != "id"}
    assert fields == {"content": "text", "tags": ["l"], "metadata": {"x": 1}, "kind": "fact"}
    assert aside == {"content": 1, "other": 1}
