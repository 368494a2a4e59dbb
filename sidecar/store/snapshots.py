"""Reads a namespace as a whole: what ranking builds its index from, and how it stands in numbers."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from dataclasses import dataclass

from sidecar.domain import Memory, Micros, NamespaceState
from sidecar.store import importance, memories, meta, tally
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
    counts: Sequence[Row]
    agent_sessions: int


@dataclass(frozen=True, slots=True)
class NamespaceNumbers:
    """A namespace in numbers. A reported packet has at least one EXPLICIT or INFERRED report."""

    namespace: str
    score_version: int
    memory_count: int
    packet_count: int
    reported_packet_count: int
    unscored_count: int
    """Memories without a content part of their importance."""


@dataclass(frozen=True, slots=True)
class StoreNumbers:
    """The whole store in numbers. `byte_count` is what database and log take on disk."""

    memory_count: int
    namespace_count: int
    packet_count: int
    reported_packet_count: int
    score_version: int
    """The sum of the namespaces' score versions."""
    byte_count: int


def read_state(connection: sqlite3.Connection, namespace: str) -> StateRows:
    """The rows of one moment."""
    return StateRows(
        memories.score_version(connection, namespace),
        connection.execute(f"{SELECT_MEMORY} WHERE namespace = ? ORDER BY memory_key", (namespace,)).fetchall(),
        tally.read_counts(connection, namespace),
        meta.agent_sessions(connection),
    )


def build_state(namespace: str, rows: StateRows) -> NamespaceState:
    """Makes objects of the rows. Memories come in the order of their keys."""
    found = tuple(from_row(row) for row in rows.memories)
    return NamespaceState(namespace, rows.score_version, found, tally.build_counts(rows.counts, rows.agent_sessions))


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


def all_namespaces(connection: sqlite3.Connection) -> list[str]:
    """The names of all namespaces."""
    return [name for (name,) in connection.execute("SELECT namespace FROM namespaces ORDER BY namespace").fetchall()]


def list_namespaces(connection: sqlite3.Connection, after: str, limit: int) -> list[NamespaceSummary]:
    """At most `limit` namespaces whose names follow `after`, in the order of their UTF-8 bytes."""
    rows = connection.execute(
        "SELECT namespace, score_version, memory_count, update_time FROM namespaces WHERE namespace > ?"
        " ORDER BY namespace LIMIT ?",
        (after, limit),
    ).fetchall()
    return [NamespaceSummary(*row) for row in rows]


def namespace_numbers(connection: sqlite3.Connection, namespace: str) -> NamespaceNumbers:
    """A namespace in numbers; zeros for one that is not there."""
    standing = summary(connection, namespace)
    (packets,) = connection.execute("SELECT COUNT(*) FROM packets WHERE namespace = ?", (namespace,)).fetchone()
    (reported,) = connection.execute(
        "SELECT COUNT(DISTINCT packet_key) FROM reports WHERE namespace = ? AND channel IN ('explicit', 'inferred')",
        (namespace,),
    ).fetchone()
    unscored = importance.unscored_count(connection, namespace)
    return NamespaceNumbers(namespace, standing.score_version, standing.memory_count, packets, reported, unscored)


def store_numbers(connection: sqlite3.Connection, byte_count: int) -> StoreNumbers:
    """The whole store in numbers."""
    memory_count, namespace_count, score_version = connection.execute(
        "SELECT COALESCE(SUM(memory_count), 0), COUNT(*), COALESCE(SUM(score_version), 0) FROM namespaces"
    ).fetchone()
    (packets,) = connection.execute("SELECT COUNT(*) FROM packets").fetchone()
    (reported,) = connection.execute(
        "SELECT COUNT(DISTINCT packet_key) FROM reports WHERE channel IN ('explicit', 'inferred')"
    ).fetchone()
    return StoreNumbers(memory_count, namespace_count, packets, reported, score_version, byte_count)
