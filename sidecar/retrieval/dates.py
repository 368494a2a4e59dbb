"""When a task asks about: the days, months and years it names, and how far off a memory was learned.

Days are those of UTC. Without a year, a day or month means that of every year in which something was learned.
"""

from __future__ import annotations

import calendar
import datetime
from collections.abc import Iterable, Iterator

import numpy as np
from numpy.typing import NDArray

from sidecar.domain import DAY, Floats
from sidecar.retrieval.handles import MONTHS, find_dates
from sidecar.retrieval.patterns import late
from sidecar.retrieval.tokenizer import normalize

BEFORE = 4.0
"""A day before what is named counts as so many after it: one tells what happened, and seldom what will."""

Span = tuple[int, int]
"""First and last day, counted from 1970."""

_EPOCH = datetime.date(1970, 1, 1).toordinal()
_ISO_MONTH = late(r"(?<![\w-])((?:19|20)\d\d)-(\d\d)(?![\w-])|((?:19|20)\d\d)[年년]\s?(\d{1,2})[月월](?!\s?\d)")
_YEAR = late(
    r"(?<![\w.,$€£#/:-])((?:19|20)\d\d)(?![\w%/:-]|[.,]\d)(?!\s?[年년]\s?\d)|(?<!\d)((?:19|20)\d\d)[年년](?!\s?\d)"
)
_SIGN = late(r"\d|" + "|".join(name.title() for name in MONTHS if len(name) == 3))
"""What nothing that names a time is without."""
# A month alone must have its capital; short forms and "May" are words and names as well, and need a hint.
_MONTH = late(r"\b(" + "|".join(name.title() for name in MONTHS if len(name) > 4 and name != "sept") + r")\b")
_HINTED = late(
    r"\b(?:in|of|since|until|till|by|during|from|to|before|after|early|late|mid|last|this|next)\s"
    r"(" + "|".join(name.title() for name in MONTHS) + r")\b"
)


def days_off(task: str, create_time: NDArray[np.int64], live: NDArray[np.bool_]) -> Floats | None:
    """Days between each memory's learning and the nearest time that `task` names: 0 inside it, BEFORE times as many
    for one learned earlier. Shape (n,). None if it names none, or nothing lives."""
    parts = _parts(task)
    if not parts or not live.any():
        return None
    day = create_time // DAY
    known = day[live]
    spans = sorted(_spans(parts, range(_year(int(known.min())), _year(int(known.max())) + 1)))
    if not spans:
        return None
    first = np.array([span[0] for span in spans])
    last = np.maximum.accumulate([span[1] for span in spans])
    begun = first.searchsorted(day, side="right")  # so many spans begin on or before the day
    after = np.append(np.inf, 0.0 - last)[begun] + day
    before = BEFORE * (np.append(first, np.inf)[begun] - day)
    return np.asarray(np.minimum(np.maximum(after, 0.0), before))


def _parts(task: str) -> set[tuple[int | None, int | None, int | None]]:
    """Year, month and day of each time named; None for what is not said."""
    text = normalize(task)
    if not _SIGN.search(text):
        return set()
    found: set[tuple[int | None, int | None, int | None]] = set()
    for year, month, day in find_dates(text):
        found.add((year, month, day))
    for match in _ISO_MONTH.finditer(text):
        if 1 <= int(match[2] or match[4]) <= 12:
            found.add((int(match[1] or match[3]), int(match[2] or match[4]), None))
    said = {month for _, month, _ in found}
    for match in (*_MONTH.finditer(text), *_HINTED.finditer(text)):
        month = MONTHS[match[1].lower()]
        if month not in said:  # "March 3" names a day and not the month
            found.add((None, month, None))
    years = {year for year, _, _ in found}
    for match in _YEAR.finditer(text):
        if (year := int(match[1] or match[2])) not in years:
            found.add((year, None, None))
    return found


def _spans(parts: Iterable[tuple[int | None, int | None, int | None]], years: range) -> Iterator[Span]:
    for year, month, day in parts:
        for each in years if year is None else (year,):
            if month is None:
                yield _day(each, 1, 1), _day(each, 12, 31)
            elif day is None:
                yield _day(each, month, 1), _day(each, month, calendar.monthrange(each, month)[1])
            elif day <= calendar.monthrange(each, month)[1]:
                yield _day(each, month, day), _day(each, month, day)


def _day(year: int, month: int, day: int) -> int:
    return datetime.date(year, month, day).toordinal() - _EPOCH


def _year(day: int) -> int:
    """The year of a day, within what a calendar has."""
    ordinal = min(max(day + _EPOCH, 1), datetime.date.max.toordinal())
    return datetime.date.fromordinal(ordinal).year
