"""What a salvage could not read, as far as what it could read tells: the unique indexes name rows by their ids, and
each namespace says how many memories it holds."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from sidecar.store.invariants import MEMORY_COUNTS
from sidecar.store.pages import Pages, Value

_INDEXES = {f"sqlite_autoindex_{table}_1": table for table in ("memories", "packets", "reports", "ratings")}
"""By name of the index, the table. An entry is the columns of the unique key, then the row's number."""


@dataclass(frozen=True, slots=True)
class Lost:
    """Rows of a table that were there and could not be read: how many at least, and their unique keys where known."""

    table: str
    count: int
    ids: tuple[str, ...]


def named(pages: Pages) -> dict[str, dict[int, str]]:
    """By table, the rows that its index names: row number to unique key."""
    found: dict[str, dict[int, str]] = {table: {} for table in _INDEXES.values()}
    owners = pages.owners()
    for number, record in pages.records():
        table = _INDEXES.get(owners.get(number, ""))
        if table is not None and record.rowid is None and len(record.values) > 1:
            *key, row = record.values
            if isinstance(row, int):
                found[table][row] = "/".join(map(_shown, key))
    return found


def of(connection: sqlite3.Connection, missing: Mapping[str, Mapping[int, str]]) -> Iterator[Lost]:
    """What is lost, by what is named and what was read into this database. To be called before it is put right."""
    for table, rows in missing.items():
        there = {row for (row,) in connection.execute(f"SELECT rowid FROM {table}")}
        ids = tuple(name for row, name in sorted(rows.items()) if row not in there)
        count = max(len(ids), _short(connection)) if table == "memories" else len(ids)
        if count:
            yield Lost(table, count, ids)


def _short(connection: sqlite3.Connection) -> int:
    """By how many memories namespaces hold less than they say."""
    return sum(max(0, says - holds) for _, says, holds in connection.execute(MEMORY_COUNTS))


def _shown(value: Value) -> str:
    return value.hex() if isinstance(value, bytes) else str(value)
