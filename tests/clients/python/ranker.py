"""What an agent needs around the generated code: one channel, refusals that can be read, and streams. Copy it."""

from __future__ import annotations

import json
import queue
from collections.abc import Iterable, Iterator, Sequence
from typing import Any
from urllib.parse import quote

import grpc
from google.rpc import error_details_pb2, status_pb2
from memoryranker.v1 import memory_pb2, memory_pb2_grpc, types_pb2

# Safe, because writes and Rank carry a request_id: what did arrive counts once.
_SERVICE_CONFIG = {
    "methodConfig": [
        {
            "name": [{"service": "memoryranker.v1.RankerService"}, {"service": "memoryranker.v1.MemoryService"}],
            "retryPolicy": {
                "maxAttempts": 5,
                "initialBackoff": "0.1s",
                "maxBackoff": "1s",
                "backoffMultiplier": 2,
                "retryableStatusCodes": ["UNAVAILABLE"],
            },
        }
    ]
}


def connect(address: str) -> grpc.Channel:
    """A channel to unix:PATH or HOST:PORT. Make one and share it: it reconnects by itself."""
    target = f"unix:{quote(address.removeprefix('unix:'))}" if address.startswith("unix:") else address
    return grpc.insecure_channel(
        target,
        options=[
            ("grpc.enable_http_proxy", 0),  # A web proxy has no business between two processes of one machine.
            ("grpc.service_config", json.dumps(_SERVICE_CONFIG)),
            ("grpc.max_reconnect_backoff_ms", 1000),
        ],
    )


class Refusal(Exception):
    """A call that failed, with everything that the server said about it."""

    def __init__(self, error: grpc.RpcError) -> None:
        self.code: grpc.StatusCode = error.code()
        self.message: str = error.details() or ""
        self.reason = self.code.name
        self.metadata: dict[str, str] = {}
        self.violations: list[tuple[str, str]] = []
        self.retry_after: float | None = None
        for entry in error.trailing_metadata() or ():
            if entry.key == "grpc-status-details-bin":
                for detail in status_pb2.Status.FromString(entry.value).details:
                    self._read(detail)
        if self.code is grpc.StatusCode.UNAVAILABLE and self.reason == "UNAVAILABLE":
            self.message += "; is `memory-ranker serve` running there?"
        super().__init__("\n  ".join([f"{self.reason}: {self.message}", *(f"{a}: {b}" for a, b in self.violations)]))

    def _read(self, detail: Any) -> None:
        info, bad, retry = error_details_pb2.ErrorInfo(), error_details_pb2.BadRequest(), error_details_pb2.RetryInfo()
        if detail.Unpack(info):
            self.reason, self.metadata = info.reason, dict(info.metadata)
        elif detail.Unpack(bad):
            self.violations = [(each.field, each.description) for each in bad.field_violations]
        elif detail.Unpack(retry):
            self.retry_after = retry.retry_delay.ToMilliseconds() / 1000


def ingest(
    stub: memory_pb2_grpc.MemoryServiceStub,
    namespace: str,
    stream_id: str,
    chunks: Sequence[Iterable[types_pb2.Memory]],
    timeout: float,
) -> Iterator[memory_pb2.IngestMemoriesResponse]:
    """Streams chunks, from where the stream stood if it broke before, and gives each acknowledgement."""
    requests: queue.SimpleQueue[memory_pb2.IngestMemoriesRequest | None] = queue.SimpleQueue()
    requests.put(memory_pb2.IngestMemoriesRequest(namespace=namespace, stream_id=stream_id))
    answers = stub.IngestMemories(iter(requests.get, None), timeout=timeout, wait_for_ready=True)
    try:
        sent = 0
        for number, answer in enumerate(answers):
            if number == 0:
                sent = answer.acknowledged_sequence
            else:
                yield answer
            while sent < min(len(chunks), answer.acknowledged_sequence + answer.window):
                sent += 1
                requests.put(memory_pb2.IngestMemoriesRequest(sequence=sent, memories=chunks[sent - 1]))
            if answer.acknowledged_sequence >= len(chunks):
                break
    finally:
        requests.put(None)
        answers.cancel()
