"""What the memories nearest to one say of its worth: how new it is, what repeats it, what contradicts it. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from sidecar.domain import DAY, MOST_SESSIONS, Memory
from sidecar.importance.claimed import Claimed
from sidecar.importance.claims import PiecesOf, disagree, read_pieces, says_of_the_same
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
NOTHING_CLAIMED = Claimed()


@dataclass(frozen=True, slots=True)
class Neighbour:
    """Another memory, and its cosine with the one that is scored."""

    memory: Memory
    cosine: float


@dataclass(frozen=True, slots=True)
class Neighbourhood:
    """What the neighbours come to. `uniqueness` is None where there is nothing to compare with.

    `contradicted_by` and `outdates` are newer and older memories that say another value, `inconsistent` those of the
    same time; `theme` are the first that repeat it in each of `sessions` other sessions, MOST_SESSIONS at most;
    `nearest` is the one that says most of it; `repeats` are all whose theme it is in turn.
    `concerns` are those to which it is one of these in turn: id -> the uniqueness that it leaves a later one, or None.
    """

    uniqueness: float | None = None
    nearest: str = ""
    contradicted_by: tuple[str, ...] = ()
    outdates: tuple[str, ...] = ()
    inconsistent: tuple[str, ...] = ()
    theme: tuple[str, ...] = ()
    sessions: int = 0
    repeats: tuple[str, ...] = ()
    concerns: Mapping[str, float | None] = field(default_factory=dict)

    @property
    def about(self) -> tuple[str, ...]:
        """All that are named here."""
        return (*self.contradicted_by, *self.outdates, *self.inconsistent, *self.theme, *filter(None, [self.nearest]))

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
    uncounted: Sequence[Neighbour] = (),
    claimed: Claimed = NOTHING_CLAIMED,
    has_others: bool,
    pieces_of: PiecesOf = read_pieces,
) -> Neighbourhood:
    """Reads the neighbours, of which none is the memory itself. `uncounted` are neighbours that cannot be served: they
    are nothing to it, though it is something to them. `claimed` are those that state another value. `has_others` says
    whether the namespace has any memory to compare with; `pieces_of` as `disagree` takes it.

    A memory is as new as what was learned before it leaves it: the first of two that say the same keeps its novelty. A
    neighbour that it contradicts does not make it less new, and one that replaces it is that alone.
    """
    found: dict[str, list[str]] = {name: [] for name in ("contradicted", "outdated", "inconsistent")}
    concerns: dict[str, float | None] = dict.fromkeys(claimed.concerns)
    least = (1.0, 0, "") if has_others else (2.0, 0, "")
    repeats: list[str] = []
    themes: dict[object, tuple[int, str]] = {}
    for each, is_counted in [*((each, True) for each in neighbours), *((each, False) for each in uncounted)]:
        other = each.memory
        if memory.superseded_by == other.id or (memory.id and other.superseded_by == memory.id):
            continue
        if each.cosine >= CLAIM_FROM and disagree(memory, other, pieces_of):
            if not says_of_the_same(memory, other):
                concerns[other.id] = None
                if is_counted:
                    found[_side(memory, other)].append(other.id)
            continue
        if each.cosine >= THEME_FROM and (session := _session(other)) != _session(memory):
            repeats.append(other.id)
            if is_counted:
                said = other.create_time, other.id
                themes[session] = min(themes.get(session, said), said)
        left = min(max((KNOWN_FROM - each.cosine) / (KNOWN_FROM - NEW_BELOW), 0.0), 1.0)
        if left < 1.0 and not _is_earlier(other, memory):
            concerns.setdefault(other.id, left)
        elif left < 1.0 and is_counted:
            least = min(least, (left, other.create_time, other.id))
    return Neighbourhood(
        uniqueness=least[0] if least[0] <= 1.0 else None,
        nearest=least[2],
        contradicted_by=tuple(dict.fromkeys((*claimed.newer, *found["contradicted"]))),
        outdates=tuple(dict.fromkeys((*claimed.older, *found["outdated"]))),
        inconsistent=tuple(dict.fromkeys((*claimed.same_time, *found["inconsistent"]))),
        theme=tuple(memory_id for _, memory_id in sorted(themes.values())[:MOST_SESSIONS]),
        sessions=min(len(themes), MOST_SESSIONS),
        repeats=tuple(repeats),
        concerns=concerns,
    )


def _side(memory: Memory, other: Memory) -> str:
    if other.create_time == memory.create_time:
        return "inconsistent"
    return "contradicted" if other.create_time > memory.create_time else "outdated"


def _is_earlier(other: Memory, memory: Memory) -> bool:
    """True for what was there before: learned earlier. Of two that were learned at once one must go first, and it is
    the same one in whichever order they were written."""
    return (other.create_time, other.id) < (memory.create_time, memory.id)


def _session(memory: Memory) -> object:
    """The conversation that a memory came from; of one without, the day it was learned on."""
    return memory.source_thread or memory.create_time // DAY
