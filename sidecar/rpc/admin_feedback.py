"""What an operator does about feedback: rescore and restore, prune, purge, audit."""

from __future__ import annotations

import math
from collections.abc import Callable

import grpc
from memoryranker.v1 import admin_pb2, admin_pb2_grpc

from sidecar.audit import importance
from sidecar.audit.importance import Evidence, Gap, Trend
from sidecar.audit.verdict import Verdict, judge
from sidecar.domain import DAY, Micros
from sidecar.errors import Violations
from sidecar.feedback.rescore import Rescorer
from sidecar.feedback.rescoring import Move
from sidecar.importance.language import language_of
from sidecar.rpc.interceptors import deadline_check
from sidecar.rpc.outgoing import set_time
from sidecar.rpc.validation import ID_BYTES, NAMESPACE_BYTES, check_text, read_duration, shown
from sidecar.store.audit_sql import Scope
from sidecar.store.store import Store

MOST_MOVES = 1_000
EVIDENCE = {each: getattr(admin_pb2, f"EVIDENCE_{each.name}") for each in Evidence}
VERDICTS = {each: getattr(admin_pb2, f"AUDIT_VERDICT_{each.name}") for each in Verdict}


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
        found = judge(self._store.audit(Scope(request.namespace, since), self._min_reported), self._min_reported)
        trends: list[Trend] = []
        gaps: list[Gap] = []
        if request.importance:
            runs, judged = self._store.audit_importance(request.namespace, language_of)
            trends, gaps = importance.trends(runs), importance.gaps(judged)
        return admin_pb2.AuditResponse(
            verdict=VERDICTS[found.verdict],
            findings=[*found.findings, *importance.findings(gaps)],
            figures=[
                admin_pb2.AuditFigure(name=figure.name, about=figure.about, value=figure.value)
                for figure in found.figures
            ],
            importance_trends=[_trend(each) for each in trends],
            importance_gaps=[_gap(each) for each in gaps],
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
                days = age / DAY
                bad.add(
                    "older_than",
                    f"is {days:g} days; the log of the last {self._keep / DAY:g} days is kept for training: ask for "
                    "more, or lower prune_keep_days",
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


def _trend(trend: Trend) -> admin_pb2.ImportanceTrend:
    made = admin_pb2.ImportanceTrend(
        namespace=trend.namespace,
        memory_count=trend.memories,
        move=trend.move,
        low=_finite(trend.low),
        high=_finite(trend.high),
        evidence=EVIDENCE[trend.evidence],
    )
    for run in trend.runs:
        row = made.runs.add(run_id=run.run_id, moved_count=run.moved, before=run.before, after=run.after)
        set_time(row.time, run.create_time)
    return made


def _gap(gap: Gap) -> admin_pb2.ImportanceGap:
    is_told = gap.evidence is not Evidence.INSUFFICIENT
    return admin_pb2.ImportanceGap(
        dimension=gap.dimension,
        group=gap.group,
        memory_count=gap.memories,
        gap=gap.gap if is_told else None,
        low=_finite(gap.low),
        high=_finite(gap.high),
        evidence=EVIDENCE[gap.evidence],
    )


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None
