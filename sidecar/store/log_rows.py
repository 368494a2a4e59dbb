"""Rows of the log as JSON Lines, in both directions and bit for bit; docs/import.md describes them. Pure.

What comes in was written by anyone, so every value is checked. A number that is not there (NaN) is null; Python writes
and reads all other float64 exactly.
"""

from __future__ import annotations

import base64
import json
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from sidecar.domain import (
    Channel,
    DegradationReason,
    EmptyReason,
    Floats,
    ImportanceLine,
    ImportancePart,
    LeftOutReason,
    Micros,
    OtherWays,
    Packet,
    PacketItem,
    PartName,
    PoolItem,
    Rating,
    Segment,
    ShadowScores,
)
from sidecar.formats.bounds import ID_BYTES, KIND_BYTES, NAMESPACE_BYTES, REQUEST_ID_BYTES, shown
from sidecar.store.json_fields import EPOCH, MICROSECOND, JsonFields
from sidecar.store.log import STORED, LoggedRating, LoggedReport, LogRow, MemoryState, StorePriors
from sidecar.store.merge import Report


def write_row(namespace: str, row: LogRow) -> bytes:
    """One line, with its end."""
    line = write_object(namespace, row)
    return json.dumps(line, ensure_ascii=False, separators=(",", ":"), allow_nan=False).encode() + b"\n"


def write_object(namespace: str, row: LogRow) -> dict[str, Any]:
    """The object of a line, without what is unset."""
    match row:
        case StorePriors():
            found = _write_priors(row)
        case MemoryState():
            found = _write_state(row)
        case LoggedRating():
            found = _write_rating(row)
        case Packet():
            found = _write_packet(row)
        case LoggedReport():
            found = _write_report(row)
    kind, fields = found
    given = {name: value for name, value in fields.items() if value is not None}
    return {"type": kind, "namespace": namespace, **given}


def read_row(line: bytes, namespace: str = "") -> tuple[str, LogRow]:
    """The namespace and the row of a line; `namespace` replaces the row's own. ValueError says what is wrong."""
    try:
        given = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise ValueError(f"is not one JSON object: {error}") from error
    if not isinstance(given, dict):
        raise ValueError("is not a JSON object")
    return read_object(given, namespace)


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
        "update_time": _time(row.update_time),
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
        "time": _time(part.time),
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
        "time": _time(row.time),
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
        "report_time": None if report.report_time is None else _time(report.report_time),
        "receive_time": _time(report.receive_time),
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


_TEXTS = {
    "agent_id": 256,
    "session_id": 256,
    "surface": 64,
    "request_id": REQUEST_ID_BYTES,
    "model_version": 256,
    "feature_schema_hash": 256,
    "exploration_policy": 256,
}
_BUDGETS = ("token_budget", "ranked_budget", "slot_budget")


def _write_packet(packet: Packet) -> tuple[str, dict[str, Any]]:
    return "packet", {
        "packet_id": packet.packet_id,
        "create_time": _time(packet.create_time),
        "as_of_time": _time(packet.as_of_time),
        "valid_until_time": None if packet.valid_until_time is None else _time(packet.valid_until_time),
        **{name: getattr(packet, name) for name in (*_TEXTS, *_BUDGETS, "score_version")},
        "left_out": {reason.value: count for reason, count in packet.left_out.items()},
        "degradations": [[reason.value, words] for reason, words in packet.degradations],
        "empty_reason": None if packet.empty_reason is None else packet.empty_reason.value,
        "reserved_slots": packet.reserved_slots,
        "reserve_pool_size": packet.reserve_pool_size,
        "pool_size_unreported": packet.pool_sizes[0],
        "pool_size_reported": packet.pool_sizes[1],
        "request": base64.b64encode(packet.payload).decode(),
        "items": [
            {
                **_write_scored(item),
                "segment": item.segment.value,
                "contributions": _list(item.contributions),
                "position_probability": item.position_probability,
                "swapped": item.swapped,
            }
            for item in packet.items
        ],
        "undrawn": [_write_scored(item) for item in packet.undrawn],
        "shadow": None if packet.shadow is None else _write_shadow(packet.shadow),
        "other_ways": None if packet.other_ways is None else _write_ways(packet.other_ways, len(packet.items)),
    }


def _write_ways(ways: OtherWays, count: int) -> list[dict[str, Any]]:
    return [
        {"way": name, "items": _list(values[:count]), "undrawn": _list(values[count:])}
        for name, values in zip(ways.names, ways.values.T, strict=True)
    ]


def _write_shadow(shadow: ShadowScores) -> dict[str, Any]:
    count = len(shadow.contributions)
    return {
        "version": shadow.version,
        "items": [
            {"score": score, "contributions": _list(parts)}
            for score, parts in zip(shadow.scores[:count].tolist(), shadow.contributions, strict=True)
        ],
        "undrawn_scores": shadow.scores[count:].tolist(),
    }


def _write_scored(item: PacketItem | PoolItem) -> dict[str, Any]:
    key = {} if item.memory_key == STORED else {"key": item.memory_key}
    return {
        "memory_id": item.memory_id,
        **key,
        "kind": item.kind,
        "score": item.score,
        "task_fit": item.task_fit,
        "features": _list(item.features),
        "raw": _list(item.raw),
        "tokens": item.tokens,
        "inclusion_propensity": item.inclusion_propensity,
    }


def _read_packet(row: JsonFields, namespace: str) -> Packet:
    items = tuple(
        PacketItem(
            **_read_scored(item),
            segment=Segment(item.word("segment", Segment)),
            contributions=item.floats("contributions"),
            position_probability=item.number("position_probability", 0, 1),
            swapped=item.truth("swapped"),
        )
        for item in row.rows("items")
    )
    undrawn = tuple(PoolItem(**_read_scored(item)) for item in row.rows("undrawn"))
    for name, of in (("items", items), ("undrawn", undrawn)):
        if len({each.memory_id for each in of}) != len(of):
            raise ValueError(f"{name} names a memory twice")
        for numbers in ("features", "raw", "contributions"):
            if len({len(getattr(each, numbers)) for each in of if hasattr(each, numbers)}) > 1:
                raise ValueError(f"{name} have {numbers} of different lengths")
    others: dict[str, Any] = {name: row.optional_whole(name) for name in _BUDGETS}
    others |= {name: row.text(name, most, least=0) for name, most in _TEXTS.items()}
    empty_reason = row.word("empty_reason", EmptyReason) if row.has("empty_reason") else None
    return Packet(
        packet_id=row.text("packet_id", ID_BYTES),
        namespace=namespace,
        items=items,
        undrawn=undrawn,
        score_version=row.whole("score_version"),
        as_of_time=row.time("as_of_time"),
        create_time=row.time("create_time"),
        valid_until_time=row.optional_time("valid_until_time"),
        left_out={LeftOutReason(reason): count for reason, count in row.counts("left_out").items()},
        degradations=tuple((DegradationReason(reason), words) for reason, words in row.pairs("degradations")),
        empty_reason=None if empty_reason is None else EmptyReason(empty_reason),
        reserve_pool_size=row.whole("reserve_pool_size"),
        pool_sizes=(row.whole("pool_size_unreported"), row.whole("pool_size_reported")),
        reserved_slots=row.whole("reserved_slots"),
        payload=row.data("request"),
        shadow=_read_shadow(row.object("shadow"), items, len(undrawn)),
        other_ways=_read_ways(row.rows("other_ways"), len(items), len(undrawn)),
        **others,
    )


def _read_shadow(row: JsonFields | None, items: Sequence[PacketItem], undrawn: int) -> ShadowScores | None:
    if row is None:
        return None
    given, rest = row.rows("items"), row.floats("undrawn_scores")
    parts = [each.floats("contributions") for each in given]
    if len(given) != len(items) or len(rest) != undrawn:
        raise ValueError("shadow has not one score for each of items and undrawn")
    if [len(each) for each in parts] != [len(each.contributions) for each in items]:
        raise ValueError("shadow.items have not as many contributions as items")
    scores = np.array([*(each.number("score") for each in given), *rest.tolist()])
    matrix = np.array(parts) if parts else np.empty((0, 0))
    return ShadowScores(row.text("version", _TEXTS["model_version"]), scores, matrix)


def _read_ways(rows: Sequence[JsonFields], items: int, undrawn: int) -> OtherWays | None:
    if not rows:
        return None
    names = tuple(each.text("way", _TEXTS["model_version"]) for each in rows)
    parts = [(each.floats("items"), each.floats("undrawn")) for each in rows]
    if any((len(of_items), len(rest)) != (items, undrawn) for of_items, rest in parts):
        raise ValueError("other_ways have not one number for each of items and undrawn")
    if len(set(names)) != len(names):
        raise ValueError("other_ways name a way twice")
    return OtherWays(names, np.stack([np.concatenate(part) for part in parts], axis=1))


def _read_scored(row: JsonFields) -> dict[str, Any]:
    return {
        "memory_id": row.text("memory_id", ID_BYTES),
        "memory_key": row.whole("key", -(2**63), 0) if row.has("key") else STORED,
        "kind": row.text("kind", KIND_BYTES, least=0),
        "score": row.number("score"),
        "task_fit": row.number("task_fit"),
        "features": row.floats("features"),
        "raw": row.floats("raw"),
        "tokens": row.whole("tokens"),
        "inclusion_propensity": row.number("inclusion_propensity", 0, 1),
    }


_READERS: Mapping[str, Callable[[JsonFields, str], LogRow]] = {
    "store_priors": _read_priors,
    "memory_state": _read_state,
    "rating": _read_rating,
    "packet": _read_packet,
    "report": _read_report,
}


def _time(micros: Micros) -> str:
    return (EPOCH + micros * MICROSECOND).isoformat().replace("+00:00", "Z")


def _list(values: Floats) -> Sequence[float | None]:
    return [None if math.isnan(value) else value for value in values.tolist()]
