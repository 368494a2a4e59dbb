"""IngestMemories: takes in a long stream of memories, and acknowledges each chunk once it is durable and rankable.

A stream has one thread of the streams' pool, reads one chunk at a time, and embeds outside every lock; only the write
itself waits its turn at the store's writer, in pieces small enough that no Rank waits long behind one.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import grpc
from memoryranker.v1 import memory_pb2, types_pb2

from sidecar.domain import Memory, Micros
from sidecar.errors import Violations
from sidecar.rpc.batch import MAX_BATCH, check_windows, read_batch
from sidecar.rpc.incoming_memories import read_namespace
from sidecar.rpc.stopping import Stopping
from sidecar.rpc.validation import check_count, check_text, shown
from sidecar.store.ingested import Chunk
from sidecar.store.memories import Derived
from sidecar.store.store import Store

WINDOW = 4
"""Chunks that a caller may send ahead: enough that the next one is always there, few enough to lose little time when a
stream breaks off."""
STREAM_ID_BYTES = 128

Derive = Callable[[str, Sequence[tuple[str, dict[str, Any]]], Mapping[str, Memory]], Mapping[str, Derived]]
Requests = Iterator[memory_pb2.IngestMemoriesRequest]
Responses = Iterator[memory_pb2.IngestMemoriesResponse]


class Ingest:
    """Answers streams of memories. Safe to use from many threads."""

    def __init__(
        self, store: Store, dimension: int, derive: Derive, clock: Callable[[], Micros], stopping: Stopping
    ) -> None:
        """`derive` works out what follows from the contents of patches in a namespace, given the memories as they
        stand."""
        self._store = store
        self._dimension = dimension
        self._derive = derive
        self._clock = clock
        self._stopping = stopping

    def answer(self, requests: Requests, context: grpc.ServicerContext) -> Responses:
        """One stream from its opening to its end, or to where its caller hangs up."""
        opening = self._next(requests, context)
        if opening is None:
            return
        namespace, stream_id = _read_opening(opening)
        yield memory_pb2.IngestMemoriesResponse(
            acknowledged_sequence=self._store.acknowledged(namespace, stream_id, self._clock()), window=WINDOW
        )
        request = opening if opening.sequence or opening.memories else self._next(requests, context)
        while request is not None:
            _check_chunk(request, namespace, stream_id)
            yield self._take(namespace, stream_id, request)
            request = self._next(requests, context)

    def _next(self, requests: Requests, context: grpc.ServicerContext) -> memory_pb2.IngestMemoriesRequest | None:
        """The next message; None at the end."""
        with self._stopping.waiting(context):
            try:
                return next(requests, None)
            except grpc.RpcError:
                # Nobody listens any more, so there is no one to tell.
                return None

    def _take(
        self, namespace: str, stream_id: str, request: memory_pb2.IngestMemoriesRequest
    ) -> memory_pb2.IngestMemoriesResponse:
        chunk = Chunk(stream_id, request.sequence, _digest(request.memories))
        batch = read_batch(request.memories, self._dimension)
        outcome = self._store.ingested(namespace, chunk, self._clock())
        old = self._store.get_many(namespace, [memory_id for memory_id, _ in batch.patches])
        batch = check_windows(batch, old)
        if outcome is None:
            derived = self._derive(namespace, batch.patches, old)
            outcome = self._store.ingest(namespace, chunk, batch.patches, self._clock(), derived)
        response = memory_pb2.IngestMemoriesResponse(
            acknowledged_sequence=outcome.acknowledged_sequence,
            window=WINDOW,
            sequence=request.sequence,
            created_count=outcome.created,
            updated_count=outcome.updated,
            unchanged_count=outcome.unchanged,
            score_version=outcome.score_version,
        )
        for i, result in batch.refused.items():
            response.rejections.add(sequence=request.sequence, index=i, result=result)
        return response


def _read_opening(request: memory_pb2.IngestMemoriesRequest) -> tuple[str, str]:
    bad = Violations()
    namespace = read_namespace(bad, request.namespace)
    check_text(bad, "stream_id", request.stream_id, 1, STREAM_ID_BYTES)
    bad.raise_if_any()
    return namespace, request.stream_id


def _check_chunk(request: memory_pb2.IngestMemoriesRequest, namespace: str, stream_id: str) -> None:
    bad = Violations()
    for name, opened in (("namespace", namespace), ("stream_id", stream_id)):
        given = getattr(request, name)
        if given not in ("", opened):
            bad.add(name, f"is {shown(given)}; must be unset or {shown(opened)}, as the stream began")
    if request.sequence < 1:
        bad.add("sequence", f"is {request.sequence}; must be 1 for the first chunk, 2 for the next, and so on")
    check_count(bad, "memories", len(request.memories), 1, MAX_BATCH)
    bad.raise_if_any()


def _digest(memories: Sequence[types_pb2.Memory]) -> bytes:
    digest = hashlib.blake2b(digest_size=16)
    for memory in memories:
        data = memory.SerializeToString(deterministic=True)
        digest.update(len(data).to_bytes(4))
        digest.update(data)
    return digest.digest()
