"""Copies a store while it serves, and reads such a copy back.

A backup is a folder of two files: `memories.db`, which SQLite writes anew as one moment of the store, so that nothing
deleted is in it; and `backup.json`, which says what the first must be and is written last. Without it a folder is no
backup, so a kill halfway leaves none.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import sqlite3
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

from sidecar.domain import Micros
from sidecar.errors import (
    BackupFailedError,
    DeadlineExceededError,
    FieldViolation,
    InvalidRequestError,
    SchemaTooNewError,
    StoreDamagedError,
    StoreNotFoundError,
)
from sidecar.store.failures import translate
from sidecar.store.files import claim, sync_file, sync_folder
from sidecar.store.json_fields import JsonFields
from sidecar.store.readers import connect_for_reading
from sidecar.store.schema import APPLICATION_ID, MIGRATIONS
from sidecar.store.scrub import clear_gaps

DATABASE = "memories.db"
MANIFEST = "backup.json"
PARTIAL = ".partial"
"""What a file's name ends with until it is whole."""

STEPS_BETWEEN_LOOKS = 1_000
"""Steps of SQLite between two looks whether the caller still waits."""

_OF_THE_COPY = {sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR, sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_READONLY}


@dataclass(frozen=True, slots=True)
class Backup:
    """What a backup holds. `snapshot_time` is when the copied state was current, `sha256` the database's, in hex."""

    snapshot_time: Micros
    schema_version: int
    byte_count: int
    sha256: str
    memory_count: int
    packet_count: int
    report_count: int


def write(database: Path, folder: Path, now: Micros, is_cancelled: Callable[[], bool] = lambda: False) -> Backup:
    """Copies the store's database into `folder`, which must not exist or be empty.

    Readers and writers go on meanwhile; only the log cannot be moved into the database until the copy is made.

    Raises InvalidRequestError for the folder, DeadlineExceededError once `is_cancelled`, StoreDamagedError, and
    BackupFailedError if the copy cannot be written. Nothing is left behind then.
    """
    made_folder = _make_empty(folder)
    partial, manifest = folder / (DATABASE + PARTIAL), folder / (MANIFEST + PARTIAL)
    try:
        os.close(os.open(partial, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
        _copy(database, partial, is_cancelled)
        backup = _describe(partial, now)
        with open(os.open(manifest, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600), "w", encoding="utf-8") as file:
            json.dump(asdict(backup), file, indent=2)
            file.flush()
            sync_file(file.fileno())
        partial.rename(folder / DATABASE)
        manifest.rename(folder / MANIFEST)
        sync_folder(folder)
        sync_folder(folder.parent)
    except BaseException as error:
        for path in (*folder.glob(f"{DATABASE}*"), *folder.glob(f"{MANIFEST}*")):
            path.unlink()
        if made_folder:
            folder.rmdir()
        if isinstance(error, OSError):
            raise _failed(folder, error) from error
        if isinstance(error, sqlite3.Error):
            raise _meaning(error, folder) from error
        raise
    return backup


def copy_unserved(data: Path, folder: Path, now: Micros) -> Backup:
    """As `write`, of the store in `data` that no server has. The store itself is not changed, nor its schema.

    Raises StoreLockedError if a server has it, StoreNotFoundError if there is none.
    """
    if not (data / DATABASE).is_file():
        raise StoreNotFoundError(f"there is no store in {data}; name its folder with --data")
    files = claim(data)
    try:
        return write(files.database, folder, now)
    finally:
        files.release()


def read(folder: Path) -> Backup:
    """What the backup in `folder` says of itself. Raises StoreNotFoundError if there is no folder, StoreDamagedError if
    it is no backup, or not a whole one."""
    if not folder.exists():
        raise StoreNotFoundError(
            f"there is no backup at {folder}; name a folder that `memory-ranker backup` has written"
        )
    try:
        return _read_manifest((folder / MANIFEST).read_bytes())
    except FileNotFoundError:
        raise StoreDamagedError(
            f"{folder} is no whole backup: {MANIFEST} is missing; name a folder that `memory-ranker backup` has written"
        ) from None
    except (OSError, ValueError) as error:
        raise StoreDamagedError(f"{folder / MANIFEST} cannot be read: {error}; take another backup") from error


def _read_manifest(data: bytes) -> Backup:
    """ValueError says what is wrong with it."""
    try:
        given = json.loads(data)
    except (ValueError, RecursionError) as error:
        raise ValueError(f"it is no JSON ({error})") from error
    if not isinstance(given, dict):
        raise ValueError("it holds no JSON object")
    row = JsonFields(given)
    return Backup(
        snapshot_time=row.whole("snapshot_time"),
        schema_version=row.whole("schema_version"),
        byte_count=row.whole("byte_count"),
        sha256=row.text("sha256", 64, least=64),
        memory_count=row.whole("memory_count"),
        packet_count=row.whole("packet_count"),
        report_count=row.whole("report_count"),
    )


def difference(folder: Path) -> str:
    """What is wrong with the files of the backup in `folder`, in words; "" if they are what was backed up, or if it is
    none."""
    if not (folder / MANIFEST).exists():
        return ""
    try:
        found = read(folder)
    except StoreDamagedError as error:
        return error.message
    with (folder / DATABASE).open("rb") as file:
        sha256 = hashlib.file_digest(file, "sha256").hexdigest()
    return "" if sha256 == found.sha256 else _other(folder)


def _other(folder: Path) -> str:
    return (
        f"{folder / DATABASE} is not what was backed up: its SHA-256 differs from the one in {MANIFEST}; take another"
        f" backup, or remove {MANIFEST} where the folder has become a store"
    )


def copy_verified(folder: Path, backup: Backup, target: Path) -> None:
    """Copies the backup's database to `target` and looks at every page of it.

    Raises StoreDamagedError if it is not what was backed up, SchemaTooNewError if this program is too old for it.
    """
    digest = hashlib.sha256()
    with (folder / DATABASE).open("rb") as source, target.open("xb") as copy:
        os.chmod(target, 0o600)
        while piece := source.read(1 << 20):
            digest.update(piece)
            copy.write(piece)
        copy.flush()
        sync_file(copy.fileno())
    if digest.hexdigest() != backup.sha256:
        raise StoreDamagedError(_other(folder))
    verify(target)


def verify(database: Path) -> int:
    """The schema version of a copy that is whole. Raises StoreDamagedError or SchemaTooNewError."""
    with contextlib.closing(connect_for_reading(database)) as connection:
        (application,) = connection.execute("PRAGMA application_id").fetchone()
        (version,) = connection.execute("PRAGMA user_version").fetchone()
        if application != APPLICATION_ID:
            raise StoreDamagedError(f"{database} is not a database of memory-ranker; name another backup")
        if version > len(MIGRATIONS):
            raise SchemaTooNewError(
                f"{database} has schema version {version}, this program knows versions up to {len(MIGRATIONS)}; use the"
                " newer memory-ranker that made it"
            )
        (found,) = connection.execute("PRAGMA integrity_check(1)").fetchone()
    if found != "ok":
        raise StoreDamagedError(
            f"{database} does not hold together ({found}); `memory-ranker check` says what is damaged in its source"
        )
    return int(version)


def clear_all_gaps(database: int) -> None:
    """Zeroes what stale copies of rows a closed database (an open descriptor) has between its pages' cells. Every row
    of a new copy lives, but what is deleted from it later must be gone too."""
    header = os.pread(database, 100, 0)
    page_size = int.from_bytes(header[16:18], "big")
    page_size = 65_536 if page_size == 1 else page_size
    clear_gaps(database, page_size, range(1, os.fstat(database).st_size // page_size + 1))
    sync_file(database)


def _make_empty(folder: Path) -> bool:
    """Makes the folder if it is missing, and says if it did. Raises InvalidRequestError if it cannot be used."""
    try:
        folder.mkdir(mode=0o700, parents=True)
        return True
    except FileExistsError:
        pass
    except OSError as error:
        raise _refused(folder, f"cannot be made: {error.strerror}; name a folder that the server may make") from error
    try:
        found = sorted(path.name for path in folder.iterdir())
    except NotADirectoryError:
        raise _refused(folder, "is a file; name a folder that is not there yet") from None
    except OSError as error:
        raise _refused(folder, f"cannot be read: {error.strerror}; name another folder") from error
    if found:
        raise _refused(folder, f"is not empty ({', '.join(found[:3])}); name a new folder, or empty this one")
    return False


def _refused(folder: Path, words: str) -> InvalidRequestError:
    return InvalidRequestError([FieldViolation("path", f"{str(folder)!r} {words}")])


def _copy(database: Path, target: Path, is_cancelled: Callable[[], bool]) -> None:
    # Only for reading, and so without the checkpoint that SQLite makes when a last connection is closed: moving a log
    # that a killed server left is the next server's work, which removes deleted text on the way.
    with contextlib.closing(connect_for_reading(database)) as connection:
        connection.set_progress_handler(is_cancelled, STEPS_BETWEEN_LOOKS)
        connection.execute("VACUUM INTO ?", (str(target),))
    with descriptor(target) as file:
        clear_all_gaps(file)


def _describe(database: Path, now: Micros) -> Backup:
    version = verify(database)
    with contextlib.closing(connect_for_reading(database)) as connection:
        counts = [
            int(connection.execute(f"SELECT COUNT(*) FROM {table}").fetchone()[0])
            for table in ("memories", "packets", "reports")
        ]
    with database.open("rb") as file:
        sha256 = hashlib.file_digest(file, "sha256").hexdigest()
    return Backup(now, version, database.stat().st_size, sha256, *counts)


def _meaning(error: sqlite3.Error, folder: Path) -> Exception:
    code = getattr(error, "sqlite_errorcode", 0) & 0xFF
    if code == sqlite3.SQLITE_INTERRUPT:
        return DeadlineExceededError("the deadline passed, or the caller hung up; the backup was given up")
    return _failed(folder, error) if code in _OF_THE_COPY else translate(error)


def _failed(folder: Path, error: Exception) -> BackupFailedError:
    words = error.strerror if isinstance(error, OSError) else str(error)
    return BackupFailedError(
        f"the backup cannot be written to {folder} ({words}); see that the disk has room for it and takes writes"
    )


@contextlib.contextmanager
def descriptor(path: Path) -> Iterator[int]:
    """An open descriptor of a database that no connection of this process has open."""
    opened = os.open(path, os.O_RDWR)
    try:
        yield opened
    finally:
        os.close(opened)
