"""What serves over an open store: the memories in memory, the ranker, the scorer of importances, the services.

A module of its own, and imported by `lifecycle` only once it is at work: it brings in a third of the program, while
memories are loaded.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from contextlib import ExitStack, suppress

from sidecar import __version__
from sidecar.config import Settings
from sidecar.domain import DAY, Micros
from sidecar.features import SCHEMA_HASH
from sidecar.feedback.counting import LaterCounting
from sidecar.feedback.rescore import Rescorer
from sidecar.importance.emotion import MISSING, has_lexicon
from sidecar.importance.foresight import Foresight
from sidecar.importance.later import LaterScoring
from sidecar.importance.scorer import ImportanceScorer
from sidecar.importance.settings import ImportanceSettings
from sidecar.loading import Prepared, reserve_settings
from sidecar.observe.observer import Observer, Standing
from sidecar.ranking.ranker import Ranker, random_packet_id
from sidecar.retrieval.chooser import Chooser
from sidecar.retrieval.embedding import Embedder
from sidecar.retrieval.heap import give_back
from sidecar.retrieval.keeper import Keeper
from sidecar.retrieval.patterns import compile_all
from sidecar.rpc.admin_service import AdminService, ServerFacts
from sidecar.rpc.memory_service import MemoryService
from sidecar.rpc.ranker_service import RankerService
from sidecar.rpc.server import Server
from sidecar.store.store import Store
from sidecar.weights import WeightsHolder

logger = logging.getLogger(__name__)


def serve(
    prepared: Prepared,
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
) -> None:
    """Lets `server` take calls. What it started is ended by `undo`, which is closed before the store."""
    namespaces, models = prepared.namespaces, prepared.models
    keeper = Keeper(namespaces)
    undo.callback(keeper.close)
    undo.callback(LaterCounting(store).close)
    if settings.exact_up_to:
        undo.callback(Chooser(namespaces, settings.exact_up_to).close)
    ranker = Ranker(
        store,
        namespaces,
        embedder,
        weights,
        clock,
        reserve_settings=reserve_settings(settings),
        emotion_namespaces=frozenset(settings.emotion_namespaces),
        new_packet_id=new_packet_id or random_packet_id,
        priors=prepared.priors,
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
            prepared.reindexer,
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


def _load_rest(embedder: Embedder) -> None:
    """Loads what nobody needs until a call comes: for a thread that does it before one has to wait for it."""
    with suppress(Exception):
        embedder.embed([""])
    compile_all()
    give_back()  # what reading the embedder's files took for a moment: 40 MB
