"""What an audit answers: the numbers of the log and of importances, and what they come to in words."""

from __future__ import annotations

import math

from memoryranker.v1 import admin_pb2

from sidecar.audit import importance
from sidecar.audit.importance import Evidence, Gap, Trend
from sidecar.audit.verdict import Verdict, judge
from sidecar.importance.language import language_of
from sidecar.rpc.outgoing import set_time
from sidecar.store.audit_sql import Scope
from sidecar.store.store import Store

EVIDENCE = {each: getattr(admin_pb2, f"EVIDENCE_{each.name}") for each in Evidence}
VERDICTS = {each: getattr(admin_pb2, f"AUDIT_VERDICT_{each.name}") for each in Verdict}


def answer(store: Store, scope: Scope, min_reported: int, *, with_importance: bool) -> admin_pb2.AuditResponse:
    """`min_reported` sessions with a report make that a memory has had its turns in reserved slots."""
    found = judge(store.audit(scope, min_reported), min_reported)
    trends: list[Trend] = []
    gaps: list[Gap] = []
    if with_importance:
        runs, judged = store.audit_importance(scope.namespace, language_of)
        trends, gaps = importance.trends(runs), importance.gaps(judged)
    return admin_pb2.AuditResponse(
        verdict=VERDICTS[found.verdict],
        findings=[*found.findings, *importance.findings(gaps)],
        figures=[
            admin_pb2.AuditFigure(name=figure.name, about=figure.about, value=figure.value) for figure in found.figures
        ],
        importance_trends=[_trend(each) for each in trends],
        importance_gaps=[_gap(each) for each in gaps],
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
