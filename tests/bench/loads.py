"""What writes cost, and what they cost those who rank meanwhile."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import cycle

import numpy as np
from memoryranker.client import Client

from tests.bench import servers, workload
from tests.bench.filling import NAMESPACE, fill
from tests.bench.rows import Row, bounded, show

REPORTS_A_SECOND = 20
MEMORIES_A_SECOND = 200
BATCH = 20
SCORED = 500


@contextmanager
def load(listen: str) -> Iterator[None]:
    """A process that ranks and reports, and writes memories, at a steady pace."""
    process = subprocess.Popen([sys.executable, "-m", "tests.bench.loads", listen], stdout=subprocess.PIPE)
    assert process.stdout is not None
    process.stdout.readline()
    try:
        yield
    finally:
        process.terminate()
        process.wait(timeout=30)


def _seconds_to_score(client: Client) -> float:
    """The importances of all memories, in batches as `memory-ranker importance --namespace` has them."""
    ids = [memory.id for memory in client.list(NAMESPACE, page_size=1_000)]
    batches = [ids[start : start + SCORED] for start in range(0, len(ids), SCORED)]
    start = time.perf_counter()
    for done, batch in enumerate(batches):
        show(f"scoring importances: {done * SCORED:,}")
        client.score_importance(NAMESPACE, [{"memory": {"id": each}} for each in batch])
    return time.perf_counter() - start


def put_under_load(listen: str) -> None:
    """Runs until it is killed."""
    tasks = cycle(workload.tasks(200, seed=7))
    fresh = workload.memories(1_000_000, seed=8)
    with Client(listen, timeout=60) as client:
        print("ready", flush=True)
        start, reports, batches = time.monotonic(), 0, 0
        while True:
            passed = time.monotonic() - start
            if reports < passed * REPORTS_A_SECOND:
                packet = client.rank(NAMESPACE, next(tasks), max_items=20)
                client.report_use(packet.packet_id, [packet.items[0].memory.id])
                reports += 1
            elif batches < passed * MEMORIES_A_SECOND / BATCH:
                client.upsert(NAMESPACE, [{**next(fresh), "id": f"l{batches}-{i}"} for i in range(BATCH)])
                batches += 1
            else:
                time.sleep(0.002)


def measure_loads(calls: int, bounds: dict[str, float]) -> Iterator[Row]:
    """A stream of memories; then, over 10,000 memories, their importances, Rank alone and under load, and how soon a
    write is ranked."""
    with servers.short_folder() as folder, servers.server(folder) as (listen, _), Client(listen, timeout=60) as client:
        texts = list(workload.memories(calls * 5, seed=5))
        show("ingesting through a stream")
        start = time.perf_counter()
        client.ingest("streamed", texts, chunk_size=500)
        rate = len(texts) / (time.perf_counter() - start)
        yield bounded("ingest_stream_rate", rate, "memories/s", least=bounds["stream"])
        fill(client, 10_000)
        yield bounded("importance_10k", _seconds_to_score(client), "s", most=bounds["importance"])
        tasks = cycle(workload.tasks(300))

        def seconds_of_rank() -> float:
            start = time.perf_counter()
            client.rank(NAMESPACE, next(tasks), max_items=20)
            return time.perf_counter() - start

        for _ in range(200):
            seconds_of_rank()
        show("ranking alone and under load, in turns")
        alone: list[float] = []
        together: list[float] = []
        shown: list[float] = []
        for _ in range(4):
            alone += [seconds_of_rank() for _ in range(calls // 4)]
            with load(listen):
                together += [seconds_of_rank() for _ in range(calls // 4)]
                shown += [_seconds_to_ranked(client) for _ in range(calls // 16)]
        p99_alone, p99_together = float(np.quantile(alone, 0.99)), float(np.quantile(together, 0.99))
        yield bounded("rank_10k_p99_under_load", 1e3 * p99_together, "ms")
        yield bounded("rank_10k_p99_under_load_ratio", p99_together / p99_alone, "x alone", most=bounds["mixed"])
        yield bounded("write_to_ranked_p50", 1e3 * float(np.median(shown)), "ms")
        yield bounded("write_to_ranked_p99", 1e3 * float(np.quantile(shown, 0.99)), "ms", most=bounds["fresh"])


_number = iter(range(1_000_000))


def _seconds_to_ranked(client: Client) -> float:
    """From the call that writes a memory to the end of the first Rank that shows it, which is asked for at once."""
    word = f"zyx{next(_number)}"
    start = time.perf_counter()
    client.upsert(NAMESPACE, [{"id": word, "content": f"{word} is fresh"}])
    packet = client.rank(NAMESPACE, f"what of {word}", max_items=20)
    if word not in {item.memory.id for item in packet.items}:
        raise RuntimeError(f"{word} was written, acknowledged, and not ranked")
    return time.perf_counter() - start


if __name__ == "__main__":
    put_under_load(sys.argv[1])
