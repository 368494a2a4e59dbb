"""ExplainMiss where importances count: a change of a memory is told by the importances that it leads to."""

from __future__ import annotations

import datetime
import functools
import itertools
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from memoryranker.client import rank_request
from memoryranker.v1 import ranker_pb2_grpc

from sidecar.importance import later
from tests.promises.frozen import NOW, NOW_TIME, days_ago, frozen, ids
from tests.promises.models import Asked, name_of
from tests.promises.stories import RESERVED, Story, check_told, one_in, untold
from tests.serving import Running, channel_to, wait_until_scored

VALUES = ("postgres", "mysql", "sqlite")
SAID = (
    *(f"The staging database of the payment team is {value}" for value in VALUES),
    *(f"In staging, OPS-{number} moved the payments to {VALUES[number % 3]}" for number in range(4711, 4717)),
    "Deploys of the payment team wait for a green canary, always",
    "We wait until the canary is green before the payment team deploys",
)
numbers = itertools.count()


@pytest.fixture(scope="module", params=["wordllama", "none"])
def server(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    """A server that stands still, with vectors and without."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(later, "REST", 0.0)  # nobody else is at work
        with frozen(tmp_path_factory.mktemp("server"), embedder=request.param) as running:
            yield running


@pytest.fixture
def stub(server: Running) -> Iterator[ranker_pb2_grpc.RankerServiceStub]:
    """The bare API."""
    with channel_to(server.listen) as channel:
        yield ranker_pb2_grpc.RankerServiceStub(channel)


@st.composite
def stores(draw: st.DrawFn) -> list[dict[str, Any]]:
    """Memories that repeat, contradict and replace each other, many of which cannot be served."""
    names = [f"m{number}" for number in range(draw(st.integers(2, 5)))]
    found: list[dict[str, Any]] = [
        {
            "id": name,
            "content": draw(st.sampled_from(SAID)),
            "relevance": 0.5,
            "kind": "fact" if draw(one_in(3)) else "decision",
            "subject": "payment",
            "metadata": {"attribute": "database", "value": draw(st.sampled_from(VALUES))} if draw(one_in(3)) else {},
            "source_thread": draw(st.sampled_from(["t1", "t2", "t3"])),
            "create_time": days_ago(draw(st.integers(0, 3))),
            "token_count": draw(st.integers(1, 9)),
            "tags": [],
            "pinned": False,
            "suppressed": draw(one_in(3)),
            "superseded_by": draw(st.sampled_from([""] * 4 + names)),
            "valid_until_time": draw(st.sampled_from([None] * 4 + [NOW_TIME, days_ago(0.5)])),
            "valid_from_time": draw(st.sampled_from([None] * 5 + [days_ago(-2)])),
        }
        for name in names
    ]
    for each in found:
        if each["valid_from_time"]:
            each["valid_until_time"] = None
    return found


@settings(
    max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow]
)
@given(
    memories=stores(),
    max_items=st.integers(1, 2),
    token_budget=st.sampled_from([None, None, 5, 12]),
    weights=st.sampled_from([{"importance": 1.0}, {"importance": 0.7, "relevance": 0.3}, "default", "importance"]),
    unhelpful=st.sampled_from(["", "", "m0"]),
    as_of=st.sampled_from([None, None, None, days_ago(0.7), days_ago(-1), days_ago(-3)]),
)
def test_what_is_told_admits_once_importances_stand_and_where_none_is_told_none_does(
    server: Running,
    stub: ranker_pb2_grpc.RankerServiceStub,
    memories: list[dict[str, Any]],
    max_items: int,
    token_budget: int | None,
    weights: dict[str, float] | str,
    unhelpful: str,
    as_of: datetime.datetime | None,
) -> None:
    """Whatever the change moves beside the memory: what it contradicts, repeats, replaces, and the other way round."""
    client, namespace = server.client, f"story{next(numbers)}"
    assert {result.status.code for result in client.upsert(namespace, memories).results} == {0}
    if unhelpful:
        client.rate(namespace, unhelpful, "unhelpful")
    wait_until_scored(client, namespace)
    options: dict[str, Any] = {"max_items": max_items, "token_budget": token_budget, "reserved_slots": 0}
    options["as_of_time"] = as_of
    asked = rank_request(namespace, "which database has staging?", weights=weights, explain="none", **options)
    story = Story(client, stub, namespace, memories, asked)
    model = Asked(frozenset(each["id"] for each in memories), max_items, 0, token_budget, None, as_of)
    for each in memories:
        name = each["id"]
        packet = stub.Rank(asked, timeout=30)
        why = client.explain_miss(namespace, name, request=asked)
        assert not ids(packet, RESERVED)
        assert why.served == (name in ids(packet))
        if why.served:
            continue
        check_told(story, name, why, untold(story, name, name_of(why.reason), functools.partial(replace, model)))


def test_what_is_ranked_for_a_time_to_come_may_have_to_be_valid_before(tmp_path: Path) -> None:
    """Valid from that time on it would be behind the one that it contradicts; valid from now on, it takes importance
    from it."""
    said = {"kind": "decision", "subject": "payment", "source_thread": "t1", "create_time": days_ago(2)}
    with frozen(tmp_path, embedder="none") as server:
        client = server.client
        client.upsert(
            "n",
            [
                {
                    "id": "a",
                    "content": "In staging, OPS-4713 moved the payments to postgres",
                    "metadata": {"attribute": "database", "value": "mysql"},
                    "valid_from_time": days_ago(-3),
                    **said,
                },
                {
                    "id": "b",
                    "content": "In staging, OPS-4714 moved the payments to mysql",
                    "metadata": {"attribute": "database", "value": "sqlite"},
                    **said,
                },
            ],
        )
        wait_until_scored(client, "n")
        options: dict[str, Any] = {"weights": {"importance": 1.0}, "max_items": 1, "as_of_time": days_ago(-2)}
        change = client.explain_miss("n", "a", request=rank_request("n", **options)).smallest_change
        assert (change.field, change.to_json) == ("memory.valid_from_time", str(NOW))
        for time, first in ((days_ago(-2), "b"), (NOW_TIME, "a")):
            client.update("n", "a", valid_from_time=time)
            wait_until_scored(client, "n")
            assert ids(client.rank("n", **options)) == [first]
