"""Tasks and packets over a real socket: ranked, kept, retried and explained."""

from __future__ import annotations

import datetime
import struct
from collections.abc import Callable

import grpc
import pytest
from google.protobuf.message import Message
from memoryranker.client import Client, RankerRpcError, rank_request
from memoryranker.v1 import ranker_pb2, ranker_pb2_grpc, types_pb2

from sidecar.features import FEATURE_NAMES
from sidecar.ranking.stages import STAGES

RANKED = types_pb2.SEGMENT_RANKED
TOMORROW = datetime.datetime.now(datetime.UTC) + datetime.timedelta(days=1)


def same(one: Message, other: Message) -> bool:
    """Equality without pytest's comparison of the two texts, which takes minutes for a packet."""
    return one.SerializeToString(deterministic=True) == other.SerializeToString(deterministic=True)


def ids_of(packet: ranker_pb2.RankResponse) -> list[str]:
    return [item.memory.id for item in packet.items]


def test_a_packet_explains_itself(client: Client, filled: str) -> None:
    """Contributions sum to the score, bit for bit from left to right; the ranked segment descends; places count up."""
    packet = client.rank(filled, "when does the ferry leave", max_items=12, explain="full")
    assert list(packet.feature_names) == list(FEATURE_NAMES)
    assert [item.place for item in packet.items] == list(range(1, 13))
    for item in packet.items:
        total = 0.0
        for contribution in item.contributions:
            total += contribution
        assert total == item.score
        assert len(item.features) == len(item.contributions) == len(FEATURE_NAMES)
        assert all(0 <= value <= 1 for value in item.features)
        assert 0 < item.inclusion_propensity <= 1
        assert 0 < item.position_probability <= 1
    scores = [item.score for item in packet.items if item.segment == RANKED]
    assert scores == sorted(scores, reverse=True)
    assert packet.reserved_slots == 2
    assert len(scores) == 10
    assert "ferry" in packet.items[0].memory.content
    assert packet.tokens_used == sum(item.tokens for item in packet.items)
    assert packet.weights.features["lexical"] > 0
    assert sum(each.count for each in packet.left_out) + len(packet.items) == 40


def test_explain_levels(client: Client, filled: str) -> None:
    """As much reasoning as was asked for, and the same order at each level."""
    packets = {
        level: client.rank(filled, "ferry", explain=level, dry_run=True, as_of_time=TOMORROW)
        for level in ("none", "contributions", "full")
    }
    assert len({tuple(ids_of(packet)) for packet in packets.values()}) == 1
    assert not packets["none"].items[0].contributions
    assert not packets["none"].feature_names
    assert packets["contributions"].items[0].contributions
    assert not packets["contributions"].items[0].features
    assert not packets["contributions"].HasField("weights")
    unset = client.rank(filled, "ferry", dry_run=True, as_of_time=TOMORROW)
    assert same(unset, packets["contributions"])


@pytest.mark.parametrize("budget", [0, 1, 30, 70, 10_000_000])
def test_a_packet_keeps_its_token_budget(client: Client, filled: str, budget: int) -> None:
    """Never more than the budget; 0 is an empty packet that says why."""
    packet = client.rank(filled, "ferry", token_budget=budget)
    assert packet.tokens_used <= budget
    if budget == 0:
        assert packet.empty_reason == ranker_pb2.EMPTY_REASON_BUDGET
    assert bool(packet.items) == (budget >= 30)


def test_an_empty_namespace_gives_an_empty_packet(client: Client, namespace: str) -> None:
    """No memories is no error; neither is a blank task."""
    packet = client.rank(namespace, "anything")
    assert (len(packet.items), packet.empty_reason) == (0, ranker_pb2.EMPTY_REASON_NO_MEMORIES)
    assert packet.packet_id
    assert client.get_packet(namespace, packet.packet_id).packet.packet_id == packet.packet_id


@pytest.mark.parametrize("task", ["", "  \n", "\u200b", "?!", "x" * 200_000 + " when does the ferry leave"])
def test_any_task_is_ranked(client: Client, filled: str, task: str) -> None:
    """A blank, odd or endless task gets a packet of this namespace; a shortened one is said to be."""
    packet = client.rank(filled, task)
    assert len(packet.items) == 10
    shortened = ranker_pb2.DEGRADATION_REASON_TASK_SHORTENED
    assert (shortened in [each.reason for each in packet.degradations]) == (len(task) > 100_000)
    if len(task) > 100_000:
        assert "ferry" in packet.items[0].memory.content


def test_a_dry_run_leaves_no_trace(client: Client, filled: str, refused: Callable[..., RankerRpcError]) -> None:
    """Nothing is logged and nothing drawn."""
    before = client.status(filled).namespace
    packet = client.rank(filled, "ferry", dry_run=True)
    assert packet.packet_id == ""
    assert {item.segment for item in packet.items} == {RANKED}
    assert same(client.status(filled).namespace, before)


def test_filters_hold_before_the_cut(client: Client, filled: str) -> None:
    """A filter that few pass gives all of those, and metadata compares by value."""
    packet = client.rank(filled, "ferry", filter={"any_tags": ["violin"]}, max_items=5)
    assert sorted(ids_of(packet)) == ["m06", "m14", "m22", "m30", "m38"]
    packet = client.rank(filled, "ferry", filter={"metadata_equals": {"number": 7}})
    assert ids_of(packet) == ["m07"]
    packet = client.rank(filled, "ferry", filter={"ids": ["m01", "m02"], "exclude_ids": ["m02"]})
    assert ids_of(packet) == ["m01"]


def test_a_misspelt_metadata_key_is_told(refused: Callable[..., RankerRpcError], filled: str) -> None:
    """A key that no memory bears is refused with the nearest that one does."""
    error = refused("rank", filled, "ferry", filter={"metadata_equals": {"nunber": 7}})
    assert error.violations[0].field == "filter.metadata_equals"
    assert "'number'" in error.violations[0].description


def test_weights_by_name_and_by_value(client: Client, filled: str, refused: Callable[..., RankerRpcError]) -> None:
    """A preset, explicit values, or an error that lists what is wrong or what there is."""
    assert client.rank(filled, "ferry").model_version == "default"
    assert client.rank(filled, "ferry", weights="smartctx").model_version == "smartctx"
    packet = client.rank(filled, "ferry", weights={"kind_prior": 1.0}, explain="full")
    assert packet.model_version == "request"
    assert packet.weights.features["kind_prior"] == 1.0
    assert {item.memory.kind for item in packet.items if item.segment == RANKED} == {"decision"}
    error = refused("rank", filled, "ferry", weights="smartcxt")
    assert (error.reason, error.metadata["weights"]) == ("UNKNOWN_WEIGHTS", "smartcxt")
    assert "'smartctx'" in error.message
    error = refused("rank", filled, "ferry", weights={"lexical": 0.9, "semantic": 0.9})
    assert error.violations[0].field == "weights.values.features"


def test_a_callers_own_list_is_ranked_and_not_stored(client: Client, namespace: str) -> None:
    """Another store's search results come back in order with their texts; of them nothing is kept but the packet."""
    candidates = [
        {"id": "a", "content": "the ferry leaves at nine", "relevance": 0.2},
        {"id": "b", "content": "lasagne needs an hour", "relevance": 0.9},
        {"id": "c", "content": "the ferry is blue", "relevance": 0.4, "suppressed": True},
    ]
    packet = client.rank(namespace, "when does the ferry leave", candidates=candidates, request_id="r")
    assert ids_of(packet) == ["a", "b"]
    assert packet.items[0].memory.content == "the ferry leaves at nine"
    again = client.rank(namespace, "when does the ferry leave", candidates=candidates, request_id="r")
    assert again.replayed
    assert [item.memory.content for item in again.items] == [item.memory.content for item in packet.items]
    assert list(client.list(namespace)) == []
    logged = client.get_packet(namespace, packet.packet_id).packet
    assert [item.memory for item in logged.items] == [types_pb2.Memory(id="a"), types_pb2.Memory(id="b")]
    assert [item.score for item in logged.items] == [item.score for item in packet.items]
    assert client.report_use(packet.packet_id, ["a"]).used_count == 1


def test_a_task_vector_takes_the_place_of_the_embedder(client: Client, namespace: str) -> None:
    """The memory that points the same way is first, the one that points away last, and scores stay in their range."""
    dimension = client.status().dimension

    def towards(x: float, y: float) -> bytes:
        return struct.pack(f"<{dimension}f", x, y, *([0.0] * (dimension - 2)))

    client.upsert(
        namespace,
        [
            {"id": "away", "content": "one", "embedding": towards(-1, 0)},
            {"id": "aside", "content": "two", "embedding": towards(0, 1)},
            {"id": "near", "content": "three", "embedding": towards(1, 1)},
        ],
    )
    packet = client.rank(namespace, "zzz", task_embedding=towards(1, 0), weights={"semantic": 1.0})
    assert ids_of(packet)[0] == "near"
    assert all(0 <= item.score <= 1 for item in packet.items)


def test_a_retry_returns_the_same_packet(client: Client, filled: str, refused: Callable[..., RankerRpcError]) -> None:
    """One request_id is one packet, whatever has changed since; another request with it is refused."""
    first = client.rank(filled, "ferry", request_id="r1")
    client.update(filled, first.items[0].memory.id, suppressed=True)
    again = client.rank(filled, "ferry", request_id="r1")
    assert again.replayed
    assert not first.replayed
    assert (again.packet_id, ids_of(again)) == (first.packet_id, ids_of(first))
    assert [item.score for item in again.items] == [item.score for item in first.items]
    assert refused("rank", filled, "lasagne", request_id="r1").reason == "REQUEST_ID_REUSED"
    assert client.rank(filled, "ferry").packet_id != client.rank(filled, "ferry").packet_id


def test_namespaces_do_not_see_each_other(
    client: Client, filled: str, namespace: str, refused: Callable[..., RankerRpcError]
) -> None:
    """Another namespace's packet and memories look as if they were not there, and its counts stay."""
    other = f"{namespace}2"
    client.upsert(other, [{"id": "m00", "content": "the ferry of another house"}])
    packet = client.rank(filled, "ferry")
    assert all("another house" not in item.memory.content for item in packet.items)
    unknown = refused("get_packet", other, "no such packet")
    foreign = refused("get_packet", other, packet.packet_id)
    assert (
        (foreign.code, foreign.reason)
        == (unknown.code, unknown.reason)
        == (
            grpc.StatusCode.NOT_FOUND,
            "PACKET_NOT_FOUND",
        )
    )
    assert refused("report_use", packet.packet_id, ["m00"], namespace=other).reason == "PACKET_NOT_FOUND"
    assert refused("explain_miss", other, "m00", packet_id=packet.packet_id).reason == "PACKET_NOT_FOUND"
    assert refused("rate", other, "m01", "helpful").reason == "MEMORY_NOT_FOUND"
    assert refused("report_use", packet.packet_id, ["m00"], namespace="").violations[0].field == "namespace"
    assert not client.get_packet(filled, packet.packet_id).uses


def test_a_packet_is_kept_as_it_was_served(client: Client, filled: str) -> None:
    """Scores, features, places and the pool are those of the moment; of a deleted memory only the id is left."""
    packet = client.rank(filled, "ferry", session_id="s", agent_id="a", surface="cli", max_items=12, explain="full")
    gone, changed = ids_of(packet)[0], ids_of(packet)[1]
    client.delete(filled, [gone])
    client.update(filled, changed, content="quite another text")
    logged = client.get_packet(filled, packet.packet_id)
    assert (logged.session_id, logged.agent_id, logged.surface) == ("s", "a", "cli")
    assert logged.report_state == types_pb2.REPORT_STATE_OPEN
    assert logged.packet.items[0].memory == types_pb2.Memory(id=gone)
    assert logged.packet.items[1].memory.content == "quite another text"
    assert not logged.packet.replayed
    for then, now in zip(packet.items, logged.packet.items, strict=True):
        assert (then.score, then.place, then.segment, then.tokens) == (now.score, now.place, now.segment, now.tokens)
        assert list(then.contributions) == list(now.contributions)
        assert list(then.features) == list(now.features)
        assert then.inclusion_propensity == now.inclusion_propensity
        assert then.position_probability == now.position_probability
    drawn = [item for item in packet.items if item.segment == types_pb2.SEGMENT_RESERVED]
    assert len(drawn) + len(logged.undrawn) == packet.reserve_pool_size
    assert all(0 < each.inclusion_propensity < 1 for each in logged.undrawn)


def test_a_miss_is_explained(client: Client, filled: str, refused: Callable[..., RankerRpcError]) -> None:
    """By packet or by request: the gate that stopped it, where it stood, and the least change that admits it."""
    packet = client.rank(filled, "ferry", max_items=3, request_id="r")
    missed = next(f"m{i:02d}" for i in range(40) if f"m{i:02d}" not in ids_of(packet))
    why = client.explain_miss(filled, missed, packet_id=packet.packet_id)
    assert (why.served, why.reason) == (False, ranker_pb2.LEFT_OUT_REASON_OUTRANKED)
    assert why.score <= why.admitted_score
    assert {gap.feature for gap in why.gaps} == set(FEATURE_NAMES)
    assert why.smallest_change.field == "max_items"
    served = client.explain_miss(filled, ids_of(packet)[1], packet_id=packet.packet_id)
    assert (served.served, served.place) == (True, 2)
    request = rank_request("", "ferry", filter={"any_tags": ["violin"]})
    why = client.explain_miss(filled, "m00", request=request)
    assert why.reason == ranker_pb2.LEFT_OUT_REASON_FILTERED
    assert why.smallest_change.field == "filter.any_tags"
    assert refused("explain_miss", filled, "m99", request=request).reason == "MEMORY_NOT_FOUND"
    assert refused("explain_miss", filled, "m00").violations[0].field == "occasion"
    foreign = rank_request("elsewhere", "ferry")
    assert refused("explain_miss", filled, "m00", request=foreign).violations[0].field == "request.namespace"


def test_a_miss_in_a_packet_of_a_callers_own_list_asks_for_the_list(
    client: Client, namespace: str, refused: Callable[..., RankerRpcError]
) -> None:
    """Nothing is made up about memories that were never stored."""
    candidates = [{"id": f"m{i}", "content": f"ferry {i}"} for i in range(3)]
    packet = client.rank(namespace, "ferry", candidates=candidates, max_items=1)
    assert refused("explain_miss", namespace, "m2", packet_id=packet.packet_id).violations[0].field == "packet_id"
    request = rank_request(namespace, "ferry", candidates=candidates, max_items=1)
    missed = next(f"m{i}" for i in range(3) if f"m{i}" not in ids_of(packet))
    assert client.explain_miss(namespace, missed, request=request).rank > 1


def test_status_counts(client: Client, filled: str) -> None:
    """What the namespace holds, and which weights there are to ask for."""
    client.rank(filled, "ferry")
    status = client.status(filled)
    assert status.namespace.memory_count == 40
    assert status.namespace.packet_count == 1
    assert {"default", "smartctx", "engine", "importance"} <= set(status.presets)
    assert list(status.feature_names) == list(FEATURE_NAMES)
    assert status.embedder.startswith("wordllama@")
    assert status.dimension == 256
    assert status.listen == client.address
    assert client.status().memory_count >= 40
    assert not client.status().HasField("namespace")


def test_an_answer_that_outgrows_a_message_says_what_to_do(
    client: Client, namespace: str, refused: Callable[..., RankerRpcError]
) -> None:
    """Seventy memories of 64 KB are more than one message holds: the error names the limit and the way out."""
    for start in (0, 35):
        batch = [{"id": f"m{i}", "content": f"{i} " + "some words " * 5_900} for i in range(start, start + 35)]
        client.upsert(namespace, batch)
    error = refused("rank", namespace, "x", max_items=200)
    assert (error.code, error.reason) == (grpc.StatusCode.RESOURCE_EXHAUSTED, "ANSWER_TOO_LARGE")
    assert "4,194,304" in error.message
    assert client.status(namespace).namespace.packet_count == 0, "what could not be sent was not served"


def test_a_retry_after_a_rewrite_keeps_the_budget(client: Client, namespace: str) -> None:
    """A memory that has grown since the packet was made stands in the retried answer by its id alone."""
    client.upsert(namespace, [{"id": "a", "content": "deploy short"}])
    first = client.rank(namespace, "deploy", token_budget=20, request_id="q")
    client.upsert(namespace, [{"id": "a", "content": "deploy long " * 300}])
    again = client.rank(namespace, "deploy", token_budget=20, request_id="q")
    assert (again.packet_id, again.tokens_used) == (first.packet_id, first.tokens_used)
    assert [(item.memory.id, item.memory.content) for item in again.items] == [("a", "")]


def test_a_past_time_does_not_know_what_was_learned_later(client: Client, namespace: str) -> None:
    """With as_of_time, memories learned after it are not yet valid; without, a time ahead of the clock is age 0."""
    now, day = datetime.datetime.now(datetime.UTC), datetime.timedelta(days=1)
    client.upsert(
        namespace,
        [
            {"id": "old", "content": "the ferry leaves at nine", "create_time": now - 60 * day},
            {"id": "new", "content": "the ferry leaves at ten", "create_time": now},
            {"id": "ahead", "content": "the ferry leaves at noon", "create_time": now + 2 * day},
        ],
    )
    past = client.rank(namespace, "when does the ferry leave?", as_of_time=now - 30 * day)
    assert [item.memory.id for item in past.items] == ["old"]
    present = client.rank(namespace, "when does the ferry leave?")
    assert {item.memory.id for item in present.items} == {"old", "new", "ahead"}


def test_a_rank_tells_how_long_its_stages_took_if_asked(client: Client, filled: str) -> None:
    """With the metadata memory-ranker-timings the trailing metadata names each stage and its milliseconds, and without
    it there is none."""
    with grpc.insecure_channel(client.address, options=[("grpc.enable_http_proxy", 0)]) as channel:
        stub = ranker_pb2_grpc.RankerServiceStub(channel)
        request = ranker_pb2.RankRequest(namespace=filled, task="the ferry")
        _, asked = stub.Rank.with_call(request, timeout=30, metadata=(("memory-ranker-timings", "1"),))
        _, unasked = stub.Rank.with_call(request, timeout=30)
    told = str(dict(asked.trailing_metadata())["memory-ranker-stages"])
    stages = {each.split(";dur=")[0]: each.split(";dur=")[1] for each in told.split(", ")}
    assert tuple(stages) == STAGES
    assert all(float(milliseconds) >= 0 for milliseconds in stages.values())
    assert "memory-ranker-stages" not in dict(unasked.trailing_metadata())
