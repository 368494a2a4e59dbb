"""Regular expressions that are compiled when they are first needed, so that a start does not wait for them."""

from __future__ import annotations

import re
import unicodedata
from functools import cache
from typing import Any, cast

MARKS = "\ue000"
"""Stands in a class for all combining marks below plane 2, in the source of a late pattern: to find them takes as long
as to compile several patterns. A private character, which no source needs for itself."""
_METHODS = ("match", "fullmatch", "search", "finditer", "findall", "split", "sub")


class _Late:
    """Stands for a pattern. Once it is compiled its methods are this object's own, so that calls cost no more."""

    def __init__(self, source: str, flags: int) -> None:
        self._source = source
        self._flags = flags

    def __getattr__(self, name: str) -> Any:
        if name not in _METHODS:
            raise AttributeError(name)
        self.compile()
        return self.__dict__[name]

    def compile(self) -> None:
        source = self._source.replace(MARKS, _marks()) if MARKS in self._source else self._source
        pattern = re.compile(source, self._flags)
        self.__dict__.update({name: getattr(pattern, name) for name in _METHODS})


@cache
def _marks() -> str:
    """Character ranges, for a regular expression's class."""
    ranges: list[list[int]] = []
    for code in range(0x300, 0x20000):
        if unicodedata.category(chr(code))[0] == "M":
            if ranges and ranges[-1][1] == code - 1:
                ranges[-1][1] = code
            else:
                ranges.append([code, code])
    return "".join(f"{chr(first)}-{chr(last)}" for first, last in ranges)


_all: list[_Late] = []


def late(source: str, flags: int = 0) -> re.Pattern[str]:
    """As `re.compile`; a source that is no pattern is an error when it is first used."""
    pattern = _Late(source, flags)
    _all.append(pattern)
    return cast("re.Pattern[str]", pattern)


def compile_all() -> None:
    """Compiles all that were not needed yet: for a thread that does it before a call has to wait for one."""
    for pattern in _all:
        pattern.match  # noqa: B018 - what is asked for first compiles it
