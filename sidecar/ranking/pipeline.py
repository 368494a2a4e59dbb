"""From scored memories to a packed answer, as pure functions: budgets, ranked fill, pool, draw, places, in this order.

`Scored` is what one task makes of one snapshot; `pack` fills the pinned and ranked segments, `reserve` the slots.
Explaining a miss packs again with one thing changed, so what it says is what Rank does.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import chain, islice

import numpy as np
from numpy.typing import NDArray

from sidecar.domain import EmptyReason, Floats, LeftOutReason, Segment
from sidecar.features import REGISTRY, Columns, View
from sidecar.ranking.gates import Gates
from sidecar.ranking.packing import NO_ROWS, Budgets, ByScore, Fill, Rows, fill, split_budget, split_places
from sidecar.ranking.reserved import Draw, Places, ReserveSettings, draw, least_fit, place
from sidecar.ranking.standing import Details, Standing
from sidecar.retrieval.duplicates import Seen, Texts
from sidecar.weights import KNOWN, Weights, add_up

OF_TASK = tuple(index for index in range(len(REGISTRY)) if index not in KNOWN)
"""The features that only a task gives a value, by index."""
Order = tuple[Segment, float | None]
Orders = dict[Order, ByScore]
"""The rows of a segment by score; of the ranked one those that clear a min_score, of the pinned one so many."""
MOST_PINNED = 1_000
"""Under a token budget, so many of the pinned memories may be served: each is compared with all that is ranked."""


@dataclass(frozen=True, slots=True)
class Scored:
    """The n memories of a snapshot, scored for one task.

    `values` and `parts` are what the task adds to `standing`, by feature; `score` and `task_fit` have shape (n,), and
    so have `tokens`: what a packet is charged for each, wrapper included.
    """

    columns: Columns
    gates: Gates
    standing: Standing
    values: Mapping[int, Floats]
    parts: Mapping[int, Floats]
    score: Floats
    task_fit: Floats
    tokens: NDArray[np.int64]

    def at(self, rows: list[int]) -> Details:
        """All numbers of some rows. From left to right, contributions add up to the scores."""
        return self.standing.at(rows, self.values, self.parts)


def score(view: View, gates: Gates, standing: Standing, weights: Weights, wrapper_tokens: int) -> Scored:
    """Scores every row of the view."""
    values = {}
    for index in OF_TASK:
        value = view.value(REGISTRY[index])
        if value is not view.nothing:
            values[index] = value
    parts = {index: weights.part(index, values[index]) for index in standing.known.weighted if index in values}
    total, task_fit = add_up(standing.known, parts)
    tokens = standing.tokens
    return Scored(
        columns=view.columns,
        gates=gates,
        standing=standing,
        values=values,
        parts=parts,
        score=total,
        task_fit=task_fit,
        tokens=tokens + wrapper_tokens if wrapper_tokens else tokens,
    )


@dataclass(frozen=True, slots=True)
class Limits:
    """What one packet may hold. `slots` is already decided, with slots < max_items."""

    max_items: int
    token_budget: int | None
    slots: int
    min_score: float | None


@dataclass(frozen=True, slots=True)
class Packed:
    """The pinned and the ranked segment, before any draw, and how token budgets are split between them."""

    pinned: Fill
    ranked: Fill
    below_min_score: Rows
    seen: Seen
    budgets: Budgets
    split: Callable[[int | None], Budgets]

    @property
    def rows(self) -> list[int]:
        """Rows in their order: pinned first."""
        return self.pinned.rows + self.ranked.rows

    def reason_of(self, row: int) -> LeftOutReason | None:
        """Why a row that passed the gates is in neither segment."""
        if (self.below_min_score == row).any():
            return LeftOutReason.BELOW_MIN_SCORE
        return self.pinned.reason_of(row) or self.ranked.reason_of(row)

    def left_out(self) -> dict[LeftOutReason, int]:
        """How many were passed over, by reason."""
        counts = self.pinned.left_out()
        for reason, count in self.ranked.left_out().items():
            counts[reason] = counts.get(reason, 0) + count
        if len(self.below_min_score):
            counts[LeftOutReason.BELOW_MIN_SCORE] = len(self.below_min_score)
        return counts


def pack(scored: Scored, limits: Limits, texts: Texts, orders: Orders | None = None) -> Packed:
    """Fills the pinned segment, then the ranked one. `texts` are by row; `orders` are of the same scores and gates, for
    who packs more than once.

    Without a token budget the ranked segment has the places that pinned memories leave. Under one, nothing in it
    depends on which of them happen to fit, and so it never shrinks as the budget grows: both have budgets and places of
    their own, and whatever says the same as any pinned memory stands back for it.
    """
    columns, total, pinned = scored.columns, scored.score, scored.gates.pinned
    candidates, below = scored.gates.others, NO_ROWS
    if limits.min_score is not None:
        clears = total[candidates] >= limits.min_score
        candidates, below = candidates[clears], candidates[~clears]
    places = limits.max_items - limits.slots
    seen = Seen(texts)

    def fill_from(rows: Rows, order: Order, places: int, budget: int | None) -> Fill:
        known = None if orders is None else orders.get(order)
        if known is None:
            # As many as there are rows: it is all of them, in their order.
            score = total if len(rows) == len(total) else total.take(rows)
            known = ByScore(rows, score, columns.ids)
            if orders is not None:
                orders[order] = known
        return fill(known, scored.tokens, places, budget, seen.admits, seen.upcoming)

    of_ranked: Order = (Segment.RANKED, limits.min_score)
    if not len(pinned):
        split = partial(split_budget, slots=limits.slots)
        budgets = split(limits.token_budget)
        return Packed(Fill(), fill_from(candidates, of_ranked, places, budgets.ranked), below, seen, budgets, split)
    most = places
    if limits.token_budget is not None:
        if len(pinned) > MOST_PINNED:
            best = chain.from_iterable(ByScore(pinned, total.take(pinned), columns.ids))
            pinned = np.fromiter(best, np.int64, MOST_PINNED)
        most, places = split_places(places, len(pinned), len(candidates))
    demand = int(scored.tokens[candidates].sum())
    split = partial(split_budget, slots=limits.slots, pinned=scored.tokens[pinned], demand=demand)
    budgets = split(limits.token_budget)
    pinned_part = fill_from(pinned, (Segment.PINNED, len(pinned)), most, budgets.pinned)
    pinned_part.candidates = scored.gates.pinned
    if limits.token_budget is None:
        places -= len(pinned_part.rows)
    else:
        seen.add(pinned.tolist())
    return Packed(pinned_part, fill_from(candidates, of_ranked, places, budgets.ranked), below, seen, budgets, split)


def asks_all(scored: Scored, limits: Limits, packed: Packed) -> bool:
    """True if no candidate is ranked where there is a place for one: then all memories are scored instead. So none is
    told to be missing before all were asked. Under a token budget, it does not depend on which pinned ones fit."""
    if packed.ranked.rows or LeftOutReason.NOT_A_CANDIDATE not in scored.gates.stopped:
        return False
    places = limits.max_items - limits.slots
    if limits.token_budget is None:
        return len(packed.pinned.rows) < places
    return places > 1 or not len(scored.gates.pinned)


@dataclass(frozen=True, slots=True)
class Reserve:
    """The pool in its order (best task fit first), and what was drawn from it."""

    rows: list[int] = field(default_factory=list)
    outcome: Draw = field(default_factory=lambda: Draw((), np.zeros(0)))
    pool_sizes: tuple[int, int] = (0, 0)

    @property
    def drawn(self) -> list[int]:
        """The drawn rows, in the order drawn."""
        return [self.rows[index] for index in self.outcome.drawn]


def reserve(
    scored: Scored,
    packed: Packed,
    limits: Limits,
    recent_keys: Collection[int],
    chance: Callable[[str], float],
    settings: ReserveSettings,
) -> Reserve:
    """Builds the pool around a packed packet and draws from it (LEARNING section 8, steps 3 and 4)."""
    if limits.slots == 0:
        return Reserve()
    columns, fit = scored.columns, scored.task_fit
    ranked = packed.ranked.rows
    # Those that fit the task well enough and are little known may be few; everything else is asked of them alone.
    fits = fit >= least_fit(settings, float(fit[ranked[-1]]) if ranked else None)
    fits &= scored.gates.is_other
    fits &= columns.reported_sessions < settings.min_reported_sessions
    fits[ranked] = False
    rows = fits.nonzero()[0]
    slot_budget = packed.budgets.slot
    if slot_budget is not None:
        rows = rows[scored.tokens[rows] <= slot_budget]
    if limits.min_score is not None:
        rows = rows[scored.score[rows] >= limits.min_score]
    if recent_keys:
        rows = rows[~np.isin(columns.key[rows], np.fromiter(recent_keys, dtype=np.int64))]

    def best_first() -> Iterator[int]:
        for chunk in ByScore(rows, fit.take(rows), columns.ids):
            upcoming = chunk.tolist()
            packed.seen.upcoming(upcoming)
            yield from upcoming

    members = list(islice(filter(packed.seen.admits, best_first()), settings.pool_size))
    reported = columns.reported_sessions[members].tolist()
    outcome = draw(fit[members], reported, limits.slots, chance, settings)
    new = reported.count(0)
    return Reserve(members, outcome, (new, len(members) - new))


def arrange(
    packed: Packed, drawn: Sequence[int], chance: Callable[[str], float], score: Floats, swap_within: float = 0.0
) -> tuple[list[int], Places]:
    """All rows of the packet in their final order, and the probability of each place (step 5).

    Where the first two are ranked ones that no draw could have moved, with scores (by row in `score`) no more than
    `swap_within` above 0 apart, chance says which of them is first: LEARNING section 5.
    """
    rows = packed.rows
    places = place(len(rows) + len(drawn), len(drawn), chance)
    for at, row in sorted(zip(places.drawn, drawn, strict=True)):
        rows.insert(at, row)
    if swap_within and _may_swap(packed, places, rows, score, swap_within):
        places = Places(places.drawn, (0.5, 0.5, *places.probability[2:]), chance("swap") < 0.5)
        if places.swapped:
            rows[:2] = rows[1::-1]
    return rows, places


def _may_swap(packed: Packed, places: Places, rows: Sequence[int], score: Floats, within: float) -> bool:
    if len(rows) < 2 or packed.pinned.rows or places.probability[:2] != (1.0, 1.0):
        return False
    return {0, 1}.isdisjoint(places.drawn) and float(score[rows[0]] - score[rows[1]]) <= within


def left_out_counts(scored: Scored, packed: Packed, drawn: Sequence[int]) -> dict[LeftOutReason, int]:
    """Every memory that is not in the packet, counted once by the first reason that met it."""
    counts = {**scored.gates.stopped, **packed.left_out()}
    for row in drawn:
        reason = packed.reason_of(row)
        if reason is not None:
            counts[reason] -= 1
    return {reason: count for reason, count in counts.items() if count}


def empty_reason(scored: Scored, packed: Packed) -> EmptyReason:
    """Why a packet without any item is empty: the last gate that anything reached."""
    if not scored.columns.live.any():
        return EmptyReason.NO_MEMORIES
    if not len(scored.gates.pinned) + len(scored.gates.others):
        return EmptyReason.FILTERED
    if packed.pinned.left_out() or packed.ranked.left_out():
        return EmptyReason.BUDGET
    return EmptyReason.BELOW_MIN_SCORE
