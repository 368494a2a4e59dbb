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
import json
import os
import time
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Literal, Self, TypeVar, Unpack
from urllib.parse import quote

import grpc
from google.protobuf.field_mask_pb2 import FieldMask

from memoryranker import messages
from memoryranker.errors import RankerRpcError, Violation, from_rpc_error
from memoryranker.ingest import IngestRejection, IngestResult, ingest
from memoryranker.messages import (
    FilterParts,
    LoadOptions,
    MemoryFields,
    RankOptions,
    load_model_request,
    memory,
    rank_request,
    rollback_model_request,
)
from memoryranker.v1 import (
    admin_pb2,
    admin_pb2_grpc,
    feedback_pb2,
    memory_pb2,
    memory_pb2_grpc,
    ranker_pb2,
    ranker_pb2_grpc,
    types_pb2,
)

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

Response = TypeVar("Response")

_LOADING_PAUSE = 0.1
"""Seconds between two looks whether a server that is up has loaded its memories."""

# Safe to send twice: reads, and what carries a request_id.
_RETRIED = {
    "RankerService": ("Rank", "ReportUse", "ReportOutput", "RateMemory", "GetPacket", "ExplainMiss"),
    "MemoryService": (
        "UpsertMemories",
        "GetMemory",
        "ListMemories",
        "UpdateMemory",
        "DeleteMemories",
        "ListNamespaces",
        "ScoreImportance",
    ),
    "AdminService": ("GetStatus", "Audit", "ListModels"),
}
_SERVICE_CONFIG = {
    "methodConfig": [
        {
            "name": [
                {"service": f"memoryranker.v1.{service}", "method": method}
                for service, methods in _RETRIED.items()
                for method in methods
            ],
            "retryPolicy": {
                "maxAttempts": 5,
                "initialBackoff": "0.05s",
                "maxBackoff": "1s",
                "backoffMultiplier": 2,
                # CANCELLED: what grpc makes of a call that crosses a stopping server's goodbye.
                "retryableStatusCodes": ["UNAVAILABLE", "CANCELLED"],
            },
        }
    ]
}


def default_address(environ: Mapping[str, str]) -> str:
    """Where a server listens that was told nothing else, as the server itself works it out from its environment."""
    if address := environ.get("MEMORY_RANKER_LISTEN"):
        return address
    folder = environ.get("XDG_RUNTIME_DIR") or environ.get("MEMORY_RANKER_DATA")
    if not folder:
        home = environ.get("XDG_DATA_HOME") or f"{environ.get('HOME') or os.path.expanduser('~')}/.local/share"
        folder = f"{home}/memory-ranker"
    return f"unix:{folder}/memory-ranker.sock"


class Client:
    """Calls one server over one channel. Safe to share between threads; not across a fork.

    `address` is unix:PATH or HOST:PORT; unset means MEMORY_RANKER_LISTEN, else the server's default socket. `timeout`
    is each call's deadline in seconds; with `wait_for_ready` a call waits for a server that is not up yet until then,
    instead of failing at once. `max_message_bytes` must be raised where the server's was. Every method raises
    RankerRpcError when its call fails.
    """

    def __init__(
        self,
        address: str | None = None,
        *,
        timeout: float = 5.0,
        wait_for_ready: bool = False,
        max_message_bytes: int = 4_194_304,
    ) -> None:
        self.address = address or default_address(os.environ)
        self._timeout = timeout
        self._wait_for_ready = wait_for_ready
        self._channel = grpc.insecure_channel(
            _target(self.address),
            options=[
                # A proxy for the web has no business between two processes of one machine.
                ("grpc.enable_http_proxy", 0),
                ("grpc.enable_retries", 1),
                ("grpc.service_config", json.dumps(_SERVICE_CONFIG)),
                ("grpc.max_receive_message_length", max_message_bytes),
                # A server of this machine that was restarted is back soon; the library's own pauses grow to minutes.
                ("grpc.initial_reconnect_backoff_ms", 50),
                ("grpc.min_reconnect_backoff_ms", 50),
                ("grpc.max_reconnect_backoff_ms", 1000),
            ],
        )
        self._ranker = ranker_pb2_grpc.RankerServiceStub(self._channel)
        self._memory = memory_pb2_grpc.MemoryServiceStub(self._channel)
        self._admin = admin_pb2_grpc.AdminServiceStub(self._channel)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Closes the channel; calls under way are cancelled."""
        self._channel.close()

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
        `on_progress` is called after each acknowledgement; the result counts what is durable and rankable. `timeout` is
        how many seconds may pass without an acknowledgement.
        """
        result = IngestResult(stream_id or _new_id())
        ingest(
            self._memory.IngestMemories,
            self.address,
            namespace,
            memories,
            result,
            chunk_size=chunk_size,
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

    def export_log(self, namespace: str, *, timeout: float | None = None) -> Iterator[bytes]:
        """What is known of a namespace besides its memories: packets, reports, ratings and importances, as JSON Lines
        in pieces of whole lines. `timeout` is for all of it."""
        request = admin_pb2.ExportLogRequest(namespace=namespace)
        try:
            for piece in self._admin.ExportLog(request, timeout=timeout, wait_for_ready=self._wait_for_ready or None):
                yield piece.chunk
        except grpc.RpcError as error:
            raise from_rpc_error(error, self.address) from error

    def import_log(self, namespace: str, chunk: bytes, *, timeout: float | None = None) -> admin_pb2.ImportLogResponse:
        """Takes one piece of whole lines in that `export_log` gave, into any namespace. Rows that are there already
        change nothing, so it is safe to do again."""
        request = admin_pb2.ImportLogRequest(namespace=namespace, chunk=chunk)
        return self._call(self._admin.ImportLog, iter([request]), timeout)

    def status(self, namespace: str = "", *, timeout: float | None = None) -> admin_pb2.GetStatusResponse:
        """How the server stands, and one namespace."""
        return self._call(self._admin.GetStatus, admin_pb2.GetStatusRequest(namespace=namespace), timeout)

    def backup(self, path: str, *, timeout: float | None = None) -> admin_pb2.BackupResponse:
        """Has the server copy its store to the folder `path`, absolute, which must not exist or be empty. A copy that
        is not made by the deadline is given up."""
        return self._call(self._admin.Backup, admin_pb2.BackupRequest(path=path), timeout)

    def reindex(
        self, embedder: str = "", namespace: str = "", *, timeout: float | None = None
    ) -> Iterator[admin_pb2.ReindexResponse]:
        """Has every memory embedded again, and tells how far it is. Without `embedder` by the server's own, in place;
        vectors of another serve once the server is started with it. `timeout` is for all of it."""
        request = admin_pb2.ReindexRequest(namespace=namespace, embedder=embedder)
        try:
            yield from self._admin.Reindex(request, timeout=timeout, wait_for_ready=self._wait_for_ready or None)
        except grpc.RpcError as error:
            raise from_rpc_error(error, self.address) from error

    def audit(
        self,
        namespace: str = "",
        *,
        window: datetime.timedelta | None = None,
        importance: bool = False,
        timeout: float | None = None,
    ) -> admin_pb2.AuditResponse:
        """What is wrong with the feeding of a namespace, or of the whole store, and what to do; with `importance` also
        how importances moved, and whether some memories get lower ones for equal use."""
        request = admin_pb2.AuditRequest(namespace=namespace, importance=importance)
        if window is not None:
            request.window.FromTimedelta(window)
        return self._call(self._admin.Audit, request, timeout)

    def rescore(
        self, namespace: str = "", *, apply: bool = False, timeout: float | None = None
    ) -> admin_pb2.RescoreResponse:
        """How importances move by what was used; written only with `apply`."""
        return self._call(self._admin.Rescore, admin_pb2.RescoreRequest(namespace=namespace, apply=apply), timeout)

    def restore_scores(self, run_id: str, *, timeout: float | None = None) -> admin_pb2.RestoreScoresResponse:
        """Brings back the scores from before a rescore."""
        return self._call(self._admin.RestoreScores, admin_pb2.RestoreScoresRequest(run_id=run_id), timeout)

    def prune(
        self,
        namespace: str = "",
        *,
        older_than: datetime.timedelta | None = None,
        max_bytes: int | None = None,
        dry_run: bool = False,
        timeout: float | None = None,
    ) -> admin_pb2.PruneResponse:
        """Removes old packets and their reports."""
        request = admin_pb2.PruneRequest(namespace=namespace, max_bytes=max_bytes, dry_run=dry_run)
        if older_than is not None:
            request.older_than.FromTimedelta(older_than)
        return self._call(self._admin.Prune, request, timeout)

    def purge_namespace(self, namespace: str, *, timeout: float | None = None) -> admin_pb2.PurgeNamespaceResponse:
        """Removes a namespace with everything in it."""
        request = admin_pb2.PurgeNamespaceRequest(namespace=namespace, confirm_namespace=namespace)
        return self._call(self._admin.PurgeNamespace, request, timeout)

    def models(self, *, timeout: float | None = None) -> Iterator[admin_pb2.ListModelsResponse]:
        """The models in the registry, newest first, page by page; the first page has the history of roles too."""
        request = admin_pb2.ListModelsRequest()
        while True:
            page = self._call(self._admin.ListModels, request, timeout)
            yield page
            if not page.next_page_token:
                return
            request.page_token = page.next_page_token

    def model(self, version: str, *, timeout: float | None = None) -> admin_pb2.GetModelResponse:
        """One model with its files as a tar archive."""
        return self._call(self._admin.GetModel, admin_pb2.GetModelRequest(version=version), timeout)

    def load_model(
        self, path: str = "", *, timeout: float | None = None, **options: Unpack[LoadOptions]
    ) -> admin_pb2.LoadModelResponse:
        """Has a model verified and gives it a role: one of `path` (as the server sees it), `archive` (the bytes of a
        tar archive) and `version` (of the registry)."""
        return self._call(self._admin.LoadModel, load_model_request(path, **options), timeout)

    def rollback_model(
        self, version: str = "", *, reason: str = "", timeout: float | None = None
    ) -> admin_pb2.RollbackModelResponse:
        """Goes back to a version that has served, by default the one before."""
        return self._call(self._admin.RollbackModel, rollback_model_request(version, reason), timeout)

    def _call(
        self,
        method: grpc.UnaryUnaryMultiCallable[Any, Response] | grpc.StreamUnaryMultiCallable[Any, Response],
        request: Any,
        timeout: float | None,
    ) -> Response:
        end = time.monotonic() + (self._timeout if timeout is None else timeout)
        while True:
            try:
                return method(request, timeout=end - time.monotonic(), wait_for_ready=self._wait_for_ready or None)
            except grpc.RpcError as error:
                refusal = from_rpc_error(error, self.address)
                is_loading = self._wait_for_ready and refusal.reason == "NOT_READY"
                if not is_loading or time.monotonic() + _LOADING_PAUSE > end:
                    raise refusal from error
            time.sleep(_LOADING_PAUSE)


def _new_id() -> str:
    return uuid.uuid4().hex


def _target(address: str) -> str:
    """gRPC's own name for the address: a socket's path is part of a URI there."""
    if not address.startswith("unix:"):
        return address
    path = os.path.abspath(os.path.expanduser(address.removeprefix("unix:").removeprefix("//")))
    return f"unix:{quote(path)}"
