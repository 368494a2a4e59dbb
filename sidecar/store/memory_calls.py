"""What the store does for memories and the namespaces that they are in; see `sidecar.store.store`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from sidecar.domain import (
    Memory,
    Micros,
    NamespaceState,
    Rating,
    WriteOutcome,
)
from sidecar.store import (
    indexes,
    ingested,
    memories,
    ratings,
    snapshots,
)
from sidecar.store.index_calls import IndexCalls
from sidecar.store.requests import Once, Replayed, once_only
from sidecar.store.snapshots import NamespaceSummary


class MemoryCalls(IndexCalls):
    """Writes and reads memories."""

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
            namespace, once, now, lambda db: ratings.rate(db, namespace, memory_id, rater, rating, reason, now)
        )
        return self._writer.submit(work, durable=True)

    def get(self, namespace: str, memory_id: str) -> Memory:
        """One memory. Raises MemoryNotFoundError."""
        with self._readers.snapshot() as db:
            return memories.get(db, namespace, memory_id)

    def get_many(self, namespace: str, memory_ids: Sequence[str]) -> dict[str, Memory]:
        """Those of the memories that are there, by id, all as of one moment."""
        with self._readers.snapshot() as db:
            found = {memory.id: memory for memory in memories.find_all(db, namespace, memory_ids)}
        return {memory_id: found[memory_id] for memory_id in memory_ids if memory_id in found}

    def read(self, keys: Sequence[int]) -> list[Memory]:
        """Those of the memories of these keys that are there, without their vectors."""
        with self._readers.snapshot() as db:
            return indexes.read(db, keys)

    def list_memories(self, namespace: str, after: str, limit: int) -> list[Memory]:
        """At most `limit` memories whose ids follow `after`, in the order of their ids' UTF-8 bytes."""
        with self._readers.snapshot() as db:
            return snapshots.list_memories(db, namespace, after, limit)

    def load(self, namespace: str) -> NamespaceState:
        """Everything of a namespace that ranking needs, as of one moment; of an unknown one, nothing."""
        with self._counted_snapshot() as db:
            rows = snapshots.read_state(db, namespace)
        return snapshots.build_state(namespace, rows)

    def namespace(self, namespace: str) -> NamespaceSummary:
        """How a namespace stands; zeros for one that is not there."""
        with self._counted_snapshot() as db:
            return snapshots.summary(db, namespace)

    def list_namespaces(self, after: str, limit: int) -> list[NamespaceSummary]:
        """At most `limit` namespaces whose names follow `after`, in the order of their UTF-8 bytes."""
        with self._counted_snapshot() as db:
            return snapshots.list_namespaces(db, after, limit)
