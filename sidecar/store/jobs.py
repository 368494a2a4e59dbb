"""A piece of work for the writer: what it does, what it comes to, and the caller that waits for it."""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, TypeVar

from sidecar.domain import Change

R = TypeVar("R")
R_co = TypeVar("R_co", covariant=True)


@dataclass(frozen=True, slots=True)
class Done(Generic[R_co]):
    """What a job came to: its result, the change that subscribers hear of, and whether it removed or replaced text."""

    value: R_co
    change: Change | None = None
    erased: bool = False
    more: tuple[Change, ...] = ()
    """Changes of other namespaces in the same transaction."""
    after: Callable[[], None] | None = None
    """Called after the commit, before anyone hears of the changes. It must not raise, nor write to the store."""


Work = Callable[[sqlite3.Connection], Done[R]]
"""What a job does inside the transaction. May run twice: in a group that is lost as a whole, and then alone."""


class Job(Generic[R]):
    """One piece of work and the caller that waits for it."""

    __slots__ = ("_answered", "_error", "changes", "done", "durable", "frees", "sync_number", "work")

    def __init__(self, work: Work[R], durable: bool, frees: bool) -> None:
        self.work = work
        self.durable = durable
        self.frees = frees
        self.done: Done[R] | None = None
        self.changes: tuple[Change, ...] = ()
        """What the work has changed, once it is done."""
        self.sync_number = 0
        """The fsync that a durable job waits for, once it is committed."""
        self._error: Exception | None = None
        self._answered: threading.Lock | None = None

    def hand_over(self) -> None:
        """Another thread does it from here on."""
        self._answered = threading.Lock()
        self._answered.acquire()

    def run(self, connection: sqlite3.Connection) -> None:
        """Does the work and keeps the result for the caller."""
        self.done = done = self.work(connection)
        self.changes = () if done.change is None else (done.change, *done.more)

    def answer(self, error: Exception | None = None) -> None:
        """Lets the caller go on."""
        self._error = error
        if self._answered is not None:
            self._answered.release()

    def wait(self) -> R:
        """The result, once it is there. Raises what the work raised."""
        if self._answered is not None:
            self._answered.acquire()
        if self._error is not None:
            raise self._error
        assert self.done is not None
        return self.done.value
