from __future__ import annotations

import datetime
import json

from memoryranker.client import memory, rank_request
from memoryranker.v1 import memory_pb2, ranker_pb2, types_pb2

from sidecar.cli.demo_moves import moves
from sidecar.cli.memory_options import MEMORY_FLAGS
from sidecar.cli.parsing import memory_fields
from sidecar.cli.plain import packet, plain, word

FULL = memory(
    "m1",
    content="text",
    kind="decision",
    create_time=datetime.datetime(2026, 10, 1, 9, 30, tzinfo=datetime.UTC),
    valid_until_time=datetime.datetime(2027, 1, 1, tzinfo=datetime.UTC),
    source_thread="t",
    source_sequence=0,
    tags=["a", "b"],
    metadata={"n": 3, "deep": {"list": [1, "x", None, True, 0.5]}},
    relevance=0.0,
    pinned=True,
    suppressed=False,
    embedding=[0.5, -1.0],
)


def test_a_memory_is_plain_data_with_the_names_of_the_api() -> None:
    """Times are RFC 3339, whole numbers stay whole, a set 0 is kept, and what is unset is left out."""
    found = json.loads(json.dumps(plain(FULL)))
    assert found["create_time"] == "2026-10-01T09:30:00Z"
    assert found["metadata"] == {"n": 3, "deep": {"list": [1, "x", None, True, 0.5]}}
    assert (found["source_sequence"], found["relevance"]) == (0, 0.0)
    assert found["embedding"] == [0.5, -1.0]
    assert (found["pinned"], found["suppressed"], found["subject"]) == (True, False, "")
    assert "importance_override" not in found
    assert "valid_from_time" not in found


def test_what_is_printed_can_be_put_again() -> None:
    """A memory as plain data is read back as the same memory."""
    again = memory(**memory_fields(json.loads(json.dumps(plain(FULL))), ("content", *MEMORY_FLAGS)))
    assert again == FULL


def test_enums_are_words_without_their_prefix() -> None:
    """Unspecified is empty, and a value of a newer server is its number."""
    result = memory_pb2.WriteResult(memory_id="m1", outcome="WRITE_OUTCOME_CREATED")
    result.status.code = 3
    result.status.message = "no"
    assert plain(result) == {
        "memory_id": "m1",
        "status": {"code": "invalid_argument", "message": "no"},
        "outcome": "created",
    }
    assert word(ranker_pb2.RankedItem(segment="SEGMENT_RESERVED"), "segment") == "reserved"
    assert word(ranker_pb2.RankedItem(), "segment") == ""


def test_contributions_are_named_and_sum_to_the_score() -> None:
    """Each item has its contributions by feature, in the order in which they were added up."""
    response = ranker_pb2.RankResponse(feature_names=["lexical", "semantic"])
    item = response.items.add(place=1, score=0.1 + 0.2, contributions=[0.1, 0.2])
    item.memory.id = "m1"
    shown = packet(response)["items"][0]
    assert shown["contributions"] == {"lexical": 0.1, "semantic": 0.2}
    assert sum(shown["contributions"].values()) == shown["score"]
    assert shown["features"] == {}


def test_maps_are_objects() -> None:
    """Weights are shown by feature."""
    request = rank_request("n", weights={"semantic": 0.5, "lexical": 0.25})
    assert plain(request)["weights"]["values"]["features"] == {"lexical": 0.25, "semantic": 0.5}


def test_moves_tell_what_changed_between_two_packets() -> None:
    """Places, scores and the contributions that differ; what came in or dropped out has no change to show."""

    def made(*rows: tuple[str, float, float]) -> ranker_pb2.RankResponse:
        response = ranker_pb2.RankResponse(feature_names=["lexical", "use_rate"])
        for place, (name, lexical, use_rate) in enumerate(rows, 1):
            item = response.items.add(place=place, score=lexical + use_rate, contributions=[lexical, use_rate])
            item.memory.CopyFrom(types_pb2.Memory(id=name))
        return response

    before = made(("a", 0.3, 0.0), ("b", 0.2, 0.0), ("c", 0.1, 0.0))
    after = made(("b", 0.2, 0.25), ("a", 0.3, 0.0), ("d", 0.1, 0.0))
    found = {move.memory_id: move for move in moves(before, after)}
    assert list(found) == ["b", "a", "d", "c"]
    assert (found["b"].place_before, found["b"].place_after, found["b"].changes) == (2, 1, {"use_rate": 0.25})
    assert found["a"].changes == {}
    assert (found["d"].place_before, found["d"].score_before) == (None, None)
    assert (found["c"].place_after, found["c"].place_before) == (None, 3)
