"""Reads a namespace as a whole: what ranking builds its index from, and how it stands in numbers."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from dataclasses import dataclass

from sidecar.domain import Memory, Micros, NamespaceState, UseCounts
from sidecar.store import memories
from sidecar.store.rows import SELECT_MEMORY, Row, from_row


@dataclass(frozen=True, slots=True)
class NamespaceSummary:
    """How a namespace stands. `update_time` is when a memory in it was last written, 0 if never."""

    namespace: str
    score_version: int
    memory_count: int
    update_time: Micros


@dataclass(frozen=True, slots=True)
class StateRows:
    """A namespace as it was read, before objects are made of it: a read must not stay open for that long."""

    score_version: int
    memories: Sequence[Row]


def read_state(connection: sqlite3.Connection, namespace: str) -> StateRows:
    """The rows of one moment."""
    return StateRows(
        memories.score_version(connection, namespace),
        connection.execute(f"{SELECT_MEMORY} WHERE namespace = ? ORDER BY memory_key", (namespace,)).fetchall(),
    )


def build_state(namespace: str, rows: StateRows) -> NamespaceState:
    """Makes objects of the rows. Memories come in the order of their keys."""
    uses: dict[int, UseCounts] = {}
    return NamespaceState(namespace, rows.score_version, tuple(from_row(row) for row in rows.memories), uses)


def list_memories(connection: sqlite3.Connection, namespace: str, after: str, limit: int) -> list[Memory]:
    """At most `limit` memories whose ids follow `after`, in the order of their ids' UTF-8 bytes."""
    rows = connection.execute(
        f"{SELECT_MEMORY} WHERE namespace = ? AND memory_id > ? ORDER BY memory_id LIMIT ?", (namespace, after, limit)
    ).fetchall()
    return [from_row(row) for row in rows]


def summary(connection: sqlite3.Connection, namespace: str) -> NamespaceSummary:
    """How a namespace stands; zeros for one that is not there."""
    row = connection.execute(
        "SELECT namespace, score_version, memory_count, update_time FROM namespaces WHERE namespace = ?", (namespace,)
    ).fetchone()
    if row is None:
        return NamespaceSummary(namespace, memories.score_version(connection, namespace), 0, 0)
    return NamespaceSummary(*row)


def list_namespaces(connection: sqlite3.Connection, after: str, limit: int) -> list[NamespaceSummary]:
    """At most `limit` namespaces whose names follow `after`, in the order of their UTF-8 bytes."""
    rows = connection.execute(
        "SELECT namespace, score_version, memory_count, update_time FROM namespaces WHERE namespace > ?"
        " ORDER BY namespace LIMIT ?",
        (after, limit),
    ).fetchall()
    return [NamespaceSummary(*row) for row in rows]
