"""Makes a store out of a backup, in a folder that holds none."""

from __future__ import annotations

import contextlib
import os
import sqlite3
from collections.abc import Iterator
from pathlib import Path

from sidecar.domain import Micros
from sidecar.errors import BackupFailedError, FieldViolation, InvalidRequestError
from sidecar.store import backup, indexes, meta
from sidecar.store.failures import translate
from sidecar.store.files import LOCK, claim, sync_file, sync_folder
from sidecar.store.readers import connect

_MAY_BE_THERE = (LOCK, "memory-ranker.sock", "memory-ranker.sock.lock")
"""What a server that had an empty store there leaves behind."""


def restore(source: Path, folder: Path, now: Micros) -> backup.Backup:
    """Makes the backup in `source` the store in `folder`, after looking at every page of it.

    Raises StoreDamagedError if it is not what was backed up, SchemaTooNewError, StoreLockedError if a server has the
    folder, InvalidRequestError if the folder is not empty, BackupFailedError if the copy cannot be written. The folder
    holds no store then.
    """
    found = backup.read(source)
    with new_store(folder, now) as partial:
        backup.copy_verified(source, found, partial)
    return found


@contextlib.contextmanager
def new_store(folder: Path, now: Micros) -> Iterator[Path]:
    """Inside, a database is to be written to the path given; after, it is the store in `folder`. Raises as `restore`.

    Its score versions are moved beyond all that were given out before, so that a packet cached from the lost state is
    stale. Nothing that was made for it is left where this fails.
    """
    missing = [path for path in (folder, *folder.parents) if not path.exists()]
    is_first = not (folder / LOCK).exists()
    if is_first:
        _check_empty(folder)
    files = claim(folder)
    partial = folder / (backup.DATABASE + backup.PARTIAL)
    try:
        _check_empty(folder)
        yield partial
        with contextlib.closing(connect(partial, writes=True)) as connection:
            move_score_versions(connection, now)
        with open(partial, "rb") as file:
            sync_file(file.fileno())
        partial.rename(files.database)
        files.note_made()
        sync_folder(folder)
    except BaseException as error:
        for path in folder.glob(partial.name + "*"):
            path.unlink()
        if is_first and not files.database.exists():
            (folder / LOCK).unlink()
        with contextlib.suppress(OSError):  # something is in it
            for path in missing:
                path.rmdir()
        if isinstance(error, OSError):
            raise BackupFailedError(
                f"the store cannot be written to {folder} ({error.strerror}); see that the disk has room for it"
            ) from error
        if isinstance(error, sqlite3.Error):
            raise translate(error) from error
        raise
    finally:
        files.release()


def move_score_versions(connection: sqlite3.Connection, now: Micros) -> None:
    """Makes every packet that was cached before stale: each score version moves past `now` in microseconds, which no
    store reaches by counting its writes."""
    connection.execute("BEGIN IMMEDIATE")
    for table in ("namespaces", "purged_namespaces"):
        connection.execute(f"UPDATE {table} SET score_version = MAX(score_version, ?) + 1", (now,))
    meta.put(connection, meta.FIRST_SCORE_VERSION, str(now + 1).encode())
    indexes.forget(connection)  # no index file is of this state
    connection.execute("COMMIT")


def _check_empty(folder: Path) -> None:
    """InvalidRequestError if it is not. Whether it is a folder at all is `claim`'s."""
    found = sorted(name for name in os.listdir(folder) if name not in _MAY_BE_THERE) if folder.is_dir() else []
    if found:
        words = f"{str(folder)!r} is not empty ({', '.join(found[:3])}), and is not overwritten; name a new one"
        raise InvalidRequestError([FieldViolation("data", words)])
