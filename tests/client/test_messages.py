"""How Python's own values become messages."""

from __future__ import annotations

import datetime
import re
import struct
from typing import Any

import pytest
from google.protobuf.json_format import MessageToDict
from memoryranker.client import memory, rank_request
from memoryranker.messages import as_filter, as_memory, names, timestamp

TOKYO = datetime.timezone(datetime.timedelta(hours=9))


def test_a_memory_takes_pythons_values() -> None:
    """Datetimes, dicts, lists of floats and None arrive as the API's types; what is None stays unset."""
    made = memory(
        "m1",
        content="text",
        create_time=datetime.datetime(2026, 1, 2, 9, tzinfo=TOKYO),
        tags=("a", "b"),
        metadata={"n": 1, "deep": {"list": [True, None, "x"]}},
        relevance=0.0,
        source_sequence=0,
        token_count=None,
        embedding=[0.5, -2.0],
    )
    assert made.create_time.ToDatetime(datetime.UTC) == datetime.datetime(2026, 1, 2, tzinfo=datetime.UTC)
    assert list(made.tags) == ["a", "b"]
    assert MessageToDict(made.metadata) == {"n": 1, "deep": {"list": [True, None, "x"]}}
    assert made.HasField("relevance")
    assert made.HasField("source_sequence")
    assert not made.HasField("token_count")
    assert not made.HasField("valid_until_time")
    assert struct.unpack("<2f", made.embedding) == (0.5, -2.0)
    assert as_memory({"id": "m1", "content": "text"}) == memory("m1", content="text")
    assert as_memory(made) is made


def test_a_time_without_a_zone_is_refused() -> None:
    """A naive time means another moment on another machine."""
    with pytest.raises(ValueError, match="no time zone"):
        timestamp(datetime.datetime(2026, 1, 2))  # noqa: DTZ001
    with pytest.raises(ValueError, match="no time zone"):
        as_filter({"create_time_from": datetime.datetime(2026, 1, 2)})  # noqa: DTZ001


@pytest.mark.parametrize(("year", "hours"), [(1, 14), (9999, -14)])
def test_a_time_that_no_message_holds_is_told_with_the_range(year: int, hours: int) -> None:
    """With its field where it has one, and not in Python's words."""
    zone = datetime.timezone(datetime.timedelta(hours=hours))
    time = datetime.datetime(year, 1, 1, tzinfo=zone) if year == 1 else datetime.datetime(year, 12, 31, 23, tzinfo=zone)
    words = "must be a time in the years 1900 to 2200, in UTC"
    with pytest.raises(ValueError, match="out of range; " + words):
        timestamp(time)
    with pytest.raises(ValueError, match="create_time is " + re.escape(f"{time.isoformat()}; {words}")):
        memory("m1", content="text", create_time=time)


def test_a_misspelt_field_is_named() -> None:
    """Nothing that was asked for is dropped in silence."""
    with pytest.raises(TypeError, match="unknown field 'contents'"):
        as_memory({"id": "m1", "contents": "text"})
    with pytest.raises(TypeError, match="unknown field 'tags'"):
        as_filter({"tags": ["a"]})  # type: ignore[arg-type]


@pytest.mark.parametrize("number", [2**53 + 1, -1234567890123456789, 10**400])
def test_a_whole_number_that_metadata_would_change_is_refused(number: int) -> None:
    """A Struct's numbers are doubles: another id would be stored, and found. The path and the way out are named."""
    words = r"deep\.list\[1\] is .*; numbers are doubles, .* up to 9,007,199,254,740,992: write it as a string"
    given = {"deep": {"list": [1, number]}}
    with pytest.raises(ValueError, match=rf"^metadata\.{words}"):
        memory("m", metadata=given)
    with pytest.raises(ValueError, match=rf"^metadata\.{words}"):
        memory("m", metadata=given, source_sequence=2**70)
    with pytest.raises(ValueError, match=rf"^metadata_equals\.{words}"):
        as_filter({"metadata_equals": given})
    kept = {"most": 2**53, "true": True, "double": 2.0**60, "as it is": 2**60}
    assert dict(memory("m", metadata=kept).metadata) == kept


def test_one_text_is_no_list_of_texts() -> None:
    """used="m1" would otherwise report the memories "m" and "1"."""
    with pytest.raises(TypeError, match="not the text 'm1'"):
        names("m1")
    with pytest.raises(TypeError, match="not the text"):
        rank_request("kim", "task", goals="win")


def test_a_request_to_rank_takes_pythons_values() -> None:
    """Weights by name, by value or by model, context, filter, candidates and explain level."""
    made = rank_request(
        "kim",
        "task",
        goals=["win"],
        candidates=[{"id": "m1", "content": "text"}],
        filter={"kinds": ["fact"], "metadata_equals": {"a.b": 1}},
        weights={"lexical": 0.5},
        token_budget=0,
        explain="full",
        as_of_time=datetime.datetime(2026, 1, 2, tzinfo=datetime.UTC),
    )
    assert list(made.context.goals) == ["win"]
    assert made.candidates[0].id == "m1"
    assert made.filter.metadata_equals["a.b"] == 1
    assert dict(made.weights.values.features) == {"lexical": 0.5}
    assert made.HasField("token_budget")
    assert not made.HasField("max_items")
    assert made.explain == 3
    assert rank_request("kim", weights="smartctx").weights.preset == "smartctx"
    assert rank_request("kim", model="v7").weights.model == "v7"
    assert not rank_request("kim").HasField("weights")
    with pytest.raises(TypeError, match="exclude each other"):
        rank_request("kim", weights="smartctx", model="v7")
    with pytest.raises(ValueError, match="EVERYTHING"):
        rank_request("kim", explain="everything")  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("fields", "says"),
    [
        ({"content": 5}, "content is 5; must be a text"),
        ({"pinned": "yes"}, "pinned is 'yes'; must be true or false"),
        ({"token_count": 1.5}, "token_count is 1.5; must be a whole number"),
        ({"source_sequence": 2**70}, "source_sequence is 1180591620717411303424; must be a whole number of 64 bits"),
        ({"tags": "a"}, "tags is 'a'; must be a list of texts"),
        ({"tags": [1]}, "tags is [1]; must be a list of texts"),
        ({"metadata": [1]}, "metadata is [1]; must be an object"),
        ({"embedding": ["a"]}, "embedding is ['a']; must be a list of numbers"),
        ({"embedding": [1e300]}, "embedding is [1e+300]; must be a list of numbers"),
        ({"relevance": "much"}, "relevance is 'much'; must be a number"),
    ],
)
def test_a_value_of_the_wrong_kind_is_told_with_its_field(fields: dict[str, Any], says: str) -> None:
    """In our words, and not in those of the library below."""
    with pytest.raises((TypeError, ValueError)) as caught:
        memory("m1", **fields)
    assert str(caught.value).startswith(says)


def test_empty_candidates_are_not_the_stored_memories() -> None:
    """A search that found nothing is refused with the way out; None means the stored memories."""
    with pytest.raises(ValueError, match=r"candidates is empty.* leave candidates away"):
        rank_request("kim", "x", candidates=[])
    assert not rank_request("kim", "x", candidates=None).candidates
