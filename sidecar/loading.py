"""What a start makes of an open store before it serves: its models at work, and its memories in memory.

Apart from `serving`, which is imported while memories are loaded: SQLite and the sums of index files take most of that
time, and neither needs Python's lock.
"""

from __future__ import annotations

import hashlib
import logging
import time
from collections.abc import Callable
from dataclasses import dataclass

from sidecar.config import Settings
from sidecar.domain import Micros
from sidecar.errors import EmbedderMismatchError
from sidecar.features import SCHEMA_HASH
from sidecar.importance.settings import ImportanceSettings
from sidecar.importance.settled import identity_of
from sidecar.models import Models
from sidecar.ranking.priors import PriorsByVersion
from sidecar.ranking.reserved import ReserveSettings
from sidecar.reindex import Reindexer
from sidecar.retrieval.embedding import Embedder, identity
from sidecar.retrieval.hashing import Hasher
from sidecar.retrieval.kept_indexes import KeptIndexes
from sidecar.retrieval.namespaces import Namespaces
from sidecar.retrieval.sources import Stored
from sidecar.store import meta
from sidecar.store.indexes import PREFIX as INDEX_FILES
from sidecar.store.store import Store
from sidecar.weights import WeightsHolder
from sidecar.weights.roles import Outcome

logger = logging.getLogger(__name__)

PAGE = 1_000


@dataclass(frozen=True, slots=True, eq=False)
class Prepared:
    """What stands in memory for a store, and follows its writes."""

    namespaces: Namespaces
    models: Models
    priors: PriorsByVersion
    reindexer: Reindexer


def prepare(
    store: Store,
    settings: Settings,
    embedder: Embedder,
    weights: WeightsHolder,
    importance: ImportanceSettings,
    *,
    clock: Callable[[], Micros],
    make_embedder: Callable[[str], Embedder],
    on_outcome: Callable[[Outcome], None],
) -> Prepared:
    """Settles what the store goes by. No memory is loaded yet. `on_outcome` is as for `Models`.

    Raises EmbedderMismatchError, and what the store raises.
    """
    reindexer = Reindexer(store, embedder, make_embedder)
    _settle_embedder(store, embedder, settings.embedder, reindexer)
    store.set_agent_sessions(settings.use_agent_session_cap)
    models = Models(store, weights, clock, lambda found: _ranking_identity(found, settings), on_outcome)
    models.start()
    store.set_ranking(_ranking_identity(weights.identity_of(weights.at_work), settings))
    store.set_importance(identity_of(importance, identity(embedder)))
    source = Stored(store.read, Hasher(store.salt), time.monotonic)
    store.forewarn(source.leave)
    identifying = (identity(embedder), settings.use_agent_session_cap)
    store.sweep_indexes()
    kept_indexes = KeptIndexes(store, source, INDEX_FILES, identifying)
    namespaces = Namespaces(store.load, source, kept_indexes, settings.loaded_bytes, store.settle_counts)
    priors = PriorsByVersion(store.use_priors())
    store.subscribe(priors.apply)
    store.subscribe(namespaces.apply)
    return Prepared(namespaces, models, priors, reindexer)


def load_all(store: Store, namespaces: Namespaces) -> int:
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


def reserve_settings(settings: Settings) -> ReserveSettings:
    """How reserved slots are drawn, as the settings say it."""
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
    parts = (SCHEMA_HASH, weights, sorted(settings.emotion_namespaces), reserve_settings(settings).policy)
    return hashlib.sha256(repr(parts).encode()).hexdigest()


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
