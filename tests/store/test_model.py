"""The store against the simplest thing that could be right: dicts, subscribers, and counts from all reports anew."""

import shutil
import tempfile
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from sidecar.domain import Change, Channel, Memory, Packet, PacketItem, Rating, Segment, UseCounts, UseReport
from sidecar.domain import WriteOutcome as Outcome
from sidecar.store.checkpoints import Limits
from sidecar.store.reports import ReportOutcome
from sidecar.store.requests import Replayed
from sidecar.store.store import Store

SPACES = ("n", "n2")
NAMESPACES = st.sampled_from(SPACES)
IDS = st.sampled_from(["a", "b", "c", "d"])
SOME_IDS = st.lists(IDS, max_size=3, unique=True)
PATCHES = st.fixed_dictionaries(
    {"content": st.sampled_from(["x", "y", "xy" * 3000]), "tokens": st.integers(1, 2)},
    optional={
        "kind": st.sampled_from(["fact", "decision"]),
        "tags": st.sampled_from([(), ("t",), ("t", "u")]),
        "metadata": st.sampled_from([{}, {"k": [1, None]}]),
        "relevance": st.none() | st.sampled_from([0.0, 0.5]),
        "pinned": st.booleans(),
        "source_sequence": st.none() | st.integers(0, 2),
    },
)


@dataclass
class Mirror:
    """One namespace as a subscriber has it: built from changes alone."""

    version: int = 0
    memories: dict[int, Memory] = field(default_factory=dict)
    uses: dict[int, UseCounts] = field(default_factory=dict)


class StoreAndModel(RuleBasedStateMachine):
    """Does the same to a store and to a model of it, and compares."""

    def __init__(self) -> None:
        super().__init__()
        self.folder = Path(tempfile.mkdtemp())
        self.now = 1_000_000
        self.memories: dict[tuple[str, str], Memory] = {}
        self.ratings: dict[tuple[str, str], dict[str, Rating]] = {}
        self.packets: dict[str, tuple[str, list[str]]] = {}
        self.mirrors = {namespace: Mirror() for namespace in SPACES}
        self.open()

    def open(self) -> None:
        """Opens the store, with checkpoints and scrubs as often as possible."""
        limits = Limits(wal_bytes=50_000, scrub_idle=0.0, scrub_within=0.0, retry=0.0, poll=0.0001)
        self.store = Store.open(self.folder / "data", limits=limits, sync=lambda _: None)
        self.store.subscribe(self.hear)

    def teardown(self) -> None:
        """Leaves nothing behind."""
        self.store.close()
        shutil.rmtree(self.folder)

    def hear(self, change: Change) -> None:
        """Keeps the mirror, as an index would."""
        mirror = self.mirrors[change.namespace]
        assert change.score_version == mirror.version + 1
        mirror.version = change.score_version
        if change.purged:
            mirror.memories, mirror.uses = {}, {}
        mirror.memories |= {memory.key: memory for memory in change.upserted}
        for key in change.deleted_keys:
            del mirror.memories[key]
            mirror.uses.pop(key, None)
        mirror.uses |= change.uses
        for key, (helpful, unhelpful) in change.ratings.items():
            mirror.memories[key] = replace(mirror.memories[key], helpful=helpful, unhelpful=unhelpful)

    def tick(self) -> int:
        """Time goes on."""
        self.now += 1
        return self.now

    def apply(self, key: tuple[str, str], patch: dict[str, Any], now: int) -> Outcome:
        """Writes one memory to the model."""
        old = self.memories.get(key)
        if old is None:
            self.memories[key] = Memory(id=key[1], create_time=now, update_time=now, **patch)
            return Outcome.CREATED
        if (new := replace(old, **patch)) == old:
            return Outcome.UNCHANGED
        self.memories[key] = replace(new, update_time=now)
        return Outcome.UPDATED

    @rule(namespace=NAMESPACES, patches=st.lists(st.tuples(IDS, PATCHES), max_size=3))
    def upsert(self, namespace: str, patches: list[tuple[str, dict[str, Any]]]) -> None:
        """Memories are written."""
        now = self.tick()
        expected = [self.apply((namespace, memory_id), patch, now) for memory_id, patch in patches]
        before = self.mirrors[namespace].version
        result = self.store.upsert(namespace, patches, now)
        assert not isinstance(result, Replayed)
        assert [outcome for outcome, _ in result[0]] == expected
        changed = set(expected) - {Outcome.UNCHANGED}
        assert result[1] == before + bool(changed)

    @precondition(lambda self: bool(self.memories))
    @rule(data=st.data(), pinned=st.booleans(), relevance=st.none() | st.just(0.5))
    def update(self, data: st.DataObject, pinned: bool, relevance: float | None) -> None:
        """One memory is changed."""
        key = data.draw(st.sampled_from(sorted(self.memories)))
        patch = {"pinned": pinned, "relevance": relevance}
        self.apply(key, patch, self.tick())
        result = self.store.update(*key, patch, self.now)
        assert not isinstance(result, Replayed)
        assert replace(result[0], key=0) == self.memories[key]

    @rule(namespace=NAMESPACES, ids=SOME_IDS)
    def delete(self, namespace: str, ids: list[str]) -> None:
        """Memories are deleted."""
        result = self.store.delete(namespace, ids, self.tick())
        assert not isinstance(result, Replayed)
        assert result[0] == {memory_id: (namespace, memory_id) in self.memories for memory_id in ids}
        for memory_id in ids:
            self.memories.pop((namespace, memory_id), None)
            self.ratings.pop((namespace, memory_id), None)

    @precondition(lambda self: bool(self.memories))
    @rule(data=st.data(), rater=st.sampled_from(["ann", "bob"]), rating=st.sampled_from(list(Rating)))
    def rate(self, data: st.DataObject, rater: str, rating: Rating) -> None:
        """A memory is rated."""
        key = data.draw(st.sampled_from(sorted(self.memories)))
        marks = self.ratings.setdefault(key, {})
        marks[rater] = rating
        said = list(marks.values())
        counts = said.count(Rating.HELPFUL), said.count(Rating.UNHELPFUL)
        result = self.store.rate(*key, rater, rating, "because", self.tick())
        assert not isinstance(result, Replayed)
        assert result[:2] == counts
        self.memories[key] = replace(self.memories[key], helpful=counts[0], unhelpful=counts[1])

    @rule(namespace=NAMESPACES, ids=SOME_IDS, session=st.sampled_from(["", "s", "t"]), agent=st.sampled_from("xy"))
    def rank(self, namespace: str, ids: list[str], session: str, agent: str) -> None:
        """A packet is logged."""
        keys = {memory.id: memory.key for memory in self.store.load(namespace).memories}
        served = [memory_id for memory_id in ids if memory_id in keys]
        packet_id = f"p{self.tick()}"
        self.packets[packet_id] = (namespace, served)
        numbers = np.zeros(3)
        self.store.log_packet(
            Packet(
                packet_id=packet_id,
                namespace=namespace,
                items=tuple(
                    PacketItem(memory_id, keys[memory_id], Segment.RANKED, 1.0, numbers, numbers, numbers, 1)
                    for memory_id in served
                ),
                undrawn=(),
                model_version="default",
                feature_schema_hash="hash",
                exploration_policy="policy-1",
                score_version=self.mirrors[namespace].version,
                as_of_time=self.now,
                create_time=self.now,
                valid_until_time=None,
                left_out={},
                degradations=(),
                empty_reason=None,
                reserve_pool_size=0,
                pool_sizes=(0, 0),
                reserved_slots=0,
                token_budget=None,
                ranked_budget=None,
                slot_budget=None,
                session_id=session,
                agent_id=agent,
            )
        )

    @precondition(lambda self: bool(self.packets))
    @rule(
        data=st.data(),
        channel=st.sampled_from(list(Channel)),
        used=SOME_IDS,
        unused=SOME_IDS,
        shown=SOME_IDS,
        complete=st.booleans(),
        sequence=st.none() | st.integers(0, 3),
    )
    def report(
        self,
        data: st.DataObject,
        channel: Channel,
        used: list[str],
        unused: list[str],
        shown: list[str],
        complete: bool,
        sequence: int | None,
    ) -> None:
        """Use is reported, now and then twice."""
        packet_id = data.draw(st.sampled_from(sorted(self.packets)))
        namespace, served = self.packets[packet_id]
        report = UseReport(packet_id, None, channel, tuple(used), tuple(unused), tuple(shown), complete)
        report = replace(report, sequence=sequence)
        outcome = self.store.report(report, self.tick())
        assert isinstance(outcome, ReportOutcome)
        assert outcome.used_count == len(set(used) & set(served))
        version = self.mirrors[namespace].version
        again = self.store.report(report, self.tick())
        assert isinstance(again, ReportOutcome)
        assert again == replace(outcome, replayed=True)
        assert self.mirrors[namespace].version == version

    @rule(namespace=NAMESPACES)
    def purge(self, namespace: str) -> None:
        """A namespace is removed."""
        of_namespace = [key for key in self.memories if key[0] == namespace]
        packets = [packet_id for packet_id, (owner, _) in self.packets.items() if owner == namespace]
        assert self.store.purge_namespace(namespace) == (len(of_namespace), len(packets))
        for key in of_namespace:
            del self.memories[key]
            self.ratings.pop(key, None)
        for packet_id in packets:
            del self.packets[packet_id]

    @rule()
    def restart(self) -> None:
        """The server is restarted."""
        self.store.close()
        self.open()

    @rule()
    def settle(self) -> None:
        """The log goes into the database."""
        self.store.settle()

    @invariant()
    def the_store_is_as_the_model(self) -> None:
        """Memories, versions and counts agree with the model, the subscriber and the feedback log."""
        for namespace in SPACES:
            state, mirror = self.store.load(namespace), self.mirrors[namespace]
            assert state.score_version == mirror.version
            assert {memory.key: memory for memory in state.memories} == mirror.memories
            expected = [memory for key, memory in self.memories.items() if key[0] == namespace]
            by_id: Callable[[Memory], str] = lambda memory: memory.id  # noqa: E731
            assert sorted((replace(memory, key=0) for memory in state.memories), key=by_id) == sorted(
                expected, key=by_id
            )
            kept = {key: counts for key, counts in state.uses.items() if counts != UseCounts()}
            assert kept == {key: counts for key, counts in mirror.uses.items() if counts != UseCounts()}
            assert kept == {
                key: counts
                for key, counts in self.store.use_counts_as_of(namespace, self.now).items()
                if counts != UseCounts()
            }
            assert self.store.namespace(namespace).memory_count == len(expected)


TestStoreAndModel = StoreAndModel.TestCase
TestStoreAndModel.settings = settings(
    max_examples=25, stateful_step_count=25, deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
