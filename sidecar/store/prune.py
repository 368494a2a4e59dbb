"""Prunes the packet log: removes old packets with their reports, a few at a time, and keeps what use came to.

What pruned packets said of a memory stays, by session, in `pruned_uses`; `pruned_sessions` keeps whom a session counts
for. So no score moves when a log is pruned.
"""

from __future__ import annotations

import sqlite3
from dataclasses import dataclass

from sidecar.domain import DAY, Micros
from sidecar.store.audit_sql import Scope
from sidecar.store.jobs import Done

AT_ONCE = 200
"""Packets in one transaction: other writes come between."""
SAMPLE = 200
"""Packets that the size of the log is estimated from."""
GROWTH_DAYS = 7
EXPOSURE_BYTES = 110
REPORT_BYTES = 220
"""A row with its part of the indexes, roughly."""

_BLOBS = (
    "request",
    *("features", "contributions", "raw", "left_out", "degradations", "undrawn_ids", "undrawn_keys", "undrawn_tokens"),
    *("kinds", "other_ways"),
    *("undrawn_scores", "undrawn_task_fits", "undrawn_propensities", "undrawn_features", "undrawn_raw"),
)
_BYTES = (
    f"(500 + {' + '.join(f'LENGTH(p.{name})' for name in _BLOBS)}"
    f" + {EXPOSURE_BYTES} * (SELECT COUNT(*) FROM exposures e WHERE e.packet_key = p.packet_key)"
    f" + {REPORT_BYTES} * (SELECT COUNT(*) FROM reports r WHERE r.packet_key = p.packet_key))"
)
"""SQL: about how much of the store a packet takes with all that hangs on it."""

INSERT_USES = "INSERT INTO pruned_uses (memory_key, session_key, used_millionths, seen_millionths, last_use_time)"
KEEP_LARGEST = (
    "ON CONFLICT (memory_key, session_key) DO UPDATE SET"
    " used_millionths = MAX(used_millionths, excluded.used_millionths),"
    " seen_millionths = MAX(seen_millionths, excluded.seen_millionths),"
    " last_use_time = MAX(COALESCE(last_use_time, excluded.last_use_time),"
    " COALESCE(excluded.last_use_time, last_use_time))"
)
"""SQL: what a session said of a memory is the largest of what each of its packets did."""


@dataclass(frozen=True, slots=True)
class Pruned:
    """What was removed, or would be: packets, reports, and bytes of the store that are free again."""

    packets: int = 0
    reports: int = 0
    freed_bytes: int = 0

    def plus(self, other: Pruned) -> Pruned:
        """Both together."""
        return Pruned(self.packets + other.packets, self.reports + other.reports, self.freed_bytes + other.freed_bytes)


def choose(
    connection: sqlite3.Connection, namespace: str, older_than: Micros | None, max_bytes: int | None, keep_from: Micros
) -> list[int]:
    """Keys of the packets to prune, oldest first: those before `older_than`, and the oldest until the rest of the log
    has at most `max_bytes`. None from `keep_from` on."""
    of_packets = Scope(namespace).of_packets("p")
    cut = keep_from if older_than is None else min(older_than, keep_from)
    by_age = [
        key
        for (key,) in connection.execute(
            f"SELECT p.packet_key FROM packets p WHERE {of_packets} AND p.create_time < ?", (cut,)
        )
    ]
    if max_bytes is None:
        return by_age if older_than is not None else []
    sizes = connection.execute(
        f"SELECT p.packet_key, p.create_time, {_BYTES} FROM packets p WHERE {of_packets}"
        " ORDER BY p.create_time, p.packet_key"
    ).fetchall()
    total = sum(size for _, _, size in sizes)
    keys = by_age if older_than is not None else []
    gone = set(keys)
    total -= sum(size for key, _, size in sizes if key in gone)
    for key, create_time, size in sizes:
        if total <= max_bytes:
            break
        if key not in gone and create_time < keep_from:
            keys.append(key)
            total -= size
    return sorted(keys)


def measure(connection: sqlite3.Connection, keys: list[int]) -> Pruned:
    """What would be removed with these packets."""
    found = Pruned()
    for key in keys:
        size, reports = connection.execute(
            f"SELECT {_BYTES}, (SELECT COUNT(*) FROM reports r WHERE r.packet_key = p.packet_key) FROM packets p"
            " WHERE p.packet_key = ?",
            (key,),
        ).fetchone() or (0, 0)
        found = found.plus(Pruned(1, reports, size))
    return found


def remove(connection: sqlite3.Connection, keys: list[int]) -> Done[Pruned]:
    """Removes packets with their reports, and keeps what these came to. One whose reports are yet to be counted
    stays."""
    uncounted = {key for (key,) in connection.execute("SELECT packet_key FROM uncounted_packets")}
    keys = [key for key in keys if key not in uncounted]
    measured = measure(connection, keys)
    for key in keys:
        connection.execute(
            "INSERT OR IGNORE INTO pruned_sessions (namespace, session_key, agent_id)"
            " SELECT p.namespace, p.session_key, (SELECT f.agent_id FROM packets f WHERE f.namespace = p.namespace"
            " AND f.session_key = p.session_key ORDER BY f.packet_key LIMIT 1) FROM packets p WHERE p.packet_key = ?"
            # A session of a single packet that nobody reported on leaves nothing to count.
            " AND (p.session_id <> '' OR EXISTS (SELECT 1 FROM packet_uses u WHERE u.packet_key = p.packet_key))",
            (key,),
        )
        connection.execute(
            f"{INSERT_USES} SELECT u.memory_key, p.session_key, MAX(u.used_millionths), MAX(u.seen_millionths),"
            " MAX(u.last_use_time) FROM packet_uses u JOIN packets p ON p.packet_key = u.packet_key"
            " JOIN memories m ON m.memory_key = u.memory_key WHERE u.packet_key = ?"
            " GROUP BY u.memory_key, p.session_key HAVING MAX(u.seen_millionths) > 0"
            " OR MAX(u.last_use_time) IS NOT NULL"
            f" {KEEP_LARGEST}",
            (key,),
        )
        connection.execute(
            "DELETE FROM report_memories WHERE report_key IN (SELECT report_key FROM reports WHERE packet_key = ?)",
            (key,),
        )
        for table in ("reports", "packet_uses", "exposures", "packets"):
            connection.execute(f"DELETE FROM {table} WHERE packet_key = ?", (key,))
    return Done(measured, erased=bool(keys))


def growth(connection: sqlite3.Connection, now: Micros) -> int:
    """About how many bytes a day the log grew by over the last seven days, or since its first packet."""
    cut = now - GROWTH_DAYS * DAY
    first, last = connection.execute("SELECT MIN(packet_key), MAX(packet_key) FROM packets").fetchone()
    if first is None:
        return 0
    low, high = first, last + 1
    while low < high:  # keys grow with time: no index by time is needed
        middle = (low + high) // 2
        key, create_time = connection.execute(
            "SELECT packet_key, create_time FROM packets WHERE packet_key >= ? ORDER BY packet_key LIMIT 1", (middle,)
        ).fetchone() or (last + 1, now)
        low, high = (key + 1, high) if create_time < cut else (low, middle)
    (begin,) = connection.execute("SELECT MIN(create_time) FROM packets WHERE packet_key >= ?", (first,)).fetchone()
    sizes = [
        size
        for (size,) in connection.execute(
            f"SELECT {_BYTES} FROM packets p WHERE p.packet_key >= ? ORDER BY p.packet_key DESC LIMIT {SAMPLE}", (low,)
        )
    ]
    if not sizes:
        return 0
    days = max(1.0, min(GROWTH_DAYS, (now - begin) / DAY))
    return int(sum(sizes) / len(sizes) * (last - low + 1) / days)
