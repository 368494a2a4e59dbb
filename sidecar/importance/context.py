"""The context signal: how well a memory fits current goals, active projects, open files, and the time. Pure."""

from __future__ import annotations

import datetime
from collections.abc import Callable, Iterable, Sequence

import numpy as np

from sidecar.domain import DAY, SECOND, Context, Memory, Micros
from sidecar.importance.scoring import Signal
from sidecar.retrieval.handles import find_dates, find_handles
from sidecar.retrieval.tokenizer import fold, normalize, tokenize
from sidecar.retrieval.vectors import Codes, Vectors

SHARES = {"goals": 0.5, "projects": 0.3, "files": 0.2, "time": 0.2}
RELATED_FROM, SAME_FROM = 0.3, 0.8
"""Cosine with a goal from which a memory has to do with it, and from which it is about it."""
NEAR_DAYS = 14.0
"""Days ahead at which a date that the memory names still counts half."""
LEAST_TIME = 0.1
"""Below this a date is too far away to say anything."""

_UNIX = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)


def read_context(
    memory: Memory, context: Context, goal_cosines: Sequence[float], idf: Callable[[str], float], now: Micros
) -> Signal:
    """The signal; absent where nothing is known of what the agent works on, and the memory names no near time.

    `goal_cosines` are the memory's cosines with the goals, NaN where there is none; `idf` is the rarity of a term.
    """
    bears = {token.term for token in tokenize(memory.content)}
    return Signal.of_parts(
        {
            "goals": (_goals(context.goals, bears, goal_cosines, idf), SHARES["goals"]),
            "projects": (_projects(context.projects, memory, bears, idf), SHARES["projects"]),
            "files": (_files(context.files, memory, bears, idf), SHARES["files"]),
            "time": (_time(memory, now), SHARES["time"]),
        }
    )


def cosines_with(vector: Codes | None, goals: Vectors) -> list[float]:
    """The cosines of a memory's vector with the goals', of any lengths."""
    if vector is None or not vector.any():
        return [float("nan")] * len(goals)
    lengths = np.linalg.norm(goals, axis=1) * np.linalg.norm(vector)
    found: list[float] = np.divide(goals @ vector, lengths, out=np.full(len(goals), np.nan), where=lengths > 0).tolist()
    return found


def _goals(
    goals: Sequence[str], bears: set[str], cosines: Sequence[float], idf: Callable[[str], float]
) -> float | None:
    if not goals:
        return None
    by_words = max(_share(goal, bears, idf) for goal in goals)
    by_meaning = max((_scaled(cosine) for cosine in cosines if cosine == cosine), default=0.0)
    return max(by_words, by_meaning)


def _projects(projects: Sequence[str], memory: Memory, bears: set[str], idf: Callable[[str], float]) -> float | None:
    if not projects:
        return None
    names = {fold(name) for name in projects}
    own = {fold(tag) for tag in memory.tags} | {fold(memory.source_thread)}
    own |= {fold(value) for key, value in memory.metadata.items() if key == "project" and isinstance(value, str)}
    return 1.0 if names & own else max(_share(project, bears, idf) for project in projects)


def _files(files: Sequence[str], memory: Memory, bears: set[str], idf: Callable[[str], float]) -> float | None:
    if not files:
        return None
    own = {handle.value for handle in find_handles(memory.content) if handle.kind == "path"}
    asked = {handle.value for file in files for handle in find_handles(file) if handle.kind == "path"}
    return 1.0 if own & asked else max(_share(file, bears, idf) for file in files)


def _time(memory: Memory, now: Micros) -> float | None:
    """How near ahead a date is that the memory names, or the end of its validity; None for none that is near."""
    ahead = [(time - now) / DAY for time in _times(memory, now)]
    best = max((2.0 ** -(days / NEAR_DAYS) for days in ahead if days >= -1.0), default=0.0)
    return min(best, 1.0) if best >= LEAST_TIME else None


def _times(memory: Memory, now: Micros) -> Iterable[Micros]:
    if memory.valid_until_time is not None:
        yield memory.valid_until_time
    today = _UNIX + datetime.timedelta(microseconds=now)
    for year, month, day in find_dates(normalize(memory.content)):
        for each in (year,) if year is not None else (today.year, today.year + 1):
            try:
                date = datetime.datetime(each, month, day or 1, tzinfo=datetime.UTC)
            except ValueError:  # the 30th of February
                continue
            yield round((date - _UNIX).total_seconds()) * SECOND


def _share(text: str, bears: set[str], idf: Callable[[str], float]) -> float:
    """The share of a text's words, by their rarity, that the memory bears."""
    terms = {token.term for token in tokenize(text) if not token.is_stop_word}
    total = sum(idf(term) for term in terms)
    return sum(idf(term) for term in terms & bears) / total if total else 0.0


def _scaled(cosine: float) -> float:
    return min(max((cosine - RELATED_FROM) / (SAME_FROM - RELATED_FROM), 0.0), 1.0)
