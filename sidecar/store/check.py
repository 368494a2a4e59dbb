"""Looks for damage in a store, and names what it finds. Changes nothing, and needs no lock: it reads one moment."""

from __future__ import annotations

import contextlib
import sqlite3
from collections.abc import Iterator
from dataclasses import dataclass, replace
from enum import StrEnum
from itertools import chain
from pathlib import Path

import numpy as np

from sidecar.errors import ModelRefusedError, RankerError, SchemaTooNewError, StoreNotFoundError
from sidecar.plurals import counted
from sidecar.store import backup, kept_logs, meta, packets, rebuild
from sidecar.store.failures import translate
from sidecar.store.invariants import (
    HIGHEST_KEY,
    LAST_KEY,
    MEMORY_COUNTS,
    ORPHANS,
    RATINGS_OF,
    UNKNOWN_SESSIONS,
    UNKNOWN_WORDS,
    WITHOUT_PARTS,
)
from sidecar.store.readers import connect_for_reading
from sidecar.store.rows import SELECT_MEMORY, from_row
from sidecar.store.schema import APPLICATION_ID, MIGRATIONS, declarations, declared
from sidecar.store.wal import find_break
from sidecar.weights.archive import files_of
from sidecar.weights.artifact import is_as_written

MESSAGES = 20
"""Most of SQLite's own findings that are kept."""
EXAMPLES = 5
SALT_BYTES = 32


class Fault(StrEnum):
    """What can be wrong, in the order in which it is looked for."""

    MISSING = "missing"
    BACKUP = "backup"
    LOG = "log"
    PAGES = "pages"
    SCHEMA = "schema"
    UNREADABLE = "unreadable"
    VECTORS = "vectors"
    ORPHANS = "orphans"
    USES = "uses"
    COUNTS = "counts"
    KEYS = "keys"
    FACTS = "facts"
    MODELS = "models"
    IMPORTANCE = "importance"


class WayOut(StrEnum):
    """What helps against a fault."""

    REPAIR = "repair"
    """It is rebuilt, or taken out, in place."""
    SALVAGE = "salvage"
    """What can be read is brought into a new folder."""
    RESTORE = "restore"
    """Only a backup helps."""


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that is wrong: which fault, in which table ("" for the whole), how often, and what helps."""

    fault: Fault
    table: str
    count: int
    message: str
    way_out: WayOut = WayOut.REPAIR
    examples: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Checked:
    """What a check found in a database, and the rows that it looked at by table."""

    database: Path
    schema_version: int
    findings: tuple[Finding, ...]
    rows: dict[str, int]


def check(folder: Path) -> Checked:
    """What is wrong with the store in `folder`, which may be serving, or with the backup.

    Raises StoreNotFoundError if there is no folder, SchemaTooNewError if a newer program wrote it,
    StoreUnavailableError if it cannot be read at all.
    """
    database = folder / "memories.db"
    if not database.is_file() or not database.stat().st_size:
        if not folder.is_dir():
            raise StoreNotFoundError(f"there is no folder {folder}; name the store's with --data")
        words = f"{database} is {'empty' if database.exists() else 'not there'}, so there is no store in this folder"
        return Checked(database, 0, (Finding(Fault.MISSING, "", 1, words, WayOut.RESTORE),), {})
    words = backup.difference(folder)
    of_backup = (Finding(Fault.BACKUP, "", 1, words, WayOut.RESTORE),) if words else ()
    found = _read(database)
    return replace(found, findings=(*of_backup, *_log(folder), *found.findings))


def _log(folder: Path) -> Iterator[Finding]:
    """A damaged write-ahead log, and those that were kept. A server may be writing to it, so that a break counts only
    if it still stands at a second look."""
    log = folder / f"{backup.DATABASE}-wal"
    if (found := find_break(log)) is not None and (again := find_break(log)) is not None and again.frame == found.frame:
        words = (
            f"the write-ahead log is damaged: {kept_logs.cut_off(again)}; the next start, or a repair, keeps it aside"
            " and goes on without them"
        )
        yield Finding(Fault.LOG, "", again.commits, words)
    for each in kept_logs.kept(folder):
        yield Finding(Fault.LOG, "", 1, each.words, WayOut.RESTORE)


def _read(database: Path) -> Checked:
    try:
        with contextlib.closing(connect_for_reading(database)) as connection:
            connection.text_factory = _text
            connection.execute("BEGIN")
            return check_database(connection, database)
    except sqlite3.Error as error:
        if getattr(error, "sqlite_errorcode", 0) & 0xFF not in (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB):
            raise translate(error) from error
        words = f"the database cannot be read: {error}"
        return Checked(database, 0, (Finding(Fault.PAGES, "", 1, words, WayOut.SALVAGE),), {})


def check_database(connection: sqlite3.Connection, database: Path) -> Checked:
    """What is wrong with an open database. Raises SchemaTooNewError, and sqlite3.Error if it is too damaged to say."""
    (version,) = connection.execute("PRAGMA user_version").fetchone()
    (application,) = connection.execute("PRAGMA application_id").fetchone()
    if version > len(MIGRATIONS):
        raise SchemaTooNewError(
            f"the store has schema version {version}, this program knows versions up to {len(MIGRATIONS)};"
            " check it with the newer memory-ranker"
        )
    found = [*_pages(connection, application), *_schema(connection, version)]
    rows: dict[str, int] = {}
    # Where pages or tables are missing, all else follows from that; of an older schema only those can be said.
    if not found and version == len(MIGRATIONS):
        found += chain(_memories(connection), _packets(connection), _words(connection))
        orphans = list(_orphans(connection))
        found += orphans
        if not found:
            found += _uses(connection)
        found += chain(_counts(connection), _keys(connection), _facts(connection), _models(connection))
        found += _importance(connection)
        tables = connection.execute("SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite%'")
        for (table,) in tables.fetchall():
            (rows[table],) = connection.execute(f"SELECT COUNT(*) FROM {table}").fetchone()
    return Checked(database, version, tuple(found), rows)


def dimension(connection: sqlite3.Connection) -> int | None:
    """Numbers in a vector of this store, from the fact name@fingerprint:dimension; None if it cannot be read."""
    fact = (meta.get(connection, meta.EMBEDDER) or b"").decode("utf-8", "replace").rpartition(":")
    return int(fact[2]) if fact[2].isdecimal() and "@" in fact[0] else None


def memory_fault(row: tuple[object, ...], numbers: int | None) -> tuple[Fault, str] | None:
    """What is wrong with a row of SELECT_MEMORY, if anything. `numbers` is how many a vector has."""
    if any(isinstance(value, str) and not _is_text(value) for value in row):
        return Fault.UNREADABLE, "a text is not UTF-8, or holds a NUL"
    try:
        memory = from_row(row)
    except (ValueError, TypeError) as error:
        return Fault.UNREADABLE, str(error)
    if not isinstance(memory.metadata, dict) or not all(isinstance(tag, str) for tag in memory.tags):
        return Fault.UNREADABLE, "tags or metadata are not what they were written as"
    vector = memory.embedding
    if vector is not None and numbers is not None and len(vector) != numbers:
        return Fault.VECTORS, f"{counted(len(vector), 'number')} instead of {numbers}"
    if vector is not None and not np.isfinite(vector).all():
        return Fault.VECTORS, "not all numbers are finite"
    return None


def broken_packets(connection: sqlite3.Connection) -> Iterator[tuple[int, str]]:
    """Key and id of each packet that cannot be read back."""
    rows = connection.execute("SELECT packet_key, packet_id FROM packets ORDER BY packet_key").fetchall()
    for key, packet_id in rows:
        try:
            packet = packets.read(connection, None, packet_id)[1]
            if not _is_text(f"{packet.namespace}{packet.session_id}{packet.agent_id}{packet.model_version}"):
                raise ValueError
        except (ValueError, TypeError, KeyError, IndexError, AttributeError, RankerError):
            yield key, packet_id


def broken_models(connection: sqlite3.Connection) -> Iterator[str]:
    """Versions whose files are not as they were loaded."""
    for version, archive in connection.execute("SELECT version, archive FROM models ORDER BY model_number"):
        try:
            is_sound = is_as_written(files_of(archive), version)
        except ModelRefusedError:
            is_sound = False
        if not is_sound:
            yield version


def _pages(connection: sqlite3.Connection, application: int) -> Iterator[Finding]:
    if application != APPLICATION_ID:
        words = f"application id {application:#x} instead of {APPLICATION_ID:#x}: not a database of memory-ranker"
        yield Finding(Fault.PAGES, "", 1, words, WayOut.SALVAGE)
        return
    messages = [str(row[0]) for row in connection.execute(f"PRAGMA integrity_check({MESSAGES})").fetchall()]
    if messages != ["ok"]:
        words = "the database does not hold together"
        yield Finding(Fault.PAGES, "", len(messages), words, WayOut.SALVAGE, tuple(messages[:EXAMPLES]))


def _schema(connection: sqlite3.Connection, version: int) -> Iterator[Finding]:
    wanted, found = declarations(version), declared(connection)
    for name, (table, sql) in wanted.items():
        if name not in found:
            yield Finding(Fault.SCHEMA, table, 1, f"{name} is missing", WayOut.SALVAGE)
        elif found[name][1] != sql:
            yield Finding(Fault.SCHEMA, table, 1, f"{name} is not declared as it should be", WayOut.SALVAGE)


def _memories(connection: sqlite3.Connection) -> Iterator[Finding]:
    numbers = dimension(connection)
    bad: dict[Fault, list[str]] = {}
    for row in connection.execute(f"{SELECT_MEMORY} ORDER BY memory_key"):
        fault = memory_fault(row, numbers)
        if fault is not None:
            bad.setdefault(fault[0], []).append(f"{_shown(row[0])}: {fault[1]}")
    for kind, words in (
        (Fault.UNREADABLE, "memories cannot be read; a repair keeps their text and empties what is broken"),
        (Fault.VECTORS, "memories have a vector that is none; a repair removes it, and writing them again makes one"),
    ):
        if found := bad.get(kind):
            yield Finding(kind, "memories", len(found), words, examples=tuple(found[:EXAMPLES]))


def _packets(connection: sqlite3.Connection) -> Iterator[Finding]:
    if bad := [_shown(packet_id) for _, packet_id in broken_packets(connection)]:
        words = "packets cannot be read; a repair removes them with their reports"
        yield Finding(Fault.UNREADABLE, "packets", len(bad), words, examples=tuple(bad[:EXAMPLES]))


def _words(connection: sqlite3.Connection) -> Iterator[Finding]:
    for table, condition in UNKNOWN_WORDS:
        (count,) = connection.execute(f"SELECT COUNT(*) FROM {table} WHERE {condition}").fetchone()
        if count:
            words = f"rows of {table} say a word that is not known; a repair removes them"
            yield Finding(Fault.UNREADABLE, table, count, words)


def _orphans(connection: sqlite3.Connection) -> Iterator[Finding]:
    for table, condition, words in ORPHANS:
        (count,) = connection.execute(f"SELECT COUNT(*) FROM {table} WHERE {condition}").fetchone()
        if count:
            yield Finding(Fault.ORPHANS, table, count, f"rows of {table} {words}; a repair removes them")
    if sessions := connection.execute(UNKNOWN_SESSIONS).fetchall():
        words = "sessions have uses and no agent; a repair counts them for the unnamed one"
        yield Finding(Fault.ORPHANS, "pruned_sessions", len(sessions), words)


def _uses(connection: sqlite3.Connection) -> Iterator[Finding]:
    rebuild.work_out(connection)
    try:
        for table, (wrong, missing) in rebuild.differences(connection).items():
            wrongs = counted(wrong, f"row of {table} does", f"rows of {table} do")
            words = (
                f"{wrongs} not follow from the reports, and {counted(missing, 'that does is', 'that do are')} not there"
            )
            yield Finding(Fault.USES, table, max(wrong, missing), words)
    finally:
        rebuild.forget(connection)


def _counts(connection: sqlite3.Connection) -> Iterator[Finding]:
    rows = connection.execute(MEMORY_COUNTS).fetchall()
    if rows:
        examples = tuple(f"{_shown(name)}: says {says}, holds {holds}" for name, says, holds in rows[:EXAMPLES])
        words = "namespaces do not hold as many memories as they say"
        yield Finding(Fault.COUNTS, "namespaces", len(rows), words, examples=examples)
    rows = connection.execute(
        f"SELECT memory_id FROM memories WHERE (helpful, unhelpful) != (SELECT {RATINGS_OF})"
    ).fetchall()
    if rows:
        words = "memories do not count the ratings that stand on them"
        yield Finding(Fault.COUNTS, "memories", len(rows), words, examples=tuple(_shown(r[0]) for r in rows[:EXAMPLES]))


def _keys(connection: sqlite3.Connection) -> Iterator[Finding]:
    (highest,) = connection.execute(HIGHEST_KEY).fetchone()
    (last,) = connection.execute(LAST_KEY).fetchone()
    if (highest or 0) > (last or 0):
        words = f"memory keys up to {highest} were given out, and the last is said to be {last or 0}"
        yield Finding(Fault.KEYS, "sqlite_sequence", 1, f"{words}; a new memory could inherit an old one's uses")


def _facts(connection: sqlite3.Connection) -> Iterator[Finding]:
    salt = meta.get(connection, meta.SALT)
    if salt is None or len(salt) != SALT_BYTES:
        words = "the secret of the draws is missing; a repair makes a new one, and old draws cannot be replayed"
        yield Finding(Fault.FACTS, "meta", 1, words)
    (vectors,) = connection.execute("SELECT COUNT(*) FROM memories WHERE embedding IS NOT NULL").fetchone()
    if vectors and dimension(connection) is None:
        words = (
            f"it is not known which embedder made the vectors of {counted(vectors, 'memory')}; a repair removes them"
        )
        yield Finding(Fault.FACTS, "meta", 1, words)


def _models(connection: sqlite3.Connection) -> Iterator[Finding]:
    if bad := [_shown(version) for version in broken_models(connection)]:
        words = "models are not as they were loaded; a repair takes them out, and they can be promoted again"
        yield Finding(Fault.MODELS, "models", len(bad), words, examples=tuple(bad[:EXAMPLES]))


def _importance(connection: sqlite3.Connection) -> Iterator[Finding]:
    (count,) = connection.execute(f"SELECT COUNT(*) FROM memories WHERE {WITHOUT_PARTS}").fetchone()
    if count:
        words = "memories do not say how their importance came about; a repair has them scored anew"
        yield Finding(Fault.IMPORTANCE, "importance_parts", count, words)


def _text(data: bytes) -> str:
    return data.decode("utf-8", "surrogateescape")


def _is_text(text: str) -> bool:
    """False for what no caller can have written. `text` was decoded with surrogates for what is no UTF-8."""
    try:
        return b"\0" not in text.encode()
    except UnicodeEncodeError:
        return False


def _shown(value: object) -> str:
    return str(value).encode("utf-8", "backslashreplace").decode()
