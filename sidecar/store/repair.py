"""Puts a store right from what it holds: rebuilds what is derived, empties or removes what cannot be read."""

from __future__ import annotations

import contextlib
import secrets
import sqlite3
from collections.abc import Iterator
from pathlib import Path

from sidecar.domain import Micros
from sidecar.errors import FieldViolation, InvalidRequestError, StoreDamagedError
from sidecar.store import kept_logs, meta, rebuild
from sidecar.store.backup import MANIFEST, clear_all_gaps, descriptor
from sidecar.store.check import (
    SALT_BYTES,
    Checked,
    Fault,
    WayOut,
    broken_models,
    broken_packets,
    check,
    dimension,
    memory_fault,
)
from sidecar.store.failures import translate
from sidecar.store.files import claim
from sidecar.store.invariants import (
    HIGHEST_KEY,
    LAST_KEY,
    ORPHANS,
    RATINGS_OF,
    UNKNOWN_SESSIONS,
    UNKNOWN_WORDS,
    WITHOUT_PARTS,
)
from sidecar.store.readers import connect
from sidecar.store.restore import move_score_versions
from sidecar.store.rows import SELECT_MEMORY
from sidecar.store.schema import migrate

_TEXTS = ("memory_id", "content", "kind", "superseded_by", "source_thread", "subject")


def repair(folder: Path, now: Micros) -> Checked:
    """Repairs the store in `folder` where a check finds something, and returns what a check finds after it.

    Raises StoreLockedError while a server has the store, StoreDamagedError if its pages are damaged: those are salvaged
    into another folder; and InvalidRequestError for a backup, which would be none after it.
    """
    found = check(folder)
    if not found.findings:
        return found
    if (folder / MANIFEST).exists():
        words = (
            f"{str(folder)!r} is a backup, and would be none once it is repaired; restore it and repair the store, or"
            " save what can be read with `memory-ranker check --repair --into FOLDER`"
        )
        raise InvalidRequestError([FieldViolation("data", words)])
    files = claim(folder)
    try:
        found = check(folder)
        # What a log lost is lost: it keeps nothing else from being put right.
        in_the_way = (each for each in found.findings if each.fault is not Fault.LOG)
        beyond = next((each for each in in_the_way if each.way_out is not WayOut.REPAIR), None)
        if beyond is not None:
            way_out = (
                "save what can be read with `memory-ranker check --repair --into FOLDER`"
                if beyond.way_out is WayOut.SALVAGE
                else "restore a backup"
            )
            raise StoreDamagedError(f"{found.database} cannot be repaired in place: {beyond.message}; {way_out}")
        kept_logs.keep(files)
        with contextlib.closing(connect(files.database, writes=True)) as connection:
            connection.execute("PRAGMA secure_delete = ON").fetchall()
            connection.execute("PRAGMA synchronous = FULL")
            migrate(connection)
            put_right(connection, now)
        with descriptor(files.database) as file:
            clear_all_gaps(file)
        return check(folder)
    except sqlite3.Error as error:
        raise translate(error) from error
    finally:
        files.release()


def put_right(connection: sqlite3.Connection, now: Micros) -> None:
    """Repairs an open database whose pages and tables are whole. Packets that were cached before are stale then."""
    connection.text_factory = lambda data: data.decode("utf-8", "surrogateescape")
    with _transaction(connection):
        _empty_what_is_broken(connection)
        for table, condition in UNKNOWN_WORDS:
            connection.execute(f"DELETE FROM {table} WHERE {condition}")
        for key, _ in list(broken_packets(connection)):
            for table in ("packets", "exposures", "reports"):
                connection.execute(f"DELETE FROM {table} WHERE packet_key = ?", (key,))
        for version in list(broken_models(connection)):
            connection.execute("DELETE FROM models WHERE version = ?", (version,))
        for table, condition, _ in ORPHANS:
            connection.execute(f"DELETE FROM {table} WHERE {condition}")
        for session in connection.execute(UNKNOWN_SESSIONS).fetchall():
            connection.execute(
                "INSERT INTO pruned_sessions (namespace, session_key, agent_id) VALUES (?, ?, '')", session
            )
        connection.execute("DELETE FROM uncounted_packets")  # all are counted below
        connection.execute(f"UPDATE memories SET importance_content = NULL WHERE {WITHOUT_PARTS}")
        _count(connection)
        _continue_keys(connection)
        if len(meta.get(connection, meta.SALT) or b"") != SALT_BYTES:
            meta.put(connection, meta.SALT, secrets.token_bytes(SALT_BYTES))
    connection.text_factory = str
    rebuild.work_out(connection)
    with _transaction(connection):
        rebuild.replace(connection)
    rebuild.forget(connection)
    move_score_versions(connection, now)


def _empty_what_is_broken(connection: sqlite3.Connection) -> None:
    numbers = dimension(connection)
    for row in connection.execute(f"{SELECT_MEMORY} ORDER BY memory_key").fetchall():
        fault = memory_fault(row, numbers)
        key = row[-1]
        if fault is not None and fault[0] is Fault.VECTORS:
            connection.execute("UPDATE memories SET embedding = NULL WHERE memory_key = ?", (key,))
        elif fault is not None:
            _mend(connection, key)
    if numbers is None:
        connection.execute("UPDATE memories SET embedding = NULL WHERE embedding IS NOT NULL")


def _mend(connection: sqlite3.Connection, key: int) -> None:
    """Keeps what can be read of a memory: texts with U+FFFD where they are no UTF-8, and none of a broken list. An id
    that had to be changed gets the key behind it, so that it is nobody else's."""
    names = ", ".join(_TEXTS)
    texts = connection.execute(f"SELECT {names} FROM memories WHERE memory_key = ?", (key,)).fetchone()
    values = [
        str(text).encode("utf-8", "surrogateescape").decode("utf-8", "replace").replace("\0", "\ufffd")
        for text in texts
    ]
    if values[0] != texts[0]:
        values[0] += f"~{key}"
    connection.execute(
        f"UPDATE memories SET ({names}) = ({', '.join('?' * len(values))}), tags = '[]', metadata = '{{}}',"
        " embedding = NULL WHERE memory_key = ?",
        (*values, key),
    )
    connection.execute("DELETE FROM reembedded WHERE memory_key = ?", (key,))


def _count(connection: sqlite3.Connection) -> None:
    connection.execute(
        "INSERT OR IGNORE INTO namespaces (namespace, score_version, memory_count, update_time)"
        " SELECT namespace, 0, 0, MAX(update_time) FROM memories GROUP BY namespace"
    )
    connection.execute(
        "UPDATE namespaces SET memory_count ="
        " (SELECT COUNT(*) FROM memories m WHERE m.namespace = namespaces.namespace)"
    )
    connection.execute(
        f"UPDATE memories SET (helpful, unhelpful) = (SELECT {RATINGS_OF})"
        f" WHERE (helpful, unhelpful) != (SELECT {RATINGS_OF})"
    )


def _continue_keys(connection: sqlite3.Connection) -> None:
    (highest,) = connection.execute(HIGHEST_KEY).fetchone()
    (last,) = connection.execute(LAST_KEY).fetchone()
    connection.execute("DELETE FROM sqlite_sequence WHERE name = 'memories'")
    values = (max(highest or 0, last or 0),)
    connection.execute("INSERT INTO sqlite_sequence (name, seq) VALUES ('memories', ?)", values)


@contextlib.contextmanager
def _transaction(connection: sqlite3.Connection) -> Iterator[None]:
    connection.execute("BEGIN IMMEDIATE")
    try:
        yield
    except BaseException:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise
    connection.execute("COMMIT")
