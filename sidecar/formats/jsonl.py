"""JSON Lines: one memory, or one row of the log, a line. A bad line is told by its number and hides no other. Pure."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from sidecar.formats.items import Header, Item, LogItem, MemoryItem, Problem, unsaid
from sidecar.formats.mapping import Path, memory_fields

VERSION = 1
MOST_DIGITS = 400
"""Of a whole number: no double holds so many, and Python would not read many more."""
EXPORT = "export"
LOG_TYPES = ("store_priors", "pruned_session", "memory_state", "rating", "pruned_use", "packet", "report")
"""Values of `type` that mark a row of the log; a memory has no such field."""


def read(
    lines: Iterable[bytes], maps: Mapping[str, Path] | None = None, aside: dict[str, int] | None = None
) -> Iterator[Item]:
    """What the lines hold, in their order. `aside` gets the names of the fields that `maps` leaves aside, with counts.

    With `maps` every line is a foreign object: none is a row of the log or the header of an export. Blank lines,
    carriage returns and a byte order mark are no part of a line.
    """
    maps = maps or {}
    for place, line in enumerate(lines, 1):
        text = line.removeprefix(b"\xef\xbb\xbf").strip() if place == 1 else line.strip()
        if text:
            yield _item(place, text, maps, aside)


def read_objects(given: Iterable[Any], maps: Mapping[str, Path], aside: dict[str, int] | None = None) -> Iterator[Item]:
    """The same for objects that are read already."""
    for place, each in enumerate(given, 1):
        yield _memory(place, each, maps, aside)


def parse(text: str | bytes) -> Any:
    """JSON without NaN, infinities and doubled keys, which Python would let through. ValueError if it is none."""
    try:
        return json.loads(text, parse_int=_whole, parse_constant=_no_constant, object_pairs_hook=_object)
    except RecursionError as error:
        raise ValueError("nests too deep") from error


def fault_of(error: ValueError) -> str:
    """What is wrong with a line that cannot be parsed, in words that follow its number."""
    if isinstance(error, UnicodeDecodeError):
        return not_utf8(error)
    if not isinstance(error, json.JSONDecodeError):
        return f"is not a JSON object: {error}"
    if error.msg == "Extra data":
        return f"holds more than one object, the second at character {error.colno}; write one a line"
    if error.pos == 0:
        return "is not a JSON object"
    if error.pos >= len(error.doc.rstrip()):
        return "is not a whole JSON object: it ends before the object does"
    return f"is not a whole JSON object: {error.msg.removesuffix(' at')} at character {error.colno}"


def not_utf8(error: UnicodeDecodeError) -> str:
    """The same for bytes that are no text."""
    return utf16(error.object) or f"is not UTF-8, at byte {error.start + 1}"


def utf16(head: bytes) -> str:
    """Words for a file that begins so, if it is UTF-16, as its mark or a NUL in the first character tell; else ""."""
    is_utf16 = head.startswith((b"\xff\xfe", b"\xfe\xff")) or b"\0" in head[:2]
    return "seems to be UTF-16; save the file as UTF-8" if is_utf16 else ""


def header_line(namespace: str, embedder: str, time: str) -> bytes:
    """The first line of an export."""
    return _line({"type": EXPORT, "version": VERSION, "namespace": namespace, "embedder": embedder, "time": time})


def memory_line(fields: Mapping[str, Any]) -> bytes:
    """The line of a memory, from its fields as JSON takes them. What is empty is left out, as it means unset."""
    return _line({name: value for name, value in fields.items() if not _is_unset(value)})


def _is_unset(value: Any) -> bool:
    return value is None or (isinstance(value, str | list | dict) and not value)


def _item(place: int, text: bytes, maps: Mapping[str, Path], aside: dict[str, int] | None) -> Item:
    try:
        given = parse(text.decode())
    except ValueError as error:
        return Problem(place, "", fault_of(error))
    if isinstance(given, dict) and "content" not in given and not maps:
        kind = given.get("type")
        if kind in LOG_TYPES:
            return LogItem(place, text)
        if kind == EXPORT:
            return _header(place, given)
    return _memory(place, given, maps, aside)


def _header(place: int, given: Mapping[str, Any]) -> Header | Problem:
    if given.get("version") != VERSION:
        words = (
            f"is an export of version {given.get('version')!r}; this program reads version {VERSION}, use a newer one"
        )
        return Problem(place, "", words)
    return Header(place, str(given.get("embedder", "")))


def _memory(place: int, given: Any, maps: Mapping[str, Path], aside: dict[str, int] | None) -> MemoryItem | Problem:
    if not isinstance(given, dict):
        return Problem(place, "", "is not a JSON object")
    try:
        fields, left = memory_fields(given, maps)
    except ValueError as error:
        known = given.get("id")
        return Problem(place, known if isinstance(known, str) else "", str(error))
    if aside is not None:
        for name in left:
            aside[name] = aside.get(name, 0) + 1
    return MemoryItem(place, fields, unsaid({name: each for name, each in given.items() if name not in maps}))


def _line(given: Mapping[str, Any]) -> bytes:
    return json.dumps(given, ensure_ascii=False, separators=(",", ":"), allow_nan=False).encode() + b"\n"


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        names = [name for name, _ in pairs]
        doubled = next(name for i, name in enumerate(names) if name in names[:i])
        raise ValueError(f"the key {doubled!r} stands twice in one object")
    return found


def _whole(digits: str) -> int:
    if len(digits) > MOST_DIGITS:
        raise ValueError(f"a whole number in it has {len(digits):,} digits; write it as a string")
    return int(digits)


def _no_constant(name: str) -> Any:
    raise ValueError(f"{name} is not JSON")
