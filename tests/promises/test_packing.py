"""Packing through the running service: budgets are kept, nothing is cut, and an empty packet says why."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from memoryranker.client import Client, RankerRpcError
from memoryranker.v1 import ranker_pb2, types_pb2

from sidecar.ranking import pipeline
from sidecar.ranking.tokens import count_tokens
from tests.promises.frozen import BY_RELEVANCE, days_ago, frozen, ids, left_out, text, write

PINNED, RANKED, RESERVED = types_pb2.SEGMENT_PINNED, types_pb2.SEGMENT_RANKED, types_pb2.SEGMENT_RESERVED
BUDGET, OVERSIZED = ranker_pb2.LEFT_OUT_REASON_BUDGET, ranker_pb2.LEFT_OUT_REASON_OVERSIZED
OUTRANKED = ranker_pb2.LEFT_OUT_REASON_OUTRANKED
NEAR_DUPLICATE = ranker_pb2.LEFT_OUT_REASON_NEAR_DUPLICATE
BELOW = ranker_pb2.LEFT_OUT_REASON_BELOW_MIN_SCORE
THROUGH_THE_SERVICE = settings(
    max_examples=200, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Client]:
    """A client of a server that stands still."""
    with frozen(tmp_path_factory.mktemp("server")) as server:
        yield server.client


def rank(client: Client, candidates: list[dict[str, Any]], **options: Any) -> ranker_pb2.RankResponse:
    """Ranks a caller's own list by relevance."""
    given = {"weights": BY_RELEVANCE, "max_items": 10, "explain": "none", **options}
    if candidates:
        return client.rank("own", candidates=candidates, **given)
    return client.rank("nothing here", **given)


def own_list(sizes: list[int], **fields: Any) -> list[dict[str, Any]]:
    """Candidates of those sizes, best first."""
    return [
        {"id": f"m{i:02}", "content": text(i), "relevance": 1 - i / 100, "token_count": size, **fields}
        for i, size in enumerate(sizes)
    ]


@st.composite
def lists(draw: st.DrawFn, pinned: bool = False) -> list[dict[str, Any]]:
    """Lists of up to 14 memories of any size, some of which say the same or score the same."""
    names = draw(st.lists(st.integers(0, 99), max_size=14, unique=True))
    return [
        {
            "id": f"m{name:02}",
            "content": text(draw(st.integers(0, 20))),
            "relevance": draw(st.sampled_from([0.2, 0.5, 0.7, 0.71, 0.9])),
            "token_count": draw(st.integers(1, 60)),
            "pinned": pinned and draw(st.integers(0, 2)) == 0,
        }
        for name in names
    ]


budgets = st.integers(0, 60) | st.integers(0, 400)


@THROUGH_THE_SERVICE
@given(
    candidates=lists(pinned=True),
    budget=budgets | st.sampled_from([None, 0, 10_000_000]),
    slots=st.integers(0, 2),
    wrapper=st.sampled_from(["", "<memory></memory>", "记忆："]),
    min_score=st.sampled_from([None, 0.0, 0.6, 1.0]),
)
def test_a_packet_never_exceeds_its_budget_and_counts_everyone(
    client: Client,
    candidates: list[dict[str, Any]],
    budget: int | None,
    slots: int,
    wrapper: str,
    min_score: float | None,
) -> None:
    """Neither the whole nor any part; each memory is charged its count and the wrapper, whole and byte for byte; every
    memory is in the packet or left out for one reason."""
    packet = rank(
        client,
        candidates,
        token_budget=budget,
        reserved_slots=slots,
        item_wrapper=wrapper,
        min_score=min_score,
        max_items=5,
    )
    by_id = {each["id"]: each for each in candidates}
    charged = dict.fromkeys((PINNED, RANKED, RESERVED), 0)
    for item in packet.items:
        assert item.tokens == by_id[item.memory.id]["token_count"] + count_tokens(wrapper)
        assert item.memory.content == by_id[item.memory.id]["content"]
        charged[item.segment] += item.tokens
    assert packet.tokens_used == sum(charged.values())
    assert len(packet.items) + sum(left_out(packet).values()) == len(candidates)
    assert len(packet.items) <= 5
    assert packet.HasField("valid_until_time") is False
    if budget is None:
        assert not {BUDGET, OVERSIZED} & left_out(packet).keys()
        return
    kept = budget * slots // 10
    assert charged[PINNED] + charged[RANKED] <= budget - kept
    assert all(item.tokens <= kept // slots for item in packet.items if item.segment == RESERVED)
    assert packet.tokens_used <= budget


@st.composite
def alike(draw: st.DrawFn) -> list[dict[str, Any]]:
    """Lists with pinned memories, of which many say the same but for their letters' case, and some have no count."""
    found = draw(lists(pinned=True))
    for each in found:
        said = text(draw(st.integers(0, 6)))
        each["content"] = said.upper() if draw(st.booleans()) else said
        each["token_count"] = draw(st.sampled_from([None, each["token_count"], 1, 30]))
    return found


@settings(THROUGH_THE_SERVICE, max_examples=300)
@given(
    candidates=lists(pinned=True) | alike(),
    one=budgets,
    more=st.integers(1, 3) | budgets,
    slots=st.integers(0, 2),
    max_items=st.integers(1, 8),
    min_score=st.sampled_from([None, None, 0.6]),
    wrapper=st.sampled_from(["", "", "<memory></memory>"]),
)
def test_a_bigger_budget_never_gives_a_segment_fewer_tokens(
    client: Client,
    candidates: list[dict[str, Any]],
    one: int,
    more: int,
    slots: int,
    max_items: int,
    min_score: float | None,
    wrapper: str,
) -> None:
    """Neither the ranked nor the pinned one, whatever is pinned, says the same or is wrapped; and the first memory of a
    segment on which two budgets differ is one that the bigger admits."""
    options: dict[str, Any] = {"max_items": max(max_items, slots + 1), "reserved_slots": slots}
    options |= {"min_score": min_score, "item_wrapper": wrapper}
    less, greater = (rank(client, candidates, token_budget=budget, **options) for budget in (one, one + more))
    order = [each["id"] for each in sorted(candidates, key=lambda each: (-each["relevance"], each["id"]))]
    for segment in (PINNED, RANKED):
        assert _tokens(less, segment) <= _tokens(greater, segment)
        differ = set(ids(less, segment)) ^ set(ids(greater, segment))
        if differ:
            assert min(differ, key=order.index) in ids(greater, segment)


def _tokens(packet: ranker_pb2.RankResponse, segment: int) -> int:
    return sum(item.tokens for item in packet.items if item.segment == segment)


def test_pinned_memories_have_half_of_the_budget_or_what_is_left(client: Client) -> None:
    """A pinned memory that fits only into a bigger budget takes nothing away from ranked ones there: at the budget that
    admits it, they have as much as its size, and below it no more. Where all fit, all are served."""
    many = [*own_list([10], pinned=True), *own_list([0] + [5] * 9)[1:]]
    for budget, pinned, ranked in ((9, [], 5), (19, [], 10), (20, ["m00"], 10), (29, ["m00"], 15), (55, ["m00"], 45)):
        packet = rank(client, many, token_budget=budget, reserved_slots=0)
        assert (ids(packet, PINNED), _tokens(packet, RANKED)) == (pinned, ranked), budget
    few = [*own_list([10], pinned=True), *own_list([10, 5])[1:]]
    for budget, expected, why in ((14, ["m01"], {OVERSIZED: 1}), (15, ["m00", "m01"], {})):
        packet = rank(client, few, token_budget=budget, reserved_slots=0)
        assert (ids(packet), left_out(packet)) == (expected, why)
    packet = rank(client, own_list([10], pinned=True), token_budget=10, reserved_slots=0)
    assert ids(packet, PINNED) == ["m00"]


def test_pinned_memories_have_half_of_the_places_or_what_is_left(client: Client) -> None:
    """Under a token budget; rounded up. One that does not fit keeps its place, for a bigger budget admits it. Without a
    budget they have all places."""
    candidates = [*own_list([1] * 6, pinned=True), *own_list([1] * 10)[6:]]
    for max_items, budget, pinned, ranked in ((5, 100, 3, 2), (8, 100, 4, 4), (9, 100, 5, 4), (5, None, 5, 0)):
        packet = rank(client, candidates, token_budget=budget, max_items=max_items, reserved_slots=0)
        assert (len(ids(packet, PINNED)), len(ids(packet, RANKED))) == (pinned, ranked)
    candidates[0]["token_count"] = 99
    packet = rank(client, candidates[:1] + candidates[6:], token_budget=20, max_items=3, reserved_slots=0)
    assert (ids(packet), left_out(packet)) == (["m06", "m07"], {OVERSIZED: 1, OUTRANKED: 2})


def test_of_very_many_pinned_memories_the_best_are_asked(client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    """Under a token budget: the others are outranked, and neither take room nor hide anything."""
    monkeypatch.setattr(pipeline, "MOST_PINNED", 3)
    candidates = [*own_list([5, 5, 90, 40, 5], pinned=True), *own_list([1] * 9)[5:]]
    candidates[5]["content"] = candidates[4]["content"]
    packet = rank(client, candidates, token_budget=24, reserved_slots=0)
    assert ids(packet) == ["m00", "m01", "m05", "m06", "m07", "m08"]
    assert left_out(packet) == {OVERSIZED: 1, OUTRANKED: 2}
    without = rank(client, candidates, reserved_slots=0)
    assert ids(without, PINNED) == ["m00", "m01", "m02", "m03", "m04"]


def test_what_says_the_same_as_a_pinned_memory_stands_back_also_if_that_does_not_fit(client: Client) -> None:
    """Under a token budget: or else a bigger budget, which holds the pinned one, would take the other away."""
    candidates = own_list([40, 5, 5])
    candidates[0] |= {"pinned": True, "content": candidates[1]["content"].upper()}
    packet = rank(client, candidates, token_budget=20, reserved_slots=0)
    assert (ids(packet), left_out(packet)) == (["m02"], {OVERSIZED: 1, NEAR_DUPLICATE: 1})
    assert ids(rank(client, candidates, token_budget=80, reserved_slots=0)) == ["m00", "m02"]


@THROUGH_THE_SERVICE
@given(sizes=st.lists(st.integers(1, 60), max_size=12), budget=budgets, max_items=st.integers(1, 8))
def test_the_best_that_fit_are_taken_in_turn(client: Client, sizes: list[int], budget: int, max_items: int) -> None:
    """What does not fit is passed over and the next one tried, until the places are taken; each for its reason."""
    expected: list[str] = []
    reasons: dict[int, int] = {}
    used = 0
    for i, size in enumerate(sizes):
        if len(expected) == max_items:
            reasons[OUTRANKED] = reasons.get(OUTRANKED, 0) + 1
        elif size > budget:
            reasons[OVERSIZED] = reasons.get(OVERSIZED, 0) + 1
        elif size > budget - used:
            reasons[BUDGET] = reasons.get(BUDGET, 0) + 1
        else:
            expected.append(f"m{i:02}")
            used += size
    packet = rank(client, own_list(sizes), token_budget=budget, max_items=max_items, reserved_slots=0)
    assert ids(packet) == expected
    assert packet.tokens_used == used
    assert left_out(packet) == reasons


def test_exact_and_one_less(client: Client) -> None:
    """What fits to the last token is in; one token less, and it is not."""
    candidates = own_list([30, 20])
    assert ids(rank(client, candidates, token_budget=50)) == ["m00", "m01"]
    assert ids(rank(client, candidates, token_budget=49)) == ["m00"]
    assert ids(rank(client, candidates, token_budget=29)) == ["m01"]
    assert ids(rank(client, candidates, token_budget=19)) == []
    assert ids(rank(client, candidates, token_budget=10_000_000)) == ["m00", "m01"]
    assert ids(rank(client, candidates)) == ["m00", "m01"]


@pytest.mark.parametrize("budget", [-1, -(2**63), 10_000_001, 2**63 - 1])
def test_a_budget_that_cannot_be_is_refused(client: Client, budget: int) -> None:
    """Negative is neither nothing nor everything; the answer names field, value and limit."""
    with pytest.raises(RankerRpcError) as caught:
        rank(client, own_list([1]), token_budget=budget)
    assert caught.value.reason == "INVALID_REQUEST"
    (violation,) = caught.value.violations
    assert violation.field == "token_budget"
    assert str(budget) in violation.description
    assert "10,000,000" in violation.description


def test_nothing_fits_into_nothing(client: Client) -> None:
    """A budget of 0 is an empty packet that says so, also with slots and pinned memories."""
    for fields in ({}, {"pinned": True}):
        packet = rank(client, own_list([1, 1], **fields), token_budget=0, reserved_slots=2)
        assert ids(packet) == []
        assert packet.empty_reason == ranker_pb2.EMPTY_REASON_BUDGET
        assert left_out(packet) == {OVERSIZED: 2}


def test_larger_than_the_whole_is_told_from_larger_than_what_is_left(client: Client) -> None:
    """Only what the whole budget of its segment could not hold is oversized; pinned memories have a budget of their
    own."""
    candidates = [*own_list([40, 20, 51], pinned=True), *own_list([0] * 3 + [20, 50, 61])[3:]]
    packet = rank(client, candidates, token_budget=100, reserved_slots=0)
    assert (ids(packet, PINNED), ids(packet, RANKED)) == (["m00"], ["m03"])
    assert left_out(packet) == {BUDGET: 2, OVERSIZED: 2}


def test_without_a_count_of_the_caller_s_the_server_counts(client: Client, namespace: str) -> None:
    """Stored or not, a memory is charged the caller's count if there is one, and else the server's."""
    long = "一个记忆 with words " * 20
    counted, own = count_tokens(long), 7
    for token_count, expected in ((None, counted), (own, own)):
        stored = {"id": f"m{token_count}", "content": long, "token_count": token_count}
        client.upsert(namespace, [stored])
        packet = client.rank(namespace, filter={"ids": [f"m{token_count}"]})
        inline = rank(client, [stored])
        assert [item.tokens for item in (*packet.items, *inline.items)] == [expected, expected]


def test_min_score_spares_pinned_memories_and_nobody_else(client: Client, namespace: str) -> None:
    """What scores exactly min_score is in, what scores less is not, pinned ones are in whatever they score."""
    write(client, namespace, {"above": 0.8, "at": 0.5, "below": 0.499, "pinned": 0.1})
    client.update(namespace, "pinned", pinned=True)
    for slots in (0, 2):
        packet = client.rank(
            namespace, weights=BY_RELEVANCE, min_score=0.5, max_items=6, reserved_slots=slots, token_budget=1000
        )
        assert ids(packet) == ["pinned", "above", "at"]
        assert left_out(packet) == {BELOW: 1}


Filled = Callable[[Client, str], None]
EMPTY: dict[str, tuple[dict[str, dict[str, Any]], dict[str, Any], str]] = {
    "no memories": ({}, {}, "NO_MEMORIES"),
    "no memories and no budget": ({}, {"token_budget": 0}, "NO_MEMORIES"),
    "no memories and a floor": ({}, {"min_score": 1.0, "filter": {"kinds": ["fact"]}}, "NO_MEMORIES"),
    "all filtered": ({"a": {}, "b": {}}, {"filter": {"kinds": ["decision"]}}, "FILTERED"),
    "filtered and no budget": ({"a": {}}, {"filter": {"kinds": ["decision"]}, "token_budget": 0}, "FILTERED"),
    "suppressed, expired, early, replaced": (
        {
            "a": {"suppressed": True},
            "b": {"valid_until_time": days_ago(1)},
            "c": {"valid_from_time": days_ago(-1)},
            "d": {"superseded_by": "a"},
        },
        {},
        "FILTERED",
    ),
    "all below the floor": ({"a": {}, "b": {}}, {"min_score": 0.6}, "BELOW_MIN_SCORE"),
    "below the floor and no budget": ({"a": {}, "b": {}}, {"min_score": 0.6, "token_budget": 0}, "BELOW_MIN_SCORE"),
    "below the floor, others filtered": (
        {"a": {}, "b": {"kind": "decision"}},
        {"min_score": 0.6, "filter": {"kinds": ["fact"]}},
        "BELOW_MIN_SCORE",
    ),
    "no budget": ({"a": {}, "b": {}}, {"token_budget": 0}, "BUDGET"),
    "too small a budget": ({"a": {}, "b": {}}, {"token_budget": 9}, "BUDGET"),
    "too small a budget with slots": ({"a": {}}, {"token_budget": 10, "reserved_slots": 1}, "BUDGET"),
    "one over budget, others below the floor": (
        {"a": {"relevance": 0.9}, "b": {}},
        {"token_budget": 9, "min_score": 0.6},
        "BUDGET",
    ),
    "a pinned one over budget, others below the floor": (
        {"a": {"pinned": True}, "b": {}},
        {"token_budget": 9, "min_score": 0.6},
        "BUDGET",
    ),
}


@pytest.mark.parametrize("case", EMPTY, ids=lambda case: case.replace(" ", "-"))
def test_an_empty_packet_says_why(client: Client, namespace: str, case: str) -> None:
    """The last gate that anything reached; what was left out adds up to the same story."""
    memories, options, expected = EMPTY[case]
    for number, (name, fields) in enumerate(memories.items()):
        given = {"id": name, "content": text(number), "relevance": 0.5, "token_count": 10, **fields}
        assert client.upsert(namespace, [given]).results[0].status.code == 0
    packet = client.rank(namespace, weights=BY_RELEVANCE, **options)
    assert ids(packet) == []
    assert ranker_pb2.EmptyReason.Name(packet.empty_reason) == f"EMPTY_REASON_{expected}"
    assert sum(left_out(packet).values()) == len(memories)
    logged = client.get_packet(namespace, packet.packet_id).packet
    assert (ids(logged), logged.empty_reason) == ([], packet.empty_reason)


def test_a_packet_with_items_has_no_reason_to_be_empty(client: Client) -> None:
    """Also where all but one were left out."""
    packet = rank(client, own_list([5, 50, 50]), token_budget=5)
    assert ids(packet) == ["m00"]
    assert packet.empty_reason == ranker_pb2.EMPTY_REASON_UNSPECIFIED
