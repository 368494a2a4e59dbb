"""A thin client: Python's values in, the API's messages out. Needs grpcio and protobuf, and nothing of the server.

    with Client() as client:
        packet = client.rank("me", "fix the login bug", session_id="s1")
        ...
        client.report_use(packet.packet_id, used=["m7"])

Every call has a deadline. A call that did not reach the server is tried again, safely: writes and Rank carry a
request_id, so that one which did arrive counts once.
"""

from __future__ import annotations

import datetime
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Literal, Unpack

from google.protobuf.field_mask_pb2 import FieldMask

from memoryranker import messages
from memoryranker.admin import AdminCalls
from memoryranker.connection import default_address
from memoryranker.errors import RankerRpcError, Violation
from memoryranker.ingest import IngestRejection, IngestResult, ingest
from memoryranker.messages import (
    FilterParts,
    MemoryFields,
    RankOptions,
    load_model_request,
    memory,
    rank_request,
    rollback_model_request,
)
from memoryranker.v1 import feedback_pb2, memory_pb2, ranker_pb2, types_pb2

__all__ = [
    "Client",
    "FilterParts",
    "IngestRejection",
    "IngestResult",
    "MemoryFields",
    "RankOptions",
    "RankerRpcError",
    "Violation",
    "default_address",
    "load_model_request",
    "memory",
    "rank_request",
    "rollback_model_request",
]


class Client(AdminCalls):
    """Calls one server over one channel. Safe to share between threads; not across a fork.

    `address` is unix:PATH or HOST:PORT; unset means MEMORY_RANKER_LISTEN, else the server's default socket. `timeout`
    is each call's deadline in seconds, until which it waits for a server that still loads; with `wait_for_ready` also
    for one that is not up yet, instead of failing at once. `max_message_bytes` must be raised where the server's was.
    Every method raises RankerRpcError when its call fails.
    """

    def rank(
        self, namespace: str, task: str = "", *, timeout: float | None = None, **options: Unpack[RankOptions]
    ) -> ranker_pb2.RankResponse:
        """Ranks the namespace's memories, or `candidates`, for the task."""
        request = rank_request(namespace, task, **options)
        if not request.request_id and not request.dry_run:
            request.request_id = _new_id()
        return self._call(self._ranker.Rank, request, timeout)

    def report_use(
        self,
        packet_id: str,
        used: Iterable[str] = (),
        *,
        unused: Iterable[str] = (),
        shown: Iterable[str] = (),
        complete: bool | None = None,
        channel: Literal["explicit", "inferred", "packet", "echo"] = "explicit",
        outcome: float | None = None,
        confidence: float | None = None,
        sequence: int | None = None,
        report_time: datetime.datetime | None = None,
        namespace: str | None = None,
        agent_id: str = "",
        request_id: str = "",
        timeout: float | None = None,
    ) -> feedback_pb2.ReportUseResponse:
        """Says which memories of a packet were used."""
        request = feedback_pb2.ReportUseRequest(
            namespace=namespace,
            packet_id=packet_id,
            channel=f"CHANNEL_{channel.upper()}",
            used_memory_ids=messages.names(used),
            unused_memory_ids=messages.names(unused),
            shown_memory_ids=messages.names(shown),
            outcome=outcome,
            confidence=confidence,
            sequence=sequence,
            report_time=messages.timestamp(report_time) if report_time else None,
            agent_id=agent_id,
            request_id=request_id or _new_id(),
        )
        if complete is not None:
            request.complete = complete
        return self._call(self._ranker.ReportUse, request, timeout)

    def report_output(
        self,
        packet_id: str,
        output: str = "",
        *,
        tool_calls: Iterable[tuple[str, str]] = (),
        shown: Iterable[str] = (),
        namespace: str | None = None,
        agent_id: str = "",
        request_id: str = "",
        timeout: float | None = None,
    ) -> feedback_pb2.ReportOutputResponse:
        """Hands over what the agent said, and did as (name, arguments); the server finds the uses in it."""
        request = feedback_pb2.ReportOutputRequest(
            namespace=namespace,
            packet_id=packet_id,
            output=output,
            tool_calls=[feedback_pb2.ToolCall(name=name, arguments=arguments) for name, arguments in tool_calls],
            shown_memory_ids=messages.names(shown),
            agent_id=agent_id,
            request_id=request_id or _new_id(),
        )
        return self._call(self._ranker.ReportOutput, request, timeout)

    def rate(
        self,
        namespace: str,
        memory_id: str,
        rating: Literal["helpful", "unhelpful", "withdrawn"],
        *,
        agent_id: str = "",
        reason: str = "",
        request_id: str = "",
        timeout: float | None = None,
    ) -> feedback_pb2.RateMemoryResponse:
        """Marks a memory, or takes the rater's earlier mark back."""
        request = feedback_pb2.RateMemoryRequest(
            namespace=namespace,
            memory_id=memory_id,
            rating=f"RATING_{rating.upper()}",
            agent_id=agent_id,
            reason=reason,
            request_id=request_id or _new_id(),
        )
        return self._call(self._ranker.RateMemory, request, timeout)

    def get_packet(
        self, namespace: str, packet_id: str, *, timeout: float | None = None
    ) -> ranker_pb2.GetPacketResponse:
        """A packet as it was served, with the reports on it."""
        request = ranker_pb2.GetPacketRequest(namespace=namespace, packet_id=packet_id)
        return self._call(self._ranker.GetPacket, request, timeout)

    def explain_miss(
        self,
        namespace: str,
        memory_id: str,
        *,
        packet_id: str | None = None,
        request: ranker_pb2.RankRequest | None = None,
        timeout: float | None = None,
    ) -> ranker_pb2.ExplainMissResponse:
        """Why a memory was not in a packet, or would not be in the answer to `request` (see `rank_request`)."""
        asked = ranker_pb2.ExplainMissRequest(
            namespace=namespace, memory_id=memory_id, packet_id=packet_id, request=request
        )
        return self._call(self._ranker.ExplainMiss, asked, timeout)

    def upsert(
        self,
        namespace: str,
        memories: Iterable[types_pb2.Memory | Mapping[str, Any]],
        *,
        request_id: str = "",
        timeout: float | None = None,
    ) -> memory_pb2.UpsertMemoriesResponse:
        """Writes up to 1,000 memories: messages, or mappings with an id and MemoryFields. A bad one is refused alone:
        look at the results."""
        request = memory_pb2.UpsertMemoriesRequest(
            namespace=namespace,
            memories=[messages.as_memory(each) for each in memories],
            request_id=request_id or _new_id(),
        )
        return self._call(self._memory.UpsertMemories, request, timeout)

    def ingest(
        self,
        namespace: str,
        memories: Iterable[types_pb2.Memory | Mapping[str, Any]],
        *,
        stream_id: str | None = None,
        chunk_size: int = 100,
        on_progress: Callable[[IngestResult], None] | None = None,
        timeout: float | None = None,
    ) -> IngestResult:
        """Writes any number of memories, and goes on where it stood if the server is gone for a while.

        They are read as they are sent, and sent again only if they were not acknowledged. A `stream_id` of your own
        lets another process resume the stream within 24 hours, with the same memories and `chunk_size` (1 to 1,000).
        `on_progress` is called after each acknowledgement; the result counts what is durable and rankable. A bad memory
        is refused alone, also one that is larger than a message: look at `rejections`. `timeout` is how many seconds
        may pass without an acknowledgement.
        """
        result = IngestResult(stream_id or _new_id())
        ingest(
            self._memory.IngestMemories,
            self.address,
            namespace,
            memories,
            result,
            chunk_size=chunk_size,
            most_bytes=self._max_message_bytes,
            timeout=self._timeout if timeout is None else timeout,
            on_progress=on_progress,
        )
        return result

    def get(
        self, namespace: str, memory_id: str, *, include_embedding: bool = False, timeout: float | None = None
    ) -> types_pb2.Memory:
        """One memory."""
        request = memory_pb2.GetMemoryRequest(
            namespace=namespace, memory_id=memory_id, include_embedding=include_embedding
        )
        return self._call(self._memory.GetMemory, request, timeout).memory

    def list(
        self,
        namespace: str,
        filter: types_pb2.Filter | FilterParts | None = None,
        *,
        page_size: int | None = None,
        include_embedding: bool = False,
        timeout: float | None = None,
    ) -> Iterator[types_pb2.Memory]:
        """The namespace's memories in the order of their ids, fetched page by page while they are read."""
        request = memory_pb2.ListMemoriesRequest(
            namespace=namespace,
            filter=messages.as_filter(filter),
            page_size=page_size,
            include_embedding=include_embedding,
        )
        while True:
            page = self._call(self._memory.ListMemories, request, timeout)
            yield from page.memories
            if not page.next_page_token:
                return
            request.page_token = page.next_page_token

    def update(
        self,
        namespace: str,
        memory_id: str,
        *,
        request_id: str = "",
        timeout: float | None = None,
        **changes: Unpack[MemoryFields],
    ) -> memory_pb2.UpdateMemoryResponse:
        """Changes the named fields of a memory; None or an empty value clears a field."""
        request = memory_pb2.UpdateMemoryRequest(
            namespace=namespace,
            memory=memory(memory_id, **changes),
            update_mask=FieldMask(paths=changes),
            request_id=request_id or _new_id(),
        )
        return self._call(self._memory.UpdateMemory, request, timeout)

    def delete(
        self,
        namespace: str,
        memory_ids: Iterable[str] = (),
        *,
        filter: types_pb2.Filter | FilterParts | None = None,
        request_id: str = "",
        timeout: float | None = None,
    ) -> memory_pb2.DeleteMemoriesResponse:
        """Deletes memories by id or by filter."""
        request = memory_pb2.DeleteMemoriesRequest(
            namespace=namespace,
            memory_ids=messages.names(memory_ids),
            filter=messages.as_filter(filter),
            request_id=request_id or _new_id(),
        )
        return self._call(self._memory.DeleteMemories, request, timeout)

    def namespaces(
        self, *, page_size: int | None = None, timeout: float | None = None
    ) -> Iterator[memory_pb2.NamespaceSummary]:
        """The namespaces in the order of their names, fetched page by page while they are read."""
        request = memory_pb2.ListNamespacesRequest(page_size=page_size)
        while True:
            page = self._call(self._memory.ListNamespaces, request, timeout)
            yield from page.namespaces
            if not page.next_page_token:
                return
            request.page_token = page.next_page_token

    def score_importance(
        self,
        namespace: str,
        subjects: Iterable[memory_pb2.ImportanceSubject | Mapping[str, Any]],
        *,
        goals: Iterable[str] = (),
        projects: Iterable[str] = (),
        files: Iterable[str] = (),
        domain: str = "",
        timeout: float | None = None,
    ) -> memory_pb2.ScoreImportanceResponse:
        """What memories are worth by themselves; nothing is written. Each subject is a mapping with `memory`, itself a
        mapping with an id or a content, and with what the caller knows better, as `user_rating`."""
        request = memory_pb2.ScoreImportanceRequest(
            namespace=namespace,
            subjects=[messages.importance_subject(each) for each in subjects],
            context=types_pb2.Context(goals=goals, projects=projects, files=files),
            domain=domain,
        )
        return self._call(self._memory.ScoreImportance, request, timeout)


def _new_id() -> str:
    return uuid.uuid4().hex
