"""Stores and requests by chance, and whether what is told of a missed memory holds of them."""

from __future__ import annotations

import datetime
import json
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from google.protobuf.struct_pb2 import Struct
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from memoryranker.client import Client
from memoryranker.messages import timestamp
from memoryranker.v1 import ranker_pb2, ranker_pb2_grpc, types_pb2

from tests.promises.frozen import NOW_TIME, days_ago, ids, text
from tests.promises.models import Asked, reasons
from tests.serving import wait_until_scored

PINNED, RANKED, RESERVED = types_pb2.SEGMENT_PINNED, types_pb2.SEGMENT_RANKED, types_pb2.SEGMENT_RESERVED
THROUGH_THE_SERVICE = settings(
    max_examples=120, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow]
)
GATES = ("FILTERED", "SUPPRESSED", "RATED_UNHELPFUL", "EXPIRED", "NOT_YET_VALID", "SUPERSEDED")
TICK = datetime.timedelta(microseconds=1)
EPOCH = datetime.datetime.fromtimestamp(0, datetime.UTC)


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
