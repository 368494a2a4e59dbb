"""Reads rows straight from the pages of a database file, whatever the tree above them: for a store that SQLite gives
up on. Pure but for the bytes that it is given.

The format is SQLite's own (https://www.sqlite.org/fileformat2.html): a page's cells hold records, a record is a header
of serial types and the values. What does not read as such is passed over.
"""

from __future__ import annotations

import mmap
import struct
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Self

Value = int | float | bytes | str | None

TABLE_LEAF, TABLE_INTERIOR = 13, 5
INDEX_LEAF, INDEX_INTERIOR = 10, 2
"""Tables WITHOUT ROWID are kept as an index is."""
_CELLS_AT = {TABLE_LEAF: 8, INDEX_LEAF: 8, INDEX_INTERIOR: 12, TABLE_INTERIOR: 12}
_SCHEMA = "sqlite_schema"
_INT_SIZES = {1: 1, 2: 2, 3: 3, 4: 4, 5: 6, 6: 8}
_UNREADABLE = (IndexError, ValueError, struct.error)


@dataclass(frozen=True, slots=True)
class Record:
    """A row as it lies in a page. `rowid` is None in an index or in a table WITHOUT ROWID."""

    rowid: int | None
    values: tuple[Value, ...]


@dataclass(frozen=True, slots=True)
class Pages:
    """The bytes of a database file. `usable` is what a page has for content."""

    data: bytes | mmap.mmap
    size: int
    usable: int

    @classmethod
    def of(cls, data: bytes | mmap.mmap, default_size: int = 4_096) -> Self:
        """The pages of a file whose header may be damaged: then they are taken to have the default size."""
        size = int.from_bytes(data[16:18], "big")
        size = 65_536 if size == 1 else size
        if data[:16] != b"SQLite format 3\0" or size < 512 or size & (size - 1):
            return cls(data, default_size, default_size)
        return cls(data, size, size - data[20])

    def page(self, number: int) -> bytes:
        """One page, from 1; b"" past the end."""
        return self.data[(number - 1) * self.size : number * self.size]

    def records(self) -> Iterator[tuple[int, Record]]:
        """Every row that can be read, with the number of its page."""
        for number in range(1, -(-len(self.data) // self.size) + 1):
            for record in self._of_page(number):
                yield number, record

    def owners(self) -> dict[int, str]:
        """Which table or index a page belongs to, as far as the tree above it can be read."""
        found: dict[int, str] = {}
        waiting = [(1, _SCHEMA)]
        while waiting:
            number, owner = waiting.pop()
            if number in found or not self.page(number):
                continue
            found[number] = owner
            waiting += [(child, owner) for child in self._children(number)]
            if owner == _SCHEMA:
                for record in self._of_page(number):
                    match record.values:
                        case (_, str(name), _, int(root), _) if root > 0:
                            waiting.append((root, name))
        return found

    def _children(self, number: int) -> list[int]:
        kind, page, cells = self._cells(number)
        if kind not in (INDEX_INTERIOR, TABLE_INTERIOR):
            return []
        last = (100 if number == 1 else 0) + 8
        places = [last, *(at for at in cells if at + 4 <= len(page))]
        return [struct.unpack_from(">I", page, at)[0] for at in places]

    def _of_page(self, number: int) -> Iterator[Record]:
        kind, page, cells = self._cells(number)
        if kind == TABLE_INTERIOR:
            return
        for at in cells:
            try:
                yield self._cell(page, at, kind)
            except _UNREADABLE:
                continue

    def _cells(self, number: int) -> tuple[int, bytes, list[int]]:
        """A page's kind, its bytes, and where its cells begin; none in a page that is not of a tree."""
        page, header = self.page(number), 100 if number == 1 else 0
        if len(page) < header + 12 or page[header] not in _CELLS_AT:
            return 0, page, []
        (count,) = struct.unpack_from(">H", page, header + 3)
        first = header + _CELLS_AT[page[header]]
        count = min(count, (len(page) - first) // 2)
        return page[header], page, list(struct.unpack_from(f">{count}H", page, first))

    def _cell(self, page: bytes, at: int, kind: int) -> Record:
        at += 4 if kind == INDEX_INTERIOR else 0
        length, at = _varint(page, at)
        rowid = None
        if kind == TABLE_LEAF:
            rowid, at = _varint(page, at)
        return Record(rowid, _values(self._payload(page, at, length, kind)))

    def _payload(self, page: bytes, at: int, length: int, kind: int) -> bytes:
        """All of a cell's payload, with what lies in its chain of overflow pages."""
        if not 0 < length <= len(self.data):
            raise ValueError
        most = self.usable - 35 if kind == TABLE_LEAF else (self.usable - 12) * 64 // 255 - 23
        if length <= most:
            return _piece(page, at, length)
        least = (self.usable - 12) * 32 // 255 - 23
        local = least + (length - least) % (self.usable - 4)
        local = local if local <= most else least
        found = [_piece(page, at, local)]
        missing = length - local
        (following,) = struct.unpack_from(">I", page, at + local)
        while missing > 0:
            overflow = self.page(following)
            piece = _piece(overflow, 4, min(missing, self.usable - 4))
            found.append(piece)
            missing -= len(piece)
            (following,) = struct.unpack_from(">I", overflow, 0)
        return b"".join(found)


def _values(payload: bytes) -> tuple[Value, ...]:
    end, at = _varint(payload, 0)
    if end > len(payload):
        raise ValueError
    kinds = []
    while at < end:
        kind, at = _varint(payload, at)
        kinds.append(kind)
    values: list[Value] = []
    for kind in kinds:
        value, at = _value(payload, at, kind)
        values.append(value)
    if at != len(payload):
        raise ValueError
    return tuple(values)


def _value(payload: bytes, at: int, kind: int) -> tuple[Value, int]:
    if kind in _INT_SIZES:
        size = _INT_SIZES[kind]
        return int.from_bytes(_piece(payload, at, size), "big", signed=True), at + size
    if kind == 7:
        return struct.unpack(">d", _piece(payload, at, 8))[0], at + 8
    if kind >= 12:
        size = (kind - 12) // 2
        piece = _piece(payload, at, size)
        return piece.decode() if kind % 2 else piece, at + size
    if kind in (0, 8, 9):
        return {0: None, 8: 0, 9: 1}[kind], at
    raise ValueError


def _piece(data: bytes, at: int, size: int) -> bytes:
    piece = data[at : at + size]
    if len(piece) != size:
        raise ValueError
    return piece


def _varint(data: bytes, at: int) -> tuple[int, int]:
    """A number of 1 to 9 bytes, and where it ends. As SQLite's, with the sign in the 64th bit."""
    value = 0
    for place in range(9):
        byte = data[at + place]
        if place == 8:
            value = value << 8 | byte
            return value - (1 << 64) if value >> 63 else value, at + 9
        value = value << 7 | byte & 0x7F
        if byte < 0x80:
            return value, at + place + 1
    raise AssertionError
