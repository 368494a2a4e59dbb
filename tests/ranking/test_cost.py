"""What a Rank costs, counted instead of timed: the count is the same on a busy machine."""

from __future__ import annotations

import cProfile
import pstats
from pathlib import Path

import pytest

from sidecar.domain import RankRequest
from sidecar.ranking.ranker import Ranker
from sidecar.retrieval.embedders import make_embedder
from sidecar.retrieval.namespaces import Namespaces
from sidecar.store.store import Store
from sidecar.weights import WeightsHolder
from tests.bench import workload
from tests.promises.frozen import NOW

MOST_CALLS = 1_450
"""Python and C functions that one Rank of 20 items calls, its packet's commit included. It was 1,240 when this was set,
2,460 before a packet was made of columns, and 4,750 before anything was kept between tasks. Newer Pythons call
fewer."""
TASKS = workload.tasks(60)


def calls(folder: Path, count: int) -> float:
    """Function calls of one Rank over `count` memories, the mean over tasks that were asked before."""
    with Store.open(folder) as store:
        embedder = make_embedder("wordllama")
        made = list(workload.memories(count))
        vectors = embedder.embed([str(memory["content"]) for memory in made])
        patches: list[tuple[str, dict[str, object]]] = []
        for memory, vector in zip(made, vectors, strict=True):
            fields = {name: value for name, value in memory.items() if name != "id"}
            patches.append((str(memory["id"]), {**fields, "token_count": 50, "embedding": vector}))
        for start in range(0, count, 500):
            store.upsert("n", patches[start : start + 500], NOW)
        ranker = Ranker(store, Namespaces(store.load), embedder, WeightsHolder(), lambda: NOW)
        requests = [RankRequest("n", task, max_items=20) for task in TASKS]
        for request in requests:
            ranker.rank(request, lambda: None)
        with cProfile.Profile() as profile:
            for request in requests:
                assert len(ranker.rank(request, lambda: None).packet.items) == 20
        total: int = pstats.Stats(profile).total_calls  # type: ignore[attr-defined]
        return total / len(requests)


@pytest.mark.timeout(120)
def test_a_rank_calls_few_functions_and_no_more_for_more_memories(tmp_path: Path) -> None:
    """All memories are scored by array operations: five times as many are no more calls, and there are few of them."""
    few, many = calls(tmp_path / "few", 600), calls(tmp_path / "many", 3_000)
    assert many < 1.1 * few
    assert many < MOST_CALLS
