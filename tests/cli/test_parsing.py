from __future__ import annotations

import datetime
import json
from typing import Any

import click
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sidecar.cli.parsing import json_lines, memory_fields, parse_json, parse_time, weights
from sidecar.cli.put import BATCH_BYTES, BATCH_MEMORIES, Tally, batches
from sidecar.formats.items import made_id

NOW = datetime.datetime(2026, 10, 1, 12, tzinfo=datetime.UTC)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("now", "2026-10-01T12:00:00+00:00"),
        ("90min", "2026-10-01T10:30:00+00:00"),
        ("36h", "2026-09-30T00:00:00+00:00"),
        ("7d", "2026-09-24T12:00:00+00:00"),
        ("1.5w", "2026-09-21T00:00:00+00:00"),
        ("2026-09-01", "2026-09-01T00:00:00+00:00"),
        ("2026-09-01T09:30", "2026-09-01T09:30:00+00:00"),
        ("2026-09-01T09:30:00+02:00", "2026-09-01T09:30:00+02:00"),
        ("2026-09-01T09:30:00Z", "2026-09-01T09:30:00+00:00"),
    ],
)
def test_times_are_read_the_same_on_every_machine(text: str, expected: str) -> None:
    """Dates, RFC 3339 and lengths of time; without a zone a time is UTC."""
    assert parse_time(text, NOW).isoformat() == expected


@pytest.mark.parametrize("text", ["", "tomorrow", "7", "-7d", "7m", "2026-13-01", "99999999w"])
def test_what_is_no_time_is_an_error(text: str) -> None:
    """Nothing is guessed: a bare number or an unknown unit is refused."""
    with pytest.raises((ValueError, OverflowError)):
        parse_time(text, NOW)


@pytest.mark.parametrize("text", ["NaN", "Infinity", '{"a": -Infinity}'])
def test_numbers_that_are_not_json_are_refused(text: str) -> None:
    """NaN and infinities break every comparison, and are not JSON."""
    with pytest.raises(ValueError, match="not JSON"):
        parse_json(text)


def test_bad_lines_are_told_by_number_and_the_others_go_on() -> None:
    """A line that is cut off and one with two objects do not stop the lines after them."""
    lines = [
        b'{"content": "a"}',
        b"",
        b'{"content": "b"',
        b'{"content": "c"}{"content": "d"}',
        b"[]",
        b"\xff",
        b'{"x":1}',
    ]
    found = list(json_lines(lines))
    assert [number for number, _ in found] == [1, 3, 4, 5, 6, 7]
    assert [number for number, each in found if isinstance(each, str)] == [3, 4, 5, 6]


def test_a_byte_order_mark_is_no_part_of_the_first_line() -> None:
    """A file from an editor that writes one is read as well."""
    assert list(json_lines([b'\xef\xbb\xbf{"content": "a"}'])) == [(1, {"content": "a"})]


def test_fields_of_a_memory_are_checked_by_name() -> None:
    """An unknown field is an error that names the nearest one; what only the server sets is skipped."""
    known = ("content", "create_time", "tags")
    assert memory_fields({"id": "m1", "update_time": "x", "ratings": {}, "content": "a"}, known) == {
        "id": "m1",
        "content": "a",
    }
    with pytest.raises(ValueError, match="did you mean 'tags'"):
        memory_fields({"tag": ["a"]}, known)
    with pytest.raises(ValueError, match="create_time: 17 is no time"):
        memory_fields({"create_time": 17}, known)


@pytest.mark.parametrize(
    ("name", "content", "expected"),
    [
        (
            "w.toml",
            "lexical = 0.6\nrecency = 0.4",
            {"use_family_cap": None, "features": {"lexical": 0.6, "recency": 0.4}},
        ),
        (
            "w.toml",
            "use_family_cap = 0.2\n[features]\nlexical = 1\n[half_life_days]\nfact = 30",
            {"use_family_cap": 0.2, "features": {"lexical": 1}, "half_life_days": {"fact": 30}},
        ),
        ("w.json", '{"lexical": 1}', {"use_family_cap": None, "features": {"lexical": 1}}),
    ],
)
def test_weights_are_read_from_a_file(name: str, content: str, expected: Any, tmp_path: Any) -> None:
    """TOML and JSON, as plain weights or with caps and half-lives."""
    (tmp_path / name).write_text(content)
    assert weights(str(tmp_path / name)) == expected


def test_weights_without_a_file_are_a_name_or_json() -> None:
    """Anything that is neither JSON nor a file's name is the name of a preset."""
    assert weights("engine") == "engine"
    assert weights('{"lexical": 1}') == {"use_family_cap": None, "features": {"lexical": 1}}
    with pytest.raises(click.UsageError):
        weights("{}")


def test_the_same_text_has_the_same_made_up_id() -> None:
    """So that putting a text twice keeps one memory."""
    assert made_id("a") == made_id("a") != made_id("b")


@given(st.lists(st.one_of(st.integers(0, 600_000), st.none()), max_size=40))
def test_batches_hold_every_good_line_once_and_fit_into_a_message(sizes: list[int | None]) -> None:
    """Lines keep their order over batches, and no batch of several lines exceeds the limit."""
    lines: list[tuple[int, dict[str, Any] | str]] = [
        (number, "is broken" if size is None else {"id": str(number), "content": "x" * (size // 4)})
        for number, size in enumerate(sizes, 1)
    ]
    tally = Tally()
    found = list(batches(lines, tally))
    assert [number for batch in found for number, _ in batch] == [
        n for n, size in enumerate(sizes, 1) if size is not None
    ]
    assert [number for number, _, _ in tally.refused] == [n for n, size in enumerate(sizes, 1) if size is None]
    for batch in found:
        assert 0 < len(batch) <= BATCH_MEMORIES
        assert len(batch) == 1 or sum(len(json.dumps(dict(each))) for _, each in batch) <= BATCH_BYTES
