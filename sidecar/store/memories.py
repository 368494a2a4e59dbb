"""Writes and reads memories. Every function works inside the transaction of the connection that it is given."""

from __future__ import annotations

import hashlib
import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from itertools import groupby
from typing import Any

from sidecar.domain import Change, Memory, Micros, ScoredContent, WriteOutcome
from sidecar.errors import FieldViolation, InvalidRequestError, MemoryNotFoundError
from sidecar.store import importance, importance_links, meta
from sidecar.store.importance_links import IDS_AT_ONCE
from sidecar.store.jobs import Done
from sidecar.store.rows import (
    INSERT_KEYED,
    INSERT_MEMORY,
    MOST_TOGETHER,
    SELECT_MEMORY,
    UPDATE_MEMORY,
    UPDATE_TIME,
    Row,
    from_row,
    insert_rows,
    to_row,
)

OF_A_MEMORY = (
    *("ratings", "session_uses", "agent_uses", "rescored", "pruned_uses", "reembedded"),
    *("importance_parts", "importance_links"),
)
"""Tables whose rows go with their memory."""

_LAST_KEY = (
    "SELECT MAX(COALESCE((SELECT seq FROM sqlite_sequence WHERE name = 'memories'), 0),"
    " COALESCE((SELECT MAX(memory_key) FROM memories), 0))"
)
"""What SQLite itself goes by for the next one."""

Patch = tuple[str, Mapping[str, Any]]
"""A memory's id and the fields of `domain.Memory` that are set."""


@dataclass(frozen=True, slots=True)
class Derived:
    """Fields that follow from a content, such as its vector: worked out before the write, when nobody knows yet which
    content will stand by then.

    A patch with a content takes them if that content is new to the memory; one without takes them if the memory's
    content still is the one that they follow from. So no two writers mix what belongs to two contents, and none undoes
    what the other wrote. What the patch itself sets goes first.
    """

    content: str
    fields: Mapping[str, Any]
    importance: ScoredContent | None = None
    """What the content is worth; None where it is scored later, or not at all."""

    def added_to(self, patch: Mapping[str, Any], old: Memory | None) -> Mapping[str, Any]:
        """The patch, with the derived fields where they apply. `old` is the memory as it stands in the store."""
        stands = old is not None and old.content == self.content
        return {**self.fields, **patch} if ("content" in patch) != stands else patch


def window_violation(path: str, old: Memory, fields: Mapping[str, Any]) -> FieldViolation | None:
    """What is wrong with a patch that leaves a memory which could never be served, valid until before it is valid; a
    patch that sets neither time is not asked. `path` is that of the memory in the request."""
    given = "valid_until_time" if "valid_until_time" in fields else "valid_from_time"
    new = replace(old, **fields)
    start, end = new.valid_from_time, new.valid_until_time
    if given not in fields or start is None or end is None or start < end:
        return None
    words = f"is at or before the memory's valid_from_time, {_shown(start)}, so it would never be served"
    if given == "valid_from_time":
        words = f"is at or after the memory's valid_until_time, {_shown(end)}, so it would never be served"
    return FieldViolation(f"{path}.{given}", f"{words}; send both, or one that fits")


def _shown(time: Micros) -> str:
    return (datetime.fromtimestamp(0, UTC) + timedelta(microseconds=time)).isoformat()


def upsert(
    connection: sqlite3.Connection,
    namespace: str,
    patches: Sequence[Patch],
    now: Micros,
    derived: Mapping[str, Derived],
) -> Done[tuple[list[tuple[WriteOutcome, Memory]], int]]:
    """Writes memories, new or over old ones; what a patch leaves out keeps its value, or takes the default.

    `derived` is by memory id. Returns each outcome with the memory as it is now, and the score version after it. Raises
    InvalidRequestError as `window_violation` says, if another writer was faster than the caller's own check.
    """
    results: list[tuple[WriteOutcome, Memory]] = []
    changed: dict[int, Memory] = {}
    replaced: list[Memory] = []
    created = 0
    anew: set[int] = set()
    together: set[int] = set()
    before = score_version(connection, namespace)
    there = _there(connection, namespace, [memory_id for memory_id, _ in patches])

    def is_plain(patch: Patch) -> bool:
        """True for a memory that is new, and scored later."""
        known, found = patch[0] in there, derived.get(patch[0])
        there.add(patch[0])
        return not known and (found is None or found.importance is None)

    for are_plain, some in groupby(patches, is_plain):
        if are_plain:
            memories, others = _insert_all(connection, namespace, list(some), now, derived)
            created += len(memories)
            changed.update((memory.key, memory) for memory in memories)
            anew.update(others)
            results += [(WriteOutcome.CREATED, memory) for memory in memories]
            continue
        for memory_id, fields in some:
            # One that is there is read when it is its turn: what was written before it may have put it up.
            old = find(connection, namespace, memory_id)
            outcome, memory, others = _write(
                connection, namespace, memory_id, old, fields, now, derived.get(memory_id), before, together
            )
            created += outcome is WriteOutcome.CREATED
            if old is not None and outcome is WriteOutcome.UPDATED:
                replaced.append(old)
            if outcome is not WriteOutcome.UNCHANGED:
                changed[memory.key] = memory
            anew.update(others)
            results.append((outcome, memory))
    if not changed:
        return Done((results, score_version(connection, namespace)))
    for key in anew & changed.keys():  # one of this call that another one of it puts up
        changed[key] = get(connection, namespace, changed[key].id)
    version = bump(connection, namespace, created=created, write_time=now)
    change = Change(
        namespace,
        version,
        upserted=tuple(changed.values()),
        replaced=tuple(replaced),
        importance_contents=dict.fromkeys(anew - changed.keys()),
    )
    return Done((results, version), change, erased=bool(replaced))


def update(
    connection: sqlite3.Connection,
    namespace: str,
    memory_id: str,
    fields: Mapping[str, Any],
    now: Micros,
    derived: Derived | None,
) -> Done[tuple[Memory, int]]:
    """Changes the given fields of one memory. Returns it with the score version after it.

    Raises MemoryNotFoundError, and InvalidRequestError as `window_violation` says.
    """
    old = get(connection, namespace, memory_id)
    before = score_version(connection, namespace)
    outcome, memory, anew = _write(connection, namespace, memory_id, old, fields, now, derived, before, set())
    if outcome is WriteOutcome.UNCHANGED:
        return Done((memory, score_version(connection, namespace)))
    version = bump(connection, namespace, write_time=now)
    change = Change(
        namespace,
        version,
        upserted=(memory,),
        replaced=(old,),
        importance_contents=dict.fromkeys(anew),
    )
    return Done((memory, version), change, erased=True)


def delete(
    connection: sqlite3.Connection, namespace: str, memory_ids: Sequence[str], now: Micros
) -> Done[tuple[dict[str, bool], int]]:
    """Deletes memories with all that hangs on them, but for the log. Returns which were there, and the score version.

    Reports on them stay as history, and count for nothing that is alive.
    """
    found: dict[str, bool] = {}
    gone: list[Memory] = []
    for memory_id in memory_ids:
        memory = find(connection, namespace, memory_id)
        found[memory_id] = memory is not None or found.get(memory_id, False)
        if memory is not None:
            connection.execute("DELETE FROM memories WHERE memory_key = ?", (memory.key,))
            gone.append(memory)
    keys = [memory.key for memory in gone]
    for key in keys:
        for table in OF_A_MEMORY:
            connection.execute(f"DELETE FROM {table} WHERE memory_key = ?", (key,))
    if not keys:
        return Done((found, score_version(connection, namespace)))
    anew = {
        key
        for memory in gone
        for key in importance_links.put_up(connection, importance_links.followers(connection, namespace, [memory.id]))
    } - set(keys)
    version = bump(connection, namespace, created=-len(keys), write_time=now)
    change = Change(
        namespace,
        version,
        deleted_keys=tuple(keys),
        replaced=tuple(gone),
        importance_contents=dict.fromkeys(anew),
    )
    return Done((found, version), change, erased=True)


def purge(connection: sqlite3.Connection, namespace: str) -> Done[tuple[int, int]]:
    """Removes a namespace with everything in it, its log too. Returns how many memories and packets there were."""
    of_memories = "memory_key IN (SELECT memory_key FROM memories WHERE namespace = ?)"
    for table in OF_A_MEMORY:
        connection.execute(f"DELETE FROM {table} WHERE {of_memories}", (namespace,))
    for table in ("rescore_versions", "rescore_runs", "pruned_sessions"):
        connection.execute(f"DELETE FROM {table} WHERE namespace = ?", (namespace,))
    of_packets = "packet_key IN (SELECT packet_key FROM packets WHERE namespace = ?)"
    of_reports = "report_key IN (SELECT report_key FROM reports WHERE namespace = ?)"
    connection.execute(f"DELETE FROM exposures WHERE {of_packets}", (namespace,))
    connection.execute(f"DELETE FROM packet_uses WHERE {of_packets}", (namespace,))
    connection.execute(f"DELETE FROM uncounted_packets WHERE {of_packets}", (namespace,))
    connection.execute(f"DELETE FROM report_memories WHERE {of_reports}", (namespace,))
    connection.execute("DELETE FROM reports WHERE namespace = ?", (namespace,))
    for table in ("requests", "ingested_chunks"):
        connection.execute(f"DELETE FROM {table} WHERE namespace = ?", (namespace,))
    packets = connection.execute("DELETE FROM packets WHERE namespace = ?", (namespace,)).rowcount
    memories = connection.execute("DELETE FROM memories WHERE namespace = ?", (namespace,)).rowcount
    known = connection.execute("SELECT 1 FROM namespaces WHERE namespace = ?", (namespace,)).fetchone()
    if known is None:
        return Done((memories, packets), erased=packets > 0)
    version = bump(connection, namespace)
    connection.execute("DELETE FROM namespaces WHERE namespace = ?", (namespace,))
    connection.execute(
        "INSERT OR REPLACE INTO purged_namespaces (namespace_hash, score_version) VALUES (?, ?)",
        (_hash(connection, namespace), version),
    )
    return Done((memories, packets), Change(namespace, version, purged=True), erased=True)


def find(connection: sqlite3.Connection, namespace: str, memory_id: str) -> Memory | None:
    """The memory, if it is there."""
    row = connection.execute(
        f"{SELECT_MEMORY} WHERE namespace = ? AND memory_id = ?", (namespace, memory_id)
    ).fetchone()
    return None if row is None else from_row(row)


def find_all(connection: sqlite3.Connection, namespace: str, memory_ids: Sequence[str]) -> list[Memory]:
    """Those of the memories that are there."""
    return [from_row(row) for row in _of_ids(connection, SELECT_MEMORY, namespace, memory_ids)]


def _there(connection: sqlite3.Connection, namespace: str, memory_ids: Sequence[str]) -> set[str]:
    return {row[0] for row in _of_ids(connection, "SELECT memory_id FROM memories", namespace, memory_ids)}


def _of_ids(
    connection: sqlite3.Connection, select: str, namespace: str, memory_ids: Sequence[str]
) -> Iterator[tuple[Any, ...]]:
    for first in range(0, len(memory_ids), IDS_AT_ONCE):
        ids = memory_ids[first : first + IDS_AT_ONCE]
        among = ", ".join("?" * len(ids))
        yield from connection.execute(f"{select} WHERE namespace = ? AND memory_id IN ({among})", (namespace, *ids))


def get(connection: sqlite3.Connection, namespace: str, memory_id: str) -> Memory:
    """The memory. Raises MemoryNotFoundError."""
    memory = find(connection, namespace, memory_id)
    if memory is None:
        raise MemoryNotFoundError(f"memory_id: no memory {memory_id!r} in namespace {namespace!r}")
    return memory


def score_version(connection: sqlite3.Connection, namespace: str) -> int:
    """The namespace's score version; if it was never written to, the one it will count from."""
    row = connection.execute("SELECT score_version FROM namespaces WHERE namespace = ?", (namespace,)).fetchone()
    if row is None:
        row = connection.execute(
            "SELECT score_version FROM purged_namespaces WHERE namespace_hash = ?", (_hash(connection, namespace),)
        ).fetchone()
    return int(meta.get(connection, meta.FIRST_SCORE_VERSION) or 0) if row is None else int(row[0])


def bump(connection: sqlite3.Connection, namespace: str, *, created: int = 0, write_time: Micros | None = None) -> int:
    """Moves the namespace to its next score version and returns it. `created` memories are new (or gone, below 0)."""
    row = connection.execute(
        "UPDATE namespaces SET score_version = score_version + 1, memory_count = memory_count + ?,"
        " update_time = COALESCE(?, update_time) WHERE namespace = ? RETURNING score_version",
        (created, write_time, namespace),
    ).fetchone()
    if row is not None:
        return int(row[0])
    version = score_version(connection, namespace) + 1
    connection.execute(
        "INSERT INTO namespaces (namespace, score_version, memory_count, update_time) VALUES (?, ?, ?, ?)",
        (namespace, version, created, write_time or 0),
    )
    return version


def _write(
    connection: sqlite3.Connection,
    namespace: str,
    memory_id: str,
    old: Memory | None,
    fields: Mapping[str, Any],
    now: Micros,
    derived: Derived | None,
    score_version: int,
    together: set[int],
) -> tuple[WriteOutcome, Memory, list[int]]:
    """Writes one memory with all that follows from it. Returns also the keys of memories that are to be scored anew.
    `score_version` is the namespace's before the call that the write is of, `together` the keys of what it has written
    with a score, to which this one comes."""
    scored = derived.importance if derived else None
    fields = derived.added_to(fields, old) if derived else fields
    fields, taken = importance.settled(connection, namespace, fields, old, scored, score_version)
    if old is None:
        outcome, memory = WriteOutcome.CREATED, _insert(connection, namespace, memory_id, fields, now)
    else:
        outcome, memory = _overwrite(connection, old, fields, now)
    if outcome is WriteOutcome.UNCHANGED:
        return outcome, memory, []
    anew = importance.follow(connection, namespace, old, memory, taken, now, together)
    if taken is not None:
        together.add(memory.key)
    return outcome, memory, anew


def _insert(
    connection: sqlite3.Connection, namespace: str, memory_id: str, fields: Mapping[str, Any], now: Micros
) -> Memory:
    memory = Memory(id=memory_id, **{"create_time": now, "update_time": now, **fields})
    row = to_row(memory)
    key = connection.execute(INSERT_MEMORY, (*row, namespace)).lastrowid
    # As it will be read, so that who hears of it now and who reads it later know the same memory.
    return from_row((*row, key))


def _insert_all(
    connection: sqlite3.Connection,
    namespace: str,
    patches: Sequence[Patch],
    now: Micros,
    derived: Mapping[str, Derived],
) -> tuple[list[Memory], list[int]]:
    """Writes new memories without scores, many in one statement: between two statements another thread may take its
    turn. Returns them with the keys of memories that are to be scored anew."""
    (last,) = connection.execute(_LAST_KEY).fetchone()
    rows: list[Row] = []
    for key, (memory_id, fields) in enumerate(patches, last + 1):
        given = derived[memory_id].added_to(fields, None) if memory_id in derived else fields
        memory = Memory(id=memory_id, **{"create_time": now, "update_time": now, **given})
        rows.append((*to_row(memory), key))
    for first in range(0, len(rows), MOST_TOGETHER):
        insert_rows(connection, INSERT_KEYED, [(*row, namespace) for row in rows[first : first + MOST_TOGETHER]])
    memories = list(map(from_row, rows))
    return memories, importance.follow_new(connection, namespace, memories, now)


def _overwrite(
    connection: sqlite3.Connection, old: Memory, fields: Mapping[str, Any], now: Micros
) -> tuple[WriteOutcome, Memory]:
    if wrong := window_violation("memory", old, fields):
        raise InvalidRequestError([wrong])
    row = to_row(replace(old, **fields))
    if row == to_row(old):
        return WriteOutcome.UNCHANGED, old
    row = (*row[:UPDATE_TIME], now, *row[UPDATE_TIME + 1 :])
    connection.execute(UPDATE_MEMORY, (*row, old.key))
    if fields.get("content", old.content) != old.content:
        connection.execute("DELETE FROM reembedded WHERE memory_key = ?", (old.key,))
    return WriteOutcome.UPDATED, from_row((*row, old.key))


def _hash(connection: sqlite3.Connection, namespace: str) -> bytes:
    return hashlib.blake2b(namespace.encode(), key=meta.get(connection, meta.SALT) or b"", digest_size=16).digest()
