"""Read-only connections: as many as there are readers at one time, each seeing one moment of the store."""

from __future__ import annotations

import os
import sqlite3
import threading
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import quote

from sidecar.errors import StoreUnavailableError
from sidecar.store.failures import translate


class Readers:
    """A pool of connections that can only read."""

    def __init__(self, database: Path) -> None:
        """Opens nothing yet."""
        self._database = database
        self._idle: deque[sqlite3.Connection] = deque()
        self._growing = threading.Lock()
        self._closed = False

    @contextmanager
    def snapshot(self) -> Iterator[sqlite3.Connection]:
        """A connection on which all reads see the same moment. Keep it short: checkpoints cannot pass it.

        Raises what SQLite's errors mean, StoreUnavailableError once closed.
        """
        connection = self._take()
        try:
            connection.execute("BEGIN")
            yield connection
        except sqlite3.Error as error:
            raise translate(error) from error
        finally:
            if connection.in_transaction:
                connection.execute("ROLLBACK")
            self._give_back(connection)

    @contextmanager
    def glance(self) -> Iterator[sqlite3.Connection]:
        """A connection for a single statement, of which all rows are fetched: it needs no transaction around it.

        Raises as `snapshot` does.
        """
        connection = self._take()
        try:
            yield connection
        except sqlite3.Error as error:
            raise translate(error) from error
        finally:
            self._give_back(connection)

    def close(self) -> None:
        """Closes every connection that is not at work; those at work follow when they are given back."""
        with self._growing:
            self._closed = True
        while self._idle:
            self._idle.pop().close()

    def _take(self) -> sqlite3.Connection:
        if self._closed:
            raise StoreUnavailableError("the store is closed; the server is shutting down")
        try:
            return self._idle.pop()
        except IndexError:
            return connect(self._database, writes=False)

    def _give_back(self, connection: sqlite3.Connection) -> None:
        with self._growing:
            if not self._closed:
                self._idle.append(connection)
                return
        connection.close()


def connect(database: Path, *, writes: bool) -> sqlite3.Connection:
    """A connection as this store uses them: transactions by hand, any thread (one at a time), nothing on disk but the
    database and its log."""
    connection = sqlite3.connect(database, isolation_level=None, check_same_thread=False, cached_statements=256)
    connection.execute("PRAGMA temp_store = MEMORY")
    connection.execute("PRAGMA busy_timeout = 5000")
    if not writes:
        connection.execute("PRAGMA query_only = ON")
    return connection


def connect_for_reading(database: Path) -> sqlite3.Connection:
    """A connection that cannot change the database, nor checkpoint its log: for looking at a store that may not be
    ours, or not whole."""
    path = quote(os.fsencode(database.absolute()))
    connection = sqlite3.connect(f"file:{path}?mode=ro", uri=True, isolation_level=None, check_same_thread=False)
    connection.execute("PRAGMA temp_store = MEMORY")
    connection.execute("PRAGMA busy_timeout = 5000")
    return connection
