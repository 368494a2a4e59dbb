"""The thread that makes commits survive power loss, apart from the writer so that no commit waits for a disk.

Why an fsync of the write-ahead log alone is enough, at whatever moment it runs. A commit has written its frames to the
log file before its waiter is handed over here, so an fsync that begins afterwards covers them. In between, the writer
may have checkpointed: SQLite then synced the log, copied its pages into the database and synced that, before anything
of the log was cut off or overwritten; the commit is in the database for good, and what becomes of the log no longer
matters. A restarted log begins with a header that SQLite syncs (synchronous=NORMAL) before the first new frame follows,
so old and new frames cannot mix after a power loss. The file itself is never replaced while the store is open: one
descriptor serves for the store's lifetime. Closing descriptors of the log drops no locks either: SQLite's are on the
database and on the shared memory file.

An fsync that fails is never tried again: the kernel may have dropped the pages and would report success.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import Protocol


class Waiter(Protocol):
    """Someone who waits for a commit to be durable."""

    def answer(self, error: Exception | None = None) -> None:
        """Lets the caller go on, with an error if there is one."""


class Syncer:
    """Groups waiters: all who arrive while one fsync runs share the next."""

    def __init__(self, sync: Callable[[], None], on_failure: Callable[[OSError], Exception]) -> None:
        """`sync` returns once the log is on the disk; `on_failure` says what waiters are told, from then on too."""
        self._sync = sync
        self._on_failure = on_failure
        self._failure: Exception | None = None
        self._waiting: list[Waiter] = []
        self._closing = False
        self._arrived = threading.Condition()
        self._thread = threading.Thread(target=self._run, name="store-syncer", daemon=True)
        self._thread.start()

    def add(self, waiters: Sequence[Waiter]) -> None:
        """Answers the waiters after the next fsync."""
        with self._arrived:
            self._waiting.extend(waiters)
            self._arrived.notify()

    def close(self) -> None:
        """Serves everyone who waits, then ends the thread."""
        with self._arrived:
            self._closing = True
            self._arrived.notify()
        self._thread.join()

    def _run(self) -> None:
        while True:
            with self._arrived:
                while not self._waiting and not self._closing:
                    self._arrived.wait()
                group, self._waiting = self._waiting, []
            if not group:
                return
            if self._failure is None:
                try:
                    self._sync()
                except OSError as error:
                    self._failure = self._on_failure(error)
            for waiter in group:
                waiter.answer(self._failure)
