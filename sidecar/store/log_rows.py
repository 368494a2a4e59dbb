"""Rows of the log as JSON Lines, in both directions and bit for bit; docs/import.md describes them. Pure.

What comes in was written by anyone, so every value is checked. A number that is not there (NaN) is null; Python writes
and reads all other float64 exactly.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

from sidecar.domain import Channel, ImportanceLine, ImportancePart, Packet, PartName, Rating
from sidecar.formats.bounds import ID_BYTES, KIND_BYTES, NAMESPACE_BYTES, REQUEST_ID_BYTES, shown
from sidecar.store.counts import SessionUse
from sidecar.store.json_fields import JsonFields, written_time
from sidecar.store.log import LoggedRating, LoggedReport, LogRow, MemoryState, StorePriors
from sidecar.store.merge import MILLION, Report
from sidecar.store.packet_rows import read_packet, write_packet
from sidecar.store.packets import is_session_key
from sidecar.store.pruned import PrunedSession, PrunedUse

SESSION_KEY_BYTES = 2 + 256
"""What `session_key` makes of the longest id."""


def write_row(namespace: str, row: LogRow) -> bytes:
    """One line, with its end."""
    line = write_object(namespace, row)
    return json.dumps(line, ensure_ascii=False, separators=(",", ":"), allow_nan=False).encode() + b"\n"


def write_object(namespace: str, row: LogRow) -> dict[str, Any]:
    """The object of a line, without what is unset."""
    match row:
        case StorePriors():
            found = _write_priors(row)
        case PrunedSession():
            found = _write_session(row)
        case PrunedUse():
            found = _write_pruned_use(row)
        case MemoryState():
            found = _write_state(row)
        case LoggedRating():
            found = _write_rating(row)
        case Packet():
            found = "packet", write_packet(row)
        case LoggedReport():
            found = _write_report(row)
    kind, fields = found
    given = {name: value for name, value in fields.items() if value is not None}
    return {"type": kind, "namespace": namespace, **given}


def read_row(line: bytes, namespace: str = "") -> tuple[str, LogRow]:
    """The namespace and the row of a line; `namespace` replaces the row's own. ValueError says what is wrong."""
    return read_object(read_line(line), namespace)


def read_line(line: bytes) -> dict[str, Any]:
    """The object that a line is. ValueError says why it is none."""
    try:
        given = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise ValueError(f"is not one JSON object: {error}") from error
    if not isinstance(given, dict):
        raise ValueError("is not a JSON object")
    return given


def read_object(given: Mapping[str, Any], namespace: str = "") -> tuple[str, LogRow]:
    """The same of an object that is read already."""
    row = JsonFields(given)
    own = row.text("namespace", NAMESPACE_BYTES, least=0 if namespace else 1)
    kind = row.text("type", 64)
    if kind not in _READERS:
        raise ValueError(f"type is {shown(kind)}; must be one of {', '.join(_READERS)}")
    return namespace or own, _READERS[kind](row, namespace or own)


def _write_priors(row: StorePriors) -> tuple[str, dict[str, Any]]:
    return "store_priors", {
        "use_priors": [{"kind": kind, "mu": mu, "kappa": kappa} for kind, (mu, kappa) in row.use_priors.items()],
        "inferred_confirmed": row.inferred_precision[0],
        "inferred_refuted": row.inferred_precision[1],
    }


def _read_priors(row: JsonFields, _: str) -> StorePriors:
    priors = {
        each.text("kind", 64): (each.number("mu", 0, 1), each.number("kappa", 0, 1e9))
        for each in row.rows("use_priors")
    }
    return StorePriors(priors, (row.whole("inferred_confirmed"), row.whole("inferred_refuted")))


def _write_state(row: MemoryState) -> tuple[str, dict[str, Any]]:
    return "memory_state", {
        "memory_id": row.memory_id,
        "update_time": written_time(row.update_time),
        "importance_content": row.importance_content,
        "importance_use": row.importance_use,
        "importance_parts": [_write_part(name, part) for name, part in row.importance_parts.items()],
    }


def _read_state(row: JsonFields, _: str) -> MemoryState:
    return MemoryState(
        memory_id=row.text("memory_id", ID_BYTES),
        update_time=row.time("update_time"),
        importance_content=row.optional_number("importance_content", 0, 1),
        importance_use=row.optional_number("importance_use", 0, 1),
        importance_parts=dict(map(_read_part, row.rows("importance_parts"))),
    )


def _write_part(name: PartName, part: ImportancePart) -> dict[str, Any]:
    lines = [
        {"factor": line.factor, "value": line.value, "weight": line.weight, "contribution": line.contribution}
        for line in part.lines
    ]
    return {
        "part": name.value,
        "confidence": part.confidence,
        "time": written_time(part.time),
        "factors": list(part.factors),
        "lines": [{key: value for key, value in line.items() if value is not None} for line in lines],
        "about": list(part.about),
    }


def _read_part(row: JsonFields) -> tuple[PartName, ImportancePart]:
    lines = [
        ImportanceLine(
            factor=each.text("factor", KIND_BYTES),
            value=each.optional_number("value", 0, 1),
            weight=each.number("weight", 0, 1),
            contribution=each.number("contribution", -1, 1),
        )
        for each in row.rows("lines")
    ]
    part = ImportancePart(
        row.number("confidence", 0, 1), row.time("time"), row.texts("factors"), tuple(lines), row.texts("about")
    )
    return PartName(row.word("part", [name.value for name in PartName])), part


def _write_rating(row: LoggedRating) -> tuple[str, dict[str, Any]]:
    return "rating", {
        "memory_id": row.memory_id,
        "agent_id": row.rater,
        "rating": row.rating.value,
        "reason": row.reason,
        "time": written_time(row.time),
    }


def _read_rating(row: JsonFields, _: str) -> LoggedRating:
    return LoggedRating(
        memory_id=row.text("memory_id", ID_BYTES),
        rater=row.text("agent_id", 256, least=0),
        rating=Rating(row.word("rating", [Rating.HELPFUL, Rating.UNHELPFUL])),
        reason=row.text("reason", 1_024, least=0),
        time=row.time("time"),
    )


def _write_report(row: LoggedReport) -> tuple[str, dict[str, Any]]:
    report = row.report
    return "report", {
        "report_id": report.report_id,
        "packet_id": row.packet_id,
        "channel": report.channel.value,
        "used_memory_ids": sorted(report.used),
        "unused_memory_ids": sorted(report.unused),
        "shown_memory_ids": None if report.shown is None else sorted(report.shown),
        "complete": report.complete,
        "outcome": row.outcome,
        "confidence": report.confidence,
        "sequence": report.sequence,
        "report_time": None if report.report_time is None else written_time(report.report_time),
        "receive_time": written_time(report.receive_time),
        "agent_id": row.agent_id,
        "request_id": row.request_id,
        "late": row.late,
    }


def _read_report(row: JsonFields, _: str) -> LoggedReport:
    report = Report(
        report_id=row.text("report_id", ID_BYTES),
        channel=Channel(row.word("channel", Channel)),
        complete=row.truth("complete"),
        confidence=row.number("confidence", 0, 1),
        sequence=row.optional_whole("sequence", -(2**63)),
        report_time=row.optional_time("report_time"),
        receive_time=row.time("receive_time"),
        used=row.ids("used_memory_ids"),
        unused=row.ids("unused_memory_ids"),
        shown=row.ids("shown_memory_ids") if row.has("shown_memory_ids") else None,
    )
    return LoggedReport(
        packet_id=row.text("packet_id", ID_BYTES),
        report=report,
        outcome=row.number("outcome", 0, 1),
        agent_id=row.text("agent_id", 256, least=0),
        request_id=row.text("request_id", REQUEST_ID_BYTES, least=0),
        late=row.truth("late"),
    )


def _write_session(row: PrunedSession) -> tuple[str, dict[str, Any]]:
    return "pruned_session", {"session_key": row.session_key, "agent_id": row.agent_id}


def _read_session(row: JsonFields, _: str) -> PrunedSession:
    key = row.text("session_key", SESSION_KEY_BYTES)
    if not is_session_key(key):
        raise ValueError(f"session_key is {shown(key)}; must be s: with a session's id, or p: with a packet's")
    return PrunedSession(key, row.text("agent_id", 256, least=0))


def _write_pruned_use(row: PrunedUse) -> tuple[str, dict[str, Any]]:
    return "pruned_use", {
        "memory_id": row.memory_id,
        "session_key": row.session.session_key,
        "agent_id": row.session.agent_id,
        "used_millionths": row.use.used,
        "seen_millionths": row.use.seen,
        "last_use_time": None if row.use.last_use_time is None else written_time(row.use.last_use_time),
    }


def _read_pruned_use(row: JsonFields, namespace: str) -> PrunedUse:
    seen = row.whole("seen_millionths", 0, MILLION)
    use = SessionUse(row.whole("used_millionths", 0, seen), seen, row.optional_time("last_use_time"))
    return PrunedUse(row.text("memory_id", ID_BYTES), _read_session(row, namespace), use)


_READERS: Mapping[str, Callable[[JsonFields, str], LogRow]] = {
    "store_priors": _read_priors,
    "pruned_session": _read_session,
    "memory_state": _read_state,
    "rating": _read_rating,
    "pruned_use": _read_pruned_use,
    "packet": read_packet,
    "report": _read_report,
}
