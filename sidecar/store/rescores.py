"""Rescore runs: reads what they go by, writes and undoes them. A run is one transaction: it is seen whole, or not.

The score before stays beside the new one: `rescored` has both for every memory that a run moved.
"""

from __future__ import annotations

import json
import sqlite3
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from sidecar.domain import Change, ImportancePart, Micros, UseCounts, UsePriors
from sidecar.errors import NotFoundError
from sidecar.store import importance, memories, meta, tally
from sidecar.store.jobs import Done
from sidecar.store.merge import MILLION


class RunNotFoundError(NotFoundError):
    """No rescore run of that id."""

    reason = "RUN_NOT_FOUND"


@dataclass(frozen=True, slots=True)
class ScoredMemory:
    """A memory with feedback, or with a use part: namespace, id, key, kind, the three parts, and its counts."""

    namespace: str
    memory_id: str
    key: int
    kind: str
    content: float | None
    use: float | None
    override: float | None
    counts: UseCounts


@dataclass(frozen=True, slots=True)
class Feedback:
    """What a rescore goes by, as of one moment.

    `explicit` are (used, seen) of each memory by kind, in sessions, from complete explicit reports; `confirmed` and
    `refuted` count inferred uses that have an explicit word beside them.
    """

    memories: Sequence[ScoredMemory]
    memory_count: int
    explicit: Mapping[str, Sequence[tuple[float, float]]]
    confirmed: int
    refuted: int


@dataclass(frozen=True, slots=True)
class Run:
    """What a run writes. `uses` are the new use scores by memory key, and `parts` how they came about, for those that
    are not None. Priors and precision are None where the run is of one namespace, for they belong to all."""

    run_id: str
    namespace: str
    memory_count: int
    uses: Mapping[int, float | None]
    parts: Mapping[int, ImportancePart]
    priors: Mapping[str, tuple[float, float]] | None
    precision: tuple[int, int] | None


def read(connection: sqlite3.Connection, namespace: str) -> Feedback:
    """The feedback on a namespace; "" means on all."""
    where, values = ("WHERE m.namespace = ?", (namespace,)) if namespace else ("", ())
    rows = connection.execute(
        "SELECT m.namespace, m.memory_id, m.memory_key, m.kind, m.importance_content, m.importance_use,"
        f" m.importance_override FROM memories m {where}",
        values,
    ).fetchall()
    counts: dict[int, UseCounts] = {}
    for name in [namespace] if namespace else sorted({row[0] for row in rows}):
        counts |= tally.build_counts(tally.read_counts(connection, name), meta.agent_sessions(connection))
    found = [
        ScoredMemory(row[0], row[1], row[2], row[3], row[4], row[5], row[6], counts.get(row[2], UseCounts()))
        for row in rows
        if row[5] is not None or (row[2] in counts and counts[row[2]].seen > 0)
    ]
    return Feedback(found, len(rows), _explicit(connection), *_precision(connection))


def _explicit(connection: sqlite3.Connection) -> Mapping[str, Sequence[tuple[float, float]]]:
    by_kind: dict[str, list[tuple[float, float]]] = defaultdict(list)
    for kind, used, seen in connection.execute(
        "SELECT kind, SUM(used), SUM(seen) FROM ("
        "SELECT m.kind AS kind, u.memory_key AS memory_key, MAX(u.used_millionths) AS used,"
        " MAX(u.seen_millionths) AS seen FROM packet_uses u JOIN packets p ON p.packet_key = u.packet_key"
        " JOIN memories m ON m.memory_key = u.memory_key WHERE u.channel = 'explicit' AND u.seen_millionths > 0"
        " GROUP BY u.memory_key, p.session_key) GROUP BY memory_key ORDER BY memory_key"
    ):
        by_kind[kind].append((used / MILLION, seen / MILLION))
    return by_kind


def _precision(connection: sqlite3.Connection) -> tuple[int, int]:
    confirmed, refuted = connection.execute(
        "SELECT COALESCE(SUM(e.used), 0), COALESCE(SUM(1 - e.used), 0) FROM packet_uses i JOIN packet_uses e"
        " ON e.packet_key = i.packet_key AND e.memory_id = i.memory_id AND e.channel = 'explicit'"
        " WHERE i.channel = 'inferred' AND i.used = 1"
    ).fetchone()
    return int(confirmed), int(refuted)


def apply(connection: sqlite3.Connection, run: Run, now: Micros) -> Done[int]:
    """Writes a run down, with the scores before it. Returns how many memories it moved."""
    number = connection.execute(
        "INSERT INTO rescore_runs (run_id, namespace, create_time, memory_count, moved_count, priors_before,"
        " precision_before) VALUES (?, ?, ?, ?, 0, ?, ?)",
        (
            run.run_id,
            run.namespace,
            now,
            run.memory_count,
            json.dumps(meta.use_priors(connection)),
            json.dumps(meta.inferred_precision(connection)),
        ),
    ).lastrowid
    connection.executemany(
        "INSERT INTO rescored (memory_key, run_number, before_use, after_use, before_part)"
        " SELECT memory_key, ?, importance_use, ?, ? FROM memories WHERE memory_key = ?",
        [(number, use, importance.use_as_text(connection, key), key) for key, use in run.uses.items()],
    )
    for key in run.uses:
        importance.put_use(connection, key, run.parts.get(key))
    moved = connection.execute(
        "UPDATE memories SET importance_use = (SELECT r.after_use FROM rescored r"
        " WHERE r.memory_key = memories.memory_key AND r.run_number = ?)"
        " WHERE memory_key IN (SELECT memory_key FROM rescored WHERE run_number = ?)",
        (number, number),
    ).rowcount
    connection.execute("UPDATE rescore_runs SET moved_count = ? WHERE run_number = ?", (moved, number))
    if run.priors is not None:
        meta.put_use_priors(connection, run.run_id, run.priors)
    if run.precision is not None:
        meta.put_inferred_precision(connection, *run.precision)
    return _changed(connection, now, list(run.uses), run.namespace, moved, run.priors)


def restore(connection: sqlite3.Connection, run_id: str, now: Micros) -> Done[int]:
    """Brings back the scores from before a run, and so undoes the runs after it too. Returns how many came back.

    Raises RunNotFoundError.
    """
    row = connection.execute(
        "SELECT run_number, namespace, priors_before, precision_before FROM rescore_runs WHERE run_id = ?", (run_id,)
    ).fetchone()
    if row is None:
        raise RunNotFoundError(f"run_id: no rescore run {run_id!r}; take it from the answer of the rescore")
    number, namespace, priors, precision = row
    of_run = "r.run_number >= ?"
    values: tuple[object, ...] = (number,)
    if namespace:
        of_run += " AND r.memory_key IN (SELECT memory_key FROM memories WHERE namespace = ?)"
        values = (number, namespace)
    keys = [
        key for (key,) in connection.execute(f"SELECT DISTINCT r.memory_key FROM rescored r WHERE {of_run}", values)
    ]
    before = connection.execute(
        "SELECT memory_key, before_part, MIN(run_number) FROM rescored WHERE run_number >= ? GROUP BY memory_key",
        (number,),
    ).fetchall()
    parts = {key: text for key, text, _ in before}
    for key in keys:
        importance.put_use_text(connection, key, parts[key])
    restored = connection.execute(
        "UPDATE memories SET importance_use = (SELECT r.before_use FROM rescored r"
        " WHERE r.memory_key = memories.memory_key AND r.run_number >= ? ORDER BY r.run_number LIMIT 1)"
        f" WHERE memory_key IN (SELECT r.memory_key FROM rescored r WHERE {of_run})",
        (number, *values),
    ).rowcount
    connection.execute(
        "UPDATE rescore_runs SET restore_time = ? WHERE run_number >= ? AND (namespace = ? OR ? = '')",
        (now, number, namespace, namespace),
    )
    brought = None
    if not namespace:
        brought = {kind: (pair[0], pair[1]) for kind, pair in json.loads(priors).items()}
        meta.put_use_priors(connection, "", brought)
        meta.put_inferred_precision(connection, *json.loads(precision))
    return _changed(connection, now, keys, namespace, restored, brought)


def _changed(
    connection: sqlite3.Connection,
    now: Micros,
    keys: Sequence[int],
    namespace: str,
    moved: int,
    priors: Mapping[str, tuple[float, float]] | None,
) -> Done[int]:
    """Moves the namespaces on, all of them if the priors changed, and tells subscribers of each as a whole."""
    uses: dict[str, dict[int, float | None]] = defaultdict(dict)
    for key in keys:
        row = connection.execute(
            "SELECT namespace, importance_use FROM memories WHERE memory_key = ?", (key,)
        ).fetchone()
        if row is not None:
            uses[row[0]][key] = row[1]
    names = [namespace] if namespace else [row[0] for row in connection.execute("SELECT namespace FROM namespaces")]
    versions = {name: memories.bump(connection, name) for name in names if priors is not None or name in uses}
    connection.executemany(
        "INSERT INTO rescore_versions (namespace, score_version, time) VALUES (?, ?, ?)",
        [(name, version, now) for name, version in versions.items()],
    )
    moved_priors = None if priors is None else UsePriors(priors, versions)
    changes = [
        Change(name, version, importance_uses=uses.get(name, {}), use_priors=moved_priors)
        for name, version in versions.items()
    ]
    return Done(moved, changes[0] if changes else None, more=tuple(changes[1:]))
