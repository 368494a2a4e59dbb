"""Promises where candidates are chosen: what ExplainMiss names is tried as Rank does it, and Rank with it admits; and a
bigger budget never gives less."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from sidecar.domain import DAY, Filter, LeftOutReason, RankRequest, Segment
from sidecar.importance.foresight import Foresight
from sidecar.importance.scorer import ImportanceScorer
from sidecar.importance.settings import ImportanceSettings
from sidecar.ranking import candidates
from sidecar.ranking import occasion as occasion_module
from sidecar.ranking.case import Again, Change
from sidecar.ranking.explain import Miss, explain_miss
from sidecar.ranking.pipeline import pack
from sidecar.ranking.ranker import Ranker
from sidecar.retrieval.chooser import Chooser
from sidecar.retrieval.embedders import make_embedder
from sidecar.retrieval.namespaces import Namespaces
from sidecar.retrieval.snapshot import Snapshot
from sidecar.store.store import Store
from sidecar.weights import WeightsHolder
from tests.bench import workload
from tests.features.building import NOW
from tests.promises.stories import smaller_steps

COUNT = 300
FEW = {
    "LOOKED_AT": 30,
    "STANDING_LOOKED_AT": 8,
    "POSTINGS": 60,
    "BEST_OF_TERM": 8,
    "SHORTLIST": 30,
    "SEEDS": 9,
    "WITH_NEIGHBOURS": 2,
    "BEST_STANDING": 2,
    "NEW_TO_USE": 2,
}
"""So few rows are looked at that a choice among some hundred memories misses what a choice among millions would."""
TASKS = workload.topical_tasks(12, COUNT)


class Small:
    """A store of some hundred memories, of which any gate stops some, and a ranker that chooses few of them."""

    def __init__(self, store: Store) -> None:
        self.store = store
        self.namespaces = Namespaces(store.load)
        store.subscribe(self.namespaces.apply)
        self.ranker = Ranker(
            store, self.namespaces, make_embedder("wordllama"), WeightsHolder(), lambda: NOW, exact_up_to=20
        )
        scorer = ImportanceScorer(self.namespaces, make_embedder("none"), ImportanceSettings(), lambda: NOW)
        self.foresight = Foresight(self.namespaces, store, scorer, lambda: NOW)
        rng = np.random.default_rng(5)
        found = list(workload.topical(COUNT))
        vectors = make_embedder("wordllama").embed([str(memory["content"]) for memory in found])
        self.memories: dict[str, dict[str, Any]] = {}
        for memory, vector in zip(found, vectors, strict=True):
            fields = {key: value for key, value in memory.items() if key != "id"}
            fields |= {"embedding": vector, "token_count": int(rng.integers(5, 60)), "tags": [f"t{rng.integers(3)}"]}
            fields |= {"pinned": bool(rng.random() < 0.01), "suppressed": bool(rng.random() < 0.05)}
            fields |= {"valid_until_time": NOW - DAY if rng.random() < 0.05 else None}
            fields |= {"kind": "fact" if rng.random() < 0.7 else "decision"}
            self.memories[str(memory["id"])] = fields
        store.upsert("n", list(self.memories.items()), NOW - DAY)
        self.ranker.rank(RankRequest("n", TASKS[0], dry_run=True), lambda: None)
        self.chooser = Chooser(self.namespaces, 20, period=1e6)
        self.chooser.look()

    def explain(self, request: RankRequest, memory_id: str) -> Miss:
        """Why the memory is missed."""

        def prepare(asked: RankRequest, stands: Snapshot | None = None) -> occasion_module.Occasion:
            return self.ranker.occasions.prepare(asked, lambda: None, explaining=True, namespace=stands)

        def written(fields: Mapping[str, Any]) -> occasion_module.Occasion:
            return prepare(request, self.foresight.written("n", memory_id, fields, lambda: None, scores=False))

        again = Again(lambda time: prepare(replace(request, as_of_time=time)), written)
        return explain_miss(prepare(request), memory_id, None, lambda: None, again, NOW)

    def admits(self, request: RankRequest, memory_id: str) -> bool:
        """True if Rank serves it, and not by luck."""
        packet = self.ranker.rank(request, lambda: None).packet
        return any(item.memory_id == memory_id and item.segment is not Segment.RESERVED for item in packet.items)

    def admits_with(self, request: RankRequest, memory_id: str, field: str, value: Any) -> bool:
        """True if Rank serves it once one thing is changed. The memory is put back as it was."""
        if field.startswith("memory."):
            name = field.removeprefix("memory.")
            self.store.upsert("n", [(memory_id, {name: value})], NOW - DAY)
            admitted = self.admits(request, memory_id)
            self.store.upsert("n", [(memory_id, {name: self.memories[memory_id][name]})], NOW - DAY)
            self.chooser.look()
            return admitted
        if field == "filter":
            return self.admits(replace(request, filter=Filter()), memory_id)
        if field.startswith("filter."):
            part = field.removeprefix("filter.")
            changes: dict[str, Any] = {part: frozenset(value or ())}
            return self.admits(replace(request, filter=replace(request.filter, **changes)), memory_id)
        return self.admits(replace(request, **{field: value}), memory_id)


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Small]:
    """One store for all."""
    with pytest.MonkeyPatch.context() as patch, Store.open(tmp_path_factory.mktemp("small")) as store:
        for name, value in FEW.items():
            patch.setattr(candidates, name, value)
        patch.setattr(occasion_module, "FEWEST_CANDIDATES", 10)
        made = Small(store)
        yield made
        made.chooser.close()


@st.composite
def requests(draw: st.DrawFn) -> RankRequest:
    """A request for few memories, without luck."""
    names = [f"m{number:07d}" for number in range(0, COUNT, 7)]
    wanted = draw(
        st.sampled_from(
            [
                Filter(),
                Filter(any_tags=frozenset(["t0"])),
                Filter(kinds=frozenset(["decision"])),
                Filter(exclude_ids=frozenset(names)),
                Filter(any_tags=frozenset(["t1", "t2"]), kinds=frozenset(["fact"])),
            ]
        )
    )
    return RankRequest(
        "n",
        draw(st.sampled_from(TASKS)),
        max_items=draw(st.integers(3, 25)),
        token_budget=draw(st.none() | st.integers(0, 30) | st.integers(20, 800)),
        min_score=draw(st.sampled_from([None, None, 0.2, 0.4])),
        reserved_slots=draw(st.sampled_from([None, 0, 1, 2])),
        filter=wanted,
    )


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(request=requests(), place=st.integers(0, 60) | st.integers(0, COUNT - 1))
def test_what_it_names_admits_and_nothing_smaller_does(small: Small, request: RankRequest, place: int) -> None:
    """Behind any gate and any filter, at any budget, near the top or far from it. Where none is told to what was no
    candidate, none of the memory's own does."""
    scored = small.ranker.occasions.prepare(request, lambda: None, explaining=True).scored
    memory_id = scored.columns.ids[int(np.argsort(-scored.score, kind="stable")[place])]
    why = small.explain(request, memory_id)
    assert (why.place is not None) == small.admits(request, memory_id)
    if why.smallest_change is None:
        if why.reason is LeftOutReason.NOT_A_CANDIDATE:
            for field, value in (("memory.pinned", True), ("memory.token_count", 1), ("token_budget", None)):
                assert not small.admits_with(request, memory_id, field, value), field
        return
    change: Change = why.smallest_change
    old, new = json.loads(change.from_json), json.loads(change.to_json)
    assert small.admits_with(request, memory_id, change.field, new), change
    for value in smaller_steps(change.field, old, new):
        assert not small.admits_with(request, memory_id, change.field, value), (change, value)


def test_the_choice_is_asked_again_for_another_filter(small: Small) -> None:
    """Without its filter a request chooses among more memories, and this one is no longer among them: so it is not told
    to leave the filter out, though it would be admitted if all were scored."""
    missed = 0
    for task in TASKS:
        open_to_all = RankRequest("n", task, max_items=25, reserved_slots=0)
        chosen = small.ranker.occasions.prepare(open_to_all, lambda: None).candidates
        assert chosen is not None
        everything = small.ranker.occasions.prepare(open_to_all, lambda: None, explaining=True)
        best = pack(everything.scored, everything.limits(), everything.snapshot).ranked.rows
        for memory_id in [everything.scored.columns.ids[row] for row in best if row not in chosen]:
            why = small.explain(replace(open_to_all, filter=Filter(exclude_ids=frozenset([memory_id]))), memory_id)
            assert (why.reason, why.smallest_change) == (LeftOutReason.FILTERED, None)
            missed += 1
    assert missed


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(request=requests(), budget=st.integers(0, 40) | st.integers(0, 600), more=st.integers(1, 300))
def test_a_bigger_budget_never_gives_a_segment_fewer_tokens(
    small: Small, request: RankRequest, budget: int, more: int
) -> None:
    """Whether candidates fit or all memories are asked."""
    tokens = []
    for given_budget in (budget, budget + more):
        packet = small.ranker.rank(replace(request, token_budget=given_budget), lambda: None).packet
        tokens.append(
            [
                sum(item.tokens for item in packet.items if item.segment is segment)
                for segment in (Segment.PINNED, Segment.RANKED)
            ]
        )
    assert tokens[0][0] <= tokens[1][0]
    assert tokens[0][1] <= tokens[1][1]
