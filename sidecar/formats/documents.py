"""One JSON document with many memories: a list, or an object that has one, as data for evaluation has. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from sidecar.formats import jsonl
from sidecar.formats.items import Item, MemoryItem
from sidecar.formats.mapping import Path

NAMES = {"created_at": "create_time", "valid_until": "valid_until_time", "importance": "importance_override"}
"""Names of fields in data for evaluation, and the API's."""
LISTS = ("memories", "results", "data", "items")
"""Where the list stands in an object."""


def read(text: bytes, maps: Mapping[str, Path], aside: dict[str, int] | None = None) -> Iterator[Item]:
    """The memories of the document, numbered from 1. ValueError if it is no document with a list of objects.

    Of data for evaluation, `{id, memories, queries}`, a session becomes the source thread; the queries stay behind.
    """
    document = jsonl.parse(text.decode("utf-8-sig"))
    found = document
    if isinstance(document, dict):
        found = next((document[name] for name in LISTS if isinstance(document.get(name), list)), None)
    if not isinstance(found, list):
        raise ValueError(f"holds no list of memories: write a list, or an object with one under {', '.join(LISTS)}")
    is_evaluation = isinstance(document, dict) and isinstance(document.get("queries"), list)
    if not is_evaluation or maps:
        yield from jsonl.read_objects(found, maps, aside)
        return
    name = document.get("id")
    for place, item in enumerate(jsonl.read_objects(map(_renamed, found), {}), 1):
        if isinstance(item, MemoryItem):
            session = found[place - 1].get("session")
            fields = dict(item.fields)
            if session is not None and "source_thread" not in fields:
                fields |= {"source_thread": f"{name}/{session}" if name else str(session), "source_sequence": place}
            item = MemoryItem(place, fields)
        yield item


def _renamed(given: Any) -> Any:
    if not isinstance(given, dict):
        return given
    return {NAMES.get(name, name): value for name, value in given.items() if name != "session"}
