"""Data sets for evaluation and fitting: memories, and tasks with the memories that were judged relevant.

The format is in docs/ranking.md. Only reads files.
"""

from __future__ import annotations

import datetime
import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from sidecar.domain import DEFAULT_KIND, SECOND, Memory, Micros, NamespaceState
from sidecar.errors import Violations
from sidecar.retrieval.embedding import Embedder

BATCH = 256
_UNIX = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)


@dataclass(frozen=True, slots=True)
class JudgedTask:
    """A task with the ids of the memories that were judged relevant; at least one."""

    id: str
    text: str
    relevant: frozenset[str]
    category: str


@dataclass(frozen=True, slots=True)
class Dataset:
    """One namespace with its tasks, ranked as of just after its last memory."""

    id: str
    memories: tuple[Memory, ...]
    tasks: tuple[JudgedTask, ...]

    @property
    def as_of_time(self) -> Micros:
        """A second after the last memory was learned."""
        return max((memory.create_time for memory in self.memories), default=0) + SECOND

    def state(self, embedder: Embedder) -> NamespaceState:
        """The memories as a store would hand them over, with the vectors of that embedder."""
        memories: list[Memory] = []
        for start in range(0, len(self.memories), BATCH):
            batch = self.memories[start : start + BATCH]
            if embedder.dimension:
                vectors = embedder.embed([memory.content for memory in batch])
                batch = tuple(replace(memory, embedding=vector) for memory, vector in zip(batch, vectors, strict=True))
            memories += batch
        return NamespaceState(self.id, 1, tuple(memories), {})


def read_dataset(path: Path) -> Dataset:
    """Reads one file. OSError if it cannot be read, InvalidRequestError that lists what in it is wrong."""
    bad = Violations()
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        bad.add(f"{path}", f"is not JSON in UTF-8: {error}")
        data = {}
    bad.raise_if_any()
    memories = data.get("memories") if isinstance(data, Mapping) else None
    queries = data.get("queries") if isinstance(data, Mapping) else None
    if not isinstance(memories, list) or not isinstance(queries, list):
        bad.add(f"{path}", 'must hold {"memories": [...], "queries": [...]}')
        memories, queries = [], []
    has_threads = any(isinstance(each, Mapping) and each.get("source_thread") for each in memories)
    found = []
    for number, each in enumerate(memories):
        try:
            found.append(_memory(each, number, has_threads))
        except (KeyError, TypeError, ValueError) as error:
            bad.add(f"{path}: memories[{number}]", f"cannot be read: {type(error).__name__}: {error}")
    known = {memory.id for memory in found}
    if len(known) < len(found):
        bad.add(f"{path}: memories", "hold an id twice")
    tasks = []
    for number, each in enumerate(queries):
        try:
            task = _task(each, number)
        except (KeyError, TypeError, ValueError) as error:
            bad.add(f"{path}: queries[{number}]", f"cannot be read: {type(error).__name__}: {error}")
            continue
        if missing := sorted(task.relevant - known):
            bad.add(f"{path}: queries[{number}].relevant", f"names {', '.join(missing)}, which is no memory's id")
        if task.relevant:  # where nothing is relevant, nothing can be found
            tasks.append(task)
    bad.raise_if_any()
    return Dataset(str(data.get("id", path.stem)), tuple(found), tuple(tasks))


def _memory(given: Mapping[str, Any], number: int, has_threads: bool) -> Memory:
    learned = _time(given.get("created_at", given.get("create_time")))
    session = given.get("session")
    # A session is a thread in the order of the file, unless the file says itself what its threads are.
    thread = given.get("source_thread") if has_threads else session
    return Memory(
        id=str(given["id"]),
        content=str(given["content"]),
        kind=given.get("kind") or DEFAULT_KIND,
        create_time=learned or 0,
        update_time=learned or 0,
        valid_from_time=_time(given.get("valid_from")),
        valid_until_time=_time(given.get("valid_until")),
        superseded_by=given.get("superseded_by") or "",
        source_thread="" if thread is None else str(thread),
        source_sequence=given.get("source_sequence") if has_threads else number,
        subject=given.get("subject") or "",
        tags=tuple(given.get("tags") or ()),
        relevance=given.get("relevance"),
        importance_override=given.get("importance"),
        key=number + 1,
    )


def _task(given: Mapping[str, Any], number: int) -> JudgedTask:
    return JudgedTask(
        str(given.get("qid", number)),
        str(given["query"]),
        frozenset(map(str, given["relevant"])),
        str(given.get("category", "")),
    )


def _time(value: Any) -> Micros | None:
    if value is None:
        return None
    time = datetime.datetime.fromisoformat(value)
    if time.tzinfo is None:
        time = time.replace(tzinfo=datetime.UTC)
    return (time - _UNIX) // datetime.timedelta(microseconds=1)
