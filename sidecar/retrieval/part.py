"""Some rows of a snapshot as rows of their own, so that few memories are scored by the code that scores all."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from operator import attrgetter
from typing import Any, overload

import numpy as np
from numpy.typing import NDArray

from sidecar.domain import Memory
from sidecar.features.view import Columns, Kept, TermMatch, TextMatches
from sidecar.retrieval import contents
from sidecar.retrieval.duplicates import Fingerprint, Outlines
from sidecar.retrieval.snapshot import Snapshot
from sidecar.retrieval.vectors import Codes

Rows = NDArray[np.int32]

_LINKS = ("previous_row", "next_row")
_TAKEN = tuple(name for name in (*contents.IN_VIEW, "superseded") if name not in _LINKS)
_columns_taken = attrgetter(*_TAKEN)


class IdsAt(Sequence[str]):
    """The ids of some rows."""

    __slots__ = ("_ids", "_rows")

    def __init__(self, ids: Sequence[str], rows: Rows) -> None:
        self._ids = ids
        self._rows = rows

    def __len__(self) -> int:
        return len(self._rows)

    @overload
    def __getitem__(self, at: int) -> str: ...
    @overload
    def __getitem__(self, at: slice) -> Sequence[str]: ...
    def __getitem__(self, at: int | slice) -> str | Sequence[str]:
        if isinstance(at, slice):
            return [self._ids[row] for row in self._rows[at].tolist()]
        return self._ids[int(self._rows[at])]


@dataclass(frozen=True, slots=True, eq=False)
class Part:
    """Rows of `whole`, ascending. A row's number here is its place among them.

    A row whose thread neighbours are not all here is scored without those: it may lend to others and not be served.
    """

    whole: Snapshot
    rows: Rows
    columns: Columns
    kept: Kept = field(default_factory=Kept)
    kept_of_texts: Kept = field(default_factory=partial(Kept, room=0))

    @staticmethod
    def of(whole: Snapshot, rows: Rows) -> Part:
        """`rows` ascend."""
        columns = whole.columns
        taken: dict[str, Any] = {
            name: column.take(rows) for name, column in zip(_TAKEN, _columns_taken(columns), strict=True)
        }
        links: dict[str, Any] = {name: _renumbered(getattr(columns, name).take(rows), rows) for name in _LINKS}
        return Part(whole, rows, Columns(ids=IdsAt(columns.ids, rows), kinds=columns.kinds, **taken, **links))

    def __len__(self) -> int:
        return len(self.rows)

    @property
    def memories(self) -> Part:
        """Row -> memory, by `at`."""
        return self

    def at(self, rows: Sequence[int]) -> list[Memory]:
        """The memories of many rows at once. Raises what their source raises."""
        return self.whole.memories.at(self.rows[rows].tolist())

    def ids_at(self, rows: Sequence[int]) -> list[str]:
        """The ids of rows, in their order."""
        return self.whole.ids_at(self.rows[rows].tolist())

    def outlines(self, rows: Sequence[int]) -> Outlines:
        """As those of the whole."""
        return self.whole.outlines(self.rows[rows].tolist())

    def fingerprint(self, row: int) -> Fingerprint:
        """As that of the whole."""
        return self.whole.fingerprint(int(self.rows[row]))

    def with_vectors(self, text: TextMatches, task: Codes | None) -> TextMatches:
        """What `text` says of the whole, of these rows, with their cosines."""
        rows = self.rows
        return replace(
            text,
            cosine=self.whole.cosines_at(task, rows),
            terms=tuple(map(self._borne, text.terms)),
            lengths=text.lengths[rows],
            handles=tuple(map(self._borne, text.handles)),
            context_terms=tuple(map(self._borne, text.context_terms)),
            subject_field=meeting(rows, text.subject_field)[0],
            subject_prefix=meeting(rows, text.subject_prefix)[0],
            days_off=None if text.days_off is None else text.days_off[rows],
        )

    def _borne(self, term: TermMatch) -> TermMatch:
        here, there = meeting(self.rows, term.rows)
        return TermMatch(term.term, term.idf, here, term.counts[there], term.is_stop_word)


def meeting(one: Rows, other: Rows) -> tuple[Rows, Rows]:
    """Where the numbers stand that both have: places in `one` and in `other`, which both ascend."""
    if len(one) > len(other):
        there, here = meeting(other, one)
        return here, there
    if not len(other):
        return np.empty(0, np.int32), np.empty(0, np.int32)
    at = other.searchsorted(one)
    found = (other.take(at, mode="clip") == one).nonzero()[0]
    return found.astype(np.int32), at.take(found).astype(np.int32)


def _renumbered(links: Rows, rows: Rows) -> Rows:
    """Links to rows as places among `rows`, -1 for those that are not there."""
    if links.max(initial=-1) < 0:
        return links
    at = rows.searchsorted(links)
    return np.where(rows.take(at, mode="clip") == links, at, -1).astype(np.int32)
