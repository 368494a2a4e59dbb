"""Marks of users on memories. Every function works inside the transaction of the connection that it is given."""

from __future__ import annotations

import sqlite3

from sidecar.domain import Change, Micros, Rating
from sidecar.store import importance, memories
from sidecar.store.jobs import Done
from sidecar.store.rows import COLUMNS, from_row


def rate(
    connection: sqlite3.Connection,
    namespace: str,
    memory_id: str,
    rater: str,
    rating: Rating,
    reason: str,
    now: Micros,
) -> Done[tuple[int, int, int]]:
    """Sets a rater's mark on a memory; the latest stands. Returns raters who say helpful and unhelpful, and the score
    version. Raises MemoryNotFoundError."""
    memory = memories.get(connection, namespace, memory_id)
    helpful, unhelpful = set_rating(connection, memory.key, rater, rating, reason, now)
    if (helpful, unhelpful) == (memory.helpful, memory.unhelpful):
        return Done((helpful, unhelpful, memories.score_version(connection, namespace)))
    version = memories.bump(connection, namespace)
    change = Change(namespace, version, ratings={memory.key: (helpful, unhelpful)})
    return Done((helpful, unhelpful, version), change)


def set_rating(
    connection: sqlite3.Connection, key: int, rater: str, rating: Rating, reason: str, time: Micros
) -> tuple[int, int]:
    """Writes a rater's mark down. Returns raters who say helpful and unhelpful now."""
    if rating is Rating.WITHDRAWN:
        connection.execute("DELETE FROM ratings WHERE memory_key = ? AND rater = ?", (key, rater))
    else:
        connection.execute(
            "INSERT OR REPLACE INTO ratings (memory_key, rater, rating, reason, time) VALUES (?, ?, ?, ?, ?)",
            (key, rater, rating.value, reason, time),
        )
    helpful, unhelpful = connection.execute(
        "SELECT COUNT(CASE rating WHEN 'helpful' THEN 1 END), COUNT(CASE rating WHEN 'unhelpful' THEN 1 END)"
        " FROM ratings WHERE memory_key = ?",
        (key,),
    ).fetchone()
    row = connection.execute(
        f"UPDATE memories SET helpful = ?, unhelpful = ? WHERE memory_key = ? RETURNING {COLUMNS}",
        (helpful, unhelpful, key),
    ).fetchone()
    if row is not None and (memory := from_row(row)).importance_override is None:
        importance.follow_user(connection, memory, time)
    return helpful, unhelpful
