"""Logs as the store would have them, made without one: packets with real feature columns, and reports on them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from sidecar.domain import SECOND, Channel, Micros, Packet, PacketItem, PoolItem, Segment
from sidecar.features import FEATURE_NAMES, RAW_NAMES, SCHEMA_HASH
from sidecar.store.log import STORED, LoggedReport, LogRow
from sidecar.store.log_rows import write_row
from sidecar.store.merge import Report
from training.dataset import Dataset

START: Micros = 1_700_000_000_000_000
HOUR: Micros = 3_600 * SECOND


def features_of(values: Mapping[str, float]) -> np.ndarray:
    """A row of features, 0 where none is given."""
    return np.array([values.get(name, 0.0) for name in FEATURE_NAMES])


def make_packet(
    packet_id: str,
    features: Sequence[np.ndarray],
    *,
    ids: Sequence[str] | None = None,
    pool: Sequence[np.ndarray] = (),
    segments: Sequence[Segment] | None = None,
    kinds: Sequence[str] | None = None,
    raw: Sequence[np.ndarray] | None = None,
    **fields: Any,
) -> Packet:
    """A packet of memories with these features, by place."""
    names = [f"{packet_id}-m{i}" for i in range(len(features))] if ids is None else ids
    ages = [np.zeros(len(RAW_NAMES))] * len(features) if raw is None else raw
    items = tuple(
        PacketItem(
            memory_id=names[i],
            memory_key=STORED,
            segment=Segment.RANKED if segments is None else segments[i],
            score=1.0 - i / 100,
            contributions=np.zeros(len(FEATURE_NAMES)),
            features=row,
            raw=ages[i],
            tokens=10,
            task_fit=0.5,
            kind="fact" if kinds is None else kinds[i],
        )
        for i, row in enumerate(features)
    )
    undrawn = tuple(
        PoolItem(f"{packet_id}-u{i}", STORED, row, np.zeros(len(RAW_NAMES)), 10, 0.1, 0.4, 0.5, "fact")
        for i, row in enumerate(pool)
    )
    given: dict[str, Any] = {
        "packet_id": packet_id,
        "namespace": "n",
        "items": items,
        "undrawn": undrawn,
        "model_version": "default",
        "feature_schema_hash": SCHEMA_HASH,
        "exploration_policy": "policy",
        "score_version": 1,
        "as_of_time": START,
        "create_time": START,
        "valid_until_time": None,
        "left_out": {},
        "degradations": (),
        "empty_reason": None,
        "reserve_pool_size": len(undrawn),
        "pool_sizes": (len(undrawn), 0),
        "reserved_slots": 0,
        "token_budget": None,
        "ranked_budget": None,
        "slot_budget": None,
        "session_id": "",
        "agent_id": "agent",
        **fields,
    }
    return Packet(**given)


def make_report(
    packet_id: str,
    used: Iterable[str] = (),
    *,
    report_id: str | None = None,
    unused: Iterable[str] = (),
    shown: Iterable[str] | None = None,
    channel: Channel = Channel.EXPLICIT,
    complete: bool = True,
    confidence: float = 0.8,
    sequence: int | None = None,
    at: Micros = START + HOUR,
    outcome: float = 1.0,
    late: bool = False,
) -> LoggedReport:
    """A report as the log keeps it."""
    words = (
        packet_id,
        sorted(used),
        sorted(unused),
        shown and sorted(shown),
        channel,
        complete,
        confidence,
        sequence,
        at,
    )
    report = Report(
        report_id=report_id or repr((*words, outcome, late)),
        channel=channel,
        complete=complete and channel in (Channel.EXPLICIT, Channel.INFERRED),
        confidence=confidence,
        sequence=sequence,
        report_time=None,
        receive_time=at,
        used=frozenset(used),
        unused=frozenset(unused),
        shown=None if shown is None else frozenset(shown),
    )
    return LoggedReport(packet_id, report, outcome, "agent", "", late)


def log_of(dataset: Dataset) -> list[LogRow]:
    """The log that a made data set would come from: packets with pools, and complete reports where they came."""
    rows: list[LogRow] = []
    packets = dataset.packets
    for number, packet_id in enumerate(packets.packet_id):
        mine, pool = np.flatnonzero(dataset.packet == number), np.flatnonzero(dataset.pool_packet == number)
        ids = [dataset.memory_id[key] for key in dataset.memory_key[mine]]
        rows.append(
            make_packet(
                packet_id,
                list(dataset.features[mine]),
                ids=ids,
                raw=list(dataset.raw[mine]),
                pool=list(dataset.pool_features[pool]),
                namespace=packets.namespace[number],
                agent_id=packets.agent[number],
                session_id=f"s{packets.session[number]}",
                create_time=int(packets.create_time[number]),
            )
        )
        if packets.reported[number]:
            used = [memory_id for memory_id, a in zip(ids, dataset.used[mine], strict=True) if a > 0]
            rows.append(make_report(packet_id, used, at=int(packets.create_time[number]) + HOUR))
    return rows


def write_log(path: Path, rows: Iterable[LogRow]) -> None:
    """An export of it in JSON Lines, without memories."""
    namespaces = {row.packet_id: row.namespace for row in rows if isinstance(row, Packet)}
    lines = [write_row(namespaces[row.packet_id], row) for row in rows if isinstance(row, Packet | LoggedReport)]
    path.write_bytes(b"".join(lines))
