"""Columns that grow at the end and are copied when written inside: what snapshots of one namespace share.

A Table is immutable. A Draft of it appends into spare room behind the rows that readers know, and copies a column
before it changes a row that they do know. So a table in use never changes, and a small change costs little.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar, overload

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]
Item = TypeVar("Item")


@dataclass(slots=True)
class _Tail:
    """How many rows of the shared arrays are taken; -1 while a draft is at work or was given up. `version` counts the
    drafts that were finished."""

    rows: int
    version: int = 0


@dataclass(frozen=True, slots=True)
class Table:
    """`rows` rows of named columns."""

    rows: int
    arrays: Mapping[str, Array]
    tail: _Tail
    version: int = 0

    @staticmethod
    def of(arrays: Mapping[str, Array], rows: int) -> Table:
        """A table of its own, which shares nothing."""
        return Table(rows, dict(arrays), _Tail(rows))

    def with_columns(self, values: Mapping[str, Array]) -> Table:
        """A side branch with other values in some columns; no draft may start from it."""
        return Table(self.rows, {**self.arrays, **values}, _Tail(-1))

    def column(self, name: str) -> Array:
        """All rows of a column; the first axis is the row. Not to be written."""
        return self.arrays[name][: self.rows]

    @property
    def is_newest(self) -> bool:
        """True if no draft was made of this table yet. Only then may one start."""
        return (self.tail.rows, self.tail.version) == (self.rows, self.version)


class Draft:
    """The next table, being written. One at a time."""

    def __init__(self, table: Table) -> None:
        if not table.is_newest:
            raise RuntimeError("a draft was made of this table already")
        self.rows = table.rows
        self._tail = table.tail
        self._arrays = dict(table.arrays)
        self._own: set[str] = set()
        self._tail.rows = -1

    def column(self, name: str) -> Array:
        """The column as it stands in the draft, for reading."""
        return self._arrays[name][: self.rows]

    def writable(self, name: str) -> Array:
        """The column as it stands in the draft, for writing any row."""
        if name not in self._own:
            self._arrays[name] = self._arrays[name].copy()
            self._own.add(name)
        return self._arrays[name][: self.rows]

    def replace(self, name: str, values: Array) -> None:
        """Puts another array of as many rows in a column's place."""
        self._arrays[name] = values
        self._own.add(name)

    def extend(self, values: Mapping[str, Array]) -> None:
        """Appends as many rows to every column."""
        sizes = {len(added) for added in values.values()}
        if len(sizes) != 1 or values.keys() != self._arrays.keys():
            raise ValueError("every column needs the same number of new rows")
        rows = self.rows + sizes.pop()
        for name, added in values.items():
            array = self._arrays[name]
            if rows > len(array):
                grown = np.empty((rows + rows // 4 + 16, *array.shape[1:]), dtype=array.dtype)
                grown[: self.rows] = array[: self.rows]
                self._arrays[name] = array = grown
                self._own.add(name)
            array[self.rows : rows] = added
        self.rows = rows

    def finish(self) -> Table:
        """The new table. The draft must not be used after it."""
        self._tail.rows = self.rows
        self._tail.version += 1
        return Table(self.rows, self._arrays, self._tail, self._tail.version)


class Prefix(Sequence[Item]):
    """The first `size` items of a list that others append to."""

    __slots__ = ("_items", "_size")

    def __init__(self, items: list[Item], size: int) -> None:
        self._items = items
        self._size = size

    def __len__(self) -> int:
        return self._size

    @overload
    def __getitem__(self, at: int) -> Item: ...
    @overload
    def __getitem__(self, at: slice) -> Sequence[Item]: ...
    def __getitem__(self, at: int | slice) -> Item | Sequence[Item]:
        if at.__class__ is int and 0 <= at < self._size:
            return self._items[at]
        if isinstance(at, slice):
            return self._items[: self._size][at]
        if not -self._size <= at < self._size:
            raise IndexError(at)
        return self._items[at if at >= 0 else at + self._size]

    def __iter__(self) -> Iterator[Item]:
        return iter(self._items[: self._size])
