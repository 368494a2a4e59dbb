"""IngestMemories: takes in a long stream of memories, and acknowledges each chunk once it is durable and rankable.

A stream has one thread of the streams' pool, which writes one chunk after the other, and one of its own, which reads
the next chunk and embeds it meanwhile, outside every lock; only the write itself waits its turn at the store's writer,
in pieces small enough that no Rank waits long behind one.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import grpc
from memoryranker.v1 import memory_pb2, types_pb2

from sidecar.domain import Memory, Micros
from sidecar.errors import Violations
from sidecar.rpc.batch import MAX_BATCH, Batch, check_windows, read_batch
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

_TIMES = frozenset({"valid_from_time", "valid_until_time"})


@dataclass(frozen=True, slots=True)
class _Prepared:
    """A chunk that was read. `derived` is None for one that was taken in before."""

    chunk: Chunk
    batch: Batch
    derived: Mapping[str, Derived] | None


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
        first = opening if opening.sequence or opening.memories else None
        ahead = ThreadPoolExecutor(1, "stream")
        try:
            coming = ahead.submit(self._prepare, namespace, stream_id, requests, first)
            while True:
                with self._stopping.waiting(context):
                    prepared = coming.result()
                if prepared is None:
                    return
                coming = ahead.submit(self._prepare, namespace, stream_id, requests)
                yield self._take(namespace, prepared)
        finally:
            ahead.shutdown(wait=False)  # it may wait for the caller still, until this has ended

    def _next(self, requests: Requests, context: grpc.ServicerContext) -> memory_pb2.IngestMemoriesRequest | None:
        """The next message; None at the end."""
        with self._stopping.waiting(context):
            return _read(requests)

    def _prepare(
        self,
        namespace: str,
        stream_id: str,
        requests: Requests,
        request: memory_pb2.IngestMemoriesRequest | None = None,
    ) -> _Prepared | None:
        """The next chunk, which is `request` if that is there; None at the end. The chunk before it may be written
        meanwhile: what follows from contents holds whichever of them stands by then, see `Derived`."""
        if request is None and (request := _read(requests)) is None:
            return None
        _check_chunk(request, namespace, stream_id)
        chunk = Chunk(stream_id, request.sequence, _digest(request.memories))
        batch = read_batch(request.memories, self._dimension)
        if request.sequence <= self._store.acknowledged(namespace, stream_id, self._clock()):
            return _Prepared(chunk, batch, None)
        old = self._store.get_many(namespace, [memory_id for memory_id, _ in batch.patches])
        return _Prepared(chunk, batch, self._derive(namespace, batch.patches, old))

    def _take(self, namespace: str, prepared: _Prepared) -> memory_pb2.IngestMemoriesResponse:
        chunk, batch, derived = prepared.chunk, prepared.batch, prepared.derived
        outcome = self._store.ingested(namespace, chunk, self._clock())
        with_times = [each for each, fields in batch.patches if not _TIMES.isdisjoint(fields)]
        batch = check_windows(batch, self._store.get_many(namespace, with_times))
        if outcome is None:
            if derived is None:  # the store has forgotten the chunk meanwhile
                old = self._store.get_many(namespace, [memory_id for memory_id, _ in batch.patches])
                derived = self._derive(namespace, batch.patches, old)
            outcome = self._store.ingest(namespace, chunk, batch.patches, self._clock(), derived)
        response = memory_pb2.IngestMemoriesResponse(
            acknowledged_sequence=outcome.acknowledged_sequence,
            window=WINDOW,
            sequence=chunk.sequence,
            created_count=outcome.created,
            updated_count=outcome.updated,
            unchanged_count=outcome.unchanged,
            score_version=outcome.score_version,
        )
        for i, result in batch.refused.items():
            response.rejections.add(sequence=chunk.sequence, index=i, result=result)
        return response


def _read(requests: Requests) -> memory_pb2.IngestMemoriesRequest | None:
    try:
        return next(requests, None)
    except grpc.RpcError:
        # Nobody listens any more, so there is no one to tell.
        return None


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
