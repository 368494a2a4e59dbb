"""ExplainMiss names token budgets that admit, and of which nothing smaller does; through the running service."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from memoryranker.client import Client, rank_request

from tests.promises.frozen import BY_RELEVANCE, frozen, ids, text, write
from tests.promises.models import name_of
from tests.promises.stories import RANKED


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Client]:
    """A client of a server that stands still."""
    with frozen(tmp_path_factory.mktemp("server")) as server:
        yield server.client


def test_a_smaller_budget_is_tried(client: Client, namespace: str) -> None:
    """Where one place is taken by either of two that are larger, a budget that holds neither is what admits."""
    write(client, namespace, {"a": 0.9, "b": 0.8}, token_count=30, pinned=True)
    write(client, namespace, {"missed": 0.5}, token_count=5, pinned=True)
    options: dict[str, Any] = {"weights": BY_RELEVANCE, "max_items": 1, "reserved_slots": 0}
    for budget in (None, 33):
        asked = rank_request(namespace, **options, token_budget=budget)
        change = client.explain_miss(namespace, "missed", request=asked).smallest_change
        assert (change.field, change.to_json) == (("token_budget", "29") if budget else ("max_items", "3"))
    assert ids(client.rank(namespace, **options, token_budget=29)) == ["missed"]
    assert ids(client.rank(namespace, **options, token_budget=30)) == ["a"]


def test_a_budget_far_away_is_found_by_halving(client: Client, namespace: str) -> None:
    """Behind a hundred larger memories, each of which another budget lets in: what is told admits, one less and half of
    the way do not."""
    for i in range(100):
        write(client, namespace, {f"m{i:02}": 0.9 - i / 1000}, token_count=1000 + 7 * i)
    write(client, namespace, {"missed": 0.5}, token_count=4000)
    options: dict[str, Any] = {"weights": BY_RELEVANCE, "max_items": 150, "reserved_slots": 0}
    asked = rank_request(namespace, **options, token_budget=900)
    change = client.explain_miss(namespace, "missed", request=asked).smallest_change
    budget = int(change.to_json)
    assert change.field == "token_budget"
    assert "missed" in ids(client.rank(namespace, **options, token_budget=budget))
    for less in (budget - 1, (900 + budget) // 2):
        assert "missed" not in ids(client.rank(namespace, **options, token_budget=less))


@settings(max_examples=40, deadline=None)
@given(
    seed=st.integers(0, 10**9),
    budget=st.integers(300, 4000),
    max_items=st.sampled_from([40, 200, 200]),
    slots=st.integers(0, 2),
)
def test_however_far_the_budget_is_away_no_smaller_step_admits(
    client: Client, seed: int, budget: int, max_items: int, slots: int
) -> None:
    """Behind more memories than are tried one by one, of any sizes, some pinned: the budget that is told admits, and
    neither one less nor half of the way does."""
    rng = random.Random(seed)
    sizes = [rng.randint(1, 60) + 1000 * rng.randint(0, 2) for _ in range(rng.randint(80, 160))]
    candidates: list[dict[str, Any]] = [
        {"id": f"m{i:03}", "content": text(i), "relevance": 0.9 - i / 1000, "token_count": size}
        for i, size in enumerate(sizes)
    ]
    for each in rng.sample(candidates, rng.randint(0, 3)):
        each["pinned"] = True
    missed = {"id": "missed", "content": text(999), "relevance": 0.5, "token_count": rng.randint(100, 9000)}
    options: dict[str, Any] = {
        "candidates": [*candidates, missed],
        "weights": BY_RELEVANCE,
        "max_items": max_items,
        "reserved_slots": slots,
        "dry_run": slots == 0,
    }
    why = client.explain_miss("own", "missed", request=rank_request("own", **options, token_budget=budget))
    if why.smallest_change.field != "token_budget":
        return
    told = int(why.smallest_change.to_json)

    def admits(of: int) -> bool:
        packet = client.rank("own", **options, token_budget=of)
        return "missed" in ids(packet, RANKED)

    assert admits(told)
    for step in (told - 1, (budget + told) // 2) if told > budget else (told + 1, (budget + told + 1) // 2):
        assert step == budget or not admits(step)


def test_what_a_pinned_memory_that_does_not_fit_keeps_out_is_told_to_need_one_more_place(
    client: Client, namespace: str
) -> None:
    """It keeps its place, or a bigger budget, which holds it, would take the other away; with the pinned one left out
    the other has the place as well."""
    write(client, namespace, {"pinned": 0.9}, token_count=50, pinned=True)
    write(client, namespace, {"missed": 0.8})
    options: dict[str, Any] = {"weights": BY_RELEVANCE, "max_items": 1, "reserved_slots": 0}
    packet = client.rank(namespace, **options, token_budget=20)
    assert not ids(packet)
    change = client.explain_miss(namespace, "missed", packet_id=packet.packet_id).smallest_change
    assert (change.field, change.to_json) == ("max_items", "2")
    assert ids(client.rank(namespace, **{**options, "max_items": 2}, token_budget=20)) == ["missed"]
    assert ids(client.rank(namespace, **options, token_budget=20, filter={"exclude_ids": ["pinned"]})) == ["missed"]
    assert ids(client.rank(namespace, **options, token_budget=100)) == ["pinned"]


def test_a_pinned_memory_that_was_left_out_is_told_how_large_the_budget_must_be(client: Client, namespace: str) -> None:
    """And how much pinned memories had."""
    write(client, namespace, {f"m{i}": 0.9 - i / 100 for i in range(20)}, token_count=100)
    write(client, namespace, {"small": 0.9}, token_count=30, pinned=True)
    write(client, namespace, {"missed": 0.1}, token_count=500, pinned=True)
    options: dict[str, Any] = {"weights": BY_RELEVANCE, "max_items": 10, "reserved_slots": 0}
    asked = rank_request(namespace, **options, token_budget=900)
    why = client.explain_miss(namespace, "missed", request=asked)
    assert (name_of(why.reason), why.smallest_change.field) == ("OVERSIZED", "token_budget")
    assert why.message.endswith("Pinned memories have 450 tokens of this budget.")
    budget = int(why.smallest_change.to_json)
    assert budget == 2 * (30 + 500)
    assert "missed" in ids(client.rank(namespace, **options, token_budget=budget))
    assert "missed" not in ids(client.rank(namespace, **options, token_budget=budget - 1))
