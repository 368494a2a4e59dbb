"""What a Rank costs as the store grows."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from tests.bench import servers, workload
from tests.bench.filling import fill, ranking
from tests.bench.rows import Row, bounded, interleaved

MOST = {100_000: 1.4, 1_000_000: 1.8}
"""Goals, as ratios to 10,000 memories."""


def measure_sizes(sizes: Sequence[int], blocks: int, size: int) -> Iterator[Row]:
    """Rank over stores of these sizes, all served at the same time and asked in turns."""
    with servers.many() as start:
        clients = {}
        for count in sizes:
            folder = start.folder()
            listen, _ = start.server(folder)
            client = start.client(listen)
            fill(client, count, vectors=client.status().dimension)
            clients[count] = client
        tasks = workload.tasks(300)

        found = interleaved({str(count): ranking(client, tasks) for count, client in clients.items()}, blocks, size)
        p50 = {count: float(np.median(found[str(count)])) for count in sizes}
        for count in sizes:
            yield bounded(f"rank_{count // 1000}k_of_sizes_p50", 1e3 * p50[count], "ms")
        for count, most in MOST.items():
            if count in p50 and 10_000 in p50:
                yield bounded(f"rank_{count // 1000}k_to_10k_p50", p50[count] / p50[10_000], "x 10k", most=most)
