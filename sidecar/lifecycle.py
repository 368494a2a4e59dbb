"""The server's life as a story: open -> ready -> drain -> close.

The address is claimed first, so that a second server stops before it touches anything, and health answers NOT_SERVING
until all memories are in memory. What was opened is closed in the opposite order, also when the start fails halfway.
"""

from __future__ import annotations

import gc
import logging
import os
import signal
import socket
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from importlib import import_module
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Self

from sidecar.config import Settings
from sidecar.domain import Micros
from sidecar.loading import load_all, prepare
from sidecar.observe import systemd
from sidecar.observe.observer import Observer
from sidecar.plurals import counted
from sidecar.retrieval import heap
from sidecar.retrieval.embedders import make_embedder
from sidecar.retrieval.embedding import Embedder
from sidecar.rpc.server import Server
from sidecar.settled import settled
from sidecar.store.damage import LookAhead
from sidecar.store.files import make_folder
from sidecar.store.store import Store

if TYPE_CHECKING:
    from sidecar.observe.http_port import HttpPort

logger = logging.getLogger(__name__)

TURN = 0.0005
"""Seconds that one thread may keep others waiting for Python's lock: a Rank takes it anew some ten times, so with the
usual 5 ms it would wait for most of its time beside a thread that scores or embeds."""

LOOSE = 10_000
"""New objects after which Python looks for garbage in cycles. There is little of it, and with the usual 700 the looking
takes a twentieth of what a stream of memories takes."""


def now() -> Micros:
    """Microseconds since 1970-01-01 UTC."""
    return time.time_ns() // 1000


class Sidecar:
    """One running server with its store. As a context manager it is open inside, and closed after."""

    def __init__(
        self,
        settings: Settings,
        clock: Callable[[], Micros] = now,
        new_packet_id: Callable[[], str] | None = None,
        make_embedder: Callable[[str], Embedder] = make_embedder,
        ahead: LookAhead | None = None,
    ) -> None:
        """`ahead` looks for damage in the store's folder since before."""
        self._settings = settings
        self._make_embedder = make_embedder
        self._clock = clock
        self._new_packet_id = new_packet_id
        self._ahead = ahead
        self._open = ExitStack()
        self._server: Server | None = None
        self._http: HttpPort | None = None

    @property
    def listen(self) -> str:
        """The address for clients, once open: unix:PATH or HOST:PORT."""
        assert self._server is not None
        return self._server.listen

    @property
    def http(self) -> str:
        """The address of the HTTP port, once open: HOST:PORT, or off."""
        return "off" if self._http is None else self._http.listen

    def open(self) -> None:
        """Claims the address, opens the store, loads every memory, and serves.

        Raises SettingsError, ListenError, or StoreUnavailableError and what derives from it.
        """
        settings, start_time = self._settings, self._clock()
        with ExitStack() as undo:
            if Path(settings.listen.removeprefix("unix:")).parent == settings.data:
                # The socket is there because the store is, so that it is --data which is wrong if neither can be made.
                make_folder(settings.data)
            weights, importance = settled(settings)
            embedder = self._make_embedder(settings.embedder)
            _ahead(lambda: embedder.fingerprint)
            observer, open_http = _observed(settings)
            self._server = server = Server(settings, observer)
            undo.callback(server.close)
            self._http = open_http()
            if self._http is not None:
                undo.callback(self._http.close)
            store = Store.open(settings.data, quota_bytes=settings.quota_bytes or None, ahead=self._ahead)
            undo.callback(store.close)
            prepared = prepare(
                store,
                settings,
                embedder,
                weights,
                importance,
                clock=self._clock,
                make_embedder=self._make_embedder,
                on_outcome=observer.model,
            )
            # All that serves is imported while memories are loaded, without Python's lock for the most part.
            _ahead(lambda: import_module("sidecar.serving"))
            memory_count = load_all(store, prepared.namespaces)
            from sidecar.serving import serve

            serve(
                prepared,
                store,
                server,
                observer,
                settings,
                embedder,
                weights,
                importance,
                undo,
                start_time=start_time,
                clock=self._clock,
                new_packet_id=self._new_packet_id,
            )
            if self._http is not None:
                self._http.set_ready()
            # The address goes last, so that no second server finds the store still open.
            undo.callback(self.drain)
            self._open = undo.pop_all()
        seconds = (self._clock() - start_time) / 1e6
        logger.info("serving on %s: %s, ready after %.1f s", server.listen, counted(memory_count, "memory"), seconds)

    def drain(self) -> None:
        """Takes no more calls, and returns once those that run have finished or used up `drain_seconds`."""
        assert self._server is not None
        if self._http is not None:
            self._http.set_draining()
        if not self._server.drain(self._settings.drain_seconds).wait(self._settings.drain_seconds):
            logger.warning("calls still ran after %g s and were cut off", self._settings.drain_seconds)
        if self._http is not None:
            self._http.close()

    def close(self) -> None:
        """Drains, and lets everything go."""
        self._open.close()

    def __enter__(self) -> Self:
        self.open()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def run(settings: Settings, ahead: LookAhead | None = None) -> None:
    """Serves until SIGTERM or SIGINT. For the main thread of a process. `ahead` is as for `Sidecar`. Raises what
    `Sidecar.open` does."""
    sys.setswitchinterval(TURN)
    heap.share()
    with _signals(signal.SIGTERM, signal.SIGINT) as heard, Sidecar(settings, ahead=ahead):
        gc.set_threshold(LOOSE)
        gc.freeze()  # what a start has made stays: going through it now and then would stop everything
        gc.enable()
        systemd.tell(systemd.READY, os.environ)
        heard.recv(1)
        systemd.tell(systemd.STOPPING, os.environ)
        logger.info("stopping: calls that run may take %g s to finish", settings.drain_seconds)
    logger.info("stopped")


@contextmanager
def _signals(*numbers: signal.Signals) -> Iterator[socket.socket]:
    """Where a byte can be read for each signal that came, and none is missed.

    Whatever is told by a handler can be told too late: Python runs it between two lines of the main thread, and a
    signal that comes after the last of them, or to another thread, leaves the main thread waiting. What waits for a
    lock that the handler needs waits for ever. The byte is written by what the system calls at once.
    """
    heard, tells = socket.socketpair()
    with heard, tells:
        tells.setblocking(False)
        signal.set_wakeup_fd(tells.fileno())
        for number in numbers:
            signal.signal(number, lambda *_: None)
        try:
            yield heard
        finally:
            signal.set_wakeup_fd(-1)


def _observed(settings: Settings) -> tuple[Observer, Callable[[], HttpPort | None]]:
    """What hears of the calls, and how to open the port that shows it. Without a port nothing is counted, nor is the
    library loaded that counts."""
    if settings.http == "off":
        return Observer(), lambda: None
    from sidecar.observe.http_port import HttpPort
    from sidecar.observe.metrics import CONTENT_TYPE, Metrics

    metrics = Metrics()

    def open_port() -> HttpPort:
        port = HttpPort(settings.http, metrics.text, CONTENT_TYPE)
        logger.info("probes and metrics on http://%s", port.listen)
        return port

    return metrics, open_port


def _ahead(load: Callable[[], object]) -> None:
    """Loads on a thread of its own what the start will need. What fails is raised where it is asked for."""

    def work() -> None:
        with suppress(Exception):
            load()

    threading.Thread(target=work, name="ahead", daemon=True).start()
