"""What SQLite's error codes mean to a caller."""

from __future__ import annotations

import sqlite3

from sidecar.errors import RankerError, StoreDamagedError, StoreFullError, StoreUnavailableError

_FULL = {sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR_WRITE, sqlite3.SQLITE_IOERR_SHMSIZE}
"""A write past a disk quota or a file size limit is reported as SQLITE_IOERR_WRITE, past the disk's end as FULL."""

_UNSYNCED = {sqlite3.SQLITE_IOERR_FSYNC, sqlite3.SQLITE_IOERR_DIR_FSYNC}

_PRIMARY = 0xFF
"""Masks an extended result code down to its primary one."""


def translate(error: Exception) -> Exception:
    """The error that a caller should see in place of `error`. What is not SQLite's comes back as it is."""
    if not isinstance(error, sqlite3.Error):
        return error
    code = getattr(error, "sqlite_errorcode", 0)
    found: RankerError
    if code in _FULL:
        found = StoreFullError(
            f"the store cannot grow ({error}): its quota, the disk or a file size limit is reached; delete or prune,"
            " or raise the quota or the disk's size; ranking goes on meanwhile"
        )
    elif code & _PRIMARY in (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB):
        found = damaged(str(error))
    elif code & _PRIMARY in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
        found = StoreUnavailableError(
            f"another program holds memories.db ({error}); only one memory-ranker may write to it: close the other"
        )
    elif code & _PRIMARY in (
        sqlite3.SQLITE_IOERR,
        sqlite3.SQLITE_CANTOPEN,
        sqlite3.SQLITE_READONLY,
        sqlite3.SQLITE_PERM,
    ):
        found = StoreUnavailableError(
            f"memories.db cannot be used ({error}); check the disk and that the data folder is writable"
        )
    else:
        return error
    found.__cause__ = error
    return found


def damaged(what: str) -> StoreDamagedError:
    """The error for a database that does not hold together."""
    return StoreDamagedError(
        f"memories.db is damaged ({' '.join(what.split())}); `memory-ranker check` says where; restore a backup into an"
        " empty data folder, or save what can be read with `memory-ranker check --repair --into FOLDER`"
    )


class UnsyncedError(Exception):
    """A file may not be on the disk: its sync failed."""


def is_full(error: BaseException) -> bool:
    """True if there was no room for a write."""
    return isinstance(error, sqlite3.Error) and getattr(error, "sqlite_errorcode", 0) in _FULL


def is_unsynced(error: Exception) -> bool:
    """True if the disk did not confirm a write: what is in the page cache can no longer be trusted."""
    if isinstance(error, UnsyncedError):
        return True
    return isinstance(error, sqlite3.Error) and getattr(error, "sqlite_errorcode", 0) in _UNSYNCED
