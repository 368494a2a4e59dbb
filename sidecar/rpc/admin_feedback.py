"""What an operator does about feedback: rescore and restore, prune, purge, audit."""

from __future__ import annotations

from collections.abc import Callable

import grpc
from memoryranker.v1 import admin_pb2, admin_pb2_grpc

from sidecar.domain import DAY, Micros
from sidecar.errors import Violations
from sidecar.feedback.rescore import Rescorer
from sidecar.feedback.rescoring import Move
from sidecar.plurals import counted
from sidecar.rpc.interceptors import deadline_check
from sidecar.rpc.validation import ID_BYTES, NAMESPACE_BYTES, check_text, read_duration, shown
from sidecar.store.audit_sql import Scope
from sidecar.store.store import Store

MOST_MOVES = 1_000


class FeedbackAdmin(admin_pb2_grpc.AdminServiceServicer):
    """The part of AdminService that is about feedback."""

    def __init__(
        self, store: Store, clock: Callable[[], Micros], rescorer: Rescorer, min_reported_sessions: int, keep: Micros
    ) -> None:
        """`min_reported_sessions` is from when on a memory has had its turns in reserved slots; younger packets than
        `keep` are never pruned."""
        self._keep = keep
        self._min_reported = min_reported_sessions
        self._store = store
        self._clock = clock
        self._rescorer = rescorer

    def Rescore(self, request: admin_pb2.RescoreRequest, context: grpc.ServicerContext) -> admin_pb2.RescoreResponse:
        """Shows what would change, or writes it in one piece."""
        bad = Violations()
        check_text(bad, "namespace", request.namespace, 0, NAMESPACE_BYTES)
        bad.raise_if_any()
        done = self._rescorer.run(request.namespace, apply=request.apply)
        return admin_pb2.RescoreResponse(
            run_id=done.run_id,
            memory_count=done.memory_count,
            moved_count=len(done.moves),
            moves=[_move(move) for move in done.moves[:MOST_MOVES]],
        )

    def RestoreScores(
        self, request: admin_pb2.RestoreScoresRequest, context: grpc.ServicerContext
    ) -> admin_pb2.RestoreScoresResponse:
        """Also undoes the runs after it."""
        bad = Violations()
        check_text(bad, "run_id", request.run_id, 1, ID_BYTES)
        bad.raise_if_any()
        return admin_pb2.RestoreScoresResponse(restored_count=self._rescorer.restore(request.run_id))

    def Audit(self, request: admin_pb2.AuditRequest, context: grpc.ServicerContext) -> admin_pb2.AuditResponse:
        """Numbers of the log, and what they come to in words."""
        bad = Violations()
        check_text(bad, "namespace", request.namespace, 0, NAMESPACE_BYTES)
        since = None
        if request.HasField("window"):
            since = self._clock() - read_duration(bad, "window", request.window)
        bad.raise_if_any()
        from sidecar.rpc import audits  # by the first audit: a start would take some 25 ms longer

        return audits.answer(
            self._store, Scope(request.namespace, since), self._min_reported, with_importance=request.importance
        )

    def Prune(self, request: admin_pb2.PruneRequest, context: grpc.ServicerContext) -> admin_pb2.PruneResponse:
        """What training may still need is kept, whatever is asked."""
        bad = Violations()
        check_text(bad, "namespace", request.namespace, 0, NAMESPACE_BYTES)
        now = self._clock()
        older_than = None
        if request.HasField("older_than"):
            age = read_duration(bad, "older_than", request.older_than)
            if not bad.found and age < self._keep:
                bad.add(
                    "older_than",
                    f"is {counted(age / DAY, 'day')}; the log of the last {counted(self._keep / DAY, 'day')} is kept "
                    "for training: ask for more, or lower prune_keep_days",
                )
            older_than = now - age
        if request.HasField("max_bytes") and request.max_bytes < 0:
            bad.add("max_bytes", f"is {request.max_bytes}; must be at least 0")
        if not request.HasField("older_than") and not request.HasField("max_bytes"):
            bad.add("older_than", "is unset, as is max_bytes; set one of them, or both")
        bad.raise_if_any()
        done = self._store.prune(
            request.namespace,
            older_than,
            request.max_bytes if request.HasField("max_bytes") else None,
            now - self._keep,
            deadline_check(context),
            dry_run=request.dry_run,
        )
        return admin_pb2.PruneResponse(
            packet_count=done.packets, report_count=done.reports, freed_bytes=done.freed_bytes
        )

    def PurgeNamespace(
        self, request: admin_pb2.PurgeNamespaceRequest, context: grpc.ServicerContext
    ) -> admin_pb2.PurgeNamespaceResponse:
        """Its name has to be said twice."""
        bad = Violations()
        check_text(bad, "namespace", request.namespace, 1, NAMESPACE_BYTES)
        if request.confirm_namespace != request.namespace:
            bad.add(
                "confirm_namespace",
                f"is {shown(request.confirm_namespace)}; must be namespace once more, {shown(request.namespace)}",
            )
        bad.raise_if_any()
        memories, packets = self._store.purge_namespace(request.namespace)
        return admin_pb2.PurgeNamespaceResponse(memory_count=memories, packet_count=packets)


def _move(move: Move) -> admin_pb2.ScoreMove:
    return admin_pb2.ScoreMove(
        namespace=move.standing.namespace,
        memory_id=move.standing.memory_id,
        from_score=move.from_score,
        to_score=move.to_score,
        reason=move.reason,
    )
