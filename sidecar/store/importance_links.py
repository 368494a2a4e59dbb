"""Which content parts of importances follow from which memories, and what puts one up to be scored anew.

A memory that is put up loses its content score and keeps how the last one came about until it is scored, so that a
memory that was never scored as it stands can be told from one that was: only the first tells others of itself. Every
function works inside the transaction of the connection that it is given.
"""

from __future__ import annotations

import json
import math
import sqlite3
from collections.abc import Iterable, Mapping, Sequence

from sidecar.domain import FULL_THEME, Memory, Micros, PartName, ScoredContent

UNIQUENESS, THEME = "content.uniqueness", "theme"
"""Lines of a content part."""

IDS_AT_ONCE = 500
"""Ids that one statement names: SQLite bounds how many."""


def read(connection: sqlite3.Connection, key: int) -> tuple[str, ...]:
    """The ids that a memory's content part follows from."""
    rows = connection.execute("SELECT other_id FROM importance_links WHERE memory_key = ? ORDER BY place", (key,))
    return tuple(other_id for (other_id,) in rows)


def write(connection: sqlite3.Connection, key: int, about: Sequence[str]) -> None:
    """Notes them, in the place of those before."""
    connection.execute("DELETE FROM importance_links WHERE memory_key = ?", (key,))
    connection.executemany(
        "INSERT INTO importance_links (memory_key, place, namespace, other_id)"
        " SELECT memory_key, ?, namespace, ? FROM memories WHERE memory_key = ?",
        [(place, other_id, key) for place, other_id in enumerate(about)],
    )


def followers(connection: sqlite3.Connection, namespace: str, ids: Sequence[str]) -> list[int]:
    """The keys of memories whose content part follows from one of those, which changed, came or went."""
    keys: dict[int, None] = {}
    for first in range(0, len(ids), IDS_AT_ONCE):
        some = ids[first : first + IDS_AT_ONCE]
        among = ", ".join("?" * len(some))
        rows = connection.execute(
            f"SELECT memory_key FROM importance_links WHERE namespace = ? AND other_id IN ({among})",
            (namespace, *some),
        )
        keys.update(dict.fromkeys(key for (key,) in rows))
    return list(keys)


def concerned(connection: sqlite3.Connection, namespace: str, memory: Memory, scored: ScoredContent) -> list[int]:
    """The keys of scored memories that a memory concerns as it was scored, and whose content parts do not know of
    it."""
    keys = []
    for other_id in dict.fromkeys((*scored.concerns, *scored.repeats)):
        row = connection.execute(
            "SELECT m.memory_key, p.lines FROM memories m JOIN importance_parts p ON p.memory_key = m.memory_key"
            " AND p.part = ? WHERE m.namespace = ? AND m.memory_id = ? AND m.importance_content IS NOT NULL"
            " AND NOT EXISTS (SELECT 1 FROM importance_links l WHERE l.memory_key = m.memory_key AND l.other_id = ?)",
            (PartName.CONTENT.value, namespace, other_id, memory.id),
        ).fetchone()
        if row is None:
            continue
        key, values = row[0], {factor: value for factor, value, *_ in json.loads(row[1])}
        left = scored.concerns.get(other_id, math.inf)
        if (
            left is None
            or left <= values.get(UNIQUENESS, 1.0)
            or (other_id in scored.repeats and not _is_full(connection, key, values.get(THEME, 0.0), memory))
        ):
            keys.append(key)
    return keys


def put_up(connection: sqlite3.Connection, keys: Iterable[int]) -> list[int]:
    """Puts memories up. Returns the keys of those that were not before."""
    return [
        key
        for key in keys
        if connection.execute(
            "UPDATE memories SET importance_content = NULL WHERE memory_key = ? AND importance_content IS NOT NULL",
            (key,),
        ).rowcount
    ]


def _is_full(connection: sqlite3.Connection, key: int, theme: float, memory: Memory) -> bool:
    """True if a memory's theme has all the sessions that count, and a further memory comes after them."""
    (last,) = connection.execute(
        "SELECT MAX(o.create_time) FROM importance_links l JOIN memories o"
        " ON o.namespace = l.namespace AND o.memory_id = l.other_id WHERE l.memory_key = ?",
        (key,),
    ).fetchone()
    return theme >= FULL_THEME and last is not None and memory.create_time > last


def put_up_turned(
    connection: sqlite3.Connection, since: Micros, until: Micros
) -> tuple[dict[str, list[int]], Micros | None]:
    """Puts up what follows from memories that began or ceased to be valid after `since` and up to `until`, and those
    that began, which are to tell others of themselves. Returns the keys by namespace, and when the next one turns."""
    found: dict[str, list[int]] = {}
    ended = connection.execute(
        "SELECT namespace, memory_id FROM memories WHERE valid_until_time > ? AND valid_until_time <= ?",
        (since, until),
    ).fetchall()
    began = connection.execute(
        "SELECT m.namespace, m.memory_id, m.memory_key FROM memories m JOIN importance_parts p"
        " ON p.memory_key = m.memory_key AND p.part = ? AND p.time < m.valid_from_time"
        " WHERE m.valid_from_time > ? AND m.valid_from_time <= ?",
        (PartName.CONTENT.value, since, until),
    ).fetchall()
    for namespace, memory_id, *own in (*ended, *began):
        keys = found.setdefault(namespace, [])
        for key in own:
            forget(connection, key)
        keys += put_up(connection, [*followers(connection, namespace, [memory_id]), *own])
    nexts = connection.execute(
        "SELECT MIN(valid_from_time) FROM memories WHERE valid_from_time > ?"
        " UNION ALL SELECT MIN(valid_until_time) FROM memories WHERE valid_until_time > ?",
        (until, until),
    ).fetchall()
    return found, min((time for (time,) in nexts if time is not None), default=None)


def any_waits(connection: sqlite3.Connection, namespace: str, ids: Iterable[str]) -> bool:
    """True if one of the memories is to be scored, and so may be at work just now from what stood before."""
    query = "SELECT 1 FROM memories WHERE namespace = ? AND memory_id = ? AND importance_content IS NULL"
    return any(connection.execute(query, (namespace, each)).fetchone() for each in ids)


def stand(connection: sqlite3.Connection, namespace: str, beside: Mapping[str, Micros | None]) -> bool:
    """True if the memories are as they were: id -> when it was last changed, None for one that was not there."""
    query = "SELECT update_time FROM memories WHERE namespace = ? AND memory_id = ?"
    for memory_id, time in beside.items():
        row = connection.execute(query, (namespace, memory_id)).fetchone()
        if (None if row is None else row[0]) != time:
            return False
    return True


def forget(connection: sqlite3.Connection, key: int) -> None:
    """Forgets what a memory's content part came of: it is as if it had never been scored."""
    connection.execute("DELETE FROM importance_parts WHERE memory_key = ? AND part = ?", (key, PartName.CONTENT.value))
    connection.execute("DELETE FROM importance_links WHERE memory_key = ?", (key,))
