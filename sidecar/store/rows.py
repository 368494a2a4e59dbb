"""How a memory stands in its row, and how rows are written."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Sequence
from functools import cache
from itertools import chain
from typing import Any

import numpy as np

from sidecar.domain import Memory

Row = tuple[Any, ...]

_COLUMNS = (
    "memory_id",
    "content",
    "kind",
    "create_time",
    "update_time",
    "valid_from_time",
    "valid_until_time",
    "superseded_by",
    "source_thread",
    "source_sequence",
    "subject",
    "tags",
    "metadata",
    "relevance",
    "importance_override",
    "emotion",
    "pinned",
    "suppressed",
    "token_count",
    "embedding",
    "tokens",
    "importance_content",
    "importance_use",
    "helpful",
    "unhelpful",
)
UPDATE_TIME = _COLUMNS.index("update_time")

COLUMNS = f"{', '.join(_COLUMNS)}, memory_key"
"""What `from_row` reads."""
SELECT_MEMORY = f"SELECT {COLUMNS} FROM memories"
SELECT_TEXT = SELECT_MEMORY.replace(" embedding,", " NULL,")
"""The same without the vectors."""
INSERT_MEMORY = (
    f"INSERT INTO memories ({', '.join(_COLUMNS)}, namespace) VALUES ({', '.join('?' * (len(_COLUMNS) + 1))})"
)
INSERT_KEYED = f"INSERT INTO memories ({COLUMNS}, namespace)"
"""The same with its key, for `insert_rows`."""
UPDATE_MEMORY = f"UPDATE memories SET {', '.join(f'{column} = ?' for column in _COLUMNS)} WHERE memory_key = ?"


MOST_TOGETHER = 64
"""Rows that one statement inserts: each number of rows is a statement of its own, and SQLite keeps a few hundred."""


def insert_rows(connection: sqlite3.Connection, insert: str, rows: Sequence[Row]) -> None:
    """Inserts rows by `insert`, an INSERT up to its column names. In one statement if they are few: between two of them
    another thread may take its turn."""
    if not rows:
        return
    if len(rows) > MOST_TOGETHER:
        connection.executemany(_insert(insert, len(rows[0]), 1), rows)
    else:
        connection.execute(_insert(insert, len(rows[0]), len(rows)), tuple(chain.from_iterable(rows)))


@cache
def _insert(insert: str, columns: int, rows: int) -> str:
    row = f"({', '.join('?' * columns)})"
    return f"{insert} VALUES {', '.join([row] * rows)}"


_JSON = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), sort_keys=True, allow_nan=False)


def to_row(memory: Memory) -> Row:
    """The memory's columns, without key and namespace."""
    return (
        memory.id,
        memory.content,
        memory.kind,
        memory.create_time,
        memory.update_time,
        memory.valid_from_time,
        memory.valid_until_time,
        memory.superseded_by,
        memory.source_thread,
        memory.source_sequence,
        memory.subject,
        to_json(list(memory.tags)) if memory.tags else "[]",
        to_json(dict(memory.metadata)) if memory.metadata else "{}",
        memory.relevance,
        memory.importance_override,
        memory.emotion,
        int(memory.pinned),
        int(memory.suppressed),
        memory.token_count,
        None if memory.embedding is None else np.ascontiguousarray(memory.embedding, "<f4").tobytes(),
        memory.tokens,
        memory.importance_content,
        memory.importance_use,
        memory.helpful,
        memory.unhelpful,
    )


def from_row(row: Row) -> Memory:
    """The memory of a row of SELECT_MEMORY."""
    return Memory(
        id=row[0],
        content=row[1],
        kind=row[2],
        create_time=row[3],
        update_time=row[4],
        valid_from_time=row[5],
        valid_until_time=row[6],
        superseded_by=row[7],
        source_thread=row[8],
        source_sequence=row[9],
        subject=row[10],
        tags=() if row[11] == "[]" else tuple(json.loads(row[11])),
        metadata={} if row[12] == "{}" else json.loads(row[12]),
        relevance=row[13],
        importance_override=row[14],
        emotion=row[15],
        pinned=bool(row[16]),
        suppressed=bool(row[17]),
        token_count=row[18],
        embedding=None if row[19] is None else np.frombuffer(row[19], "<f4"),
        tokens=row[20],
        importance_content=row[21],
        importance_use=row[22],
        helpful=row[23],
        unhelpful=row[24],
        key=row[25],
    )


def to_json(value: object) -> str:
    """JSON in one form for one value. ValueError: a number that JSON does not have."""
    return _JSON.encode(value)
