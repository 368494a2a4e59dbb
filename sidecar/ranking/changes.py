"""The smallest single change that would have put a missed memory into the packet.

Every change that is told was tried: the packet is packed again with it, by the same functions that serve, and the
memory was in. Numbers are the first that do: a budget or a count of items one lower does not admit.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, fields, replace
from typing import Any

from sidecar.domain import Filter, LeftOutReason, Memory
from sidecar.features import Columns
from sidecar.ranking.gates import GATES, gate_codes
from sidecar.ranking.packing import SLOT_SHARE_INVERSE
from sidecar.ranking.pipeline import Limits, Packed, Scored, pack
from sidecar.ranking.ranker import Occasion

MAX_ITEMS = 200
MAX_TOKEN_BUDGET = 10_000_000

_OPEN = Filter()


@dataclass(frozen=True, slots=True)
class Change:
    """A change of one thing: `field` of the request, or of the memory as memory.FIELD; values are JSON, times in
    microseconds since 1970, and null stands for unset."""

    field: str
    from_json: str
    to_json: str
    message: str


@dataclass(slots=True)
class Case:
    """One missed row, and the ways to pack again with one thing changed. `check` raises past the deadline."""

    occasion: Occasion
    row: int
    check: Callable[[], None]
    packed: Packed = field(init=False)

    def __post_init__(self) -> None:
        self.packed = self._pack(self.occasion.scored, self.occasion.limits())

    @property
    def memory(self) -> Memory:
        """The missed memory."""
        return self.occasion.snapshot.memories[self.row]

    def twin(self) -> str:
        """Id of the memory in the packet that says the same, or ""."""
        twin = self.packed.seen.twin(self.row)
        return "" if twin is None else self.occasion.scored.columns.ids[twin]

    def changes(self, reason: LeftOutReason) -> Iterator[Change]:
        """Single changes that admit the memory, that of what stopped it first.

        A gate yields to nothing but its own change; behind the gates another may do where the first does not.
        """
        of_reason: dict[LeftOutReason, Callable[[], Iterator[Change]]] = {
            LeftOutReason.FILTERED: self._filter,
            LeftOutReason.SUPPRESSED: self._suppression,
            LeftOutReason.RATED_UNHELPFUL: self._ratings,
            LeftOutReason.EXPIRED: self._expiry,
            LeftOutReason.NOT_YET_VALID: self._validity,
            LeftOutReason.SUPERSEDED: self._superseded,
            LeftOutReason.BELOW_MIN_SCORE: self._min_score,
            LeftOutReason.NEAR_DUPLICATE: self._twin,
            LeftOutReason.OVERSIZED: self._budget,
            LeftOutReason.BUDGET: self._budget,
            LeftOutReason.OUTRANKED: self._max_items,
        }
        first = of_reason[reason]
        yield from first()
        if reason not in GATES:
            for other in (self._pin, self._min_score, self._twin, self._budget, self._max_items):
                if other != first:
                    yield from other()

    @property
    def _columns(self) -> Columns:
        return self.occasion.scored.columns

    def _pack(self, scored: Scored, limits: Limits) -> Packed:
        self.check()
        return pack(scored, limits, self.occasion.fingerprint)

    def _admits(self, scored: Scored | None = None, limits: Limits | None = None) -> bool:
        packed = self._pack(scored or self.occasion.scored, limits or self.occasion.limits())
        return self.row in packed.rows

    def _regated(self, columns: Columns, wanted: Filter | None = None, unlinked: int | None = None) -> Scored:
        """The same scores behind gates that are asked again. `unlinked` names no replacement any more."""
        occasion = self.occasion
        wanted = occasion.request.filter if wanted is None else wanted
        allowed = None if wanted.is_empty else occasion.snapshot.filter_mask(wanted)
        superseded = occasion.snapshot.superseded_at(occasion.as_of_time, columns, unlinked)
        codes = gate_codes(columns, allowed, superseded, occasion.as_of_time, occasion.request.as_of_time)
        return replace(occasion.scored, columns=columns, codes=codes)

    def _with_column(self, name: str, value: Any) -> Columns:
        changed = getattr(self._columns, name).copy()
        changed[self.row] = value
        return replace(self._columns, **{name: changed})

    def _if_column(self, name: str, value: Any, path: str, words: str) -> Iterator[Change]:
        if self._admits(self._regated(self._with_column(name, value))):
            yield _change(path, getattr(self._columns, name)[self.row].item(), value, words)

    def _suppression(self) -> Iterator[Change]:
        return self._if_column("suppressed", False, "memory.suppressed", "lift its suppression.")

    def _ratings(self) -> Iterator[Change]:
        words = "withdraw the ratings that say unhelpful."
        return self._if_column("unhelpful", 0, "memory.ratings.unhelpful", words)

    def _pin(self) -> Iterator[Change]:
        if not self._columns.pinned[self.row]:
            yield from self._if_column("pinned", True, "memory.pinned", "pin it.")

    def _expiry(self) -> Iterator[Change]:
        later = self.occasion.as_of_time + 1
        return self._if_column("valid_until_time", later, "memory.valid_until_time", "let it expire later.")

    def _validity(self) -> Iterator[Change]:
        now = self.occasion.as_of_time
        return self._if_column("valid_from_time", now, "memory.valid_from_time", "let it be valid earlier.")

    def _superseded(self) -> Iterator[Change]:
        if self._admits(self._regated(self._columns, unlinked=self.row)):
            yield _change("memory.superseded_by", self.memory.superseded_by, "", "let nothing supersede it.")

    def _filter(self) -> Iterator[Change]:
        wanted = self.occasion.request.filter
        values = {each.name: getattr(wanted, each.name) for each in fields(Filter)}
        for part, value in values.items():
            if value == getattr(_OPEN, part) or self._passes(part, value):
                continue
            opened = self._opened(part, value)
            if self._admits(self._regated(self._columns, replace(wanted, **{part: opened}))):
                new = None if opened == getattr(_OPEN, part) else _plain(opened)
                words = f"leave {part} out of the filter." if new is None else f"let the filter's {part} pass it."
                yield _change(f"filter.{part}", _plain(value), new, words)
        if self._admits(self._regated(self._columns, _OPEN)):
            yield _change(
                "filter", [part for part in values if values[part] != getattr(_OPEN, part)], None, "send none."
            )

    def _passes(self, part: str, value: Any) -> bool:
        return bool(self.occasion.snapshot.filter_mask(Filter(**{part: value}))[self.row])

    def _opened(self, part: str, value: Any) -> Any:
        """The value of a filter's part nearest to `value` that lets the memory pass."""
        memory = self.memory
        match part:
            case "create_time_from" | "update_time_from":
                return getattr(memory, part.removesuffix("_from"))
            case "create_time_until" | "update_time_until":
                return getattr(memory, part.removesuffix("_until")) + 1
            case "exclude_ids":
                return value - {memory.id}
            case "all_tags":
                return value & set(memory.tags)
            case "metadata_equals":
                return {key: each for key, each in value.items() if self._passes(part, {key: each})}
        own = {
            "kinds": [memory.kind],
            "ids": [memory.id],
            "any_tags": memory.tags[:1],
            "source_threads": [memory.source_thread],
            "subjects": [memory.subject],
        }[part]
        return value | set(own) if any(own) else frozenset()

    def _min_score(self) -> Iterator[Change]:
        limits = self.occasion.limits()
        own = float(self.occasion.scored.parts.score[self.row])
        if limits.min_score is None or own >= limits.min_score:
            return
        if self._admits(limits=replace(limits, min_score=own)):
            yield _change("min_score", limits.min_score, own, f"lower min_score to {own!r}.")

    def _twin(self) -> Iterator[Change]:
        other = self.twin()
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
        """With more places and as many slots a packet goes on where it stopped, so one packing tells for all counts."""
        request = self.occasion.request
        counts: dict[int, list[int]] = {}
        for count in range(request.max_items + 1, MAX_ITEMS + 1):
            counts.setdefault(self._limits_at(count).slots, []).append(count)
        for slots, possible in counts.items():
            rows = self._pack(self.occasion.scored, self._limits_at(possible[-1])).rows
            if self.row in rows:
                count = max(possible[0], rows.index(self.row) + 1 + slots)
                yield _change("max_items", request.max_items, count, f"raise max_items to {count}.")
                return

    def _limits_at(self, max_items: int) -> Limits:
        return replace(self.occasion, request=replace(self.occasion.request, max_items=max_items)).limits()


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
    return Change(path, json.dumps(old), json.dumps(new), words[0].upper() + words[1:])
