"""What the store does for all that moves scores beside writes: rescores, priors, other vectors, other weights."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from sqlite3 import Connection

from sidecar.domain import Change, ImportancePart, Memory, Micros, PartName, ScoredContent
from sidecar.store import (
    audit,
    audit_importance,
    importance,
    importance_links,
    indexes,
    memories,
    meta,
    reembedded,
    rescores,
    snapshots,
)
from sidecar.store.audit_sql import Scope
from sidecar.store.count_calls import CountCalls
from sidecar.store.jobs import Done


class ScoreCalls(CountCalls):
    """Moves scores, and says by what."""

    def feedback(self, namespace: str) -> rescores.Feedback:
        """What a rescore of a namespace goes by, or of all for ""."""
        with self._counted_snapshot() as db:
            return rescores.read(db, namespace)

    def apply_rescore(self, run: rescores.Run, now: Micros) -> int:
        """Writes a rescore's scores, all or none, beside those from before. Returns how many memories it moved."""
        return self._writer.submit(lambda db: rescores.apply(db, run, now), durable=True)

    def restore_scores(self, run_id: str, now: Micros) -> int:
        """Brings the scores from before a run back. Returns how many. Raises RunNotFoundError."""
        return self._writer.submit(lambda db: rescores.restore(db, run_id, now), durable=True)

    def set_importance(self, identity: str) -> None:
        """Says what scores the content parts of importances from now on. If that is new, what was scored before is
        forgotten, and scored anew where anything scores. For the start: who has loaded a namespace hears nothing of
        it."""

        def work(db: Connection) -> Done[None]:
            if meta.get(db, meta.IMPORTANCE) != identity.encode():
                meta.put(db, meta.IMPORTANCE, identity.encode())
                for namespace in importance.forget_contents(db):
                    memories.bump(db, namespace)
                    indexes.forget(db, namespace)
            return Done(None)

        self._writer.submit(work, durable=True)

    def importance_parts(self, key: int) -> dict[PartName, ImportancePart]:
        """How the parts of a memory's importance came about, of those that are there."""
        with self._readers.snapshot() as db:
            return importance.read(db, key)

    def unscored(self, namespace: str, after: int, limit: int) -> list[Memory]:
        """At most `limit` memories that are yet to get the content part of their importance and whose keys follow
        `after`, oldest first."""
        with self._readers.snapshot() as db:
            return importance.unscored(db, namespace, after, limit)

    def namespaces_unscored(self) -> list[str]:
        """Namespaces that hold such memories."""
        with self._readers.snapshot() as db:
            return importance.namespaces_unscored(db)

    def put_contents(self, namespace: str, scored: Sequence[ScoredContent]) -> None:
        """Writes content parts of stored memories, where they are still missing and the memory says what was scored."""

        def work(db: Connection) -> Done[None]:
            scores = importance.put_contents(db, namespace, scored, memories.score_version(db, namespace))
            if not scores:
                return Done(None)
            return Done(None, Change(namespace, memories.bump(db, namespace), importance_contents=scores))

        self._writer.submit(work, durable=False)

    def followers(self, namespace: str, memory_id: str) -> list[int]:
        """The keys of memories whose content part follows from a memory, and which are scored anew when it changes."""
        with self._readers.snapshot() as db:
            return importance_links.followers(db, namespace, [memory_id])

    def told_of_scores(self, namespace: str, scored: Sequence[ScoredContent], written: int) -> list[int]:
        """The keys of memories that would be scored anew once these were put; the memory of the key `written` was never
        scored as it stands. Writes nothing."""
        with self._readers.snapshot() as db:
            told: list[int] = []
            for each in scored:
                key = each.memory.key
                before = None if key == written else importance.was_superseded(db, key)
                told += importance.told_of_score(db, namespace, each.memory, each, before)
            return told

    def put_up_turned(self, now: Micros) -> Micros | None:
        """Puts up what follows from memories that began or ceased to be valid since this was last called, to be scored
        anew. Returns when the next one turns."""

        def work(db: Connection) -> Done[Micros | None]:
            since = int(meta.get(db, meta.IMPORTANCE_TIME) or 0)
            found, following = importance_links.put_up_turned(db, since, now)
            meta.put(db, meta.IMPORTANCE_TIME, str(now).encode())
            changes = [
                Change(name, memories.bump(db, name), importance_contents=dict.fromkeys(keys))
                for name, keys in found.items()
                if keys
            ]
            return Done(following, changes[0] if changes else None, more=tuple(changes[1:]))

        return self._writer.submit(work, durable=False)

    def audit(self, scope: Scope, min_reported_sessions: int) -> audit.AuditNumbers:
        """What an audit of a scope goes by. Reads its whole log."""
        with self._counted_snapshot() as db:
            return audit.read(db, scope, min_reported_sessions)

    def audit_importance(
        self, namespace: str, language_of: Callable[[str], str]
    ) -> tuple[list[audit_importance.RunMoves], list[audit_importance.JudgedMemory]]:
        """What an audit of importances goes by, of a namespace or of all for "". Reads every memory."""
        with self._counted_snapshot() as db:
            return (
                audit_importance.read_runs(db, namespace),
                audit_importance.read_judged(db, namespace, language_of),
            )

    def begin_reindex(self, target: str) -> None:
        """Collects vectors for the embedder `target` (name@fingerprint:dimension) from now on, beside those that serve.
        What was collected for it before is kept."""
        self._writer.submit(lambda db: reembedded.begin(db, target), durable=True)

    def abandon_reindex(self) -> None:
        """Drops what was collected for another embedder."""
        self._writer.submit(reembedded.abandon, durable=True, frees=True)

    def reindex_counts(self, namespace: str = "") -> tuple[int, int]:
        """Memories that have a vector of the next embedder, and memories in all; "" means of every namespace."""
        with self._readers.snapshot() as db:
            return reembedded.counts(db, namespace)

    def texts(
        self, after: int, limit: int, *, namespace: str = "", only_missing: bool = False
    ) -> list[reembedded.Text]:
        """At most `limit` memories whose keys follow `after`; `only_missing`: without a vector of the next embedder."""
        with self._readers.snapshot() as db:
            return reembedded.texts(db, after, limit, namespace=namespace, only_missing=only_missing)

    def keep_reembedded(self, target: str, rows: Sequence[reembedded.Embedded]) -> int:
        """Keeps vectors of the next embedder. Returns how many of the contents still stood.

        Raises OverloadedError if `target` is not the next embedder any more.
        """
        return self._writer.submit(lambda db: Done(reembedded.keep(db, target, rows)), durable=True)

    def switch_embedder(self, target: str) -> bool:
        """Puts the vectors of the next embedder in place, all in one transaction; False, and nothing, if a memory has
        none yet. For the start: who has loaded a namespace hears nothing of it."""
        return self._writer.submit(lambda db: Done(reembedded.switch(db, target)), durable=True)

    def renew_embeddings(self, embedder: str, rows: Sequence[reembedded.Embedded]) -> int:
        """Replaces vectors that are not what the store's own embedder gives. Returns how many."""
        return self._writer.submit(lambda db: reembedded.renew(db, embedder, rows), durable=True)

    def set_agent_sessions(self, sessions: int) -> None:
        """Sets how many sessions of a memory one agent weighs at most. If that is new, all namespaces move on. For the
        start: who has loaded a namespace hears nothing of it."""

        def work(db: Connection) -> Done[None]:
            if meta.agent_sessions(db) != sessions:
                meta.put_agent_sessions(db, sessions)
                _move_all_on(db)
            return Done(None)

        self._writer.submit(work, durable=True)

    def set_ranking(self, identity: str) -> None:
        """Says what ranks from now on: weights, features, settings. If that is new, all namespaces move on, so that no
        packet of before looks fresh. For the start, as above."""

        def work(db: Connection) -> Done[None]:
            if meta.get(db, meta.RANKING) != identity.encode():
                meta.put(db, meta.RANKING, identity.encode())
                _move_all_on(db)
            return Done(None)

        self._writer.submit(work, durable=True)

    def use_priors(self) -> dict[str, tuple[float, float]]:
        """(mu, kappa) of the use rate by kind, as the last rescore left them; empty before the first."""
        with self._readers.snapshot() as db:
            return meta.use_priors(db)

    def inferred_precision(self) -> tuple[int, int]:
        """How many inferred uses explicit reports had confirmed and refuted at the last rescore."""
        with self._readers.snapshot() as db:
            return meta.inferred_precision(db)

    def set_use_priors(self, run: str, priors: Mapping[str, tuple[float, float]]) -> None:
        """Replaces (mu, kappa) of every kind by those of a rescore run."""

        def work(db: Connection) -> Done[None]:
            meta.put_use_priors(db, run, priors)
            return Done(None)

        self._writer.submit(work, durable=True)


def _move_all_on(db: Connection) -> None:
    for namespace in snapshots.all_namespaces(db):
        memories.bump(db, namespace)
