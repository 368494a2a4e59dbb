"""What is kept between tasks changes no ranking: scores are those of a computation that keeps nothing, bit for bit."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sidecar.domain import DAY, MINUTE, Change, Memory, Micros, UseCounts
from sidecar.features import Kept, View, feature_matrix, known_values, raw_matrix
from sidecar.features.recency import HALF_LIFE_DAYS
from sidecar.features.use_rate import PRIOR
from sidecar.ranking.gates import Gates, gate_codes
from sidecar.ranking.pipeline import Scored, score
from sidecar.ranking.standing import Standing, gates_at, standing, standing_of
from sidecar.retrieval.snapshot import Snapshot, empty_snapshot, snapshot_of
from sidecar.weights import PRESETS, Weights, contributions
from tests.features.building import NOW, views
from tests.weights.test_linear import weights_of_any_kind

WORDS = ("kiln", "glaze", "Ann", "the", "rota", "2025-03-04", "svc/gate.py", "fired", "?")
TASKS = ("the kiln rota of Ann", "svc/gate.py in March 2025", "glaze glaze fired", "")


def gates_of(view: View) -> Gates:
    return Gates.of(gate_codes(view.columns, None, np.zeros(len(view.columns), bool), view.as_of_time), view.columns)


@given(views(), weights_of_any_kind())
def test_scores_are_those_of_the_whole_matrix_of_features(any_view: View, weights: Weights) -> None:
    """Adding what the task brings to what was known before it gives each score, contribution, fit and raw value that
    features and weights give when everything is computed at once."""
    weights = replace(weights, variants=any_view.variants)
    known = standing_of(any_view, weights)
    found = score(any_view, gates_of(any_view), known, weights, 0)
    afresh = replace(any_view, memo={}, kept=Kept())
    features = feature_matrix(afresh)
    whole = contributions(features, known_values(afresh).without_use, weights)
    rows = list(range(len(any_view.columns)))
    assert np.array_equal(found.score, whole.score)
    assert np.array_equal(found.task_fit, whole.task_fit)
    details = found.at(rows)
    assert np.array_equal(details.features, features)
    assert np.array_equal(details.contributions, whole.matrix)
    assert np.array_equal(details.raw, raw_matrix(afresh))


def scored(snapshot: Snapshot, task: str, as_of: Micros) -> Scored:
    """As the ranker scores a task, with all that the snapshot keeps."""
    vector = np.array([1.0, len(task), 0.5], np.float32)
    view = View(
        columns=snapshot.columns,
        text=snapshot.match(task, vector),
        as_of_time=as_of,
        half_life_days=HALF_LIFE_DAYS,
        use_prior=PRIOR,
        kept=snapshot.kept_of_texts,
    )
    weights = PRESETS["default"]
    return score(view, gates_at(snapshot, as_of), standing(snapshot, view, weights), weights, 0)


def test_a_change_moves_the_standing_of_its_memories_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """The standing of those that a report says nothing of is taken over; a rating, a pin and a write are no other
    thing. Another minute makes all of it anew."""
    made: list[int] = []

    def counted(view: View, weights: Weights) -> Standing:
        made.append(len(view.columns))
        return standing_of(view, weights)

    monkeypatch.setattr("sidecar.ranking.standing.standing_of", counted)
    memory = Memory(id="m1", key=1, content="kiln", create_time=NOW - DAY, tokens=3)
    memories = [replace(memory, id=f"m{key}", key=key) for key in range(1, 101)]
    used = {key: UseCounts(1.0, 1.0, 1, 1, NOW - DAY) for key in range(1, 6)}
    snapshot = empty_snapshot().apply(Change("n", 1, upserted=tuple(memories), uses=used, ratings={9: (1, 0)}))
    for version, change in enumerate(
        (
            Change("n", 2, uses={3: UseCounts(1.0, 2.0, 1, 2, NOW - DAY), 40: UseCounts(0.0, 1.0, 0, 1)}),
            Change("n", 3, ratings={7: (1, 0)}, importance_contents={8: 0.5}),
            Change("n", 4, upserted=(replace(memories[9], pinned=True),)),
            Change("n", 5, upserted=(replace(memory, id="new", key=101), replace(memories[3], content="kiln rota"))),
        )
    ):
        scored(snapshot, "kiln", NOW)
        made.clear()
        snapshot = snapshot.apply(change)
        moved = scored(snapshot, "kiln", NOW)
        assert made == [2, 2, 1, 3][version : version + 1]  # of a text that is rewritten, the row that dies, too
        alive = snapshot.columns.live
        assert np.array_equal(moved.score[alive], scored(_afresh(snapshot), "kiln", NOW).score)
    made.clear()
    scored(snapshot, "kiln", NOW + MINUTE)
    assert made == [len(snapshot)]


_texts = st.lists(st.sampled_from(WORDS), min_size=1, max_size=8).map(" ".join)
_times = st.none() | st.integers(0, 4).map(lambda days: NOW + days * DAY)


@st.composite
def memories(draw: st.DrawFn) -> Memory:
    number = draw(st.integers(1, 6))
    return Memory(
        id=f"m{number}",
        key=number,
        content=draw(_texts),
        kind=draw(st.sampled_from(("fact", "decision"))),
        create_time=NOW - draw(st.integers(0, 3)) * DAY,
        valid_from_time=draw(_times),
        valid_until_time=draw(_times),
        source_thread=draw(st.sampled_from(("", "t"))),
        superseded_by=draw(st.sampled_from(("", "", "m1"))),
        pinned=draw(st.booleans()),
        embedding=np.array([number, 1.0, 2.0], np.float32),
        tokens=draw(st.integers(1, 20)),
    )


@st.composite
def changes(draw: st.DrawFn, version: int) -> Change:
    return Change(
        "n",
        version,
        upserted=tuple({each.key: each for each in draw(st.lists(memories(), max_size=3))}.values()),
        deleted_keys=tuple(draw(st.sets(st.integers(1, 6), max_size=1))),
        uses=draw(st.dictionaries(st.integers(1, 6), st.just(UseCounts(1.0, 2.0, 1, 2, NOW)), max_size=2)),
        ratings=draw(st.dictionaries(st.integers(1, 6), st.just((2, 0)), max_size=2)),
    )


@given(st.data())
@settings(deadline=None)
def test_what_is_kept_follows_every_change(data: st.DataObject) -> None:
    """Whatever was asked before, and whatever changed since, each memory has the score, the contributions and the gate
    that it has in a snapshot that nothing was asked of."""
    snapshot = empty_snapshot()
    for version in range(1, data.draw(st.integers(1, 6)) + 1):
        change = data.draw(changes(version))
        snapshot = snapshot.apply(change)
        as_of = NOW + data.draw(st.integers(0, 5)) * DAY + data.draw(st.integers(0, 2)) * MINUTE
        for task in TASKS:
            warm = scored(snapshot, task, as_of)
            fresh = _afresh(snapshot)
            cold = scored(fresh, task, as_of)
            for memory_id, row in snapshot.row_of_id.items():
                other = fresh.row_of_id[memory_id]
                assert warm.gates.codes[row] == cold.gates.codes[other]
                assert warm.score[row] == cold.score[other]
                assert warm.task_fit[row] == cold.task_fit[other]
                assert np.array_equal(warm.at([row]).contributions, cold.at([other]).contributions)
            assert dict(warm.gates.stopped) == dict(cold.gates.stopped)
            assert snapshot.next_expiry(as_of) == fresh.next_expiry(as_of)


def _afresh(snapshot: Snapshot) -> Snapshot:
    """The same memories and uses in a snapshot that keeps nothing yet."""
    columns = snapshot.columns
    rows = sorted(snapshot.row_of_id.values())
    vectors = snapshot.contents.table.column("vector")
    made = snapshot_of([replace(snapshot.memories[row], embedding=vectors[row]) for row in rows])
    uses = {
        int(columns.key[row]): UseCounts(
            float(columns.used[row]),
            float(columns.seen[row]),
            int(columns.use_sessions[row]),
            int(columns.reported_sessions[row]),
            int(columns.last_use_time[row]) if columns.last_use_time[row] > 0 else None,
        )
        for row in rows
    }
    return made.with_uses(uses)
