"""Brings a store's files into the state in which it serves, or says why that cannot be."""

from __future__ import annotations

import logging
import os
import secrets
import sqlite3
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

from sidecar.errors import StoreDamagedError, StoreUnavailableError
from sidecar.store import kept_logs, meta
from sidecar.store.checkpoints import Checkpoints, Limits
from sidecar.store.damage import LookAhead, look
from sidecar.store.failures import UnsyncedError, translate
from sidecar.store.files import StoreFiles, claim, sync_folder
from sidecar.store.kept_logs import KeptLog
from sidecar.store.readers import connect
from sidecar.store.schema import MIGRATIONS, declarations, declared, migrate

OLDEST_SQLITE = (3, 35, 0)
"""The first with RETURNING."""

MAX_PAGES = 1 << 24
"""64 GiB of pages, which `scrub` counts on."""

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Opened:
    """All that an open store holds on to."""

    files: StoreFiles
    connection: sqlite3.Connection
    database: int
    wal: int
    checkpoints: Checkpoints
    max_pages: int
    schema_version: int
    salt: bytes
    uncounted: int
    """Packets whose reports a killed process left uncounted."""
    kept_logs: tuple[KeptLog, ...]
    """Damaged logs that were kept, now or at an earlier start."""

    def close_files(self) -> None:
        """Closes the descriptors and gives the lock back; the connection must be closed already."""
        os.close(self.wal)
        os.close(self.database)
        self.files.release()


def open_files(
    folder: Path, quota_bytes: int | None, limits: Limits, sync: Callable[[int], None], ahead: LookAhead | None = None
) -> Opened:
    """Takes the lock, keeps a damaged log aside, looks for damage, migrates, and recovers what a killed process left.

    `sync` puts an open file on the disk; `ahead` has looked for damage already.

    Raises StoreLockedError, SchemaTooNewError, StoreDamagedError, StoreFullError or StoreUnavailableError.
    """
    if sqlite3.sqlite_version_info < OLDEST_SQLITE:
        raise StoreUnavailableError(
            f"this Python has SQLite {sqlite3.sqlite_version}, the store needs 3.35 or newer; use a newer Python build"
        )
    files = claim(folder)
    descriptors: list[int] = []
    connection: sqlite3.Connection | None = None
    try:
        files.check_there()
        kept_logs.keep(files)
        kept = tuple(kept_logs.kept(folder))
        for each in kept:
            _log.warning("%s", each.words)
        # Opened before SQLite opens it and closed after: closing it any earlier would drop SQLite's locks.
        database = os.open(files.database, os.O_RDWR | os.O_CREAT, 0o600)
        descriptors.append(database)
        connection = connect(files.database, writes=True)
        schema_version = _prepare(connection, ahead)
        salt = _salt(connection)
        (uncounted,) = connection.execute("SELECT COUNT(*) FROM uncounted_packets").fetchone()
        wal = os.open(files.wal, os.O_RDONLY)
        descriptors.append(wal)
        sync(wal)
        files.note_made()
        sync_folder(folder)
        connection.execute("PRAGMA synchronous = NORMAL")
        limits, max_pages = _within(quota_bytes, limits, connection)
        pin = connect(files.database, writes=False)
        copier = connect(files.database, writes=True)
        checkpoints = Checkpoints(connection, pin, copier, database, wal, sync, limits)
        _recover(checkpoints)
        return Opened(files, connection, database, wal, checkpoints, max_pages, schema_version, salt, uncounted, kept)
    except BaseException as error:
        if connection is not None:
            connection.close()
        for descriptor in descriptors:
            os.close(descriptor)
        files.release()
        if isinstance(error, OSError | UnsyncedError):
            raise StoreUnavailableError(
                f"the store in {folder} cannot be opened: {error}; check the disk and who owns it"
            ) from error
        if isinstance(error, sqlite3.Error):
            raise translate(error) from error
        raise


def _prepare(connection: sqlite3.Connection, ahead: LookAhead | None) -> int:
    connection.execute("PRAGMA secure_delete = ON").fetchall()
    connection.execute("PRAGMA journal_mode = WAL").fetchall()
    connection.execute("PRAGMA wal_autocheckpoint = 0").fetchall()
    connection.execute("PRAGMA checkpoint_fullfsync = ON").fetchall()
    connection.execute("PRAGMA synchronous = FULL")
    if ahead is None or not ahead.vouches():
        look(connection)
    _look_for_another_schema(connection)
    return migrate(connection)


def _look_for_another_schema(connection: sqlite3.Connection) -> None:
    """A version number alone does not vouch for the tables: a build between releases may have had others."""
    version = int(connection.execute("PRAGMA user_version").fetchone()[0])
    if not 0 < version <= len(MIGRATIONS):
        return
    found = declared(connection)
    for name, wanted in declarations(version).items():
        if found.get(name) != wanted:
            raise StoreDamagedError(
                f"{name} in memories.db is not as schema version {version} declares it: the file was damaged, or made "
                "by a build between releases; `memory-ranker check` says more, `check --repair --into FOLDER` saves "
                "what can be read"
            )


def _salt(connection: sqlite3.Connection) -> bytes:
    salt = meta.get(connection, meta.SALT)
    if salt is None:
        salt = secrets.token_bytes(32)
        meta.put(connection, meta.SALT, salt)
    return salt


def _within(quota_bytes: int | None, limits: Limits, connection: sqlite3.Connection) -> tuple[Limits, int]:
    """The limits that keep database and log together within the quota, and the database's share in pages."""
    if quota_bytes is None:
        return limits, MAX_PAGES
    wal_bytes = min(limits.wal_bytes, quota_bytes // 8)
    (page_size,) = connection.execute("PRAGMA page_size").fetchone()
    # While a log is moved it grows on, by half its limit, and the last write goes beyond that: room for twice of it.
    pages = max(1, min(MAX_PAGES, (quota_bytes - 2 * wal_bytes) // page_size))
    return replace(limits, wal_bytes=wal_bytes, wal_most=wal_bytes * 3 // 2), pages


def _recover(checkpoints: Checkpoints) -> None:
    try:
        checkpoints.run_all(time.monotonic())
    except (sqlite3.Error, OSError) as error:
        # Reading goes on from the log, for example on a full disk.
        _log.warning("the write-ahead log could not be moved into the database: %s", translate(error))
