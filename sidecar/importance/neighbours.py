"""What the memories nearest to one say of its worth: how new it is, what repeats it, what contradicts it. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from sidecar.domain import DAY, Memory
from sidecar.importance.claims import PiecesOf, disagree, read_pieces
from sidecar.importance.content import level
from sidecar.importance.scoring import Adjustment

NEW_BELOW, KNOWN_FROM = 0.45, 0.95
"""Cosine with its nearest neighbour up to which a memory is wholly new, and from which it says nothing new."""
THEME_FROM = 0.7
"""Cosine from which two memories are about the same."""
CLAIM_FROM = 0.5
"""Cosine from which two memories may say something of the same subject."""
THEME_GAIN = 0.08
CONTRADICTED_LOSS = 0.15
INCONSISTENT_LOSS = 0.08
SUPERSEDED_LOSS = 0.25
MOST_NAMED = 3
"""Ids that a factor names."""


@dataclass(frozen=True, slots=True)
class Neighbour:
    """Another memory, and its cosine with the one that is scored."""

    memory: Memory
    cosine: float


@dataclass(frozen=True, slots=True)
class Neighbourhood:
    """What the neighbours come to. `uniqueness` is None where there is nothing to compare with.

    `contradicted_by` and `outdates` are newer and older memories that say another value, `inconsistent` those of the
    same time; `theme` repeat it in other sessions, `sessions` of them; `nearest` is the one that says most of it.
    """

    uniqueness: float | None = None
    nearest: str = ""
    contradicted_by: tuple[str, ...] = ()
    outdates: tuple[str, ...] = ()
    inconsistent: tuple[str, ...] = ()
    theme: tuple[str, ...] = ()
    sessions: int = 0

    def adjustments(self, content: float, *, is_superseded: bool) -> list[Adjustment]:
        """What the score gains or loses by them. What recurs gains by what it says: greetings recur, too."""
        found = []
        if self.sessions:
            value = level(self.sessions)
            found.append(Adjustment("theme", value, THEME_GAIN * value * content))
        if self.contradicted_by:
            found.append(Adjustment("contradiction", 1.0, -CONTRADICTED_LOSS))
        elif self.inconsistent:
            found.append(Adjustment("inconsistency", 1.0, -INCONSISTENT_LOSS))
        if is_superseded:
            found.append(Adjustment("superseded", 1.0, -SUPERSEDED_LOSS))
        return found


def look_around(
    memory: Memory,
    neighbours: Sequence[Neighbour],
    *,
    has_others: bool,
    pieces_of: PiecesOf = read_pieces,
) -> Neighbourhood:
    """Reads the neighbours, nearest first, of which none is the memory itself. `has_others` says whether the namespace
    has any memory to compare with; `pieces_of` as `disagree` takes it.

    A memory is as new as what was learned before it leaves it: the first of two that say the same keeps its novelty. A
    neighbour that it contradicts does not make it less new.
    """
    uniqueness: float | None = 1.0 if has_others else None
    nearest = ""
    contradicted, outdated, inconsistent, theme = [], [], [], []
    sessions = set()
    for each in neighbours:
        other = each.memory
        if each.cosine >= CLAIM_FROM and disagree(memory, other, pieces_of):
            if other.create_time > memory.create_time:
                contradicted.append(other.id)
            elif other.create_time < memory.create_time:
                outdated.append(other.id)
            else:
                inconsistent.append(other.id)
            continue
        if each.cosine >= THEME_FROM and (session := _session(other)) != _session(memory):
            sessions.add(session)
            theme.append(other.id)
        if _is_earlier(other, memory):
            left = min(max((KNOWN_FROM - each.cosine) / (KNOWN_FROM - NEW_BELOW), 0.0), 1.0)
            if uniqueness is None or left < uniqueness:
                uniqueness, nearest = left, other.id
    return Neighbourhood(
        uniqueness=uniqueness,
        nearest=nearest,
        contradicted_by=tuple(contradicted[:MOST_NAMED]),
        outdates=tuple(outdated[:MOST_NAMED]),
        inconsistent=tuple(inconsistent[:MOST_NAMED]),
        theme=tuple(theme[:MOST_NAMED]),
        sessions=len(sessions),
    )


def _is_earlier(other: Memory, memory: Memory) -> bool:
    """True for what was there before: learned earlier. Of two that were learned at once one must go first, and it is
    the same one in whichever order they were written."""
    return (other.create_time, other.id) < (memory.create_time, memory.id)


def _session(memory: Memory) -> object:
    """The conversation that a memory came from; of one without, the day it was learned on."""
    return memory.source_thread or memory.create_time // DAY
