"""What serves over an open store: the memories in memory, the ranker, the scorer of importances, the services.

A module of its own, and imported by `lifecycle` only once it is at work: it brings in half of the program, which is
loaded while SQLite looks for damage.
"""

from __future__ import annotations

import hashlib
import logging
import threading
import time
from collections.abc import Callable
from contextlib import ExitStack, suppress

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
from sidecar.importance.settings import ImportanceSettings
from sidecar.importance.settled import identity_of
from sidecar.models import Models
from sidecar.observe.observer import Observer, Standing
from sidecar.ranking.priors import PriorsByVersion
from sidecar.ranking.ranker import Ranker, random_packet_id
from sidecar.ranking.reserved import ReserveSettings
from sidecar.reindex import Reindexer
from sidecar.retrieval.chooser import Chooser
from sidecar.retrieval.embedding import Embedder, identity
from sidecar.retrieval.hashing import Hasher
from sidecar.retrieval.heap import give_back
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
from sidecar.store.indexes import PREFIX as INDEX_FILES
from sidecar.store.store import Store
from sidecar.weights import WeightsHolder

logger = logging.getLogger(__name__)

PAGE = 1_000


def serve(
    store: Store,
    server: Server,
    observer: Observer,
    settings: Settings,
    embedder: Embedder,
    weights: WeightsHolder,
    importance: ImportanceSettings,
    undo: ExitStack,
    *,
    start_time: Micros,
    clock: Callable[[], Micros],
    new_packet_id: Callable[[], str] | None,
    make_embedder: Callable[[str], Embedder],
) -> int:
    """Loads every memory, and lets `server` take calls. What it started is ended by `undo`, which is closed before the
    store. Returns how many memories there are.

    Raises EmbedderMismatchError, and what the store raises.
    """
    reindexer = Reindexer(store, embedder, make_embedder)
    _settle_embedder(store, embedder, settings.embedder, reindexer)
    store.set_agent_sessions(settings.use_agent_session_cap)
    models = Models(store, weights, clock, lambda found: _ranking_identity(found, settings), observer.model)
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
        clock,
        reserve_settings=_reserve(settings),
        emotion_namespaces=frozenset(settings.emotion_namespaces),
        new_packet_id=new_packet_id or random_packet_id,
        priors=priors,
        exact_up_to=settings.exact_up_to,
    )
    scorer = ImportanceScorer(
        namespaces,
        embedder,
        importance,
        clock,
        lambda: weights.active.half_life_days,
    )
    if importance.enabled:
        if importance.emotion_namespaces and not has_lexicon():
            logger.warning("%s", MISSING)
        undo.callback(LaterScoring(scorer, store, clock, server.give_way).close)
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
            clock,
            settings.max_message_bytes,
            observer,
            Foresight(namespaces, store, scorer, clock),
        ),
        MemoryService(store, namespaces, embedder, clock, settings.max_message_bytes, server.stopping, scorer),
        AdminService(
            store,
            weights,
            models,
            facts,
            clock,
            Rescorer(store, clock, settings.rescore_max_move),
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
    return memory_count


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


def _load_rest(embedder: Embedder) -> None:
    """Loads what nobody needs until a call comes: for a thread that does it before one has to wait for it."""
    with suppress(Exception):
        embedder.embed([""])
    compile_all()
    give_back()  # what reading the embedder's files took for a moment: 40 MB


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
