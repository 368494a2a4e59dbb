"""How long a start over a full store takes, and what stays in memory."""

from __future__ import annotations

import time
from collections.abc import Iterator

from memoryranker.client import Client

from tests.bench import servers
from tests.bench.filling import NAMESPACE, fill
from tests.bench.rows import Row, bounded

CALM = 45
"""Seconds after which cells are made, the index file is written, and what that took is given back."""


def measure_start(count: int, most_seconds: float, most_bytes: float) -> Iterator[Row]:
    """Starts with the index files of the last run, and without them; beyond the imports that any start needs."""
    name = f"start_{count // 1000}k"
    with servers.short_folder() as folder:
        with servers.server(folder) as (listen, process), Client(listen, timeout=60) as client:
            fill(client, count, vectors=client.status().dimension)
            client.rank(NAMESPACE, "a first task", dry_run=True, timeout=120)
            yield bounded(f"{name}_filled_resident", servers.resident_bytes(process) / 2**20, "MiB")
            time.sleep(CALM)
            yield bounded(
                f"{name}_filled_calm_resident", servers.resident_bytes(process) / 2**20, "MiB", most=most_bytes / 2**20
            )
        bare = min(servers.seconds_of_bare_imports() for _ in range(5))
        found = [servers.seconds_to_serving(folder) for _ in range(5)]
        seconds, resident = min(seconds for seconds, _ in found), max(resident for _, resident in found)
        yield bounded(f"{name}_beyond_imports", seconds - bare, "s", most=most_seconds)
        yield bounded(f"{name}_resident", resident / 2**20, "MiB", most=most_bytes / 2**20)
        for path in (folder / "data").glob("index-*"):
            path.unlink()
        seconds, _ = servers.seconds_to_serving(folder)
        yield bounded(f"{name}_rebuilt_beyond_imports", seconds - bare, "s")
        (folder / "empty").mkdir()
        seconds = min(servers.seconds_to_serving(folder / "empty")[0] for _ in range(3))
        yield bounded("start_empty_beyond_imports", seconds - bare, "s")
