"""One call against the least that it can cost."""

from __future__ import annotations

import os
import subprocess
import sys
from collections import deque
from collections.abc import Callable, Iterator
from itertools import cycle
from pathlib import Path

import grpc
import numpy as np
from memoryranker.client import Client
from memoryranker.v1 import ranker_pb2

from tests.bench import servers, workload
from tests.bench.filling import NAMESPACE, fill, ranking
from tests.bench.floor import floor_server
from tests.bench.rows import Row, bounded, interleaved


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
        floor_server(folder) as floor,
        Client(floor, timeout=60) as floor_client,
    ):
        rate = fill(client, 10_000)
        asked = cycle(tasks)
        check: grpc.UnaryUnaryMultiCallable[bytes, bytes] = channel.unary_unary("/grpc.health.v1.Health/Check")

        def rank() -> ranker_pb2.RankResponse:
            return client.rank(NAMESPACE, next(asked), max_items=20)

        def empty() -> object:
            return check(b"", timeout=10)

        unreported: deque[ranker_pb2.RankResponse] = deque()

        def rank_and_keep() -> None:
            unreported.append(rank())

        def report() -> object:
            packet = unreported.popleft()  # each once: the same words again are known, and cost no write
            return client.report_use(packet.packet_id, [packet.items[0].memory.id])

        def floor_report() -> object:
            return floor_client.report_use(kept.packet_id, [kept.items[0].memory.id])

        kept = floor_client.rank(NAMESPACE, tasks[0], max_items=20)
        timed = {"rank": rank_and_keep, "empty": empty, "report": report, "fsync": fsync_call(folder)}
        timed |= {"floor": ranking(floor_client, tasks), "floor_report": floor_report}
        found = interleaved(timed, blocks, size)
        in_turns = interleaved({"rank": rank_and_keep, "report": report}, blocks * size // 10, 1)
        p50 = {name: float(np.median(values)) for name, values in found.items()}
        p99 = {name: float(np.quantile(values, 0.99)) for name, values in found.items()}
        yield bounded("rank_10k_p50_ratio", p50["rank"] / p50["empty"], "x empty RPC", most=bounds["rank_p50"])
        yield bounded("rank_10k_p99_ratio", p99["rank"] / p99["empty"], "x empty RPC", most=bounds["rank_p99"])
        yield bounded("rank_10k_p50", 1e3 * p50["rank"], "ms")
        yield bounded("rank_10k_p99", 1e3 * p99["rank"], "ms")
        yield bounded("empty_p50", 1e3 * p50["empty"], "ms")
        yield bounded("floor_10k_p50_ratio", p50["floor"] / p50["empty"], "x empty RPC")
        yield bounded("floor_10k_p99_ratio", p99["floor"] / p99["empty"], "x empty RPC")
        yield bounded("rank_to_floor_p50", p50["rank"] / p50["floor"], "x a Rank that ranks nothing")
        durable = p50["report"] / (p50["fsync"] + p50["empty"])
        after_report = float(np.median(in_turns["rank"]))
        yield bounded("rank_after_report_p50", after_report / p50["rank"], "x a Rank after a Rank")
        yield bounded("report_use_p50", 1e3 * p50["report"], "ms")
        yield bounded("fsync_p50", 1e3 * p50["fsync"], "ms")
        yield bounded("report_use_p50_ratio", durable, "x (fsync + empty RPC)", most=bounds["report"])
        least = p50["floor_report"] / (p50["fsync"] + p50["empty"])
        yield bounded("floor_report_ratio", least, "x (fsync + empty RPC)")
        yield bounded("report_to_floor_p50", p50["report"] / p50["floor_report"], "x a report that only stores")
        yield bounded("upsert_rate", rate, "memories/s")
        yield bounded("resident_10k", servers.resident_bytes(process) / 2**20, "MiB")
        with servers.echo_server(folder, rank().SerializeToString()) as echo:
            method = "/memoryranker.v1.RankerService/Rank"
            ranks = throughput(listen, method, seconds)
            echoes = throughput(echo, servers.ECHO, seconds)
            yield bounded("rank_8_callers_ratio", ranks / echoes, "x 20-item echo", least=bounds["callers"])
            yield bounded("rank_8_callers", ranks, "calls/s")
            floors = throughput(floor, method, seconds)
            yield bounded("floor_8_callers_ratio", floors / echoes, "x 20-item echo")
