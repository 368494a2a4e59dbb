"""From scored memories to a packed answer, as pure functions: budgets, ranked fill, pool, draw, places, in this order.

`Scored` is what one task makes of one snapshot; `pack` fills the pinned and ranked segments, `reserve` the slots.
Explaining a miss packs again with one thing changed, so what it says is what Rank does.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from sidecar.domain import EmptyReason, Floats, LeftOutReason
from sidecar.features import Columns, View, feature_matrix, values_without_use
from sidecar.ranking.gates import PASSED, gate_counts
from sidecar.ranking.packing import Budgets, ByScore, Fill, Rows, fill, split_budget
from sidecar.ranking.reserved import Draw, Places, ReserveSettings, distinct_members, draw, least_fit, place
from sidecar.retrieval.duplicates import Fingerprint, Seen
from sidecar.weights import Contributions, Weights, contributions


@dataclass(frozen=True, slots=True)
class Scored:
    """The n memories of a snapshot, scored for one task.

    `codes` are the gates' (see `sidecar.ranking.gates`); `tokens` what a packet is charged for each, wrapper included,
    shape (n,).
    """

    columns: Columns
    view: View
    codes: NDArray[np.int8]
    features: Floats
    parts: Contributions
    tokens: NDArray[np.int64]


def score(view: View, codes: NDArray[np.int8], weights: Weights, wrapper_tokens: int) -> Scored:
    """Scores every row of the view."""
    features = feature_matrix(view)
    return Scored(
        columns=view.columns,
        view=view,
        codes=codes,
        features=features,
        parts=contributions(features, values_without_use(view), weights),
        tokens=view.columns.tokens.astype(np.int64) + wrapper_tokens,
    )


@dataclass(frozen=True, slots=True)
class Limits:
    """What one packet may hold. `slots` is already decided, with slots < max_items."""

    max_items: int
    token_budget: int | None
    slots: int
    min_score: float | None

    @property
    def budgets(self) -> Budgets:
        """The budget of the ranked part and of each slot."""
        return split_budget(self.token_budget, self.slots)


class Sameness:
    """Remembers what is in the packet, so that nothing that says the same comes in twice."""

    def __init__(self, fingerprint: Callable[[int], Fingerprint]) -> None:
        self._fingerprint = fingerprint
        self._seen = Seen()

    def admit(self, row: int) -> None:
        """Adds a row to what is in the packet."""
        self._seen.add(row, self._fingerprint(row))

    def twin(self, row: int) -> int | None:
        """A row in the packet that says the same as `row`, or None."""
        return self._seen.twin(self._fingerprint(row))

    def says_the_same(self, row: int) -> bool:
        """True if something in the packet says the same."""
        return self.twin(row) is not None


@dataclass(frozen=True, slots=True)
class Packed:
    """The pinned and the ranked segment, before any draw."""

    pinned: Fill
    ranked: Fill
    below_min_score: Rows
    seen: Sameness

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
        counts: dict[LeftOutReason, int] = {}
        below = (LeftOutReason.BELOW_MIN_SCORE, self.below_min_score)
        for reason, rows in [below, *self.pinned.passed_over, *self.ranked.passed_over]:
            if len(rows):
                counts[reason] = counts.get(reason, 0) + len(rows)
        return counts


def pack(scored: Scored, limits: Limits, fingerprint: Callable[[int], Fingerprint]) -> Packed:
    """Fills the pinned segment, then the ranked one with what it leaves. `fingerprint` is of a row's text."""
    columns, total = scored.columns, scored.parts.score
    passed = np.flatnonzero(scored.codes == PASSED)
    is_pinned = columns.pinned[passed]
    pinned, others = passed[is_pinned], passed[~is_pinned]
    clears = np.ones(len(others), dtype=bool) if limits.min_score is None else total[others] >= limits.min_score
    candidates = others[clears]
    places = limits.max_items - limits.slots
    budget = limits.budgets.ranked
    seen = Sameness(fingerprint)

    def fill_from(rows: Rows, before: Fill) -> Fill:
        left = None if budget is None else budget - before.tokens
        candidates = ByScore(rows, total[rows], columns.ids)
        open_places = places - len(before.rows)
        return fill(candidates, scored.tokens, open_places, left, seen.says_the_same, seen.admit, before.tokens)

    pinned_part = fill_from(pinned, Fill())
    ranked_part = fill_from(candidates, pinned_part)
    return Packed(pinned_part, ranked_part, others[~clears], seen)


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
    columns, fit = scored.columns, scored.parts.task_fit
    ranked = packed.ranked.rows
    eligible = (
        (scored.codes == PASSED)
        & ~columns.pinned
        & (columns.reported_sessions < settings.min_reported_sessions)
        & (fit >= least_fit(settings, float(fit[ranked[-1]]) if ranked else None))
    )
    slot_budget = limits.budgets.slot
    if slot_budget is not None:
        eligible &= scored.tokens <= slot_budget
    if limits.min_score is not None:
        eligible &= scored.parts.score >= limits.min_score
    if recent_keys:
        eligible &= ~np.isin(columns.key, np.fromiter(recent_keys, dtype=np.int64))
    eligible[ranked] = False
    rows = np.flatnonzero(eligible)
    best_first = (row for chunk in ByScore(rows, fit[rows], columns.ids) for row in chunk.tolist())
    members = distinct_members(best_first, settings.pool_size, packed.seen.says_the_same, packed.seen.admit)
    reported = columns.reported_sessions[members].tolist()
    outcome = draw(fit[members], reported, limits.slots, chance, settings)
    new = sum(count == 0 for count in reported)
    return Reserve(members, outcome, (new, len(members) - new))


def arrange(packed: Packed, drawn: Sequence[int], chance: Callable[[str], float]) -> tuple[list[int], Places]:
    """All rows of the packet in their final order, and the probability of each place (step 5)."""
    others = iter(packed.rows)
    n = len(packed.rows) + len(drawn)
    places = place(n, len(drawn), chance)
    by_place = dict(zip(places.drawn, drawn, strict=True))
    return [by_place[p] if p in by_place else next(others) for p in range(n)], places


def left_out_counts(scored: Scored, packed: Packed, drawn: Sequence[int]) -> dict[LeftOutReason, int]:
    """Every memory that is not in the packet, counted once by the first reason that met it."""
    counts = gate_counts(scored.codes) | packed.left_out()
    for row in drawn:
        reason = packed.reason_of(row)
        if reason is not None:
            counts[reason] -= 1
    return {reason: count for reason, count in counts.items() if count}


def empty_reason(scored: Scored, packed: Packed) -> EmptyReason:
    """Why a packet without any item is empty: the last gate that anything reached."""
    if not scored.columns.live.any():
        return EmptyReason.NO_MEMORIES
    if not (scored.codes == PASSED).any():
        return EmptyReason.FILTERED
    if packed.pinned.passed_over or packed.ranked.passed_over:
        return EmptyReason.BUDGET
    return EmptyReason.BELOW_MIN_SCORE
