"""What a Rank costs as the store grows, and what the choice of candidates misses."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path

import numpy as np
from memoryranker.client import Client
from memoryranker.v1 import ranker_pb2

from tests.bench import servers, workload
from tests.bench.filling import NAMESPACE, fill_with, ranking
from tests.bench.rows import Row, bounded, interleaved, show

MOST = {100_000: 1.4, 1_000_000: 1.8}
"""Goals, as ratios to 10,000 memories."""
LARGEST_EXACT = 30_000
"""The default of exact_up_to."""
LONGEST = 1_800.0
"""Seconds that cells may take to be made."""


def measure_sizes(sizes: Sequence[int], blocks: int, size: int, keep: Path | None = None) -> Iterator[Row]:
    """Rank over stores of these sizes, all served at the same time and asked in turns. In `keep` they stay for the next
    run, which has them filled and their cells made. Importances are not scored: of a million that takes half an hour,
    and a Rank costs the same."""
    with servers.many() as start:
        clients = {}
        for count in sizes:
            folder = start.folder() if keep is None else keep / str(count)
            folder.mkdir(parents=True, exist_ok=True)
            listen, process = start.server(folder, "--importance-scorer-enabled", "false")
            clients[count] = client = start.client(listen)
            if client.status(NAMESPACE).namespace.memory_count != count:
                fill_with(client, workload.topical(count), count)
            if count > LARGEST_EXACT:
                yield from _while_made(client, count)
                yield bounded(f"rank_{count // 1000}k_resident", servers.resident_bytes(process) / 2**20, "MiB")
                yield from _recall(client, count)
        asked = {str(count): ranking(client, workload.topical_tasks(300, count)) for count, client in clients.items()}
        found = interleaved(asked, blocks, size)
        p50 = {count: float(np.median(found[str(count)])) for count in sizes}
        for count in sizes:
            yield bounded(f"rank_{count // 1000}k_of_sizes_p50", 1e3 * p50[count], "ms")
        for count, most in MOST.items():
            if count in p50 and 10_000 in p50:
                yield bounded(f"rank_{count // 1000}k_to_10k_p50", p50[count] / p50[10_000], "x 10k", most=most)


def _while_made(client: Client, count: int) -> Iterator[Row]:
    """Ranks until candidates are chosen: all memories are scored meanwhile, and cells are made."""
    tasks, began = workload.topical_tasks(300, count), time.monotonic()
    seconds: list[float] = []
    while True:
        start = time.perf_counter()
        packet = client.rank(NAMESPACE, tasks[len(seconds) % len(tasks)], max_items=20, dry_run=True, timeout=120)
        if any(each.reason == ranker_pb2.LEFT_OUT_REASON_NOT_A_CANDIDATE for each in packet.left_out):
            break
        seconds.append(time.perf_counter() - start)
        show(f"cells of {count:,} memories are made")
        if time.monotonic() - began > LONGEST:
            raise RuntimeError(f"no candidates were chosen of {count:,} memories in {LONGEST:g} s")
    if seconds:
        most = float(np.quantile(seconds, 0.99)) / float(np.median(seconds))
        yield bounded(f"rank_{count // 1000}k_p99_while_cells_are_made", most, "x p50 meanwhile")


def _recall(client: Client, count: int, tasks: int = 50) -> Iterator[Row]:
    """Of the twenty that are ranked when everything is scored, as it is for a time in the past, the share that is
    ranked now."""
    found = expected = 0
    for task in workload.topical_tasks(tasks, count, seed=5):
        past = datetime.now(UTC) - timedelta(seconds=1)
        exact, now = (
            {item.memory.id for item in client.rank(NAMESPACE, task, max_items=20, dry_run=True, **at).items}
            for at in ({"as_of_time": past, "timeout": 120}, {"timeout": 120})
        )
        found, expected = found + len(exact & now), expected + len(exact)
    yield bounded(f"rank_{count // 1000}k_recall", found / expected, "of the exact top 20", least=0.99)
