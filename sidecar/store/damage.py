"""Looks for damage in a database before anything goes by what is in it."""

from __future__ import annotations

import sqlite3
import threading
from contextlib import closing, suppress
from pathlib import Path

from sidecar.errors import RankerError
from sidecar.store.failures import damaged
from sidecar.store.files import DATABASE
from sidecar.store.readers import connect_for_reading

QUICK_CHECK_SECONDS = 1.0
"""How long a start may spend on looking for damage. What is found later is reported when it is met."""


def look(connection: sqlite3.Connection) -> None:
    """Returns if no damage was found in time. Raises StoreDamagedError, or what SQLite raises."""
    # Not a progress handler: each call of it would wait for Python's lock, which all else that starts wants.
    too_long = threading.Timer(QUICK_CHECK_SECONDS, connection.interrupt)
    too_long.start()
    try:
        (found,) = connection.execute("PRAGMA quick_check(1)").fetchone()
    except sqlite3.OperationalError as error:
        if error.sqlite_errorcode != sqlite3.SQLITE_INTERRUPT:
            raise
        return
    finally:
        too_long.cancel()
        too_long.join()
    if found != "ok":
        raise damaged(str(found))


class LookAhead:
    """A look on a thread of its own, which is over when the store is opened: SQLite needs no lock of Python's for it,
    and half of the program is imported meanwhile.

    It does nothing but vouch. A database that it found damaged, or could not read, is looked at again by who has the
    store's lock, and that one says what is wrong.
    """

    def __init__(self, folder: Path) -> None:
        """Begins. `folder` is a store's, or is to be."""
        self._database = folder / DATABASE
        self._seen: tuple[int, ...] = ()
        self._thread = threading.Thread(target=self._run, name="damage", daemon=True)
        self._thread.start()

    def vouches(self) -> bool:
        """Waits until it has looked. True if no damage was found, and the file is the one that was looked at."""
        self._thread.join()
        return self._seen != () and self._seen == _state(self._database)

    def _run(self) -> None:
        with suppress(OSError, sqlite3.Error, RankerError):
            seen = _state(self._database)
            with closing(connect_for_reading(self._database)) as connection:
                look(connection)
            self._seen = seen


def _state(path: Path) -> tuple[int, ...]:
    status = path.stat()
    return status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns
