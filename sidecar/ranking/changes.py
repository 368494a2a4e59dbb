"""The smallest single change that would have put a missed memory into the packet.

Every change that is told was tried: the packet is packed again with it, by the same functions that serve, and the
memory was in; where a write moves importances, with those that it leads to. Of a number, neither one less of the change
does, nor half of it.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

import numpy as np

from sidecar.domain import MOST_IN_FILTER, LeftOutReason
from sidecar.plurals import counted
from sidecar.ranking import gate_changes as gate
from sidecar.ranking.case import Case, Change, change, settled
from sidecar.ranking.gates import FILTERED_CODE, GATES, Gates
from sidecar.ranking.packing import NO_ROWS, Fill
from sidecar.ranking.pipeline import Packed

MAX_ITEMS = 200
MAX_SLOTS = 2
MAX_TOKEN_BUDGET = 10_000_000
MAX_TRIES = 60
"""Budgets above, budgets below, and other memories to leave out, that are tried one by one: large packets have
thousands, and an answer is waited for."""

Search = Callable[[Case], Iterator[Change]]


@dataclass(frozen=True, slots=True)
class Found:
    """The smallest change, if any, and the names of all that were tried."""

    change: Change | None
    tried: list[str]


def smallest_change(case: Case, reason: LeftOutReason) -> Found:
    """The first single change that admits the memory, those of what stopped it first.

    A gate, and min_score, yield to nothing but what they read; behind them another change may do where the first does
    not, so all are tried that the filling of a packet reads.
    """
    first = _FIRST[reason]
    searches = first if reason in _ALONE else [*first, *(each for each in _FILLING if each not in first)]
    tried: dict[str, None] = {}
    for search in searches:
        tried[_NAMES[search]] = None
        found = next(search(case), None)
        if found is not None:
            return Found(found, list(tried))
    return Found(None, list(tried))


def _pin(case: Case) -> Iterator[Change]:
    if not case.columns.pinned[case.row] and case.admits(
        case.rewritten(case.with_column("pinned", True)), is_written=True
    ):
        yield change("memory.pinned", False, True, "pin it.")


def _min_score(case: Case) -> Iterator[Change]:
    limits = case.limits
    own = float(case.occasion.scored.score[case.row])
    if limits.min_score is None or own >= limits.min_score:
        return
    if case.admits(limits=replace(limits, min_score=own)):
        yield change("min_score", limits.min_score, own, f"lower min_score to {own!r}.")


def _exclude(case: Case) -> Iterator[Change]:
    """Without the twin, or else without one of the others in the packet, the last first, or of those that are not and
    have a share in how room and places are parted: the pinned ones, and under a budget, beside pinned ones, all others,
    the largest first."""
    scored, wanted = case.occasion.scored, case.occasion.request.filter
    if len(wanted.exclude_ids) >= MOST_IN_FILTER["exclude_ids"]:
        return
    twin = case.packed.seen.twin(case.row)
    pinned = scored.gates.pinned.tolist()
    parting = case.packed.ranked.candidates if pinned and case.limits.token_budget is not None else NO_ROWS
    largest_first = parting[np.argsort(-scored.tokens[parting], kind="stable")].tolist()
    others = [each for each in dict.fromkeys((*case.packed.rows[::-1], *pinned, *largest_first)) if each != case.row]
    for other in (others if twin is None else [twin, *(row for row in others if row != twin)])[:MAX_TRIES]:
        codes = scored.gates.codes.copy()
        codes[other] = FILTERED_CODE
        if case.admits(replace(scored, gates=Gates.of(codes, scored.columns))):
            name = case.columns.ids[other]
            old, new = sorted(wanted.exclude_ids), sorted(wanted.exclude_ids | {name})
            yield change("filter.exclude_ids", old, new, f"leave {name!r} out.")


def _raise_budget(case: Case) -> Iterator[Change]:
    """The next budgets at which anything else of its segment is admitted, one by one; then by halving, from the largest
    of all."""
    limits, packed = case.limits, case.packed
    if limits.token_budget is None:
        return
    budget = limits.token_budget
    for _ in range(MAX_TRIES):
        needed = _own(case, packed).next_budget
        budget = MAX_TOKEN_BUDGET + 1 if needed is None else _least_budget(case, packed, needed, budget + 1)
        if budget > MAX_TOKEN_BUDGET:
            break
        packed = case.pack(replace(limits, token_budget=budget))
        if case.row in packed.rows:
            break
    else:
        budget = MAX_TOKEN_BUDGET

    def admits(budget: int) -> bool:
        return case.admits(limits=replace(limits, token_budget=budget))

    if budget <= MAX_TOKEN_BUDGET and admits(budget):
        found = settled(limits.token_budget, budget, admits)
        yield change("token_budget", limits.token_budget, found, f"raise token_budget to {found}.")
    elif case.admits(limits=replace(limits, token_budget=None)):
        yield change("token_budget", limits.token_budget, None, "send no token_budget.")


def _lower_budget(case: Case) -> Iterator[Change]:
    """With less, a larger and better memory may not fit and make room. What a segment holds stays the same down to the
    tokens that it is charged, so the next budget to try is the largest that gives it less."""
    limits, packed = case.limits, case.packed
    old, own = limits.token_budget, int(case.occasion.scored.tokens[case.row])
    budget = MAX_TOKEN_BUDGET if old is None else _budget_below(case, packed)
    for _ in range(MAX_TRIES):
        if budget < own:
            return
        packed = case.pack(replace(limits, token_budget=budget))
        if case.row in packed.rows:
            yield change("token_budget", old, budget, f"lower token_budget to {budget}.")
            return
        budget = _budget_below(case, packed)


def _budget_below(case: Case, packed: Packed) -> int:
    """The largest token budget that gives the memory's segment less than it holds; below 0 if it holds nothing."""
    return _least_budget(case, packed, _own(case, packed).tokens, 0) - 1


def _token_count(case: Case) -> Iterator[Change]:
    """The memory itself smaller: whether it fits at its turn is all that its size decides, so the largest is found by
    halving."""
    scored, row = case.occasion.scored, case.row
    old = int(case.columns.tokens[row])
    wrapper = int(scored.tokens[row]) - old
    written = case.rewritten(case.columns)

    def fits(count: int) -> bool:
        tokens = scored.tokens.copy()
        tokens[row] = count + wrapper
        return case.admits(replace(written, tokens=tokens), is_written=True)

    if old <= 1 or not fits(1):
        return
    good, bad = 1, old
    while bad - good > 1:
        middle = (good + bad) // 2
        good, bad = (middle, bad) if fits(middle) else (good, middle)
    yield change("memory.token_count", old, good, f"say it in {counted(good, 'token')}.")


def _max_items(case: Case) -> Iterator[Change]:
    """With more places and as many slots a packet goes on where it stopped, so the least count is found by halving;
    with fewer it ends earlier, so fewer help only where they leave another number of slots."""
    request = case.occasion.request
    more: dict[int, list[int]] = {}
    for count in range(request.max_items + 1, MAX_ITEMS + 1):
        more.setdefault(case.limits_at(max_items=count).slots, []).append(count)

    def admits(count: int) -> bool:
        return case.admits(limits=case.limits_at(max_items=count))

    for possible in more.values():
        if admits(possible[-1]):
            count = possible[bisect_left(possible, True, hi=len(possible) - 1, key=admits)]
            yield change("max_items", request.max_items, count, f"raise max_items to {count}.")
            return
    if request.reserved_slots is not None:
        return
    seen = {case.limits.slots}
    for count in range(request.max_items - 1, 0, -1):
        limits = case.limits_at(max_items=count)
        if limits.slots not in seen and admits(count):
            yield change("max_items", request.max_items, count, f"lower max_items to {count}, with fewer slots.")
            return
        seen.add(limits.slots)


def _reserved_slots(case: Case) -> Iterator[Change]:
    request, now = case.occasion.request, case.limits.slots
    if request.dry_run:
        return
    for slots in sorted(set(range(min(MAX_SLOTS + 1, request.max_items))) - {now}, key=lambda each: abs(each - now)):
        if case.admits(limits=case.limits_at(reserved_slots=slots)):
            yield change("reserved_slots", request.reserved_slots, slots, f"ask for {slots} reserved slots.")
            return


_FIRST: dict[LeftOutReason, list[Search]] = {
    LeftOutReason.FILTERED: [gate.filter_parts],
    LeftOutReason.SUPPRESSED: [gate.suppression],
    LeftOutReason.RATED_UNHELPFUL: [gate.ratings],
    LeftOutReason.EXPIRED: [gate.expiry, gate.as_of_time],
    LeftOutReason.NOT_YET_VALID: [gate.validity, gate.as_of_time],
    LeftOutReason.SUPERSEDED: [gate.superseded, gate.as_of_time],
    LeftOutReason.NOT_A_CANDIDATE: [_pin],
    LeftOutReason.BELOW_MIN_SCORE: [_min_score, _pin, gate.as_of_time],
    LeftOutReason.NEAR_DUPLICATE: [_exclude],
    LeftOutReason.OVERSIZED: [_raise_budget, _token_count],
    LeftOutReason.BUDGET: [_raise_budget, _token_count],
    LeftOutReason.OUTRANKED: [_max_items],
}
_ALONE = {*GATES, LeftOutReason.BELOW_MIN_SCORE} - {LeftOutReason.NOT_A_CANDIDATE}
_FILLING: list[Search] = [
    *(_pin, _raise_budget, _token_count, _max_items, _reserved_slots, _exclude, _lower_budget, gate.as_of_time)
]
_NAMES: dict[Search, str] = {
    gate.filter_parts: "filter",
    gate.suppression: "memory.suppressed",
    gate.ratings: "memory.ratings.unhelpful",
    gate.expiry: "memory.valid_until_time",
    gate.validity: "memory.valid_from_time",
    gate.superseded: "memory.superseded_by",
    gate.as_of_time: "as_of_time",
    _min_score: "min_score",
    _pin: "memory.pinned",
    _exclude: "filter.exclude_ids",
    _raise_budget: "token_budget",
    _lower_budget: "token_budget",
    _token_count: "memory.token_count",
    _max_items: "max_items",
    _reserved_slots: "reserved_slots",
}


def _own(case: Case, packed: Packed) -> Fill:
    """The segment that the memory could stand in."""
    return packed.pinned if case.columns.pinned[case.row] else packed.ranked


def _least_budget(case: Case, packed: Packed, needed: int, above: int) -> int:
    """The least token budget from `above` on that gives the memory's segment `needed` tokens; one more than the largest
    of all if none does. Budgets of segments grow with the whole."""

    def suffices(budget: int) -> bool:
        budgets = packed.split(budget)
        of_segment = budgets.pinned if case.columns.pinned[case.row] else budgets.ranked
        return of_segment is not None and of_segment >= needed

    return above + bisect_left(range(above, MAX_TOKEN_BUDGET + 1), True, key=suffices)
