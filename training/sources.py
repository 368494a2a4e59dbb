"""Where a log can be read from: a store, an export in JSON Lines, or Parquet. Streams, and never writes."""

from __future__ import annotations

import codecs
from collections.abc import Callable, Iterator
from pathlib import Path

from sidecar.domain import Packet
from sidecar.errors import NotFoundError, RankerError, StoreNotFoundError
from sidecar.store.log import LoggedReport, LogRow
from sidecar.store.log_reading import has_packets, read_log
from sidecar.store.log_rows import read_row
from training.dataset import EVERYTHING, Cutoffs

Progress = Callable[[int, int], None]
DATABASE = "memories.db"
LINES_SHOWN = 2_000
"""Lines between two words on the progress of a file."""


class UnreadableLogError(RankerError):
    """A log that cannot be read, or not wholly: training on a part of it would say nothing of the rest."""

    reason = "UNREADABLE_LOG"


def read_source(
    path: Path,
    namespace: str = "",
    cutoffs: Cutoffs = EVERYTHING,
    progress: Progress = lambda done, total: None,
) -> Iterator[LogRow]:
    """The packets and reports of a log; of a namespace, or of all for "".

    A folder or a .db file is a store, which may be in use; .parquet is what `export-log` wrote; anything else is an
    export in JSON Lines, of which memories and all but packets and reports are passed over. `progress` hears packets of
    packets for a store, bytes of bytes for a file. Raises StoreNotFoundError, NotFoundError if the log has no packet of
    the namespace, in this window or out of it, UnreadableLogError, or what is wrong with the store.
    """
    database = database_of(path)
    if database is not None:
        if namespace and not has_packets(database, namespace):
            raise _no_packet(namespace)
        yield from read_log(database, namespace, cutoffs.from_time, cutoffs.event, progress)
        return
    if not path.is_file():
        raise StoreNotFoundError(f"there is no log at {path}; name a store's folder, an export or a .parquet file")
    if path.suffix == ".parquet":
        from training.parquet import read_parquet

        rows: Iterator[LogRow] = read_parquet(path, progress)
    else:
        rows = _lines(path, progress)
    # A report follows its packet in every log of ours; of the other namespaces neither is kept.
    is_there = not namespace
    for row in rows:
        if not namespace or (row.namespace == namespace if isinstance(row, Packet) else True):
            is_there = is_there or isinstance(row, Packet)
            yield row
    if not is_there:
        raise _no_packet(namespace)


def _no_packet(namespace: str) -> NotFoundError:
    return NotFoundError(f"namespace: this log has no packet of {namespace!r}; names are compared byte for byte")


def database_of(path: Path) -> Path | None:
    """The database of a log that is a store's; None for a file of another sort."""
    if path.is_dir():
        return path / DATABASE
    return path if path.suffix == ".db" else None


def _lines(path: Path, progress: Progress) -> Iterator[LogRow]:
    size, done, is_begun = path.stat().st_size, 0, False
    with path.open("rb") as file:
        for number, line in enumerate(file, 1):
            done += len(line)
            if not is_begun and (begin := line.removeprefix(codecs.BOM_UTF8).strip()):
                # Any text would pass for a log in which nothing happened.
                if not begin.startswith(b"{"):
                    raise UnreadableLogError(
                        f"{path} is no log: line {number} holds no JSON object; name a store's folder, an export "
                        "in JSON Lines or a .parquet file"
                    )
                is_begun = True
            if number % LINES_SHOWN == 0:
                progress(done, size)
            # Most lines of an export may be memories, with their texts: they need not be parsed.
            if b'"packet_id"' not in line:
                continue
            try:
                _, row = read_row(line)
            except ValueError as error:
                if _is_memory(line):
                    continue
                raise UnreadableLogError(
                    f"{path}, line {number}: {error}; export the log again, or leave the line out"
                ) from error
            if isinstance(row, Packet | LoggedReport):
                yield row
    progress(size, size)


def _is_memory(line: bytes) -> bool:
    """True for a line that is no row of the log but mentions a packet's id."""
    import json

    try:
        given = json.loads(line)
    except ValueError:
        return False
    return isinstance(given, dict) and "content" in given
