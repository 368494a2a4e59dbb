"""Makes a retried request count once: what was answered to a request id is kept for 24 hours."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

from sidecar.domain import DAY, Micros
from sidecar.errors import RequestIdReusedError
from sidecar.store.jobs import Done, Work

KEPT_FOR: Micros = DAY

_FORGET_AT_ONCE = 16
"""Old rows that one request removes: more than it adds, and never so many that others wait."""
_EVERY = 8
"""Where requests are many and small, one of so many removes old rows, as many as all of them would."""

R = TypeVar("R")


@dataclass(frozen=True, slots=True)
class Once:
    """Who asks, so that a retry is known: request ids are scoped to namespace and method.

    `payload_hash` is of the request without its request id; `encode` makes the bytes that a retry is answered with,
    from the result of the call. They must not hold the text of a memory: nobody would delete it with the memory.
    """

    method: str
    request_id: str
    payload_hash: bytes
    encode: Callable[[Any], bytes]


@dataclass(frozen=True, slots=True)
class Replayed:
    """Nothing was done: the same request had been answered with this before."""

    response: bytes


def once_only(namespace: str, once: Once | None, now: Micros, work: Work[R]) -> Work[R | Replayed]:
    """`work` that is done at most once for the request id, and remembered in the same transaction.

    The work raises RequestIdReusedError if the id came with another payload.
    """

    def run(connection: sqlite3.Connection) -> Done[R | Replayed]:
        if once is None:
            return work(connection)
        found = find(connection, namespace, once, now)
        if found is not None:
            return Done(found)
        done = work(connection)
        _keep(connection, namespace, once, now, done.value)
        _forget(connection, now, _FORGET_AT_ONCE)
        return done

    return run


def remember(
    connection: sqlite3.Connection, namespace: str, once: Once, now: Micros, result: object
) -> Replayed | None:
    """For a result that is known before anything is written: keeps it as the answer to the request. If there is an
    answer from within the last 24 hours, that is returned, and nothing done. Raises as `once_only` says."""
    number = _keep(connection, namespace, once, now, result)
    if number is None:
        return find(connection, namespace, once, now)
    if number % _EVERY == 0:
        _forget(connection, now, _EVERY * _FORGET_AT_ONCE)
    return None


def _keep(connection: sqlite3.Connection, namespace: str, once: Once, now: Micros, result: object) -> int | None:
    """The number of the last row; None, and nothing, if there is an answer from within the last 24 hours."""
    kept = connection.execute(
        "INSERT INTO requests (namespace, method, request_id, payload_hash, create_time, response)"
        " VALUES (?, ?, ?, ?, ?, ?) ON CONFLICT (namespace, method, request_id) DO UPDATE SET"
        " payload_hash = excluded.payload_hash, create_time = excluded.create_time, response = excluded.response"
        " WHERE create_time <= ?",
        (namespace, once.method, once.request_id, once.payload_hash, now, once.encode(result), now - KEPT_FOR),
    )
    return kept.lastrowid if kept.rowcount else None


def _forget(connection: sqlite3.Connection, now: Micros, most: int) -> None:
    connection.execute(
        "DELETE FROM requests WHERE rowid IN"
        " (SELECT rowid FROM requests WHERE create_time <= ? ORDER BY create_time LIMIT ?)",
        (now - KEPT_FOR, most),
    )


def find(connection: sqlite3.Connection, namespace: str, once: Once, now: Micros) -> Replayed | None:
    """What the request was answered with within the last 24 hours. Raises as `once_only` says."""
    row = connection.execute(
        "SELECT payload_hash, response FROM requests WHERE namespace = ? AND method = ? AND request_id = ?"
        " AND create_time > ?",
        (namespace, once.method, once.request_id, now - KEPT_FOR),
    ).fetchone()
    if row is None:
        return None
    if row[0] != once.payload_hash:
        raise RequestIdReusedError(
            f"request_id: {once.request_id!r} was used within 24 hours for another {once.method}; send a new one"
        )
    return Replayed(row[1])
