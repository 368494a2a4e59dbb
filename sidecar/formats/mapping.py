"""From an object of JSON to the fields of a memory: names, foreign names, and values as the client takes them. Pure."""

from __future__ import annotations

import base64
import binascii
import datetime
import difflib
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from sidecar.formats.bounds import END_SECOND, FIRST_SECOND, shown
from sidecar.formats.items import FIELDS, OUTPUT_ONLY, made_id

_TEXTS = ("id", "content", "kind", "superseded_by", "source_thread", "subject")
_SECONDS_UNTIL = 1e11
_MILLISECONDS_UNTIL = 1e14
"""A time as a plain number is in seconds below the first, in milliseconds below the second, else in microseconds."""

Path = Sequence[str]


def parse_maps(given: Iterable[str]) -> dict[str, Path]:
    """Field -> path, from texts like `content=message.text` and `metadata.author=user.name`. ValueError names the bad
    one."""
    found: dict[str, Path] = {}
    for each in given:
        field, equals, path = each.partition("=")
        if not equals or not field or not path:
            raise ValueError(f"{each!r} is not FIELD=PATH, as content=message.text")
        if field not in FIELDS and not (field.startswith("metadata.") and field != "metadata."):
            known = nearest(field, FIELDS) or f"; the fields are {', '.join(sorted(FIELDS))} and metadata.NAME"
            raise ValueError(f"{each!r}: unknown field {field!r}{known}")
        if field in found:
            raise ValueError(f"{each!r}: the field {field!r} is mapped twice")
        found[field] = path.split(".")
    return found


def memory_fields(given: Mapping[str, Any], maps: Mapping[str, Path]) -> tuple[dict[str, Any], set[str]]:
    """The fields of a memory, with an id, and the names of what was left aside, which happens only with `maps`.

    ValueError names the field that is missing, unknown, or no value of its kind.
    """
    fields: dict[str, Any] = {}
    aside: set[str] = set()
    sources = {path[0] for path in maps.values()} | {".".join(path) for path in maps.values()}
    for name, value in given.items():
        if name in FIELDS and name not in maps and name not in sources:
            fields[name] = value
        elif not maps and name not in OUTPUT_ONLY:
            raise ValueError(
                f"unknown field {name!r}{nearest(name, FIELDS)}; name foreign fields with --map FIELD=PATH"
            )
        elif name not in sources and name not in OUTPUT_ONLY:
            aside.add(name)
    for field, path in maps.items():
        value = _found(given, path)
        if value is not None and field.startswith("metadata."):
            fields["metadata"] = {**(fields.get("metadata") or {}), field.removeprefix("metadata."): value}
        elif value is not None:
            fields[field] = value
    fields = {name: _value(name, value) for name, value in fields.items() if value is not None}
    content = fields.get("content")
    if not content:
        from_ = f" (mapped from {'.'.join(maps['content'])})" if "content" in maps else ""
        raise ValueError(f"content{from_} is missing or empty")
    if not fields.get("id"):
        where = [fields.get(name) for name in ("create_time", "source_thread", "source_sequence")]
        fields["id"] = made_id(content, *where) if any(each is not None for each in where) else made_id(content)
    return fields, aside


def time_of(value: object) -> datetime.datetime:
    """A time of the years 1900 to 2200 from ISO 8601 (UTC without a zone) or from a number since 1970. ValueError if it
    is none."""
    if isinstance(value, int | float) and not isinstance(value, bool):
        seconds = value if abs(value) < _SECONDS_UNTIL else value / (1e3 if abs(value) < _MILLISECONDS_UNTIL else 1e6)
        _check_second(seconds, value)
        return datetime.datetime.fromtimestamp(seconds, datetime.UTC)
    if not isinstance(value, str):
        raise ValueError(f"{value!r} is no time, as 2026-10-01T09:30:00+02:00")
    try:
        found = datetime.datetime.fromisoformat(value.strip())
    except ValueError as error:
        raise ValueError(f"{value!r} is no time, as 2026-10-01T09:30:00+02:00") from error
    found = found if found.tzinfo else found.replace(tzinfo=datetime.UTC)
    _check_second(found.timestamp(), value)
    return found


def nearest(name: str, known: Iterable[str]) -> str:
    """Words that say which known name was most likely meant."""
    found = difflib.get_close_matches(name, list(known), n=1)
    return f" (did you mean {found[0]!r}?)" if found else ""


def _check_second(second: float, given: object) -> None:
    if not FIRST_SECOND <= second < END_SECOND:
        raise ValueError(f"{shown(given)} is out of range; must be a time in the years 1900 to 2200, in UTC")


def _found(given: Any, path: Path) -> Any:
    """The value at a path, None if there is none. A key that itself has dots is found too."""
    if not path:
        return given
    if isinstance(given, Mapping):
        for size in range(len(path), 0, -1):
            key = ".".join(path[:size])
            if key in given:
                return _found(given[key], path[size:])
    if isinstance(given, list) and path[0].isdigit() and int(path[0]) < len(given):
        return _found(given[int(path[0])], path[1:])
    return None


def _value(name: str, value: Any) -> Any:
    try:
        if name.endswith("_time"):
            return time_of(value)
        if name == "embedding" and isinstance(value, str):
            return base64.b64decode(value, validate=True)
    except (ValueError, binascii.Error) as error:
        raise ValueError(f"{name}: {error}") from error
    if name in _TEXTS:
        if isinstance(value, int) and not isinstance(value, bool):
            return str(value)  # many a foreign id is a number
        if not isinstance(value, str):
            raise ValueError(f"{name}: {value!r:.60} is not a text")
    return value
