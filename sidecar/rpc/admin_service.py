"""AdminService: what an operator asks and does."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import grpc
from memoryranker.v1 import admin_pb2

from sidecar import __version__
from sidecar.domain import Micros
from sidecar.errors import SettingsError, Violations
from sidecar.features import FEATURE_NAMES, SCHEMA_HASH
from sidecar.feedback.rescore import Rescorer
from sidecar.models import Models
from sidecar.reindex import Reindexer
from sidecar.rpc.admin_feedback import FeedbackAdmin
from sidecar.rpc.admin_models import ModelAdmin
from sidecar.rpc.interceptors import deadline_check
from sidecar.rpc.log_transfer import export_log, import_log
from sidecar.rpc.outgoing import set_time
from sidecar.rpc.stopping import Stopping
from sidecar.rpc.validation import NAMESPACE_BYTES, check_text
from sidecar.store.store import Store
from sidecar.weights import WeightsHolder

PATH_BYTES = 4_096


@dataclass(frozen=True, slots=True)
class ServerFacts:
    """What does not change while the server runs. `embedder` is name@fingerprint; `listen` the address for clients."""

    listen: str
    embedder: str
    dimension: int
    start_time: Micros
    scores_importance: bool


class AdminService(ModelAdmin, FeedbackAdmin):
    """Answers what `admin.proto` says."""

    def __init__(
        self,
        store: Store,
        weights: WeightsHolder,
        models: Models,
        facts: ServerFacts,
        clock: Callable[[], Micros],
        rescorer: Rescorer,
        min_reported_sessions: int,
        keep: Micros,
        reindexer: Reindexer,
        stopping: Stopping,
    ) -> None:
        super().__init__(store, clock, rescorer, min_reported_sessions, keep)
        self._weights = weights
        self._models = models
        self._facts = facts
        self._reindexer = reindexer
        self._stopping = stopping

    def GetStatus(
        self, request: admin_pb2.GetStatusRequest, context: grpc.ServicerContext
    ) -> admin_pb2.GetStatusResponse:
        """How the server stands now."""
        bad = Violations()
        check_text(bad, "namespace", request.namespace, 0, NAMESPACE_BYTES)
        bad.raise_if_any()
        facts, numbers = self._facts, self._store.numbers()
        response = admin_pb2.GetStatusResponse(
            server_version=__version__,
            schema_version=self._store.schema_version,
            embedder=facts.embedder,
            dimension=facts.dimension,
            model_version=self._weights.active.version,
            feature_schema_hash=SCHEMA_HASH,
            feature_names=FEATURE_NAMES,
            memory_count=numbers.memory_count,
            namespace_count=numbers.namespace_count,
            packet_count=numbers.packet_count,
            reported_packet_count=numbers.reported_packet_count,
            store_bytes=numbers.byte_count,
            problems=[*self._store.problems(), *self._models.problems()],
            presets=self._weights.names,
            listen=facts.listen,
            log_bytes_per_day=self._store.log_growth(self._clock()),
        )
        work = self._weights.at_work
        if work.canary is not None:
            response.canary_version, response.canary_share = work.canary.version, work.share
        if work.shadow is not None:
            response.shadow_version = work.shadow.version
        set_time(response.start_time, facts.start_time)
        if request.namespace:
            own = self._store.namespace_numbers(request.namespace)
            response.namespace.namespace = own.namespace
            response.namespace.memory_count = own.memory_count
            response.namespace.score_version = own.score_version
            response.namespace.packet_count = own.packet_count
            response.namespace.reported_packet_count = own.reported_packet_count
            if facts.scores_importance:
                response.namespace.unscored_count = own.unscored_count
        return response

    def Reindex(
        self, request: admin_pb2.ReindexRequest, context: grpc.ServicerContext
    ) -> Iterator[admin_pb2.ReindexResponse]:
        """Batch by batch, each durable before it is told."""
        bad = Violations()
        check_text(bad, "namespace", request.namespace, 0, NAMESPACE_BYTES)
        check_text(bad, "embedder", request.embedder, 0, PATH_BYTES)
        bad.raise_if_any()
        try:
            target = self._reindexer.target(request.embedder)
        except SettingsError as error:
            bad.add("embedder", error.message.removeprefix("embedder: "))
        bad.raise_if_any()
        check = deadline_check(context)
        for done, total in self._reindexer.run(target, request.namespace):
            yield admin_pb2.ReindexResponse(done_count=done, total_count=total)
            check()
            with self._stopping.waiting(context):
                pass  # ends here if the server stops

    def ExportLog(
        self, request: admin_pb2.ExportLogRequest, context: grpc.ServicerContext
    ) -> Iterator[admin_pb2.ExportLogResponse]:
        """Page by page, each as of one moment."""
        return export_log(self._store, request)

    def ImportLog(
        self, request_iterator: Iterator[admin_pb2.ImportLogRequest], context: grpc.ServicerContext
    ) -> admin_pb2.ImportLogResponse:
        """Message by message, each durable before the next is read."""
        return import_log(self._store, request_iterator)

    def Backup(self, request: admin_pb2.BackupRequest, context: grpc.ServicerContext) -> admin_pb2.BackupResponse:
        """A copy as of one moment. It is given up once nobody waits for it any more."""
        bad = Violations()
        check_text(bad, "path", request.path, 1, PATH_BYTES)
        if request.path and not Path(request.path).is_absolute():
            bad.add("path", f"is {request.path!r}; must be absolute, for it is the server that writes there")
        bad.raise_if_any()
        made = self._store.backup(Path(request.path), self._clock(), lambda: not context.is_active())
        response = admin_pb2.BackupResponse(byte_count=made.byte_count)
        set_time(response.snapshot_time, made.snapshot_time)
        return response
