"""A Rank that ranks nothing, and a report that only stores: what is left of them if all else cost no time at all.

Its server reads the request, embeds the task, multiplies it with 10,000 vectors, takes the twenty nearest, commits a
packet of twenty with all that the log keeps of them, and writes the answer with its contributions: by the product's own
code, which calls into compiled libraries for most of it. Which twenty are answered is settled beforehand: no words,
features, gates, near-duplicates or draws. No way of ranking in Python behind the same API can be faster.

A report is read by gRPC, written down as one row in one transaction, put on the disk and answered: no checks, no look
at its packet, no index, no retry that is known again, nothing that is counted later.
"""

from __future__ import annotations

import contextlib
import os
import sqlite3
import sys
import time
from collections.abc import Callable, Iterator
from concurrent import futures
from dataclasses import replace
from pathlib import Path
from typing import Any

import grpc
import numpy as np
from memoryranker.v1 import feedback_pb2, ranker_pb2, ranker_pb2_grpc

from sidecar.domain import Micros, RankRequest
from sidecar.ranking.ranker import Ranker, random_packet_id
from sidecar.retrieval.embedders import make_embedder
from sidecar.retrieval.namespaces import Namespaces
from sidecar.retrieval.vectors import cosines, inverse_lengths, quantised
from sidecar.rpc.incoming import read_rank
from sidecar.rpc.outgoing import write_memories, write_rank
from sidecar.store.store import Store
from sidecar.weights import WeightsHolder
from tests.bench import workload
from tests.bench.filling import NAMESPACE
from tests.bench.servers import serving

COUNT = 10_000
STORED = 200
"""So many memories to take the served ones from."""
SERVED = 20


@contextlib.contextmanager
def floor_server(folder: Path) -> Iterator[str]:
    """A process that answers so; yields its address once it is ready."""
    listen = f"unix:{folder}/f.sock"
    with serving(listen, "-m", "tests.bench.floor", listen, str(folder / "floor")):
        yield listen


def _serve(listen: str, folder: Path) -> None:
    folder.mkdir()
    embedder = make_embedder("wordllama")
    rng = np.random.default_rng(1)
    matrix = quantised(rng.standard_normal((COUNT, embedder.dimension)).astype(np.float32))
    inverse = inverse_lengths(matrix)
    with Store.open(folder) as store:
        namespaces = Namespaces(store.load)
        store.subscribe(namespaces.apply)
        made = [dict(memory) for memory in workload.memories(STORED)]
        vectors = embedder.embed([str(memory["content"]) for memory in made])
        patches: list[tuple[str, dict[str, Any]]] = [
            (memory.pop("id"), {**memory, "token_count": 50, "embedding": vector})  # type: ignore[misc]
            for memory, vector in zip(made, vectors, strict=True)
        ]
        store.upsert(NAMESPACE, patches, _now())
        keep = _reports(folder)
        ranker = Ranker(store, namespaces, embedder, WeightsHolder(), _now)
        answer = ranker.rank(RankRequest(NAMESPACE, workload.tasks(1)[0], max_items=SERVED), lambda: None)

        class Floor(ranker_pb2_grpc.RankerServiceServicer):
            def Rank(self, request: ranker_pb2.RankRequest, context: object) -> ranker_pb2.RankResponse:
                asked = read_rank(request, embedder.dimension, _now())
                cosine = cosines(matrix, inverse, quantised(embedder.embed([asked.task])[0])[0])
                cosine.argpartition(-SERVED)
                packet = replace(answer.packet, packet_id=random_packet_id(), payload=asked.payload)
                store.log_packet(packet)
                return write_rank(replace(answer, packet=packet), request.explain, write_memories(answer))

            def ReportUse(
                self, request: feedback_pb2.ReportUseRequest, context: object
            ) -> feedback_pb2.ReportUseResponse:
                keep(request.request_id, request.SerializeToString())
                used = [feedback_pb2.ReportItemResult(memory_id=each) for each in request.used_memory_ids]
                return feedback_pb2.ReportUseResponse(
                    report_id=request.request_id, results=used, used_count=len(used), unused_count=SERVED - len(used)
                )

        server = grpc.server(futures.ThreadPoolExecutor(4))
        ranker_pb2_grpc.add_RankerServiceServicer_to_server(Floor(), server)
        server.add_insecure_port(listen)
        server.start()
        server.wait_for_termination()


def _reports(folder: Path) -> Callable[[str, bytes], None]:
    """Writes a report down in a database of its own; it is on the disk on return. For one caller at a time."""
    database = sqlite3.connect(folder / "reports.db", isolation_level=None, check_same_thread=False)
    for pragma in ("journal_mode = WAL", "synchronous = NORMAL", "wal_autocheckpoint = 0"):  # as the store's
        database.execute(f"PRAGMA {pragma}").fetchall()
    database.execute("CREATE TABLE reports (report_key INTEGER PRIMARY KEY, request_id TEXT, report BLOB)")
    log = os.open(folder / "reports.db-wal", os.O_RDWR)

    def keep(request_id: str, report: bytes) -> None:
        database.execute("INSERT INTO reports (request_id, report) VALUES (?, ?)", (request_id, report))
        os.fsync(log)

    return keep


def _now() -> Micros:
    return time.time_ns() // 1_000


if __name__ == "__main__":
    _serve(sys.argv[1], Path(sys.argv[2]))
