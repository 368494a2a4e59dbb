"""The times to rank for at which a missed memory is in the packet: where they are looked for, and how far.

Between two turns no gate opens or closes and no use is reported, so that one time stands for all; only where weights
count recency do scores go on falling there, each at its own pace.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sidecar.domain import Floats, Micros
from sidecar.features import BY_NAME, FEATURE_NAMES, NO_TIME, PARTLY_FED_BY_USE, USE_FAMILY
from sidecar.features.recency import whole_minute
from sidecar.formats.bounds import END_SECOND, FIRST_SECOND
from sidecar.ranking.case import Case, settled
from sidecar.ranking.gates import Gates

FIRST_TIME: Micros = FIRST_SECOND * 1_000_000
LAST_TIME: Micros = END_SECOND * 1_000_000 - 1
MOST_TRIES = 1_000
MOST_READ = 2_000_000
"""So many times are tried, or as many as read so many memories together if that is fewer; but always FEWEST_TRIES."""
FEWEST_TRIES = 2
REPORT = 50
"""To read a report once more takes as long as to score so many memories."""
MOST_COMPARED = 1_000
"""Of more memories that could stand before it, none is said to keep its place between two times."""

RECENCY = FEATURE_NAMES.index("recency")
FED_BY_USE = {FEATURE_NAMES.index(name) for name in (*USE_FAMILY, *PARTLY_FED_BY_USE)}


@dataclass(frozen=True, slots=True)
class Span:
    """The times from `first` to `last`, both included: no turn lies between them."""

    first: Micros
    last: Micros

    def nearest(self, time: Micros) -> Micros:
        """The one of them that is nearest to `time`."""
        return min(max(time, self.first), self.last)


def admitting_time(case: Case) -> Micros | None:
    """A time for which the memory is in the packet, where neither one less of the way from the time that was ranked for
    nor half of it is one; None if there is none.

    The nearest time of each span is tried, the nearest span first; then, where scores fall within spans, what lies
    inside them. Either search ends after MOST_TRIES, and of n memories and r reports after MOST_READ / (n + REPORT r).
    """
    now, request, use_times = case.occasion.as_of_time, case.occasion.request, case.again.use_times()
    spans = sorted(open_spans(case, use_times), key=lambda span: abs(span.nearest(now) - now))
    most = max(FEWEST_TRIES, min(MOST_TRIES, MOST_READ // (len(case.columns) + REPORT * len(use_times))))

    @functools.cache
    def admits(time: Micros) -> bool:
        return (request.as_of_time is None or time != now) and case.holds(case.again.at(time))

    falls = RECENCY in case.occasion.weights.weighted
    found = next((time for span in spans[:most] if admits(time := span.nearest(now))), None)
    if found is None and falls:
        found = _inside(case, spans, most)
    if found is None or not falls:
        return found
    way = 1 if found > now else -1

    def admits_further(micros: int) -> bool:
        time = now + way * micros
        return any(span.nearest(time) == time for span in spans) and admits(time)

    return now + way * settled(0, abs(found - now), admits_further) if found != now else now


def open_spans(case: Case, use_times: Sequence[Micros]) -> Iterator[Span]:
    """All times for which no gate stops the memory, parted at every turn and around the time that was ranked for; and
    some for which one might, where what replaces it depends on the time."""
    columns, row, now = case.columns, case.row, case.occasion.as_of_time
    learned = columns.create_time.copy()
    undated = case.again.undated
    learned[[case.occasion.snapshot.row_of_id[name] for name in undated]] = FIRST_TIME
    starts = np.maximum(learned, columns.valid_from_time)
    ends = np.where(columns.valid_until_time == NO_TIME, LAST_TIME + 1, columns.valid_until_time)
    turns = [learned, columns.valid_from_time, ends, np.array([FIRST_TIME, now, now + 1])]
    if not FED_BY_USE.isdisjoint(case.occasion.weights.weighted):
        turns += [columns.last_use_time, np.array([case.now, *use_times], np.int64)]
    if undated:
        # Of those that replace each other, they are the last to be learned, but for one learned just then; and a filter
        # of times of creation lets them through or not as the time is.
        wanted = case.occasion.request.filter
        bounds = [time for time in (wanted.create_time_from, wanted.create_time_until) if time is not None]
        turns += [learned + 1, np.array(bounds, np.int64)]
    firsts: NDArray[np.int64] = np.unique(np.concatenate(turns))
    firsts = firsts[(firsts >= FIRST_TIME) & (firsts <= LAST_TIME)]
    is_open = (starts[row] <= firsts) & (firsts < ends[row])
    for other in () if undated else case.occasion.snapshot.replacements(row):
        if columns.live[other]:
            is_open &= ~((starts[other] <= firsts) & (firsts < ends[other]))
    lasts = np.append(firsts[1:] - 1, LAST_TIME)
    for first, last in zip(firsts[is_open].tolist(), lasts[is_open].tolist(), strict=True):
        yield Span(first, last)


@dataclass(frozen=True, slots=True)
class _Moment:
    """What a time comes to: whether the memory is in its packet, and the scores. `decays` is True of rows whose score
    falls with time by what they have of recency, neither more nor less. Shapes (n,)."""

    time: Micros
    admits: bool
    score_version: int
    score: Floats
    decays: NDArray[np.bool_]
    gates: Gates


def _inside(case: Case, spans: list[Span], most: int) -> Micros | None:
    """A time inside a span; each is halved until nothing that could stand before the memory changes its place there."""
    now, left = case.occasion.as_of_time, most
    for span in spans:
        if left < 2:
            return None
        first, last = _at(case, span.first), _at(case, span.last)
        left -= 2
        for moment in sorted((first, last), key=lambda moment: abs(moment.time - now)):
            if moment.admits:
                return moment.time
        parts = [(first, last)]
        while parts:
            first, last = parts.pop()
            if _stays(case, first, last):
                continue
            if not left:
                return None
            left -= 1
            middle = _at(case, (first.time + last.time) // 2)
            if middle.admits:
                return middle.time
            halves = [(first, middle), (middle, last)]
            parts += halves if now > middle.time else halves[::-1]  # the nearer one is next
    return None


def _at(case: Case, time: Micros) -> _Moment:
    occasion = case.again.at(time)
    weights, scored = occasion.weights, occasion.scored
    value = occasion.view.value(BY_NAME["recency"])
    part = scored.standing.known.parts.get(RECENCY, np.zeros(len(value)))
    plain = np.isclose(part, value * weights.values[RECENCY], rtol=1e-9, atol=0.0) & (not weights.curves)
    version = occasion.snapshot.score_version
    return _Moment(time, case.holds(occasion), version, scored.score, plain, scored.gates)


def _stays(case: Case, first: _Moment, last: _Moment) -> bool:
    """True if nothing between two times of a span, of which neither admits, can be another packet.

    No score rises as time goes on: who is ahead at the last time by more than the other had at first stays ahead. Of
    two that decay by the same half-life the difference has no turning point, and so no more than one sign from end to
    end where both ends have the same.
    """
    if last.time - first.time <= 1 or whole_minute(first.time) == whole_minute(last.time):
        return True
    if first.score_version != last.score_version:
        return False
    occasion, row, floor = case.occasion, case.row, case.limits.min_score
    pinned, others, high, low = first.gates.pinned, first.gates.others, first.score, last.score
    if floor is not None:
        asked = others if case.limits.token_budget is not None and len(pinned) else others[others == row]
        if ((high[asked] >= floor) & (low[asked] < floor)).any():
            return False
    half_life = occasion.view.by_kind(occasion.view.half_life_days)
    before = others[high[others] >= low[row]] if not case.columns.pinned[row] else others[:0]
    for rows in (pinned, before):
        if len(rows) > MOST_COMPARED:
            return False
        order = _order(case, rows, high)
        if order != _order(case, rows, low):
            return False
        rows = np.array(order, dtype=np.intp)
        is_still = high[rows] == low[rows]
        is_apart = np.greater.outer(low[rows], high[rows]) | np.logical_and.outer(is_still, is_still)
        is_alike = np.equal.outer(half_life[rows], half_life[rows])
        is_alike &= np.logical_and.outer(first.decays[rows], first.decays[rows])
        if not (is_apart | is_alike)[np.triu_indices(len(rows), 1)].all():
            return False
    return True


def _order(case: Case, rows: NDArray[np.int64], score: Floats) -> list[int]:
    ids = case.columns.ids
    return sorted(rows.tolist(), key=lambda row: (-score[row], ids[row]))
