"""ExplainMiss through the running service: the reason is right, and so is what would have helped."""

from __future__ import annotations

import datetime
import functools
import itertools
import json
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import grpc
import pytest
from google.protobuf.struct_pb2 import Struct
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from memoryranker.client import Client, RankerRpcError, rank_request
from memoryranker.messages import timestamp
from memoryranker.v1 import ranker_pb2, ranker_pb2_grpc, types_pb2

from sidecar.features import FEATURE_NAMES
from sidecar.ranking.tokens import count_tokens
from tests.promises.frozen import BY_RELEVANCE, NOW_TIME, days_ago, frozen, ids, left_out, text, write
from tests.promises.models import Asked, name_of, reasons
from tests.promises.test_filters import passes
from tests.serving import Running, channel_to, wait_until_scored

PINNED, RANKED, RESERVED = types_pb2.SEGMENT_PINNED, types_pb2.SEGMENT_RANKED, types_pb2.SEGMENT_RESERVED
THROUGH_THE_SERVICE = settings(
    max_examples=120, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow]
)
GATES = ("FILTERED", "SUPPRESSED", "RATED_UNHELPFUL", "EXPIRED", "NOT_YET_VALID", "SUPERSEDED")
TICK = datetime.timedelta(microseconds=1)
EPOCH = datetime.datetime.fromtimestamp(0, datetime.UTC)


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


def one_in(many: int) -> st.SearchStrategy[bool]:
    """True now and then."""
    return st.integers(1, many).map(lambda number: number == many)


@st.composite
def stores(draw: st.DrawFn) -> list[dict[str, Any]]:
    """Up to eight memories, of which any may be stopped by any gate, or by several."""
    count = draw(st.integers(1, 8))
    names = [f"m{i}" for i in range(count)]
    found: list[dict[str, Any]] = [
        {
            "id": name,
            "content": text(draw(st.integers(0, 9))).swapcase() if draw(one_in(2)) else text(draw(st.integers(0, 9))),
            "relevance": draw(st.sampled_from([0.1, 0.4, 0.5, 0.500001, 0.8, 0.9])),
            "token_count": draw(st.integers(1, 40)),
            "pinned": draw(one_in(3)),
            "suppressed": draw(one_in(9)),
            "valid_until_time": draw(st.sampled_from([None] * 5 + [NOW_TIME, days_ago(2), days_ago(-2)])),
            "valid_from_time": draw(st.sampled_from([None] * 6 + [NOW_TIME, NOW_TIME + TICK, days_ago(-2)])),
            "superseded_by": draw(st.sampled_from([""] * 12 + names)),
            "create_time": days_ago(draw(st.integers(0, 3))),
            "kind": draw(st.sampled_from(["fact", "fact", "mine"])),
            "tags": draw(st.lists(st.sampled_from(["a", "b"]), unique=True)),
            "metadata": {"team": draw(st.sampled_from(["red", "blue"])), "nested": {"done": True}},
            "source_thread": draw(st.sampled_from(["", "t1"])),
            "subject": draw(st.sampled_from(["", "Ann"])),
        }
        for name in names
    ]
    for each in found:
        start, end = each["valid_from_time"], each["valid_until_time"]
        if start and end and start >= end:  # it would never be served, and is refused
            each["valid_from_time"] = None
    return found


@st.composite
def filters(draw: st.DrawFn) -> dict[str, Any]:
    """No part of a filter, one or two."""
    names = [f"m{i}" for i in range(8)]
    some: dict[str, st.SearchStrategy[Any]] = {
        "kinds": st.just(["fact"]),
        "any_tags": st.just(["a"]),
        "all_tags": st.just(["a", "b"]),
        "metadata_equals": st.just({"team": "red", "nested.done": True}),
        "create_time_from": st.just(days_ago(2)),
        "create_time_until": st.just(days_ago(1)),
        "ids": st.lists(st.sampled_from(names), min_size=1, unique=True),
        "exclude_ids": st.lists(st.sampled_from(names), min_size=1, unique=True),
        "source_threads": st.just(["t1"]),
        "subjects": st.just(["Ann"]),
    }
    chosen = draw(st.lists(st.sampled_from(sorted(some)), max_size=2, unique=True)) if draw(one_in(2)) else []
    return {name: draw(some[name]) for name in chosen}


@st.composite
def requests(draw: st.DrawFn) -> dict[str, Any]:
    """A request for few memories."""
    slots = draw(st.sampled_from([None, 0, 0, 1, 2]))
    return {
        "max_items": draw(st.integers((slots or 0) + 1, 5)),
        "reserved_slots": slots,
        "token_budget": draw(st.none() | st.integers(0, 90)),
        "min_score": draw(st.sampled_from([None, None, 0.45, 0.6, 1.0])),
        "filter": draw(filters()),
        "as_of_time": draw(st.sampled_from([None] * 4 + [NOW_TIME, days_ago(1), days_ago(2), days_ago(-3)])),
    }


numbers = itertools.count()


@dataclass(frozen=True, slots=True)
class Story:
    """A namespace, a request, and the ways to ask again with one thing changed."""

    client: Client
    stub: ranker_pb2_grpc.RankerServiceStub
    namespace: str
    memories: list[dict[str, Any]]
    request: ranker_pb2.RankRequest

    def admits(self, memory_id: str, request: ranker_pb2.RankRequest | None = None) -> bool:
        """True if the memory is served, and not by luck."""
        packet = self.stub.Rank(request or self.request, timeout=30)
        return memory_id in (*ids(packet, PINNED), *ids(packet, RANKED))

    def admits_with(self, memory_id: str, field: str, value: Any) -> bool:
        """True if the memory is served once the field has the value, None for unset, and importances stand. All else
        stays as it was."""
        if field.startswith("memory."):
            return self._with_memory(memory_id, field.removeprefix("memory."), value)
        changed = ranker_pb2.RankRequest()
        changed.CopyFrom(self.request)
        if field.startswith("filter."):
            _set(changed.filter, field.removeprefix("filter."), value)
        else:
            _set(changed, field, value)
        return self.admits(memory_id, changed)

    def _with_memory(self, memory_id: str, field: str, value: Any) -> bool:
        if field == "ratings.unhelpful":
            self.client.rate(self.namespace, memory_id, "withdrawn")
            admitted = self.admits(memory_id)
            self.client.rate(self.namespace, memory_id, "unhelpful")
            return admitted
        before = next(each for each in self.memories if each["id"] == memory_id)[field]
        if field.endswith("_time") and value is not None:
            value = time_of(value)
        self.client.update(self.namespace, memory_id, **{field: value})
        wait_until_scored(self.client, self.namespace)
        admitted = self.admits(memory_id)
        self.client.update(self.namespace, memory_id, **{field: before})
        wait_until_scored(self.client, self.namespace)
        return admitted


def micros_of(time: datetime.datetime) -> int:
    """Microseconds since 1970."""
    return (time - EPOCH) // TICK


def time_of(micros: int) -> datetime.datetime:
    """A time from the microseconds since 1970."""
    return EPOCH + micros * TICK


def _set(message: Any, field: str, value: Any) -> None:
    message.ClearField(field)
    if value is None:
        return
    if field.endswith(("_time", "_from", "_until")):
        getattr(message, field).CopyFrom(timestamp(time_of(value)))
    elif isinstance(value, list):
        getattr(message, field).extend(value)
    elif isinstance(value, dict):
        data = Struct()
        data.update(value)
        getattr(message, field).CopyFrom(data)
    else:
        setattr(message, field, value)


def smaller_steps(field: str, old: Any, new: Any) -> list[Any]:
    """Values nearer to the old one: half the way there, and one less where they are whole numbers."""
    if isinstance(old, bool) or not isinstance(new, int | float) or not isinstance(old, int | float):
        return []
    if isinstance(new, int):
        toward = 1 if new > old else -1
        return [value for value in {new - toward, (old + new) // 2} if value not in (old, new) and old != new]
    return [value for value in [(old + new) / 2] if value not in (old, new)]


def untold(story: Story, memory_id: str, reason: str, asked: Callable[..., Asked]) -> Iterator[tuple[str, Any]]:
    """Every change of the kinds that are known, each as far as it goes: what "no single change" must mean."""
    request = story.request
    if reason in GATES:
        of_gate: dict[str, tuple[str, Any]] = {
            "FILTERED": ("filter", None),
            "SUPPRESSED": ("memory.suppressed", False),
            "RATED_UNHELPFUL": ("memory.ratings.unhelpful", 0),
            "EXPIRED": ("memory.valid_until_time", None),
            "NOT_YET_VALID": ("memory.valid_from_time", None),
            "SUPERSEDED": ("memory.superseded_by", ""),
        }
        yield of_gate[reason]
        if reason == "FILTERED":
            yield from _own_alone(story, memory_id)
        as_of = asked().as_of
        if reason == "EXPIRED" and as_of is not None and as_of < NOW_TIME:
            yield "memory.valid_until_time", micros_of(as_of + TICK)
        if reason in ("EXPIRED", "NOT_YET_VALID", "SUPERSEDED"):
            for time in _nearest_times(story, memory_id, asked):
                yield "as_of_time", micros_of(time)
        return
    yield "memory.pinned", True
    if request.HasField("min_score"):
        yield from (("min_score", step / 100) for step in (0, 5, 10, 40, 45, 50, 60) if step / 100 < request.min_score)
        if reason == "BELOW_MIN_SCORE":
            return
    enough = 2 * sum(each["token_count"] for each in story.memories) + 10
    yield from (("token_budget", budget) for budget in (*range(enough), None))
    yield from (("max_items", count) for count in (*range(1 + request.reserved_slots, 14), 200))
    yield from (("reserved_slots", slots) for slots in range(min(3, request.max_items)))
    own = next(each["token_count"] for each in story.memories if each["id"] == memory_id)
    yield from (("memory.token_count", count) for count in range(1, own))
    for each in story.memories:
        if each["id"] != memory_id:
            yield "filter.exclude_ids", [*request.filter.exclude_ids, each["id"]]


def _own_alone(story: Story, memory_id: str) -> Iterator[tuple[str, Any]]:
    memory = next(each for each in story.memories if each["id"] == memory_id)
    own = {"kinds": [memory["kind"]], "ids": [memory_id], "all_tags": memory["tags"]}
    own |= {"source_threads": [memory["source_thread"]], "subjects": [memory["subject"]]}
    for part, value in own.items():
        if getattr(story.request.filter, part) and any(value):
            yield f"filter.{part}", value
    if story.request.filter.any_tags:
        yield from (("filter.any_tags", [tag]) for tag in memory["tags"])


def _nearest_times(story: Story, memory_id: str, asked: Callable[..., Asked]) -> Iterator[datetime.datetime]:
    """The times next to that of the request, one each way, at which a model says that no gate stops the memory."""
    now = asked().as_of or NOW_TIME
    moments = {
        moment
        for each in story.memories
        for time in (each["create_time"], each["valid_from_time"], each["valid_until_time"])
        if time is not None
        for moment in (time - TICK, time)
    }
    before = sorted((moment for moment in moments if moment < now), reverse=True)
    after = sorted(moment for moment in moments if moment > now)
    for way in (before, after):
        for moment in way:
            if reasons(story.memories, frozenset(), asked(as_of=moment))[memory_id] not in GATES:
                yield moment
                break


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


def check_told(
    story: Story, memory_id: str, why: ranker_pb2.ExplainMissResponse, untold: Iterable[tuple[str, Any]]
) -> None:
    """The change that is told admits, and no smaller step does; where none is told, none of what is `untold` does."""
    if not why.HasField("smallest_change"):
        assert "No single change that was tried" in why.message
        for field, value in untold:
            assert not story.admits_with(memory_id, field, value), (memory_id, field, value)
        return
    change = why.smallest_change
    old, new = json.loads(change.from_json), json.loads(change.to_json)
    assert story.admits_with(memory_id, change.field, new), (memory_id, change)
    if change.field == "as_of_time":
        assert (old is None) != story.request.HasField("as_of_time")
        old = micros_of(NOW_TIME) if old is None else old
    for value in smaller_steps(change.field, old, new):
        assert not story.admits_with(memory_id, change.field, value), (memory_id, change, value)


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
