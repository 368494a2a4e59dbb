"""Facts about the store as a whole, by key."""

from __future__ import annotations

import sqlite3

SALT = "salt"
"""32 random bytes, made with the store: the secret of the draws for reserved slots."""


def get(connection: sqlite3.Connection, key: str) -> bytes | None:
    """The value, if it is set."""
    row = connection.execute("SELECT value FROM meta WHERE key = ?", (key,)).fetchone()
    return None if row is None else bytes(row[0])


def put(connection: sqlite3.Connection, key: str, value: bytes) -> None:
    """Sets the value."""
    connection.execute("INSERT OR REPLACE INTO meta (key, value) VALUES (?, ?)", (key, value))
