"""Reads packets and reports out of a store's file, for training: beside a running server, and without writing.

Of a memory its id is read and the numbers of its importance: what else training goes by was logged with the packet.
"""

from __future__ import annotations

import contextlib
import sqlite3
from collections import defaultdict
from collections.abc import Callable, Iterator
from pathlib import Path

from sidecar.domain import Micros
from sidecar.errors import SchemaTooNewError, StoreDamagedError, StoreNotFoundError, StoreUnavailableError
from sidecar.store import importance, models, packets, tally
from sidecar.store.failures import translate
from sidecar.store.log import LoggedReport, LogRow
from sidecar.store.readers import connect_for_reading
from sidecar.store.rows import Row
from sidecar.store.schema import APPLICATION_ID, MIGRATIONS
from sidecar.weights.roles import standing

AT_ONCE = 500
"""Packets in one read: between reads a checkpoint may pass."""


def read_log(
    database: Path,
    namespace: str = "",
    from_time: Micros | None = None,
    until_time: Micros | None = None,
    progress: Callable[[int, int], None] = lambda done, total: None,
) -> Iterator[LogRow]:
    """Packets made in [from_time, until_time), each followed by its reports; "" means of every namespace.

    `progress` hears how many packets of how many were read. Raises StoreNotFoundError if there is no such file,
    SchemaTooNewError or StoreDamagedError if it is not one that this program reads.
    """
    if not database.is_file():
        raise _no_store(database)
    try:
        with contextlib.closing(connect_for_reading(database)) as connection:
            _check(connection, database)
            yield from _rows(connection, namespace, from_time, until_time, progress)
    except sqlite3.Error as error:
        raise translate(error) from error


def has_packets(database: Path, namespace: str) -> bool:
    """True if the log has a packet of the namespace, whenever it was made. Raises as `read_log`."""
    if not database.is_file():
        raise _no_store(database)
    try:
        with contextlib.closing(connect_for_reading(database)) as connection:
            _check(connection, database)
            found = connection.execute("SELECT 1 FROM packets WHERE namespace = ? LIMIT 1", (namespace,)).fetchone()
    except sqlite3.Error as error:
        raise translate(error) from error
    return found is not None


def read_stored_model(database: Path, version: str = "") -> tuple[str, bytes] | None:
    """A model of the store's registry by its version, "" for the one that serves: version and archive. None if there is
    no such model, or the settings' weights serve. Raises as `read_log`."""
    try:
        with contextlib.closing(connect_for_reading(database)) as connection:
            _check(connection, database)
            wanted = version or standing(models.events(connection)).active
            found = models.find(connection, wanted) if wanted else None
    except sqlite3.Error as error:
        raise translate(error) from error
    return None if found is None else (found[0].version, found[1])


def read_signals(database: Path, namespace: str = "") -> dict[tuple[str, str], dict[str, float | None]]:
    """(namespace, memory id) -> the values of the signals of its importance that its stored content part has, by name;
    "" means of every namespace. Raises as `read_log`."""
    try:
        with contextlib.closing(connect_for_reading(database)) as connection:
            _check(connection, database)
            return importance.read_signals(connection, namespace)
    except sqlite3.Error as error:
        raise translate(error) from error


def _no_store(database: Path) -> StoreNotFoundError:
    return StoreNotFoundError(f"there is no store at {database}; name the folder of --data, or its memories.db")


def _check(connection: sqlite3.Connection, database: Path) -> None:
    (application,) = connection.execute("PRAGMA application_id").fetchone()
    if application != APPLICATION_ID:
        raise StoreDamagedError(f"{database} is no store of memory-ranker; name the folder of --data")
    (version,) = connection.execute("PRAGMA user_version").fetchone()
    if version > len(MIGRATIONS):
        raise SchemaTooNewError(
            f"the store has schema version {version}, this program knows versions up to {len(MIGRATIONS)}; "
            "run the newer memory-ranker"
        )
    if version < len(MIGRATIONS):
        raise StoreUnavailableError(
            f"the store has schema version {version} and this program reads {len(MIGRATIONS)}; start this version's "
            "server on it once, which brings it up to date"
        )


def _rows(
    connection: sqlite3.Connection,
    namespace: str,
    from_time: Micros | None,
    until_time: Micros | None,
    progress: Callable[[int, int], None],
) -> Iterator[LogRow]:
    of_packets = (
        "(? = '' OR p.namespace = ?) AND (? IS NULL OR p.create_time >= ?) AND (? IS NULL OR p.create_time < ?)"
    )
    window = (namespace, namespace, from_time, from_time, until_time, until_time)
    (total,) = connection.execute(f"SELECT COUNT(*) FROM packets p WHERE {of_packets}", window).fetchone()
    done, after = 0, -1
    progress(done, total)
    while True:
        connection.execute("BEGIN")
        try:
            found = connection.execute(
                f"SELECT {packets.SELECTED} FROM packets p WHERE {of_packets} AND p.packet_key > ?"
                " ORDER BY p.packet_key LIMIT ?",
                (*window, after, AT_ONCE),
            ).fetchall()
            if not found:
                return
            last = int(found[-1][0])
            exposures = _exposures(connection, after, last)
            reports = _reports(connection, after, last)
        finally:
            connection.execute("ROLLBACK")
        for row in found:
            yield packets.from_rows(row, exposures.get(row[0], []))
            yield from reports.get(row[0], ())
        done, after = done + len(found), last
        progress(done, max(total, done))


def _exposures(connection: sqlite3.Connection, after: int, last: int) -> dict[int, list[Row]]:
    """By packet key, by place, of the keys in (after, last]."""
    found: dict[int, list[Row]] = defaultdict(list)
    for key, *row in connection.execute(
        f"SELECT packet_key, {packets.EXPOSED} FROM exposures WHERE packet_key > ? AND packet_key <= ?"
        " ORDER BY packet_key, place",
        (after, last),
    ):
        found[key].append(tuple(row))
    return found


def _reports(connection: sqlite3.Connection, after: int, last: int) -> dict[int, list[LoggedReport]]:
    beside = {
        row[0]: (*row[1:5], bool(row[5]))
        for row in connection.execute(
            "SELECT r.report_id, p.packet_id, r.outcome, r.agent_id, r.request_id, r.late FROM reports r"
            " JOIN packets p ON p.packet_key = r.packet_key WHERE r.packet_key > ? AND r.packet_key <= ?",
            (after, last),
        )
    }
    return {
        key: [LoggedReport(beside[each.report_id][0], each, *beside[each.report_id][1:]) for each in of_packet]
        for key, of_packet in tally.reports_between(connection, after, last).items()
    }
