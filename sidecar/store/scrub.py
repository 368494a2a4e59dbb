"""Removes what deleted rows leave behind inside the database file, where SQLite itself does not.

`PRAGMA secure_delete` overwrites a row where it stands. But when pages are rebalanced, rows move to their neighbours
and a stale copy can stay in the unused gap of the page they came from; a later delete overwrites only the row's present
place. (Seen: of 2,000 deleted texts of some hundred bytes, 1 to 4 were still in the file after a checkpoint.) So after
each checkpoint the gaps of all pages that it wrote are filled with zeros.

This writes to the file behind SQLite's back, and is safe because the bytes between a page's cell pointers and its cell
content mean nothing to SQLite, whoever reads or writes them at the same time; because only who has just checkpointed
does it, while nobody else can; and because zeros may be written again after a crash. The store is never auto-vacuumed:
pointer-map pages would look like b-tree pages.
"""

from __future__ import annotations

import mmap
import os
import struct
from collections.abc import Iterable
from typing import NamedTuple

import numpy as np

_WAL_HEADER = 32
_FRAME_HEADER = 24
_BTREE_HEADER_SIZE = {2: 12, 5: 12, 10: 8, 13: 8}
"""By page type: interior index, interior table, leaf index, leaf table."""


class Place(NamedTuple):
    """How far into a write-ahead log: so many frames of one generation of it."""

    generation: bytes = b""
    frames: int = 0


BEGINNING = Place()
"""Of any log."""


def generation(wal: int) -> bytes:
    """What tells the present generation of the log (an open descriptor) from those before it; b"" if it is empty."""
    return os.pread(wal, 8, 16)


def wal_pages(wal: int, page_size: int, after: Place = BEGINNING, until: int | None = None) -> list[int]:
    """Numbers of the pages that the write-ahead log (an open descriptor) holds in its present generation, ascending.
    Only of frames behind `after`, if that is of this generation, and of the first `until` frames; None: of all."""
    frame = _FRAME_HEADER + page_size
    count = (os.fstat(wal).st_size - _WAL_HEADER) // frame
    if count <= 0:
        return []
    with mmap.mmap(wal, _WAL_HEADER + count * frame, prot=mmap.PROT_READ) as mapped:
        salt = mapped[16:24]
        rows = np.ndarray((count, frame), np.uint8, mapped, _WAL_HEADER)
        heads = rows[after.frames if after.generation == salt else 0 : until, :16].copy()
        del rows  # or the map could not be closed
    current = (heads[:, 8:16] == np.frombuffer(salt, np.uint8)).all(axis=1)
    pages: list[int] = np.unique(heads[current, :4].copy().view(">u4")).tolist()
    return pages


def clear_gaps(database: int, page_size: int, pages: Iterable[int]) -> int:
    """Fills the gaps of these pages of the database (an open descriptor) with zeros. Returns how many it had to."""
    cleared = 0
    for number in pages:
        offset = (number - 1) * page_size
        page = os.pread(database, page_size, offset)
        if len(page) < page_size:
            continue  # the database shrank since
        begin, end = gap(page, 100 if number == 1 else 0)
        if begin < end and page.count(0, begin, end) < end - begin:
            os.pwrite(database, bytes(end - begin), offset + begin)
            cleared += 1
    return cleared


def gap(page: bytes, header: int) -> tuple[int, int]:
    """Where the unused gap of a b-tree page begins and ends; (0, 0) if it is no b-tree page.

    The header stands at `header`. Pages of overflow chains and of the free list begin with the number of another page,
    so with a 0 in every database below 64 GiB, and are never taken for b-tree pages.
    """
    size = _BTREE_HEADER_SIZE.get(page[header])
    if size is None:
        return 0, 0
    cells, content = struct.unpack_from(">HH", page, header + 3)
    begin = header + size + 2 * cells
    end = content or 65_536
    return (begin, end) if begin <= end <= len(page) else (0, 0)
