"""ExplainMiss names changes of memories and of full filters: what a write moves beside them is counted in."""

from __future__ import annotations

import datetime
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from memoryranker.client import Client, rank_request

from sidecar.lifecycle import Sidecar
from tests.promises.frozen import BY_RELEVANCE, NOW, NOW_TIME, days_ago, frozen, ids, write
from tests.serving import running, wait_until_scored

SECOND = datetime.timedelta(seconds=1)


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Client]:
    """Of a server that stands still."""
    with frozen(tmp_path_factory.mktemp("server")) as server:
        yield server.client


RESTARTS = [
    {"id": "old", "content": "Never restart the queue worker during a deploy", "superseded_by": "new"},
    {"id": "new", "content": "We may restart the queue worker on Sundays"},
]


@pytest.mark.parametrize("weights", [None, {"importance": 1.0}])
def test_what_is_replaced_is_told_by_the_importance_that_it_has_without_its_replacement(
    client: Client, namespace: str, weights: dict[str, float] | None
) -> None:
    """With its replacement a memory loses what it lost of its importance by it, though only once that is worked out
    anew; so it is told to clear it, where with the importance of now it would still lose."""
    client.upsert(namespace, [{**each, "kind": "decision", "create_time": days_ago(1)} for each in RESTARTS])
    wait_until_scored(client, namespace)
    options: dict[str, Any] = {"weights": weights, "max_items": 1, "reserved_slots": 0}
    why = client.explain_miss(namespace, "old", request=rank_request(namespace, **options))
    assert (why.smallest_change.field, why.smallest_change.message) == (
        "memory.superseded_by",
        "Let nothing supersede it.",
    )
    client.update(namespace, "old", superseded_by="")
    wait_until_scored(client, namespace)
    assert ids(client.rank(namespace, **options)) == ["old"]


def test_without_importances_what_counts_them_is_told_by_the_baseline(tmp_path: Path) -> None:
    """Where no importance is scored none moves: the replaced memory is as good as its replacement, and later by id."""
    with frozen(tmp_path, importance_scorer_enabled="false") as server:
        client = server.client
        client.upsert("n", [{**each, "kind": "decision", "create_time": days_ago(1)} for each in RESTARTS])
        options: dict[str, Any] = {"weights": {"importance": 1.0}, "max_items": 1, "reserved_slots": 0}
        why = client.explain_miss("n", "old", request=rank_request("n", **options))
        assert why.message == (
            "Another memory replaces it. The other memory is 'new'. No single change that was tried admits it: of "
            "memory.superseded_by, as_of_time."
        )
        client.update("n", "old", superseded_by="")
        assert ids(client.rank("n", **options)) == ["new"]


MISSED: dict[str, tuple[str, Any, Any]] = {
    "suppressed": ("suppressed", True, False),
    "replaced": ("superseded_by", "other", ""),
    "expired": ("valid_until_time", NOW_TIME + SECOND, None),
    "too early": ("valid_from_time", NOW_TIME + 60 * SECOND, NOW_TIME),
    "too large": ("token_count", 60, 50),
}


@pytest.mark.parametrize("missed", MISSED)
def test_a_write_moves_the_update_time_that_a_filter_asks_for(tmp_path: Path, missed: str) -> None:
    """What is written later than the filter lets pass would not be served, so no change of the memory is told then; and
    one that is told admits."""
    field, at_first, then = MISSED[missed]
    now = NOW
    with running(tmp_path, lambda settings: Sidecar(settings, clock=lambda: now), embedder="none") as server:
        client = server.client
        write(client, "n", {"a": 0.5}, **{field: at_first})
        # Larger and better: with a budget that admits the first, this one takes the place.
        write(client, "n", {"other": 0.9}, token_count=55)
        now += 10_000_000
        options: dict[str, Any] = {"weights": BY_RELEVANCE, "reserved_slots": 0, "max_items": 1, "token_budget": 50}
        for seconds, is_told in ((5, False), (15, True)):
            options["filter"] = {"update_time_until": NOW_TIME + seconds * SECOND}
            change = client.explain_miss("n", "a", request=rank_request("n", **options)).smallest_change
            assert change.field == f"memory.{field}" if is_told else not change.field.startswith("memory.")
        client.update("n", "a", **{field: then})
        assert ids(client.rank("n", **options)) == ["a"]
        options["filter"] = {"update_time_until": NOW_TIME + 5 * SECOND}
        assert not ids(client.rank("n", **options))


def test_an_expired_memory_is_told_to_have_no_end(tmp_path: Path) -> None:
    """On a clock that runs, a time a moment later has passed when the memory is ranked again."""
    now = datetime.datetime.now(datetime.UTC)
    with running(tmp_path, embedder="none") as server:
        client = server.client
        client.upsert(
            "n",
            [
                {
                    "id": "a",
                    "content": "Bob said hello",
                    "create_time": now - datetime.timedelta(days=3),
                    "valid_until_time": now - datetime.timedelta(days=1),
                }
            ],
        )
        change = client.explain_miss("n", "a", request=rank_request("n")).smallest_change
        assert (change.field, change.to_json) == ("memory.valid_until_time", "null")
        client.update("n", "a", valid_until_time=None)
        assert ids(client.rank("n")) == ["a"]


@pytest.mark.parametrize(
    ("part", "most"),
    [("kinds", 64), ("any_tags", 64), ("ids", 10_000), ("source_threads", 256), ("subjects", 256)],
)
def test_a_full_list_of_a_filter_is_told_to_be_left_out(client: Client, namespace: str, part: str, most: int) -> None:
    """One more value would be refused; one less than full, it is what is told."""
    write(client, namespace, {"a": 0.9}, kind="mine", tags=["own"], source_thread="t", subject="Ann")
    for count in (most - 1, most):
        wanted: Any = {part: [f"other{number}" for number in range(count)]}
        change = client.explain_miss(namespace, "a", request=rank_request(namespace, filter=wanted)).smallest_change
        opened = json.loads(change.to_json)
        assert change.field == f"filter.{part}"
        assert (opened is None) == (count == most)
        wanted = {part: opened} if opened else None
        assert ids(client.rank(namespace, filter=wanted)) == ["a"]


@pytest.mark.parametrize("part", ["kinds", "ids", "any_tags", "all_tags", "source_threads", "subjects"])
def test_behind_what_the_filter_passes_a_memory_is_told_to_be_asked_for_alone(
    client: Client, namespace: str, part: str
) -> None:
    """Opened for it as well, the filter still passes the better one; for nothing but what it has itself it does not."""
    better: dict[str, Any] = {"kind": "fact", "tags": ["red"], "source_thread": "t1", "subject": "Ann"}
    write(client, namespace, {"better": 0.9}, **better)
    write(client, namespace, {"missed": 0.5}, kind="mine", tags=["blue", "own"], source_thread="t2", subject="Bob")
    own = {"ids": ["better"], "any_tags": ["red"], "all_tags": ["red"]}
    wanted: Any = {part: own.get(part) or [better[part.removesuffix("s")]]}
    options: dict[str, Any] = {"weights": BY_RELEVANCE, "max_items": 1}
    asked = rank_request(namespace, **options, filter=wanted)
    change = client.explain_miss(namespace, "missed", request=asked).smallest_change
    assert change.field == f"filter.{part}"
    wanted = {part: json.loads(change.to_json)}
    assert ids(client.rank(namespace, **options, filter=wanted)) == ["missed"]
