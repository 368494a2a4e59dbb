"""Why a memory was missed: the gate that stopped it, or the features by which it lost, and what would have helped."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from sidecar.domain import LeftOutReason, Micros, Packet
from sidecar.errors import MemoryNotFoundError
from sidecar.features import FEATURE_NAMES
from sidecar.plurals import counted
from sidecar.ranking.case import Again, Case, Change
from sidecar.ranking.changes import smallest_change
from sidecar.ranking.gates import GATES, PASSED
from sidecar.ranking.occasion import Occasion
from sidecar.ranking.pipeline import pack


@dataclass(frozen=True, slots=True)
class FeatureGap:
    """One feature of the missed memory beside that of the last admitted one."""

    feature: str
    value: float
    admitted_value: float
    contribution: float
    admitted_contribution: float


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


def explain_miss(
    occasion: Occasion,
    memory_id: str,
    packet: Packet | None,
    check: Callable[[], None],
    again: Again,
    now: Micros,
) -> Miss:
    """Explains why `memory_id` is not in the packet of `occasion`; `packet` is the one that was served, if any.

    All memories are scored in `occasion`. `again` ranks the same request; a change of the memory would be written
    `now`. `check` raises once the caller's deadline has passed. Raises MemoryNotFoundError if there is no such memory
    now.
    """
    moved_on = packet is not None and packet.score_version != occasion.snapshot.score_version
    if packet is not None:
        for place, item in enumerate(packet.items, start=1):
            if item.memory_id == memory_id:
                return Miss(f"It was served, at place {place}.", place=place, store_moved_on=moved_on)
    row = occasion.snapshot.row_of_id.get(memory_id)
    if row is None:
        where = f"namespace {occasion.request.namespace!r}" if occasion.request.candidates is None else "candidates"
        raise MemoryNotFoundError(f"memory_id: {memory_id!r} is not in {where} now", memory_id=memory_id)
    case = Case(occasion, row, check, again, now)
    gate = int(occasion.scored.gates.codes[row])
    if row in case.packed.rows:
        place = case.packed.rows.index(row) + 1
        if packet is None:
            return Miss(f"It is served, at place {place} before reserved slots.", place=place)
        return Miss("It was not served, but would be now.", store_moved_on=moved_on)
    reason = GATES[gate - 1] if gate > PASSED else case.packed.reason_of(row)
    if reason is None and packet is not None and LeftOutReason.NOT_A_CANDIDATE not in packet.left_out:
        reason = pack(occasion.scored, case.limits, occasion.snapshot).reason_of(row)  # then, all were scored
    reason = reason or LeftOutReason.NOT_A_CANDIDATE
    found = smallest_change(case, reason)
    other = _other(case, reason)
    return Miss(
        message=f"{_WORDS[reason]}{f' The other memory is {other!r}.' if other else ''}{_room(case, reason)}"
        + ("" if found.change else f" No single change that was tried admits it: of {', '.join(found.tried)}."),
        reason=reason,
        **(_standing(case) if gate == PASSED else {}),
        smallest_change=found.change,
        store_moved_on=moved_on,
        other_memory_id=other,
    )


def _other(case: Case, reason: LeftOutReason) -> str:
    """Id of the memory that stands in the way, or ""."""
    if reason is LeftOutReason.NEAR_DUPLICATE:
        return case.twin()
    return case.memory.superseded_by if reason is LeftOutReason.SUPERSEDED else ""


def _room(case: Case, reason: LeftOutReason) -> str:
    """How much a segment had, where that was too little."""
    if reason not in (LeftOutReason.OVERSIZED, LeftOutReason.BUDGET):
        return ""
    budgets = case.packed.budgets
    which, room = ("Pinned", budgets.pinned) if case.columns.pinned[case.row] else ("Ranked", budgets.ranked)
    assert room is not None  # without a budget nothing is left out for its size
    return f" {which} memories have {counted(room, 'token')} of this budget."


_WORDS = {
    LeftOutReason.FILTERED: "The request's filter left it out.",
    LeftOutReason.SUPPRESSED: "It is suppressed.",
    LeftOutReason.RATED_UNHELPFUL: "It was rated unhelpful.",
    LeftOutReason.EXPIRED: "It had expired.",
    LeftOutReason.NOT_YET_VALID: "It was not yet valid.",
    LeftOutReason.SUPERSEDED: "Another memory replaces it.",
    LeftOutReason.NOT_A_CANDIDATE: "It was not among the candidates that were scored for this task; its rank is among "
    "all memories.",
    LeftOutReason.BELOW_MIN_SCORE: "Its score is below min_score.",
    LeftOutReason.NEAR_DUPLICATE: "It says the same as a memory that is in the packet, or pinned.",
    LeftOutReason.OVERSIZED: "It is larger than the whole budget of its segment.",
    LeftOutReason.BUDGET: "It did not fit into what was left of its segment's budget.",
    LeftOutReason.OUTRANKED: "Others scored higher and took the places.",
}


def _standing(case: Case) -> dict[str, Any]:
    """Score, rank, and the features by which it lost against the last admitted ranked memory."""
    scored, row = case.occasion.scored, case.row
    total, ids = scored.score, scored.columns.ids
    own = total[row]
    passed = np.flatnonzero(scored.gates.codes == PASSED)
    ties = sum(ids[other] < ids[row] for other in passed[total[passed] == own].tolist())
    standing: dict[str, Any] = {"score": float(own), "rank": 1 + int((total[passed] > own).sum()) + ties}
    if case.packed.ranked.rows:
        last = case.packed.ranked.rows[-1]
        values, parts, *_ = scored.at([row, last])
        gaps = [
            FeatureGap(name, *each)
            for name, each in zip(FEATURE_NAMES, np.vstack((values, parts)).T.tolist(), strict=True)
        ]
        gaps.sort(key=lambda gap: gap.contribution - gap.admitted_contribution)
        standing |= {"admitted_score": float(total[last]), "gaps": tuple(gaps)}
    return standing
