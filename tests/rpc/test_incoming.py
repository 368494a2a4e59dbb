"""Every bound of the API: what stands on it is taken, what lies beyond is named with its path."""

from __future__ import annotations

import datetime
import struct
from collections.abc import Callable
from typing import Any

import pytest
from google.protobuf.struct_pb2 import Struct
from google.protobuf.timestamp_pb2 import Timestamp
from hypothesis import given
from hypothesis import strategies as st
from memoryranker.client import memory, rank_request
from memoryranker.v1 import feedback_pb2, memory_pb2, ranker_pb2, types_pb2

from sidecar.domain import DAY, Channel, Rating
from sidecar.errors import InvalidRequestError, Violations
from sidecar.ranking.tokens import count_tokens
from sidecar.rpc.incoming import read_rank, read_rating, read_report
from sidecar.rpc.incoming_memories import FIELDS, read_changes, read_memory
from sidecar.rpc.validation import END_SECOND, FIRST_SECOND, read_struct, read_time

NOW = 20_000 * DAY


def vector(*numbers: float) -> bytes:
    return struct.pack(f"<{len(numbers)}f", *numbers)


def paths_of_memory(**fields: Any) -> list[str]:
    bad = Violations()
    read_memory(bad, "memories[3]", memory(**{"id": "m", "content": "text", **fields}), 2)
    return [each.field for each in bad.found]


def paths_of_rank(**fields: Any) -> list[str]:
    request = ranker_pb2.RankRequest(**{"namespace": "kim", **fields})
    try:
        read_rank(request, 2, NOW)
    except InvalidRequestError as error:
        return [each.field for each in error.violations]
    return []


def nested(depth: int) -> dict[str, Any]:
    data: Any = 1
    for _ in range(depth):
        data = {"k": data}
    return dict(data)


@pytest.mark.parametrize(
    ("field", "good", "bad"),
    [
        ("id", "é" * 128, "é" * 129),
        ("id", "x", ""),
        ("id", " ", "a\0b"),
        ("content", "é" * 32_768, "é" * 32_768 + "a"),
        ("content", "x", ""),
        ("content", " x\n", "\t\n"),
        ("content", "ก", "\u200b\ufeff"),
        ("content", "\u200b🧠", "\u3164\u00a0"),
        ("content", "log tail", "log\0tail"),
        ("kind", "k" * 64, "k" * 65),
        ("superseded_by", "s" * 256, "s" * 257),
        ("source_thread", "s" * 256, "s" * 257),
        ("subject", "s" * 256, "s\0"),
        ("relevance", 1.0, 1.0000001),
        ("relevance", 0.0, -1.0),
        ("importance_override", 0.5, float("nan")),
        ("importance_override", 1.0, 3.0),
        ("emotion", 0.0, float("inf")),
        ("emotion", -0.0, float("-inf")),
        ("token_count", 1, 0),
        ("token_count", 1_000_000, 1_000_001),
        ("metadata", nested(16), nested(18)),
        ("metadata", {"a": "x" * 16_300}, {"a": "x" * 16_384}),
        ("metadata", {"a": [None, True, {"b": "é"}]}, {"a": [{"b": "\0"}]}),
        ("embedding", vector(1, 0), vector(1)),
        ("embedding", vector(0, -0.001), vector(0, 0)),
        ("embedding", vector(3e38, -3e38), vector(1, float("nan"))),
        ("embedding", vector(1e-45, 0), vector(float("inf"), 1)),
        ("embedding", vector(1, 2), b"123456789"),
    ],
)
def test_bounds_of_a_memory(field: str, good: Any, bad: Any) -> None:
    """What stands on a bound is taken; what lies beyond is refused under the field's path in the batch."""
    assert paths_of_memory(**{field: good}) == []
    found = paths_of_memory(**{field: bad})
    assert len(found) == 1
    assert found[0].startswith(f"memories[3].{field}")


def test_tags_are_bounded_in_number_and_size() -> None:
    """64 tags of 1 to 128 bytes; each that is wrong is named by its place."""
    assert paths_of_memory(tags=[f"t{i}" for i in range(64)]) == []
    assert paths_of_memory(tags=[f"t{i}" for i in range(65)]) == ["memories[3].tags"]
    assert paths_of_memory(tags=["a", "", "é" * 65]) == ["memories[3].tags[1]", "memories[3].tags[2]"]


def test_numbers_in_metadata_must_be_json() -> None:
    """NaN and infinity are no JSON, at any depth."""
    data = Struct()
    data.fields["a"].list_value.values.add().number_value = float("nan")
    data.fields["b"].number_value = float("inf")
    bad = Violations()
    read_struct(bad, "metadata", data)
    assert [each.field for each in bad.found] == ["metadata.a[0]", "metadata.b"]


@pytest.mark.parametrize(
    ("seconds", "nanos", "is_good"),
    [
        (FIRST_SECOND, 0, True),
        (FIRST_SECOND - 1, 999_999_999, False),
        (END_SECOND - 1, 999_999_999, True),
        (END_SECOND, 0, False),
        (0, -1, False),
        (0, 1_000_000_000, False),
        (-(2**62), 0, False),
    ],
)
def test_times_lie_in_the_years_1900_to_2200(seconds: int, nanos: int, is_good: bool) -> None:
    """The future is allowed, nonsense is not."""
    bad = Violations()
    read = read_time(bad, "t", Timestamp(seconds=seconds, nanos=nanos))
    assert bool(bad.found) is not is_good
    if is_good:
        assert read == seconds * 1_000_000 + nanos // 1000


@given(st.integers(FIRST_SECOND, END_SECOND - 1), st.integers(0, 999_999_999))
def test_times_keep_their_order(seconds: int, nanos: int) -> None:
    """Of two times the later one is never read as the earlier, before 1970 too."""
    bad = Violations()
    one = read_time(bad, "t", Timestamp(seconds=seconds, nanos=nanos))
    assert one <= read_time(bad, "t", Timestamp(seconds=seconds, nanos=999_999_999))
    assert seconds * 1_000_000 <= one < (seconds + 1) * 1_000_000


@pytest.mark.parametrize(
    ("field", "good", "bad"),
    [
        ("namespace", "n" * 128, "n" * 129),
        ("namespace", " ", ""),
        ("namespace", "é", "a\0"),
        ("session_id", "s" * 256, "s" * 257),
        ("agent_id", "s" * 256, "s" * 257),
        ("surface", "s" * 64, "s" * 65),
        ("request_id", "s" * 128, "s" * 129),
        ("item_wrapper", "s" * 4096, "s" * 4097),
        ("task", "é" * 131_072, "é" * 131_073),
        ("task", "a\0b", "x" * 262_145),
        ("task_embedding", vector(1, 1), vector(1, 1, 1)),
        ("max_items", 1, 0),
        ("max_items", 200, 201),
        ("max_items", 10, -1),
        ("token_budget", 0, -1),
        ("token_budget", 10_000_000, 10_000_001),
        ("reserved_slots", 0, -1),
        ("reserved_slots", 2, 3),
        ("min_score", 0.0, -0.01),
        ("min_score", 1.0, float("nan")),
        ("explain", 3, 17),
    ],
)
def test_bounds_of_a_rank(field: str, good: Any, bad: Any) -> None:
    """Each bound of RankRequest."""
    assert paths_of_rank(**{field: good}) == []
    assert paths_of_rank(**{field: bad}) == [field]


def test_slots_are_fewer_than_items() -> None:
    """A packet is never all reserve; no slots at all fit any packet."""
    assert paths_of_rank(max_items=2, reserved_slots=2) == ["reserved_slots"]
    assert paths_of_rank(max_items=3, reserved_slots=2) == []
    assert paths_of_rank(max_items=1, reserved_slots=0) == []


def test_everything_that_is_wrong_is_listed() -> None:
    """One answer names every bad field, however deep."""
    request = rank_request(
        "",
        min_score=2.0,
        files=["f" * 1025],
        filter={"kinds": [""], "ids": ["i"] * 10_001, "metadata_equals": {"k": "\0"}},
        weights=types_pb2.Weights(features={"lexical": 2.0, "smell": 0.1}, caps={"lexical": -1.0}),
        candidates=[{"id": "a", "content": "x"}, {"id": "a", "content": "", "relevance": 7.0}],
    )
    with pytest.raises(InvalidRequestError) as caught:
        read_rank(request, 0, NOW)
    assert sorted(each.field for each in caught.value.violations) == sorted(
        [
            "namespace",
            "min_score",
            "context.files[0]",
            "filter.kinds[0]",
            "filter.ids",
            "filter.metadata_equals.k",
            "weights.values.features.lexical",
            "weights.values.features.smell",
            "weights.values.caps.lexical",
            "candidates[1].id",
            "candidates[1].content",
            "candidates[1].relevance",
        ]
    )


def test_a_caller_may_bring_2000_candidates() -> None:
    """One more is refused; those that are taken have keys that no stored memory has."""
    request = rank_request("kim", candidates=[{"id": f"m{i}", "content": "x"} for i in range(2000)])
    read = read_rank(request, 0, NOW)
    assert read.candidates is not None
    assert len({each.key for each in read.candidates}) == 2000
    assert all(each.key < 0 for each in read.candidates)
    assert {each.tokens for each in read.candidates} == {count_tokens("x")}
    request.candidates.add(id="one more", content="x")
    with pytest.raises(InvalidRequestError, match="candidates: has 2,001 entries"):
        read_rank(request, 0, NOW)


def test_the_hash_of_a_request_leaves_its_id_out() -> None:
    """A retry is the same request; any other difference makes another."""

    def read(**more: Any) -> bytes:
        return read_rank(ranker_pb2.RankRequest(**{"namespace": "kim", "task": "t", **more}), 0, NOW).payload_hash

    assert read(request_id="a") == read(request_id="b")
    assert read(request_id="a") != read(request_id="a", task="u")
    assert read(request_id="a") != read(request_id="a", token_budget=0)
    with_list = read(request_id="a", candidates=[memory("m", content="x")])
    assert with_list != read(request_id="a", candidates=[memory("m", content="y")])


def test_the_payload_that_is_kept_holds_no_candidates() -> None:
    """What the packet log keeps of a request can be read again, and has nothing of the caller's own memories."""
    request = rank_request("kim", "the task", candidates=[{"id": "m", "content": "secret"}], max_items=3)
    kept = read_rank(request, 0, NOW).payload
    assert b"secret" not in kept
    assert ranker_pb2.RankRequest.FromString(kept).max_items == 3
    assert request.candidates[0].content == "secret"


def report(**fields: Any) -> feedback_pb2.ReportUseRequest:
    return feedback_pb2.ReportUseRequest(**{"packet_id": "p", **fields})


@pytest.mark.parametrize(
    ("fields", "path"),
    [
        ({"packet_id": ""}, "packet_id"),
        ({"namespace": ""}, "namespace"),
        ({"used_memory_ids": ["m"] * 201}, "used_memory_ids"),
        ({"shown_memory_ids": ["m" * 257]}, "shown_memory_ids[0]"),
        ({"channel": 9}, "channel"),
        ({"channel": "CHANNEL_PACKET", "used_memory_ids": ["m"]}, "used_memory_ids"),
        ({"outcome": 0.5}, "outcome"),
        ({"channel": "CHANNEL_PACKET", "outcome": 1.5}, "outcome"),
        ({"confidence": 0.5}, "confidence"),
        ({"channel": "CHANNEL_INFERRED", "confidence": float("nan")}, "confidence"),
        ({"report_time": Timestamp(seconds=END_SECOND)}, "report_time"),
        ({"agent_id": "a" * 257}, "agent_id"),
        ({"request_id": "a" * 129}, "request_id"),
    ],
)
def test_bounds_of_a_report(fields: dict[str, Any], path: str) -> None:
    """Each bound of ReportUseRequest."""
    with pytest.raises(InvalidRequestError) as caught:
        read_report(report(**fields), NOW)
    assert [each.field for each in caught.value.violations] == [path]


def test_defaults_of_a_report() -> None:
    """Unset: EXPLICIT, complete for EXPLICIT alone, the packet's own namespace, the server's prior and clock."""
    read = read_report(report(), NOW)
    assert (read.channel, read.complete, read.namespace) == (Channel.EXPLICIT, True, None)
    assert (read.outcome, read.confidence, read.sequence, read.report_time) == (1.0, 0.8, None, None)
    assert not read_report(report(channel="CHANNEL_INFERRED"), NOW).complete
    assert read_report(report(channel="CHANNEL_INFERRED", complete=True), NOW).complete
    assert not read_report(report(complete=False), NOW).complete
    assert read_report(report(sequence=0), NOW).sequence == 0


def test_a_report_from_the_future_counts_as_now() -> None:
    """A reporter's clock that runs ahead gains nothing."""
    ahead = Timestamp(seconds=NOW // 1_000_000 + 2 * 86_400)
    assert read_report(report(report_time=ahead), NOW).report_time == NOW
    assert read_report(report(report_time=Timestamp(seconds=5)), NOW).report_time == 5_000_000


def test_bounds_of_a_rating() -> None:
    """A rating names a memory and a mark that exists."""
    good = feedback_pb2.RateMemoryRequest(namespace="kim", memory_id="m", rating="RATING_WITHDRAWN", reason="r" * 1024)
    assert read_rating(good) is Rating.WITHDRAWN
    with pytest.raises(InvalidRequestError) as caught:
        read_rating(feedback_pb2.RateMemoryRequest(reason="r" * 1025))
    assert [each.field for each in caught.value.violations] == ["namespace", "memory_id", "reason", "rating"]


def changes(paths: list[str], **fields: Any) -> tuple[dict[str, Any], list[str]]:
    bad = Violations()
    request = memory_pb2.UpdateMemoryRequest(memory=memory("m", **fields), update_mask={"paths": paths})
    return read_changes(bad, request, 2), [each.field for each in bad.found]


def test_an_update_changes_what_it_names_and_nothing_else() -> None:
    """Fields outside the mask are not read, not even if they are wrong."""
    assert changes(["pinned", "subject"], pinned=True, subject="Ann", relevance=7.0) == (
        {"pinned": True, "subject": "Ann"},
        [],
    )
    assert changes(["relevance"], relevance=7.0)[1] == ["memory.relevance"]


def test_an_update_clears_what_it_names_and_leaves_unset() -> None:
    """A named field without a value goes back to its default; content and create_time have none."""
    clearable = [name for name in FIELDS if name not in ("content", "create_time")]
    cleared, wrong = changes(clearable)
    assert not wrong
    assert cleared.keys() == set(clearable)
    assert (cleared["kind"], cleared["tags"], cleared["metadata"]) == ("fact", (), {})
    assert (cleared["pinned"], cleared["relevance"], cleared["valid_until_time"]) == (False, None, None)
    assert changes(["content", "create_time"])[1] == ["memory.content", "memory.create_time"]


@pytest.mark.parametrize("path", ["id", "importance", "*", "metadata.a", "update_time", "Pinned", ""])
def test_an_update_of_anything_else_lists_what_there_is(path: str) -> None:
    """A path that cannot be changed is refused with the list of those that can."""
    bad = Violations()
    request = memory_pb2.UpdateMemoryRequest(memory=memory("m"), update_mask={"paths": ["pinned", path]})
    read_changes(bad, request, 2)
    assert [each.field for each in bad.found] == ["update_mask.paths[1]"]
    assert all(name in bad.found[0].description for name in FIELDS)


Strange = st.text(st.characters(exclude_categories=["Cs"]), max_size=300)


@given(
    text=Strange,
    number=st.floats(),
    count=st.integers(-(2**31), 2**31 - 1),
    seconds=st.integers(-(2**63), 2**63 - 1),
    data=st.binary(max_size=40),
)
def test_no_message_makes_reading_fail_otherwise(
    text: str, number: float, count: int, seconds: int, data: bytes
) -> None:
    """Whatever a message holds, reading it ends in a result or in a list of violations that can be sent."""
    message = types_pb2.Memory(
        id=text, content=text, kind=text, tags=[text], relevance=number, token_count=count, embedding=data
    )
    message.create_time.seconds = seconds
    message.metadata.fields[text].number_value = number
    reads: list[Callable[[], Any]] = [
        lambda: read_rank(
            ranker_pb2.RankRequest(
                namespace=text,
                task=text,
                candidates=[message],
                max_items=count,
                min_score=number,
                task_embedding=data,
                weights=types_pb2.WeightsChoice(values=types_pb2.Weights(features={"lexical": number, text: number})),
            ),
            2,
            NOW,
        ),
        lambda: read_report(
            report(packet_id=text, channel=count, outcome=number, used_memory_ids=[text], sequence=seconds), NOW
        ),
        lambda: read_rating(
            feedback_pb2.RateMemoryRequest(namespace=text, memory_id=text, rating=count)  # type: ignore[arg-type]
        ),
    ]
    for read in reads:
        try:
            read()
        except InvalidRequestError as error:
            violations = error.violations
        else:
            continue
        assert violations
        assert all(len(each.description) < 400 for each in violations)


def test_a_memory_that_would_never_be_served_is_refused() -> None:
    """Valid from the moment it expires, or later: named by its field; a moment before is taken."""
    end = datetime.datetime(2026, 1, 1, tzinfo=datetime.UTC)
    for start in (end, end + datetime.timedelta(days=1)):
        found = paths_of_memory(valid_from_time=start, valid_until_time=end)
        assert found == ["memories[3].valid_from_time"]
    assert not paths_of_memory(valid_from_time=end - datetime.timedelta(microseconds=1), valid_until_time=end)
