"""Namespaces are loaded once, never mixed, and never miss a change."""

from __future__ import annotations

import threading
from collections.abc import Callable

import pytest

from sidecar.domain import Change, Memory, NamespaceState
from sidecar.retrieval.namespaces import LOADS, Namespaces

BEFORE = 10
"""Score versions that every namespace has behind it when a test begins."""


class Truth:
    """A store of numbered memories: commits under its lock, then tells its subscriber, as the real one does."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.states: dict[str, list[Memory]] = {}
        self.loads = 0
        self.after_read: Callable[[], None] = lambda: None
        self.namespaces = Namespaces(self.load)

    def load(self, namespace: str) -> NamespaceState:
        with self.lock:
            self.loads += 1
            memories = tuple(self.states.get(namespace, ()))
        self.after_read()
        return NamespaceState(namespace, BEFORE + len(memories), memories, {})

    def write(self, namespace: str) -> None:
        with self.lock:
            memories = self.states.setdefault(namespace, [])
            number = len(memories) + 1
            memory = Memory(id=f"m{number}", content=f"note {number}", key=number)
            memories.append(memory)
        self.namespaces.apply(Change(namespace, BEFORE + number, upserted=(memory,)))


def test_a_namespace_is_loaded_once_and_moved_on() -> None:
    """Every later call sees every committed change without another load."""
    truth = Truth()
    truth.write("a")
    assert truth.namespaces.loaded() == []
    for count in range(1, 5):
        assert truth.namespaces.get("a").live_count == count
        truth.write("a")
    assert truth.loads == 1
    assert truth.namespaces.loaded() == ["a"]


def test_a_namespace_grows_from_its_first_change_on() -> None:
    """One that begins while the server runs is never loaded: it is rankable as it is written to."""
    truth = Truth()
    for number in range(1, 4):
        memory = Memory(id=f"m{number}", content=f"note {number}", key=number)
        truth.namespaces.apply(Change("new", number, upserted=(memory,)))
    assert truth.namespaces.loaded() == ["new"]
    assert truth.namespaces.get("new").live_count == 3
    assert truth.loads == 0


def test_an_unknown_namespace_is_empty_and_none_sees_another() -> None:
    """crew and crew2 share nothing."""
    truth = Truth()
    truth.write("crew2")
    assert truth.namespaces.get("crew").live_count == 0
    assert truth.namespaces.get("crew2").live_count == 1
    truth.write("crew")
    assert truth.namespaces.get("crew").live_count == 1
    assert truth.namespaces.get("crew2").live_count == 1


def test_changes_committed_during_a_load_are_kept() -> None:
    """A change that comes between the store's read and the first answer is in the answer, once."""
    truth = Truth()
    truth.write("a")

    def write_thrice() -> None:
        for _ in range(3):
            truth.write("a")

    truth.after_read = write_thrice
    assert truth.namespaces.get("a").live_count == 4
    assert truth.namespaces.get("a").score_version == BEFORE + 4


def test_callers_wait_for_one_load() -> None:
    """Many first callers at once cause one load and get the same snapshot."""
    truth = Truth()
    truth.write("a")
    started, go = threading.Event(), threading.Event()

    def hold() -> None:
        started.set()
        assert go.wait(20)

    truth.after_read = hold
    seen: list[int] = []
    threads = [threading.Thread(target=lambda: seen.append(id(truth.namespaces.get("a")))) for _ in range(5)]
    for thread in threads:
        thread.start()
    assert started.wait(20)
    truth.write("a")  # the writer is not held up by a load
    go.set()
    for thread in threads:
        thread.join()
    assert len(seen) == 5
    assert len(set(seen)) == 1
    assert truth.loads == 1
    assert truth.namespaces.get("a").live_count == 2


def test_a_failed_load_is_raised_and_tried_again() -> None:
    """An error of the store reaches the caller; the next call loads afresh."""
    truth = Truth()
    truth.write("a")

    def fail() -> None:
        raise OSError("disk")

    truth.after_read = fail
    with pytest.raises(OSError, match="disk"):
        truth.namespaces.get("a")
    truth.after_read = lambda: None
    truth.write("a")
    assert truth.namespaces.get("a").live_count == 2


def test_an_evicted_namespace_is_loaded_afresh() -> None:
    """Eviction forgets; snapshots in use stay as they were."""
    truth = Truth()
    truth.write("a")
    held = truth.namespaces.get("a")
    truth.namespaces.evict("a")
    truth.write("a")
    assert held.live_count == 1
    assert truth.namespaces.get("a").live_count == 2
    assert truth.loads == 2


def test_known_changes_are_skipped_and_a_gap_means_a_fresh_load() -> None:
    """A change at or below the version counts once; after a missing one the namespace is read from the store again."""
    truth = Truth()
    truth.write("a")
    truth.namespaces.get("a")
    old = Change("a", BEFORE + 1, deleted_keys=(1,))
    truth.namespaces.apply(old)
    assert truth.namespaces.get("a").live_count == 1
    with truth.lock:
        truth.states["a"] += [Memory(id=f"x{n}", content="x", key=n) for n in (2, 3)]
    truth.namespaces.apply(Change("a", BEFORE + 3, upserted=(Memory(id="x3", content="x", key=3),)))
    assert truth.namespaces.get("a").live_count == 3
    assert truth.loads == 2


def test_a_change_that_cannot_be_applied_is_raised_and_the_namespace_reloaded() -> None:
    """An error while a snapshot moves on never leaves a half-changed one behind."""
    truth = Truth()
    truth.write("a")
    truth.namespaces.get("a")
    with pytest.raises(AttributeError):
        truth.namespaces.apply(Change("a", BEFORE + 2, upserted=(None,)))  # type: ignore[arg-type]
    truth.write("a")
    assert truth.namespaces.get("a").live_count == 2


def test_a_store_whose_changes_never_join_is_an_error() -> None:
    """Rather than serve a snapshot with a hole, loading gives up."""
    truth = Truth()
    truth.after_read = lambda: truth.namespaces.apply(Change("a", 99))
    with pytest.raises(RuntimeError, match="do not join"):
        truth.namespaces.get("a")
    assert truth.loads == LOADS


def test_no_change_is_lost_between_writers_readers_and_evictions() -> None:
    """Whatever the order of loads, writes and evictions, the end is the store's state, and versions never go back."""
    truth = Truth()
    faults: list[str] = []
    done = threading.Event()

    def read() -> None:
        last = 0
        while not done.is_set():
            snapshot = truth.namespaces.get("a")
            if snapshot.live_count != snapshot.score_version - BEFORE or snapshot.score_version < last:
                faults.append(f"{snapshot.live_count} memories at {snapshot.score_version} after {last}")
            last = snapshot.score_version

    readers = [threading.Thread(target=read) for _ in range(3)]
    for reader in readers:
        reader.start()
    for number in range(200):
        truth.write("a")
        if number % 20 == 0:
            truth.namespaces.evict("a")
    done.set()
    for reader in readers:
        reader.join()
    assert not faults
    assert truth.namespaces.get("a").live_count == 200


def test_what_was_not_used_for_longest_makes_room() -> None:
    """Above the limit the namespace that was asked for longest ago is let go of; asked for again, it is loaded with all
    that was written meanwhile. A snapshot that is in use stays as it is."""
    truth = Truth()
    for name in ("a", "b", "c"):
        for _ in range(50):
            truth.write(name)
    one = truth.namespaces.get("a").nbytes
    truth.namespaces = Namespaces(truth.load, most_bytes=int(2.5 * one))
    first = truth.namespaces.get("a")
    truth.namespaces.get("b")
    truth.namespaces.get("a")
    truth.namespaces.get("c")
    assert truth.namespaces.loaded() == ["a", "c"]
    assert first.live_count == 50
    truth.write("b")
    assert truth.namespaces.get("b").live_count == 51
    assert truth.namespaces.loaded() == ["b", "c"]


def test_the_only_namespace_is_never_let_go_of() -> None:
    """One that is larger than the limit is served all the same, and what outgrows it later goes at the next look."""
    truth = Truth()
    truth.namespaces = Namespaces(truth.load, most_bytes=1)
    truth.write("a")
    truth.write("b")
    assert truth.namespaces.get("a").live_count == 1
    assert not truth.namespaces.make_room()
    assert truth.namespaces.loaded() == ["a"]
    truth.namespaces.apply(Change("begins", 1, upserted=(Memory(id="m1", content="a note", key=1),)))
    assert truth.namespaces.make_room()
    assert len(truth.namespaces.loaded()) == 1


def test_what_a_start_would_have_to_read_is_counted() -> None:
    """Written, deleted and scored memories, so that the index file is made anew after a namespace was scored; and all
    once the cells were made, which only the next file will hold."""
    truth = Truth()
    namespaces = truth.namespaces
    added = tuple(Memory(id=f"m{key}", content=f"note {key}", key=key) for key in range(1, 31))
    namespaces.apply(Change("n", 1, upserted=added))
    assert namespaces.unkept() == {"n": (30, 30)}
    namespaces.apply(Change("n", 2, importance_contents=dict.fromkeys(range(1, 21), 0.5)))
    assert namespaces.unkept() == {"n": (50, 30)}
    namespaces.apply(Change("n", 3, deleted_keys=(1, 2)))
    assert namespaces.unkept() == {"n": (52, 28)}
    namespaces.outdated("n")
    namespaces.outdated("unknown")
    assert namespaces.unkept() == {"n": (82, 28)}
