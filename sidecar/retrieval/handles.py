"""Concrete handles in a text: what a person would copy to point at one thing and no other.

Tickets, paths, symbols, dates, URLs, versions, e-mail addresses, quoted values, distinctive numbers and codes. Every
pattern is bounded or possessive, and each stretch of text is classified once: the time is linear in the text's length.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from sidecar.retrieval.patterns import late
from sidecar.retrieval.tokenizer import ASCII_WORD, UNSPACED, WORD, fold, normalize

LONGEST_HANDLE = 512
"""Characters. A longer stretch is data, not a handle."""


class Handle(NamedTuple):
    """A handle in its normal form: equal handles point at the same thing, however they were written."""

    kind: str
    value: str


# A stretch without white space, from a word on, with the signs that may lead and join a path, a symbol or a number.
_ROUND = r"(?:\.{{0,2}}/|~/|#|--?|\.)?+{0}(?:[-./\\:@#&=~%?$+!,_]{{1,3}}+{0})*+(?:\(\))?+"
_STRETCH, _ASCII_STRETCH = late(f"{_ROUND.format(WORD)}|{UNSPACED}"), late(_ROUND.format(ASCII_WORD))
_QUOTED = late(
    r"\"([^\"\n]{2,80}+)\"|`([^`\n]{2,80}+)`|“([^”\n]{2,80}+)”|«([^»\n]{2,80}+)»|「([^」\n]{2,80}+)」|『([^』\n]{2,80}+)』"
    r"|(?<!\w)'([^'\n]{2,80}+)'(?!\w)|‘([^’\n]{2,80}+)’(?!\w)"
)

# Cheap signs that a search is worth its while.
_QUOTE_SIGN = late("[\"`“«「『'‘]")
_DIGIT = late(r"\d")
_FOUR_DIGITS = late(r"\d{4}")

_URL = late(r"[a-z][a-z0-9+.-]*://(?:www\.)?(.+)", re.IGNORECASE)
_EMAIL = late(r"[\w.+%-]+@[\w-]+(?:\.[\w-]+)+")
_TICKET = late(r"[a-z][a-z0-9]{1,9}-\d{1,9}", re.IGNORECASE)
_NUMBERED = late(r"#\d{1,9}")
_VERSION = late(r"v?(\d{1,9}(?:\.\d{1,9}){2,3})(?:[-+]?[a-z][\w.-]*)?|v(\d{1,9}(?:\.\d{1,9})?)", re.IGNORECASE)
_SIGNED_VERSION = late(r"v?(\d[\w.+-]*)", re.IGNORECASE)
_NUMBER = late(r"\d+(?:,\d{3})*(?:\.\d+)?")
_MEASURED = late(r"(\d+(?:,\d{3})*(?:\.\d+)?)[a-z]{1,4}|(\d+(?:,\d{3})*(?:\.\d+)?)%", re.IGNORECASE)
_YEAR = late(r"(?:19|20)\d\d")
_CODE = late(r"(?=.*\d.*\d)(?=.*[a-z].*[a-z])[a-z0-9]{6,64}|[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}", re.IGNORECASE)
_CAMEL = late(r"[^\W\d_]*[a-z][A-Z][a-zA-Z0-9]*|[A-Z]{2,}[a-z][a-zA-Z]*[A-Z][a-zA-Z0-9]*|[A-Z]+[a-z]+[A-Z][A-Za-z0-9]*")
_SNAKE = late(r"_*[^\W_]+(?:_+[^\W_]+)+_*|__\w+__")
_FLAG = late(r"--[a-z][\w-]+", re.IGNORECASE)
_DOTTED = late(r"[^\W\d]\w*(?:(?:\.|::)[^\W\d]\w*)+")
_FILE = late(
    r"[\w.+-]*\w\.(?:py|pyi|js|mjs|ts|tsx|jsx|go|rs|java|kt|c|h|cc|cpp|hpp|cs|rb|php|swift|scala|lua|pl|sh|bash|ps1|sql|md|rst|"
    r"txt|log|csv|tsv|json|jsonl|ya?ml|toml|ini|cfg|conf|env|lock|xml|html?|css|scss|vue|proto|ipynb|pdf|docx?|xlsx?|pptx?|"
    r"png|jpe?g|gif|svg|zip|tar|gz|db|sqlite3?|parquet|pem|key|service|dockerfile|tf)",
    re.IGNORECASE,
)

MONTHS = {
    name: month
    for month, names in enumerate(
        (
            ("jan", "january"),
            ("feb", "february"),
            ("mar", "march"),
            ("apr", "april"),
            ("may",),
            ("jun", "june"),
            ("jul", "july"),
            ("aug", "august"),
            ("sep", "sept", "september"),
            ("oct", "october"),
            ("nov", "november"),
            ("dec", "december"),
        ),
        1,
    )
    for name in names
}
_SHORT_MONTHS = tuple(name for name in MONTHS if len(name) == 3)
_MONTH = "(" + "|".join(sorted(MONTHS, key=len, reverse=True)) + r")\b\.?"
_NUMERIC_DATE = late(
    r"(?<![\w.-])(?:(\d{4})[-/.](\d{1,2})[-/.](\d{1,2})(?=T\d|[^\w]|$)|(\d{1,2})\.(\d{1,2})\.(\d{4})(?!\w)"
    r"|(\d{1,2})/(\d{1,2})/(\d{4})(?!\w))|(\d{4})[年년]\s?(\d{1,2})[月월]\s?(\d{1,2})[日일]"
)
_WRITTEN_DATE = late(
    rf"\b(?:(\d{{1,2}})(?:st|nd|rd|th)?(?:\s+of)?\s{{1,3}}{_MONTH}(?:,?\s{{1,3}}(\d{{4}})\b)?"
    rf"|{_MONTH}\s{{1,3}}(\d{{1,2}})(?:st|nd|rd|th)?\b(?:,?\s{{1,3}}(\d{{4}})\b)?"
    rf"|{_MONTH}(?:,|\s{{1,3}}of)?\s{{1,3}}(\d{{4}})\b)",
    re.IGNORECASE,
)


def find_handles(text: str) -> frozenset[Handle]:
    """All handles of `text`, each once."""
    text = normalize(text)
    found = {Handle("date", _iso(*date)) for date in find_dates(text)}
    for match in _QUOTED.finditer(text) if _QUOTE_SIGN.search(text) else ():
        value = " ".join(fold(match[match.lastindex or 0]).split())
        if len(value) > 1:
            found.add(Handle("quoted", value))
    for stretch in _not_plain(_stretches(text)):
        if len(stretch) <= LONGEST_HANDLE:
            found.update(_classify(stretch))
    return frozenset(found)


def _stretches(text: str) -> set[str]:
    if text.isascii():  # no stretch reaches over white space
        return set(_ASCII_STRETCH.findall(" ".join(_not_plain(set(text.split())))))
    return set(_STRETCH.findall(text))


def _not_plain(words: Iterable[str]) -> list[str]:
    """Those that may be handles: a plain word is none, and most words are plain."""
    return [word for word in words if not (word.isalpha() and (word.islower() or word.istitle()))]


def _classify(stretch: str) -> Iterator[Handle]:
    if _NUMERIC_DATE.match(stretch):  # found as a date, and not to be taken for a version or a path
        return
    if (url := _URL.fullmatch(stretch)) is not None:
        yield Handle("url", fold(url[1]).rstrip("/"))
    elif _EMAIL.fullmatch(stretch):
        yield Handle("email", fold(stretch))
    elif (version := _VERSION.fullmatch(stretch)) is not None:
        signed = _SIGNED_VERSION.fullmatch(stretch)
        yield Handle("version", fold(signed[1] if signed else version[0]))
    elif _TICKET.fullmatch(stretch) or _NUMBERED.fullmatch(stretch):
        yield Handle("ticket", fold(stretch))
    elif _number_of(stretch) is not None:
        yield from _numbers(stretch)
    elif _CODE.fullmatch(stretch):
        yield Handle("code", fold(stretch))
    elif _FLAG.fullmatch(stretch):
        yield Handle("symbol", fold(stretch))
    elif "/" in stretch or "\\" in stretch:
        yield from _path(stretch)
    elif _FILE.fullmatch(stretch):
        yield Handle("path", fold(stretch))
    else:
        yield from _symbols(stretch)


def _number_of(stretch: str) -> str | None:
    if _NUMBER.fullmatch(stretch):
        return stretch
    measured = _MEASURED.fullmatch(stretch)
    return (measured[1] or measured[2]) if measured else None


def _numbers(stretch: str) -> Iterator[Handle]:
    number = (_number_of(stretch) or "").replace(",", "")
    if sum(map(str.isdigit, number)) >= 3 and not _YEAR.fullmatch(number):
        yield Handle("number", number)


def _path(stretch: str) -> Iterator[Handle]:
    """A path and the file it ends in. `and/or` and `1/2` are none: a path has a root, three parts or a file's name."""
    path = fold(stretch).replace("\\", "/")
    parts = [part for part in path.split("/") if part not in ("", ".", "..", "~")]
    is_file = bool(parts and _FILE.fullmatch(parts[-1]))
    if not parts or all(part.isdigit() for part in parts):
        return
    if path[0] in "/~." or len(parts) >= 3 or is_file or path[1:3] == ":/":
        yield Handle("path", "/".join(parts) if path[0] in "~." else path)
        if is_file:
            yield Handle("path", parts[-1])


def _symbols(stretch: str) -> Iterator[Handle]:
    """A symbol, and of a dotted one also the parts that are symbols in themselves."""
    name = stretch.removesuffix("()")
    parts = re.split(r"\.|::|->", name)
    own = [part for part in parts if _CAMEL.fullmatch(part) or _SNAKE.fullmatch(part)]
    is_dotted = len(parts) > 1 and _DOTTED.fullmatch(name) is not None and (bool(own) or len(parts) > 2)
    is_called = name != stretch and len(name) > 2
    if is_dotted or is_called:
        yield Handle("symbol", fold(name))
    for part in own:
        yield Handle("symbol", fold(part))


def find_dates(text: str) -> Iterator[tuple[int | None, int, int | None]]:
    """Year, month and day of each date of a normalised text; None for what is not said, which is never all but one."""
    if not _DIGIT.search(text):
        return
    for match in _NUMERIC_DATE.finditer(text) if _FOUR_DIGITS.search(text) else ():
        a = [int(group) for group in match.groups() if group is not None]
        if match[1] or match[10]:
            yield from _date(a[0], a[1], a[2])
        # 03/04/2024 is another day in Europe than in America: only an unambiguous one counts.
        elif match[4] or a[0] > 12 or a[0] == a[1]:
            yield from _date(a[2], a[1], a[0])
        elif a[1] > 12:
            yield from _date(a[2], a[0], a[1])
    for match in _WRITTEN_DATE.finditer(text) if _has_month(text) else ():
        day, month, year, month_2, day_2, year_2, month_3, year_3 = match.groups()
        name = month or month_2 or month_3
        yield from _date(_number(year or year_2 or year_3), MONTHS[name.lower()], _number(day or day_2))


def _number(digits: str | None) -> int | None:
    return None if digits is None else int(digits)


def _has_month(text: str) -> bool:
    lower = text.lower()
    return any(month in lower for month in _SHORT_MONTHS)


def _date(year: int | None, month: int, day: int | None) -> Iterator[tuple[int | None, int, int | None]]:
    """Nothing for a month or day that does not exist."""
    if year != 0 and 1 <= month <= 12 and (day is None or 1 <= day <= 31):
        yield year, month, day


def _iso(year: int | None, month: int, day: int | None) -> str:
    """ISO 8601, with `-` for a year that was not said."""
    return f"{'-' if year is None else f'{year:04}'}-{month:02}" + ("" if day is None else f"-{day:02}")
