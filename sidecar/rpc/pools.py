"""Thread pools that know when they are full. Calls have one and long streams another, so no stream holds up a call."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, ParamSpec, TypeVar

P = ParamSpec("P")
T = TypeVar("T")


class Pool(ThreadPoolExecutor):
    """Threads, and a count of what they have been given and have not finished."""

    def __init__(self, what: str, threads: int, waiting: float) -> None:
        """`what` it works on, in words; `waiting` is how many may wait for a thread before it counts as full."""
        super().__init__(max_workers=threads, thread_name_prefix=what)
        self.what = what
        self._most = threads + waiting
        self._count = 0
        self._counting = threading.Condition(threading.Lock())

    @property
    def count(self) -> int:
        """What it has been given and has not finished."""
        return self._count

    @property
    def is_full(self) -> bool:
        """True if what comes next should be refused. The pool itself refuses nothing: grpc's loop must never see an
        exception from `submit`."""
        return self._count >= self._most

    def wait_until_idle(self, seconds: float) -> None:
        """Returns once it has nothing to do, or after so long."""
        if self._count:
            with self._counting:
                self._counting.wait_for(lambda: not self._count, seconds)

    def submit(self, function: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> Future[T]:
        """Hands work over, and counts it until it is done."""
        with self._counting:
            self._count += 1
        future = super().submit(function, *args, **kwargs)
        future.add_done_callback(self._done)
        return future

    def _done(self, _: Future[Any]) -> None:
        with self._counting:
            self._count -= 1
            if not self._count:
                self._counting.notify_all()
