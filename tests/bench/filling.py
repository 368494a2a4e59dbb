"""Fills a store through the API."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from itertools import cycle

from memoryranker.client import Client

from tests.bench import workload
from tests.bench.rows import show

NAMESPACE = "bench"
BATCH = 500


def ranking(client: Client, tasks: Sequence[str]) -> Callable[[], object]:
    """A Rank of twenty, of one task after the other."""
    asked = cycle(tasks)
    return lambda: client.rank(NAMESPACE, next(asked), max_items=20)


def fill(client: Client, count: int, vectors: int = 0) -> float:
    """Stores `count` memories; returns memories a second."""
    return fill_with(client, workload.memories(count, vectors=vectors), count)


def fill_with(client: Client, memories: Iterable[dict[str, object]], count: int) -> float:
    """Stores these `count` memories; returns memories a second."""
    batch: list[dict[str, object]] = []
    spent = 0.0
    for number, memory in enumerate(memories, start=1):
        batch.append(memory)
        if len(batch) == BATCH or number == count:
            start = time.perf_counter()
            client.upsert(NAMESPACE, batch, timeout=120)
            spent += time.perf_counter() - start
            batch = []
            show(f"stored {number:,} of {count:,}")
    while left := client.status(NAMESPACE).namespace.unscored_count:
        # Importances are worked out after a large write; what is measured next is a server that does nothing else.
        show(f"{left:,} importances to work out")
        time.sleep(0.2)
    return count / spent
