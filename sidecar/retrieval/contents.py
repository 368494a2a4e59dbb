"""What one snapshot holds: columns, memories and look-ups that stand still together."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sidecar.domain import Memory
from sidecar.features.view import Columns
from sidecar.retrieval.document import Mark
from sidecar.retrieval.lexical import InvertedIndex
from sidecar.retrieval.rows import Directory
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
    memory_list: list[Memory]
    terms: InvertedIndex[str]
    marks: InvertedIndex[Mark]
    directory: Directory
    live_count: int
    mean_length: float
    total_terms: float
    """Terms of all live memories, stop words included."""

    @staticmethod
    def of(
        score_version: int,
        table: Table,
        kinds: tuple[str, ...],
        id_list: list[str],
        memory_list: list[Memory],
        terms: InvertedIndex[str],
        marks: InvertedIndex[Mark],
        directory: Directory,
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
            memory_list,
            terms,
            marks,
            directory,
            live_count,
            mean,
            total_terms,
        )

    def __len__(self) -> int:
        return self.table.rows

    @property
    def memories(self) -> Sequence[Memory]:
        """Row -> memory, without its embedding; a dead row's text is gone."""
        return Prefix(self.memory_list, self.table.rows)

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
