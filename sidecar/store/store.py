"""The store as the rest of the program sees it: one folder, one writer, many readers, safe for any thread.

Memory writes, reports and ratings are on the disk itself when a call returns; a packet is committed, so that it
survives the process. `now` is the caller's clock in microseconds. With a `once`, a call that had been answered within
24 hours returns Replayed and does nothing.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from sqlite3 import Connection
from types import TracebackType
from typing import Any

from sidecar.domain import (
    Change,
    Memory,
    Micros,
    NamespaceState,
    Packet,
    Rating,
    UseCounts,
    UseReport,
    WriteOutcome,
)
from sidecar.errors import OverloadedError, StoreUnavailableError
from sidecar.store import (
    audit,
    indexes,
    ingested,
    log,
    memories,
    meta,
    models,
    packets,
    prune,
    reembedded,
    reports,
    requests,
    rescores,
    snapshots,
    tally,
)
from sidecar.store.audit_sql import Scope
from sidecar.store.backup import Backup
from sidecar.store.backup import write as write_backup
from sidecar.store.checkpoints import Limits
from sidecar.store.files import sync_file
from sidecar.store.index_calls import IndexCalls
from sidecar.store.opening import Opened, open_files
from sidecar.store.readers import Readers
from sidecar.store.reports import LoggedPacket, ReportedPacket, ReportOutcome
from sidecar.store.requests import Once, Replayed, once_only
from sidecar.store.snapshots import NamespaceNumbers, NamespaceSummary, StoreNumbers
from sidecar.store.writer import Done, Writer
from sidecar.weights.roles import RoleEvent

SETTLE_SECONDS = 10.0
"""How long `settle` tries while readers are in the way."""


class Store(IndexCalls):
    """Everything that outlives the process."""

    def __init__(self, opened: Opened, sync: Callable[[int], None]) -> None:
        """Use `Store.open`."""
        self.folder = opened.files.folder
        self.salt = opened.salt
        """32 random bytes, the secret of the draws for reserved slots."""
        self.schema_version = opened.schema_version
        self._closed = False
        self._backing_up = threading.Lock()
        self._opened = opened
        self._readers = Readers(opened.files.database)
        self._writer = Writer(
            opened.connection, opened.checkpoints, lambda: sync(opened.wal), opened.max_pages, indexes.note
        )

    @classmethod
    def open(
        cls,
        folder: Path,
        *,
        quota_bytes: int | None = None,
        limits: Limits | None = None,
        sync: Callable[[int], None] = sync_file,
    ) -> Store:
        """Opens the store in `folder`, which is created if it is missing, and recovers from a kill.

        `quota_bytes` bounds the database with its log; above it growing writes raise StoreFullError. `sync` puts an
        open file on the disk, or raises OSError.

        Raises StoreLockedError, SchemaTooNewError, StoreDamagedError, StoreFullError or StoreUnavailableError.
        """
        return cls(open_files(folder, quota_bytes, limits or Limits(), sync), sync)

    def close(self) -> None:
        """Finishes what waits, checkpoints and releases the folder. Calls after it raise StoreUnavailableError."""
        if self._closed:
            return
        self._closed = True
        self._readers.close()
        self._writer.close()
        self._opened.close_files()

    def __enter__(self) -> Store:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def subscribe(self, callback: Callable[[Change], None]) -> None:
        """Calls back on the writer thread after each commit that moved a score version, before its caller is answered.

        Changes of a namespace come in the order of score_version, which grows by one each; who sees a gap loads anew.
        A callback must not write to the store: it would wait for itself.
        """
        self._writer.subscribe(callback)

    def forewarn(self, callback: Callable[[Sequence[Memory]], None]) -> None:
        """Calls back on the writer thread before each commit that deletes or rewrites memories, with how they stood. A
        purge says nothing. A callback must not write to the store."""
        self._writer.forewarn(callback)

    def settle(self) -> None:
        """Returns once all of the log is in the database and deleted text is in no file.

        Raises StoreUnavailableError if a reader or the disk stays in the way.
        """
        deadline = time.monotonic() + SETTLE_SECONDS
        while not self._writer.settle():
            if time.monotonic() > deadline:
                raise StoreUnavailableError(
                    f"the log of the store in {self.folder} could not be moved into the database within"
                    f" {SETTLE_SECONDS:.0f} s; a long read or the disk is in the way, see the server's log"
                )
            time.sleep(0.01)

    def backup(self, folder: Path, now: Micros, is_cancelled: Callable[[], bool] = lambda: False) -> Backup:
        """Copies the store into `folder`, which must not exist or be empty, while everything else goes on.

        Raises InvalidRequestError, BackupFailedError, DeadlineExceededError once `is_cancelled`, and OverloadedError
        while another backup is made.
        """
        if self._closed:
            raise StoreUnavailableError("the store is closed; the server is shutting down")
        if not self._backing_up.acquire(blocking=False):
            raise OverloadedError("another backup is being made; try again when it is done")
        try:
            return write_backup(self._opened.files.database, folder, now, is_cancelled)
        finally:
            self._backing_up.release()

    # Memories

    def upsert(
        self,
        namespace: str,
        patches: Sequence[memories.Patch],
        now: Micros,
        once: Once | None = None,
        derived: Mapping[str, memories.Derived] | None = None,
    ) -> tuple[list[tuple[WriteOutcome, Memory]], int] | Replayed:
        """Writes memories: (id, fields by the names of `domain.Memory`), where fields that are left out keep their
        value, or take the default on a new memory (create_time: `now`). `derived` has, by memory id, what follows from
        a content.

        Returns each outcome with the memory as it is now, and the namespace's score version after it.
        """
        return self._writer.submit(
            once_only(namespace, once, now, lambda db: memories.upsert(db, namespace, patches, now, derived or {})),
            durable=True,
        )

    def ingest(
        self,
        namespace: str,
        chunk: ingested.Chunk,
        patches: Sequence[memories.Patch],
        now: Micros,
        derived: Mapping[str, memories.Derived],
    ) -> ingested.ChunkOutcome:
        """Writes the memories of one chunk of a stream, as `upsert` does, at most once.

        Raises StreamIdReusedError, or InvalidRequestError if a chunk is missing before it.
        """
        work = partial(ingested.take, namespace=namespace, chunk=chunk, patches=patches, now=now, derived=derived)
        return self._writer.submit(work, durable=True)

    def ingested(self, namespace: str, chunk: ingested.Chunk, now: Micros) -> ingested.ChunkOutcome | None:
        """What became of a chunk that was taken in before; None if it is the next of its stream. Raises as `ingest`."""
        with self._readers.snapshot() as db:
            return ingested.known(db, namespace, chunk, now)

    def acknowledged(self, namespace: str, stream_id: str, now: Micros) -> int:
        """The last chunk of a stream that was taken in, 0 for a stream that is not known or not kept any more."""
        with self._readers.snapshot() as db:
            return ingested.acknowledged(db, namespace, stream_id, now)

    def update(
        self,
        namespace: str,
        memory_id: str,
        fields: Mapping[str, Any],
        now: Micros,
        once: Once | None = None,
        derived: memories.Derived | None = None,
    ) -> tuple[Memory, int] | Replayed:
        """Sets fields of one memory, with those `derived` from its content. Returns it with the score version after it.

        Raises MemoryNotFoundError.
        """
        work = once_only(
            namespace, once, now, lambda db: memories.update(db, namespace, memory_id, fields, now, derived)
        )
        return self._writer.submit(work, durable=True)

    def delete(
        self, namespace: str, memory_ids: Sequence[str], now: Micros, once: Once | None = None
    ) -> tuple[dict[str, bool], int] | Replayed:
        """Deletes memories. Returns which of them were there, and the score version after it.

        Their text is in no file within 30 seconds.
        """
        return self._writer.submit(
            once_only(namespace, once, now, lambda db: memories.delete(db, namespace, memory_ids, now)),
            durable=True,
            frees=True,
        )

    def purge_namespace(self, namespace: str) -> tuple[int, int]:
        """Removes a namespace with memories, packets and reports. Returns how many memories and packets there were."""
        counts = self._writer.submit(lambda db: memories.purge(db, namespace), durable=True, frees=True)
        self.sweep_indexes()
        return counts

    def rate(
        self,
        namespace: str,
        memory_id: str,
        rater: str,
        rating: Rating,
        reason: str,
        now: Micros,
        once: Once | None = None,
    ) -> tuple[int, int, int] | Replayed:
        """Sets a rater's mark; the latest stands. Returns raters who say helpful and unhelpful, and the score version.

        Raises MemoryNotFoundError.
        """
        work = once_only(
            namespace, once, now, lambda db: memories.rate(db, namespace, memory_id, rater, rating, reason, now)
        )
        return self._writer.submit(work, durable=True)

    def get(self, namespace: str, memory_id: str) -> Memory:
        """One memory. Raises MemoryNotFoundError."""
        with self._readers.snapshot() as db:
            return memories.get(db, namespace, memory_id)

    def get_many(self, namespace: str, memory_ids: Sequence[str]) -> dict[str, Memory]:
        """Those of the memories that are there, by id, all as of one moment."""
        with self._readers.snapshot() as db:
            found = [memories.find(db, namespace, memory_id) for memory_id in memory_ids]
        return {memory.id: memory for memory in found if memory is not None}

    def read(self, keys: Sequence[int]) -> list[Memory]:
        """Those of the memories of these keys that are there, without their vectors."""
        with self._readers.snapshot() as db:
            return indexes.read(db, keys)

    def list_memories(self, namespace: str, after: str, limit: int) -> list[Memory]:
        """At most `limit` memories whose ids follow `after`, in the order of their ids' UTF-8 bytes."""
        with self._readers.snapshot() as db:
            return snapshots.list_memories(db, namespace, after, limit)

    # Namespaces

    def load(self, namespace: str) -> NamespaceState:
        """Everything of a namespace that ranking needs, as of one moment; of an unknown one, nothing."""
        with self._readers.snapshot() as db:
            rows = snapshots.read_state(db, namespace)
        return snapshots.build_state(namespace, rows)

    def namespace(self, namespace: str) -> NamespaceSummary:
        """How a namespace stands; zeros for one that is not there."""
        with self._readers.snapshot() as db:
            return snapshots.summary(db, namespace)

    def list_namespaces(self, after: str, limit: int) -> list[NamespaceSummary]:
        """At most `limit` namespaces whose names follow `after`, in the order of their UTF-8 bytes."""
        with self._readers.snapshot() as db:
            return snapshots.list_namespaces(db, after, limit)

    # The log

    def log_packet(self, packet: Packet, once: Once | None = None) -> Replayed | None:
        """Writes a packet down; it survives the process from then on. With a `once`, a retry logs nothing and is
        answered with the id of the first packet, as `once` encoded it."""
        rows = packets.to_rows(packet)

        def work(db: Connection) -> Done[str]:
            packets.insert(db, rows)
            return Done(packet.packet_id)

        logged = self._writer.submit(once_only(packet.namespace, once, packet.create_time, work), durable=False)
        return logged if isinstance(logged, Replayed) else None

    def get_packet(self, namespace: str | None, packet_id: str) -> LoggedPacket:
        """A packet as it was served, with what is known of its use. None means whosesoever.

        Raises PacketNotFoundError.
        """
        with self._readers.snapshot() as db:
            return reports.read_logged(db, namespace, packet_id)

    def recent_reserved(self, namespace: str, session_id: str, packets_back: int = 3) -> frozenset[int]:
        """Keys of the memories drawn for a reserved slot in the last packets of a session; none without a session."""
        if not session_id:
            return frozenset()
        with self._readers.snapshot() as db:
            return packets.recent_reserved(db, namespace, session_id, packets_back)

    def report(self, report: UseReport, now: Micros, once: Once | None = None) -> ReportOutcome | Replayed:
        """Takes a report of use in and counts it; `now` is when it arrived. The same words again change nothing.

        Raises PacketNotFoundError, also if the packet is not in the report's namespace.
        """

        def work(db: Connection) -> Done[ReportOutcome | Replayed]:
            packet = reports.find_packet(db, report)
            take = partial(_take_one, packet=packet, report=report, now=now)
            return once_only(packet.namespace, once, now, take)(db)

        return self._writer.submit(work, durable=True)

    def report_together(
        self, of_packet: Sequence[UseReport], now: Micros, once: Once | None = None
    ) -> list[ReportOutcome] | Replayed:
        """Takes several reports on one packet in, all or none. Raises as `report` does."""

        def work(db: Connection) -> Done[list[ReportOutcome] | Replayed]:
            packet = reports.find_packet(db, of_packet[0])
            return once_only(packet.namespace, once, now, lambda db: reports.take(db, packet, of_packet, now))(db)

        return self._writer.submit(work, durable=True)

    def log_rows(
        self, namespace: str, from_time: Micros | None = None, until_time: Micros | None = None
    ) -> Iterator[list[log.LogRow]]:
        """What a rescore learned, what memories have besides a caller's fields, then packets with their reports, page
        by page; each page is of one moment. Ratings and packets may be bounded to [from_time, until_time); then all
        that has no time is left out."""
        bounded = from_time is not None or until_time is not None
        if not bounded:
            with self._readers.snapshot() as db:
                rows = log.store_priors(db)
            yield rows
        after: int | None = 0
        while after is not None:
            with self._readers.snapshot() as db:
                rows, after = log.memory_states(db, namespace, after)
            yield [row for row in rows if not bounded or log.is_within(row, from_time, until_time)]
        after = 0
        while after is not None:
            with self._readers.snapshot() as db:
                rows, after = log.packets_with_reports(db, namespace, after, from_time, until_time)
            yield rows

    def take_log_rows(self, namespace: str, rows: Sequence[tuple[int, log.LogRow]]) -> log.LogOutcome:
        """Takes numbered rows into a namespace, in their order; what is there already stays as it is."""
        return self._writer.submit(lambda db: log.take(db, namespace, rows), durable=True)

    def use_counts_as_of(self, namespace: str, time: Micros) -> dict[int, UseCounts]:
        """What use said of a namespace's memories when only reports received by `time` were known, by memory key.

        Reads the whole feedback log of the namespace.
        """
        with self._readers.snapshot() as db:
            return tally.counts_as_of(db, namespace, time)

    # Rescores

    def feedback(self, namespace: str) -> rescores.Feedback:
        """What a rescore of a namespace goes by, or of all for ""."""
        with self._readers.snapshot() as db:
            return rescores.read(db, namespace)

    def apply_rescore(self, run: rescores.Run, now: Micros) -> int:
        """Writes a rescore's scores, all or none, beside those from before. Returns how many memories it moved."""
        return self._writer.submit(lambda db: rescores.apply(db, run, now), durable=True)

    def restore_scores(self, run_id: str, now: Micros) -> int:
        """Brings the scores from before a run back. Returns how many. Raises RunNotFoundError."""
        return self._writer.submit(lambda db: rescores.restore(db, run_id, now), durable=True)

    def audit(self, scope: Scope, min_reported_sessions: int) -> audit.AuditNumbers:
        """What an audit of a scope goes by. Reads its whole log."""
        with self._readers.snapshot() as db:
            return audit.read(db, scope, min_reported_sessions)

    def prune(
        self,
        namespace: str,
        older_than: Micros | None,
        max_bytes: int | None,
        keep_from: Micros,
        check: Callable[[], None],
        *,
        dry_run: bool = False,
    ) -> prune.Pruned:
        """Removes packets before `older_than`, and the oldest until the log has at most `max_bytes`; of a namespace, or
        of all for "". None from `keep_from` on. Other writes come between; `check` may raise, and what is done stays.
        """
        with self._readers.snapshot() as db:
            keys = prune.choose(db, namespace, older_than, max_bytes, keep_from)
            if dry_run:
                return prune.measure(db, keys)
        done = prune.Pruned()
        for start in range(0, len(keys), prune.AT_ONCE):
            check()
            some = keys[start : start + prune.AT_ONCE]
            done = done.plus(self._writer.submit(partial(prune.remove, keys=some), durable=True, frees=True))
        return done

    def log_growth(self, now: Micros) -> int:
        """About how many bytes a day the packet log grew by over the last seven days."""
        with self._readers.snapshot() as db:
            return prune.growth(db, now)

    # Models

    def place_model(
        self,
        model: tuple[models.ModelRow, bytes] | None,
        events: Sequence[RoleEvent],
        identity: bytes | None,
        on_commit: Callable[[], None],
    ) -> None:
        """Takes a model with its archive in and writes role events down, all or none. With `identity`, what ranks is
        another from then on, and all namespaces move on; see `set_ranking`. `on_commit` is called on the writer thread
        after the commit, before anyone hears of a new score version."""
        self._writer.submit(
            lambda db: replace(models.place(db, model, events, identity), after=on_commit), durable=True
        )

    def model_events(self) -> list[RoleEvent]:
        """Who had which role, oldest first."""
        with self._readers.snapshot() as db:
            return models.events(db)

    def list_models(self, before: int | None, limit: int) -> list[models.ModelRow]:
        """At most `limit` models that came in before number `before`, newest first."""
        with self._readers.snapshot() as db:
            return models.page(db, before, limit)

    def find_model(self, version: str) -> tuple[models.ModelRow, bytes] | None:
        """A model and its archive, None if there is none."""
        with self._readers.snapshot() as db:
            return models.find(db, version)

    # Facts about the whole

    def numbers(self) -> StoreNumbers:
        """The store in numbers."""
        with self._readers.snapshot() as db:
            return snapshots.store_numbers(db, sum(self._opened.files.sizes()))

    def problems(self) -> list[str]:
        """What keeps the store from being written to, in words with what to do."""
        return [problem] if (problem := self._writer.problem) else []

    def namespace_numbers(self, namespace: str) -> NamespaceNumbers:
        """A namespace in numbers; zeros for one that is not there."""
        with self._readers.snapshot() as db:
            return snapshots.namespace_numbers(db, namespace)

    def answered(self, namespace: str, once: Once, now: Micros) -> Replayed | None:
        """What this request was answered with within 24 hours. Raises RequestIdReusedError."""
        with self._readers.snapshot() as db:
            return requests.find(db, namespace, once, now)

    def meta(self, key: str) -> bytes | None:
        """A fact about the store by its key, None if it is not set."""
        with self._readers.snapshot() as db:
            return meta.get(db, key)

    def set_meta(self, facts: Mapping[str, bytes]) -> None:
        """Sets facts about the store, all or none."""

        def work(db: Connection) -> Done[None]:
            for key, value in facts.items():
                meta.put(db, key, value)
            return Done(None)

        self._writer.submit(work, durable=True)

    # Vectors of another embedder

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


def _take_one(connection: Connection, packet: ReportedPacket, report: UseReport, now: Micros) -> Done[ReportOutcome]:
    done = reports.take(connection, packet, [report], now)
    return Done(done.value[0], done.change, done.erased)


def _move_all_on(db: Connection) -> None:
    for namespace in snapshots.all_namespaces(db):
        memories.bump(db, namespace)
