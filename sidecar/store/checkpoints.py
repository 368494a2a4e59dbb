"""When the write-ahead log goes into the database, and how deleted text leaves every file with it.

A checkpoint of a long log copies thousands of pages and waits for the disk, and packets would wait with it. So a log
that has grown is moved in stages, between which jobs run, with the two long waits on a thread of their own:

1. the log is synced, beside the writer;
2. a pin (a read transaction) keeps SQLite from restarting the log, what came in meanwhile is synced, and the pages are
   copied into the database without waiting for them (synchronous=OFF);
3. the database is synced, beside the writer; then the pin is lifted;
4. the little that was written meanwhile is checkpointed the usual way, and the log is cut off.

It is as safe as SQLite's own checkpoint, which does the same in one go: no page is copied whose frame is not on the
disk in the log (2), and no frame is given up before its page is on the disk in the database (the pin, 3). A crash in
between leaves the log whole, and the next start plays it again. The pin holds because it is taken while there are
frames to copy: such a reader depends on the log, and a log that a reader depends on is never restarted.
"""

from __future__ import annotations

import logging
import os
import queue
import sqlite3
import threading
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass
from enum import Enum

from sidecar.store.failures import UnsyncedError
from sidecar.store.scrub import clear_gaps, wal_pages

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Limits:
    """Named sizes (bytes) and times (seconds) of checkpointing."""

    wal_bytes: int = 16 << 20
    """A log above this is moved into the database."""
    wal_most: int | None = None
    """A log of this size takes no growing writes until it is moved; None means that nothing bounds it."""
    scrub_idle: float = 1.0
    """Deleted text leaves the files after this, if nobody waits."""
    scrub_within: float = 30.0
    """Deleted text leaves the files within this in any case."""
    retry: float = 0.25
    """Between two attempts, when a reader was in the way."""
    poll: float = 0.005
    """Between two looks whether a sync is done, and the least wait of all."""
    reserve_pages: int = 64
    """So much may deletes exceed the size limit, in pages."""


class _Stage(Enum):
    RESTING = "resting"
    SYNCING_LOG = "syncing the log"
    SYNCING_DATABASE = "syncing the database"


class Checkpoints:
    """Decides and runs checkpoints. Lives on the writer thread."""

    def __init__(
        self,
        connection: sqlite3.Connection,
        pin: sqlite3.Connection,
        database: int,
        wal: int,
        sync: Callable[[int], None],
        limits: Limits,
    ) -> None:
        """`pin` is a connection for reading, `database` and `wal` are open descriptors of the two files, and `sync`
        puts one on the disk. Closing a descriptor of the database would drop SQLite's locks on it, so it must stay open
        as long as the connections."""
        self._connection = connection
        self._pin = pin
        self._database = database
        self._wal = wal
        self._sync_file = sync
        self._limits = limits
        self._page_size = int(connection.execute("PRAGMA page_size").fetchone()[0])
        self._stage = _Stage.RESTING
        self._syncing: Future[None] | None = None
        self._to_sync: queue.SimpleQueue[tuple[int, Future[None]] | None] = queue.SimpleQueue()
        self._beside = threading.Thread(target=self._sync_beside, name="store-checkpoint", daemon=True)
        self._beside.start()
        self._scrub_since: float | None = None
        self._warned = False
        self._tried = float("-inf")

    @property
    def reserve_pages(self) -> int:
        """Pages by which deletes may exceed the size limit."""
        return self._limits.reserve_pages

    @property
    def is_over(self) -> bool:
        """True if the log has all the room that it is given."""
        most = self._limits.wal_most
        return most is not None and os.fstat(self._wal).st_size >= most

    def text_was_deleted(self, now: float) -> None:
        """Notes that text must leave the files. `now` is monotonic, in seconds."""
        if self._scrub_since is None:
            self._scrub_since = now

    def wait_seconds(self, now: float) -> float | None:
        """How long the writer may wait for a job before `run` is due; None means for ever."""
        if self._stage is not _Stage.RESTING:
            return self._limits.poll
        due: list[float] = []
        if self._scrub_since is not None:
            due.append(self._scrub_since + self._limits.scrub_idle)
        if self._wal_is_long():
            due.append(now)
        if not due:
            return None
        return max(min(due) - now, self._tried + self._limits.retry - now, self._limits.poll)

    def run(self, now: float, *, idle: bool) -> None:
        """Takes the next step, if one is due. Raises UnsyncedError, sqlite3.Error, OSError."""
        if self._stage is not _Stage.RESTING:
            if self._syncing is not None and self._syncing.done():
                self._next_stage(now)
        elif now - self._tried < self._limits.retry:
            return
        elif self._scrub_since is not None and now - self._scrub_since >= (
            self._limits.scrub_idle if idle else self._limits.scrub_within
        ):
            self.run_all(now)
        elif self._wal_is_long():
            self._tried = now
            self._start(_Stage.SYNCING_LOG, self._wal)

    def run_all(self, now: float) -> bool:
        """Moves the whole log into the database at once. True: nothing is left in it. Raises as `run`."""
        self._tried = now
        self._rest()
        complete = self._checkpoint()
        if complete:
            self._scrub_since, self._warned = None, False
        elif self._scrub_since is not None and now - self._scrub_since > self._limits.scrub_within:
            if not self._warned:
                _log.warning("deleted text is still in the store's files: a reader has been in the way for too long")
            self._warned = True
        return complete

    def close(self) -> None:
        """Ends what runs beside; the connection may be closed then."""
        self._to_sync.put(None)
        self._beside.join()
        self._pin.close()

    def _next_stage(self, now: float) -> None:
        if self._stage is _Stage.SYNCING_DATABASE:
            self.run_all(now)
            return
        self._finish_sync()
        try:
            self._pin.execute("BEGIN")
            self._pin.execute("SELECT COUNT(*) FROM meta").fetchone()
            self._sync(self._wal)
            self._connection.execute("PRAGMA synchronous = OFF")
            try:
                self._connection.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchone()
            finally:
                self._connection.execute("PRAGMA synchronous = NORMAL")
        except BaseException:
            self._rest()
            raise
        self._start(_Stage.SYNCING_DATABASE, self._database)

    def _rest(self) -> None:
        """Ends a checkpoint in stages wherever it stands; what it copied is on the disk first."""
        self._finish_sync()
        if self._pin.in_transaction:
            self._pin.execute("ROLLBACK")
        self._stage = _Stage.RESTING

    def _start(self, stage: _Stage, descriptor: int) -> None:
        self._stage = stage
        self._syncing = Future()
        self._to_sync.put((descriptor, self._syncing))

    def _sync_beside(self) -> None:
        # Not an executor: those refuse work as soon as the main thread has ended, and the writer goes on until close.
        while (item := self._to_sync.get()) is not None:
            descriptor, done = item
            try:
                self._sync(descriptor)
            except Exception as error:  # noqa: BLE001 - goes to the writer, which waits for it
                done.set_exception(error)
            else:
                done.set_result(None)

    def _finish_sync(self) -> None:
        syncing, self._syncing = self._syncing, None
        if syncing is not None:
            syncing.result()

    def _sync(self, descriptor: int) -> None:
        try:
            self._sync_file(descriptor)
        except OSError as error:
            raise UnsyncedError(str(error)) from error

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
                self._sync(self._database)
            if self._scrub_since is not None:
                # Cached pages may hold stale copies, which the next write to them would bring back.
                connection.execute("PRAGMA shrink_memory").fetchall()
            busy, _, _ = connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
            return not busy
        finally:
            connection.execute(f"PRAGMA busy_timeout = {timeout}").fetchall()

    def _wal_is_long(self) -> bool:
        return os.fstat(self._wal).st_size > self._limits.wal_bytes
