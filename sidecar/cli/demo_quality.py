"""How well weights rank the demo's tasks: nDCG@10 and recall@10 against the judged memories, over the wire."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import TYPE_CHECKING, Any

from sidecar.audit.metrics import ndcg_at, order, recall_at
from sidecar.cli.demo_store import DemoStore
from sidecar.cli.rank_options import for_client
from sidecar.domain import KNOWN_KINDS

if TYPE_CHECKING:
    from memoryranker.client import Client

K = 10
NEWEST_FIRST = {
    "features": {"recency": 1.0},
    # One half-life for every kind: otherwise an older decision could pass a newer attempt.
    "half_life_days": dict.fromkeys([*KNOWN_KINDS, "default"], 90.0),
}


@dataclass(frozen=True, slots=True)
class Quality:
    """Means over all tasks, in [0, 1]."""

    weights: str
    ndcg_at_10: float
    recall_at_10: float


def measure(client: Client, namespace: str, store: DemoStore, presets: Sequence[str]) -> list[Quality]:
    """Each preset, and the newest memories first as the yardstick."""
    rankers: dict[str, Any] = {name: name for name in presets} | {"newest first": NEWEST_FIRST}
    return [_measure(client, namespace, store, name, weights) for name, weights in rankers.items()]


def _measure(client: Client, namespace: str, store: DemoStore, name: str, weights: Any) -> Quality:
    # Pinned memories take places whatever the task is. They are given room, and count where their score puts them.
    room = sum(bool(memory.get("pinned")) for memory in store.memories)
    options = for_client({"weights": weights})
    ndcg, recall = [], []
    for task in store.tasks.values():
        response = client.rank(
            namespace,
            task.text,
            max_items=K + room,
            reserved_slots=0,
            explain="none",
            as_of_time=store.end,
            dry_run=True,
            **options,
        )
        ranked = order({item.memory.id: item.score for item in response.items})
        ndcg.append(ndcg_at(K, ranked, task.relevant))
        recall.append(recall_at(K, ranked, task.relevant))
    return Quality(name, fmean(ndcg), fmean(recall))
