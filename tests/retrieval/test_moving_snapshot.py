"""Any sequence of changes moves a snapshot to what one built afresh is, bit for bit."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from sidecar.domain import Change, Memory, NamespaceState, UseCounts
from sidecar.retrieval import changing
from sidecar.retrieval.snapshot import Snapshot, empty_snapshot, snapshot_from
from tests.retrieval.pictures import picture

IDS = st.sampled_from("abcdef")
CONTENTS = st.sampled_from(
    (
        "Ann: I deploy with rotateApiKey today",
        "Ann: the release notes are in svc/auth-gw/rotate.py",
        "Bob: OPS-1234 is done, OPS-1234!",
        "Bob's release, 猫が好き",
        "the of and",
        "🧠",
    )
)
OPTIONAL_TIMES = st.none() | st.integers(0, 9)
MEMORIES = st.builds(
    Memory,
    id=IDS,
    content=CONTENTS,
    kind=st.sampled_from(("fact", "decision", "own")),
    create_time=st.integers(0, 5),
    update_time=st.integers(0, 5),
    valid_from_time=OPTIONAL_TIMES,
    valid_until_time=OPTIONAL_TIMES,
    superseded_by=st.sampled_from(("", "", "a", "b", "c", "d")),
    source_thread=st.sampled_from(("", "t1", "t2")),
    source_sequence=st.none() | st.integers(0, 3),
    subject=st.sampled_from(("", "Ann", "Ann Smith")),
    tags=st.sampled_from(((), ("x",), ("x", "y"))),
    metadata=st.sampled_from(({}, {"n": 1.0}, {"n": True})),
    relevance=st.none() | st.floats(0, 1),
    importance_override=st.none() | st.floats(0, 1),
    importance_content=st.none() | st.floats(0, 1),
    pinned=st.booleans(),
    suppressed=st.booleans(),
    tokens=st.integers(1, 9),
)
VECTORS = st.none() | st.sampled_from(((1.0, 2.0, 3.0), (-4.0, 0.5, 0.0), (0.0, 0.0, 1e-3)))
COUNTS = st.builds(
    lambda used, more, when: UseCounts(used, used + more, int(used), int(used + more), when),
    st.floats(0, 9),
    st.floats(0, 9),
    OPTIONAL_TIMES,
)


class Moving(RuleBasedStateMachine):
    """Random changes; the store's truth is a dict."""

    @initialize()
    def start(self) -> None:
        self.memories: dict[int, Memory] = {}
        self.uses: dict[int, UseCounts] = {}
        self.next_key = 1
        self.version = 0
        self.snapshot = empty_snapshot()
        self.kept: list[tuple[Snapshot, dict[str, Any]]] = []

    def key_of(self, memory_id: str) -> int | None:
        return next((key for key, memory in self.memories.items() if memory.id == memory_id), None)

    def commit(self, change: Change) -> None:
        self.version = change.score_version
        self.snapshot = self.snapshot.apply(change)

    def change(self, **parts: Any) -> Change:
        return Change("ns", self.version + 1, **parts)

    @rule(given=st.lists(st.tuples(MEMORIES, VECTORS), min_size=1, max_size=4, unique_by=lambda pair: pair[0].id))
    def upsert(self, given: list[tuple[Memory, tuple[float, ...] | None]]) -> None:
        written = []
        for memory, vector in given:
            key = self.key_of(memory.id)
            if key is None:
                key, self.next_key = self.next_key, self.next_key + 1
            embedding = None if vector is None else np.array(vector, np.float32)
            memory = replace(memory, key=key, embedding=embedding)
            self.memories[key] = memory
            written.append(memory)
        self.commit(self.change(upserted=tuple(written)))

    @precondition(lambda self: self.memories)
    @rule(
        data=st.data(),
        pinned=st.booleans(),
        importance=st.none() | st.floats(0, 1),
        kind=st.sampled_from(("fact", "new")),
    )
    def rewrite_without_text(self, data: st.DataObject, pinned: bool, importance: float | None, kind: str) -> None:
        key = data.draw(st.sampled_from(sorted(self.memories)))
        memory = replace(self.memories[key], pinned=pinned, importance_use=importance, kind=kind, update_time=6)
        self.memories[key] = memory
        self.commit(self.change(upserted=(memory,)))

    @precondition(lambda self: self.memories)
    @rule(data=st.data())
    def delete(self, data: st.DataObject) -> None:
        keys = data.draw(st.sets(st.sampled_from(sorted(self.memories)), min_size=1, max_size=3))
        for key in keys:
            del self.memories[key]
            self.uses.pop(key, None)
        self.commit(self.change(deleted_keys=tuple(keys)))

    @precondition(lambda self: self.memories)
    @rule(data=st.data(), counts=COUNTS, marks=st.tuples(st.integers(0, 2), st.integers(0, 2)))
    def use_and_rate(self, data: st.DataObject, counts: UseCounts, marks: tuple[int, int]) -> None:
        key = data.draw(st.sampled_from(sorted(self.memories)))
        self.uses[key] = counts
        self.memories[key] = replace(self.memories[key], helpful=marks[0], unhelpful=marks[1])
        self.commit(self.change(uses={key: counts, 999: counts}, ratings={key: marks, 999: marks}))

    @rule()
    def purge(self) -> None:
        self.memories.clear()
        self.uses.clear()
        self.commit(self.change(purged=True))

    @rule()
    def keep(self) -> None:
        self.kept.append((self.snapshot, picture(self.snapshot)))

    @precondition(lambda self: self.kept)
    @rule(data=st.data(), memory=MEMORIES)
    def branch_off_an_older_one(self, data: st.DataObject, memory: Memory) -> None:
        older, seen = data.draw(st.sampled_from(self.kept))
        branch = older.apply(Change("ns", 99, upserted=(replace(memory, key=500),)))
        assert branch.row_of_id[memory.id] in np.flatnonzero(branch.columns.live)
        assert picture(older) == seen

    @rule()
    def fail_halfway(self) -> None:
        bad = Memory(id="z", content="bad", key=900, embedding=np.full(3, np.nan, np.float32))
        good = Memory(id="a", content="good", key=self.key_of("a") or 901)
        with pytest.raises(ValueError, match="finite"):
            self.snapshot.apply(self.change(upserted=(good, bad)))

    @invariant()
    def equals_a_rebuild(self) -> None:
        state = NamespaceState("ns", self.version, tuple(self.memories.values()), dict(self.uses))
        assert picture(self.snapshot) == picture(snapshot_from(state))

    def teardown(self) -> None:
        for snapshot, seen in getattr(self, "kept", ()):
            assert picture(snapshot) == seen


@pytest.fixture(autouse=True)
def early_compaction(monkeypatch: pytest.MonkeyPatch) -> None:
    """Dead rows are cleared out early, so that few steps reach it."""
    monkeypatch.setattr(changing, "FEWEST_DEAD_ROWS", 3)


class TestMoving(Moving.TestCase):  # type: ignore[misc, valid-type]  # a class made at run time
    """Any sequence of changes leaves what a rebuild from the store would give, bit for bit."""

    settings = settings(max_examples=40, stateful_step_count=25, deadline=None, suppress_health_check=list(HealthCheck))
