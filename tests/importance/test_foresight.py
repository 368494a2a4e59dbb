"""What is foreseen of a write is what the background scoring comes to after it, to the last bit."""

from __future__ import annotations

import contextlib
import itertools
import time
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from sidecar.domain import DAY, Micros, Rating
from sidecar.importance import later
from sidecar.importance.foresight import Foresight
from sidecar.importance.later import LaterScoring
from sidecar.importance.scorer import ImportanceScorer
from sidecar.importance.settings import ImportanceSettings
from sidecar.retrieval.embedders import make_embedder
from sidecar.retrieval.embedding import Embedder
from sidecar.retrieval.namespaces import Namespaces
from sidecar.retrieval.snapshot import Snapshot
from sidecar.store.store import Store

NOW = 1_700_000_000_000_000
VALUES = ("postgres", "mysql", "sqlite")
SAID = (
    *(f"The staging database of the payment team is {value}" for value in VALUES),
    *(f"The staging database of the payment team is {value} since OPS-4711 was closed" for value in VALUES[:2]),
    "Deploys of the payment team wait for a green canary, always",
    "Deploys of the payment team always wait until the canary is green",
    "Kim closed OPS-4711 on Friday",
)
numbers = itertools.count()


class World:
    """A store that is scored in the background, and what sees ahead of it."""

    def __init__(self, store: Store, embedder: Embedder) -> None:
        self.store = store
        self.embedder = embedder
        self.namespaces = Namespaces(store.load)
        store.subscribe(self.namespaces.apply)
        scorer = ImportanceScorer(self.namespaces, embedder, ImportanceSettings(), lambda: NOW)
        self.later = LaterScoring(scorer, store, lambda: NOW)
        self.foresight = Foresight(self.namespaces, store, scorer, lambda: NOW)

    def write(self, namespace: str, memories: list[dict[str, Any]]) -> None:
        vectors = self.embedder.embed([each["content"] for each in memories]) if self.embedder.dimension else None
        patches = []
        for place, each in enumerate(memories):
            fields = {key: value for key, value in each.items() if key != "id"}
            patches.append((each["id"], fields if vectors is None else fields | {"embedding": vectors[place]}))
        self.store.upsert(namespace, patches, NOW)
        self.settle(namespace)

    def settle(self, namespace: str) -> Snapshot:
        """The namespace once all of it is scored."""
        end = time.monotonic() + 60
        while namespace in self.store.namespaces_unscored():
            assert time.monotonic() < end
        while self.namespaces.get(namespace).score_version < self.store.namespace(namespace).score_version:
            assert time.monotonic() < end
        return self.namespaces.get(namespace)


@pytest.fixture(scope="module", params=["wordllama", "none"])
def world(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    """One for all, with vectors and without."""
    with Store.open(tmp_path_factory.mktemp("world") / "data") as store, contextlib.ExitStack() as undo:
        undo.enter_context(pytest.MonkeyPatch.context()).setattr(later, "REST", 0.0)  # nobody else is at work
        made = World(store, make_embedder(request.param))
        undo.callback(made.later.close)
        yield made


def parts(snapshot: Snapshot) -> dict[str, float]:
    """The content parts by id."""
    columns = snapshot.columns
    return {name: float(columns.importance_content[row]) for name, row in snapshot.row_of_id.items()}


@st.composite
def memories(draw: st.DrawFn) -> list[dict[str, Any]]:
    """Some that contradict, repeat and replace each other, in a few sessions; up to a crowd of one sort."""
    count = draw(st.integers(2, 8) | st.integers(18, 26))
    names = [f"m{number:02}" for number in range(count)]
    found: list[dict[str, Any]] = []
    for name in names:
        claims = draw(st.sampled_from([{}, {}, {}, {"attribute": "database", "value": draw(st.sampled_from(VALUES))}]))
        found.append(
            {
                "id": name,
                "content": draw(st.sampled_from(SAID)),
                "kind": draw(st.sampled_from(["fact", "fact", "decision", "episodic"])),
                "subject": draw(st.sampled_from(["", "payment"])),
                "metadata": claims,
                "source_thread": draw(st.sampled_from(["", "t1", "t2", "t3"])),
                "create_time": NOW - draw(st.integers(0, 5)) * DAY,
                "superseded_by": draw(st.sampled_from(["", "", "", *names])),
                "suppressed": draw(st.integers(0, 4)) == 0,
                "valid_until_time": draw(st.sampled_from([None, None, None, NOW, NOW - DAY, NOW + DAY])),
                "valid_from_time": draw(st.sampled_from([None, None, None, NOW - 9 * DAY, NOW + DAY // 2])),
            }
        )
        start, end = found[-1]["valid_from_time"], found[-1]["valid_until_time"]
        if start is not None and end is not None and start >= end:
            found[-1]["valid_from_time"] = None
    return found


def writes(memory: dict[str, Any]) -> list[dict[str, Any]]:
    """What ExplainMiss may tell of a memory, and the way back."""
    opened: dict[str, Any] = {"suppressed": False, "superseded_by": "", "valid_until_time": None}
    found = [{name: value} for name, value in opened.items() if memory[name] != value]
    start: Micros | None = memory["valid_from_time"]
    if start is not None and start > NOW:
        found.append({"valid_from_time": NOW})
    return found


@settings(
    max_examples=15,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow, HealthCheck.data_too_large],
)
@given(memories=memories())
def test_every_part_is_foreseen_as_it_comes_to_be(world: World, memories: list[dict[str, Any]]) -> None:
    """Of the memory itself, of what it contradicts, repeats or replaces, and of all others. Nothing is written."""
    namespace = f"world{next(numbers)}"
    world.write(namespace, memories)
    for memory in memories:
        for fields in writes(memory):
            before = world.settle(namespace)
            foreseen = world.foresight.written(namespace, memory["id"], fields, lambda: None, scores=True)
            assert world.settle(namespace) is before
            world.store.update(namespace, memory["id"], fields, NOW)
            assert parts(world.settle(namespace)) == parts(foreseen), (memory["id"], fields)
            world.store.update(namespace, memory["id"], {name: memory[name] for name in fields}, NOW)


def test_without_ratings_a_memory_stands_as_it_was_scored(world: World) -> None:
    """A rating moves no content part."""
    namespace = f"world{next(numbers)}"
    world.write(namespace, [{"id": "a", "content": SAID[0]}, {"id": "b", "content": SAID[1]}])
    world.store.rate(namespace, "a", "ann", Rating.UNHELPFUL, "", NOW)
    before = world.settle(namespace)
    foreseen = world.foresight.unrated(namespace, "a")
    assert parts(foreseen) == parts(before)
    assert foreseen.memories[foreseen.row_of_id["a"]].unhelpful == 0
    assert before.memories[before.row_of_id["a"]].unhelpful == 1
