"""When reports are counted: at once, or, where somebody sees to it, a moment after they were taken, many together.

A report is on the disk before its caller goes on; what it comes to follows from the log, and is there for whoever asks:
who reads what depends on it has it counted first.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from sqlite3 import Connection
from typing import TypeVar

from sidecar.domain import Change
from sidecar.errors import RankerError
from sidecar.store import reports
from sidecar.store.jobs import Done
from sidecar.store.readers import Readers
from sidecar.store.writer import Writer

R = TypeVar("R")

AT_ONCE = 4
"""Packets whose reports are counted in one transaction: the next report waits for no more."""


class CountCalls:
    """Counts reports."""

    _readers: Readers
    _writer: Writer
    _wake: Callable[[], None] | None = None
    _taken: int
    """Grows with every report that is yet to be counted. It begins with those that a killed process left."""
    _counted = 0
    """As far as this all are counted, and subscribers have heard of it."""

    def count_later(self, wake: Callable[[], None]) -> None:
        """From now on a report is counted by the next `count_reports`, and not before its caller goes on. `wake` is
        called once one was taken, on the thread that wrote it."""
        self._wake = wake

    def count_reports(self) -> None:
        """Counts the reports that were taken; subscribers have heard of it when it returns. Raises as any write."""
        taken = self._taken
        while self._counted < taken:
            if not self._writer.submit(_count_some, durable=False):
                self._counted = max(self._counted, taken)

    def settle_counts(self) -> None:
        """The same for who reads: a store that cannot be written to, which says so itself, is read as it stands."""
        with suppress(RankerError):
            self.count_reports()

    @contextmanager
    def _counted_snapshot(self) -> Iterator[Connection]:
        """`Readers.snapshot` for what depends on the reports that were taken before."""
        self.settle_counts()
        with self._readers.snapshot() as connection:
            yield connection

    def _taken_in(self, connection: Connection, value: R) -> Done[R]:
        """What a job comes to that took reports in, in its transaction."""
        if self._wake is None:
            return _done(value, reports.count(connection))
        return Done(value, after=self._put_off)

    def _put_off(self) -> None:
        self._taken += 1
        if self._wake is not None:
            self._wake()


def _count_some(connection: Connection) -> Done[bool]:
    """True: there is more to count."""
    changes = reports.count(connection, AT_ONCE)
    return _done(reports.uncounted(connection), changes)


def _done(value: R, changes: Sequence[Change]) -> Done[R]:
    return Done(value, changes[0] if changes else None, more=tuple(changes[1:]))
