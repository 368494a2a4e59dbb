"""Tells long streams that the server stops, so that none holds it up."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

import grpc

from sidecar.errors import StoreUnavailableError


class Stopping:
    """Whether the server stops, and the streams that wait for their caller meanwhile."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._waiting: set[grpc.ServicerContext] = set()
        self._is_set = False

    def set(self) -> None:
        """The server stops: streams that wait are cut off, those at work end at their next `waiting`."""
        with self._lock:
            self._is_set = True
            for context in self._waiting:
                context.cancel()

    @contextmanager
    def waiting(self, context: grpc.ServicerContext) -> Iterator[None]:
        """Inside, the stream waits for its caller. Raises StoreUnavailableError if the server stops."""
        with self._lock:
            if self._is_set:
                raise StoreUnavailableError("the server is stopping; resume the stream when it is back")
            self._waiting.add(context)
        try:
            yield
        finally:
            with self._lock:
                self._waiting.discard(context)
