"""The stored parts of an importance: content, use and user, and what a write does to them."""

from __future__ import annotations

import contextlib
import sqlite3
from pathlib import Path
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
from sidecar.store.check import Fault, check
from sidecar.store.memories import Derived
from sidecar.store.repair import repair
from sidecar.store.requests import Replayed
from sidecar.store.rescores import Run
from sidecar.store.store import Store

NOW = 1_700_000_000_000_000


def part(score: float, time: int = NOW, *about: str) -> ImportancePart:
    words, lines = ("says much in few words",), (ImportanceLine("content", score, 1.0, score),)
    return ImportancePart(0.4, time, words, lines, about)


def scored(
    memory_id: str, score: float, *concerns: str, time: int = NOW, version: int = 0, **fields: Any
) -> ScoredContent:
    return ScoredContent(Memory(id=memory_id, **fields), part(score, time), version, concerns=dict.fromkeys(concerns))


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

    version = store.namespace("n").score_version
    write(store, "m", scored("m", 0.3, version=version, content="b", create_time=NOW), NOW + 5, content="b")
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
        scored("one", 0.4, content="a", create_time=NOW, key=one.key),
        scored("two", 0.6, content="b", create_time=NOW, key=store.get("n", "two").key),
    ]
    store.put_contents("n", wanted)
    assert [change.importance_contents for change in heard] == [{one.key: 0.4}]
    assert heard[0].score_version == store.namespace("n").score_version
    assert [each.id for each in store.unscored("n", 0, 5)] == ["two"]
    store.put_contents("n", [scored("one", 0.9, content="a", create_time=NOW, key=one.key)])
    assert store.get("n", "one").importance_content == 0.4


def test_a_memory_that_concerns_another_puts_it_up(store: Store) -> None:
    """Unless that one's part knows of it, or it leaves it more than it has; and once: scored anew, it knows of it."""
    write(store, "old", scored("old", 0.5, content="a"), content="a")
    write(store, "new", scored("new", 0.6, "old", version=1, content="b"), NOW + 1, content="b")
    old = store.get("n", "old")
    assert old.importance_content is None
    assert parts(store, "old") == {}
    store.put_contents("n", [ScoredContent(old, part(0.35, NOW + 2, "new"), 2, {"new": NOW + 1}, {"new": None})])
    assert (store.get("n", "old").importance_content, store.get("n", "new").importance_content) == (0.35, 0.6)
    third = ScoredContent(Memory(id="third", content="c"), part(0.7), 3, concerns={"old": 1.5, "new": 1.0})
    write(store, "third", third, NOW + 3, content="c")
    assert [each.id for each in store.unscored("n", 0, 5)] == ["new"]


@pytest.mark.parametrize("change", ["delete", "correct", "suppress"])
def test_what_follows_from_a_memory_is_put_up_when_that_changes(store: Store, change: str) -> None:
    """In the same transaction, so that no kill loses it; what does not follow from it keeps its part."""
    write(store, "base", scored("base", 0.5, content="a"), content="a")
    for number, name in enumerate(("follows", "stands"), 1):
        about = ["base"] if name == "follows" else []
        given = ScoredContent(Memory(id=name, content=name), part(0.5, NOW, *about), number)
        write(store, name, given, content=name)
    heard: list[Change] = []
    store.subscribe(heard.append)
    if change == "delete":
        store.delete("n", ["base"], NOW + 1)
    else:
        write(store, "base", now=NOW + 1, **({"content": "b"} if change == "correct" else {"suppressed": True}))
    key = store.get("n", "follows").key
    assert store.get("n", "follows").importance_content is None
    assert store.get("n", "stands").importance_content == 0.5
    assert heard[0].importance_contents == {key: None}


def test_what_was_worked_out_beside_something_else_is_not_taken(store: Store) -> None:
    """Neither on a write of a namespace that has moved on, or that concerns what is being scored; nor after it, where
    what it was compared with has changed. It is scored in its turn."""
    write(store, "base", scored("base", 0.5, content="a"), content="a")
    write(store, "late", scored("late", 0.5, content="b"), content="b")
    write(store, "waits", content="c")
    write(store, "concerned", scored("concerned", 0.5, "waits", version=3, content="d"), content="d")
    assert [each.id for each in store.unscored("n", 0, 5)] == ["late", "waits", "concerned"]
    late = store.get("n", "late")
    worked_out = ScoredContent(late, part(0.5, NOW, "base"), 4, {"base": NOW})
    write(store, "base", now=NOW + 1, content="changed")
    store.put_contents("n", [worked_out])
    assert store.get("n", "late").importance_content is None


def test_what_begins_or_ends_puts_up_what_follows_from_it(store: Store) -> None:
    """Each once; and what begins is scored anew itself, to tell others of itself."""
    end, start = {"valid_until_time": NOW + 10}, {"valid_from_time": NOW + 20}
    write(store, "ends", scored("ends", 0.5, content="a", **end), content="a", **end)
    write(store, "begins", scored("begins", 0.5, version=1, content="b", **start), content="b", **start)
    follows = ScoredContent(Memory(id="follows", content="c"), part(0.5, NOW, "ends"), 2)
    write(store, "follows", follows, content="c")
    assert store.put_up_turned(NOW + 9) == NOW + 10
    assert list(store.unscored("n", 0, 5)) == []
    assert store.put_up_turned(NOW + 10) == NOW + 20
    assert [each.id for each in store.unscored("n", 0, 5)] == ["follows"]
    assert store.put_up_turned(NOW + 20) is None
    assert [each.id for each in store.unscored("n", 0, 5)] == ["begins", "follows"]


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


def test_a_memory_that_lost_its_content_part_is_found_and_scored_anew(tmp_path: Path) -> None:
    """A check names it, and after a repair it waits to be scored."""
    with Store.open(tmp_path) as opened:
        write(opened, "broken", scored("broken", 0.5, content="a"), content="a")
        key = opened.get("n", "broken").key
        assert opened.get("n", "broken").importance_content == 0.5
    assert check(tmp_path).findings == ()
    with contextlib.closing(sqlite3.connect(tmp_path / "memories.db")) as connection:
        connection.execute("DELETE FROM importance_parts WHERE memory_key = ?", (key,))
        connection.commit()
    assert [(each.fault, each.count) for each in check(tmp_path).findings] == [(Fault.IMPORTANCE, 1)]
    assert repair(tmp_path, NOW).findings == ()
    with Store.open(tmp_path) as opened:
        assert opened.get("n", "broken").importance_content is None
