"""Works out anew what is derived: packet_uses, session_uses and agent_uses from packets, exposures and reports, and
the counts that stand beside their rows. Proves what is kept, and replaces it where it is wrong.
"""

from __future__ import annotations

import sqlite3

from sidecar.store.merge import merge
from sidecar.store.rows import insert_rows
from sidecar.store.tally import INSERT_WORD, reports_of, word_rows

DERIVED = ("packet_uses", "session_uses", "agent_uses")
"""The tables, in the order in which each follows from those before it."""

# An agent whose uses were all taken back keeps a row of zeros, which says as much as none.
_NOT_EMPTY = {
    "packet_uses": "1",
    "session_uses": "1",
    "agent_uses": "(used_millionths, seen_millionths, use_sessions, reported_sessions) != (0, 0, 0, 0)",
}

_SESSIONS = """
    INSERT INTO temp.session_uses (memory_key, session_key, agent_id, used_millionths, seen_millionths, last_use_time)
    SELECT u.memory_key, u.session_key,
        COALESCE(
            (SELECT q.agent_id FROM main.pruned_sessions q WHERE q.namespace = m.namespace
                AND q.session_key = u.session_key),
            (SELECT f.agent_id FROM main.packets f WHERE f.namespace = m.namespace AND f.session_key = u.session_key
                ORDER BY f.packet_key LIMIT 1), ''),
        MAX(u.used_millionths), MAX(u.seen_millionths), MAX(u.last_use_time)
    FROM (
        SELECT w.memory_key, p.session_key, w.used_millionths, w.seen_millionths, w.last_use_time
        FROM temp.packet_uses w JOIN main.packets p ON p.packet_key = w.packet_key
        UNION ALL
        SELECT memory_key, session_key, used_millionths, seen_millionths, last_use_time FROM main.pruned_uses
    ) u
    JOIN main.memories m ON m.memory_key = u.memory_key
    GROUP BY u.memory_key, u.session_key
    HAVING MAX(u.used_millionths) > 0 OR MAX(u.seen_millionths) > 0 OR MAX(u.last_use_time) IS NOT NULL
"""

_AGENTS = """
    INSERT INTO temp.agent_uses (memory_key, agent_id, used_millionths, seen_millionths, use_sessions,
        reported_sessions, last_use_time)
    SELECT memory_key, agent_id, SUM(used_millionths), SUM(seen_millionths), COUNT(last_use_time),
        SUM(seen_millionths > 0), MAX(last_use_time)
    FROM temp.session_uses GROUP BY memory_key, agent_id
"""


def work_out(connection: sqlite3.Connection) -> None:
    """Fills temporary tables of the same names with what the derived tables should hold.

    Any report must be readable, and its packet there. Of packets that are yet to be counted, what was counted before is
    taken as it stands. Until `forget`, a table's name without a schema means the temporary one.
    """
    for table in DERIVED:
        (sql,) = connection.execute("SELECT sql FROM main.sqlite_master WHERE name = ?", (table,)).fetchone()
        connection.execute(sql.replace("CREATE TABLE", "CREATE TEMP TABLE", 1))
    connection.execute(
        "INSERT INTO temp.packet_uses SELECT * FROM main.packet_uses WHERE packet_key IN"
        " (SELECT packet_key FROM main.uncounted_packets)"
    )
    reported = connection.execute(
        "SELECT DISTINCT packet_key FROM main.reports WHERE packet_key NOT IN"
        " (SELECT packet_key FROM main.uncounted_packets) ORDER BY packet_key"
    )
    for (packet_key,) in reported.fetchall():
        memory_keys = dict(
            connection.execute(
                "SELECT memory_id, memory_key FROM main.exposures WHERE packet_key = ? ORDER BY place", (packet_key,)
            ).fetchall()
        )
        merged = merge(reports_of(connection, packet_key), list(memory_keys))
        insert_rows(connection, INSERT_WORD, word_rows(packet_key, memory_keys, merged))
    connection.execute(_SESSIONS)
    connection.execute(_AGENTS)


def forget(connection: sqlite3.Connection) -> None:
    """Drops the temporary tables."""
    for table in DERIVED:
        connection.execute(f"DROP TABLE temp.{table}")


def differences(connection: sqlite3.Connection) -> dict[str, tuple[int, int]]:
    """By derived table that is wrong: how many rows are there that should not, and how many should be and are not.
    A row that is changed counts as both. After `work_out`."""
    found = {}
    for table in DERIVED:
        kept, right = (f"SELECT * FROM {schema}.{table} WHERE {_NOT_EMPTY[table]}" for schema in ("main", "temp"))
        wrong, missing = (
            int(connection.execute(f"SELECT COUNT(*) FROM ({one} EXCEPT {other})").fetchone()[0])
            for one, other in ((kept, right), (right, kept))
        )
        if wrong or missing:
            found[table] = wrong, missing
    return found


def replace(connection: sqlite3.Connection) -> None:
    """Puts what was worked out in the place of what is kept. After `work_out`, in a transaction."""
    for table in DERIVED:
        connection.execute(f"DELETE FROM main.{table}")
        connection.execute(f"INSERT INTO main.{table} SELECT * FROM temp.{table}")
