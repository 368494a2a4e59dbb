"""Sends a long stream of memories, and goes on where it stood when the connection or the server breaks.

The caller's thread reads the memories and sends chunks while the window has room; one thread of its own waits for
answers, so that a server that says nothing is noticed. What is not acknowledged is kept, and sent again after a break:
the server knows a chunk that it has taken in already.
"""

from __future__ import annotations

import queue
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import grpc

from memoryranker.errors import RankerRpcError, from_rpc_error
from memoryranker.messages import as_memory
from memoryranker.v1 import memory_pb2, types_pb2

MOST_IN_A_CHUNK = 1_000
CHUNK_BYTES = 1 << 20
"""A chunk is closed before it grows beyond: far below what a server takes in one message."""
AROUND_BYTES = 64
"""What a message takes beside the one memory in it: less than this."""
FIRST_PAUSE = 0.05
LONGEST_PAUSE = 1.0
"""Seconds between attempts to reach a server again."""

_BROKEN = (grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.CANCELLED)
"""How a stream ends whose server or connection went away; a stopping server cancels one that waits."""

Send = Callable[[Iterator[memory_pb2.IngestMemoriesRequest]], Any]


@dataclass(frozen=True, slots=True)
class IngestRejection:
    """A memory that was refused: its position in the stream, from 0, its id, and why."""

    position: int
    memory_id: str
    message: str


@dataclass(slots=True)
class IngestResult:
    """What became of a stream so far: of the memories that the server has acknowledged, and of those that were refused
    before they were sent. In the end `rejections` are in the order of the stream."""

    stream_id: str
    acknowledged: int = 0
    created: int = 0
    updated: int = 0
    unchanged: int = 0
    score_version: int = 0
    rejections: list[IngestRejection] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class _Chunk:
    request: memory_pb2.IngestMemoriesRequest
    start: int
    """Memories before it."""


def ingest(
    send: Send,
    address: str,
    namespace: str,
    memories: Iterable[types_pb2.Memory | Mapping[str, Any]],
    result: IngestResult,
    *,
    chunk_size: int,
    most_bytes: int,
    timeout: float,
    on_progress: Callable[[IngestResult], None] | None,
) -> None:
    """Sends all memories and writes what became of them into `result`. One that no message of `most_bytes` holds is
    refused here: sent, it would end the stream.

    Raises RankerRpcError once `timeout` seconds have passed without an acknowledgement, or if the stream is refused.
    """
    if not 1 <= chunk_size <= MOST_IN_A_CHUNK:
        raise ValueError(f"chunk_size is {chunk_size}; must be 1 to {MOST_IN_A_CHUNK:,}")
    chunks = _chunks(memories, chunk_size, most_bytes, result.rejections.append)
    unacknowledged: deque[_Chunk] = deque()
    done_sequence = 0
    pause, last_time = FIRST_PAUSE, time.monotonic()
    while True:
        connection = _Connection(send, address, timeout)
        try:
            opened = connection.open(namespace, result.stream_id)
            if opened.acknowledged_sequence < done_sequence:
                raise RankerRpcError(
                    grpc.StatusCode.DATA_LOSS,
                    f"the server has acknowledged chunk {done_sequence} of stream {result.stream_id!r}, and now knows "
                    f"only {opened.acknowledged_sequence}: its store was put back or purged; ingest everything again",
                    reason="STREAM_LOST",
                )
            for chunk in unacknowledged:
                connection.send(chunk.request)
            while True:
                while len(unacknowledged) < opened.window and (following := next(chunks, None)) is not None:
                    unacknowledged.append(following)
                    connection.send(following.request)
                if not unacknowledged:
                    result.rejections.sort(key=lambda each: each.position)
                    return
                answer = connection.receive()
                done = unacknowledged.popleft()
                done_sequence = done.request.sequence
                _note(result, done, answer)
                pause, last_time = FIRST_PAUSE, time.monotonic()
                if on_progress is not None:
                    on_progress(result)
        except grpc.RpcError as error:
            if error.code() not in _BROKEN or time.monotonic() - last_time + pause > timeout:
                raise from_rpc_error(error, address) from error
            time.sleep(pause)
            pause = min(2 * pause, LONGEST_PAUSE)
        finally:
            connection.close()


def _note(result: IngestResult, chunk: _Chunk, answer: memory_pb2.IngestMemoriesResponse) -> None:
    result.acknowledged += len(chunk.request.memories)
    result.created += answer.created_count
    result.updated += answer.updated_count
    result.unchanged += answer.unchanged_count
    result.score_version = max(result.score_version, answer.score_version)
    result.rejections.extend(
        IngestRejection(chunk.start + each.index, each.result.memory_id, each.result.status.message)
        for each in answer.rejections
    )


def _chunks(
    memories: Iterable[types_pb2.Memory | Mapping[str, Any]],
    chunk_size: int,
    most_bytes: int,
    refuse: Callable[[IngestRejection], None],
) -> Iterator[_Chunk]:
    """Cuts the stream, always at the same places for the same memories. Refuses what no message holds."""
    start = size = 0
    request = memory_pb2.IngestMemoriesRequest(sequence=1)
    for position, each in enumerate(memories):
        memory = as_memory(each)
        weight = memory.ByteSize()
        is_too_large = weight + AROUND_BYTES > most_bytes
        if request.memories and (is_too_large or len(request.memories) == chunk_size or size + weight > CHUNK_BYTES):
            yield _Chunk(request, start)
            size = 0
            request = memory_pb2.IngestMemoriesRequest(sequence=request.sequence + 1)
        if is_too_large:
            most = most_bytes - AROUND_BYTES
            words = f"has {weight:,} bytes; a message holds a memory of at most {most:,}: divide it into several"
            refuse(IngestRejection(position, memory.id, words))
            continue
        if not request.memories:
            start = position
        request.memories.append(memory)
        size += weight
    if request.memories:
        yield _Chunk(request, start)


class _Connection:
    """One attempt at the stream: what is sent goes into a queue that gRPC reads, answers come out of another."""

    def __init__(self, send: Send, address: str, timeout: float) -> None:
        self._address = address
        self._timeout = timeout
        self._sending: queue.SimpleQueue[memory_pb2.IngestMemoriesRequest | None] = queue.SimpleQueue()
        self._received: queue.SimpleQueue[memory_pb2.IngestMemoriesResponse | Exception] = queue.SimpleQueue()
        self._call = send(iter(self._sending.get, None))
        self._reader = threading.Thread(target=self._read, name="ingest-answers", daemon=True)
        self._reader.start()

    def open(self, namespace: str, stream_id: str) -> memory_pb2.IngestMemoriesResponse:
        """Asks where to go on."""
        self.send(memory_pb2.IngestMemoriesRequest(namespace=namespace, stream_id=stream_id))
        return self.receive()

    def send(self, request: memory_pb2.IngestMemoriesRequest) -> None:
        """Sends on, without waiting."""
        self._sending.put(request)

    def receive(self) -> memory_pb2.IngestMemoriesResponse:
        """The next answer. Raises grpc.RpcError as the call does, RankerRpcError if none comes in time."""
        try:
            found = self._received.get(timeout=self._timeout)
        except queue.Empty as error:
            raise RankerRpcError(
                grpc.StatusCode.DEADLINE_EXCEEDED, f"{self._address} acknowledged nothing for {self._timeout:g} s"
            ) from error
        if isinstance(found, Exception):
            raise found
        return found

    def close(self) -> None:
        """Ends the stream, whatever is under way."""
        self._sending.put(None)
        self._call.cancel()
        self._reader.join()

    def _read(self) -> None:
        try:
            for answer in self._call:
                self._received.put(answer)
        except grpc.RpcError as error:
            # The call is its own error. Without its frames, which hold it, it goes with this connection: left to the
            # garbage collector at Python's end, it might wait for a thread of gRPC's that has stopped by then.
            self._received.put(error.with_traceback(None))
        else:
            words = "the server ended the stream before it had acknowledged everything"
            self._received.put(RankerRpcError(grpc.StatusCode.INTERNAL, words))
