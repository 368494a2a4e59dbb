"""The one writer: groups waiting jobs into one transaction, and checkpoints between them.

A job that finds nobody writing is done at once, on its caller's own thread: to hand it over and to be woken again takes
longer than a packet's commit. Jobs that come meanwhile are done together, on the writer's thread. There is one
connection, and whoever has the turn uses it.

A job runs in a savepoint of its own: if it fails, it alone is rolled back and only its caller hears of it. A volatile
job (a packet) is answered right after COMMIT and so survives kill -9; the caller of a durable one then waits for the
disk, with the turn given back, and so survives power loss too. Checkpoints run here and nowhere else: SQLite's log may
be restarted only by the connection that writes it, so no two connections can ever disagree on where it begins.
"""

from __future__ import annotations

import contextlib
import logging
import queue
import sqlite3
import threading
import time
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from sidecar.domain import Change, Memory
from sidecar.errors import StoreFullError, StoreUnavailableError
from sidecar.store.checkpoints import Checkpoints
from sidecar.store.failures import UnsyncedError, is_full, is_unsynced, translate
from sidecar.store.jobs import Job, Work
from sidecar.store.syncer import Syncer

R = TypeVar("R")

MAX_GROUP = 256
"""Most jobs in one transaction."""

_log = logging.getLogger(__name__)


class _Settle:
    """A caller that waits for a checkpoint of everything."""

    def __init__(self) -> None:
        self.complete = False
        self.answered = threading.Event()


class _Nudge:
    """Wakes the thread, to see whether a checkpoint is due."""


class _End:
    """The last item of the queue."""


class _TransactionLostError(Exception):
    """SQLite rolled the whole transaction back, not just one job."""


class Writer:
    """Runs jobs one group at a time."""

    def __init__(
        self,
        connection: sqlite3.Connection,
        checkpoints: Checkpoints,
        sync: Callable[[], None],
        max_pages: int,
        note: Callable[[sqlite3.Connection, Change], None] = lambda connection, change: None,
    ) -> None:
        """Takes the connection over. `max_pages` is the size at which growing jobs are refused; `note` writes down what
        a job changed, in its transaction."""
        self._connection = connection
        self._note = note
        self._checkpoints = checkpoints
        self._max_pages = max_pages
        self._pages_allowed = 0
        self._subscribers: list[Callable[[Change], None]] = []
        self._forewarned: list[Callable[[Sequence[Memory]], None]] = []
        self._broken: Exception | None = None
        self._full: Exception | None = None
        self._closed = False
        self._submitting = threading.Lock()
        self._turn = threading.Lock()
        self._told = threading.Event()
        self._told.set()
        self._nudged = False
        self._taken = 0
        self._main = threading.main_thread().ident
        self._queue: queue.SimpleQueue[Job[Any] | _Settle | _Nudge | _End] = queue.SimpleQueue()
        self._syncer = Syncer(sync, self._give_up)
        self._thread = threading.Thread(target=self._run, name="store-writer", daemon=True)
        self._thread.start()

    @property
    def waiting(self) -> int:
        """Jobs in the queue, those at work not counted."""
        return self._queue.qsize() + self._taken

    @property
    def problem(self) -> str:
        """Why writes are refused, in words; "" if the last one that a caller waited for was not."""
        found = self._broken or self._full
        return "" if found is None else str(found)

    def subscribe(self, callback: Callable[[Change], None]) -> None:
        """Calls back on the thread that wrote, after each COMMIT, in commit order, before any waiter is answered. A
        callback must not write to the store: it would wait for itself."""
        self._subscribers.append(callback)

    def forewarn(self, callback: Callable[[Sequence[Memory]], None]) -> None:
        """Calls back on the thread that writes before each COMMIT that deletes or rewrites memories, with how they
        stood."""
        self._forewarned.append(callback)

    def submit(self, work: Work[R], *, durable: bool, frees: bool = False) -> R:
        """Runs the work in a transaction and returns its result once it is committed, and on the disk if `durable`.

        `frees` marks work that removes more than it adds: it may exceed the size limit a little, or a full store could
        not be emptied.
        """
        job: Job[R] = Job(work, durable, frees)
        if not self._done_at_once(job):
            job.hand_over()
            self._put(job)
        value = job.wait()
        if durable:
            self._syncer.wait(job.sync_number)
        return value

    def _done_at_once(self, job: Job[Any]) -> bool:
        """Does the job here and now if it is nobody's turn. False: it is somebody's, or this is the main thread, which
        a signal may interrupt anywhere, and so in a transaction."""
        if threading.get_ident() == self._main or self._queue.qsize() or not self._turn.acquire(blocking=False):
            return False
        try:
            if self._closed:
                return False
            self._commit([job])
            due = self._checkpoints.is_due
        finally:
            self._turn.release()
        if due and not self._nudged:
            self._nudged = True
            self._queue.put(_Nudge())
        return True

    def wait_until_told(self, seconds: float) -> None:
        """Returns once subscribers have heard of all that could be read when it was called, or after so long."""
        self._told.wait(seconds)

    def settle(self) -> bool:
        """Checkpoints everything written so far, and drops deleted text from every file. False: a reader was in the
        way, or the disk; try again."""
        settle = _Settle()
        self._put(settle)
        settle.answered.wait()
        return settle.complete

    def close(self) -> None:
        """Finishes what waits, checkpoints and closes the connection."""
        with self._submitting:
            if not self._closed:
                self._closed = True
                self._queue.put(_End())
        self._thread.join()

    def _put(self, item: Job[Any] | _Settle) -> None:
        with self._submitting:
            if self._closed:
                raise StoreUnavailableError("the store is closed; the server is shutting down")
            self._queue.put(item)

    def _run(self) -> None:
        try:
            self._serve()
            with self._turn:
                with contextlib.suppress(StoreUnavailableError):  # those who wait are told
                    self._syncer.settle()
                self._checkpoint(everything=True)
        except BaseException as error:
            _log.critical("the store's writer ended", exc_info=True)
            self._give_up(error)
            raise
        finally:
            with self._submitting:
                self._closed = True
            while (item := self._next()) is not None:
                if isinstance(item, Job):
                    item.answer(self._broken)
                elif isinstance(item, _Settle):
                    item.answered.set()
            with self._turn:
                self._checkpoints.close()
                self._connection.close()

    def _serve(self) -> None:
        while True:
            item: Job[Any] | _Settle | _Nudge | _End | None
            with self._turn:
                wait = self._checkpoints.wait_seconds(time.monotonic())
            try:
                item = self._queue.get(timeout=wait)
            except queue.Empty:
                with self._turn:
                    self._checkpoint(idle=True)
                continue
            self._taken = 1
            group: list[Job[Any]] = []
            with self._turn:
                self._taken = 0
                while isinstance(item, Job):  # all that came in until it was our turn
                    group.append(item)
                    item = self._next() if len(group) < MAX_GROUP else None
                if isinstance(item, _Nudge):  # alone, or behind jobs
                    self._nudged = False
                if group:
                    self._commit(group)
                if isinstance(item, _End):
                    return
                if isinstance(item, _Settle):
                    item.complete = self._checkpoint(everything=True)
                    item.answered.set()
                else:
                    self._checkpoint()

    def _next(self) -> Job[Any] | _Settle | _Nudge | _End | None:
        try:
            return self._queue.get_nowait()
        except queue.Empty:
            return None

    def _commit(self, group: list[Job[Any]]) -> None:
        if self._broken is not None:
            for job in group:
                job.answer(self._broken)
            return
        if self._checkpoints.is_over and not self._checkpoint(everything=True) and self._checkpoints.is_over:
            lacking = (
                "its log has its share of the quota, and a long read, such as a backup, keeps it from being moved into"
                " the database; try again when that is done, or raise the quota"
            )
            group = self._without_growing(group, lacking)
        elif missing := self._checkpoints.missing_bytes():
            lacking = f"its disk has {missing:,} bytes less than its log needs; delete or prune, or give it more room"
            group = self._without_growing(group, lacking)
        if not group:
            return
        connection = self._connection
        done: list[Job[Any]] = []
        refused: list[tuple[Job[Any], Exception]] = []
        whole = len(group) == 1
        changes: list[Change] = []
        try:
            self._allow_pages(group[0].frees if whole else all(job.frees for job in group))
            connection.execute("BEGIN IMMEDIATE")
            for job in group:
                try:
                    self._run_alone(job, whole)
                except _TransactionLostError:
                    raise
                except Exception as error:  # noqa: BLE001 - goes to the caller
                    refused.append((job, translate(error)))
                else:
                    done.append(job)
                    changes += job.changes
            if changes:
                self._forewarn(changes)
                self._told.clear()
            connection.execute("COMMIT")
        except (sqlite3.Error, _TransactionLostError) as error:
            self._told.set()
            self._lost(group, error)
            return
        for job, why in refused:
            job.answer(why)
        for job in done:
            if job.durable:
                job.sync_number = self._syncer.number()
                if not job.frees:  # others may find room where a caller's write does not
                    self._full = None
        self._publish(done)
        if changes:
            self._told.set()
        for job in done:
            job.answer()

    def _without_growing(self, group: list[Job[Any]], why: str) -> list[Job[Any]]:
        """Refuses the jobs for which there is no room, and returns the others."""
        self._full = StoreFullError(f"the store cannot grow: {why}; ranking goes on")
        for job in group:
            if not job.frees:
                job.answer(self._full)
        return [job for job in group if job.frees]

    def _run_alone(self, job: Job[Any], whole: bool) -> None:
        """In a savepoint, or as the `whole` transaction, which is lost with it."""
        connection = self._connection
        if whole:
            try:
                self._run_noted(job)
            except Exception as error:
                raise _TransactionLostError from error
            return
        connection.execute("SAVEPOINT job")
        try:
            self._run_noted(job)
            connection.execute("RELEASE job")
        except BaseException as error:
            # SQLite gives up the transaction in some cases of a full store; alone, a job that frees room gets some.
            if is_full(error) or not connection.in_transaction:
                raise _TransactionLostError from error
            connection.execute("ROLLBACK TO job")
            connection.execute("RELEASE job")
            raise

    def _run_noted(self, job: Job[Any]) -> None:
        job.run(self._connection)
        for change in job.changes:
            self._note(self._connection, change)

    def _lost(self, group: list[Job[Any]], error: Exception) -> None:
        """Runs the jobs of a lost group one by one, so that only those at fault fail."""
        cause = error.__cause__ if isinstance(error, _TransactionLostError) else error
        assert isinstance(cause, Exception)
        with contextlib.suppress(sqlite3.Error):  # it may have ended by itself
            self._connection.execute("ROLLBACK")
        if is_unsynced(cause):
            self._give_up(cause)
        if len(group) == 1:
            if is_full(cause):
                self._full = translate(cause)
            group[0].answer(self._broken or translate(cause))
            return
        for job in group:
            self._commit([job])

    def _publish(self, done: list[Job[Any]]) -> None:
        for job in done:
            assert job.done is not None
            if job.done.after is not None:
                job.done.after()
            if job.done.erased:
                self._checkpoints.text_was_deleted(time.monotonic())
            for change in job.changes:
                self._tell(change)

    def _forewarn(self, changes: list[Change]) -> None:
        for change in changes:
            if change.replaced:
                for callback in self._forewarned:
                    callback(change.replaced)

    def _tell(self, change: Change) -> None:
        for callback in self._subscribers:
            try:
                callback(change)
            except Exception:  # noqa: BLE001 - committed is committed; who failed sees the gap and loads anew
                _log.exception("a subscriber failed on the change to score version %d", change.score_version)

    def _allow_pages(self, frees: bool) -> None:
        pages = self._checkpoints.reserve_pages + self._max_pages if frees else self._max_pages
        if pages != self._pages_allowed:
            self._connection.execute(f"PRAGMA max_page_count = {pages}").fetchall()
            self._pages_allowed = pages

    def _checkpoint(self, *, idle: bool = False, everything: bool = False) -> bool:
        """Lets a checkpoint go on, or does all of one. True: nothing is left in the log."""
        if self._broken is not None:
            return False
        now = time.monotonic()
        try:
            if everything:
                return self._checkpoints.run_all(now)
            self._checkpoints.run(now, idle=idle)
        except (sqlite3.Error, OSError, UnsyncedError) as error:
            if is_unsynced(error):
                self._give_up(error)
            # A full disk ends here too: the log goes on growing, and the next attempt follows.
            _log.warning("checkpoint failed, will be tried again: %s", translate(error))
        return False

    def _give_up(self, error: BaseException) -> Exception:
        """Refuses every write from now on: the disk did not confirm one, so none can be promised."""
        self._broken = StoreUnavailableError(
            f"the disk did not confirm a write ({error}); nothing is written any more: check the disk, then restart"
        )
        self._broken.__cause__ = error
        return self._broken
