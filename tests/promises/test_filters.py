"""Filters through the running service: applied before any cut-off, exact, and never silently wrong."""

from __future__ import annotations

import datetime
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from memoryranker.client import Client, RankerRpcError
from memoryranker.messages import as_filter as checked_filter
from memoryranker.v1 import ranker_pb2, types_pb2

from tests.promises.frozen import BY_RELEVANCE, days_ago, frozen, ids, left_out, text

FILTERED = ranker_pb2.LEFT_OUT_REASON_FILTERED
THROUGH_THE_SERVICE = settings(
    max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
KINDS = ("decision", "fact", "mine")
TAGS = ("urgent", "Urgent", "draft", "타그")


def as_filter(wanted: Any) -> types_pb2.Filter | None:
    """The message of a filter's parts."""
    return checked_filter(wanted)


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Client]:
    """A client of a server that stands still."""
    with frozen(tmp_path_factory.mktemp("server")) as server:
        yield server.client


def stored() -> list[dict[str, Any]]:
    """Thirty memories, the better ones first, that differ in everything a filter asks for."""
    return [
        {
            "id": f"m{i:02}",
            "content": text(i),
            "kind": KINDS[i % 3],
            "tags": [tag for bit, tag in enumerate(TAGS) if i >> bit & 1],
            "metadata": {"team": "red" if i % 2 else "blue", "depth": i % 5, "nested": {"done": i % 4 == 0}},
            "create_time": days_ago(i),
            "source_thread": ["", "t1", "t10"][i % 3],
            "subject": ["", "Ann", "ann"][i // 10],
            "relevance": 1 - i / 100,
        }
        for i in range(30)
    ]


@st.composite
def parts(draw: st.DrawFn) -> dict[str, Any]:
    """Any combination of a filter's parts."""
    some: dict[str, st.SearchStrategy[Any]] = {
        "kinds": st.lists(st.sampled_from([*KINDS, "none such"]), min_size=1, unique=True),
        "any_tags": st.lists(st.sampled_from([*TAGS, "none such"]), min_size=1, unique=True),
        "all_tags": st.lists(st.sampled_from(TAGS), min_size=1, unique=True),
        "metadata_equals": st.fixed_dictionaries(
            {},
            optional={
                "team": st.sampled_from(["red", "Red", 1.0]),
                "depth": st.sampled_from([0, 1, 4.0, "1", True]),
                "nested.done": st.booleans(),
                "nested": st.just({"done": True}),
            },
        ),
        "create_time_from": st.integers(0, 30).map(days_ago),
        "create_time_until": st.integers(0, 30).map(days_ago),
        "ids": st.lists(st.sampled_from([f"m{i:02}" for i in range(30)] + ["gone"]), min_size=1, unique=True),
        "exclude_ids": st.lists(st.sampled_from([f"m{i:02}" for i in range(30)] + ["gone"]), min_size=1, unique=True),
        "source_threads": st.lists(st.sampled_from(["t1", "t10", "t"]), min_size=1, unique=True),
        "subjects": st.lists(st.sampled_from(["Ann", "ann", "An"]), min_size=1, unique=True),
    }
    names = draw(st.lists(st.sampled_from(sorted(some)), max_size=3, unique=True))
    return {name: draw(some[name]) for name in names}


def passes(memory: Mapping[str, Any], wanted: Mapping[str, Any]) -> bool:
    """The filter as the API describes it, part by part."""
    metadata = {**memory["metadata"], "nested.done": memory["metadata"]["nested"]["done"]}
    answers: dict[str, Callable[[Any], bool]] = {
        "kinds": lambda value: memory["kind"] in value,
        "any_tags": lambda value: bool(set(value) & set(memory["tags"])),
        "all_tags": lambda value: set(value) <= set(memory["tags"]),
        "metadata_equals": lambda value: all(_equal(metadata[key], each) for key, each in value.items()),
        "create_time_from": lambda value: memory["create_time"] >= value,
        "create_time_until": lambda value: memory["create_time"] < value,
        "ids": lambda value: memory["id"] in value,
        "exclude_ids": lambda value: memory["id"] not in value,
        "source_threads": lambda value: memory["source_thread"] in value,
        "subjects": lambda value: memory["subject"] in value,
    }
    return all(answers[name](value) for name, value in wanted.items())


def _equal(one: object, other: object) -> bool:
    return one == other and isinstance(one, bool) == isinstance(other, bool)


@pytest.fixture(scope="module")
def filled(client: Client) -> str:
    """A namespace with the thirty memories."""
    assert {result.status.code for result in client.upsert("filled", stored()).results} == {0}
    return "filled"


@THROUGH_THE_SERVICE
@given(wanted=parts(), max_items=st.integers(1, 5), own=st.booleans())
def test_the_best_of_what_passes_is_served(
    client: Client, filled: str, wanted: dict[str, Any], max_items: int, own: bool
) -> None:
    """Before any cut-off, from stored memories and from a caller's own list: exactly what passes takes part, and what
    does not is counted."""
    passing = [memory["id"] for memory in stored() if passes(memory, wanted)]
    given: dict[str, Any] = {"candidates": stored()} if own else {}
    packet = client.rank(
        filled, weights=BY_RELEVANCE, filter=as_filter(wanted), max_items=max_items, reserved_slots=0, **given
    )
    assert ids(packet) == passing[:max_items]
    assert left_out(packet).get(FILTERED, 0) == 30 - len(passing)
    if not own:
        assert [memory.id for memory in client.list(filled, as_filter(wanted), page_size=7)] == passing


def test_update_times_are_filtered_too(client: Client, namespace: str) -> None:
    """From is inclusive and until is exclusive, to the microsecond."""
    client.upsert(namespace, [{"id": "m", "content": text(1)}])
    time = client.get(namespace, "m").update_time.ToDatetime(datetime.UTC)
    tick = datetime.timedelta(microseconds=1)
    for wanted, expected in (
        ({"update_time_from": time}, ["m"]),
        ({"update_time_from": time + tick}, []),
        ({"update_time_until": time}, []),
        ({"update_time_until": time + tick}, ["m"]),
    ):
        assert ids(client.rank(namespace, filter=as_filter(wanted))) == expected


@pytest.mark.parametrize("key", ["tema", "team.name", "nested.don", "Team"])
def test_a_misspelt_metadata_key_is_an_error(client: Client, filled: str, key: str) -> None:
    """A key that no memory bears is refused in Rank, List and Delete, and the near ones are named; nothing is
    deleted."""
    wanted = {"metadata_equals": {key: "red"}}
    for call in (
        lambda: client.rank(filled, filter=as_filter(wanted)),
        lambda: client.rank(filled, candidates=stored(), filter=as_filter(wanted)),
        lambda: list(client.list(filled, as_filter(wanted))),
        lambda: client.delete(filled, filter=as_filter(wanted)),
    ):
        with pytest.raises(RankerRpcError) as caught:
            call()
        assert caught.value.reason == "INVALID_REQUEST"
        (violation,) = caught.value.violations
        assert violation.field.startswith("filter.metadata_equals")
        assert repr(key) in violation.description
        assert "team" in violation.description or "nested.done" in violation.description
    assert len(list(client.list(filled))) == 30


def test_a_filter_s_unknown_field_is_an_error() -> None:
    """The client refuses a part that there is not, before anything is sent."""
    with pytest.raises(TypeError, match="tagz"):
        as_filter({"tagz": ["urgent"]})


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(wanted=parts().filter(lambda wanted: any(wanted.values())))
def test_delete_by_filter_takes_what_passes_and_nothing_else(client: Client, wanted: dict[str, Any]) -> None:
    """Exactly the memories that pass are gone, in this namespace alone."""
    for name in ("doomed", "spared"):
        client.upsert(name, stored())
    passing = {memory["id"] for memory in stored() if passes(memory, wanted)}
    assert client.delete("doomed", filter=as_filter(wanted)).deleted_count == len(passing)
    assert {memory.id for memory in client.list("doomed")} == {memory["id"] for memory in stored()} - passing
    assert len(list(client.list("spared"))) == 30


def test_an_empty_filter_deletes_nothing(client: Client, filled: str) -> None:
    """A filter without any part is refused where it would mean everything."""
    with pytest.raises(RankerRpcError) as caught:
        client.delete(filled, filter={})
    assert caught.value.violations[0].field == "filter"
    assert len(list(client.list(filled))) == 30


def test_three_memories_beside_fifty_thousand_are_all_found(client: Client) -> None:
    """A small namespace, and a small part of a big one, gets all that it has, however many others fit better."""
    for start in range(0, 50_000, 1000):
        big = [
            {"id": f"b{i}", "content": f"ferry timetable {i}", "relevance": 1.0, "kind": "fact"}
            for i in range(start, start + 1000)
        ]
        answer = client.upsert("big", big, timeout=60)
        assert len(answer.results) == 1000
    small = [{"id": f"s{i}", "content": text(i), "relevance": 0.1, "kind": "mine", "tags": ["few"]} for i in range(3)]
    client.upsert("small", small)
    client.upsert("big", small)
    assert ids(client.rank("small", "ferry timetable", max_items=3)) == ["s0", "s1", "s2"]
    for wanted in ({"kinds": ["mine"]}, {"any_tags": ["few"]}, {"ids": ["s0", "s1", "s2"]}):
        packet = client.rank("big", "ferry timetable", filter=as_filter(wanted), max_items=3)
        assert ids(packet) == ["s0", "s1", "s2"]
        assert left_out(packet) == {FILTERED: 50_000}
