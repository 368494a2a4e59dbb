"""The parts of an importance: how each came about, beside the scores that stand with the memories.

Every function works inside the transaction of the connection that it is given.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from sidecar.domain import (
    ImportanceLine,
    ImportancePart,
    Memory,
    Micros,
    PartName,
    ScoredContent,
    says_the_same,
)
from sidecar.features.importance import marks_value
from sidecar.store import importance_links as links
from sidecar.store.rows import SELECT_MEMORY, from_row, to_json

_PUT = (
    "INSERT OR REPLACE INTO importance_parts (memory_key, part, confidence, time, factors, lines)"
    " VALUES (?, ?, ?, ?, ?, ?)"
)
SUPERSEDED = "superseded"
"""The line of what is replaced."""
_NOBODY = Memory(id="", content="")


def settled(
    connection: sqlite3.Connection,
    namespace: str,
    fields: Mapping[str, Any],
    old: Memory | None,
    scored: ScoredContent | None,
    score_version: int,
) -> tuple[Mapping[str, Any], ScoredContent | None]:
    """The fields of a write with the content score that belongs to them, and how that came about where it is new.

    A score that was worked out for another state of the memory is not taken, nor one of a namespace that has moved on
    from there to `score_version`, nor while another memory that it concerns is scored; then what the memory says now is
    yet to be scored.
    """
    if old is None and scored is None:
        return fields, None
    new = replace(old or _NOBODY, **fields)
    is_same = old is not None and says_the_same(old, new)
    if (
        scored is not None
        and not is_same  # it is scored beside those whose change put it up, and a write of the same changes nothing
        and scored.holds_for(new)
        and scored.score_version == score_version
        and not links.any_waits(connection, namespace, (*scored.concerns, *scored.repeats))
    ):
        return {**fields, "importance_content": scored.part.score}, scored
    if old is None or is_same or "importance_content" in fields:
        return fields, None
    return {**fields, "importance_content": None}, None


def follow(
    connection: sqlite3.Connection,
    namespace: str,
    old: Memory | None,
    new: Memory,
    scored: ScoredContent | None,
    now: Micros,
    together: Collection[int] = (),
) -> list[int]:
    """Writes the parts that a write of a memory leaves: its content part, and the user's word where it changed. Returns
    the keys of other memories that are to be scored anew, for theirs followed from this one as it was; `together` are
    those that were scored beside it as it is now."""
    told: list[int] = []
    if old is None or not says_the_same(old, new):
        told += [key for key in links.followers(connection, namespace, [new.id]) if key not in together]
        if old is not None:
            links.forget(connection, new.key)
    if scored is not None:
        put(connection, new.key, PartName.CONTENT, scored.part)
        told += links.concerned(connection, namespace, new, scored)
    if new.importance_override != (None if old is None else old.importance_override):
        follow_user(connection, new, now)
    return links.put_up(connection, told)


def follow_new(connection: sqlite3.Connection, namespace: str, memories: Sequence[Memory], now: Micros) -> list[int]:
    """The same as `follow` for many new memories that are scored later."""
    for memory in memories:
        if memory.importance_override is not None:
            follow_user(connection, memory, now)
    return links.put_up(connection, links.followers(connection, namespace, [memory.id for memory in memories]))


def told_of_score(
    connection: sqlite3.Connection,
    namespace: str,
    memory: Memory,
    scored: ScoredContent,
    was_superseded: bool | None,
) -> list[int]:
    """The keys of memories whose content parts it is something to that a stored memory was scored; `was_superseded` as
    of the score before, None without one. Writes nothing."""
    if was_superseded == scored.is_superseded:
        return []  # it is to others what it was
    told = links.concerned(connection, namespace, memory, scored)
    if was_superseded is not None or scored.is_superseded:
        told += links.followers(connection, namespace, [memory.id])
    return told


def follow_user(connection: sqlite3.Connection, memory: Memory, now: Micros) -> None:
    """Writes the user part of a memory as its rating and marks stand."""
    word, marks = memory.importance_override, memory.helpful + memory.unhelpful
    if word is not None:
        line, sure, told = ("rating", word), 1.0, f"rated {word:.2f} by the user"
    elif marks:
        # Marks are as sure as they are many: one is worth half, three are worth three quarters.
        sure = marks / (marks + 1.0)
        line, told = ("marks", marks_value(memory.helpful, memory.unhelpful)), _marked(memory)
    else:
        _drop(connection, memory.key, PartName.USER)
        return
    name, value = line
    put(
        connection,
        memory.key,
        PartName.USER,
        ImportancePart(sure, now, (told,), (ImportanceLine(name, value, 1.0, value),)),
    )


def put_contents(
    connection: sqlite3.Connection, namespace: str, scored: Sequence[ScoredContent], score_version: int
) -> dict[int, float | None]:
    """Writes content parts that were worked out after the write, where the memory has none and still says what was
    scored, and what it was compared with stands as it did. Returns the content scores by memory key, None for those
    that are to be scored anew."""
    scores: dict[int, float | None] = {}
    for each in scored:
        row = connection.execute(f"{SELECT_MEMORY} WHERE memory_key = ?", (each.memory.key,)).fetchone()
        if row is None or not each.holds_for(memory := from_row(row)) or memory.importance_content is not None:
            continue
        if each.score_version != score_version and not links.stand(connection, namespace, each.beside):
            scores[memory.key] = None
            continue
        told = told_of_score(connection, namespace, memory, each, was_superseded(connection, memory.key))
        scores[memory.key] = each.part.score
        connection.execute(
            "UPDATE memories SET importance_content = ? WHERE memory_key = ?", (each.part.score, memory.key)
        )
        put(connection, memory.key, PartName.CONTENT, each.part)
        scores.update(dict.fromkeys(links.put_up(connection, told)))
    return scores


def was_superseded(connection: sqlite3.Connection, key: int) -> bool | None:
    """Whether something replaced a memory when it was last scored; None if it never was as it stands."""
    row = connection.execute(
        "SELECT lines FROM importance_parts WHERE memory_key = ? AND part = ?", (key, PartName.CONTENT.value)
    ).fetchone()
    return None if row is None else any(line.factor == SUPERSEDED for line in _lines(json.loads(row[0])))


def put(connection: sqlite3.Connection, key: int, name: PartName, part: ImportancePart) -> None:
    """Writes how a part came about, over what stood there."""
    connection.execute(_PUT, (key, name.value, *_to_row(part)))
    if name is PartName.CONTENT:
        links.write(connection, key, part.about)


def read(connection: sqlite3.Connection, key: int) -> dict[PartName, ImportancePart]:
    """The parts of a memory that are there, in the order of PartName."""
    rows = connection.execute(
        "SELECT p.part, p.confidence, p.time, p.factors, p.lines FROM importance_parts p JOIN memories m"
        " ON m.memory_key = p.memory_key WHERE p.memory_key = ? AND (p.part != ? OR m.importance_content IS NOT NULL)",
        (key, PartName.CONTENT.value),
    ).fetchall()
    found = {PartName(name): _from_row(*rest) for name, *rest in rows}
    if PartName.CONTENT in found:
        found[PartName.CONTENT] = replace(found[PartName.CONTENT], about=links.read(connection, key))
    return {name: found[name] for name in PartName if name in found}


def read_signals(connection: sqlite3.Connection, namespace: str) -> dict[tuple[str, str], dict[str, float | None]]:
    """(namespace, memory id) -> the values of the signals in its content part, by name; "" means of all namespaces."""
    rows = connection.execute(
        "SELECT m.namespace, m.memory_id, p.lines FROM importance_parts p"
        " JOIN memories m ON m.memory_key = p.memory_key WHERE p.part = ? AND m.importance_content IS NOT NULL"
        " AND (? = '' OR m.namespace = ?)",
        (PartName.CONTENT.value, namespace, namespace),
    )
    return {
        (name, memory_id): {line.factor: line.value for line in _lines(json.loads(lines)) if not line.is_part}
        for name, memory_id, lines in rows
    }


def put_use(connection: sqlite3.Connection, key: int, part: ImportancePart | None) -> None:
    """Writes how a use part came about; None takes it away."""
    if part is None:
        _drop(connection, key, PartName.USE)
    else:
        put(connection, key, PartName.USE, part)


def use_as_text(connection: sqlite3.Connection, key: int) -> str | None:
    """How the use part of a memory came about, as one text to keep; None without one."""
    part = read(connection, key).get(PartName.USE)
    return None if part is None else to_json(_to_row(part))


def put_use_text(connection: sqlite3.Connection, key: int, text: str | None) -> None:
    """Brings back what `use_as_text` gave."""
    put_use(connection, key, None if text is None else _from_row(*json.loads(text)))


def replace_all(connection: sqlite3.Connection, key: int, parts: Mapping[PartName, ImportancePart]) -> None:
    """Puts the parts of a memory in the place of those that it has."""
    connection.execute("DELETE FROM importance_parts WHERE memory_key = ?", (key,))
    connection.execute("DELETE FROM importance_links WHERE memory_key = ?", (key,))
    for name, part in parts.items():
        put(connection, key, name, part)


def forget_contents(connection: sqlite3.Connection) -> list[str]:
    """Takes the content part from all memories: they are to be scored anew. Returns the namespaces that had one."""
    rows = connection.execute("SELECT DISTINCT namespace FROM memories WHERE importance_content IS NOT NULL").fetchall()
    if rows:
        connection.execute("UPDATE memories SET importance_content = NULL WHERE importance_content IS NOT NULL")
    connection.execute("DELETE FROM importance_parts WHERE part = ?", (PartName.CONTENT.value,))
    connection.execute("DELETE FROM importance_links")
    return [name for (name,) in rows]


def unscored(connection: sqlite3.Connection, namespace: str, after: int, limit: int) -> list[Memory]:
    """At most `limit` memories that have no content part yet and whose keys follow `after`, oldest first."""
    rows = connection.execute(
        f"{SELECT_MEMORY} WHERE namespace = ? AND importance_content IS NULL AND memory_key > ?"
        " ORDER BY memory_key LIMIT ?",
        (namespace, after, limit),
    ).fetchall()
    return [from_row(row) for row in rows]


def unscored_count(connection: sqlite3.Connection, namespace: str) -> int:
    """How many memories have none."""
    (count,) = connection.execute(
        "SELECT COUNT(*) FROM memories WHERE namespace = ? AND importance_content IS NULL", (namespace,)
    ).fetchone()
    return int(count)


def namespaces_unscored(connection: sqlite3.Connection) -> list[str]:
    """Namespaces that hold a memory without a content part."""
    rows = connection.execute("SELECT DISTINCT namespace FROM memories WHERE importance_content IS NULL").fetchall()
    return [name for (name,) in rows]


def _to_row(part: ImportancePart) -> tuple[float, Micros, str, str]:
    lines = [[line.factor, line.value, line.weight, line.contribution] for line in part.lines]
    return part.confidence, part.time, to_json(list(part.factors)), to_json(lines)


def _from_row(confidence: float, time: Micros, factors: str, lines: str) -> ImportancePart:
    return ImportancePart(confidence, time, tuple(json.loads(factors)), _lines(json.loads(lines)))


def _lines(rows: Iterable[Sequence[Any]]) -> tuple[ImportanceLine, ...]:
    return tuple(ImportanceLine(*row) for row in rows)


def _drop(connection: sqlite3.Connection, key: int, name: PartName) -> None:
    connection.execute("DELETE FROM importance_parts WHERE memory_key = ? AND part = ?", (key, name.value))


def _marked(memory: Memory) -> str:
    counts = ((memory.helpful, "helpful"), (memory.unhelpful, "unhelpful"))
    return "marked " + " and ".join(f"{word} ({count})" for count, word in counts if count)
