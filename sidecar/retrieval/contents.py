"""What one snapshot holds: columns, memories and look-ups that stand still together."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from operator import attrgetter
from typing import Any, overload

import numpy as np
from numpy.typing import NDArray

from sidecar.domain import Memory
from sidecar.features.view import NO_TIME, Columns, Kept, Same
from sidecar.retrieval.document import Mark
from sidecar.retrieval.lexical import InvertedIndex
from sidecar.retrieval.near import Near
from sidecar.retrieval.rows import Directory, Places
from sidecar.retrieval.sources import Name, Source
from sidecar.retrieval.table import Prefix, Table

Mask = NDArray[np.bool_]

# Columns of the table that are no columns of a view.
LENGTH = "length"
ALL_TERMS = "all_terms"
"""Terms of a memory, stop words included."""
VECTOR = "vector"
INVERSE_LENGTH = "inverse_length"
REPLACEMENT = "replacement"
SUPERSEDING = "superseding"
SEQUENCE = "sequence"
THREAD = "thread"
"""The hash of a source thread's mark, 0 for none."""
DIGEST = "digest"
"""Of a memory's text, see `sidecar.retrieval.sources`."""
OUTLINE = "outline"
"""Of a memory's text, see `sidecar.retrieval.duplicates`."""
IN_VIEW = tuple(name for name in Columns.__slots__ if name not in ("ids", "kinds", "superseded"))


@dataclass(frozen=True, slots=True, eq=False)
class RowOfId(Mapping[str, int]):
    """Id -> row of the live memories of one snapshot."""

    directory: Directory
    columns: Columns

    def __getitem__(self, memory_id: str) -> int:
        row = self.directory.find(memory_id, self.columns.live)
        if row is None:
            raise KeyError(memory_id)
        return row

    def __iter__(self) -> Iterator[str]:
        return (self.columns.ids[row] for row in np.flatnonzero(self.columns.live).tolist())

    def __len__(self) -> int:
        return int(np.count_nonzero(self.columns.live))


_TIMES = ("valid_from_time", "valid_until_time")
_NUMBERS = ("importance_content", "importance_use", "importance_override")
_OR_ZERO = ("relevance", "emotion")
_PLAIN = ("create_time", "update_time", "pinned", "suppressed", "helpful", "unhelpful", "tokens")
_STANDING = ("kind", *_TIMES, *_NUMBERS, *_PLAIN, *_OR_ZERO)
"""Fields of a memory that its row's columns hold: as of the row's score version, which its source may be ahead of."""
_of_memory = attrgetter(*_STANDING)
_UNSET = (None,) * len(_OR_ZERO)
"""What a memory has that has none of _OR_ZERO, which stand last."""
_OTHERS, _ZEROED = slice(None, -len(_OR_ZERO)), slice(-len(_OR_ZERO), None)
_GONE = Memory(id="", content="")


@dataclass(frozen=True, slots=True, eq=False)
class MemoryRows(Sequence[Memory]):
    """Row -> memory of one snapshot, without its embedding; of a dead row, nothing is left."""

    table: Table
    columns: Columns
    source: Source

    def __len__(self) -> int:
        return self.table.rows

    @overload
    def __getitem__(self, at: int) -> Memory: ...
    @overload
    def __getitem__(self, at: slice) -> Sequence[Memory]: ...
    def __getitem__(self, at: int | slice) -> Memory | Sequence[Memory]:
        if isinstance(at, slice):
            return self.at(list(range(*at.indices(len(self)))))
        if not -len(self) <= at < len(self):
            raise IndexError(at)
        return self.at([at % len(self)])[0]

    def at(self, rows: Sequence[int]) -> list[Memory]:
        """The memories of many rows at once. Raises what the source raises."""
        if not len(rows):
            return []
        alive = self.columns.live[rows].tolist()
        found = iter(self.source.get([name for name, lives in zip(self.names(rows), alive, strict=True) if lives]))
        standing = zip(*self._standing(rows), strict=True)
        return [_as_of(next(found), values) if lives else _GONE for lives, values in zip(alive, standing, strict=True)]

    def _standing(self, rows: Sequence[int]) -> Iterator[list[Any]]:
        """The values of _STANDING at these rows."""
        columns, taken = self.columns, np.array(rows, dtype=np.intp)
        yield list(map(columns.kinds.__getitem__, columns.kind.take(taken).tolist()))
        for name in _TIMES:
            yield [None if value == NO_TIME else value for value in getattr(columns, name).take(taken).tolist()]
        for name in _NUMBERS:
            yield [None if value != value else value for value in getattr(columns, name).take(taken).tolist()]
        for name in (*_PLAIN, *_OR_ZERO):
            yield getattr(columns, name).take(taken).tolist()

    def names(self, rows: Sequence[int]) -> list[Name]:
        """What the source knows the memories of rows by."""
        taken = np.array(rows, dtype=np.intp)
        keys, digests = self.columns.key.take(taken), self.table.column(DIGEST).take(taken)
        return list(zip(keys.tolist(), digests.tolist(), strict=True))

    def content(self, row: int) -> str:
        """The text of a live row."""
        return self.source.get(self.names([row]))[0].content


def _as_of(memory: Memory, values: tuple[Any, ...]) -> Memory:
    """The memory with these values of _STANDING."""
    own = _of_memory(memory)
    # The digest tells unset from 0, so no row is of a memory that had the other.
    if own == values or (own[_ZEROED] == _UNSET and own[_OTHERS] == values[_OTHERS]):
        return memory
    fields: dict[str, Any] = dict(zip(_STANDING, values, strict=True))
    fields |= {name: None for name in _OR_ZERO if getattr(memory, name) is None}
    return memory if tuple(fields.values()) == own else replace(memory, **fields)


@dataclass(frozen=True, slots=True, eq=False)
class Contents:
    """All of one namespace at one score version.

    The lists, the indexes and the directory are shared with later contents, which append to them: read them through
    the methods here, which stop at this one's rows.
    """

    score_version: int
    table: Table
    columns: Columns
    kinds: tuple[str, ...]
    id_list: list[str]
    source: Source
    terms: InvertedIndex[str]
    marks: InvertedIndex[Mark]
    directory: Directory
    live_count: int
    mean_length: float
    total_terms: float
    """Terms of all live memories, stop words included."""
    kept: Kept
    """For what follows from this score version."""
    kept_of_texts: Kept
    """For what follows from texts, threads and which rows live; later contents with the same ones share it."""
    near: Near
    """Shared by all contents of this numbering of rows."""
    kept_of_rows: Kept
    """So is this, for what follows from the rows that there are."""

    @staticmethod
    def of(
        score_version: int,
        table: Table,
        kinds: tuple[str, ...],
        id_list: list[str],
        source: Source,
        terms: InvertedIndex[str],
        marks: InvertedIndex[Mark],
        directory: Directory,
        near: Near | None = None,
        kept_of_rows: Kept | None = None,
    ) -> Contents:
        """Derives what follows from the rest."""
        columns = Columns(
            ids=Prefix(id_list, table.rows),
            kinds=kinds,
            superseded=table.column(SUPERSEDING) >= 0,
            **{name: table.column(name) for name in IN_VIEW},
        )
        live_count = int(np.count_nonzero(columns.live))
        # Whole numbers: exact in any order, so that a rebuilt snapshot has the same mean to the last bit.
        total = float(table.column(LENGTH).sum(where=columns.live))
        mean = total / live_count if live_count else 0.0
        total_terms = float(table.column(ALL_TERMS).sum(where=columns.live))
        return Contents(
            score_version,
            table,
            columns,
            kinds,
            id_list,
            source,
            terms,
            marks,
            directory,
            live_count,
            mean,
            total_terms,
            Kept(),
            Kept(),
            near or Near(),
            kept_of_rows or Kept(),
        )

    def with_table(self, score_version: int, table: Table, kinds: tuple[str, ...]) -> Contents:
        """The contents of a table whose rows hold the same texts, in the same threads, and live as these do. A column
        that was not written is the very same array."""
        before = self.table.arrays
        written: dict[str, Any] = {
            name: table.column(name) for name in IN_VIEW if table.arrays[name] is not before[name]
        }
        columns = replace(self.columns, kinds=kinds, **written)
        return replace(self, score_version=score_version, table=table, columns=columns, kinds=kinds, kept=Kept())

    def __len__(self) -> int:
        return self.table.rows

    @property
    def memories(self) -> MemoryRows:
        """Row -> memory, without its embedding; a dead row's text is gone."""
        return MemoryRows(self.table, self.columns, self.source)

    @property
    def kept_of_memories(self) -> Kept:
        """For what follows from memories alone, all fields included; what is known of their use leaves it."""
        return self.kept.once("memories", self._find_kept_of_memories)

    def _find_kept_of_memories(self) -> Kept:
        fields = Same(self.columns.kinds, *(getattr(self.columns, name) for name in _STANDING))
        return self.kept_of_texts.latest("memories", fields, Kept)

    @property
    def places(self) -> Places:
        """Where rows stand in their threads."""
        return Places(self.table.column(SEQUENCE), self.columns.create_time, self.id_list)

    @property
    def all_live(self) -> bool:
        """True if no row is dead."""
        return self.live_count == self.table.rows

    @property
    def row_of_id(self) -> RowOfId:
        """Id -> row, of live memories."""
        return RowOfId(self.directory, self.columns)

    def rows_marked(self, mark: Mark) -> NDArray[np.int32]:
        """Live rows that bear a mark, ascending."""
        return self.marks.find(mark, self.columns.live, self.all_live)[0]
