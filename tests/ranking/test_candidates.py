"""In a large namespace the memories are scored that could come to the top: their scores are those of exact scoring, and
nothing that must be found is missed."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sidecar.domain import (
    DAY,
    Change,
    Filter,
    LeftOutReason,
    Memory,
    Micros,
    Packet,
    RankRequest,
    Segment,
    UseCounts,
    UseReport,
)
from sidecar.features import FEATURE_NAMES, View
from sidecar.features.recency import HALF_LIFE_DAYS
from sidecar.features.use_rate import PRIOR
from sidecar.ranking import candidates
from sidecar.ranking import occasion as occasion_module
from sidecar.ranking.candidates import part_with
from sidecar.ranking.case import Again
from sidecar.ranking.explain import explain_miss
from sidecar.ranking.gates import PASSED
from sidecar.ranking.pipeline import score
from sidecar.ranking.ranker import Ranker
from sidecar.ranking.standing import gates_at, standing
from sidecar.retrieval.chooser import MOST_FRESH, Chooser
from sidecar.retrieval.embedders import make_embedder
from sidecar.retrieval.namespaces import Namespaces
from sidecar.retrieval.snapshot import empty_snapshot
from sidecar.retrieval.vectors import quantised
from sidecar.store.store import Store
from sidecar.weights import PRESETS, Weights, WeightsHolder
from tests.bench import workload
from tests.features.building import NOW
from tests.promises.frozen import text
from tests.ranking.test_standing import TASKS, memories
from tests.weights.test_linear import weights_of_any_kind

COUNT = 2_000
EXACT_UP_TO = 500
TASK = workload.topical_tasks(1, COUNT)[0]


def state_of(found: list[Memory], uses: dict[int, UseCounts]) -> Change:
    return Change("n", 1, upserted=tuple({memory.id: memory for memory in found}.values()), uses=uses)


@given(st.data(), st.lists(memories(), min_size=1, max_size=12), weights_of_any_kind(), st.sampled_from(TASKS))
def test_a_part_is_scored_as_the_whole_is(
    data: st.DataObject, found: list[Memory], weights: Weights, task: str
) -> None:
    """Whichever rows are chosen, each has the score, fit, contributions, values, raw numbers and values in other ways
    that it has when everything is scored, to the last bit; and every other row is counted as no candidate."""
    named = [replace(memory, id=f"m{at}", key=at, embedding=vector(at)) for at, memory in enumerate(found, start=1)]
    uses = {
        memory.key: UseCounts(used=1.0, seen=2.0, use_sessions=memory.key, reported_sessions=2) for memory in named[::2]
    }
    snapshot = empty_snapshot().apply(state_of(named, uses))
    gates = gates_at(snapshot, NOW)
    passed = np.flatnonzero(gates.codes == PASSED).tolist()
    chosen = np.array(sorted(data.draw(st.sets(st.sampled_from(passed)) if passed else st.just(set()))), np.int32)
    part, part_gates = part_with(snapshot, chosen, gates)
    scores = []
    for rows, its_gates in ((snapshot, gates), (part, part_gates)):
        text = rows.with_vectors(snapshot.match_text(task), quantised(vector(7))[0])
        view = View(
            *(rows.columns, text, NOW, HALF_LIFE_DAYS, PRIOR),
            kept=rows.kept_of_texts,
            variants=weights.variants,
            most_uses=snapshot.most_uses,
        )
        scores.append(score(view, its_gates, standing(rows, view, weights), weights, 3))
    whole, some = scores
    here, there = part.rows.searchsorted(chosen).tolist(), chosen.tolist()
    assert np.array_equal(whole.score[there], some.score[here])
    assert np.array_equal(whole.task_fit[there], some.task_fit[here])
    assert np.array_equal(whole.tokens[there], some.tokens[here])
    for of_whole, of_part in zip(whole.at(there), some.at(here), strict=True):
        assert np.array_equal(of_whole, of_part)
    assert [snapshot.columns.ids[row] for row in there] == [some.columns.ids[row] for row in here]
    assert np.flatnonzero(part_gates.codes == PASSED).tolist() == here
    missing = part_gates.stopped.get(LeftOutReason.NOT_A_CANDIDATE, 0)
    assert missing == len(passed) - len(chosen)
    assert sum(part_gates.stopped.values()) + len(chosen) == len(snapshot)


def vector(number: int) -> np.ndarray:
    return np.array([1.0, number, 0.5 * number - 1.0], np.float32)


class Both:
    """Two rankers over one store: one chooses candidates, one scores everything."""

    def __init__(self, store: Store) -> None:
        self.store = store
        self.embedder = make_embedder("wordllama")
        self.namespaces = Namespaces(store.load)
        store.subscribe(self.namespaces.apply)
        self.now: Micros = NOW
        weights = WeightsHolder()
        self.exact = Ranker(store, self.namespaces, self.embedder, weights, lambda: self.now)
        self.cut = Ranker(store, self.namespaces, self.embedder, weights, lambda: self.now, exact_up_to=EXACT_UP_TO)
        self.chooser = Chooser(self.namespaces, EXACT_UP_TO, period=1e6)  # looks when it is told to

    def put(self, namespace: str, found: list[dict[str, object]]) -> None:
        vectors = self.embedder.embed([str(memory["content"]) for memory in found])
        patches = [
            (
                str(memory["id"]),
                {"token_count": 20, "embedding": made, **{k: v for k, v in memory.items() if k != "id"}},
            )
            for memory, made in zip(found, vectors, strict=True)
        ]
        for start in range(0, len(patches), 500):
            self.store.upsert(namespace, patches[start : start + 500], self.now)

    def ready(self) -> None:
        """Asks once, so that it is known what to make, and makes it."""
        self.rank(TASK)
        self.chooser.look()
        assert LeftOutReason.NOT_A_CANDIDATE in self.rank(TASK).left_out

    def rank(self, task: str, ranker: Ranker | None = None, **fields: Any) -> Packet:
        request = RankRequest("n", task, max_items=20, dry_run=True, **fields)
        return (ranker or self.cut).rank(request, lambda: None).packet


@contextmanager
def both(folder: Path) -> Iterator[Both]:
    with Store.open(folder) as store:
        made = Both(store)
        try:
            made.put("n", list(workload.topical(COUNT)))
            made.ready()
            yield made
        finally:
            made.chooser.close()


@pytest.fixture(scope="module")
def still(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Both]:
    """A store that no test writes to."""
    with both(tmp_path_factory.mktemp("still")) as made:
        yield made


@pytest.fixture
def moving(tmp_path: Path) -> Iterator[Both]:
    """A store of the test's own."""
    with both(tmp_path) as made:
        yield made


@pytest.mark.parametrize("weights", ["default", "engine", "smartctx"])
def test_the_best_are_found(still: Both, weights: str) -> None:
    """Of the twenty that exact scoring of everything puts first, at least 99 in a hundred are there, with the same
    scores and contributions; and few memories were scored."""
    still.rank(TASK, weights=weights)
    still.chooser.look()
    found = expected = 0
    for task in workload.topical_tasks(60, COUNT, seed=4):
        cut, exact = (still.rank(task, ranker, weights=weights) for ranker in (still.cut, still.exact))
        assert cut.left_out[LeftOutReason.NOT_A_CANDIDATE] > COUNT / 3
        assert sum(cut.left_out.values()) + len(cut.items) == COUNT
        ours = {item.memory_id: item for item in cut.items}
        for item in exact.items:
            if (own := ours.get(item.memory_id)) is not None:
                assert own.score == item.score
                assert own.contributions.tolist() == item.contributions.tolist()
                found += 1
        expected += len(exact.items)
    assert found >= 0.99 * expected


def test_uses_count_against_the_most_used_of_all(moving: Both) -> None:
    """Under `importance` a candidate has the score of exact scoring, also where the most used memory is none: it is
    suppressed since."""
    best = moving.rank(TASK, moving.exact, weights="importance").items[0].memory_id
    moving.put("n", [{"id": "alone", "content": "in no thread", "create_time": NOW}])
    for used in ("alone", "alone", "alone", best):
        request = RankRequest("n", TASK, max_items=1, reserved_slots=0, filter=Filter(ids=frozenset([used])))
        packet = moving.exact.rank(request, lambda: None).packet
        moving.store.report(UseReport(packet.packet_id, used_memory_ids=(used,)), moving.now)
    moving.store.upsert("n", [("alone", {"suppressed": True})], moving.now)
    moving.rank(TASK, weights="importance")
    moving.chooser.look()
    cut, exact = (moving.rank(TASK, ranker, weights="importance") for ranker in (moving.cut, moving.exact))
    assert cut.left_out[LeftOutReason.NOT_A_CANDIDATE] > 0
    ours = {item.memory_id: item.contributions.tolist() for item in cut.items}
    theirs = {item.memory_id: item.contributions.tolist() for item in exact.items}
    frequency = FEATURE_NAMES.index("frequency")
    assert any(0.0 < parts[frequency] < 0.12 for parts in theirs.values())
    assert {each: theirs[each] for each in ours if each in theirs} == {
        each: ours[each] for each in ours if each in theirs
    }


def test_a_filter_comes_before_the_choice(moving: Both) -> None:
    """A filter that lets three of thousands through gets its three, however little they match, and counts the rest as
    filtered."""
    moving.put("n", [{"id": f"few{at}", "content": f"nothing alike {at}", "tags": ["few"]} for at in range(3)])
    moving.chooser.look()
    packet = moving.rank(TASK, filter=Filter(all_tags=frozenset(["few"])))
    assert {item.memory_id for item in packet.items} == {"few0", "few1", "few2"}
    assert packet.left_out == {LeftOutReason.FILTERED: COUNT}
    none = moving.rank(TASK, filter=Filter(ids=frozenset(["unknown"])))
    assert not none.items
    assert none.empty_reason is not None
    assert none.empty_reason.value == "filtered"


def test_what_few_pass_is_asked_of_all_that_pass(moving: Both) -> None:
    """Behind a filter, or where most have expired, the memories that are left are all scored, however far they are from
    what the choice would look at: the packet is that of exact scoring."""
    many = EXACT_UP_TO + 50
    moving.put("n", [{"id": f"far{at:05}", "content": f"photo {at} of the sea", "tags": ["far"]} for at in range(many)])
    moving.chooser.look()
    only = Filter(all_tags=frozenset(["far"]))
    packet, exact = moving.rank(TASK, filter=only), moving.rank(TASK, moving.exact, filter=only)
    assert [item.memory_id for item in packet.items] == [item.memory_id for item in exact.items]
    assert packet.left_out == {LeftOutReason.FILTERED: COUNT, **exact.left_out}
    ids = [name for name in moving.namespaces.get("n").columns.ids if not name.startswith("far")]
    for start in range(0, COUNT, 500):
        expired = [(name, {"valid_until_time": NOW - DAY}) for name in ids[start : start + 500]]
        moving.store.upsert("n", expired, moving.now)
    moving.chooser.look()
    packet = moving.rank(TASK)
    assert len(packet.items) == 20
    assert packet.left_out[LeftOutReason.EXPIRED] == COUNT


def test_no_packet_is_empty_before_all_were_asked(moving: Both) -> None:
    """A budget that no candidate fits is tried on the others too."""
    serving = moving.cut.occasions.prepare(RankRequest("n", TASK, max_items=20), lambda: None)
    assert serving.candidates is not None
    ids = list(serving.snapshot.columns.ids)
    small = ids[min(set(range(COUNT)) - set(serving.candidates.tolist()))]
    for start in range(0, COUNT, 500):
        sizes = [(name, {"tokens": 3 if name == small else 20}) for name in ids[start : start + 500]]
        moving.store.upsert("n", sizes, moving.now)
    moving.chooser.look()
    assert moving.rank(TASK, token_budget=20).left_out[LeftOutReason.NOT_A_CANDIDATE]
    assert [item.memory_id for item in moving.rank(TASK, token_budget=5).items] == [small]


def test_what_was_written_since_is_a_candidate(moving: Both) -> None:
    """A memory that is written, rewritten, rated up or pinned after the choice was prepared is ranked at once, and one
    that is deleted is gone."""
    best = moving.rank(TASK).items[0].memory_id
    moving.put("n", [{"id": "fresh", "content": TASK}, {"id": best, "content": "something else altogether"}])
    packet = moving.rank(TASK)
    assert packet.items[0].memory_id == "fresh"
    assert best not in {item.memory_id for item in packet.items}
    plain = "m0000234"
    assert plain not in {item.memory_id for item in packet.items}
    moving.store.upsert("n", [(plain, {"pinned": True})], NOW)
    packet = moving.rank(TASK)
    assert (packet.items[0].memory_id, packet.items[0].segment) == (plain, Segment.PINNED)
    moving.store.delete("n", ["fresh"], NOW)
    assert "fresh" not in {item.memory_id for item in moving.rank(TASK).items}


def test_a_common_word_leads_to_what_was_written_since(moving: Both, monkeypatch: pytest.MonkeyPatch) -> None:
    """The rows to which a common word gives most are looked up anew once what was written has been taken in."""
    for name, value in {"BEST_OF_TERM": 50, "STANDING_LOOKED_AT": 0, "BEST_STANDING": 0}.items():
        monkeypatch.setattr(candidates, name, value)
    monkeypatch.setattr(occasion_module, "FEWEST_CANDIDATES", 0)

    def chosen() -> list[str]:
        request = RankRequest("n", "marmot", max_items=20, weights="importance")
        occasion = moving.cut.occasions.prepare(request, lambda: None)
        assert occasion.candidates is not None
        return [occasion.snapshot.columns.ids[row] for row in occasion.candidates]

    moving.put("n", [{"id": f"early{at}", "content": f"marmot {text(at)}"} for at in range(MOST_FRESH)])
    moving.rank("marmot", weights="importance")
    moving.chooser.look()
    assert sum(name.startswith("early") for name in chosen()) == 50
    moving.put("n", [{"id": f"other{at}", "content": text(at + MOST_FRESH)} for at in range(MOST_FRESH)])
    moving.put("n", [{"id": "late", "content": "marmot"}])
    assert "late" in chosen()
    moving.chooser.look()
    assert "late" in chosen()


def test_a_missed_memory_is_told_that_it_was_no_candidate(still: Both) -> None:
    """ExplainMiss names the choice as the gate, with the memory's rank among all; pinning admits it, and was tried."""
    request = RankRequest("n", TASK, max_items=20, dry_run=True)
    serving = still.cut.occasions.prepare(request, lambda: None)
    assert serving.candidates is not None
    row = min(set(range(COUNT)) - set(serving.candidates.tolist()))
    occasion = still.cut.occasions.prepare(request, lambda: None, explaining=True)
    name = serving.snapshot.columns.ids[row]
    unasked = Again(at=lambda _: pytest.fail("no other time"), written=lambda _: pytest.fail("no other scores"))
    miss = explain_miss(occasion, name, None, lambda: None, unasked, NOW)
    assert miss.reason is LeftOutReason.NOT_A_CANDIDATE
    assert miss.rank is not None
    assert miss.rank > 20
    assert miss.smallest_change is not None
    assert miss.smallest_change.field == "memory.pinned"
    candidate = explain_miss(
        occasion,
        serving.snapshot.columns.ids[int(serving.candidates[0])],
        None,
        lambda: None,
        unasked,
        NOW,
    )
    assert candidate.reason is not LeftOutReason.NOT_A_CANDIDATE


def test_a_past_time_and_own_weights_are_ranked_exactly(still: Both) -> None:
    """Where the choice is not prepared for what is asked, everything is scored."""
    own = replace(PRESETS["default"], version="request")
    for packet in (still.rank(TASK, as_of_time=NOW - DAY), still.rank(TASK, explicit_weights=own)):
        assert LeftOutReason.NOT_A_CANDIDATE not in packet.left_out


def test_a_reserve_is_drawn_from_new_candidates(moving: Both) -> None:
    """Where nearly all had their turns, the few that had none are still found, if they fit."""
    moving.put("n", [{"id": "unseen", "content": " ".join(TASK.split()[:4])}])
    moving.chooser.look()
    keys = moving.namespaces.get("n").columns.key.tolist()
    uses = {key: UseCounts(seen=9.0, reported_sessions=9) for key in keys[:-1]}
    version = moving.namespaces.get("n").score_version + 1
    moving.namespaces.apply(Change("n", version, uses=uses))
    moving.chooser.look()
    occasion = moving.cut.occasions.prepare(RankRequest("n", TASK, max_items=20), lambda: None)
    assert occasion.candidates is not None
    assert len(keys) - 1 in occasion.candidates.tolist()


def test_ranks_go_on_while_what_chooses_is_made_anew(moving: Both) -> None:
    """Dead rows are cleared out, files written and cells made while others rank: every answer is whole, and shows what
    was written before it was asked for."""
    stop, failed = threading.Event(), []

    def rank() -> None:
        while not stop.is_set():
            before = frozenset(gone)
            packet = moving.rank(TASK)
            if len(packet.items) != 20 or any(item.memory_id in before for item in packet.items):
                failed.append(packet)

    gone: set[str] = set()
    rankers = [threading.Thread(target=rank) for _ in range(2)]
    for thread in rankers:
        thread.start()
    try:
        for turn in range(4):
            names = [f"m{number:07d}" for number in range(turn * 300, turn * 300 + 300)]
            moving.store.delete("n", names, NOW)
            gone.update(names)
            moving.put("n", [{"id": f"new{turn}-{at}", "content": f"{TASK} {at}"} for at in range(100)])
            moving.namespaces.get("n").contents.near.cells = None
            moving.chooser.look()
            moving.chooser.look()
    finally:
        stop.set()
        for thread in rankers:
            thread.join()
    assert not failed
    cut, exact = moving.rank(TASK), moving.rank(TASK, moving.exact)
    assert [item.memory_id for item in cut.items] == [item.memory_id for item in exact.items]


def test_the_index_file_is_due_once_cells_were_made(moving: Both) -> None:
    """So that the next start finds them there. Not again by a look that made none."""
    assert moving.namespaces.unkept()["n"] == (2 * COUNT, COUNT)  # written, and then with cells
    moving.chooser.look()
    assert moving.namespaces.unkept()["n"] == (2 * COUNT, COUNT)
