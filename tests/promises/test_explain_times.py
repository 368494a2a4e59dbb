"""ExplainMiss in time: a packet is explained by its own moment, and what is told of other times holds for all of them;
through the running service, on a clock that is set."""

from __future__ import annotations

import itertools
import random
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from memoryranker.client import Client, rank_request
from memoryranker.v1 import ranker_pb2_grpc

from sidecar.domain import Micros
from sidecar.lifecycle import Sidecar
from tests.promises.frozen import BY_RELEVANCE, NOW, NOW_TIME, days_ago, hash_of, ids, text, write
from tests.promises.models import name_of
from tests.promises.stories import THROUGH_THE_SERVICE, TICK, Story, check_told, micros_of, time_of
from tests.serving import Running, channel_to, running, wait_until_scored

HOUR = 3_600_000_000
DAY = 24 * HOUR
WEIGHTS: list[dict[str, float]] = [
    BY_RELEVANCE,
    BY_RELEVANCE,
    {"relevance": 0.6, "recency": 0.4},
    {"relevance": 0.5, "frequency": 0.3, "recency": 0.2},
]
HALF_LIVES: list[dict[str, float]] = [{}, {"fact": 2.0, "attempt": 0.5, "decision": 9.0}]
numbers = itertools.count()


@dataclass(slots=True)
class Clock:
    """A clock that stands where it is set."""

    now: Micros = NOW


clock = Clock()


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    """A server on that clock."""
    folder = tmp_path_factory.mktemp("server")
    with running(folder, lambda chosen: Sidecar(chosen, clock=lambda: clock.now), embedder="none") as started:
        yield started


@pytest.fixture(autouse=True)
def at_now() -> None:
    """Each test begins at NOW."""
    clock.now = NOW


@pytest.fixture
def client(server: Running) -> Client:
    """A client of it."""
    return server.client


@pytest.fixture(scope="module")
def stub(server: Running) -> Iterator[ranker_pb2_grpc.RankerServiceStub]:
    """The bare API."""
    with channel_to(server.listen) as channel:
        yield ranker_pb2_grpc.RankerServiceStub(channel)


@dataclass(frozen=True, slots=True)
class World:
    """Memories as they are written or sent, and a request."""

    memories: list[dict[str, Any]]
    own: bool
    used: list[tuple[Micros, str]]
    options: dict[str, Any]
    half_life_days: dict[str, float]

    def times(self, rng: random.Random) -> list[Micros]:
        """Times at which anything may change, those just before, and some in between."""
        given = [each[name] for each in self.memories for name in ("create_time", *VALIDITY) if each.get(name)]
        turns = {micros_of(time) for time in given} | {time for time, _ in self.used} | {NOW, clock.now}
        turns |= {turn - 1 for turn in turns}
        between = {rng.randint(min(turns) - DAY, max(turns) + 40 * DAY) for _ in range(30)}
        return sorted(turns | between | {EARLIEST, LATEST})


VALIDITY = ("valid_from_time", "valid_until_time")
EARLIEST, LATEST = -2_208_988_800_000_000, 7_289_654_399_999_999


def world_of(rng: random.Random) -> World:
    """Few memories: past, now and future, expired, replaced, from a clock that has stepped back since; few places."""
    names = [f"m{number}" for number in range(rng.randint(2, 6))]
    own = rng.random() < 0.4
    memories = [_memory(rng, name, names) for name in names]
    uses = 0 if own else rng.choice([0, 0, 4])
    used = [(NOW + rng.randint(-3 * 24, 24) * HOUR, rng.choice(names)) for _ in range(uses)]
    as_of = rng.choice([None, None, NOW_TIME, days_ago(rng.randint(-3, 3)), NOW_TIME + rng.choice([-1, 1]) * TICK])
    options: dict[str, Any] = {
        "weights": rng.choice(WEIGHTS),
        "max_items": rng.choice([1, 1, 2]),
        "reserved_slots": 0,
        "token_budget": rng.choice([None, None, None, rng.randint(0, 60)]),
        "min_score": rng.choice([None, None, None, 0.45]),
        "as_of_time": as_of,
        "explain": "none",
    }
    return World(memories, own, sorted(used), options, rng.choice(HALF_LIVES))


def _memory(rng: random.Random, name: str, names: list[str]) -> dict[str, Any]:
    start, end = sorted(rng.sample([days_ago(days / 2) for days in range(-6, 7)], 2))
    return {
        "id": name,
        "content": text(rng.randint(0, 9)),
        "kind": rng.choice(["fact", "fact", "attempt", "decision"]),
        "relevance": rng.choice([0.1, 0.4, 0.5, 0.5, 0.52, 0.8]),
        "token_count": rng.randint(1, 40),
        "pinned": rng.random() < 0.1,
        "suppressed": rng.random() < 0.05,
        "create_time": rng.choice([None, *(days_ago(days) for days in (-2, -1, 0, 0.5, 1, 2, 3))]),
        "valid_from_time": rng.choice([None, None, start]),
        "valid_until_time": rng.choice([None, None, end]),
        "superseded_by": rng.choice(["", "", "", *names]),
        "tags": [],
    }


def _given(memory: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in memory.items() if value is not None}


def told(world: World, client: Client, stub: ranker_pb2_grpc.RankerServiceStub, rng: random.Random) -> Story:
    """The world in a namespace of its own, as it was written and used, and the request for it."""
    namespace = f"world{next(numbers)}"
    given = [_given(each) for each in world.memories]
    if not world.own:
        clock.now = NOW + rng.choice([0, 0, 2]) * HOUR
        results = client.upsert(namespace, given).results
        assert {result.status.code for result in results} == {0}
        for time, name in world.used:
            clock.now = time
            packet = client.rank(namespace, max_items=9, reserved_slots=0, weights=BY_RELEVANCE)
            if name in ids(packet):
                client.report_use(packet.packet_id, used=[name])
        clock.now = NOW
        wait_until_scored(client, namespace)
    own: dict[str, Any] = {"candidates": given} if world.own else {}
    asked = rank_request(namespace, **world.options, **own)
    asked.weights.values.half_life_days.update(world.half_life_days)
    return Story(client, stub, namespace, world.memories, asked)


def check(world: World, story: Story, rng: random.Random) -> None:
    """What is told of each missed memory admits it, and nothing smaller; where none is told, no value does."""
    packet = story.stub.Rank(story.request, timeout=30)
    names, explain = [each["id"] for each in world.memories], story.client.explain_miss
    answers = {name: explain(story.namespace, name, request=story.request) for name in names}
    for name, why in answers.items():
        assert why.served == (name in ids(packet))
        if not world.own:
            by_packet = explain(story.namespace, name, packet_id=packet.packet_id)
            assert by_packet.served if why.served else by_packet == why, (by_packet, why)
    for name, why in answers.items():
        if why.served:
            continue
        times = (("as_of_time", time) for time in world.times(rng)) if "as_of_time" in why.message else ()
        if not (world.own and why.smallest_change.field.startswith("memory.")):
            check_told(story, name, why, times)


@settings(THROUGH_THE_SERVICE, max_examples=40)
@given(rng=st.randoms(use_true_random=False))
def test_what_is_told_of_times_holds_for_all_times(
    client: Client, stub: ranker_pb2_grpc.RankerServiceStub, rng: random.Random
) -> None:
    """Whatever is past, to come, expired, replaced or used, also on a clock that stepped back: the time that is told
    admits, neither one less of the way nor half of it does, and where none is told no time at all does. A packet is
    explained as its request is."""
    clock.now = NOW
    world = world_of(rng)
    check(world, told(world, client, stub, rng), rng)


@settings(THROUGH_THE_SERVICE, max_examples=25)
@given(rng=st.randoms(use_true_random=False))
def test_what_came_later_explains_no_packet(
    client: Client, stub: ranker_pb2_grpc.RankerServiceStub, rng: random.Random
) -> None:
    """Once others were written, whatever times they bear, and the clock has gone on or back, each memory is missed for
    the same reason, with the same score, as when the packet was made; and what was written since was not yet there."""
    clock.now = NOW
    world = replace(world_of(rng), own=False, used=[])
    story = told(world, client, stub, rng)
    packet = stub.Rank(story.request, timeout=30)
    names = [each["id"] for each in world.memories]

    def explained() -> list[tuple[object, ...]]:
        found = [client.explain_miss(story.namespace, name, packet_id=packet.packet_id) for name in names]
        return [(why.place, why.reason, why.score, why.rank, why.admitted_score, why.other_memory_id) for why in found]

    before = explained()
    clock.now = NOW + rng.choice([-30, -1, 0, 1, 30]) * HOUR
    later = [{**_memory(rng, f"later{number}", names), "relevance": 0.9} for number in range(3)]
    results = client.upsert(story.namespace, [_given(each) for each in later]).results
    assert {result.status.code for result in results} == {0}
    wait_until_scored(client, story.namespace)
    assert explained() == before
    for each in later:
        why = client.explain_miss(story.namespace, each["id"], packet_id=packet.packet_id)
        assert name_of(why.reason) in ("SUPPRESSED", "EXPIRED", "NOT_YET_VALID")


def test_a_packet_is_explained_by_its_own_moment_after_the_clock_stepped_back(client: Client, namespace: str) -> None:
    """What was written and used before the clock stepped back counts in the packet, and so it does in its
    explanation, also once the clock has moved on."""
    options: dict[str, Any] = {"weights": {"relevance": 0.5, "frequency": 0.5}, "max_items": 1, "reserved_slots": 0}
    client.upsert(namespace, [{"id": name, "content": text(hash_of(name)), "relevance": 0.5} for name in "abc"])
    for number in range(3):
        used = client.rank(namespace, session_id=f"s{number}", **{**options, "max_items": 3})
        client.report_use(used.packet_id, used=["c"])
    wait_until_scored(client, namespace)
    clock.now -= HOUR
    packet = client.rank(namespace, **options)
    assert ids(packet) == ["c"]
    for now in (clock.now, clock.now + 1, clock.now + 3 * HOUR, clock.now - 3 * HOUR):
        clock.now = now
        why = client.explain_miss(namespace, "b", packet_id=packet.packet_id)
        change = why.smallest_change
        assert (name_of(why.reason), why.score, why.store_moved_on) == ("OUTRANKED", 0.25, False)
        assert why.admitted_score == packet.items[0].score > 0.3
        assert (change.field, change.to_json) == ("max_items", "3")


def test_now_as_a_time_hides_what_is_learned_later(client: Client, namespace: str) -> None:
    """For no time a replacement counts whose create_time is ahead; for now as a time it does not, and that is told."""
    options: dict[str, Any] = {"weights": BY_RELEVANCE, "max_items": 1, "reserved_slots": 0}
    write(client, namespace, {"old": 0.5}, superseded_by="new", create_time=days_ago(1))
    write(client, namespace, {"new": 0.9}, create_time=days_ago(-1))
    packet = client.rank(namespace, **options)
    assert ids(packet) == ["new"]
    change = client.explain_miss(namespace, "old", packet_id=packet.packet_id).smallest_change
    assert (change.field, change.from_json, change.to_json) == ("as_of_time", "null", str(NOW))
    assert ids(client.rank(namespace, **options, as_of_time=NOW_TIME)) == ["old"]


def test_a_caller_s_own_memories_without_a_time_are_learned_when_they_are_ranked_for(
    client: Client, namespace: str
) -> None:
    """So a time that is told holds on a clock that runs on, which it would not if they were learned when sent."""
    candidates: list[dict[str, Any]] = [
        {"id": "old", "content": text(1), "relevance": 0.5, "valid_until_time": days_ago(2)},
        {"id": "new", "content": text(2), "relevance": 0.9, "valid_from_time": days_ago(1)},
    ]
    options: dict[str, Any] = {"weights": BY_RELEVANCE, "max_items": 1, "candidates": candidates}
    change = client.explain_miss(namespace, "old", request=rank_request(namespace, **options)).smallest_change
    assert (change.field, change.to_json) == ("as_of_time", str(micros_of(days_ago(2)) - 1))
    clock.now += HOUR
    assert ids(client.rank(namespace, **options, as_of_time=days_ago(2) - TICK)) == ["old"]


def test_a_time_is_found_where_scores_fall_between_turns(client: Client, namespace: str) -> None:
    """A decision is behind an attempt when it becomes valid, outlasts it, and is worth less than it in the end: only in
    between it is first, and the first such minute is told."""
    write(client, namespace, {"attempt": 0.6}, kind="attempt")
    write(client, namespace, {"decision": 0.5}, kind="decision", valid_from_time=days_ago(-10))
    weights = {"relevance": 0.8, "recency": 0.2}
    options: dict[str, Any] = {"weights": weights, "max_items": 1, "reserved_slots": 0}
    for days, first in ((10, "attempt"), (30, "decision"), (9_999, "attempt")):
        assert ids(client.rank(namespace, **options, as_of_time=days_ago(-days))) == [first]
    change = client.explain_miss(namespace, "decision", request=rank_request(namespace, **options)).smallest_change
    time = time_of(int(change.to_json))
    assert change.field == "as_of_time"
    assert ids(client.rank(namespace, **options, as_of_time=time)) == ["decision"]
    assert ids(client.rank(namespace, **options, as_of_time=time - TICK)) == ["attempt"]


def test_of_two_that_replace_each_other_the_time_decides(client: Client, namespace: str) -> None:
    """The one without a time is always learned last, but for the very time at which the other was."""
    candidates: list[dict[str, Any]] = [
        {"id": "a", "content": text(1), "superseded_by": "b"},
        {"id": "b", "content": text(2), "superseded_by": "a", "create_time": days_ago(1)},
        {"id": "better", "content": text(3), "relevance": 0.9, "create_time": days_ago(0.5)},
    ]
    options: dict[str, Any] = {"weights": BY_RELEVANCE, "candidates": candidates, "max_items": 1}
    why = client.explain_miss(namespace, "b", request=rank_request(namespace, **options))
    assert (name_of(why.reason), why.smallest_change.field) == ("SUPERSEDED", "as_of_time")
    assert time_of(int(why.smallest_change.to_json)) == days_ago(1)
    assert ids(client.rank(namespace, **options, as_of_time=days_ago(1))) == ["b"]


def test_a_filter_of_times_meets_a_memory_without_a_time_at_its_own_bound(client: Client, namespace: str) -> None:
    """It is learned at the time that is ranked for, and so from some time on the filter stops it."""
    candidates: list[dict[str, Any]] = [
        {"id": "better", "content": text(1), "relevance": 0.9},
        {"id": "later", "content": text(2), "create_time": days_ago(1), "valid_from_time": days_ago(-1)},
    ]
    options: dict[str, Any] = {"weights": BY_RELEVANCE, "candidates": candidates, "max_items": 1}
    options["filter"] = {"create_time_until": days_ago(-2)}
    change = client.explain_miss(namespace, "later", request=rank_request(namespace, **options)).smallest_change
    assert (change.field, change.to_json) == ("as_of_time", str(micros_of(days_ago(-2))))
    assert ids(client.rank(namespace, **options, as_of_time=days_ago(-2))) == ["later"]
    assert ids(client.rank(namespace, **options, as_of_time=days_ago(-2) - TICK)) == ["better"]


def test_at_last_no_time_is_tried(client: Client, namespace: str) -> None:
    """A time hides what is learned later, however it is set; without one it is there."""
    write(client, namespace, {"ahead": 0.5}, create_time=days_ago(-1), valid_until_time=days_ago(-0.5))
    asked = rank_request(namespace, weights=BY_RELEVANCE, as_of_time=NOW_TIME)
    why = client.explain_miss(namespace, "ahead", request=asked)
    assert (name_of(why.reason), why.smallest_change.field) == ("NOT_YET_VALID", "as_of_time")
    assert why.smallest_change.to_json == "null"
    assert ids(client.rank(namespace, weights=BY_RELEVANCE)) == ["ahead"]
