"""The stored parts of an importance: content, use and user, and what a write does to them."""

from __future__ import annotations

from typing import Any

import pytest

from sidecar.domain import (
    Change,
    ImportanceLine,
    ImportancePart,
    Memory,
    PartName,
    Rating,
    ScoredContent,
    WriteOutcome,
)
from sidecar.store import Replayed, Store
from sidecar.store.memories import Derived
from sidecar.store.rescores import Run

NOW = 1_700_000_000_000_000


def part(score: float, time: int = NOW) -> ImportancePart:
    return ImportancePart(0.4, time, ("says much in few words",), (ImportanceLine("content", score, 1.0, score),))


def scored(memory_id: str, score: float, *outdated: str, time: int = NOW, **fields: Any) -> ScoredContent:
    return ScoredContent(Memory(id=memory_id, **fields), part(score, time), outdated)


def write(
    store: Store, memory_id: str, score: ScoredContent | None = None, now: int = NOW, **fields: Any
) -> tuple[WriteOutcome, Memory]:
    derived = {} if score is None else {memory_id: Derived(fields["content"], {}, score)}
    result = store.upsert("n", [(memory_id, fields)], now, derived=derived)
    assert not isinstance(result, Replayed)
    return result[0][0]


def parts(store: Store, memory_id: str) -> dict[PartName, ImportancePart]:
    return store.importance_parts(store.get("n", memory_id).key)


def rescore(store: Store, run_id: str, uses: dict[int, float | None]) -> None:
    made = {key: part(use) for key, use in uses.items() if use is not None}
    store.apply_rescore(Run(run_id, "n", len(uses), uses, made, None, None), NOW)


def test_a_write_keeps_how_its_content_score_came_about(store: Store) -> None:
    """Score, breakdown, confidence, factors and time come back as they were."""
    write(store, "m", scored("m", 0.625, content="a"), content="a")
    assert store.get("n", "m").importance_content == 0.625
    assert parts(store, "m") == {PartName.CONTENT: part(0.625)}


def test_writing_a_memory_again_never_erases_the_use_or_user_part(store: Store) -> None:
    """Neither with the same content nor with another; the content part follows the content."""
    _, memory = write(store, "m", scored("m", 0.5, content="a"), content="a", importance_override=0.9)
    rescore(store, "run", {memory.key: 0.7})
    before = parts(store, "m")
    assert set(before) == {PartName.CONTENT, PartName.USE, PartName.USER}

    assert write(store, "m", scored("m", 0.9, content="a", time=NOW + 1), content="a")[0] is WriteOutcome.UNCHANGED
    assert parts(store, "m") == before

    write(store, "m", scored("m", 0.3, content="b"), NOW + 5, content="b")
    after = store.get("n", "m")
    assert (after.importance_content, after.importance_use, after.importance_override) == (0.3, 0.7, 0.9)
    assert parts(store, "m") == {**before, PartName.CONTENT: part(0.3)}


def test_a_score_of_another_content_is_not_taken(store: Store) -> None:
    """What two writers wrote at once is not mixed: the memory is scored in its turn."""
    write(store, "m", scored("m", 0.5, content="a"), content="a")
    write(store, "m", scored("m", 0.9, content="a", kind="decision"), content="b")
    assert store.get("n", "m").importance_content is None
    assert parts(store, "m") == {}
    assert [each.id for each in store.unscored("n", 0, 5)] == ["m"]


def test_what_was_not_scored_at_once_is_scored_in_its_turn(store: Store) -> None:
    """Unless it has changed by then, or has a part by then; subscribers hear of it, and the score version moves."""
    _, one = write(store, "one", content="a")
    write(store, "two", content="b")
    assert (store.namespaces_unscored(), store.namespace_numbers("n").unscored_count) == (["n"], 2)
    heard: list[Change] = []
    store.subscribe(heard.append)
    write(store, "two", content="changed")
    heard.clear()
    wanted = [
        scored("one", 0.4, content="a", key=one.key),
        scored("two", 0.6, content="b", key=store.get("n", "two").key),
    ]
    store.put_contents("n", wanted)
    assert [change.importance_contents for change in heard] == [{one.key: 0.4}]
    assert heard[0].score_version == store.namespace("n").score_version
    assert [each.id for each in store.unscored("n", 0, 5)] == ["two"]
    store.put_contents("n", [scored("one", 0.9, content="a", key=one.key)])
    assert store.get("n", "one").importance_content == 0.4


def test_a_newer_memory_that_contradicts_another_has_it_scored_anew(store: Store) -> None:
    """Once: what was scored since it was written knows of it."""
    write(store, "old", scored("old", 0.5, content="a"), content="a")
    write(store, "new", scored("new", 0.6, "old", content="b", time=NOW + 1), NOW + 1, content="b")
    old = store.get("n", "old")
    assert old.importance_content is None
    assert parts(store, "old") == {}
    again = ScoredContent(old, part(0.35, NOW + 2), ("new",))
    store.put_contents("n", [again])
    assert (store.get("n", "old").importance_content, store.get("n", "new").importance_content) == (0.35, 0.6)


@pytest.mark.parametrize("override", [0.0, 0.8])
def test_the_user_part_is_the_users_word_or_else_the_marks(store: Store, override: float) -> None:
    """A word is certain; marks are as sure as they are many; without either there is no part."""
    write(store, "m", content="a")
    store.rate("n", "m", "ann", Rating.HELPFUL, "", NOW + 1)
    marked = parts(store, "m")[PartName.USER]
    assert (marked.score, marked.confidence, marked.time) == (0.75, 0.5, NOW + 1)
    write(store, "m", now=NOW + 2, content="a", importance_override=override)
    store.rate("n", "m", "bob", Rating.UNHELPFUL, "", NOW + 3)
    said = parts(store, "m")[PartName.USER]
    assert (said.score, said.confidence, said.time) == (override, 1.0, NOW + 2)
    write(store, "m", now=NOW + 4, content="a", importance_override=None)
    assert parts(store, "m")[PartName.USER].score == 0.5
    for rater in ("ann", "bob"):
        store.rate("n", "m", rater, Rating.WITHDRAWN, "", NOW + 5)
    assert parts(store, "m") == {}


def test_restoring_scores_brings_the_use_part_back(store: Store) -> None:
    """As it was before the first of the runs that are undone."""
    _, memory = write(store, "m", content="a")
    rescore(store, "first", {memory.key: 0.6})
    rescore(store, "second", {memory.key: 0.8})
    rescore(store, "third", {memory.key: None})
    assert parts(store, "m") == {}
    store.restore_scores("second", NOW)
    assert parts(store, "m") == {PartName.USE: part(0.6)}
    store.restore_scores("first", NOW)
    assert parts(store, "m") == {}


def test_parts_go_with_their_memory(store: Store) -> None:
    """Deleted, or purged with all others, a memory leaves no part behind."""
    for purged in (False, True):
        _, memory = write(store, "m", scored("m", 0.5, content="a"), content="a", importance_override=0.5)
        assert store.importance_parts(memory.key)
        if purged:
            store.purge_namespace("n")
        else:
            store.delete("n", ["m"], NOW)
        assert store.importance_parts(memory.key) == {}
