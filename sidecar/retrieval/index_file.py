"""One namespace's index as a file: arrays that the next start maps instead of reading every memory again.

A file says what it was made by and of; one that says anything else, or whose sums do not add up, is as good as none.
It holds numbers and hashes, and no text. The arrays are mapped privately: what is appended goes into spare room behind
them, in memory alone.
"""

from __future__ import annotations

import hashlib
import json
import mmap
import os
import platform
import unicodedata
import zlib
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import Stemmer

from sidecar.retrieval import changing
from sidecar.retrieval.cells import Cells
from sidecar.retrieval.contents import Contents
from sidecar.retrieval.postings import Packed
from sidecar.retrieval.table import Array

MAGIC = b"MRINDEX1"
HEADER_BYTES = 1 << 15
"""Room for the header, before the first array."""
ALIGNED = mmap.ALLOCATIONGRANULARITY
AT_ONCE = 1 << 16
"""Rows that are copied at a time."""
AT_WORK = 2
"""Threads that check the sums of a file."""
_PREFIX = len(MAGIC) + 8
_OF_ROWS = "rows/"
"""Before the names of the table's columns; postings have "terms/" and "marks/"."""


class UnusableError(Exception):
    """The file is damaged, or of something else."""


@dataclass(frozen=True, slots=True)
class IndexArrays:
    """What a file holds: the columns of `rows` rows with spare room behind them, and the packed postings."""

    rows: int
    score_version: int
    kinds: tuple[str, ...]
    columns: Mapping[str, Array]
    terms: Packed
    marks: Packed
    cells: Cells | None


@cache
def made_by() -> str:
    """Changes with anything that reads a memory's text, so that no file outlives the code that made it."""
    digest = hashlib.sha256()
    for path in sorted(Path(__file__).parent.glob("*.py")):
        digest.update(path.read_bytes())
    versions = (platform.python_version(), unicodedata.unidata_version, Stemmer.version(), np.__version__)
    digest.update(repr(versions).encode())
    return digest.hexdigest()


def write(path: Path, contents: Contents, identity: str) -> None:
    """Writes the living rows of `contents` into a new file, which is on the disk when this returns. Raises OSError."""
    live = contents.columns.live
    rows = contents.live_count
    room = rows + rows // 16 + 1_024
    arrays: list[tuple[str, Iterator[Array], np.dtype[Any], tuple[int, ...], int]] = []
    for name in contents.table.arrays:
        column = contents.table.column(name)
        arrays.append((_OF_ROWS + name, _living(contents, name), column.dtype, (rows, *column.shape[1:]), room))
    for index, packed in (("terms", contents.terms.packed(live)), ("marks", contents.marks.packed(live))):
        for name, array in packed.arrays().items():
            arrays.append((f"{index}/{name}", iter((array,)), array.dtype, array.shape, len(array)))
    if (cells := contents.near.cells) is not None:
        for name, array in (("centres", cells.centres), ("cell", cells.cell[: len(live)][live[: len(cells)]])):
            arrays.append((f"cells/{name}", iter((array,)), array.dtype, array.shape, len(array)))
    header: dict[str, Any] = {
        "identity": identity,
        "made_by": made_by(),
        "score_version": contents.score_version,
        "rows": rows,
        "kinds": list(contents.kinds),
        "arrays": {},
    }
    with open(os.open(path, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600), "r+b") as file:
        at = HEADER_BYTES
        for name, chunks, dtype, shape, room_here in arrays:
            crc, size = 0, 0
            file.seek(at)
            for chunk in chunks:
                data = np.ascontiguousarray(chunk).reshape(-1).view(np.uint8).data
                crc = zlib.crc32(data, crc)
                size += file.write(data)
            header["arrays"][name] = [at, dtype.str, list(shape), room_here, crc]
            at += _whole(max(size, room_here * dtype.itemsize * int(np.prod(shape[1:], dtype=np.int64))))
        text = json.dumps(header).encode()
        if len(text) > HEADER_BYTES - _PREFIX:
            raise OSError("the header of the index file does not fit")
        file.seek(0)
        file.write(MAGIC + len(text).to_bytes(4, "little") + zlib.crc32(text).to_bytes(4, "little") + text)
        file.truncate(at)
        file.flush()
        os.fsync(file.fileno())


def read(path: Path, identity: str, score_version: int) -> IndexArrays:
    """Maps a file of this identity and score version. Raises UnusableError for any other, and a damaged one; OSError
    if it is not there."""
    with path.open("rb") as file:
        size = os.fstat(file.fileno()).st_size
        header = _header(file.read(HEADER_BYTES))
        known = (header.get("identity"), header.get("made_by"), header.get("score_version"))
        if known != (identity, made_by(), score_version):
            raise UnusableError("it is of another state, or was made by another program")
        try:
            arrays = header["arrays"]
            with ThreadPoolExecutor(AT_WORK) as pool:  # the sums are worked out without Python's lock
                mapped = pool.map(lambda described: _mapped(file.fileno(), size, *described), arrays.values())
                found = dict(zip(arrays, mapped, strict=True))
            rows = int(header["rows"])
            columns = {name.removeprefix(_OF_ROWS): a for name, a in found.items() if name.startswith(_OF_ROWS)}
            if any(len(column) < rows for column in columns.values()):
                raise UnusableError("a column is too short")
            if columns.keys() != changing.COLUMN_TYPES.keys():
                raise UnusableError("it has other columns")
            return IndexArrays(
                rows,
                score_version,
                tuple(header["kinds"]),
                columns,
                _packed(found, "terms", rows),
                _packed(found, "marks", rows),
                Cells.of(found["cells/centres"], found["cells/cell"]) if "cells/cell" in found else None,
            )
        except (KeyError, TypeError, ValueError) as error:
            raise UnusableError(f"it cannot be read: {error}") from error


def _header(data: bytes) -> dict[str, Any]:
    length, crc = int.from_bytes(data[8:12], "little"), int.from_bytes(data[12:16], "little")
    text = data[_PREFIX : _PREFIX + length]
    if data[:8] != MAGIC or len(text) != length or zlib.crc32(text) != crc:
        raise UnusableError("its header is damaged")
    header: dict[str, Any] = json.loads(text)
    return header


def _mapped(file: int, size: int, at: int, kind: str, shape: Sequence[int], room: int, crc: int) -> Array:
    dtype = np.dtype(kind)
    width = dtype.itemsize * int(np.prod(shape[1:], dtype=np.int64))
    count, used = room * width, shape[0] * width
    if at + count > size or used > count:
        raise UnusableError("it is cut off")
    if not count:
        return np.empty((room, *shape[1:]), dtype)
    mapped = mmap.mmap(file, count, flags=mmap.MAP_PRIVATE, prot=mmap.PROT_READ | mmap.PROT_WRITE, offset=at)
    if zlib.crc32(memoryview(mapped)[:used]) != crc:
        raise UnusableError("a sum does not add up")
    return np.frombuffer(mapped, dtype).reshape(room, *shape[1:])


def _packed(found: Mapping[str, Array], index: str, rows: int) -> Packed:
    arrays = {name: found[f"{index}/{name}"] for name in ("hashes", "starts", "rows", "counts")}
    return Packed.from_arrays(arrays, rows)


def _living(contents: Contents, name: str) -> Iterator[Array]:
    """The living rows of a column, some at a time; links between rows as they will be numbered."""
    column, live = contents.table.column(name), contents.columns.live
    links = changing.renumbered(live) if name in changing.LINKS else None
    for first in range(0, len(column), AT_ONCE):
        some = column[first : first + AT_ONCE]
        kept = some if contents.all_live else some[live[first : first + AT_ONCE]]
        yield kept if links is None else links[kept]


def _whole(size: int) -> int:
    return -(-size // ALIGNED) * ALIGNED
