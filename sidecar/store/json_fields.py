"""Asks a JSON object that anyone may have written for its values, by name and kind. Pure."""

from __future__ import annotations

import base64
import binascii
import datetime
import math
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from sidecar.domain import SECOND, Floats, Micros
from sidecar.formats.bounds import END_SECOND, FIRST_SECOND, shown

MOST_ROWS = 10_000
"""In one list of objects."""
EPOCH = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)
MICROSECOND = datetime.timedelta(microseconds=1)
_MOST_WHOLE = 2**63 - 1


def is_number(value: Any) -> bool:
    """True for what float64 can hold of JSON's numbers."""
    return isinstance(value, float) or (isinstance(value, int) and not isinstance(value, bool) and abs(value) < 2**63)


def written_time(micros: Micros) -> str:
    """As `JsonFields.time` reads it."""
    return (EPOCH + micros * MICROSECOND).isoformat().replace("+00:00", "Z")


class JsonFields:
    """A JSON object whose values are asked for by name and kind. ValueError names the one that is wrong."""

    def __init__(self, given: Mapping[str, Any], path: str = "") -> None:
        self._given = given
        self._path = path

    def text(self, name: str, most: int, *, least: int = 1) -> str:
        """A text of `least` to `most` bytes; "" where it is not there."""
        value = self._given.get(name, "")
        if not isinstance(value, str) or "\0" in value:
            raise self._wrong(name, "must be a text without NUL")
        try:
            size = len(value.encode())
        except UnicodeEncodeError as error:
            raise self._wrong(name, "must be a text of whole characters") from error
        if not least <= size <= most:
            raise self._wrong(name, f"must have {least} to {most:,} bytes")
        return value

    def number(self, name: str, least: float = -math.inf, most: float = math.inf) -> float:
        """A finite number."""
        value = self._given.get(name)
        if value is None or not is_number(value) or not math.isfinite(value) or not least <= value <= most:
            raise self._wrong(name, f"must be a number in [{least:g}, {most:g}]")
        return float(value)

    def optional_number(self, name: str, least: float, most: float) -> float | None:
        """A finite number, or None where it is not there."""
        return None if self._given.get(name) is None else self.number(name, least, most)

    def chance(self, name: str) -> float:
        """The probability of what came about: a number in (0, 1]."""
        found = self.number(name, 0, 1)
        if found == 0.0:
            raise self._wrong(name, "must be a number in (0, 1], for it came about")
        return found

    def whole(self, name: str, least: int = 0, most: int = _MOST_WHOLE) -> int:
        """A whole number."""
        value = self._given.get(name)
        if not isinstance(value, int) or isinstance(value, bool) or not least <= value <= most:
            raise self._wrong(name, f"must be a whole number from {least} to {most}")
        return value

    def optional_whole(self, name: str, least: int = 0, most: int = _MOST_WHOLE) -> int | None:
        """A whole number, or None where it is not there."""
        return None if self._given.get(name) is None else self.whole(name, least, most)

    def truth(self, name: str) -> bool:
        """True or false; false where it is not there."""
        value = self._given.get(name, False)
        if not isinstance(value, bool):
            raise self._wrong(name, "must be true or false")
        return value

    def time(self, name: str) -> Micros:
        """A point in time with its zone."""
        value = self._given.get(name)
        try:
            found = datetime.datetime.fromisoformat(value)  # type: ignore[arg-type]
            micros = (found - EPOCH) // MICROSECOND
        except (TypeError, ValueError) as error:
            raise self._wrong(name, "must be a time with its zone, as 2026-10-01T09:30:00.123456Z") from error
        if not FIRST_SECOND * SECOND <= micros < END_SECOND * SECOND:
            raise self._wrong(name, "must be a time in the years 1900 to 2200")
        return micros

    def optional_time(self, name: str) -> Micros | None:
        """A point in time, or None where it is not there."""
        return None if self._given.get(name) is None else self.time(name)

    def word(self, name: str, words: Iterable[str]) -> str:
        """One of the words."""
        value = self._given.get(name)
        if not isinstance(value, str) or value not in list(words):
            raise self._wrong(name, f"must be one of {', '.join(words)}")
        return value

    def floats(self, name: str) -> Floats:
        """A list of finite numbers, with NaN for null."""
        value = self._given.get(name)
        if not isinstance(value, list) or not all(each is None or is_number(each) for each in value):
            raise self._wrong(name, "must be a list of numbers, null for one that is not there")
        found = np.array([math.nan if each is None else each for each in value], np.float64)
        if np.isinf(found).any():
            raise self._wrong(name, "must be a list of finite numbers, null for one that is not there")
        return found

    def data(self, name: str) -> bytes:
        """Bytes, written as base64."""
        try:
            return base64.b64decode(self._given.get(name, ""), validate=True)
        except (TypeError, ValueError, binascii.Error) as error:
            raise self._wrong(name, "must be base64") from error

    def ids(self, name: str) -> frozenset[str]:
        """A list of ids; empty where it is not there."""
        return frozenset(self.texts(name))

    def texts(self, name: str) -> tuple[str, ...]:
        """A list of texts; empty where it is not there."""
        value = self._given.get(name, [])
        if not isinstance(value, list) or not all(isinstance(each, str) for each in value):
            raise self._wrong(name, "must be a list of texts")
        return tuple(value)

    def has(self, name: str) -> bool:
        """True if it is there and not null."""
        return self._given.get(name) is not None

    def rows(self, name: str) -> list[JsonFields]:
        """A list of objects; empty where it is not there."""
        value = self._given.get(name, [])
        if not isinstance(value, list) or len(value) > MOST_ROWS or not all(isinstance(x, dict) for x in value):
            raise self._wrong(name, f"must be a list of at most {MOST_ROWS:,} objects")
        return [JsonFields(each, f"{self._path}{name}[{i}].") for i, each in enumerate(value)]

    def object(self, name: str) -> JsonFields | None:
        """An object, or None where it is not there."""
        value = self._given.get(name)
        if value is not None and not isinstance(value, dict):
            raise self._wrong(name, "must be an object")
        return None if value is None else JsonFields(value, f"{self._path}{name}.")

    def pairs(self, name: str) -> list[tuple[str, str]]:
        """A list of pairs of texts; empty where it is not there."""
        value = self._given.get(name, [])
        if not isinstance(value, list) or not all(
            isinstance(each, list) and len(each) == 2 and all(isinstance(part, str) for part in each) for each in value
        ):
            raise self._wrong(name, "must be a list of pairs of texts")
        return [(one, other) for one, other in value]

    def counts(self, name: str) -> dict[str, int]:
        """An object of counts; empty where it is not there."""
        value = self._given.get(name, {})
        if not isinstance(value, dict):
            raise self._wrong(name, "must be an object of counts")
        of_counts = JsonFields(value, f"{self._path}{name}.")
        return {key: of_counts.whole(key) for key in value}

    def _wrong(self, name: str, must: str) -> ValueError:
        return ValueError(f"{self._path}{name} is {shown(self._given.get(name))}; {must}")
