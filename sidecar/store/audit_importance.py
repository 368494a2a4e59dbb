"""What an audit of importances reads, as of one moment: how rescore runs moved them, and how scores stand to use."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable
from dataclasses import dataclass

from sidecar.domain import Micros, UseCounts
from sidecar.store import meta, tally

AUTHOR_KEYS = ("author", "agent_id", "agent")
"""Keys of a memory's metadata that say who wrote it; the first that is there counts."""


@dataclass(frozen=True, slots=True)
class Move:
    """One memory in one run: its kind, its content part as it stands, and its use part before and after."""

    memory_key: int
    kind: str
    content: float | None
    before: float | None
    after: float | None


@dataclass(frozen=True, slots=True)
class RunMoves:
    """What one rescore run that stands moved in one namespace. Memories with a user's word are left out."""

    namespace: str
    run_id: str
    create_time: Micros
    moves: tuple[Move, ...]


@dataclass(frozen=True, slots=True)
class JudgedMemory:
    """A memory that reports spoke of, without a user's word: what it is, its parts, and its use over sessions."""

    namespace: str
    kind: str
    author: str
    language: str
    content: float | None
    use: float | None
    counts: UseCounts


def read_runs(connection: sqlite3.Connection, namespace: str) -> list[RunMoves]:
    """The runs that were not undone, oldest first, by namespace; "" means of all namespaces."""
    found: dict[tuple[str, int], list[Move]] = {}
    runs: dict[int, tuple[str, Micros]] = {}
    for number, run_id, time, name, *move in connection.execute(
        "SELECT r.run_number, r.run_id, r.create_time, m.namespace, m.memory_key, m.kind, m.importance_content,"
        " d.before_use, d.after_use FROM rescore_runs r JOIN rescored d ON d.run_number = r.run_number"
        " JOIN memories m ON m.memory_key = d.memory_key WHERE r.restore_time IS NULL"
        " AND m.importance_override IS NULL AND (? = '' OR m.namespace = ?) ORDER BY r.run_number, m.memory_key",
        (namespace, namespace),
    ):
        runs[number] = (run_id, time)
        found.setdefault((name, number), []).append(Move(*move))
    return [RunMoves(name, *runs[number], tuple(moves)) for (name, number), moves in sorted(found.items())]


def read_judged(
    connection: sqlite3.Connection, namespace: str, language_of: Callable[[str], str]
) -> list[JudgedMemory]:
    """The memories with a report; "" means of all namespaces. Of a text nothing is kept but its language."""
    names = [namespace] if namespace else [row[0] for row in connection.execute("SELECT namespace FROM namespaces")]
    sessions = meta.agent_sessions(connection)
    found = []
    for name in sorted(names):
        counts = tally.build_counts(tally.read_counts(connection, name), sessions)
        for key, kind, metadata, text, content, use in connection.execute(
            "SELECT memory_key, kind, metadata, content, importance_content, importance_use FROM memories"
            " WHERE namespace = ? AND importance_override IS NULL ORDER BY memory_key",
            (name,),
        ):
            if key in counts and counts[key].seen > 0:
                author, language = _author(metadata), language_of(text)
                found.append(JudgedMemory(name, kind, author, language, content, use, counts[key]))
    return found


def _author(metadata: str) -> str:
    given = json.loads(metadata)
    return next((value for key in AUTHOR_KEYS if isinstance(value := given.get(key), str) and value), "")
