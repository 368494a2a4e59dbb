"""Where a log can be read from: a store, an export in JSON Lines, or Parquet. Streams, and never writes."""

from __future__ import annotations

import codecs
from collections.abc import Callable, Iterator
from pathlib import Path

from sidecar.domain import Packet
from sidecar.errors import NotFoundError, RankerError, StoreNotFoundError
from sidecar.features import FEATURE_NAMES, RAW_NAMES, SCHEMA_HASH
from sidecar.plurals import counted
from sidecar.store.log import LoggedReport, LogRow
from sidecar.store.log_reading import has_packets, read_log
from sidecar.store.log_rows import read_line, read_object
from training.dataset import EVERYTHING, Cutoffs

Progress = Callable[[int, int], None]
DATABASE = "memories.db"
LINES_SHOWN = 2_000
"""Lines between two words on the progress of a file."""
MEMORY = b'{"id":'
"""How `export` begins a memory, and no row of the log: such a line is not parsed if it is whole."""


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
    export in JSON Lines, of which memories and all but packets and reports are passed over, if they are whole.
    `progress` hears packets of packets for a store, bytes of bytes for a file. Raises StoreNotFoundError, NotFoundError
    if the log has no packet of the namespace, in this window or out of it, UnreadableLogError, also for reports without
    any packet, or what is wrong with the store.
    """
    database = database_of(path)
    if database is not None:
        if namespace and not has_packets(database, namespace):
            raise _no_packet(namespace)
        for row in read_log(database, namespace, cutoffs.from_time, cutoffs.event, progress):
            try:
                yield measured(row)
            except ValueError as error:  # taken in by an import that did not look
                raise UnreadableLogError(f"{path}: {error}; prune the packets up to it") from error
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
    packets = reports = 0
    for row in rows:
        packets, reports = packets + isinstance(row, Packet), reports + isinstance(row, LoggedReport)
        if not namespace or (row.namespace == namespace if isinstance(row, Packet) else True):
            is_there = is_there or isinstance(row, Packet)
            yield row
    if reports and not packets:
        raise UnreadableLogError(
            f"{path} has {counted(reports, 'report')} and no packet: they belong to none; export the packets with them"
        )
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
            # Most of an export may be memories, with their vectors: to parse those takes far longer than all the rest.
            if line.startswith(MEMORY) and line.endswith(b"}\n") and b'"packet_id"' not in line:
                continue
            try:
                row = _row(line)
            except ValueError as error:
                raise UnreadableLogError(
                    f"{path}, line {number}: {error}; export the log again, or leave the line out"
                ) from error
            if isinstance(row, Packet | LoggedReport):
                yield row
    progress(size, size)


def _row(line: bytes) -> LogRow | None:
    """What a line holds of packets and reports; None for any other whole object. ValueError says what is wrong."""
    if not line.strip():
        return None
    given = read_line(line)
    names_a_packet = "packet_id" in given and "content" not in given
    return measured(read_object(given)[1]) if names_a_packet or given.get("type") in ("packet", "report") else None


def measured(row: LogRow) -> LogRow:
    """The same row. ValueError if it is a packet of this version's features with more or fewer numbers."""
    if isinstance(row, Packet) and row.feature_schema_hash == SCHEMA_HASH:
        for name, items in (("items", row.items), ("undrawn", row.undrawn)):
            for index, item in enumerate(items):
                for numbers, wanted in (("features", FEATURE_NAMES), ("raw", RAW_NAMES)):
                    if (count := len(getattr(item, numbers))) != len(wanted):
                        raise ValueError(
                            f"packet {row.packet_id!r}: {name}[{index}].{numbers} has {counted(count, 'number')}; "
                            f"must have {len(wanted)}, as in feature schema {SCHEMA_HASH}"
                        )
    return row
