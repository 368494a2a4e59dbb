"""When the write-ahead log goes into the database, and how deleted text leaves every file with it.

A checkpoint of a long log copies thousands of pages and waits for the disk, and packets would wait with it. So of a log
that has grown all but the last bit is moved beside the writer, on a thread and a connection of their own:

1. a pin (a read transaction) keeps SQLite from restarting the log;
2. beside the writer, the log is synced, the pages up to the pin are copied into the database without waiting for them
   (synchronous=OFF), what deleted rows left in them is cleared, and the database is synced; then the pin is lifted;
3. if much was written meanwhile, the same again;
4. the little that is left is checkpointed the usual way, and the log is cut off.

It is as safe as SQLite's own checkpoint, which does the same in one go: no page is copied whose frame is not on the
disk in the log (a checkpoint takes no frame that came after the oldest reader, here the pin, and all before it are
synced first), and no frame is given up before its page is on the disk in the database (the pin). A crash in between
leaves the log whole, and the next start plays it again. The pin holds because it is taken while there are frames to
copy: such a reader depends on the log, and a log that a reader depends on is never restarted. So the connection that
copies cannot be at odds with the writer's over where the log begins: only the writer's restarts it, and only while the
other has nothing to do.
"""

from __future__ import annotations

import logging
import os
import queue
import sqlite3
import sys
import threading
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass

from sidecar.store.failures import UnsyncedError
from sidecar.store.scrub import BEGINNING, Place, clear_gaps, generation, wal_pages

MOST_ROUNDS = 3
"""So often is a log copied beside the writer before what is left is moved in one go."""

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
    """Between two looks whether all is copied, and the least wait of all."""
    few_pages: int = 256
    """What was written meanwhile is moved beside the writer, too, if it is more."""
    reserve_pages: int = 64
    """So much may deletes exceed the size limit, in pages."""


def free_bytes(descriptor: int) -> int:
    """What is free on the disk of an open file; of one that tells no size, as much as anybody may want."""
    disk = os.fstatvfs(descriptor)
    return disk.f_bavail * disk.f_frsize if disk.f_blocks else sys.maxsize


class Checkpoints:
    """Decides and runs checkpoints. Whoever has the writer's turn calls it."""

    def __init__(
        self,
        connection: sqlite3.Connection,
        pin: sqlite3.Connection,
        copier: sqlite3.Connection,
        database: int,
        wal: int,
        sync: Callable[[int], None],
        limits: Limits,
    ) -> None:
        """`pin` is a connection for reading and `copier` one that copies pages, `database` and `wal` are open
        descriptors of the two files, and `sync` puts one on the disk. Closing a descriptor of the database would drop
        SQLite's locks on it, so it must stay open as long as the connections."""
        self._connection = connection
        self._pin = pin
        self._copier = copier
        copier.execute("PRAGMA synchronous = OFF")
        copier.execute("PRAGMA busy_timeout = 0").fetchall()
        self._database = database
        self._wal = wal
        self._sync_file = sync
        self._limits = limits
        self._page_size = int(connection.execute("PRAGMA page_size").fetchone()[0])
        self._copying: Future[Place] | None = None
        self._to_copy: queue.SimpleQueue[Future[Place] | None] = queue.SimpleQueue()
        self._rounds = 0
        self._cleared = BEGINNING
        """Up to where the log's pages are in the database, cleared of what deleted rows left in them."""
        self._beside = threading.Thread(target=self._copy_beside, name="store-checkpoint", daemon=True)
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

    def missing_bytes(self) -> int:
        """How much the disk lacks of what the log may take until it is moved, and the database by moving it; 0 if it
        has that. Deletes and moves live on it: on a disk that is wholly full, neither could make room."""
        log, limit = os.fstat(self._wal).st_size, self._limits.wal_bytes
        missing = max(2 * limit - log, log) - free_bytes(self._database)
        if missing <= 0:
            return 0
        missing -= self._page_size * int(self._connection.execute("PRAGMA freelist_count").fetchone()[0])
        return max(0, missing)

    @property
    def is_due(self) -> bool:
        """True if there is something for `run` to do, now or later."""
        return self._copying is not None or self._scrub_since is not None or self._wal_is_long()

    def text_was_deleted(self, now: float) -> None:
        """Notes that text must leave the files. `now` is monotonic, in seconds."""
        if self._scrub_since is None:
            self._scrub_since = now

    def wait_seconds(self, now: float) -> float | None:
        """How long the writer may wait for a job before `run` is due; None means for ever."""
        if self._copying is not None:
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
        if self._copying is not None:
            if self._copying.done():
                self._go_on(now)
        elif now - self._tried < self._limits.retry:
            return
        elif self._scrub_since is not None and now - self._scrub_since >= (
            self._limits.scrub_idle if idle else self._limits.scrub_within
        ):
            self.run_all(now)
        elif self._wal_is_long():
            self._tried, self._rounds = now, 0
            self._start_copying()

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
        self._to_copy.put(None)
        self._beside.join()
        self._pin.close()
        self._copier.close()

    def _start_copying(self) -> None:
        self._pin.execute("BEGIN")
        self._pin.execute("SELECT COUNT(*) FROM meta").fetchone()
        self._copying = Future()
        self._to_copy.put(self._copying)

    def _go_on(self, now: float) -> None:
        """Copies what was written meanwhile, too, and, once that is little, cuts the log off."""
        self._rest()
        self._rounds += 1
        left = os.fstat(self._wal).st_size // self._page_size - self._cleared.frames
        if left > self._limits.few_pages and self._rounds < MOST_ROUNDS:
            self._start_copying()
        else:
            self.run_all(now)

    def _rest(self) -> None:
        """Waits for what is being copied, if anything is. The pin is lifted in any case."""
        copying, self._copying = self._copying, None
        try:
            if copying is not None:
                self._cleared = copying.result()
        finally:
            if self._pin.in_transaction:
                self._pin.execute("ROLLBACK")

    def _copy_beside(self) -> None:
        # Not an executor: those refuse work as soon as the main thread has ended, and the writer goes on until close.
        while (copying := self._to_copy.get()) is not None:
            try:
                copied = self._copy()
            except Exception as error:  # noqa: BLE001 - goes to the writer, which waits for it
                copying.set_exception(error)
            else:
                copying.set_result(copied)

    def _copy(self) -> Place:
        self._sync(self._wal)
        _, _, moved = self._copier.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchone()
        clear_gaps(self._database, self._page_size, wal_pages(self._wal, self._page_size, self._cleared, max(0, moved)))
        self._sync(self._database)
        return Place(generation(self._wal), max(0, moved))

    def _sync(self, descriptor: int) -> None:
        try:
            self._sync_file(descriptor)
        except OSError as error:
            raise UnsyncedError(str(error)) from error

    def _checkpoint(self) -> bool:
        """Moves the log into the database, zeroes stale copies there, and cuts the log off. False: a reader was in the
        way, and some of it is left to do."""
        connection = self._connection
        pages = wal_pages(self._wal, self._page_size, self._cleared)
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
