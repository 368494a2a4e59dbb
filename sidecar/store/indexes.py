"""Which file holds the index of a namespace, and which memories were written since: kept in the database itself.

So a file counts only while the database names it, whatever is copied, restored or killed: a file that was not named yet
is litter, and one that is gone is built anew. The files hold no words, and no database writes to them.
"""

from __future__ import annotations

import logging
import sqlite3
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from sidecar.domain import Change, IndexedState, Memory, UseCounts
from sidecar.store import memories, meta, tally
from sidecar.store.rows import SELECT_MEMORY, SELECT_TEXT, from_row

_log = logging.getLogger(__name__)

PREFIX = "index-"
"""What the names of index files begin with, in the data folder."""

_SIZES = (1, 4, 16, 64, 500)
"""How many keys one statement asks for: few sizes, so that each is prepared once."""

IDS_AT_ONCE = 1 << 16
_BETWEEN = "\0"  # which no id may hold
_LAST = "SELECT memory_id FROM memories WHERE namespace = ? AND memory_id > ? ORDER BY memory_id LIMIT 1 OFFSET ?"
_JOINED = (
    "SELECT group_concat(memory_key), group_concat(memory_id, ?) FROM memories"
    " WHERE namespace = ? AND memory_id > ? AND memory_id <= ?"
)


def begin(connection: sqlite3.Connection, namespace: str) -> None:
    """Notes from now on what is written in a namespace, for an index file that is about to be made."""
    connection.execute(
        "INSERT OR IGNORE INTO index_files (namespace, file, score_version) VALUES (?, '', 0)", (namespace,)
    )


def keep(connection: sqlite3.Connection, namespace: str, file: str, score_version: int) -> bool:
    """Names the file that holds the index as of a score version; what was noted up to there is in it. False, and
    nothing, if the namespace was purged since `begin`."""
    kept = connection.execute(
        "UPDATE index_files SET file = ?, score_version = ? WHERE namespace = ?", (file, score_version, namespace)
    ).rowcount
    connection.execute(
        "DELETE FROM changed_memories WHERE namespace = ? AND score_version <= ?", (namespace, score_version)
    )
    return kept > 0


def forget(connection: sqlite3.Connection, namespace: str | None = None) -> None:
    """Takes the word for the file of a namespace back, or for all; None means all."""
    for table in ("index_files", "changed_memories"):
        if namespace is None:
            connection.execute(f"DELETE FROM {table}")
        else:
            connection.execute(f"DELETE FROM {table} WHERE namespace = ?", (namespace,))


def note(connection: sqlite3.Connection, change: Change) -> None:
    """Notes which memories a change has touched, in its own transaction."""
    if change.purged:
        forget(connection, change.namespace)
        return
    keys = [memory.key for memory in change.upserted]
    for touched in (
        change.deleted_keys,
        change.uses,
        change.ratings,
        change.importance_contents,
        change.importance_uses,
    ):
        keys.extend(touched)
    connection.execute(
        "INSERT INTO changed_memories (namespace, score_version, memory_keys)"
        " SELECT namespace, ?, ? FROM index_files WHERE namespace = ?",
        (change.score_version, np.array(keys, "<i8").tobytes(), change.namespace),
    )


def state(connection: sqlite3.Connection, namespace: str) -> IndexedState | None:
    """How a namespace stands to its index file; None without one."""
    found = _file(connection, namespace)
    if found is None:
        return None
    file, index_version = found
    rows = connection.execute(
        "SELECT memory_keys FROM changed_memories WHERE namespace = ? AND score_version > ?", (namespace, index_version)
    ).fetchall()
    keys: list[int] = np.unique(np.frombuffer(b"".join(blob for (blob,) in rows), "<i8")).tolist()
    written = read(connection, keys, with_vectors=True)
    alive = {memory.key for memory in written}
    uses = tally.build_counts(tally.read_counts_of(connection, list(alive)), meta.agent_sessions(connection))
    change = Change(
        namespace,
        memories.score_version(connection, namespace),
        upserted=tuple(written),
        deleted_keys=tuple(key for key in keys if key not in alive),
        uses={key: uses.get(key, UseCounts()) for key in alive},
    )
    return IndexedState(file, index_version, change, *_ids(connection, namespace))


def _ids(connection: sqlite3.Connection, namespace: str) -> tuple[NDArray[np.int64], list[str]]:
    """Keys and ids of all memories, joined by SQLite: to make a row of each takes three times as long."""
    keys, ids = [np.empty(0, np.int64)], list[str]()
    after: str | bytes = ""
    while isinstance(after, str):
        (last,) = connection.execute(_LAST, (namespace, after, IDS_AT_ONCE - 1)).fetchone() or (b"",)  # above any text
        joined_keys, joined_ids = connection.execute(_JOINED, (_BETWEEN, namespace, after, last)).fetchone()
        if joined_keys is not None:
            keys.append(np.fromstring(joined_keys, np.int64, sep=","))
            ids += joined_ids.split(_BETWEEN)
        after = last
    return np.concatenate(keys), ids


def files(connection: sqlite3.Connection) -> set[str]:
    """The files that are named."""
    return {file for (file,) in connection.execute("SELECT file FROM index_files WHERE file != ''")}


def sweep(folder: Path, named: set[str]) -> None:
    """Removes index files that the database does not name. What cannot be removed stays, and is told in the log."""
    for path in folder.glob(f"{PREFIX}*"):
        if path.name not in named:
            try:
                path.unlink(missing_ok=True)
            except OSError as error:
                _log.warning("%s is no index file in use and cannot be removed: %s", path, error.strerror)


def read(connection: sqlite3.Connection, keys: Sequence[int], *, with_vectors: bool = False) -> list[Memory]:
    """Those of the memories of these keys that are there, in the order of their keys."""
    select = SELECT_MEMORY if with_vectors else SELECT_TEXT
    found: list[Memory] = []
    at = 0
    while at < len(keys):
        size = next((size for size in _SIZES if size >= len(keys) - at), _SIZES[-1])
        some = keys[at : at + size]
        places = ", ".join("?" * size)
        asked = (*some, *[some[-1]] * (size - len(some)))
        found += map(from_row, connection.execute(f"{select} WHERE memory_key IN ({places})", asked).fetchall())
        at += len(some)
    return found


def _file(connection: sqlite3.Connection, namespace: str) -> tuple[str, int] | None:
    row = connection.execute(
        "SELECT file, score_version FROM index_files WHERE namespace = ? AND file != ''", (namespace,)
    ).fetchone()
    return None if row is None else (str(row[0]), int(row[1]))
