"""The registry of models: their files, as archives, and the history of who had which role."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from dataclasses import dataclass

from sidecar.domain import Change, Micros
from sidecar.store import memories, meta, snapshots
from sidecar.store.jobs import Done
from sidecar.weights.roles import Action, Role, RoleEvent

_COLUMNS = "model_number, version, form, create_time, load_time, base_version, preview, gate"


@dataclass(frozen=True, slots=True)
class ModelRow:
    """A model in the registry. `create_time` is the artifact's own, `load_time` when it came in; `gate` what its
    promotion gates said. `number` grows with each that comes in; 0 before."""

    version: str
    form: str
    create_time: Micros
    load_time: Micros
    base_version: str
    preview: bool
    gate: str
    number: int = 0


def place(
    connection: sqlite3.Connection,
    model: tuple[ModelRow, bytes] | None,
    events: Sequence[RoleEvent],
    identity: bytes | None,
) -> Done[None]:
    """Takes a model with its archive in, and writes events down, as one. With `identity`, what ranks is another from
    now on: all namespaces move on, so that no packet of before looks fresh."""
    if model is not None:
        row, archive = model
        values = (row.version, row.form, row.create_time, row.load_time, row.base_version, int(row.preview), row.gate)
        connection.execute(
            "INSERT INTO models (version, form, create_time, load_time, base_version, preview, gate, archive)"
            " VALUES (?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT (version) DO UPDATE SET preview = excluded.preview,"
            " gate = excluded.gate, archive = excluded.archive",
            (*values, archive),
        )
    connection.executemany(
        "INSERT INTO model_roles (time, role, version, action, share, reason) VALUES (?, ?, ?, ?, ?, ?)",
        [(each.time, each.role, each.version, each.action, each.share, each.reason) for each in events],
    )
    if identity is None:
        return Done(None)
    meta.put(connection, meta.RANKING, identity)
    changes = [Change(name, memories.bump(connection, name)) for name in snapshots.all_namespaces(connection)]
    return Done(None, changes[0] if changes else None, more=tuple(changes[1:]))


def events(connection: sqlite3.Connection) -> list[RoleEvent]:
    """The whole history, oldest first."""
    rows = connection.execute(
        "SELECT time, role, version, action, share, reason FROM model_roles ORDER BY event_number"
    ).fetchall()
    return [RoleEvent(row[0], Role(row[1]), row[2], Action(row[3]), row[4], row[5]) for row in rows]


def page(connection: sqlite3.Connection, before: int | None, limit: int) -> list[ModelRow]:
    """At most `limit` models that came in before number `before`, newest first."""
    where, values = ("", ()) if before is None else ("WHERE model_number < ?", (before,))
    rows = connection.execute(
        f"SELECT {_COLUMNS} FROM models {where} ORDER BY model_number DESC LIMIT ?", (*values, limit)
    ).fetchall()
    return [_model(row) for row in rows]


def find(connection: sqlite3.Connection, version: str) -> tuple[ModelRow, bytes] | None:
    """A model and its archive."""
    row = connection.execute(f"SELECT {_COLUMNS}, archive FROM models WHERE version = ?", (version,)).fetchone()
    return None if row is None else (_model(row[:-1]), bytes(row[-1]))


def _model(row: tuple[object, ...]) -> ModelRow:
    number, version, form, create_time, load_time, base_version, preview, gate = row
    return ModelRow(
        version=str(version),
        form=str(form),
        create_time=int(str(create_time)),
        load_time=int(str(load_time)),
        base_version=str(base_version),
        preview=bool(preview),
        gate=str(gate),
        number=int(str(number)),
    )
