"""Single changes that let a memory past the gate that stopped it: of the filter, the time, or the memory's own fields.

A gate yields to nothing but a change of what it reads.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields, replace
from typing import Any

from sidecar.domain import MOST_IN_FILTER, NO_FILTER, Filter
from sidecar.ranking.case import Case, Change, change
from sidecar.ranking.other_times import admitting_time


def suppression(case: Case) -> Iterator[Change]:
    """Without its suppression."""
    if case.admits_once_written(suppressed=False):
        yield change("memory.suppressed", True, False, "lift its suppression.")


def ratings(case: Case) -> Iterator[Change]:
    """Without the ratings that say unhelpful."""
    if case.admits_once_written(unhelpful=0):
        words = "withdraw the ratings that say unhelpful."
        yield change("memory.ratings.unhelpful", int(case.columns.unhelpful[case.row]), 0, words)


def expiry(case: Case) -> Iterator[Change]:
    """Valid without end: any other time may have passed when it is ranked again. Or, ranked for a past time, just
    beyond that, so that it has expired for all that importances are worked out from."""
    request, old = case.occasion.request, case.memory.valid_until_time
    past = request.as_of_time is not None and request.as_of_time < case.now
    for time in (None, case.occasion.as_of_time + 1) if past else (None,):
        if case.admits_once_written(valid_until_time=time):
            yield change("memory.valid_until_time", old, time, "let it not expire.")


def validity(case: Case) -> Iterator[Change]:
    """Valid from the time that was ranked for; or, ranked for a time to come, from now on, so that it counts in what
    importances are worked out from."""
    for time in dict.fromkeys((case.occasion.as_of_time, min(case.occasion.as_of_time, case.now))):
        if case.admits_once_written(valid_from_time=time):
            yield change("memory.valid_from_time", case.memory.valid_from_time, time, "let it be valid earlier.")


def superseded(case: Case) -> Iterator[Change]:
    """Replaced by nothing."""
    if case.admits_once_written(superseded_by=""):
        yield change("memory.superseded_by", case.memory.superseded_by, "", "let nothing supersede it.")


def as_of_time(case: Case) -> Iterator[Change]:
    """Another time to rank for; or now as a time, where none was named: then what is learned later takes no part. At
    last none, where one was named: then it does."""
    named, time = case.occasion.request.as_of_time, admitting_time(case)
    if time is not None:
        yield change("as_of_time", named, time, "rank for a time at which it counts.")
    elif named is not None and case.holds(case.again.at(None)):
        yield change("as_of_time", named, None, "send no as_of_time.")


def filter_parts(case: Case) -> Iterator[Change]:
    """One part of the filter opened as little as lets the memory pass, or for nothing but what the memory has of it; or
    no filter."""
    wanted = case.occasion.request.filter
    values = {each.name: getattr(wanted, each.name) for each in fields(Filter)}
    for part, value in values.items():
        if value == getattr(NO_FILTER, part) or _passes(case, part, value):
            continue
        for opened in _opened(case, part, value):
            if case.admits(case.regated(case.columns, replace(wanted, **{part: opened}))):
                new = None if opened == getattr(NO_FILTER, part) else _plain(opened)
                words = f"leave {part} out of the filter." if new is None else f"let the filter's {part} pass it."
                yield change(f"filter.{part}", _plain(value), new, words)
    if case.admits(case.regated(case.columns, NO_FILTER)):
        yield change(
            "filter", [part for part in values if values[part] != getattr(NO_FILTER, part)], None, "send none."
        )


def _passes(case: Case, part: str, value: Any) -> bool:
    return bool(case.occasion.snapshot.filter_mask(Filter(**{part: value}))[case.row])


def _opened(case: Case, part: str, value: Any) -> list[Any]:
    """Values of a filter's part that let the memory pass: the one nearest to `value`, or none where a list is full;
    and of lists those that let the fewest others pass."""
    memory = case.memory
    match part:
        case "create_time_from" | "update_time_from":
            return [getattr(memory, part.removesuffix("_from"))]
        case "create_time_until" | "update_time_until":
            return [getattr(memory, part.removesuffix("_until")) + 1]
        case "exclude_ids":
            return [value - {memory.id}]
        case "all_tags":
            return [value & set(memory.tags), frozenset(memory.tags)]
        case "metadata_equals":
            return [{key: each for key, each in value.items() if _passes(case, part, {key: each})}]
    values = {
        "kinds": [memory.kind],
        "ids": [memory.id],
        "any_tags": memory.tags,
        "source_threads": [memory.source_thread],
        "subjects": [memory.subject],
    }[part]
    own = [frozenset((each,)) for each in values if each]
    wider = [value | each for each in own] if len(value) < MOST_IN_FILTER[part] else []
    return [*(wider or [frozenset()]), *own]


def _plain(value: Any) -> Any:
    return sorted(value) if isinstance(value, frozenset) else value
