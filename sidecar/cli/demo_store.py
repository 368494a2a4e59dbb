"""The made-up memories of a coding agent that come with the package, and tasks with the memories that answer them."""

from __future__ import annotations

import datetime
import json
from collections.abc import Mapping
from dataclasses import dataclass
from importlib import resources
from typing import Any

NAMES = {
    "created_at": "create_time",
    "valid_until": "valid_until_time",
    "importance": "importance_override",
}
"""The file's names for fields of the API's Memory that are called otherwise there."""
LEFT_ASIDE = ("session",)


@dataclass(frozen=True, slots=True)
class Task:
    """A task, and the ids of the memories that were judged relevant for it."""

    id: str
    text: str
    relevant: frozenset[str]


@dataclass(frozen=True, slots=True)
class DemoStore:
    """Memories as mappings that the client takes, and tasks by id."""

    memories: tuple[Mapping[str, Any], ...]
    tasks: Mapping[str, Task]

    @property
    def end(self) -> datetime.datetime:
        """Just after the last memory was learned."""
        latest: datetime.datetime = max(memory["create_time"] for memory in self.memories)
        return latest + datetime.timedelta(seconds=1)


def load() -> DemoStore:
    """Reads the file."""
    data = json.loads((resources.files("sidecar") / "demo" / "store.json").read_text(encoding="utf-8"))
    tasks = [Task(each["qid"], each["query"], frozenset(each["relevant"])) for each in data["queries"]]
    return DemoStore(tuple(map(_memory, data["memories"])), {task.id: task for task in tasks})


def _memory(given: Mapping[str, Any]) -> dict[str, Any]:
    fields = {NAMES.get(name, name): value for name, value in given.items() if name not in LEFT_ASIDE}
    for name in ("create_time", "valid_until_time"):
        if name in fields:
            fields[name] = datetime.datetime.fromisoformat(fields[name])
    return fields
