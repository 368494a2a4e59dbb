"""ExplainMiss through the running service: the reason is right, and so is what would have helped."""

from __future__ import annotations

import functools
import itertools
import json
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import grpc
import pytest
from hypothesis import given
from hypothesis import strategies as st
from memoryranker.client import Client, RankerRpcError, rank_request
from memoryranker.v1 import ranker_pb2, ranker_pb2_grpc

from sidecar.features import FEATURE_NAMES
from sidecar.ranking.tokens import count_tokens
from tests.promises.frozen import BY_RELEVANCE, days_ago, frozen, ids, left_out, text, write
from tests.promises.models import Asked, name_of, reasons
from tests.promises.stories import (
    GATES,
    RANKED,
    RESERVED,
    THROUGH_THE_SERVICE,
    TICK,
    Story,
    check_told,
    requests,
    stores,
    time_of,
    untold,
)
from tests.promises.test_filters import passes
from tests.serving import Running, channel_to, wait_until_scored


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    """A server that stands still."""
    with frozen(tmp_path_factory.mktemp("server")) as running:
        yield running


@pytest.fixture
def client(server: Running) -> Client:
    """A client of it."""
    return server.client


@pytest.fixture(scope="module")
def stub(server: Running) -> Iterator[ranker_pb2_grpc.RankerServiceStub]:
    """The bare API."""
    with channel_to(server.listen) as channel:
        yield ranker_pb2_grpc.RankerServiceStub(channel)


numbers = itertools.count()


@THROUGH_THE_SERVICE
@given(
    memories=stores(),
    request=requests(),
    unhelpful=st.frozensets(st.sampled_from([f"m{i}" for i in range(12)]), max_size=2),
)
def test_the_reason_is_right_and_what_is_told_to_help_does(
    client: Client,
    stub: ranker_pb2_grpc.RankerServiceStub,
    memories: list[dict[str, Any]],
    request: dict[str, Any],
    unhelpful: frozenset[str],
) -> None:
    """For any store and request, of every memory: whether it was served; the first gate that stopped it, as a model
    says; the change that is told admits it when the request is made with it, no smaller step does; where none is told,
    none of the known kinds does. Asked by packet or by request, the answer is the same."""
    namespace = f"story{next(numbers)}"
    assert {result.status.code for result in client.upsert(namespace, memories).results} == {0}
    for name in unhelpful & {each["id"] for each in memories}:
        client.rate(namespace, name, "unhelpful")
    wait_until_scored(client, namespace)
    asked = rank_request(namespace, weights=BY_RELEVANCE, explain="none", **request)
    story = Story(client, stub, namespace, memories, asked)
    packet = stub.Rank(asked, timeout=30)
    model = Asked(
        frozenset(each["id"] for each in memories if passes_all(each, request["filter"])),
        request["max_items"],
        request["reserved_slots"] or 0,
        request["token_budget"],
        request["min_score"],
        request["as_of_time"],
    )
    expected = reasons(memories, unhelpful, model)
    drawn = ids(packet, RESERVED)
    assert left_out(packet) == Counter(
        ranker_pb2.LeftOutReason.Value(f"LEFT_OUT_REASON_{reason}")
        for name, reason in expected.items()
        if reason and name not in drawn
    )
    answers = {
        each["id"]: (
            client.explain_miss(namespace, each["id"], packet_id=packet.packet_id),
            client.explain_miss(namespace, each["id"], request=asked),
        )
        for each in memories
    }
    for each in memories:
        name = each["id"]
        why, again = answers[name]
        assert not why.store_moved_on
        assert why.served == (name in ids(packet))
        if why.served:
            assert why.place == ids(packet).index(name) + 1
            assert not why.HasField("smallest_change")
            continue
        reason = expected[name]
        assert name_of(why.reason) == reason
        assert why.message
        assert again.SerializeToString(deterministic=True) == why.SerializeToString(deterministic=True)
        _check_standing(why, packet, each, reason in GATES)
        check_told(story, name, why, untold(story, name, reason, functools.partial(replace, model)))


def passes_all(memory: dict[str, Any], wanted: dict[str, Any]) -> bool:
    """The filter of these requests."""
    return passes(memory, wanted)


def _check_standing(
    why: ranker_pb2.ExplainMissResponse, packet: ranker_pb2.RankResponse, memory: dict[str, Any], gated: bool
) -> None:
    assert why.HasField("score") != gated
    assert why.HasField("rank") != gated
    ranked = [item for item in packet.items if item.segment == RANKED]
    assert why.HasField("admitted_score") == (not gated and bool(ranked))
    assert len(why.gaps) == (len(FEATURE_NAMES) if ranked and not gated else 0)
    if not gated:
        assert why.score == memory["relevance"]
    if why.gaps:
        assert why.admitted_score == ranked[-1].score
        losses = [gap.contribution - gap.admitted_contribution for gap in why.gaps]
        assert losses == sorted(losses)
        assert sum(gap.contribution for gap in why.gaps) == why.score


def test_the_gaps_are_those_to_the_last_admitted_memory(client: Client, namespace: str) -> None:
    """Feature by feature, the largest loss first; they add up to the difference of the scores."""
    client.upsert(
        namespace,
        [
            {"id": "both", "content": f"ferry timeout {text(1)}", "kind": "decision"},
            {"id": "one", "content": f"timeout ferry {text(2)}", "kind": "decision"},
            {"id": "none", "content": text(3), "kind": "attempt", "create_time": days_ago(100)},
        ],
    )
    weights = {"lexical": 0.8, "kind_prior": 0.1, "recency": 0.1}
    packet = client.rank(namespace, "ferry timeout", weights=weights, max_items=2, explain="full")
    why = client.explain_miss(namespace, "none", packet_id=packet.packet_id)
    assert (name_of(why.reason), why.rank) == ("OUTRANKED", 3)
    assert why.gaps[0].feature == "lexical"
    last = packet.items[-1]
    for gap in why.gaps:
        column = FEATURE_NAMES.index(gap.feature)
        assert (gap.admitted_value, gap.admitted_contribution) == (last.features[column], last.contributions[column])
    assert sum(gap.contribution - gap.admitted_contribution for gap in why.gaps) == pytest.approx(
        why.score - why.admitted_score
    )


def test_it_says_that_the_store_has_moved_on(client: Client, namespace: str) -> None:
    """A packet is explained as far as its store still stands, and the answer says if it moved."""
    write(client, namespace, {"a": 0.9, "b": 0.8})
    packet = client.rank(namespace, weights=BY_RELEVANCE, max_items=1)
    client.rank(namespace, session_id="a serve moves nothing")
    assert not client.explain_miss(namespace, "b", packet_id=packet.packet_id).store_moved_on
    write(client, namespace, {"b": 0.95})
    why = client.explain_miss(namespace, "b", packet_id=packet.packet_id)
    assert (why.served, why.store_moved_on) == (False, True)
    assert client.explain_miss(namespace, "a", packet_id=packet.packet_id).served
    client.delete(namespace, ["a"])
    assert client.explain_miss(namespace, "a", packet_id=packet.packet_id).served


def test_a_memory_that_is_no_longer_or_not_yet_valid_is_told_the_time_to_rank_for(
    client: Client, namespace: str
) -> None:
    """Where a memory's own validity does not do, because it loses to others that are valid now, another as_of_time may;
    and of one that was learned later than the time that was ranked for, as_of_time is all there is to change."""
    write(client, namespace, {"old": 0.5}, create_time=days_ago(9), valid_until_time=days_ago(2))
    write(client, namespace, {"new": 0.9}, create_time=days_ago(1))
    options: dict[str, Any] = {"weights": BY_RELEVANCE, "max_items": 1, "reserved_slots": 0}
    for name, for_time in (("old", None), ("new", days_ago(3))):
        packet = client.rank(namespace, **options, as_of_time=for_time)
        why = client.explain_miss(namespace, name, packet_id=packet.packet_id)
        change = why.smallest_change
        assert change.field == "as_of_time", why
        time = time_of(json.loads(change.to_json))
        assert time == (days_ago(2) - TICK if name == "old" else days_ago(1))
        assert ids(client.rank(namespace, **options, as_of_time=time)) == [name]


def test_what_was_replaced_later_is_ranked_for_the_time_before(client: Client, namespace: str) -> None:
    """For a past time a memory is hidden by nothing that was learned after that time; a miss now is told that time,
    where clearing superseded_by does not do."""
    write(client, namespace, {"first": 0.5}, create_time=days_ago(9), superseded_by="second")
    write(client, namespace, {"second": 0.9}, create_time=days_ago(4))
    options: dict[str, Any] = {"weights": BY_RELEVANCE, "max_items": 1, "reserved_slots": 0}
    assert ids(client.rank(namespace, **options)) == ["second"]
    assert ids(client.rank(namespace, **options, as_of_time=days_ago(5))) == ["first"]
    why = client.explain_miss(namespace, "first", request=rank_request(namespace, **options))
    assert (name_of(why.reason), why.other_memory_id, why.smallest_change.field) == (
        "SUPERSEDED",
        "second",
        "as_of_time",
    )
    assert time_of(json.loads(why.smallest_change.to_json)) == days_ago(4) - TICK


def test_a_memory_that_no_budget_admits_is_told_how_short_to_be(client: Client, namespace: str) -> None:
    """A larger budget first admits better ones that take the place; the memory in fewer words has it, the wrapper
    counted."""
    write(client, namespace, {"large": 0.9}, token_count=100)
    write(client, namespace, {"missed": 0.5}, token_count=60)
    options: dict[str, Any] = {"weights": BY_RELEVANCE, "max_items": 1, "reserved_slots": 0, "token_budget": 50}
    for wrapper in ("", "<memory></memory>"):
        asked = rank_request(namespace, **options, item_wrapper=wrapper)
        why = client.explain_miss(namespace, "missed", request=asked)
        assert (name_of(why.reason), why.smallest_change.field) == ("OVERSIZED", "token_budget")
    client.update(namespace, "large", token_count=55)
    why = client.explain_miss(namespace, "missed", request=rank_request(namespace, **options))
    change = why.smallest_change
    assert (change.field, change.from_json, change.to_json) == ("memory.token_count", "60", "50")
    asked = rank_request(namespace, **options, item_wrapper="<memory></memory>")
    wrapped = int(client.explain_miss(namespace, "missed", request=asked).smallest_change.to_json)
    assert wrapped == 50 - count_tokens("<memory></memory>")


def test_leaving_another_out_is_tried(client: Client, namespace: str) -> None:
    """A pinned memory behind as many as a packet has places at most is told which one to leave out."""
    write(client, namespace, {f"m{i:03}": 0.95 for i in range(200)}, token_count=1, pinned=True)
    write(client, namespace, {"missed": 0.5}, pinned=True)
    options: dict[str, Any] = {"weights": BY_RELEVANCE, "max_items": 200, "reserved_slots": 0}
    change = client.explain_miss(namespace, "missed", request=rank_request(namespace, **options)).smallest_change
    assert (change.field, change.to_json) == ("filter.exclude_ids", '["m199"]')
    assert "missed" in ids(client.rank(namespace, **options, filter={"exclude_ids": ["m199"]}))


def test_leaving_out_one_that_is_not_in_the_packet_is_tried(client: Client, namespace: str) -> None:
    """What others could use is not the pinned memories': without one of those, a second pinned one has room."""
    for name, relevance, tokens, pinned in (
        ("first", 0.9, 60, True),
        ("large", 0.95, 200, True),
        ("other", 0.7, 80, False),
    ):
        write(client, namespace, {name: relevance}, token_count=tokens, pinned=pinned)
    write(client, namespace, {"missed": 0.5}, token_count=61, pinned=True)
    options: dict[str, Any] = {"weights": BY_RELEVANCE, "max_items": 2, "reserved_slots": 0, "token_budget": 121}
    assert ids(client.rank(namespace, **options)) == ["first"]
    change = client.explain_miss(namespace, "missed", request=rank_request(namespace, **options)).smallest_change
    assert (change.field, change.to_json) == ("filter.exclude_ids", '["other"]')
    assert ids(client.rank(namespace, **options, filter={"exclude_ids": ["other"]})) == ["first", "missed"]


def test_none_at_all_says_what_was_tried(client: Client, namespace: str) -> None:
    """A memory behind two gates yields to no single change, and the answer names those that were tried."""
    write(client, namespace, {"a": 0.9}, suppressed=True, valid_until_time=days_ago(1))
    why = client.explain_miss(namespace, "a", request=rank_request(namespace, weights=BY_RELEVANCE))
    assert not why.HasField("smallest_change")
    assert why.message == "It is suppressed. No single change that was tried admits it: of memory.suppressed."


@pytest.mark.parametrize("slots", [None, 0, 1, 2])
def test_a_packet_is_explained_with_the_slots_that_it_had(client: Client, namespace: str, slots: int | None) -> None:
    """What is missed behind reserved slots is told to need as many more places as slots."""
    write(client, namespace, {f"m{i:02}": 0.9 - i / 100 for i in range(20)})
    packet = client.rank(namespace, weights=BY_RELEVANCE, max_items=11, reserved_slots=slots)
    had = 1 if slots is None else slots
    assert packet.reserved_slots == had
    missed = next(name for name in [f"m{i:02}" for i in range(15, 20)] if name not in ids(packet))
    why = client.explain_miss(namespace, missed, packet_id=packet.packet_id)
    # Unset, a packet of 12 or more keeps two slots.
    places = int(missed[1:]) + 1 + (2 if slots is None else slots)
    assert (why.smallest_change.field, why.smallest_change.to_json) == ("max_items", str(places))


def test_what_is_unknown_is_not_found(client: Client, namespace: str) -> None:
    """A memory that is not there, a packet that is not there, another namespace's packet."""
    write(client, namespace, {"a": 0.9})
    packet = client.rank(namespace)
    for where, memory_id, packet_id, reason in (
        (namespace, "b", packet.packet_id, "MEMORY_NOT_FOUND"),
        (namespace, "a", "p-none", "PACKET_NOT_FOUND"),
        ("elsewhere", "a", packet.packet_id, "PACKET_NOT_FOUND"),
    ):
        with pytest.raises(RankerRpcError) as caught:
            client.explain_miss(where, memory_id, packet_id=packet_id)
        assert caught.value.reason == reason
        assert caught.value.code is grpc.StatusCode.NOT_FOUND


@pytest.mark.parametrize("budget", [None, 0])
def test_a_caller_s_own_list_is_explained_by_its_request(client: Client, namespace: str, budget: int | None) -> None:
    """The list is not stored, so the packet's id is not enough, also of an empty packet; the request is."""
    write(client, namespace, {"c1": 0.9})
    candidates = [{"id": f"c{i}", "content": text(i), "relevance": i / 10, "token_count": 5} for i in range(3)]
    options: dict[str, Any] = {
        "candidates": candidates,
        "weights": BY_RELEVANCE,
        "max_items": 1,
        "token_budget": budget,
    }
    packet = client.rank(namespace, **options)
    with pytest.raises(RankerRpcError) as caught:
        client.explain_miss(namespace, "c1", packet_id=packet.packet_id)
    assert caught.value.violations[0].field == "packet_id"
    why = client.explain_miss(namespace, "c1", request=rank_request(namespace, **options))
    assert name_of(why.reason) == ("OUTRANKED" if budget is None else "OVERSIZED")
    with pytest.raises(RankerRpcError) as caught:
        client.explain_miss(namespace, "m9", request=rank_request(namespace, **options))
    assert caught.value.reason == "MEMORY_NOT_FOUND"


def test_nothing_is_logged_by_explaining(client: Client, namespace: str) -> None:
    """Explaining serves nothing and changes nothing: the next packet has the next id, and the same score version."""
    write(client, namespace, {"a": 0.9, "b": 0.8})
    before = client.rank(namespace, max_items=1)
    client.explain_miss(namespace, "b", packet_id=before.packet_id)
    client.explain_miss(namespace, "b", request=rank_request(namespace, max_items=1))
    after = client.rank(namespace, max_items=1)
    assert int(after.packet_id[1:]) == int(before.packet_id[1:]) + 1
    assert after.score_version == before.score_version
