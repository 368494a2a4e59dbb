"""What pruned packets had said of use, as rows that leave one store and enter another; see `sidecar.store.prune`."""

from __future__ import annotations

import sqlite3
from dataclasses import dataclass

from sidecar.domain import UseCounts
from sidecar.store import tally
from sidecar.store.counts import SessionUse
from sidecar.store.prune import INSERT_USES, KEEP_LARGEST

AT_ONCE = 1_000
"""Rows, or memories with all their rows, in one page."""


@dataclass(frozen=True, slots=True)
class PrunedSession:
    """A session of which packets were pruned, and the agent that it counts for."""

    session_key: str
    agent_id: str


@dataclass(frozen=True, slots=True)
class PrunedUse:
    """What the pruned packets of a session had said of a memory."""

    memory_id: str
    session: PrunedSession
    use: SessionUse


def sessions(connection: sqlite3.Connection, namespace: str, after: str) -> tuple[list[PrunedSession], str | None]:
    """A page of a namespace's pruned sessions whose keys follow `after`; and the key to go on after, or None."""
    found = connection.execute(
        "SELECT session_key, agent_id FROM pruned_sessions WHERE namespace = ? AND session_key > ?"
        " ORDER BY session_key LIMIT ?",
        (namespace, after, AT_ONCE),
    ).fetchall()
    return [PrunedSession(*row) for row in found], found[-1][0] if len(found) == AT_ONCE else None


def uses(connection: sqlite3.Connection, namespace: str, after: int) -> tuple[list[PrunedUse], int | None]:
    """What pruned sessions had said of memories whose keys follow `after`, a page; and the key to go on after, None at
    the end."""
    keys = [
        key
        for (key,) in connection.execute(
            "SELECT memory_key FROM memories WHERE namespace = ? AND memory_key > ? ORDER BY memory_key LIMIT ?",
            (namespace, after, AT_ONCE),
        )
    ]
    if not keys:
        return [], None
    found = connection.execute(
        "SELECT m.memory_id, u.session_key, COALESCE(s.agent_id, ''), u.used_millionths, u.seen_millionths,"
        " u.last_use_time FROM pruned_uses u JOIN memories m ON m.memory_key = u.memory_key"
        " LEFT JOIN pruned_sessions s ON s.namespace = m.namespace AND s.session_key = u.session_key"
        " WHERE m.namespace = ? AND u.memory_key BETWEEN ? AND ?"
        " ORDER BY u.memory_key, u.session_key",
        (namespace, keys[0], keys[-1]),
    )
    rows = [PrunedUse(memory_id, PrunedSession(key, agent), SessionUse(*use)) for memory_id, key, agent, *use in found]
    return rows, keys[-1] if len(keys) == AT_ONCE else None


def take_session(connection: sqlite3.Connection, namespace: str, row: PrunedSession) -> bool:
    """Notes a pruned session, False if it is known. One whose packets are here goes on counting for their agent."""
    done = connection.execute(
        "INSERT OR IGNORE INTO pruned_sessions (namespace, session_key, agent_id) VALUES (?1, ?2, COALESCE("
        "(SELECT agent_id FROM packets WHERE namespace = ?1 AND session_key = ?2 ORDER BY packet_key LIMIT 1), ?3))",
        (namespace, row.session_key, row.agent_id),
    )
    return done.rowcount > 0


def take_use(
    connection: sqlite3.Connection, namespace: str, key: int, row: PrunedUse
) -> tuple[bool, dict[int, UseCounts]]:
    """Notes a pruned session and what it had said of a memory, by its key. Whether that says more than what stands, and
    the memory's counts if they changed."""
    session_key = row.session.session_key
    stands = connection.execute(
        "SELECT used_millionths, seen_millionths, last_use_time FROM pruned_uses WHERE memory_key = ?"
        " AND session_key = ?",
        (key, session_key),
    ).fetchone()
    if stands is not None and SessionUse(*stands).with_packet(*row.use) == stands:
        return False, {}
    take_session(connection, namespace, row.session)
    connection.execute(f"{INSERT_USES} VALUES (?, ?, ?, ?, ?) {KEEP_LARGEST}", (key, session_key, *row.use))
    return True, tally.add(connection, namespace, session_key, row.memory_id, key, row.use)
