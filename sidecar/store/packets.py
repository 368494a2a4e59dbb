"""The packet log: writes a packet as one row with its exposures, and reads it back bit for bit."""

from __future__ import annotations

import functools
import json
import sqlite3
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sidecar.domain import (
    DegradationReason,
    EmptyReason,
    Floats,
    LeftOutReason,
    OtherWays,
    Packet,
    PacketItems,
    PoolItems,
    Segment,
    ShadowScores,
)
from sidecar.errors import PacketNotFoundError
from sidecar.store.rows import Row, to_json

_COLUMNS = (
    "packet_id",
    "namespace",
    "session_key",
    "session_id",
    "agent_id",
    "surface",
    "request_id",
    "model_version",
    "feature_schema_hash",
    "exploration_policy",
    "score_version",
    "as_of_time",
    "create_time",
    "valid_until_time",
    "empty_reason",
    "reserve_pool_size",
    "pool_size_unreported",
    "pool_size_reported",
    "reserved_slots",
    "token_budget",
    "ranked_budget",
    "slot_budget",
    "left_out",
    "degradations",
    "undrawn_ids",
    "kinds",
    "request",
    "features",
    "contributions",
    "raw",
    "undrawn_keys",
    "undrawn_tokens",
    "undrawn_scores",
    "undrawn_task_fits",
    "undrawn_propensities",
    "undrawn_features",
    "undrawn_raw",
    "shadow_version",
    "shadow_scores",
    "shadow_contributions",
    "other_way_names",
    "other_ways",
    "newest_memory_key",
)
_AS_THEY_ARE = (
    *("packet_id", "namespace", "session_id", "agent_id", "surface", "request_id", "model_version"),
    *("feature_schema_hash", "exploration_policy", "score_version", "as_of_time", "create_time", "valid_until_time"),
    *("reserve_pool_size", "reserved_slots", "token_budget", "ranked_budget", "slot_budget", "newest_memory_key"),
)
_INSERT_PACKET = f"INSERT INTO packets ({', '.join(_COLUMNS)}) VALUES ({', '.join('?' * len(_COLUMNS))})"
_EXPOSURE = (
    *("packet_key", "place", "memory_key", "memory_id", "segment", "score", "task_fit"),
    *("inclusion_propensity", "position_probability", "tokens", "swapped"),
)
SELECTED = f"packet_key, {', '.join(_COLUMNS)}"
EXPOSED = "memory_id, memory_key, segment, score, task_fit, inclusion_propensity, position_probability, tokens, swapped"
_SELECT_EXPOSURES = f"SELECT {EXPOSED} FROM exposures WHERE packet_key = ? ORDER BY place"


@dataclass(frozen=True, slots=True)
class PacketRows:
    """A packet ready for its tables, made on the caller's thread so that the writer need not."""

    packet: Row
    exposures: Sequence[Row]


def to_rows(packet: Packet) -> PacketRows:
    """The rows of a packet."""
    items, undrawn = PacketItems.of(packet.items), PoolItems.of(packet.undrawn)
    row = (
        packet.packet_id,
        packet.namespace,
        session_key(packet.session_id, packet.packet_id),
        packet.session_id,
        packet.agent_id,
        packet.surface,
        packet.request_id,
        packet.model_version,
        packet.feature_schema_hash,
        packet.exploration_policy,
        packet.score_version,
        packet.as_of_time,
        packet.create_time,
        packet.valid_until_time,
        None if packet.empty_reason is None else packet.empty_reason.value,
        packet.reserve_pool_size,
        *packet.pool_sizes,
        packet.reserved_slots,
        packet.token_budget,
        packet.ranked_budget,
        packet.slot_budget,
        to_json({reason.value: count for reason, count in packet.left_out.items()}),
        to_json([[reason.value, message] for reason, message in packet.degradations]),
        to_json(undrawn.memory_ids),
        to_json([*items.kinds, *undrawn.kinds]),
        packet.payload,
        _pack(items.features),
        _pack(items.contributions),
        _pack(items.raw),
        _pack(undrawn.memory_keys, "<i8"),
        _pack(undrawn.tokens, "<i8"),
        _pack(undrawn.scores),
        _pack(undrawn.task_fits),
        _pack(undrawn.inclusion_propensities),
        _pack(undrawn.features),
        _pack(undrawn.raw),
        *_shadow_columns(packet.shadow),
        *_other_way_columns(packet.other_ways),
        packet.newest_memory_key,
    )
    exposures = zip(
        range(1, len(items) + 1),
        items.memory_keys,
        items.memory_ids,
        map(str.__str__, items.segments),
        items.scores,
        items.task_fits,
        items.inclusion_propensities,
        items.position_probabilities,
        items.tokens,
        map(int, items.swapped),
        strict=True,
    )
    return PacketRows(row, tuple(exposures))


def insert(connection: sqlite3.Connection, rows: PacketRows) -> None:
    """Writes the packet."""
    packet_key = connection.execute(_INSERT_PACKET, rows.packet).lastrowid
    if rows.exposures:
        # One statement: between two of them another thread may take its turn.
        values = (packet_key, *chain.from_iterable(rows.exposures))
        connection.execute(_insert_exposures(len(rows.exposures)), values)


@functools.cache
def _insert_exposures(count: int) -> str:
    row = f"(?1, {', '.join('?' * (len(_EXPOSURE) - 1))})"
    return f"INSERT INTO exposures ({', '.join(_EXPOSURE)}) VALUES {', '.join([row] * count)}"


def read(connection: sqlite3.Connection, namespace: str | None, packet_id: str) -> tuple[int, Packet]:
    """The packet and its key. Raises PacketNotFoundError, also if it is another namespace's."""
    found = connection.execute(f"SELECT {SELECTED} FROM packets WHERE packet_id = ?", (packet_id,)).fetchone()
    if found is None or namespace not in (None, found[2]):
        raise unknown(packet_id)
    packet_key = int(found[0])
    return packet_key, from_rows(found, connection.execute(_SELECT_EXPOSURES, (packet_key,)).fetchall())


def from_rows(found: Row, exposures: Sequence[Row]) -> Packet:
    """The packet of a row of SELECTED and its rows of EXPOSED, by place."""
    row: Mapping[str, Any] = dict(zip(_COLUMNS, found[1:], strict=True))
    kinds = json.loads(row["kinds"]) or [""] * (len(exposures) + len(row["undrawn_tokens"]) // 8)
    served = _items(row, exposures, kinds[: len(exposures)])
    return _packet(row, served, _undrawn(row, kinds[len(exposures) :]))


def unknown(packet_id: str) -> PacketNotFoundError:
    """The error for a packet that is not there, or is not the caller's."""
    return PacketNotFoundError(
        f"packet_id: no packet {packet_id!r} in this namespace; send the packet_id of a Rank answer that was not pruned"
    )


def recent_reserved(connection: sqlite3.Connection, namespace: str, session_id: str, packets: int) -> frozenset[int]:
    """Keys of the memories that stood in a reserved slot in the last packets of a session."""
    rows = connection.execute(
        "SELECT memory_key FROM exposures WHERE segment = ? AND packet_key IN (SELECT packet_key FROM packets"
        " WHERE namespace = ? AND session_key = ? ORDER BY packet_key DESC LIMIT ?)",
        (Segment.RESERVED.value, namespace, session_key(session_id, ""), packets),
    ).fetchall()
    return frozenset(row[0] for row in rows)


def session_key(session_id: str, packet_id: str) -> str:
    """Tells sessions apart within a namespace: a packet without a session id is a session of its own."""
    return f"s:{session_id}" if session_id else f"p:{packet_id}"


def is_session_key(text: str) -> bool:
    """True for what `session_key` may give."""
    return text.startswith(("s:", "p:"))


def is_alone(session_key: str) -> bool:
    """True for the session of a packet without a session id, which has no other packet."""
    return session_key.startswith("p:")


def _packet(row: Mapping[str, Any], items: PacketItems, undrawn: PoolItems) -> Packet:
    return Packet(
        **{name: row[name] for name in _AS_THEY_ARE},
        items=items,
        undrawn=undrawn,
        left_out={LeftOutReason(reason): count for reason, count in json.loads(row["left_out"]).items()},
        degradations=tuple((DegradationReason(reason), text) for reason, text in json.loads(row["degradations"])),
        empty_reason=None if row["empty_reason"] is None else EmptyReason(row["empty_reason"]),
        pool_sizes=(row["pool_size_unreported"], row["pool_size_reported"]),
        payload=bytes(row["request"]),
        shadow=_shadow(row, len(items)),
        other_ways=_other_ways(row, len(items) + len(undrawn)),
    )


def _shadow_columns(shadow: ShadowScores | None) -> tuple[str, bytes, bytes]:
    return ("", b"", b"") if shadow is None else (shadow.version, _pack(shadow.scores), _pack(shadow.contributions))


def _shadow(row: Mapping[str, Any], count: int) -> ShadowScores | None:
    if not row["shadow_version"]:
        return None
    scores = np.frombuffer(row["shadow_scores"], "<f8")
    return ShadowScores(row["shadow_version"], scores, _rows(row["shadow_contributions"], count))


def _other_way_columns(ways: OtherWays | None) -> tuple[str, bytes]:
    return ("[]", b"") if ways is None else (to_json(ways.names), _pack(ways.values))


def _other_ways(row: Mapping[str, Any], count: int) -> OtherWays | None:
    names = tuple(json.loads(row["other_way_names"]))
    return OtherWays(names, np.frombuffer(row["other_ways"], "<f8").reshape(count, len(names))) if names else None


def _items(row: Mapping[str, Any], exposures: Sequence[Row], kinds: Sequence[str]) -> PacketItems:
    count = len(exposures)
    columns: Sequence[Sequence[Any]] = list(zip(*exposures, strict=True)) or [()] * 9
    ids, keys, segments, scores, fits, chances, places, tokens, swapped = columns
    return PacketItems(
        memory_ids=ids,
        memory_keys=keys,
        segments=tuple(map(Segment, segments)),
        scores=scores,
        contributions=_rows(row["contributions"], count),
        features=_rows(row["features"], count),
        raw=_rows(row["raw"], count),
        tokens=tokens,
        task_fits=fits,
        inclusion_propensities=chances,
        position_probabilities=places,
        swapped=tuple(map(bool, swapped)),
        kinds=kinds,
    )


def _undrawn(row: Mapping[str, Any], kinds: Sequence[str]) -> PoolItems:
    ids = json.loads(row["undrawn_ids"])
    keys, tokens = (np.frombuffer(row[f"undrawn_{name}"], "<i8").tolist() for name in ("keys", "tokens"))
    scores, fits, chances = (
        np.frombuffer(row[f"undrawn_{name}"], "<f8").tolist() for name in ("scores", "task_fits", "propensities")
    )
    features, raw = (_rows(row[f"undrawn_{name}"], len(ids)) for name in ("features", "raw"))
    return PoolItems(
        memory_ids=ids,
        memory_keys=keys,
        features=features,
        raw=raw,
        tokens=tokens,
        scores=scores,
        task_fits=fits,
        inclusion_propensities=chances,
        kinds=kinds,
    )


def _pack(values: ArrayLike, dtype: str = "<f8") -> bytes:
    return np.asarray(values, dtype).tobytes()


def _rows(blob: bytes, count: int) -> Floats:
    matrix: NDArray[np.float64] = np.frombuffer(blob, "<f8").reshape(count, -1) if count else np.empty((0, 0))
    return matrix
