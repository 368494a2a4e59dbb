"""Vectors on the way from one embedder to another: kept beside the memories, and put in their place all at once.

A row of `reembedded` always belongs to the content that its memory has now: who rewrites or deletes a memory removes
it. So what is left to do is what has no row, also after a kill, and no vector of the new embedder is ever read before
all are there. Every function works inside the transaction of the connection that it is given.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from sidecar.domain import Change
from sidecar.errors import OverloadedError
from sidecar.store import indexes, meta, snapshots
from sidecar.store.jobs import Done
from sidecar.store.memories import bump
from sidecar.store.rows import SELECT_MEMORY, from_row


class Text(NamedTuple):
    """A memory to embed: its key, and the content as it was read."""

    key: int
    content: str


@dataclass(frozen=True, slots=True)
class Embedded:
    """A content's vector, None for an embedder that gives none; for the memory only while it has that content."""

    text: Text
    vector: NDArray[np.float32] | None

    @property
    def blob(self) -> bytes | None:
        """The vector as it stands in a row."""
        return None if self.vector is None else np.ascontiguousarray(self.vector, "<f4").tobytes()


def begin(connection: sqlite3.Connection, target: str) -> Done[None]:
    """Makes `target` the embedder that vectors are collected for; those for another are dropped."""
    if _target(connection) != target:
        abandon(connection)
        meta.put(connection, meta.REINDEX_TARGET, target.encode())
    # What damage has left of a vector is none.
    size = 4 * int(target.rpartition(":")[2])
    connection.execute("DELETE FROM reembedded WHERE COALESCE(LENGTH(embedding), 0) != ?", (size,))
    return Done(None)


def abandon(connection: sqlite3.Connection) -> Done[None]:
    """Drops what was collected."""
    connection.execute("DELETE FROM reembedded")
    connection.execute("DELETE FROM meta WHERE key = ?", (meta.REINDEX_TARGET,))
    return Done(None)


def counts(connection: sqlite3.Connection, namespace: str = "") -> tuple[int, int]:
    """Memories that have a vector of the new embedder, and memories in all; "" means of every namespace."""
    (done,) = connection.execute("SELECT COUNT(*) FROM reembedded").fetchone()
    (total,) = connection.execute("SELECT COUNT(*) FROM memories WHERE ?1 IN ('', namespace)", (namespace,)).fetchone()
    return int(done), int(total)


def texts(
    connection: sqlite3.Connection, after: int, limit: int, *, namespace: str = "", only_missing: bool
) -> list[Text]:
    """At most `limit` memories whose keys follow `after`; `only_missing`: of those without a row."""
    missing = " AND memory_key NOT IN (SELECT memory_key FROM reembedded)" if only_missing else ""
    rows = connection.execute(
        f"SELECT memory_key, content FROM memories WHERE memory_key > ?1 AND ?2 IN ('', namespace){missing}"
        " ORDER BY memory_key LIMIT ?3",
        (after, namespace, limit),
    ).fetchall()
    return [Text(*row) for row in rows]


def keep(connection: sqlite3.Connection, target: str, rows: Sequence[Embedded]) -> int:
    """Keeps vectors of `target` for memories that still have that content. Returns how many those are.

    Raises OverloadedError if vectors are collected for another embedder by now.
    """
    _check(connection, target)
    return sum(
        connection.execute(
            "INSERT OR REPLACE INTO reembedded (memory_key, embedding)"
            " SELECT memory_key, ? FROM memories WHERE memory_key = ? AND content = ?",
            (each.blob, each.text.key, each.text.content),
        ).rowcount
        for each in rows
    )


def switch(connection: sqlite3.Connection, target: str) -> bool:
    """Puts all vectors in place and makes `target` the store's embedder. False, and nothing, if one is missing.

    Every namespace moves on. For a store that nobody has loaded: who has hears nothing of it.
    """
    _check(connection, target)
    if texts(connection, 0, 1, only_missing=True):
        return False
    connection.execute(
        "UPDATE memories SET embedding ="
        " (SELECT r.embedding FROM reembedded r WHERE r.memory_key = memories.memory_key)"
    )
    abandon(connection)
    indexes.forget(connection)
    meta.put(connection, meta.EMBEDDER, target.encode())
    for namespace in snapshots.all_namespaces(connection):
        bump(connection, namespace)
    return True


def renew(connection: sqlite3.Connection, embedder: str, rows: Sequence[Embedded]) -> Done[int]:
    """Replaces vectors by those that the store's own embedder gives now, where content is as it was and the vector is
    another. Returns how many those are.

    Raises OverloadedError if the store's embedder is not `embedder`.
    """
    if meta.get(connection, meta.EMBEDDER) != embedder.encode():
        raise _replaced()
    by_namespace: dict[str, list[int]] = {}
    for each in rows:
        found = connection.execute(
            "UPDATE memories SET embedding = ?1 WHERE memory_key = ?2 AND content = ?3 AND embedding IS NOT ?1"
            " RETURNING namespace",
            (each.blob, each.text.key, each.text.content),
        ).fetchall()
        for (namespace,) in found:
            by_namespace.setdefault(namespace, []).append(each.text.key)
    changes = [
        Change(
            namespace,
            bump(connection, namespace),
            upserted=tuple(
                from_row(connection.execute(f"{SELECT_MEMORY} WHERE memory_key = ?", (key,)).fetchone()) for key in keys
            ),
        )
        for namespace, keys in by_namespace.items()
    ]
    count = sum(map(len, by_namespace.values()))
    return Done(count, changes[0], more=tuple(changes[1:])) if changes else Done(count)


def _target(connection: sqlite3.Connection) -> str | None:
    found = meta.get(connection, meta.REINDEX_TARGET)
    return None if found is None else found.decode()


def _check(connection: sqlite3.Connection, target: str) -> None:
    if _target(connection) != target:
        raise _replaced()


def _replaced() -> OverloadedError:
    return OverloadedError("another reindex has begun since, for another embedder; try again when it is done")
