"""What a snapshot knows of its memories, and that one in use never changes."""

from __future__ import annotations

import math
import threading
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from sidecar.domain import Change, Filter, Memory, NamespaceState, UseCounts
from sidecar.errors import InvalidRequestError
from sidecar.features.view import NO_TIME
from sidecar.retrieval import changing
from sidecar.retrieval.duplicates import is_near_duplicate
from sidecar.retrieval.snapshot import Snapshot, empty_snapshot, snapshot_from, snapshot_of
from sidecar.retrieval.tokenizer import is_stop_word, tokenize
from tests.retrieval.pictures import picture


@pytest.fixture(autouse=True)
def early_compaction(monkeypatch: pytest.MonkeyPatch) -> None:
    """Dead rows are cleared out early, so that few steps reach it."""
    monkeypatch.setattr(changing, "FEWEST_DEAD_ROWS", 3)


def test_statistics_are_those_of_live_memories() -> None:
    """After many rewrites and deletions, idf and mean length count living memories only."""
    words = ["alpha", "beta", "gamma", "delta", "epsilon", "the", "of", "zeta"]
    snapshot = empty_snapshot()
    texts: dict[int, str] = {}
    for step in range(1, 200):
        key = step % 37 + 1
        texts[key] = " ".join(words[(step * k) % len(words)] for k in range(1, 2 + step % 9))
        snapshot = snapshot.apply(Change("ns", 2 * step, upserted=(Memory(id=f"m{key}", content=texts[key], key=key),)))
        gone = (step * 7) % 37 + 1
        if step % 5 == 0 and texts.pop(gone, ""):
            snapshot = snapshot.apply(Change("ns", 2 * step + 1, deleted_keys=(gone,)))
    counts = {key: Counter(token.term for token in tokenize(text)) for key, text in texts.items()}
    lengths = [sum(c for term, c in count.items() if not is_stop_word(term)) for count in counts.values()]
    match = snapshot.match("alpha beta gamma the unseen", None)
    assert match.mean_length == sum(lengths) / len(lengths)
    for term in match.terms:
        bearing = sum(term.term in count for count in counts.values())
        assert len(term.rows) == bearing
        assert term.idf == math.log(1 + (len(texts) - bearing + 0.5) / (bearing + 0.5)) > 0
        assert (np.diff(term.rows) > 0).all()


def test_a_deleted_id_written_again_inherits_nothing() -> None:
    """Neither vector nor uses nor text of a deleted memory attach to its id when it is used again."""
    first = Memory(id="r1", content="ferry timetable", key=1, embedding=np.array([1, 0], np.float32))
    control = Memory(id="r2", content="ferry prices", key=2, embedding=np.array([0.9, 0.1], np.float32))
    snapshot = snapshot_from(NamespaceState("ns", 1, (first, control), {1: UseCounts(2, 2, 2, 2, 5)}))
    snapshot = snapshot.apply(Change("ns", 2, deleted_keys=(1,)))
    again = Memory(id="r1", content="lasagne recipe", key=3, embedding=np.array([0, 1], np.float32))
    snapshot = snapshot.apply(Change("ns", 3, upserted=(again,)))
    row = snapshot.row_of_id["r1"]
    match = snapshot.match("ferry", np.array([1, 0], np.float32))
    assert match.cosine[row] == 0 < match.cosine[snapshot.row_of_id["r2"]]
    assert match.terms[0].rows.tolist() == [snapshot.row_of_id["r2"]]
    assert snapshot.columns.used[row] == 0
    assert snapshot.columns.last_use_time[row] == NO_TIME


def test_a_rewrite_keeps_the_uses_of_its_key() -> None:
    """A memory whose text is rewritten keeps what use says of it."""
    memory = Memory(id="a", content="one", key=1)
    snapshot = snapshot_from(NamespaceState("ns", 1, (memory,), {1: UseCounts(2, 3, 2, 3, 5)}))
    snapshot = snapshot.apply(Change("ns", 2, upserted=(replace(memory, content="two"),)))
    assert snapshot.columns.seen[snapshot.row_of_id["a"]] == 3


def test_three_updates_in_a_row_leave_one_memory() -> None:
    """Updating an id again and again leaves one living row that is always found."""
    snapshot = empty_snapshot()
    for version in range(1, 30):
        snapshot = snapshot.apply(Change("ns", version, upserted=(Memory(id="a", content=f"text {version}", key=1),)))
        assert snapshot.live_count == 1
        assert snapshot.match(f"text {version}", None).terms[1].rows.tolist() == [snapshot.row_of_id["a"]]
    assert len(snapshot) < 20


@pytest.mark.parametrize(
    ("links", "as_of", "expected"),
    [
        ({"a": "b", "b": "c", "c": ""}, 0, {"a", "b"}),
        ({"a": "b", "b": "a"}, 0, {"a"}),
        ({"a": "a"}, 0, set()),
        ({"a": "gone"}, 0, set()),
        ({"x": "a", "a": "b", "b": "c", "c": "a"}, 0, {"x", "a", "b"}),
        ({"a": "late", "late": ""}, 0, set()),
        ({"a": "late", "late": ""}, 50, {"a"}),
        ({"a": "short", "short": ""}, 5, {"a"}),
        ({"a": "short", "short": ""}, 10, set()),
        ({"a": "short", "short": "late", "late": ""}, 50, {"a", "short"}),
        ({"a": "short", "short": "a"}, 50, set()),
    ],
)
def test_what_replaces_a_memory_hides_it_while_it_is_valid(
    links: dict[str, str], as_of: int, expected: set[str]
) -> None:
    """Chains hide all but their end, cycles all but the member learned last; an invalid replacement hides nothing."""
    memories = [
        Memory(
            id=name,
            content=name,
            key=number,
            create_time=number,
            superseded_by=to,
            valid_from_time=20 if name == "late" else None,
            valid_until_time=10 if name == "short" else None,
        )
        for number, (name, to) in enumerate(links.items(), 1)
    ]
    snapshot = snapshot_from(NamespaceState("ns", 1, tuple(memories), {}))
    hidden = snapshot.superseded_at(as_of)
    assert {name for name in links if hidden[snapshot.row_of_id[name]]} == expected


def test_of_a_cycle_learned_at_once_the_greatest_id_survives() -> None:
    """Ties in a cycle go by id."""
    snapshot = snapshot_of([Memory(id=a, content=a, superseded_by=b) for a, b in ("xz", "yx", "zy")])
    assert [snapshot.columns.superseded[snapshot.row_of_id[name]] for name in "xyz"] == [True, True, False]


def test_a_chain_of_thousands_is_followed() -> None:
    """A memory rewritten thousands of times over shows its last version only."""
    memories = [Memory(id=f"{n}", content="x", superseded_by=f"{n + 1}") for n in range(5000)]
    snapshot = snapshot_of([*memories, Memory(id="5000", content="x")])
    assert int(snapshot.superseded_at(0).sum()) == 5000
    looped = snapshot_of([*memories, Memory(id="5000", content="x", superseded_by="0")])
    assert int(looped.superseded_at(0).sum()) == 5000


def test_neighbours_follow_sequence_then_time_then_id() -> None:
    """Order in a thread: by sequence; those without after them, by time, then id."""
    snapshot = snapshot_of(
        [
            Memory(id="late", content="x", source_thread="t", create_time=9),
            Memory(id="b", content="x", source_thread="t", create_time=5),
            Memory(id="a", content="x", source_thread="t", create_time=5),
            Memory(id="second", content="x", source_thread="t", source_sequence=2),
            Memory(id="first", content="x", source_thread="t", source_sequence=-1, create_time=99),
            Memory(id="other", content="x", source_thread="u"),
            Memory(id="alone", content="x"),
        ]
    )
    at, order = snapshot.row_of_id["first"], []
    while at >= 0:
        order.append(snapshot.columns.ids[at])
        at = int(snapshot.columns.next_row[at])
    assert order == ["first", "second", "a", "b", "late"]
    assert snapshot.columns.previous_row[snapshot.row_of_id["alone"]] == -1


def _meta(snapshot: Snapshot, **wanted: Any) -> list[str]:
    mask = snapshot.filter_mask(Filter(metadata_equals={k.replace("__", "."): v for k, v in wanted.items()}))
    return sorted(snapshot.columns.ids[row] for row in np.flatnonzero(mask).tolist())


def test_metadata_is_compared_exactly_and_by_type() -> None:
    """true is not 1, "1" is not 1, 1 is 1.0, prefixes do not match, and dots reach inside."""
    values: dict[str, Any] = {
        "int": 1,
        "float": 1.0,
        "bool": True,
        "text": "1",
        "null": None,
        "list": [1, True],
        "dict": {"b": {"c": "crew"}},
        "longer": {"b": {"c": "crew2"}},
    }
    snapshot = snapshot_of([Memory(id=name, content="x", metadata={"a": value}) for name, value in values.items()])
    assert _meta(snapshot, a=1) == ["float", "int"]
    assert _meta(snapshot, a=True) == ["bool"]
    assert _meta(snapshot, a="1") == ["text"]
    assert _meta(snapshot, a=None) == ["null"]
    assert _meta(snapshot, a=[1.0, True]) == ["list"]
    assert _meta(snapshot, a=[1, 1]) == []
    assert _meta(snapshot, a={"b": {"c": "crew"}}) == ["dict"]
    assert _meta(snapshot, a__b__c="crew") == ["dict"]


def test_an_unknown_metadata_key_is_an_error_that_names_near_ones() -> None:
    """A misspelt key is refused, and a key counts as known only while a living memory bears it."""
    snapshot = snapshot_of([Memory(id="a", content="x", metadata={"project": "p", "deep": {"er": 1}}, key=1)])
    with pytest.raises(InvalidRequestError) as caught:
        _meta(snapshot, projct="p")
    (violation,) = caught.value.violations
    assert violation.field == "filter.metadata_equals"
    assert "'projct'" in violation.description
    assert "'project'" in violation.description
    without = snapshot.apply(Change("", 1, upserted=(Memory(id="a", content="x", key=1),)))
    with pytest.raises(InvalidRequestError, match="project"):
        _meta(without, project="p")
    assert _meta(empty_snapshot(), project="p") == []


def test_a_rewrite_that_only_changes_a_metadata_type_is_seen() -> None:
    """1 -> true is a change, though Python calls them equal."""
    snapshot = snapshot_of([Memory(id="a", content="x", metadata={"n": 1}, key=1)])
    snapshot = snapshot.apply(Change("", 1, upserted=(Memory(id="a", content="x", metadata={"n": True}, key=1),)))
    assert _meta(snapshot, n=True) == ["a"]
    assert _meta(snapshot, n=1) == []


@pytest.mark.parametrize(
    "change",
    [
        Change("n", 3, ratings={1: (1, 0)}),
        Change("n", 3, importance_contents={1: 0.5}),
        Change("n", 3, importance_uses={1: 0.5}),
        Change("n", 3, upserted=(Memory(id="a", key=1, content="Ann fires the kiln", kind="note", pinned=True),)),
        Change("n", 3, upserted=(Memory(id="a", key=1, content="Ann fires the kiln", kind="decision"),)),
        Change("n", 3, upserted=(Memory(id="c", key=3, content="Bob glazes", kind="note"),)),
        Change("n", 3, deleted_keys=(1,)),
        Change("n", 3, purged=True),
    ],
)
def test_what_is_kept_of_memories_outlives_reports_of_use_and_nothing_else(change: Change) -> None:
    """A use changes no field of a memory, so what was made of them stays; whatever changes one drops it all."""
    memories = tuple(
        Memory(id=name, key=key, content="Ann fires the kiln", kind="note") for key, name in ((1, "a"), (2, "b"))
    )
    before = empty_snapshot().apply(Change("n", 1, upserted=memories))
    before.kept_of_memories.once("shown", lambda: ["as of the first version"])
    used = before.apply(Change("n", 2, uses={1: UseCounts(used=1.0, seen=1.0, use_sessions=1, reported_sessions=1)}))
    assert used.kept_of_memories.once("shown", list) == ["as of the first version"]
    assert used.apply(change).kept_of_memories.once("shown", list) == []


def test_next_expiry_is_the_first_time_after() -> None:
    """Becoming valid and expiring both count, the moment itself does not."""
    snapshot = snapshot_of(
        [Memory(id="a", content="x", valid_from_time=5, valid_until_time=9), Memory(id="b", content="x")]
    )
    assert [snapshot.next_expiry(at) for at in (0, 5, 8, 9)] == [5, 9, 9, None]


def test_other_use_counts_leave_the_snapshot_and_its_line_alone() -> None:
    """A view with the uses of another time neither changes the snapshot nor what is made from it next."""
    memories = (Memory(id="a", content="x", key=1), Memory(id="b", content="x", key=2))
    snapshot = snapshot_from(NamespaceState("ns", 1, memories, {1: UseCounts(1, 1, 1, 1, 5)}))
    before = picture(snapshot)
    other = snapshot.with_uses({2: UseCounts(3, 4, 3, 4, 7)})
    assert other.columns.used.tolist() == [0, 3]
    branch = other.apply(Change("ns", 2, upserted=(Memory(id="c", content="x", key=3),)))
    moved = snapshot.apply(Change("ns", 2, upserted=(Memory(id="d", content="x", key=4),)))
    assert picture(snapshot) == before
    assert sorted(branch.row_of_id) == ["a", "b", "c"]
    assert sorted(moved.row_of_id) == ["a", "b", "d"]


def test_a_caller_s_own_list_needs_no_keys() -> None:
    """Inline candidates are told apart without keys, and none gets the key of a stored memory."""
    snapshot = snapshot_of([Memory(id=name, content=f"{name} note") for name in "abc"])
    assert snapshot.live_count == 3
    assert len(set(snapshot.columns.key.tolist())) == 3
    assert (snapshot.columns.key < 0).all()


def test_near_duplicates_are_found_by_row() -> None:
    """Rows that say the same are recognised, in any case and punctuation."""
    snapshot = snapshot_of(
        [Memory(id=t, content=t) for t in ("The limit is 500.", "the limit is 500", "The limit is 600.")]
    )
    assert is_near_duplicate(snapshot.fingerprint(0), snapshot.fingerprint(1))
    assert not is_near_duplicate(snapshot.fingerprint(0), snapshot.fingerprint(2))


def test_text_of_a_deleted_memory_is_gone_from_the_next_snapshot() -> None:
    """A deleted memory's content cannot be read from the snapshot after."""
    snapshot = snapshot_from(NamespaceState("ns", 1, (Memory(id="a", content="secret", key=1),), {}))
    after = snapshot.apply(Change("ns", 2, deleted_keys=(1,)))
    assert [memory.content for memory in after.memories] == [""]
    assert snapshot.memories[0].content == "secret"


def test_an_empty_namespace_matches_nothing() -> None:
    """No memories, no rows, no error."""
    match = empty_snapshot().match("anything OPS-1", np.array([1, 0], np.float32))
    assert match.cosine.shape == (0,)
    assert [term.idf > 0 for term in match.terms]


def _versions() -> Iterator[Change]:
    for version in range(1, 400):
        key = version % 50 + 1
        memory = Memory(
            id=f"m{key}", content=f"release {version} note", key=key, embedding=np.array([version, 1], np.float32)
        )
        yield Change("ns", version, upserted=(memory,), uses={key: UseCounts(1, 1, 1, 1, version)})
        if version % 3 == 0:
            yield Change("ns", version, deleted_keys=(key,))


def test_readers_of_old_snapshots_are_undisturbed_by_a_writer() -> None:
    """While a writer changes the namespace, every reader sees one consistent state, and the same one again."""
    published = [empty_snapshot()]
    done = threading.Event()
    faults: list[BaseException] = []

    def read() -> None:
        try:
            while not done.is_set():
                snapshot = published[-1]
                first, second = (snapshot.match("release note", np.array([1, 1], np.float32)) for _ in range(2))
                live = set(np.flatnonzero(snapshot.columns.live).tolist())
                assert set(first.terms[0].rows.tolist()) == live
                assert first.cosine.tobytes() == second.cosine.tobytes()
                for row in live:
                    assert snapshot.memories[row].id == snapshot.columns.ids[row]
                    assert snapshot.row_of_id[snapshot.columns.ids[row]] == row
        except BaseException as fault:
            faults.append(fault)
            raise

    readers = [threading.Thread(target=read) for _ in range(4)]
    for reader in readers:
        reader.start()
    try:
        for change in _versions():
            published.append(published[-1].apply(change))
    finally:
        done.set()
        for reader in readers:
            reader.join()
    assert not faults
