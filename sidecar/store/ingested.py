"""Streams of memories: which chunks were taken in and what became of them, kept in the transaction that wrote them.

So a stream that broke off goes on where it stood, whoever broke: a chunk that is sent again is known by its number and
its digest, and answered with what it came to at first. No row holds the text of a memory.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from sidecar.domain import DAY, Micros, WriteOutcome
from sidecar.errors import FieldViolation, InvalidRequestError, StreamIdReusedError
from sidecar.store import memories
from sidecar.store.jobs import Done
from sidecar.store.memories import Derived, Patch

KEPT_FOR: Micros = DAY
"""How long a stream can be resumed after its last chunk."""

_FORGET_AT_ONCE = 16
"""Old rows that one chunk removes: more than it adds, and never so many that others wait."""


@dataclass(frozen=True, slots=True)
class Chunk:
    """A piece of a stream. `digest` is of the memories as they were sent."""

    stream_id: str
    sequence: int
    digest: bytes


@dataclass(frozen=True, slots=True)
class ChunkOutcome:
    """What became of a chunk; all chunks up to `acknowledged_sequence` are taken in."""

    acknowledged_sequence: int
    created: int = 0
    updated: int = 0
    unchanged: int = 0
    score_version: int = 0


def acknowledged(connection: sqlite3.Connection, namespace: str, stream_id: str, now: Micros) -> int:
    """The last chunk of a stream that was taken in, 0 for a stream that is not known."""
    (last,) = connection.execute(
        "SELECT MAX(sequence) FROM ingested_chunks WHERE namespace = ? AND stream_id = ? AND create_time > ?",
        (namespace, stream_id, now - KEPT_FOR),
    ).fetchone()
    return last or 0


def known(connection: sqlite3.Connection, namespace: str, chunk: Chunk, now: Micros) -> ChunkOutcome | None:
    """What became of a chunk that was taken in before; None if it is the next one.

    Raises StreamIdReusedError if other memories were sent under its number, InvalidRequestError if one is missing
    before it.
    """
    last = acknowledged(connection, namespace, chunk.stream_id, now)
    if chunk.sequence == last + 1:
        return None
    if chunk.sequence > last:
        words = f"is {chunk.sequence}; must be {last + 1}, the next one of stream {chunk.stream_id!r}, or a lower one"
        raise InvalidRequestError([FieldViolation("sequence", words)])
    row = connection.execute(
        "SELECT digest, created_count, updated_count, unchanged_count, score_version FROM ingested_chunks"
        " WHERE namespace = ? AND stream_id = ? AND sequence = ?",
        (namespace, chunk.stream_id, chunk.sequence),
    ).fetchone()
    if row is None:  # of a stream that has run for longer than rows are kept
        return ChunkOutcome(last)
    if row[0] != chunk.digest:
        raise StreamIdReusedError(
            f"stream_id: chunk {chunk.sequence} of stream {chunk.stream_id!r} was sent before with other memories; send"
            " the same ones in the same chunks to resume it, or take a new stream_id"
        )
    return ChunkOutcome(last, *row[1:])


def take(
    connection: sqlite3.Connection,
    namespace: str,
    chunk: Chunk,
    patches: Sequence[Patch],
    now: Micros,
    derived: Mapping[str, Derived],
) -> Done[ChunkOutcome]:
    """Writes the memories of a chunk and notes that it was taken in; one that was taken in before changes nothing.

    Raises as `known` does.
    """
    before = known(connection, namespace, chunk, now)
    if before is not None:
        return Done(before)
    done = memories.upsert(connection, namespace, patches, now, derived)
    written, score_version = done.value
    outcomes = [outcome for outcome, _ in written]
    outcome = ChunkOutcome(
        chunk.sequence,
        created=outcomes.count(WriteOutcome.CREATED),
        updated=outcomes.count(WriteOutcome.UPDATED),
        unchanged=outcomes.count(WriteOutcome.UNCHANGED),
        score_version=score_version,
    )
    connection.execute(
        "INSERT OR REPLACE INTO ingested_chunks (namespace, stream_id, sequence, digest, create_time, created_count,"
        " updated_count, unchanged_count, score_version) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
        (
            *(namespace, chunk.stream_id, chunk.sequence, chunk.digest, now),
            *(outcome.created, outcome.updated, outcome.unchanged, score_version),
        ),
    )
    connection.execute(
        "DELETE FROM ingested_chunks WHERE (namespace, stream_id, sequence) IN (SELECT namespace, stream_id, sequence"
        " FROM ingested_chunks WHERE create_time <= ? ORDER BY create_time LIMIT ?)",
        (now - KEPT_FOR, _FORGET_AT_ONCE),
    )
    return Done(outcome, done.change, done.erased)
