"""What an audit reads of the log, as of one moment: plain numbers, which `sidecar.audit` makes sense of."""

from __future__ import annotations

import sqlite3
from collections import defaultdict
from dataclasses import dataclass

import numpy as np

from sidecar.domain import SECOND, Micros
from sidecar.store import audit_sql
from sidecar.store.audit_sql import Scope
from sidecar.store.rows import Row

IN_FLIGHT: Micros = 3_600 * SECOND
"""A report so soon after a rescore may still be about a packet from before it."""


@dataclass(frozen=True, slots=True)
class ServedMemory:
    """A memory with its serves outside the pinned segment, and the packets that used it and that were heard of."""

    namespace: str
    memory_id: str
    importance: float
    serves: int
    used: int
    judged: int


@dataclass(frozen=True, slots=True)
class ClientNumbers:
    """Packets of one agent on one surface in one namespace. `weak`: with a report of channel PACKET or ECHO."""

    namespace: str
    agent_id: str
    surface: str
    packets: int
    sessions: int
    reported: int
    weak: int
    with_uses: int


@dataclass(frozen=True, slots=True)
class ReserveNumbers:
    """The reserve over all packets with slots.

    `weight_gaps` are, by packet, the sum of 1/pi over the drawn less the pool's size: 0 in the mean if the logged pi
    are right. `first_exposures` and `expected` are over the memories of all pools: those that were drawn, and pi summed
    over each one's pools up to and including its first draw. `waits` are requests from a memory's first pool to its
    first draw.
    """

    packets: int = 0
    drawn: int = 0
    weight_gaps: tuple[float, ...] = ()
    pooled_memories: int = 0
    first_exposures: int = 0
    expected: float = 0.0
    eligible_requests: int = 0
    waits: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class ModelNumbers:
    """The packets that a model or a preset scored, how many were reported on, and the memories in them that explicit
    reports spoke of and said were used."""

    version: str
    packets: int
    reported: int
    judged: int
    used: int


@dataclass(frozen=True, slots=True)
class AuditNumbers:
    """Everything an audit goes by.

    `lifted` are memories with a score above the one they have without use; `moved` those among the `reported_memories`
    whose score is another than without use. `late_word` are reports that came a while after a rescore, `stale_word`
    those of them on packets from before it, and `stale_packets` packets that the server itself ranked by old scores.
    """

    memory_count: int
    lifted: int
    reported_memories: int
    moved: int
    packets: int
    reported_packets: int
    sessions: int
    reports: int
    used_memories: int
    served: tuple[ServedMemory, ...]
    clients: tuple[ClientNumbers, ...]
    late_word: int
    stale_word: int
    stale_packets: int
    new_memories: int
    reserve: ReserveNumbers
    slot_budget: int | None
    too_large: int
    models: tuple[ModelNumbers, ...] = ()


def read(connection: sqlite3.Connection, scope: Scope, min_reported_sessions: int) -> AuditNumbers:
    """The numbers of a scope. `min_reported_sessions` is from when on a memory has had its turns."""
    of_packets, of_memories = scope.of_packets("p"), scope.of_memories("m")
    score, own = audit_sql.score("m"), f"COALESCE(m.importance_override, {audit_sql.own_score('m')})"
    reported_memory = "EXISTS (SELECT 1 FROM agent_uses a WHERE a.memory_key = m.memory_key AND a.seen_millionths > 0)"
    memory_count, lifted, reported_memories, moved = connection.execute(
        f"SELECT COUNT(*), COALESCE(SUM({score} > {own} + 1e-9), 0), COALESCE(SUM({reported_memory}), 0),"
        f" COALESCE(SUM({reported_memory} AND ABS({score} - {own}) > 1e-9), 0) FROM memories m WHERE {of_memories}"
    ).fetchone()
    packets, sessions, first, last = connection.execute(
        "SELECT COUNT(*), COUNT(DISTINCT p.namespace || char(0) || p.session_key), MIN(p.create_time),"
        f" MAX(p.create_time) FROM packets p WHERE {of_packets}"
    ).fetchone()
    reported_packets, reports = connection.execute(
        "SELECT COUNT(DISTINCT r.packet_key), COUNT(*) FROM reports r JOIN packets p ON p.packet_key = r.packet_key"
        f" WHERE r.channel IN ('explicit', 'inferred') AND {of_packets}"
    ).fetchone()
    (used_memories,) = connection.execute(
        "SELECT COUNT(DISTINCT u.memory_key) FROM packet_uses u JOIN packets p ON p.packet_key = u.packet_key"
        f" WHERE u.used = 1 AND u.channel IN ('explicit', 'inferred') AND {of_packets}"
    ).fetchone()
    (new_memories,) = connection.execute(
        f"SELECT COUNT(*) FROM memories m WHERE {of_memories} AND m.create_time >= ? AND m.create_time <= ?",
        (first or 0, last or 0),
    ).fetchone()
    clients = next(query for query in audit_sql.queries(scope) if query.name == "clients")
    slot_budget, too_large = _too_large(connection, scope, min_reported_sessions)
    return AuditNumbers(
        memory_count=memory_count,
        lifted=lifted,
        reported_memories=reported_memories,
        moved=moved,
        packets=packets,
        reported_packets=reported_packets,
        sessions=sessions,
        reports=reports,
        used_memories=used_memories,
        served=_served(connection, scope),
        clients=tuple(ClientNumbers(*row) for row in connection.execute(clients.sqlite)),
        models=tuple(ModelNumbers(*row) for row in connection.execute(audit_sql.of_models(scope))),
        new_memories=new_memories,
        reserve=_reserve(connection, scope),
        slot_budget=slot_budget,
        too_large=too_large,
        **_stale(connection, scope),
    )


def _served(connection: sqlite3.Connection, scope: Scope) -> tuple[ServedMemory, ...]:
    rows = connection.execute(
        f"SELECT m.namespace, m.memory_id, {audit_sql.score('m')}, COUNT(*),"
        " COALESCE(SUM(u.used), 0), COUNT(u.used)"
        " FROM exposures e JOIN packets p ON p.packet_key = e.packet_key"
        " JOIN memories m ON m.memory_key = e.memory_key"
        # The merged pair stands with the strongest channel, which is the only one with a weight.
        " LEFT JOIN packet_uses u ON u.packet_key = e.packet_key AND u.memory_id = e.memory_id"
        " AND u.seen_millionths > 0"
        f" WHERE e.segment <> 'pinned' AND {scope.of_packets('p')}"
        " GROUP BY e.memory_key ORDER BY 4 DESC, 1, 2"
    ).fetchall()
    return tuple(ServedMemory(*row) for row in rows)


def _stale(connection: sqlite3.Connection, scope: Scope) -> dict[str, int]:
    """Reports and packets that came a while after a rescore of their namespace, and go by scores from before it."""

    def version_by(time: str) -> str:
        return (
            "(SELECT MAX(v.score_version) FROM rescore_versions v WHERE v.namespace = p.namespace"
            f" AND v.time < {time} - {IN_FLIGHT})"
        )

    late, stale = connection.execute(
        "SELECT COUNT(*), COALESCE(SUM(x.packet_version < x.version), 0) FROM"
        f" (SELECT p.score_version AS packet_version, {version_by('r.receive_time')} AS version FROM reports r"
        f" JOIN packets p ON p.packet_key = r.packet_key WHERE r.channel <> 'echo' AND {scope.of_packets('p')}) x"
        " WHERE x.version IS NOT NULL"
    ).fetchone()
    (packets,) = connection.execute(
        f"SELECT COUNT(*) FROM packets p WHERE p.score_version < {version_by('p.create_time')}"
        f" AND {scope.of_packets('p')}"
    ).fetchone()
    return {"late_word": late, "stale_word": stale, "stale_packets": packets}


def _reserve(connection: sqlite3.Connection, scope: Scope) -> ReserveNumbers:
    drawn_of: dict[int, list[Row]] = defaultdict(list)
    for row in connection.execute(
        "SELECT e.packet_key, e.memory_key, e.inclusion_propensity FROM exposures e"
        f" JOIN packets p ON p.packet_key = e.packet_key WHERE e.segment = 'reserved' AND {scope.of_packets('p')}"
    ):
        drawn_of[row[0]].append(row)
    gaps: list[float] = []
    waited: dict[int, int] = {}
    done: set[int] = set()
    waits: list[int] = []
    packets = drawn_count = eligible = 0
    expected = 0.0
    for packet_key, pool_size, keys, chances in connection.execute(
        "SELECT p.packet_key, p.reserve_pool_size, p.undrawn_keys, p.undrawn_propensities FROM packets p"
        f" WHERE p.reserved_slots > 0 AND {scope.of_packets('p')} ORDER BY p.packet_key"
    ):
        packets += 1
        drawn = drawn_of.get(packet_key, [])
        drawn_count += len(drawn)
        if pool_size and drawn:
            gaps.append(sum(1 / row[2] for row in drawn) - pool_size)
        pool = dict(zip(np.frombuffer(keys, "<i8").tolist(), np.frombuffer(chances, "<f8").tolist(), strict=True))
        for key, chance in [*pool.items(), *((row[1], row[2]) for row in drawn)]:
            if key not in done:
                waited[key] = waited.get(key, 0) + 1
                eligible += 1
                expected += chance
        for row in drawn:
            if row[1] not in done:
                done.add(row[1])
                waits.append(waited[row[1]])
    return ReserveNumbers(
        packets=packets,
        drawn=drawn_count,
        weight_gaps=tuple(gaps),
        pooled_memories=len(waited),
        first_exposures=len(done),
        expected=expected,
        eligible_requests=eligible,
        waits=tuple(waits),
    )


def _too_large(connection: sqlite3.Connection, scope: Scope, min_reported: int) -> tuple[int | None, int]:
    """The largest budget that a slot had, None for no limit, and how many memories without their turns exceed it."""
    packets, bounded, largest = connection.execute(
        "SELECT COUNT(*), COUNT(p.slot_budget), MAX(p.slot_budget) FROM packets p"
        f" WHERE p.reserved_slots > 0 AND {scope.of_packets('p')}"
    ).fetchone()
    if packets == 0 or bounded < packets:
        return None, 0
    (count,) = connection.execute(
        f"SELECT COUNT(*) FROM memories m WHERE {scope.of_memories('m')} AND m.tokens > ? AND m.suppressed = 0"
        " AND COALESCE((SELECT SUM(a.reported_sessions) FROM agent_uses a WHERE a.memory_key = m.memory_key), 0) < ?",
        (largest, min_reported),
    ).fetchone()
    return largest, count
