"""Why a memory was missed, and the smallest single change that would have put it into the packet.

Every change that is told was tried: the packet is packed again with it, by the same functions that serve, and the
memory was in. Numbers are the least that do: a budget or a count of items one lower does not admit.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, fields, replace
from typing import Any

import numpy as np

from sidecar.domain import Filter, LeftOutReason, Packet
from sidecar.errors import MemoryNotFoundError
from sidecar.features import FEATURE_NAMES, Columns
from sidecar.ranking.gates import GATES, PASSED, gate_codes
from sidecar.ranking.packing import SLOT_SHARE_INVERSE
from sidecar.ranking.pipeline import Limits, Packed, Scored, pack
from sidecar.ranking.ranker import Occasion

MAX_ITEMS = 200
MAX_TOKEN_BUDGET = 10_000_000


@dataclass(frozen=True, slots=True)
class FeatureGap:
    """One feature of the missed memory beside that of the last admitted one."""

    feature: str
    value: float
    admitted_value: float
    contribution: float
    admitted_contribution: float


@dataclass(frozen=True, slots=True)
class Change:
    """A change of one thing: `field` of the request, or of the memory as memory.FIELD; values are JSON."""

    field: str
    from_json: str
    to_json: str
    message: str


@dataclass(frozen=True, slots=True)
class Miss:
    """The answer. `place` is from 1 and set only if the memory was served after all; then nothing else is."""

    message: str
    place: int | None = None
    reason: LeftOutReason | None = None
    score: float | None = None
    rank: int | None = None
    admitted_score: float | None = None
    gaps: tuple[FeatureGap, ...] = ()
    smallest_change: Change | None = None
    store_moved_on: bool = False
    other_memory_id: str = ""


def explain_miss(occasion: Occasion, memory_id: str, packet: Packet | None) -> Miss:
    """Explains why `memory_id` is not in the packet of `occasion`; `packet` is the one that was served, if any.

    Raises MemoryNotFoundError if the namespace has no such memory now.
    """
    moved_on = packet is not None and packet.score_version != occasion.snapshot.score_version
    if packet is not None:
        for place, item in enumerate(packet.items, start=1):
            if item.memory_id == memory_id:
                return Miss(f"It was served, at place {place}.", place=place, store_moved_on=moved_on)
    row = occasion.snapshot.row_of_id.get(memory_id)
    if row is None:
        raise MemoryNotFoundError(
            f"memory_id: {memory_id!r} is not in namespace {occasion.request.namespace!r}; it may have been deleted",
            memory_id=memory_id,
        )
    case = _Case(occasion, row)
    if row in case.packed.rows:
        place = case.packed.rows.index(row) + 1
        if packet is None:
            return Miss(f"It is served, at place {place} before reserved slots.", place=place)
        return Miss("It was not served, but would be now: the store has moved on.", store_moved_on=moved_on)
    gate = int(occasion.scored.codes[row])
    reason = GATES[gate - 1] if gate > PASSED else case.packed.reason_of(row)
    if reason is None:
        raise AssertionError("a live memory is either packed or left out for a reason")
    change = next(case.changes(reason), None)
    other = case.other(reason)
    words = _WORDS[reason]
    return Miss(
        message=f"{words}{f' The other memory is {other!r}.' if other else ''}"
        + ("" if change else " No single change admits it."),
        reason=reason,
        **(_standing(case) if gate == PASSED else {}),
        smallest_change=change,
        store_moved_on=moved_on,
        other_memory_id=other,
    )


_WORDS = {
    LeftOutReason.FILTERED: "The request's filter left it out.",
    LeftOutReason.SUPPRESSED: "It is suppressed.",
    LeftOutReason.RATED_UNHELPFUL: "It was rated unhelpful.",
    LeftOutReason.EXPIRED: "It had expired.",
    LeftOutReason.NOT_YET_VALID: "It was not yet valid.",
    LeftOutReason.SUPERSEDED: "Another memory replaces it.",
    LeftOutReason.BELOW_MIN_SCORE: "Its score is below min_score.",
    LeftOutReason.NEAR_DUPLICATE: "It says the same as a memory that is in the packet.",
    LeftOutReason.OVERSIZED: "It is larger than the whole budget of its segment.",
    LeftOutReason.BUDGET: "It did not fit into what was left of the token budget.",
    LeftOutReason.OUTRANKED: "Others scored higher and took the places.",
}


def _standing(case: _Case) -> dict[str, Any]:
    """Score, rank, and the features by which it lost against the last admitted ranked memory."""
    scored, row = case.occasion.scored, case.row
    total, ids = scored.parts.score, scored.columns.ids
    own = total[row]
    passed = np.flatnonzero(scored.codes == PASSED)
    ties = sum(ids[other] < ids[row] for other in passed[total[passed] == own].tolist())
    standing: dict[str, Any] = {"score": float(own), "rank": 1 + int((total[passed] > own).sum()) + ties}
    if case.packed.ranked.rows:
        last = case.packed.ranked.rows[-1]
        gaps = [
            FeatureGap(name, *map(float, pair))
            for name, pair in zip(
                FEATURE_NAMES,
                zip(
                    scored.features[row],
                    scored.features[last],
                    scored.parts.matrix[row],
                    scored.parts.matrix[last],
                    strict=True,
                ),
                strict=True,
            )
        ]
        gaps.sort(key=lambda gap: gap.contribution - gap.admitted_contribution)
        standing |= {"admitted_score": float(total[last]), "gaps": tuple(gaps)}
    return standing


@dataclass(slots=True)
class _Case:
    """One missed row, and the ways to pack again with one thing changed."""

    occasion: Occasion
    row: int
    packed: Packed = field(init=False)

    def __post_init__(self) -> None:
        self.packed = self._pack(self.occasion.scored, self.occasion.limits())

    def other(self, reason: LeftOutReason) -> str:
        """Id of the memory that stands in the way, or ""."""
        if reason is LeftOutReason.NEAR_DUPLICATE:
            twin = self.packed.seen.twin(self.row)
            return "" if twin is None else self.occasion.scored.columns.ids[twin]
        if reason is LeftOutReason.SUPERSEDED:
            return self.occasion.snapshot.memories[self.row].superseded_by
        return ""

    def changes(self, reason: LeftOutReason) -> Iterator[Change]:
        """Single changes that admit the memory, the one on what stopped it first."""
        by_reason: dict[LeftOutReason, Callable[[], Iterator[Change]]] = {
            LeftOutReason.FILTERED: self._filter,
            LeftOutReason.SUPPRESSED: lambda: self._flag("suppressed", True, False, "lift its suppression"),
            LeftOutReason.RATED_UNHELPFUL: lambda: self._flag(
                "unhelpful", int(self._columns.unhelpful[self.row]), 0, "withdraw the ratings that say unhelpful"
            ),
            LeftOutReason.EXPIRED: self._expiry,
            LeftOutReason.NOT_YET_VALID: self._validity,
            LeftOutReason.SUPERSEDED: self._superseded,
            LeftOutReason.BELOW_MIN_SCORE: self._min_score,
            LeftOutReason.NEAR_DUPLICATE: self._twin,
            LeftOutReason.OVERSIZED: self._budget,
            LeftOutReason.BUDGET: self._budget,
            LeftOutReason.OUTRANKED: self._max_items,
        }
        yield from by_reason[reason]()
        if not self._columns.pinned[self.row] and reason not in GATES:
            yield from self._flag("pinned", False, True, "pin it")

    @property
    def _columns(self) -> Columns:
        return self.occasion.scored.columns

    def _pack(self, scored: Scored, limits: Limits) -> Packed:
        return pack(scored, limits, self.occasion.same)

    def _admits(self, scored: Scored | None = None, limits: Limits | None = None) -> bool:
        packed = self._pack(scored or self.occasion.scored, limits or self.occasion.limits())
        return self.row in packed.rows

    def _regated(self, columns: Columns, wanted: Filter | None = None, superseded: bool | None = None) -> Scored:
        """The same scores behind gates that are asked again."""
        occasion = self.occasion
        wanted = occasion.request.filter if wanted is None else wanted
        allowed = None if wanted.is_empty else occasion.snapshot.filter_mask(wanted)
        hidden = occasion.snapshot.superseded_at(occasion.as_of_time)
        if superseded is not None:
            hidden = hidden.copy()
            hidden[self.row] = superseded
        codes = gate_codes(columns, allowed, hidden, occasion.as_of_time)
        return replace(occasion.scored, columns=columns, codes=codes)

    def _with_column(self, name: str, value: Any) -> Columns:
        changed = getattr(self._columns, name).copy()
        changed[self.row] = value
        return replace(self._columns, **{name: changed})

    def _flag(self, name: str, old: Any, new: Any, words: str) -> Iterator[Change]:
        if self._admits(self._regated(self._with_column(name, new))):
            path = {"unhelpful": "memory.ratings.unhelpful"}.get(name, f"memory.{name}")
            yield _change(path, old, new, f"{words}.")

    def _filter(self) -> Iterator[Change]:
        wanted = self.occasion.request.filter
        empty = Filter()
        parts = [each.name for each in fields(Filter) if getattr(wanted, each.name) != getattr(empty, each.name)]
        for part in parts:
            loosened = replace(wanted, **{part: getattr(empty, part)})
            if self._admits(self._regated(self._columns, loosened)):
                yield _change(f"filter.{part}", _plain(getattr(wanted, part)), None, f"leave {part} out of the filter.")
        if len(parts) > 1 and self._admits(self._regated(self._columns, empty)):
            yield _change("filter", parts, None, "send no filter.")

    def _expiry(self) -> Iterator[Change]:
        old, new = int(self._columns.valid_until_time[self.row]), self.occasion.as_of_time + 1
        if self._admits(self._regated(self._with_column("valid_until_time", new))):
            yield _change("memory.valid_until_time", old, new, "let it expire later (microseconds since 1970).")

    def _validity(self) -> Iterator[Change]:
        old, new = int(self._columns.valid_from_time[self.row]), self.occasion.as_of_time
        if self._admits(self._regated(self._with_column("valid_from_time", new))):
            yield _change("memory.valid_from_time", old, new, "let it be valid earlier (microseconds since 1970).")

    def _superseded(self) -> Iterator[Change]:
        if self._admits(self._regated(self._columns, superseded=False)):
            old = self.occasion.snapshot.memories[self.row].superseded_by
            yield _change("memory.superseded_by", old, "", "let nothing supersede it.")

    def _min_score(self) -> Iterator[Change]:
        limits = self.occasion.limits()
        own = float(self.occasion.scored.parts.score[self.row])
        if self._admits(limits=replace(limits, min_score=own)):
            yield _change("min_score", limits.min_score, own, f"lower min_score to {own!r}.")

    def _twin(self) -> Iterator[Change]:
        other = self.other(LeftOutReason.NEAR_DUPLICATE)
        wanted = self.occasion.request.filter
        without = replace(wanted, exclude_ids=wanted.exclude_ids | {other})
        if other and self._admits(self._regated(self._columns, without)):
            old, new = sorted(wanted.exclude_ids), sorted(without.exclude_ids)
            yield _change("filter.exclude_ids", old, new, f"leave {other!r} out.")

    def _budget(self) -> Iterator[Change]:
        limits = self.occasion.limits()
        packed = self.packed
        while (budget := _next_budget(packed, limits.slots)) is not None and budget <= MAX_TOKEN_BUDGET:
            packed = self._pack(self.occasion.scored, replace(limits, token_budget=budget))
            if self.row in packed.rows:
                yield _change("token_budget", limits.token_budget, budget, f"raise token_budget to {budget}.")
                return

    def _max_items(self) -> Iterator[Change]:
        request = self.occasion.request
        for count in range(request.max_items + 1, MAX_ITEMS + 1):
            asked = replace(self.occasion, request=replace(request, max_items=count))
            if self._admits(limits=asked.limits()):
                yield _change("max_items", request.max_items, count, f"raise max_items to {count}.")
                return


def _next_budget(packed: Packed, slots: int) -> int | None:
    """The least token budget of the whole packet at which something else is admitted; None if all fitted."""
    ranked = packed.ranked.next_budget
    needs = [packed.pinned.next_budget, None if ranked is None else ranked + packed.pinned.tokens]
    least = min((need for need in needs if need is not None), default=None)
    if least is None:
        return None
    whole = least * SLOT_SHARE_INVERSE // (SLOT_SHARE_INVERSE - slots)
    while whole - whole * slots // SLOT_SHARE_INVERSE < least:
        whole += 1
    while whole > 0 and (whole - 1) - (whole - 1) * slots // SLOT_SHARE_INVERSE >= least:
        whole -= 1
    return whole


def _plain(value: Any) -> Any:
    return sorted(value) if isinstance(value, frozenset) else value


def _change(path: str, old: Any, new: Any, words: str) -> Change:
    return Change(path, json.dumps(old, default=str), json.dumps(new), words[0].upper() + words[1:])
