"""Order through the running service: the score that is shown decides, is made of what is shown, and stays."""

from __future__ import annotations

import itertools
import random
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from memoryranker.client import Client
from memoryranker.v1 import ranker_pb2, types_pb2

from sidecar.domain import KNOWN_KINDS
from sidecar.features import FEATURE_NAMES
from tests.promises.frozen import days_ago, frozen, ids, text
from tests.serving import Running, wait_until_scored

RANKED = types_pb2.SEGMENT_RANKED
WORDS = "ferry harbour invoice timeout OPS-1182 svc/gate/rotate.py Ann 2025-03-01 港口 ท่าเรือ Hafen retry".split()
TASKS = ["", "ferry timeout OPS-1182", "what did Ann say about svc/gate/rotate.py on 2025-03-01", "港口 ท่าเรือ retry"]
THROUGH_THE_SERVICE = settings(
    max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)


def memories(seed: int, count: int) -> list[dict[str, Any]]:
    """Memories of every kind, age, thread and wording, the same for the same seed."""
    dice = random.Random(seed)
    return [
        {
            "id": f"m{i:03}",
            "content": f"{dice.choice(['Ann: ', 'Ben: ', ''])}{text(seed * 1000 + i)[:13]} "
            + " ".join(dice.sample(WORDS, dice.randint(1, 5))),
            "kind": dice.choice([*KNOWN_KINDS, "mine"]),
            "create_time": days_ago(dice.choice([-3, 0, 1, 30, 400])),
            "source_thread": dice.choice(["", "t1", "t2"]),
            "relevance": dice.choice([None, 0.0, 0.5, 1.0]),
            "importance_override": dice.choice([None, 0.0, 1.0]),
            "subject": dice.choice(["", "Ann"]),
        }
        for i in range(count)
    ]


def use_some(client: Client, namespace: str, rounds: int, *, rated: bool = True) -> None:
    """Uses, non-uses and ratings, so that what use feeds has something to say."""
    for number in range(rounds):
        packet = client.rank(namespace, TASKS[number % len(TASKS)], session_id=f"s{number}", reserved_slots=0)
        served = ids(packet)
        client.report_use(packet.packet_id, served[::2])
        if rated:
            client.rate(namespace, served[-1], "helpful", agent_id=f"a{number}")


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    """A server that stands still, with a namespace of used memories."""
    with frozen(tmp_path_factory.mktemp("server"), embedder="wordllama") as running:
        running.client.upsert("used", memories(1, 60))
        wait_until_scored(running.client, "used")
        use_some(running.client, "used", 8)
        yield running


@pytest.fixture
def client(server: Running) -> Client:
    """A client of it."""
    return server.client


FULL = ("kind_prior", "relevance", "recency", "importance")
"""Features that a caller's own memory can have at 1."""


def picture(packet: ranker_pb2.RankResponse) -> list[tuple[str, float, tuple[float, ...]]]:
    """The ranked segment, to the last bit."""
    return [(item.memory.id, item.score, tuple(item.contributions)) for item in packet.items if item.segment == RANKED]


def check(packet: ranker_pb2.RankResponse) -> None:
    """The promises that hold for any packet."""
    ranked = [item for item in packet.items if item.segment == RANKED]
    for one, following in itertools.pairwise(ranked):
        assert (-one.score, one.memory.id) < (-following.score, following.memory.id)
    for item in packet.items:
        assert 0 <= item.score <= 1
        total = 0.0
        for contribution in item.contributions:
            assert contribution >= 0
            total += contribution
        assert total == item.score
        assert len(item.contributions) == len(FEATURE_NAMES)
    assert [item.place for item in packet.items] == list(range(1, len(packet.items) + 1))


@st.composite
def weights(draw: st.DrawFn, of: Sequence[str] = FEATURE_NAMES, capped: bool = True) -> types_pb2.Weights:
    """Weights whose sum is at most 1, whole up to the tolerance, some of them capped."""
    names = draw(st.lists(st.sampled_from(of), min_size=1, max_size=len(of), unique=True))
    parts = [draw(st.integers(1, 20)) for _ in names]
    whole = draw(st.sampled_from([1.0, 1.0, 1.0000009, 0.3]))
    values = [min(1.0, part / sum(parts) * whole) for part in parts]
    caps = {
        name: value * draw(st.floats(0, 1))
        for name, value in zip(names, values, strict=True)
        if capped and draw(st.booleans())
    }
    return types_pb2.Weights(
        features=dict(zip(names, values, strict=True)),
        caps=caps,
        use_family_cap=draw(st.none() | st.floats(0, 1)),
    )


@THROUGH_THE_SERVICE
@given(
    chosen=weights() | st.sampled_from(["default", "smartctx", "engine", "importance"]),
    task=st.sampled_from(TASKS),
    slots=st.integers(0, 2),
    max_items=st.integers(3, 60),
)
def test_the_order_is_that_of_the_scores_shown_and_they_are_sums_of_what_is_shown(
    client: Client, chosen: types_pb2.Weights | str, task: str, slots: int, max_items: int
) -> None:
    """Whatever the weights: descending by score, ties by id; contributions add up left to right to the score, to the
    last bit; every score in [0, 1]."""
    check(client.rank("used", task, weights=chosen, reserved_slots=slots, max_items=max_items))


@THROUGH_THE_SERVICE
@given(chosen=weights(FULL, capped=False))
def test_no_score_passes_1(client: Client, chosen: types_pb2.Weights) -> None:
    """Also not by an ulp or the tolerance, for a memory that has everything at its most."""
    best = {
        "id": "best",
        "content": "ferry",
        "kind": "decision",
        "relevance": 1.0,
        "importance_override": 1.0,
    }
    packet = client.rank("own", "ferry", candidates=[best], weights=chosen)
    check(packet)


def test_ties_go_by_id(client: Client) -> None:
    """Equal scores stand in the order of their ids, however they were sent."""
    names = ["b", "a", "B", "é", "z", "10", "9", "メモ", "\U0001f9e0"]
    candidates = [{"id": name, "content": text(i), "relevance": 0.5} for i, name in enumerate(names)]
    packet = client.rank("own", candidates=candidates, weights={"relevance": 1.0})
    assert ids(packet) == sorted(names, key=str.encode)


def all_pictures(client: Client, namespace: str) -> list[Any]:
    """What ranking says of every memory, for every task and preset."""
    return [
        picture(client.rank(namespace, task, weights=preset, max_items=200, reserved_slots=0))
        for task in TASKS
        for preset in ("default", "smartctx", "engine", "importance")
    ]


def test_the_ranked_segment_stays_over_restarts_and_other_writes(tmp_path: Path) -> None:
    """The same store, request and time give the same ranked segment bit for bit: after a restart, after other memories
    came and went, after a rewrite that changes nothing, and in whichever order all was written. Without ratings: by
    those the importance of a memory is weighed that is scored anew because its neighbours changed."""
    others = [{**each, "id": f"other{each['id']}", "importance_override": None} for each in memories(3, 150)]
    mine = memories(2, 80)
    with frozen(tmp_path, embedder="wordllama") as server:
        client = server.client
        client.upsert("n", mine)
        wait_until_scored(client, "n")
        use_some(client, "n", 6, rated=False)
        before = all_pictures(client, "n")
        client.upsert("n", others)
        wait_until_scored(client, "n")
        assert all_pictures(client, "n") != before
        client.delete("n", [each["id"] for each in others])
        wait_until_scored(client, "n")
        assert all_pictures(client, "n") == before
        client.upsert("n", mine[::-1])
        wait_until_scored(client, "n")
        assert all_pictures(client, "n") == before
        client.upsert("scattered", [mine[i] for i in random.Random(0).sample(range(80), 80)])
        client.upsert("in order", mine)
        for namespace in ("scattered", "in order"):
            wait_until_scored(client, namespace)
        assert all_pictures(client, "scattered") == all_pictures(client, "in order")
    with frozen(tmp_path, "again", embedder="wordllama") as server:
        assert all_pictures(server.client, "n") == before


def test_eight_callers_at_once_see_the_same(client: Client) -> None:
    """Thread counts change nothing of a ranked segment."""

    def ask(number: int) -> Sequence[Any]:
        return picture(client.rank("used", TASKS[number % len(TASKS)], reserved_slots=0, max_items=60))

    alone = [ask(number) for number in range(len(TASKS))]
    with ThreadPoolExecutor(8) as callers:
        for number, together in enumerate(callers.map(ask, range(160))):
            assert together == alone[number % len(TASKS)]


def test_serving_raises_nothing(client: Client) -> None:
    """A hundred Ranks, with slots and without, in one session and in many, leave every score as it was."""
    before = all_pictures(client, "used")
    for number in range(100):
        client.rank(
            "used", TASKS[number % 4], session_id=f"q{number % 7}" if number % 3 else "", reserved_slots=number % 3
        )
    assert all_pictures(client, "used") == before


def test_ranking_for_the_same_past_time_stays_the_same(client: Client) -> None:
    """Asked again for the same time, after all that was reported since, the answer is what it was."""
    client.upsert("past", memories(4, 40))
    wait_until_scored(client, "past")
    asked = {"as_of_time": days_ago(1), "reserved_slots": 0, "max_items": 50}
    before = [picture(client.rank("past", task, **asked)) for task in TASKS]  # type: ignore[arg-type]
    use_some(client, "past", 4)
    now = [item.contributions for item in client.rank("past", max_items=50).items]
    assert any(part[FEATURE_NAMES.index("frequency")] for part in now)
    rated = {
        memory.id for memory in client.list("past") if memory.ratings.helpful
    }  # ratings have no history: they count from the start
    for task, packet in zip(TASKS, before, strict=True):
        again = picture(client.rank("past", task, **asked))  # type: ignore[arg-type]
        assert [each for each in again if each[0] not in rated] == [each for each in packet if each[0] not in rated]
