"""A whole Rank over a socket against the top 20 of other libraries in process, over the same texts and vectors."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from memoryranker.client import Client

from tests.bench import servers, workload
from tests.bench.filling import fill, ranking
from tests.bench.rows import Row, bounded, interleaved, show

PEERS_PYTHON = Path(".venv-peers/bin/python")
PEERS = ("chroma", "sqlite_vec", "lancedb", "qdrant_local", "langgraph_store", "mem0_style")
MOST = {("chroma", 10_000): 0.8, ("chroma", 100_000): 0.4}
LONGEST = 900.0
"""Seconds that a peer may take to build and answer."""


def measure_peers(sizes: tuple[int, ...], calls: int) -> Iterator[Row]:
    """Our p50 by the peer's. One after the other: two at once would share the cores."""
    for count in sizes:
        with servers.short_folder() as folder:
            with servers.server(folder) as (listen, _), Client(listen, timeout=60) as client:
                dimension = client.status().dimension
                fill(client, count, vectors=dimension)
                timed = {"rank": ranking(client, workload.tasks(calls))}
                ours = interleaved(timed, 10, max(1, calls // 10))["rank"]
            memories = list(workload.memories(count, vectors=dimension))
            np.save(folder / "v.npy", np.array([memory["embedding"] for memory in memories], np.float32))
            asked = np.random.default_rng(9).standard_normal((calls, dimension)).astype(np.float32)
            np.save(folder / "t.npy", asked / np.linalg.norm(asked, axis=1, keepdims=True))
            (folder / "x.txt").write_text("\n".join(f"{i} {m['content']}" for i, m in enumerate(memories)))
            for peer in PEERS:
                show(f"{peer} over {count:,}")
                yield from _against(folder, peer, count, float(np.median(ours)))


def _against(folder: Path, peer: str, count: int, ours: float) -> Iterator[Row]:
    name = f"rank_to_{peer}_{count // 1000}k"
    files = [str(folder / file) for file in ("v.npy", "t.npy", "x.txt")]
    command = [str(PEERS_PYTHON), str(Path(__file__).with_name("peers.py")), *files, peer]
    try:
        ran = subprocess.run(command, capture_output=True, text=True, timeout=LONGEST, check=True)
        answer = json.loads(ran.stdout.splitlines()[-1])
    except FileNotFoundError:
        answer = {"why_not": f"{PEERS_PYTHON} is missing: make peers"}
    except (subprocess.SubprocessError, IndexError) as error:
        answer = {"why_not": f"{type(error).__name__}"}
    if "why_not" in answer:
        yield Row(name, None, f"not run: {answer['why_not'][:120]}", None, None)
        return
    theirs = float(np.median(answer["seconds"]))
    yield bounded(f"{peer}_{count // 1000}k_p50", 1e3 * theirs, "ms")
    yield bounded(name, ours / theirs, f"x {peer}", most=MOST.get((peer, count)))
