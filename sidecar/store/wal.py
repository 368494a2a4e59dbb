"""Reads a write-ahead log as SQLite does after a crash, and tells an end that was torn off from damage inside.

The format is SQLite's own (https://www.sqlite.org/fileformat2.html#the_write_ahead_log): a header, then frames, each a
page with a head. SQLite takes frames up to the first whose salt is not the header's or whose sum is wrong, and says
nothing of those behind. A writer that is killed leaves nothing behind such a frame but frames of before, which have
another salt, or of a transaction that was not committed. So a commit of the same salt behind it had been answered.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

HEADER_BYTES = 32
FRAME_HEAD_BYTES = 24
PAGE_BYTES = 4_096
"""Of every store: for a log whose header does not say it any more."""
AT_ONCE = 1 << 22
"""Bytes of frames that are read at one time."""

_MAGIC = {0x377F0682: "<", 0x377F0683: ">"}
"""By the first word, the byte order in which sums are formed."""

Words = NDArray[np.uint32]


@dataclass(frozen=True, slots=True)
class Break:
    """Where a log cannot be read on: at which frame, from 1, or 0 for its header; and how many whole frames and commits
    of the same log stand behind."""

    frame: int
    frames: int
    commits: int


@dataclass(frozen=True, slots=True)
class _Header:
    salt: bytes
    page_bytes: int
    order: str
    sums: Words


def find_break(path: Path) -> Break | None:
    """Where commits of a log are cut off from those before. None for a log that is whole, torn at its end, or not
    there.

    A damaged frame behind which nothing was committed looks like a torn end. Raises OSError.
    """
    try:
        with path.open("rb") as file:
            start = file.read(HEADER_BYTES)
            header = _header(start) if len(start) == HEADER_BYTES else None
            page_bytes = header.page_bytes if header else PAGE_BYTES
            frame_bytes = FRAME_HEAD_BYTES + page_bytes
            size = AT_ONCE // frame_bytes * frame_bytes
            chunks = (
                np.frombuffer(data, np.uint8, len(data) // frame_bytes * frame_bytes).reshape(-1, frame_bytes)
                for data in iter(lambda: file.read(size), b"")
            )
            return _without_header(chunks) if header is None else _with_header(chunks, header)
    except FileNotFoundError:
        return None


def _with_header(chunks: Iterator[NDArray[np.uint8]], header: _Header) -> Break | None:
    before, first, broken, frames, commits = header.sums, 1, 0, 0, 0
    for rows in chunks:
        heads = _heads(rows)
        own = (rows[:, 8:16] == np.frombuffer(header.salt, np.uint8)).all(axis=1)
        behind = 0
        if not broken and len(rows):
            stored = heads[:, 4:]
            sums = _sums(rows, header.order, np.vstack((before, stored[:-1])))
            bad = np.flatnonzero(~own | (heads[:, 0] == 0) | (sums != stored).any(axis=1))
            before = stored[-1:]
            behind = len(rows)
            if len(bad):
                behind = int(bad[0]) + 1
                broken = first + int(bad[0])
        frames += int(own[behind:].sum())
        commits += int((own & (heads[:, 1] > 0))[behind:].sum())
        first += len(rows)
    return Break(broken, frames, commits) if commits else None


def _without_header(chunks: Iterator[NDArray[np.uint8]]) -> Break | None:
    """All frames of the first one's salt are behind a broken header."""
    frames, commits = 0, 0
    salt: NDArray[np.uint8] | None = None
    for rows in chunks:
        if not len(rows):
            break
        salt = rows[0, 8:16].copy() if salt is None else salt
        own = (rows[:, 8:16] == salt).all(axis=1)
        frames += int(own.sum())
        commits += int((own & (_heads(rows)[:, 1] > 0)).sum())
    return Break(0, frames, commits) if commits else None


def _header(data: bytes) -> _Header | None:
    """None if it is not as SQLite wrote it."""
    words = np.frombuffer(data, ">u4").astype(np.uint32)
    order, page_bytes = _MAGIC.get(int(words[0])), int(words[2])
    if order is None or not 512 <= page_bytes <= 65_536 or page_bytes & (page_bytes - 1):
        return None
    sums = _summed(np.frombuffer(data[:24], f"{order}u4").astype(np.uint32)[None], np.zeros((1, 2), np.uint32))
    return _Header(data[16:24], page_bytes, order, sums) if (sums[0] == words[6:]).all() else None


def _heads(rows: NDArray[np.uint8]) -> Words:
    """Of each frame: page number, pages of the database after a commit (else 0), salt (2), sum (2)."""
    return np.ascontiguousarray(rows[:, :FRAME_HEAD_BYTES]).view(">u4").astype(np.uint32)


def _sums(rows: NDArray[np.uint8], order: str, before: Words) -> Words:
    summed = np.concatenate((rows[:, :8], rows[:, FRAME_HEAD_BYTES:]), axis=1)
    return _summed(summed.view(f"{order}u4").astype(np.uint32), before)


def _summed(words: Words, before: Words) -> Words:
    """The two sums after each row of words, from those before it (n, 2), modulo 2^32.

    SQLite forms them word by word, s0 += x + s1 and s1 += y + s0, which comes to weights that are Fibonacci numbers in
    reverse order (section 4.2 of the format).
    """
    count = words.shape[1]
    fibonacci = [0, 1]
    while len(fibonacci) < count + 2:
        fibonacci.append((fibonacci[-1] + fibonacci[-2]) & 0xFFFFFFFF)
    numbers = np.array(fibonacci, np.uint32)
    weights = np.stack((numbers[count - 1 :: -1], numbers[count:0:-1]), axis=1)
    carried = np.array([numbers[[count - 1, count]], numbers[[count, count + 1]]], np.uint32)
    sums: Words = words @ weights + before @ carried.T
    return sums
