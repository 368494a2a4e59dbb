"""What people write in flags and files, as values: times, key=value pairs, JSON lines, weights. Pure but for reading
the files that are named."""

from __future__ import annotations

import datetime
import difflib
import math
import re
import sys
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import click

from sidecar.cli.failures import unreadable
from sidecar.config import WEIGHTS_KEYS
from sidecar.formats import jsonl

UTC = datetime.UTC
_AGO = re.compile(r"(\d+(?:\.\d+)?)(min|h|d|w)")
_UNITS = {"min": 60, "h": 3600, "d": 86_400, "w": 604_800}

OUTPUT_ONLY = ("update_time", "importance", "ratings")
"""Fields of a memory that the server alone sets; they are skipped, so that what `list` prints can be put again."""


class _PathName(click.Path):
    """click's path, and no empty one, which would be the working directory."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """The path. BadParameter if it is empty."""
        if value == "":
            self.fail("is empty: name a file or folder", param, ctx)
        return super().convert(value, param, ctx)


PATH = _PathName(path_type=Path)
FILE = _PathName(readable=False)
"""The name of a file as a text, for commands that take - for standard input or say themselves what cannot be read."""


def time_value(_: click.Context, __: click.Parameter, value: str | None) -> datetime.datetime | None:
    """Option callback: a point in time. BadParameter for what is none."""
    try:
        return None if value is None else parse_time(value, datetime.datetime.now(UTC))
    except (ValueError, OverflowError) as error:
        raise click.BadParameter(
            f"{value!r} is no time. Write 2026-10-01, 2026-10-01T09:30:00+02:00, now, or how long ago: 90min, 36h, 7d"
        ) from error


def length_value(_: click.Context, __: click.Parameter, value: str | None) -> datetime.timedelta | None:
    """Option callback: a length of time, as 36h or 7d."""
    if value is None:
        return None
    match = _AGO.fullmatch(value)
    seconds = float(match[1]) * _UNITS[match[2]] if match else 0.0
    if not 0 < seconds <= 3e9:
        raise click.BadParameter(f"{value!r} is no length of time. Write 90min, 36h, 7d or 2w")
    return datetime.timedelta(seconds=seconds)


def key_values(_: click.Context, __: click.Parameter, value: tuple[str, ...]) -> dict[str, Any]:
    """Option callback: KEY=VALUE pairs, each value read as JSON where it is JSON, else as text."""
    found: dict[str, Any] = {}
    for pair in value:
        key, equals, text = pair.partition("=")
        if not equals or not key:
            raise click.BadParameter(f"{pair!r} is not KEY=VALUE")
        try:
            found[key] = parse_json(text)
        except ValueError:
            found[key] = text
    return found


def share_values(ctx: click.Context, param: click.Parameter, value: tuple[str, ...]) -> dict[str, float]:
    """Option callback: NAME=NUMBER pairs of different names, each number from 0 to 1."""
    found: dict[str, float] = {}
    for pair in value:
        name, equals, text = pair.rpartition("=")
        try:
            number = float(text)
        except ValueError:
            number = math.nan
        if not (equals and name) or not 0 <= number <= 1:
            raise click.BadParameter(f"{pair!r} is not NAME=NUMBER with a number from 0 to 1")
        if name in found:
            raise click.BadParameter(f"names {name!r} twice")
        found[name] = number
    return found


def vector_value(_: click.Context, __: click.Parameter, value: str | None) -> list[float] | None:
    """Option callback: a vector as a JSON list, or @FILE with one."""
    if value is None:
        return None
    try:
        found = parse_json(read_text(value[1:]) if value.startswith("@") else value)
    except ValueError as error:
        raise click.BadParameter(f"is not JSON: {error}") from error
    if not isinstance(found, list) or not all(_is_number(each) for each in found):
        raise click.BadParameter("is not a JSON list of numbers")
    return found


def parse_time(text: str, now: datetime.datetime) -> datetime.datetime:
    """A time from a flag or a file. Without a zone it is UTC. ValueError if it is none."""
    if text == "now":
        return now
    if match := _AGO.fullmatch(text):
        return now - datetime.timedelta(seconds=float(match[1]) * _UNITS[match[2]])
    found = datetime.datetime.fromisoformat(text)
    return found if found.tzinfo else found.replace(tzinfo=UTC)


def parse_json(text: str) -> Any:
    """JSON without NaN, infinities and doubled keys, which Python would let through. ValueError if it is none."""
    return jsonl.parse(text)


def read_text(name: str) -> str:
    """The text of a file, or of standard input for "-". Failure if it cannot be read."""
    try:
        data = sys.stdin.buffer.read() if name == "-" else Path(name).read_bytes()
        return data.decode("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise unreadable("standard input" if name == "-" else name, error) from error


def json_lines(lines: Iterable[bytes]) -> Iterator[tuple[int, dict[str, Any] | str]]:
    """For each line that is not blank its number, from 1, and its object, or what is wrong with it."""
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            found = parse_json(line.decode("utf-8-sig").strip())
        except ValueError as error:
            yield number, jsonl.fault_of(error)
        else:
            yield number, found if isinstance(found, dict) else "is not a JSON object"


def memory_fields(given: Mapping[str, Any], known: Iterable[str]) -> dict[str, Any]:
    """The fields of a memory from a JSON object, as the client takes them: times become datetimes.

    ValueError names the field that is unknown or no time.
    """
    fields: dict[str, Any] = {}
    for name, value in given.items():
        if name in OUTPUT_ONLY:
            continue
        if name != "id" and name not in known:
            raise ValueError(f"unknown field {name!r}{_nearest(name, known)}")
        if name.endswith("_time") and value is not None:
            try:
                value = parse_time(value, datetime.datetime.now(UTC))
            except (TypeError, ValueError) as error:
                raise ValueError(f"{name}: {value!r} is no time, as 2026-10-01T09:30:00+02:00") from error
        fields[name] = value
    return fields


def weights(text: str) -> str | dict[str, Any]:
    """--weights: a preset's name; or, as a table, the JSON itself or the file named. UsageError for anything else."""
    if text.lstrip().startswith("{"):
        try:
            return weights_table(parse_json(text), "--weights")
        except ValueError as error:
            raise click.UsageError(f"--weights is not JSON: {error}") from error
    if not text.endswith((".toml", ".json")):
        return text
    content = read_text(text)
    try:
        found = tomllib.loads(content) if text.endswith(".toml") else parse_json(content)
    except ValueError as error:
        raise click.UsageError(f"{text} cannot be read: {error}") from error
    return weights_table(found, text)


def weights_table(found: Any, origin: str) -> dict[str, Any]:
    """Weights as {features, caps, use_family_cap, half_life_days}; a plain table of numbers is features alone."""
    if isinstance(found, dict) and found and all(_is_number(each) for each in found.values()):
        found = {"use_family_cap": None, "features": found}
    if not isinstance(found, dict) or not isinstance(found.get("features"), dict):
        raise click.UsageError(f"{origin} holds no weights: write feature = weight lines, or a table [features]")
    for name, part in found.items():
        if name not in WEIGHTS_KEYS:
            raise click.UsageError(f"{origin}: unknown part {name!r}{_nearest(name, WEIGHTS_KEYS)}")
        if isinstance(part, dict) and not all(_is_number(each) for each in part.values()):
            raise click.UsageError(f"{origin}: every value in {name} is a number")
    return found


def _nearest(name: str, known: Iterable[str]) -> str:
    found = difflib.get_close_matches(name, list(known), n=1)
    return f"; did you mean {found[0]!r}?" if found else f"; known are {', '.join(known)}"


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)
