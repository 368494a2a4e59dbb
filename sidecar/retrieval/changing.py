"""From the contents of one score version to those of the next.

A new or rewritten memory takes a new row and the old row dies; what moves without touching a memory's text (uses,
ratings, pins, importance, validity) is written into a copied column. Dead rows are cleared out when they are many.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import compress
from operator import attrgetter
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sidecar.domain import Change, Memory, Micros, UseCounts
from sidecar.features.view import NO_TIME
from sidecar.retrieval import contents as names
from sidecar.retrieval import rows, vectors
from sidecar.retrieval.contents import Contents, Mask
from sidecar.retrieval.document import Mark, document_of
from sidecar.retrieval.duplicates import OUTLINE_WORDS, outlines_of
from sidecar.retrieval.lexical import InvertedIndex
from sidecar.retrieval.near import Near
from sidecar.retrieval.postings import EMPTY, Packed
from sidecar.retrieval.rows import Directory, Places
from sidecar.retrieval.sources import Source, digest
from sidecar.retrieval.table import Array, Draft, Table

FEWEST_DEAD_ROWS = 64
SHARE_OF_DEAD_ROWS = 0.25
"""Dead rows are cleared out above this number and this share of all rows."""

BULK_ROWS = 2_000
"""A state of so many rows is packed as soon as it is read."""

QUESTION_MARKS = ("?", "\uff1f", "\u061f")
"""Latin, full-width, Arabic."""


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
    "used": (np.float64, attrgetter("used")),
    "seen": (np.float64, attrgetter("seen")),
    "use_sessions": (np.int32, attrgetter("use_sessions")),
    "reported_sessions": (np.int32, attrgetter("reported_sessions")),
    "last_use_time": (np.int64, lambda u: _time(u.last_use_time)),
}
LINKS = ("previous_row", "next_row", names.REPLACEMENT, names.SUPERSEDING)


COLUMN_TYPES: Mapping[str, type[np.generic]] = {
    **{name: dtype for name, (dtype, _) in (*_OF_MEMORY.items(), *_OF_USE.items())},
    **dict.fromkeys((*LINKS, "kind"), np.int32),
    **dict.fromkeys((names.LENGTH, names.ALL_TERMS, names.INVERSE_LENGTH), np.float64),
    names.SEQUENCE: np.int64,
    **dict.fromkeys((names.THREAD, names.DIGEST), np.uint64),
    "live": np.bool_,
    names.VECTOR: np.int8,
    names.OUTLINE: np.uint64,
}
"""The columns of a table. All have one number a row, but for the vector and the outline."""


def empty(source: Source, score_version: int = 0) -> Contents:
    """A namespace without memories; those to come are in `source`."""
    arrays: dict[str, Array] = {name: np.empty(0, dtype) for name, dtype in COLUMN_TYPES.items()}
    arrays[names.VECTOR] = np.empty((0, 0), np.int8)
    arrays[names.OUTLINE] = np.empty((0, OUTLINE_WORDS), np.uint64)
    return of_arrays(source, score_version, Table.of(arrays, 0), (), [], EMPTY, EMPTY)


def of_arrays(
    source: Source,
    score_version: int,
    table: Table,
    kinds: tuple[str, ...],
    ids: list[str],
    terms: Packed,
    marks: Packed,
    near: Near | None = None,
) -> Contents:
    """Contents whose index is packed, and shared with no others. Every row lives."""
    of_marks: InvertedIndex[Mark] = InvertedIndex(source.hasher, marks)
    directory = Directory(of_marks, table.column("key"))
    of_terms: InvertedIndex[str] = InvertedIndex(source.hasher, terms)
    return Contents.of(score_version, table, kinds, ids, source, of_terms, of_marks, directory, near=near)


def changed(before: Contents, change: Change) -> Contents:
    """The contents after a committed change. `before` stays as it is, whatever happens."""
    if change.purged:
        before = empty(before.source, change.score_version)
    if not before.table.is_newest:  # another change was made from these contents already
        before = compacted(before)
    writer = _Writer(before)
    deleted = set(change.deleted_keys)
    for key in change.deleted_keys:
        if (row := writer.row_of_key(key)) is not None:
            writer.kill(row)
    writer.put({memory.id: memory for memory in change.upserted if memory.key not in deleted})
    if change.uses:
        writer.use(change.uses)
    for key, (helpful, unhelpful) in change.ratings.items():
        if (row := writer.row_of_key(key)) is not None:
            writer.set("helpful", row, helpful)
            writer.set("unhelpful", row, unhelpful)
    for column, scores in (
        ("importance_content", change.importance_contents),
        ("importance_use", change.importance_uses),
    ):
        for key, score in scores.items():
            if (row := writer.row_of_key(key)) is not None:
                writer.set(column, row, _number(score))
    after = writer.finish(change.score_version)
    dead = len(after) - after.live_count
    return compacted(after) if dead > max(FEWEST_DEAD_ROWS, SHARE_OF_DEAD_ROWS * len(after)) else after


def with_uses(before: Contents, uses: Mapping[int, UseCounts]) -> Contents:
    """The same contents with other use counts, by memory key; a memory without an entry was never used."""
    fresh = UseCounts()
    counts = [uses.get(key, fresh) for key in before.columns.key.tolist()]
    columns = {name: np.array([value(c) for c in counts], dtype) for name, (dtype, value) in _OF_USE.items()}
    return before.with_table(before.score_version, before.table.with_columns(columns), before.kinds)


def compacted(before: Contents) -> Contents:
    """The same contents without dead rows, packed, sharing nothing with others."""
    live = before.columns.live
    row_of = renumbered(live)
    arrays = {name: before.table.column(name)[live] for name in before.table.arrays}
    for link in LINKS:
        arrays[link] = row_of[arrays[link]]
    return of_arrays(
        before.source,
        before.score_version,
        Table.of(arrays, len(arrays["live"])),
        before.kinds,
        list(compress(before.columns.ids, live.tolist())),
        before.terms.packed(live),
        before.marks.packed(live),
        before.near.renumbered(live),
    )


def renumbered(live: Mask) -> NDArray[np.int32]:
    """Row -> row when only those that live are left, at -1 -> -1."""
    numbers: NDArray[np.int32] = np.append(np.cumsum(live, dtype=np.int32) - 1, np.int32(-1))
    return numbers


class _Writer:
    """One change at work. Copies what it writes inside, appends the rest."""

    def __init__(self, before: Contents) -> None:
        self._before = before
        self._draft = Draft(before.table)
        self._kinds = dict.fromkeys(before.kinds)
        self._kind_codes = {kind: code for code, kind in enumerate(before.kinds)}
        self._relinked = False
        self._touched: set[int] = set()
        self._moved = False
        self.id_list = before.id_list

    def row_of_key(self, key: int) -> int | None:
        row = self._before.directory.row_of_key(key)
        return row if row is not None and row < self._draft.rows and self._draft.column("live")[row] else None

    def kill(self, row: int) -> None:
        """Takes a row out: its text goes at once, its terms when dead rows are cleared out."""
        directory, draft = self._before.directory, self._draft
        self._moved = True
        draft.writable("live")[row] = False
        if thread := int(draft.column(names.THREAD)[row]):
            links = draft.writable("previous_row"), draft.writable("next_row")
            directory.unlink_thread(row, thread, self._places(), *links)
        self._point(self._replaced_by(row), -1)
        if draft.column(names.REPLACEMENT)[row] >= 0:
            self._point([row], -1)

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
                uses.append(row if self._draft.column("key")[row] == memory.key else None)
                self.kill(row)
            new.append(memory)
        if new:
            self._append(new, uses)

    def rewrite(self, row: int, memory: Memory) -> None:
        """Puts a memory of the same text into its row."""
        for name, (_, value) in _OF_MEMORY.items():
            self.set(name, row, value(memory))
        self.set("kind", row, self._code(memory.kind))
        self._before.source.put(int(self._draft.column(names.DIGEST)[row]), memory)

    def use(self, uses: Mapping[int, UseCounts]) -> None:
        """Writes use counts, by memory key, where they differ."""
        draft = self._draft
        rows = self._before.directory.rows_of_keys(list(uses))
        there = (rows >= 0) & (rows < draft.rows)
        there[there] = draft.column("live")[rows[there]]
        rows = rows[there]
        counts = list(compress(uses.values(), there.tolist()))
        for name, (dtype, value) in _OF_USE.items():
            values = np.array(list(map(value, counts)), dtype)
            differing = draft.column(name)[rows] != values
            if differing.any():
                draft.writable(name)[rows] = values
                self._touched.update(rows[differing].tolist())

    def finish(self, score_version: int) -> Contents:
        if self._relinked:
            links = self._draft.column(names.REPLACEMENT)
            self._draft.writable(names.SUPERSEDING)[:] = rows.without_cycles(
                links, self._draft.column("create_time"), self.id_list
            )
        before, table = self._before, self._draft.finish()
        kinds = before.kinds if len(self._kinds) == len(before.kinds) else tuple(self._kinds)
        before.near.touch(self._touched)
        if not self._moved:
            return before.with_table(score_version, table, kinds)
        return Contents.of(
            score_version,
            table,
            kinds,
            self.id_list,
            before.source,
            before.terms,
            before.marks,
            before.directory,
            near=before.near,
            kept_of_rows=before.kept_of_rows,
        )

    def _append(self, memories: Sequence[Memory], uses: Sequence[int | None]) -> None:
        self._moved = True
        before, draft, start = self._before, self._draft, self._draft.rows
        values: dict[str, Array] = {
            name: np.array([value(memory) for memory in memories], dtype) for name, (dtype, value) in _OF_MEMORY.items()
        }
        fresh = UseCounts()
        for name, (dtype, value) in _OF_USE.items():
            own = draft.column(name)
            values[name] = np.array([value(fresh) if row is None else own[row] for row in uses], dtype)
        values |= {link: np.full(len(memories), -1, np.int32) for link in LINKS}
        digests = [digest(memory, before.source.hasher) for memory in memories]
        values[names.DIGEST] = np.array(digests, np.uint64)
        values[names.SEQUENCE] = np.array([_time(memory.source_sequence) for memory in memories], np.int64)
        threads = [self._thread(memory) for memory in memories]
        values[names.THREAD] = np.array(threads, np.uint64)
        values["kind"] = np.array([self._code(memory.kind) for memory in memories], np.int32)
        values["live"] = np.ones(len(memories), bool)
        values[names.VECTOR] = matrix = self._vectors(memories)
        values[names.INVERSE_LENGTH] = vectors.inverse_lengths(matrix)
        values[names.OUTLINE] = outlines_of([memory.content for memory in memories], before.source.hasher)
        documents = [document_of(memory) for memory in memories]
        values[names.LENGTH] = np.array([document.length for document in documents], np.float64)
        values[names.ALL_TERMS] = np.array([sum(document.terms.values()) for document in documents], np.float64)
        before.terms.extend(start, [document.terms for document in documents])
        before.marks.extend(start, [document.marks for document in documents])
        draft.extend(values)
        self.id_list.extend(memory.id for memory in memories)
        if any(threads):
            self._link_threads(threads, start)
        for row, memory in enumerate(memories, start):
            before.source.put(digests[row - start], memory)
            self._link(row, memory)

    def _link_threads(self, threads: Sequence[int], start: int) -> None:
        draft, places = self._draft, self._places()
        live, *links = draft.column("live"), draft.writable("previous_row"), draft.writable("next_row")
        for row, thread in enumerate(threads, start):
            if thread:
                self._before.directory.link_thread(row, thread, places, live, *links)

    def _link(self, row: int, memory: Memory) -> None:
        directory, live = self._before.directory, self._draft.column("live")
        directory.add(row, memory.key)
        if memory.superseded_by and memory.superseded_by != memory.id:
            replacing = directory.find(memory.superseded_by, live)
            self._point([row], -1 if replacing is None else replacing)
        self._point(directory.replaced_by(memory.id, live), row)

    def _replaced_by(self, row: int) -> list[int]:
        """Living rows that this row replaces."""
        if memory_id := self.id_list[row]:
            return self._before.directory.replaced_by(memory_id, self._draft.column("live"))
        # Deleted while its index lay in a file: its id is not known any more.
        rows: list[int] = np.flatnonzero(self._draft.column(names.REPLACEMENT) == row).tolist()
        return rows

    def _places(self) -> Places:
        draft = self._draft
        return Places(draft.column(names.SEQUENCE), draft.column("create_time"), self.id_list)

    def _thread(self, memory: Memory) -> int:
        return self._before.marks.hash_of(("thread", memory.source_thread)) if memory.source_thread else 0

    def _point(self, from_rows: Sequence[int], to_row: int) -> None:
        for row in from_rows:
            if self._draft.column(names.REPLACEMENT)[row] != to_row:
                self._draft.writable(names.REPLACEMENT)[row] = to_row
                self._relinked = True

    def _vectors(self, memories: Sequence[Memory]) -> vectors.Codes:
        given = [memory.embedding for memory in memories]
        dimension = self._draft.column(names.VECTOR).shape[1]
        if not dimension and (first := next((vector for vector in given if vector is not None), None)) is not None:
            dimension = len(first)
            self._draft.replace(names.VECTOR, np.zeros((self._draft.rows, dimension), np.int8))
        matrix = np.zeros((len(memories), dimension), np.float32)
        for at, vector in enumerate(given):
            if vector is not None:
                if vector.shape != (dimension,):
                    raise ValueError(f"a vector of shape {vector.shape} among vectors of dimension {dimension}")
                matrix[at] = vector
        return vectors.quantised(matrix)

    def _has_same_text(self, row: int, memory: Memory) -> bool:
        draft = self._draft
        if draft.column("key")[row] != memory.key:
            return False
        if int(draft.column(names.DIGEST)[row]) != digest(memory, self._before.source.hasher):
            return False
        vector = self._draft.column(names.VECTOR)[row]
        if memory.embedding is None:
            return not vector.any()
        return memory.embedding.shape == vector.shape and np.array_equal(vectors.quantised(memory.embedding)[0], vector)

    def _code(self, kind: str) -> int:
        if kind not in self._kind_codes:
            self._kind_codes[kind] = len(self._kinds)
            self._kinds[kind] = None
        return self._kind_codes[kind]

    def set(self, name: str, row: int, value: Any) -> None:
        """Writes a value, where it differs."""
        held = self._draft.column(name)[row]
        if held != value and not (held != held and value != value):
            self._draft.writable(name)[row] = value
            self._touched.add(row)
