"""The server's life as a story: open -> ready -> drain -> close.

The address is claimed first, so that a second server stops before it touches anything, and health answers NOT_SERVING
until all memories are in memory. What was opened is closed in the opposite order, also when the start fails halfway.
"""

from __future__ import annotations

import gc
import hashlib
import logging
import os
import signal
import socket
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Self

from sidecar import __version__
from sidecar.config import Settings
from sidecar.domain import DAY, Micros
from sidecar.errors import EmbedderMismatchError
from sidecar.features import SCHEMA_HASH
from sidecar.feedback.rescore import Rescorer
from sidecar.importance.emotion import MISSING, has_lexicon
from sidecar.importance.foresight import Foresight
from sidecar.importance.later import LaterScoring
from sidecar.importance.scorer import ImportanceScorer
from sidecar.importance.settled import identity_of, settled_importance
from sidecar.models import Models
from sidecar.observe import systemd
from sidecar.observe.observer import Observer, Standing
from sidecar.ranking.priors import PriorsByVersion
from sidecar.ranking.ranker import Ranker, random_packet_id
from sidecar.ranking.reserved import ReserveSettings
from sidecar.reindex import Reindexer
from sidecar.retrieval.chooser import Chooser
from sidecar.retrieval.embedders import make_embedder
from sidecar.retrieval.embedding import Embedder, identity
from sidecar.retrieval.hashing import Hasher
from sidecar.retrieval.keeper import Keeper
from sidecar.retrieval.kept_indexes import KeptIndexes
from sidecar.retrieval.namespaces import Namespaces
from sidecar.retrieval.patterns import compile_all
from sidecar.retrieval.sources import Stored
from sidecar.rpc.admin_service import AdminService, ServerFacts
from sidecar.rpc.memory_service import MemoryService
from sidecar.rpc.ranker_service import RankerService
from sidecar.rpc.server import Server
from sidecar.store import meta
from sidecar.store.files import make_folder
from sidecar.store.indexes import PREFIX as INDEX_FILES
from sidecar.store.store import Store
from sidecar.weights.settled import settled_weights

if TYPE_CHECKING:
    from sidecar.observe.http_port import HttpPort

logger = logging.getLogger(__name__)

PAGE = 1_000
TURN = 0.0005
"""Seconds that one thread may keep others waiting for Python's lock: a Rank takes it anew some ten times, so with the
usual 5 ms it would wait for most of its time beside a thread that scores or embeds."""

EXIT_OK = 0
EXIT_FAILURE = 1
EXIT_BAD_SETTINGS = 2
EXIT_STORE = 3
EXIT_ADDRESS = 4


def now() -> Micros:
    """Microseconds since 1970-01-01 UTC."""
    return time.time_ns() // 1000


class Sidecar:
    """One running server with its store. As a context manager it is open inside, and closed after."""

    def __init__(
        self,
        settings: Settings,
        clock: Callable[[], Micros] = now,
        new_packet_id: Callable[[], str] = random_packet_id,
        make_embedder: Callable[[str], Embedder] = make_embedder,
    ) -> None:
        self._settings = settings
        self._make_embedder = make_embedder
        self._clock = clock
        self._new_packet_id = new_packet_id
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
            weights, importance = settled_weights(settings), settled_importance(settings)
            embedder = self._make_embedder(settings.embedder)
            threading.Thread(target=_load_ahead, args=(embedder,), name="embedder", daemon=True).start()
            observer, open_http = _observed(settings)
            self._server = server = Server(settings, observer)
            undo.callback(server.close)
            self._http = open_http()
            if self._http is not None:
                undo.callback(self._http.close)
            store = Store.open(settings.data, quota_bytes=settings.quota_bytes or None)
            undo.callback(store.close)
            reindexer = Reindexer(store, embedder, self._make_embedder)
            _settle_embedder(store, embedder, settings.embedder, reindexer)
            store.set_agent_sessions(settings.use_agent_session_cap)
            models = Models(
                store, weights, self._clock, lambda found: _ranking_identity(found, settings), observer.model
            )
            models.start()
            store.set_ranking(_ranking_identity(weights.identity_of(weights.at_work), settings))
            store.set_importance(identity_of(importance, identity(embedder)))
            source = Stored(store.read, Hasher(store.salt), time.monotonic)
            store.forewarn(source.leave)
            identifying = (identity(embedder), settings.use_agent_session_cap)
            store.sweep_indexes()
            kept_indexes = KeptIndexes(store, source, INDEX_FILES, identifying)
            namespaces = Namespaces(store.load, source, kept_indexes, settings.loaded_bytes)
            priors = PriorsByVersion(store.use_priors())
            store.subscribe(priors.apply)
            store.subscribe(namespaces.apply)
            memory_count = _load_all(store, namespaces)
            keeper = Keeper(namespaces)
            undo.callback(keeper.close)
            if settings.exact_up_to:
                undo.callback(Chooser(namespaces, settings.exact_up_to).close)
            ranker = Ranker(
                store,
                namespaces,
                embedder,
                weights,
                self._clock,
                reserve_settings=_reserve(settings),
                emotion_namespaces=frozenset(settings.emotion_namespaces),
                new_packet_id=self._new_packet_id,
                priors=priors,
                exact_up_to=settings.exact_up_to,
            )
            scorer = ImportanceScorer(
                namespaces,
                embedder,
                importance,
                self._clock,
                lambda: weights.active.half_life_days,
            )
            if importance.enabled:
                if importance.emotion_namespaces and not has_lexicon():
                    logger.warning("%s", MISSING)
                undo.callback(LaterScoring(scorer, store, self._clock, server.give_way).close)
            facts = ServerFacts(
                listen=server.listen,
                embedder=f"{embedder.name}@{embedder.fingerprint}",
                dimension=embedder.dimension,
                start_time=start_time,
                scores_importance=importance.enabled,
            )
            server.serve(
                RankerService(
                    ranker,
                    store,
                    embedder.dimension,
                    self._clock,
                    settings.max_message_bytes,
                    observer,
                    Foresight(namespaces, store, scorer, self._clock),
                ),
                MemoryService(
                    store, namespaces, embedder, self._clock, settings.max_message_bytes, server.stopping, scorer
                ),
                AdminService(
                    store,
                    weights,
                    models,
                    facts,
                    self._clock,
                    Rescorer(store, self._clock, settings.rescore_max_move),
                    settings.reserve_min_reported_sessions,
                    round(settings.prune_keep_days * DAY),
                    reindexer,
                    server.stopping,
                ),
            )
            observer.standing(
                Standing(
                    store.numbers,
                    store.problems,
                    models.problems,
                    lambda: weights.active.version,
                    SCHEMA_HASH,
                    __version__,
                    facts.embedder,
                )
            )
            threading.Thread(target=_load_rest, args=(embedder,), name="rest", daemon=True).start()
            if self._http is not None:
                self._http.set_ready()
            # The address goes last, so that no second server finds the store still open.
            undo.callback(self.drain)
            self._open = undo.pop_all()
        seconds = (self._clock() - start_time) / 1e6
        logger.info("serving on %s: %d memories, ready after %.1f s", server.listen, memory_count, seconds)

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


def run(settings: Settings) -> None:
    """Serves until SIGTERM or SIGINT. For the main thread of a process. Raises what `Sidecar.open` does."""
    sys.setswitchinterval(TURN)
    with _signals(signal.SIGTERM, signal.SIGINT) as heard, Sidecar(settings):
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


def _reserve(settings: Settings) -> ReserveSettings:
    return ReserveSettings(
        min_reported_sessions=settings.reserve_min_reported_sessions,
        pool_size=settings.reserve_pool_size,
        floor=settings.reserve_floor,
        fit_share=settings.reserve_fit_share,
        epsilon=settings.reserve_epsilon,
        temperature=settings.reserve_temperature,
        swap_within=settings.swap_near_ties,
    )


def _ranking_identity(weights: str, settings: Settings) -> str:
    """Changes with anything between two starts that can change a ranking of the same store."""
    parts = (SCHEMA_HASH, weights, sorted(settings.emotion_namespaces), _reserve(settings).policy)
    return hashlib.sha256(repr(parts).encode()).hexdigest()


def _load_ahead(embedder: Embedder) -> None:
    """Loads the model while the store is looked at for damage. What fails is raised where it is asked for."""
    with suppress(Exception):
        _ = embedder.fingerprint


def _load_rest(embedder: Embedder) -> None:
    """Loads what nobody needs until a call comes: for a thread that does it before one has to wait for it."""
    with suppress(Exception):
        embedder.embed([""])
    compile_all()


def _settle_embedder(store: Store, embedder: Embedder, spec: str, reindexer: Reindexer) -> None:
    """A new store keeps the embedder that it is opened with. Another is refused, for vectors of two do not compare;
    but for the one that a reindex has made vectors for, which takes over now."""
    current = identity(embedder)
    known = store.meta(meta.EMBEDDER)
    if known is None:
        store.set_meta({meta.EMBEDDER: current.encode()})
        return
    if known.decode() == current:
        return
    if store.meta(meta.REINDEX_TARGET) != current.encode():
        name = known.decode().partition("@")[0]
        raise EmbedderMismatchError(
            f"the store in {store.folder} holds vectors of {known.decode()}, and embedder is set to {current}: vectors "
            f"of two embedders do not compare. Start with --embedder {name} and the version of it that made the store; "
            f"or change the store with `memory-ranker reindex --embedder {spec}`, now or while it serves; or name "
            "another folder with --data"
        )
    done, total = store.reindex_counts()
    logger.info("changing from %s to %s: %d of %d memories are embedded", known.decode(), current, done, total)
    for _ in reindexer.switch(embedder):
        pass


def _load_all(store: Store, namespaces: Namespaces) -> int:
    """Brings every memory into memory while there is room, so that the first call is answered like the next. Returns
    how many there are."""
    count, after = 0, ""
    while page := store.list_namespaces(after, PAGE):
        for each in page:
            count += each.memory_count
            if not namespaces.let_go:
                namespaces.get(each.namespace)
        after = page[-1].namespace
    return count
