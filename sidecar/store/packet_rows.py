"""Packets as objects of JSON, in both directions and bit for bit; docs/import.md describes them. Pure."""

from __future__ import annotations

import base64
import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from sidecar.domain import (
    DegradationReason,
    EmptyReason,
    Floats,
    LeftOutReason,
    OtherWays,
    Packet,
    PacketItem,
    PoolItem,
    Segment,
    ShadowScores,
)
from sidecar.formats.bounds import ID_BYTES, KIND_BYTES, REQUEST_ID_BYTES
from sidecar.store.json_fields import JsonFields, written_time
from sidecar.store.log import STORED

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


def write_packet(packet: Packet) -> dict[str, Any]:
    """The fields of a packet's row."""
    return {
        "packet_id": packet.packet_id,
        "create_time": written_time(packet.create_time),
        "as_of_time": written_time(packet.as_of_time),
        "valid_until_time": None if packet.valid_until_time is None else written_time(packet.valid_until_time),
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


def read_packet(row: JsonFields, namespace: str) -> Packet:
    """A packet of the namespace. ValueError says what is wrong."""
    items = tuple(
        PacketItem(
            **_read_scored(item, item.chance("inclusion_propensity")),
            segment=Segment(item.word("segment", Segment)),
            contributions=item.floats("contributions"),
            position_probability=item.number("position_probability", 0, 1),
            swapped=item.truth("swapped"),
        )
        for item in row.rows("items")
    )
    undrawn = tuple(
        PoolItem(**_read_scored(item, item.number("inclusion_propensity", 0, 1))) for item in row.rows("undrawn")
    )
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


def _read_scored(row: JsonFields, inclusion_propensity: float) -> dict[str, Any]:
    return {
        "memory_id": row.text("memory_id", ID_BYTES),
        "memory_key": row.whole("key", -(2**63), 0) if row.has("key") else STORED,
        "kind": row.text("kind", KIND_BYTES, least=0),
        "score": row.number("score"),
        "task_fit": row.number("task_fit"),
        "features": row.floats("features"),
        "raw": row.floats("raw"),
        "tokens": row.whole("tokens"),
        "inclusion_propensity": inclusion_propensity,
    }


def _list(values: Floats) -> Sequence[float | None]:
    return [None if math.isnan(value) else value for value in values.tolist()]
