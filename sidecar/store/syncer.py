"""Makes commits survive power loss, on the threads of those who wait for it, so that no commit waits for a disk.

Why an fsync of the write-ahead log alone is enough, at whatever moment it runs. A commit has written its frames to the
log file before its waiter takes a number here, so an fsync that begins afterwards covers them. In between, the writer
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
from collections.abc import Callable


class Syncer:
    """Groups those who wait: all who come while one fsync runs share the next, which the first of them runs."""

    def __init__(self, sync: Callable[[], None], on_failure: Callable[[OSError], Exception]) -> None:
        """`sync` returns once the log is on the disk; `on_failure` says what waiters are told, from then on too."""
        self._sync = sync
        self._on_failure = on_failure
        self._failure: Exception | None = None
        self._turn = threading.Lock()
        self._begun = 0
        self._done = 0
        self._wanted = 0

    def number(self) -> int:
        """The number of the first fsync that begins from now on."""
        self._wanted = number = self._begun + 1
        return number

    def wait(self, number: int) -> None:
        """Returns once the fsync of that number, or a later one, is done. Raises what `on_failure` said."""
        if self._done >= number:
            return
        with self._turn:
            if self._done >= number:
                return
            if self._failure is None:
                self._begun = begun = self._begun + 1
                try:
                    self._sync()
                except OSError as error:
                    self._failure = self._on_failure(error)
                else:
                    self._done = begun
            if self._failure is not None:
                raise self._failure

    def settle(self) -> None:
        """Leaves nobody who has a number without his fsync, so that the file may be closed. Raises as `wait` does."""
        self.wait(self._wanted)
