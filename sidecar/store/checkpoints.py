"""When the write-ahead log goes into the database, and how deleted text leaves every file with it."""

from __future__ import annotations

import logging
import os
import sqlite3
from dataclasses import dataclass

from sidecar.store.files import sync_file
from sidecar.store.scrub import clear_gaps, wal_pages

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Limits:
    """Named sizes (bytes) and times (seconds) of checkpointing."""

    idle_wal: int = 4 << 20
    """A log above this is checkpointed when nobody waits."""
    busy_wal: int = 32 << 20
    """A log above this is checkpointed between two groups, whoever waits."""
    idle_after: float = 0.02
    """So long without a job counts as idle."""
    scrub_idle: float = 1.0
    """Deleted text leaves the files after this, if nobody waits."""
    scrub_within: float = 30.0
    """Deleted text leaves the files within this in any case."""
    retry: float = 0.25
    """Between two attempts, when a reader was in the way."""
    reserve_pages: int = 64
    """So much may deletes exceed the size limit, in pages."""


class Checkpoints:
    """Decides and runs checkpoints. Lives on the writer thread."""

    def __init__(self, connection: sqlite3.Connection, database: int, wal: int, limits: Limits) -> None:
        """`database` and `wal` are open descriptors of the two files; closing one of the database would drop SQLite's
        locks on it, so they stay open as long as the connection."""
        self._connection = connection
        self._database = database
        self._wal = wal
        self._limits = limits
        self._page_size = int(connection.execute("PRAGMA page_size").fetchone()[0])
        self._scrub_since: float | None = None
        self._tried = float("-inf")

    @property
    def reserve_pages(self) -> int:
        """Pages by which deletes may exceed the size limit."""
        return self._limits.reserve_pages

    def text_was_deleted(self, now: float) -> None:
        """Notes that text must leave the files. `now` is monotonic, in seconds."""
        if self._scrub_since is None:
            self._scrub_since = now

    def wait_seconds(self, now: float) -> float | None:
        """How long the writer may wait for a job before `run` is due; None means for ever."""
        due: list[float] = []
        if self._scrub_since is not None:
            due.append(self._scrub_since + self._limits.scrub_idle)
        if self._wal_bytes() > self._limits.idle_wal:
            due.append(now + self._limits.idle_after)
        if not due:
            return None
        return max(min(due), self._tried + self._limits.retry, now + self._limits.idle_after) - now

    def run(self, now: float, *, idle: bool, everything: bool = False) -> bool:
        """Checkpoints if it is time for it, or in any case if `everything`. True: nothing is left in the log."""
        if not everything and not self._is_due(now, idle):
            return False
        self._tried = now
        complete = self._checkpoint()
        if complete:
            self._scrub_since = None
        elif self._scrub_since is not None and now - self._scrub_since > self._limits.scrub_within:
            _log.warning("deleted text is still in the store's files: a reader has been in the way for too long")
        return complete

    def _is_due(self, now: float, idle: bool) -> bool:
        if now - self._tried < self._limits.retry:
            return False
        if self._scrub_since is not None:
            waited = now - self._scrub_since
            if waited >= (self._limits.scrub_idle if idle else self._limits.scrub_within):
                return True
        return self._wal_bytes() > (self._limits.idle_wal if idle else self._limits.busy_wal)

    def _checkpoint(self) -> bool:
        """Moves the log into the database, zeroes stale copies there, and cuts the log off. False: a reader was in the
        way, and some of it is left to do."""
        connection = self._connection
        pages = wal_pages(self._wal, self._page_size)
        (timeout,) = connection.execute("PRAGMA busy_timeout").fetchone()
        connection.execute("PRAGMA busy_timeout = 0")  # readers are not waited for: packets are waiting for us
        try:
            busy, in_log, moved = connection.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchone()
            if busy or moved < in_log:
                return False
            if clear_gaps(self._database, self._page_size, pages):
                sync_file(self._database)
            if self._scrub_since is not None:
                # Cached pages may hold stale copies, which the next write to them would bring back.
                connection.execute("PRAGMA shrink_memory").fetchall()
            busy, _, _ = connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
            return not busy
        finally:
            connection.execute(f"PRAGMA busy_timeout = {timeout}").fetchall()

    def _wal_bytes(self) -> int:
        return os.fstat(self._wal).st_size
