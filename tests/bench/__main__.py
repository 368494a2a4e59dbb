"""`make bench`: measures, prints a table, and writes build/bench.json and build/bench-machine.json.

Only ratios within this run are claims; the milliseconds are there to read along. --short is what CI runs, with bounds
that leave room for a noisy machine.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from importlib.metadata import version
from itertools import cycle
from pathlib import Path

import grpc
import numpy as np
from memoryranker.client import Client
from memoryranker.v1 import ranker_pb2

from tests.bench import servers, workload

NAMESPACE = "bench"
BUILD = Path("build")
BATCH = 500


@dataclass(frozen=True, slots=True)
class Row:
    """One line of the table. `goal` is an upper bound ("<=") or a lower one (">="); None where there is none."""

    name: str
    value: float
    unit: str
    goal: str | None
    ok: bool | None


def bounded(name: str, value: float, unit: str, most: float | None = None, least: float | None = None) -> Row:
    """A row that is ok below `most`, or above `least`."""
    if most is not None:
        return Row(name, value, unit, f"<= {most:g}", value <= most)
    if least is not None:
        return Row(name, value, unit, f">= {least:g}", value >= least)
    return Row(name, value, unit, None, None)


def interleaved(calls: dict[str, Callable[[], object]], blocks: int, size: int) -> dict[str, np.ndarray]:
    """Seconds of each call, shape (blocks * size,), taken in turns of `size` calls after two turns of warm-up."""
    seconds: dict[str, list[float]] = {name: [] for name in calls}
    for block in range(blocks + 2):
        for name, call in calls.items():
            for _ in range(size):
                start = time.perf_counter()
                call()
                if block >= 2:
                    seconds[name].append(time.perf_counter() - start)
    return {name: np.array(found) for name, found in seconds.items()}


def fill(client: Client, count: int, vectors: int = 0) -> float:
    """Stores `count` memories; returns memories a second."""
    batch: list[dict[str, object]] = []
    spent = 0.0
    for number, memory in enumerate(workload.memories(count, vectors=vectors), start=1):
        batch.append(memory)
        if len(batch) == BATCH or number == count:
            start = time.perf_counter()
            client.upsert(NAMESPACE, batch, timeout=120)
            spent += time.perf_counter() - start
            batch = []
            show(f"stored {number:,} of {count:,}")
    return count / spent


def show(words: str) -> None:
    """Progress on a terminal; nothing in a log."""
    if sys.stderr.isatty():
        print(f"\r\033[K{words}", end="", file=sys.stderr, flush=True)


def throughput(listen: str, method: str, seconds: float, callers: int = 8) -> float:
    """Calls a second of that many processes at once."""
    command = [sys.executable, "-m", "tests.bench.caller", listen, method, NAMESPACE, str(seconds)]
    processes = [
        subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) for _ in range(callers)
    ]
    for process in processes:
        assert process.stdout is not None
        if process.stdout.readline() != "ready\n":
            raise RuntimeError("a caller did not start; its error stands above")
    results = [process.communicate(timeout=seconds + 120)[0] for process in _started(processes)]
    return sum(map(int, results)) / seconds


def _started(processes: list[subprocess.Popen[str]]) -> list[subprocess.Popen[str]]:
    for process in processes:
        assert process.stdin is not None
        process.stdin.write("go\n")
        process.stdin.flush()
    return processes


def fsync_call(folder: Path) -> Callable[[], None]:
    """Appends a page to a file and fsyncs it: the least that a durable write costs."""
    file = os.open(folder / "fsync", os.O_CREAT | os.O_WRONLY | os.O_APPEND)

    def call() -> None:
        os.write(file, b"x" * 4096)
        os.fsync(file)

    return call


def measure_calls(size: int, blocks: int, seconds: float, bounds: dict[str, float]) -> Iterator[Row]:
    """Rank and ReportUse over 10,000 memories against the least that a call can cost."""
    tasks = workload.tasks(500)
    with (
        servers.short_folder() as folder,
        servers.server(folder) as (listen, process),
        Client(listen, timeout=60) as client,
        grpc.insecure_channel(listen, options=[("grpc.enable_http_proxy", 0)]) as channel,
    ):
        rate = fill(client, 10_000)
        asked = cycle(tasks)
        check: grpc.UnaryUnaryMultiCallable[bytes, bytes] = channel.unary_unary("/grpc.health.v1.Health/Check")

        def rank() -> ranker_pb2.RankResponse:
            return client.rank(NAMESPACE, next(asked), max_items=20)

        def empty() -> object:
            return check(b"", timeout=10)

        packets = cycle([rank() for _ in range(64)])

        def report() -> object:
            packet = next(packets)
            return client.report_use(packet.packet_id, [packet.items[0].memory.id])

        found = interleaved({"rank": rank, "empty": empty, "report": report, "fsync": fsync_call(folder)}, blocks, size)
        p50 = {name: float(np.median(values)) for name, values in found.items()}
        p99 = {name: float(np.quantile(values, 0.99)) for name, values in found.items()}
        yield bounded("rank_10k_p50_ratio", p50["rank"] / p50["empty"], "x empty RPC", most=bounds["rank_p50"])
        yield bounded("rank_10k_p99_ratio", p99["rank"] / p99["empty"], "x empty RPC", most=bounds["rank_p99"])
        yield bounded("rank_10k_p50", 1e3 * p50["rank"], "ms")
        yield bounded("rank_10k_p99", 1e3 * p99["rank"], "ms")
        yield bounded("empty_p50", 1e3 * p50["empty"], "ms")
        durable = p50["report"] / (p50["fsync"] + p50["empty"])
        yield bounded("report_use_p50_ratio", durable, "x (fsync + empty RPC)", most=bounds["report"])
        yield bounded("ingest_rate", rate, "memories/s", least=bounds["ingest"])
        yield bounded("resident_10k", servers.resident_bytes(process) / 2**20, "MiB")
        with servers.echo_server(folder, rank().SerializeToString()) as echo:
            method = "/memoryranker.v1.RankerService/Rank"
            ranks = throughput(listen, method, seconds)
            echoes = throughput(echo, servers.ECHO, seconds)
            yield bounded("rank_8_callers_ratio", ranks / echoes, "x 20-item echo", least=bounds["callers"])
            yield bounded("rank_8_callers", ranks, "calls/s")


def measure_start(count: int, most_seconds: float) -> Iterator[Row]:
    """How long a start over a full store takes, and what stays resident."""
    with servers.short_folder() as folder:
        with servers.server(folder) as (listen, _), Client(listen, timeout=60) as client:
            fill(client, count, vectors=client.status().dimension)
        bare = min(servers.seconds_of_bare_imports() for _ in range(3))
        seconds, resident = servers.seconds_to_serving(folder)
        name = f"start_{count // 1000}k"
        yield bounded(f"{name}_beyond_imports", seconds - bare, "s", most=most_seconds)
        yield bounded(f"{name}_resident", resident / 2**20, "MiB")


def machine() -> dict[str, object]:
    """What the figures were taken on."""
    packages = ("numpy", "faiss-cpu", "grpcio", "protobuf", "wordllama", "memory-ranker")
    return {
        "cpus": os.cpu_count(),
        "machine": platform.machine(),
        "python": platform.python_version(),
        "system": platform.system(),
        "packages": {name: version(name) for name in packages},
        "seed": 1,
    }


def main() -> int:
    """Runs the bench; exit code 1 if a bound is not kept."""
    parser = argparse.ArgumentParser(prog="make bench", description=__doc__)
    parser.add_argument("--short", action="store_true", help="fewer calls and generous bounds, for CI")
    short = parser.parse_args().short
    if short:
        bounds = {"rank_p50": 60.0, "rank_p99": 80.0, "report": 15.0, "ingest": 1_000.0, "callers": 0.01}
        rows = [*measure_calls(20, 10, 2.0, bounds), *measure_start(5_000, 15.0)]
    else:
        bounds = {"rank_p50": 4.0, "rank_p99": 5.0, "report": 1.3, "ingest": 3_000.0, "callers": 0.5}
        rows = [*measure_calls(100, 20, 10.0, bounds), *measure_start(100_000, 5.0)]
    show("")
    BUILD.mkdir(exist_ok=True)
    for name, content in (("bench.json", [asdict(row) for row in rows]), ("bench-machine.json", machine())):
        with tempfile.NamedTemporaryFile("w", dir=BUILD, delete=False) as file:
            json.dump(content, file, indent=2)
        Path(file.name).replace(BUILD / name)
    print("| measured | value | unit | goal | ok |\n|---|---:|---|---|---|")
    for row in rows:
        verdict = {True: "yes", False: "NO", None: ""}[row.ok]
        print(f"| {row.name} | {row.value:.3g} | {row.unit} | {row.goal or ''} | {verdict} |")
    return 0 if all(row.ok is not False for row in rows) else 1


if __name__ == "__main__":
    sys.exit(main())
