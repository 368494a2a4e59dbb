"""How well weights and embedders rank judged tasks, by the ranking path that serves, with reserved slots off.

Nothing is stored: each data set is a snapshot in memory, ranked by the same Ranker and packed by the same code as for
an agent, so near-duplicates, expiry and supersession act as they do there.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from sidecar.audit.datasets import Dataset, JudgedTask
from sidecar.audit.metrics import ndcg_at, recall_at, reciprocal_place
from sidecar.domain import Floats, RankRequest
from sidecar.ranking.occasion import Occasion
from sidecar.ranking.pipeline import pack
from sidecar.ranking.ranker import Ranker
from sidecar.retrieval.embedding import Embedder
from sidecar.retrieval.namespaces import Namespaces
from sidecar.store.store import Store
from sidecar.weights import Weights, WeightsHolder

PLACES = 50
"""How far down a relevant memory is looked for; below, it counts as not found."""
MEASURES = ("recall@5", "recall@10", "recall@25", "ndcg@10", "mrr")
RESAMPLES = 2_000
INTERVAL = (2.5, 97.5)
SEED = 20_260_101


@dataclass(frozen=True, slots=True)
class System:
    """Something that ranks: weights, and the embedder that they see."""

    name: str
    weights: Weights
    embedder: Embedder


@dataclass(frozen=True, slots=True)
class Outcome:
    """What one system made of all tasks: `values` has shape (tasks, len(MEASURES)), `categories` a name a task."""

    name: str
    values: Floats
    categories: tuple[str, ...]

    def means(self) -> dict[str, float]:
        """The mean of each measure over all tasks."""
        return dict(zip(MEASURES, self.values.mean(axis=0).tolist(), strict=True))

    def by_category(self) -> dict[str, tuple[int, dict[str, float]]]:
        """How many tasks each category has, and the means over them."""
        found = {}
        of_task = np.array(self.categories)
        for category in sorted(set(self.categories)):
            rows = self.values[of_task == category]
            found[category] = (len(rows), dict(zip(MEASURES, rows.mean(axis=0).tolist(), strict=True)))
        return found


@dataclass(frozen=True, slots=True)
class Difference:
    """Mean of one system less another over the same tasks, with a 95 % interval by resampling tasks."""

    mean: float
    low: float
    high: float


def evaluate(
    datasets: Sequence[Dataset], systems: Sequence[System], progress: Callable[[], None] = lambda: None
) -> list[Outcome]:
    """Ranks every task by every system; `progress` is called after each. Deterministic."""
    values: dict[str, list[list[float]]] = {system.name: [] for system in systems}
    with tempfile.TemporaryDirectory(prefix="memory-ranker-eval-") as folder, Store.open(Path(folder)) as store:
        for dataset in datasets:
            known: dict[int, Namespaces] = {}
            for system in systems:
                namespaces = known.setdefault(id(system.embedder), _namespaces(dataset, system.embedder))
                prepare = occasions(dataset, system, store, namespaces)
                for task in dataset.tasks:
                    values[system.name].append(measure(order_of(prepare(task)), task))
                    progress()
    categories = tuple(task.category for dataset in datasets for task in dataset.tasks)
    return [Outcome(system.name, np.array(values[system.name]), categories) for system in systems]


def occasions(
    dataset: Dataset, system: System, store: Store, namespaces: Namespaces | None = None
) -> Callable[[JudgedTask], Occasion]:
    """What finds and scores the memories of the data set for a task, as for a request without reserved slots.

    `store` lends its settings and holds none of the memories; `namespaces` saves embedding them again.
    """
    as_of_time = dataset.as_of_time
    namespaces = namespaces or _namespaces(dataset, system.embedder)
    ranker = Ranker(store, namespaces, system.embedder, WeightsHolder(), lambda: as_of_time)

    def prepare(task: JudgedTask) -> Occasion:
        request = RankRequest(
            dataset.id, task.text, max_items=PLACES, reserved_slots=0, explicit_weights=system.weights, dry_run=True
        )
        return ranker.occasions.prepare(request, lambda: None)

    return prepare


def order_of(occasion: Occasion) -> list[str]:
    """Ids in the order of the packet, PLACES at most."""
    packed = pack(occasion.scored, occasion.limits(), occasion.ranked)
    return [occasion.ranked.columns.ids[row] for row in packed.rows]


def _namespaces(dataset: Dataset, embedder: Embedder) -> Namespaces:
    return Namespaces(lambda _: dataset.state(embedder))


def measure(ranked: Sequence[str], task: JudgedTask) -> list[float]:
    """The MEASURES of one order."""
    return [
        recall_at(5, ranked, task.relevant),
        recall_at(10, ranked, task.relevant),
        recall_at(25, ranked, task.relevant),
        ndcg_at(10, ranked, task.relevant),
        reciprocal_place(ranked, task.relevant),
    ]


def differences(one: Outcome, other: Outcome) -> Mapping[str, Difference]:
    """`one` less `other` by measure, over the same tasks: a paired bootstrap, the same resamples every time."""
    apart = one.values - other.values
    drawn = np.random.default_rng(SEED).integers(0, len(apart), (RESAMPLES, len(apart)))
    low, high = np.percentile(np.stack([apart[rows].mean(axis=0) for rows in drawn]), INTERVAL, axis=0)
    mean = apart.mean(axis=0)
    return {name: Difference(*map(float, found)) for name, *found in zip(MEASURES, mean, low, high, strict=True)}
