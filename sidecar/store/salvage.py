"""Saves what can be read of a damaged store into a new folder. The damaged one is not touched."""

from __future__ import annotations

import contextlib
import logging
import mmap
import shutil
import sqlite3
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sidecar.domain import Micros
from sidecar.errors import StoreDamagedError, StoreLockedError, StoreUnavailableError
from sidecar.store import losses, rebuild
from sidecar.store.backup import DATABASE, clear_all_gaps, descriptor
from sidecar.store.files import StoreFiles, claim
from sidecar.store.invariants import ORPHANS
from sidecar.store.losses import Lost
from sidecar.store.pages import INDEX_LEAF, TABLE_LEAF, Pages, Record, Value
from sidecar.store.readers import connect
from sidecar.store.repair import put_right
from sidecar.store.restore import new_store
from sidecar.store.schema import migrate

_log = logging.getLogger(__name__)

_FITS: dict[str, tuple[type, ...]] = {"INTEGER": (int,), "REAL": (int, float), "TEXT": (str,), "BLOB": (bytes,)}


@dataclass(frozen=True, slots=True)
class Table:
    """How the rows of a table lie in a page. `rowid` is the place of the column that the rowid stands for; `is_unique`
    says that no entry of an index looks like a row, or that such an entry would be taken out as an orphan."""

    name: str
    page: int
    columns: tuple[str, ...]
    types: tuple[str, ...]
    optional: tuple[bool, ...]
    rowid: int | None
    is_unique: bool = True

    def values_of(self, record: Record) -> tuple[Value, ...] | None:
        """The record as values of the columns; None if it is no row of this table."""
        if (record.rowid is None) != (self.page == INDEX_LEAF) or len(record.values) != len(self.columns):
            return None
        values = list(record.values)
        if self.rowid is not None:
            if values[self.rowid] is not None:
                return None
            values[self.rowid] = record.rowid
        for value, kind, may_be_unset in zip(values, self.types, self.optional, strict=True):
            if not (may_be_unset if value is None else isinstance(value, _FITS[kind])):
                return None
            if isinstance(value, str) and "\0" in value:  # no text of ours: zeros of a page that was lost
                return None
        return tuple(values)


@dataclass(frozen=True, slots=True)
class Saved:
    """How many rows there are in the new store, by table, and what is known to be lost."""

    rows: dict[str, int]
    lost: tuple[Lost, ...]


_LAST_KEYS = Table("sqlite_sequence", TABLE_LEAF, ("name", "seq"), ("TEXT", "INTEGER"), (False, False), None)
"""Declared without types."""


def salvage(folder: Path, target: Path, now: Micros) -> Saved:
    """Makes the store in `target` of every row that can be read in `folder`, and puts right what hangs together.

    Raises StoreDamagedError if there is no file to read, and
    InvalidRequestError, StoreLockedError or BackupFailedError for one of the folders.
    """
    database = folder / DATABASE
    if not database.is_file():
        raise StoreDamagedError(f"there is no {DATABASE} in {folder}; restore a backup")
    if not database.stat().st_size:
        raise StoreDamagedError(f"{database} is empty, so nothing can be saved; restore a backup")
    with _held(folder), new_store(target, now) as partial:
        with contextlib.closing(connect(partial, writes=True)) as connection:
            connection.execute("PRAGMA secure_delete = ON").fetchall()
            migrate(connection)
            known = tables(connection)
            connection.execute("BEGIN IMMEDIATE")
            with _newest(folder, target) as data:
                missing = losses.named(Pages.of(data))
                for table, values in _rows(data, known):
                    marks = ", ".join("?" * len(values))
                    columns = ", ".join(table.columns)
                    connection.execute(f"INSERT OR IGNORE INTO {table.name} ({columns}) VALUES ({marks})", values)
            connection.execute("COMMIT")
            lost = tuple(losses.of(connection, missing))
            put_right(connection, now)
            counts = {
                table.name: int(connection.execute(f"SELECT COUNT(*) FROM {table.name}").fetchone()[0])
                for table in known
            }
        with descriptor(partial) as file:
            clear_all_gaps(file)
    return Saved(counts, lost)


def tables(connection: sqlite3.Connection) -> list[Table]:
    """Every table of the schema whose rows are no other's, and the one of the last keys, as they lie in a page."""
    found = [_LAST_KEYS]
    entries = list(_index_entries(connection))
    checked = {table for table, _, _ in ORPHANS}
    rows = connection.execute("SELECT name, sql FROM sqlite_master WHERE type = 'table' AND sql NOT NULL").fetchall()
    for name, sql in rows:
        if name in rebuild.DERIVED or name.startswith("sqlite_"):
            continue
        columns = connection.execute(f"PRAGMA table_info({name})").fetchall()
        without_rowid = sql.rstrip().endswith("WITHOUT ROWID")
        if without_rowid:  # the key comes first
            columns = sorted((c for c in columns if c[5]), key=lambda c: c[5]) + [c for c in columns if not c[5]]
        keys = [place for place, column in enumerate(columns) if column[5]]
        is_rowid = not without_rowid and len(keys) == 1 and columns[keys[0]][2] == "INTEGER"
        found.append(
            Table(
                name=name,
                page=INDEX_LEAF if without_rowid else TABLE_LEAF,
                columns=tuple(column[1] for column in columns),
                types=tuple(column[2] for column in columns),
                optional=tuple(not column[3] and not column[5] for column in columns),
                rowid=keys[0] if is_rowid else None,
                is_unique=name in checked or not without_rowid or not any(_alike(columns, each) for each in entries),
            )
        )
    return found


def _index_entries(connection: sqlite3.Connection) -> Iterator[list[tuple[Any, ...]]]:
    """The columns of each index, as table_info has them, with those that point to its row."""
    for (table,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall():
        columns = {column[0]: column for column in connection.execute(f"PRAGMA table_info({table})")}
        columns[-1] = (-1, "rowid", "INTEGER", 1, None, 0)
        indexes = "SELECT i.name FROM pragma_index_list(?) i JOIN sqlite_master s ON s.name = i.name"
        for (index,) in connection.execute(indexes, (table,)).fetchall():
            yield [columns[part[1]] for part in connection.execute(f"PRAGMA index_xinfo({index})")]


def _alike(one: list[tuple[Any, ...]], other: list[tuple[Any, ...]]) -> bool:
    return len(one) == len(other) and all(
        set(_FITS[a[2]]) & set(_FITS[b[2]]) or not (a[3] or b[3]) for a, b in zip(one, other, strict=True)
    )


def _rows(data: mmap.mmap, known: list[Table]) -> Iterator[tuple[Table, tuple[Value, ...]]]:
    """Rows are known by the tree that their page belongs to; where that is lost, by what they look like."""
    pages = Pages.of(data)
    owners = pages.owners()
    by_name = {table.name: table for table in known}
    unique = [table for table in known if table.is_unique]
    for number, record in pages.records():
        owner = by_name.get(owners.get(number, ""))
        for table in [owner, *unique] if owner else unique:
            values = table.values_of(record)
            if values is not None:
                yield table, values
                break


@contextlib.contextmanager
def _held(folder: Path) -> Iterator[None]:
    """Keeps servers away from the damaged store. One that cannot be written to needs no lock: no server opens it."""
    files: StoreFiles | None = None
    try:
        files = claim(folder)
    except StoreLockedError:
        raise
    except StoreUnavailableError as error:
        _log.warning("no lock is held on the damaged store: %s", error)
    try:
        yield
    finally:
        if files is not None:
            files.release()


@contextlib.contextmanager
def _newest(folder: Path, beside: Path) -> Iterator[mmap.mmap]:
    """The bytes of the database with its log, as far as SQLite still brings them together, in a copy."""
    with tempfile.TemporaryDirectory(prefix=".salvage-", dir=beside) as work:
        copy = Path(work) / DATABASE
        for suffix in ("", "-wal"):
            if (folder / f"{DATABASE}{suffix}").exists():
                shutil.copyfile(folder / f"{DATABASE}{suffix}", f"{copy}{suffix}")
        try:
            with contextlib.closing(connect(copy, writes=True)) as connection:
                connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
        except sqlite3.Error as error:
            _log.warning("what was not yet moved from the log into the database is lost: %s", error)
        with copy.open("rb") as file, mmap.mmap(file.fileno(), 0, prot=mmap.PROT_READ) as data:
            yield data
