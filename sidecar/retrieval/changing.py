"""From the contents of one score version to those of the next.

A new or rewritten memory takes a new row and the old row dies; what moves without touching a memory's text (uses,
ratings, pins, importance, validity) is written into a copied column. Dead rows are cleared out when they are many.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from sidecar.domain import Change, Memory, Micros, UseCounts
from sidecar.features.view import NO_TIME
from sidecar.retrieval import contents as names
from sidecar.retrieval import rows, vectors
from sidecar.retrieval.contents import Contents
from sidecar.retrieval.document import document_of, same_json
from sidecar.retrieval.lexical import InvertedIndex
from sidecar.retrieval.rows import Directory
from sidecar.retrieval.table import Array, Draft, Table

FEWEST_DEAD_ROWS = 64
SHARE_OF_DEAD_ROWS = 0.25
"""Dead rows are cleared out above this number and this share of all rows."""

QUESTION_MARKS = ("?", "\uff1f", "\u061f")
"""Latin, full-width, Arabic."""

_GONE = Memory(id="", content="")


def _time(value: Micros | None) -> Micros:
    return NO_TIME if value is None else value


def _number(value: float | None) -> float:
    return np.nan if value is None else value


_OF_MEMORY: Mapping[str, tuple[type[np.generic], Callable[[Memory], Any]]] = {
    "key": (np.int64, lambda m: m.key),
    "create_time": (np.int64, lambda m: m.create_time),
    "update_time": (np.int64, lambda m: m.update_time),
    "valid_from_time": (np.int64, lambda m: _time(m.valid_from_time)),
    "valid_until_time": (np.int64, lambda m: _time(m.valid_until_time)),
    "relevance": (np.float64, lambda m: m.relevance or 0.0),
    "emotion": (np.float64, lambda m: m.emotion or 0.0),
    "importance_content": (np.float64, lambda m: _number(m.importance_content)),
    "importance_use": (np.float64, lambda m: _number(m.importance_use)),
    "importance_override": (np.float64, lambda m: _number(m.importance_override)),
    "tokens": (np.int32, lambda m: m.tokens),
    "asks": (np.bool_, lambda m: m.content.rstrip().endswith(QUESTION_MARKS)),
    "pinned": (np.bool_, lambda m: m.pinned),
    "suppressed": (np.bool_, lambda m: m.suppressed),
    "helpful": (np.int32, lambda m: m.helpful),
    "unhelpful": (np.int32, lambda m: m.unhelpful),
}
_OF_USE: Mapping[str, tuple[type[np.generic], Callable[[UseCounts], Any]]] = {
    "used": (np.float64, lambda u: u.used),
    "seen": (np.float64, lambda u: u.seen),
    "use_sessions": (np.int32, lambda u: u.use_sessions),
    "reported_sessions": (np.int32, lambda u: u.reported_sessions),
    "last_use_time": (np.int64, lambda u: _time(u.last_use_time)),
}
_LINKS = ("previous_row", "next_row", names.REPLACEMENT, names.SUPERSEDING)
# A rewrite of any other field leaves the row where it is.
_FIXED = ("id", "key", "content", "subject", "tags", "source_thread", "source_sequence", "create_time", "superseded_by")


def empty(score_version: int = 0) -> Contents:
    """A namespace without memories."""
    arrays: dict[str, Array] = {
        name: np.empty(0, dtype) for name, (dtype, _) in (*_OF_MEMORY.items(), *_OF_USE.items())
    }
    arrays |= {name: np.empty(0, np.int32) for name in (*_LINKS, "kind")}
    arrays |= {name: np.empty(0) for name in (names.LENGTH, names.ALL_TERMS, names.INVERSE_LENGTH)}
    arrays["live"] = np.empty(0, np.bool_)
    arrays[names.VECTOR] = np.empty((0, 0), np.float32)
    table = Table.of(arrays, 0)
    return Contents.of(score_version, table, (), [], [], InvertedIndex(), InvertedIndex(), Directory())


def changed(before: Contents, change: Change) -> Contents:
    """The contents after a committed change. `before` stays as it is, whatever happens."""
    if change.purged:
        before = empty(change.score_version)
    if not before.table.is_newest:  # another change was made from these contents already
        before = compacted(before)
    writer = _Writer(before)
    deleted = set(change.deleted_keys)
    for key in change.deleted_keys:
        if (row := writer.row_of_key(key)) is not None:
            writer.kill(row)
    writer.put({memory.id: memory for memory in change.upserted if memory.key not in deleted})
    for key, counts in change.uses.items():
        if (row := writer.row_of_key(key)) is not None:
            writer.write(_OF_USE, row, counts)
    for key, (helpful, unhelpful) in change.ratings.items():
        if (row := writer.row_of_key(key)) is not None:
            writer.rewrite(row, replace(writer.memory_list[row], helpful=helpful, unhelpful=unhelpful))
    for key, use in change.importance_uses.items():
        if (row := writer.row_of_key(key)) is not None:
            writer.rewrite(row, replace(writer.memory_list[row], importance_use=use))
    after = writer.finish(change.score_version)
    dead = len(after) - after.live_count
    return compacted(after) if dead > max(FEWEST_DEAD_ROWS, SHARE_OF_DEAD_ROWS * len(after)) else after


def with_uses(before: Contents, uses: Mapping[int, UseCounts]) -> Contents:
    """The same contents with other use counts, by memory key; a memory without an entry was never used."""
    fresh = UseCounts()
    counts = [uses.get(key, fresh) for key in before.columns.key.tolist()]
    columns = {name: np.array([value(c) for c in counts], dtype) for name, (dtype, value) in _OF_USE.items()}
    return Contents.of(
        before.score_version,
        before.table.with_columns(columns),
        before.kinds,
        before.id_list,
        before.memory_list,
        before.terms,
        before.marks,
        before.directory,
    )


def compacted(before: Contents) -> Contents:
    """The same contents without dead rows, sharing nothing with others."""
    live = before.columns.live
    row_of = np.append(np.cumsum(live, dtype=np.int32) - 1, np.int32(-1))
    arrays = {name: before.table.column(name)[live] for name in before.table.arrays}
    for link in _LINKS:
        arrays[link] = row_of[arrays[link]]
    memories = [memory for memory, alive in zip(before.memories, live.tolist(), strict=True) if alive]
    return Contents.of(
        before.score_version,
        Table.of(arrays, len(memories)),
        before.kinds,
        [memory.id for memory in memories],
        memories,
        before.terms.compacted(live),
        before.marks.compacted(live),
        Directory.of(memories),
    )


class _Writer:
    """One change at work. Copies what it writes inside, appends the rest."""

    def __init__(self, before: Contents) -> None:
        self._before = before
        self._draft = Draft(before.table)
        self._kinds = dict.fromkeys(before.kinds)
        self._kind_codes = {kind: code for code, kind in enumerate(before.kinds)}
        self._relinked = False
        self.id_list = before.id_list
        self.memory_list = before.memory_list

    def row_of_key(self, key: int) -> int | None:
        row = self._before.directory.by_key.get(key)
        return row if row is not None and row < self._draft.rows and self._draft.column("live")[row] else None

    def kill(self, row: int) -> None:
        """Takes a row out: its text goes at once, its terms when dead rows are cleared out."""
        memory = self.memory_list[row]
        self._draft.writable("live")[row] = False
        if memory.source_thread:
            previous_row, next_row = self._draft.writable("previous_row"), self._draft.writable("next_row")
            self._before.directory.unlink_thread(row, memory, previous_row, next_row)
        self._point(self._before.directory.replaced_by(memory.id), -1)
        if self._draft.column(names.REPLACEMENT)[row] >= 0:
            self._point([row], -1)
        self._own_memories()[row] = _GONE

    def put(self, memories: Mapping[str, Memory]) -> None:
        """Writes memories by id: in place where the text stays, else as new rows."""
        new: list[Memory] = []
        uses: list[int | None] = []
        for memory in memories.values():
            row = self._before.directory.find(memory.id, self._draft.column("live"))
            if row is None:
                uses.append(None)
            elif self._has_same_text(row, memory):
                self.rewrite(row, memory)
                continue
            else:
                uses.append(row if self.memory_list[row].key == memory.key else None)
                self.kill(row)
            new.append(memory)
        if new:
            self._append(new, uses)

    def rewrite(self, row: int, memory: Memory) -> None:
        """Puts a memory of the same text into its row."""
        self.write(_OF_MEMORY, row, memory)
        self._set("kind", row, self._code(memory.kind))
        self._own_memories()[row] = replace(memory, embedding=None)

    def write(
        self, columns: Mapping[str, tuple[type[np.generic], Callable[[Any], Any]]], row: int, source: Any
    ) -> None:
        """Writes what `source` says into the row, where it differs."""
        for name, (_, value) in columns.items():
            self._set(name, row, value(source))

    def finish(self, score_version: int) -> Contents:
        if self._relinked:
            links = self._draft.column(names.REPLACEMENT)
            self._draft.writable(names.SUPERSEDING)[:] = rows.without_cycles(
                links, self._draft.column("create_time"), self.id_list
            )
        before = self._before
        return Contents.of(
            score_version,
            self._draft.finish(),
            tuple(self._kinds),
            self.id_list,
            self.memory_list,
            before.terms,
            before.marks,
            before.directory,
        )

    def _append(self, memories: Sequence[Memory], uses: Sequence[int | None]) -> None:
        before, draft, start = self._before, self._draft, self._draft.rows
        values: dict[str, Array] = {
            name: np.array([value(memory) for memory in memories], dtype) for name, (dtype, value) in _OF_MEMORY.items()
        }
        fresh = UseCounts()
        for name, (dtype, value) in _OF_USE.items():
            own = draft.column(name)
            values[name] = np.array([value(fresh) if row is None else own[row] for row in uses], dtype)
        values |= {link: np.full(len(memories), -1, np.int32) for link in _LINKS}
        values["kind"] = np.array([self._code(memory.kind) for memory in memories], np.int32)
        values["live"] = np.ones(len(memories), bool)
        values[names.VECTOR] = matrix = self._vectors(memories)
        values[names.INVERSE_LENGTH] = vectors.inverse_lengths(matrix)
        documents = [document_of(memory) for memory in memories]
        values[names.LENGTH] = np.array([document.length for document in documents], np.float64)
        values[names.ALL_TERMS] = np.array([sum(document.terms.values()) for document in documents], np.float64)
        before.terms.extend(start, [document.terms for document in documents])
        before.marks.extend(start, [document.marks for document in documents])
        draft.extend(values)
        self.memory_list.extend(replace(memory, embedding=None) for memory in memories)
        self.id_list.extend(memory.id for memory in memories)
        for row, memory in enumerate(memories, start):
            self._link(row, memory)

    def _link(self, row: int, memory: Memory) -> None:
        directory = self._before.directory
        directory.add(row, memory)
        if memory.source_thread:
            previous_row, next_row = self._draft.writable("previous_row"), self._draft.writable("next_row")
            directory.link_thread(row, memory, previous_row, next_row)
        if memory.superseded_by and memory.superseded_by != memory.id:
            replacing = directory.find(memory.superseded_by, self._draft.column("live"))
            self._point([row], -1 if replacing is None else replacing)
        live = self._draft.column("live")
        self._point([other for other in directory.replaced_by(memory.id) if live[other]], row)

    def _point(self, from_rows: Sequence[int], to_row: int) -> None:
        for row in from_rows:
            if self._draft.column(names.REPLACEMENT)[row] != to_row:
                self._draft.writable(names.REPLACEMENT)[row] = to_row
                self._relinked = True

    def _vectors(self, memories: Sequence[Memory]) -> vectors.Vectors:
        given = [memory.embedding for memory in memories]
        dimension = self._draft.column(names.VECTOR).shape[1]
        if not dimension and (first := next((vector for vector in given if vector is not None), None)) is not None:
            dimension = len(first)
            self._draft.replace(names.VECTOR, np.zeros((self._draft.rows, dimension), np.float32))
        matrix = np.zeros((len(memories), dimension), np.float32)
        for at, vector in enumerate(given):
            if vector is not None:
                if vector.shape != (dimension,):
                    raise ValueError(f"a vector of shape {vector.shape} among vectors of dimension {dimension}")
                matrix[at] = vector
        return vectors.snap(matrix)

    def _has_same_text(self, row: int, memory: Memory) -> bool:
        own = self.memory_list[row]
        if any(getattr(own, name) != getattr(memory, name) for name in _FIXED) or not same_json(
            own.metadata, memory.metadata
        ):
            return False
        vector = self._draft.column(names.VECTOR)[row]
        if memory.embedding is None:
            return not vector.any()
        return memory.embedding.shape == vector.shape and np.array_equal(vectors.snap(memory.embedding)[0], vector)

    def _code(self, kind: str) -> int:
        if kind not in self._kind_codes:
            self._kind_codes[kind] = len(self._kinds)
            self._kinds[kind] = None
        return self._kind_codes[kind]

    def _set(self, name: str, row: int, value: Any) -> None:
        held = self._draft.column(name)[row]
        if held != value and not (held != held and value != value):
            self._draft.writable(name)[row] = value

    def _own_memories(self) -> list[Memory]:
        if self.memory_list is self._before.memory_list:
            self.memory_list = self.memory_list[: self._draft.rows]
        return self.memory_list
