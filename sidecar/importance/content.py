"""What a content is worth by itself: six parts, each in [0, 1] (note: importance-scorer, "Content Analysis Factors").

Read from the text alone, but for uniqueness and for references that other memories share: those two come in. Pure. A
part that counts things levels off: the first is worth half, each further one half of what is left.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from sidecar.domain import Memory
from sidecar.importance.reading import Reading, read
from sidecar.importance.wording import MANY_PARTICULARS, Wording, wording_of
from sidecar.retrieval.handles import Handle
from sidecar.retrieval.patterns import late

PARTS: Mapping[str, float] = {
    "semantic_density": 0.20,
    "entities": 0.15,
    "uniqueness": 0.20,
    "actionability": 0.15,
    "factual_content": 0.15,
    "cross_references": 0.15,
}
"""The note's weights; they sum to 1."""

FULL_DENSITY = 0.65
"""Share of distinct telling words from which a text is as dense as texts get."""
FULL_WORDS = 2.5
"""Telling words below which a text is too short to be called dense."""
SURE_WORDS = 8.0
"""Telling words from which an analysis has enough to go by."""
CHAT_WORDS = 9.0
"""A text of fewer telling words that bears a greeting or thanks is small talk."""
SMALL_TALK_SHARE = 0.4
ASKED_SHARE = 0.4
"""What is left of a part of small talk and of a question."""
WEAKENING = ("hedge", "passing", "past", "chatter", "emphasis", "truism")
WEAKENED_SHARE = 0.65
"""What each mark of these leaves of a part, of marks that are as dense as one in MARK_WORDS telling words."""
MARK_WORDS = 10.0
MOST_MARKS = 3.0
SHOUTED_SHARE = 0.5
"""What is left of a part of a text that shouts."""
BARE_SHARE = 0.7
"""What is left of a part of so many figures and names beside which no rule, no limit and nothing at stake stands."""
LOGGED_SHARE = 0.4
"""What is left of a part of a line of a log."""
PASSING_KINDS = ("episodic", "working")
PASSING_KIND_SHARE = 0.5
"""What a name and a figure count in memories of these kinds."""
MARK_SHARE = 0.5
"""What a limit or a stake counts beside an instruction or a figure."""
FACTS = frozenset(("date", "version", "url", "email", "code", "ticket", "number", "path"))
LINKS = frozenset(("url", "path", "ticket", "symbol"))
MOST_LOOKED_UP = 8
"""Handles that are looked for in other memories."""
REFERENCE_KEYS = frozenset(
    "related links link refs ref references reference see alternatives sources source project".split()
)
DECISION_KEYS = ("decision_type", "decisionType", "decision-type")

_DIGITS = late(r"\d[\d.,:/-]*")
_WIKILINK = late(r"\[\[[^\[\]\n]+\]\]|\]\([^\](\s)]+\)")
_DEFINITION = late(r"(?<![=!<>:])=(?!=)|\w:\s+\S|→|->")


@dataclass(frozen=True, slots=True)
class Analysis:
    """What the text of one memory says of itself. Values are in [0, 1]; `quality` is how far they are to be trusted,
    and `density` the share of its words that tell something, whatever they tell."""

    language: str
    semantic_density: float
    entities: float
    actionability: float
    factual_content: float
    cross_references: float
    quality: float
    density: float
    handles: frozenset[Handle]
    decision_type: str
    wording: Wording


def analyse(memory: Memory, is_shared: Callable[[Handle], bool] = lambda _: False) -> Analysis:
    """Reads a memory. `is_shared` says whether another memory of the namespace bears a handle, too."""
    reading = read(memory)
    words, handles = reading.words, reading.handles
    density = _density(words.total, words.meaningful)
    quality = min(words.meaningful / SURE_WORDS, 1.0)
    said = _said(reading)
    stands = said * said  # Names, figures and verbs fill what passes as they fill what lasts.
    decision_type = decision_type_of(memory.metadata)
    shared = sum(1 for handle in sorted(handles)[:MOST_LOOKED_UP] if is_shared(handle))
    # A decision or a method says what to do by what it is.
    by_kind = 1.0 if decision_type or memory.kind in ("decision", "procedural") else 0.0
    # What an event or the work of the moment names and counts is of that moment.
    lasting = PASSING_KIND_SHARE if memory.kind in PASSING_KINDS else 1.0
    return Analysis(
        language=words.language,
        semantic_density=density * said,
        entities=level(0.75 * lasting * len(reading.names)) * stands,
        actionability=level(0.8 * _actions(reading) + by_kind) * stands,
        factual_content=level(0.6 * lasting * _facts(reading)) * stands,
        cross_references=level(0.7 * (_references(reading, memory) + shared)) * stands,
        quality=quality,
        density=density,
        handles=handles,
        decision_type=decision_type,
        wording=wording_of(reading, density, quality),
    )


def level(count: float) -> float:
    """1 - 2^-count: 0 for none, .5 for one, .75 for two."""
    left: float = 2.0**-count
    return 1.0 - left


def decision_type_of(metadata: Mapping[str, Any]) -> str:
    """What sort of decision the caller says that it is; "" if nothing is said."""
    for key in DECISION_KEYS:
        value = metadata.get(key)
        if isinstance(value, str) and value.strip():
            return value.strip()
    return ""


def _said(reading: Reading) -> float:
    """How far a text stands by what it says, in (0, 1]: 1 for plain words, less for what asks, is vague,
    passes, chats or shouts."""
    marks, meaningful = reading.marks, reading.words.meaningful
    left = ASKED_SHARE if reading.asks else 1.0
    if reading.is_logged:
        left *= LOGGED_SHARE
    if reading.shouts:
        left *= SHOUTED_SHARE
    if meaningful < CHAT_WORDS and marks["small_talk"] and not reading.handles:
        left *= SMALL_TALK_SHARE
    if reading.figures + len(reading.names) >= MANY_PARTICULARS and not any(
        marks[name] for name in ("limit", "stake", "action", "preference")
    ):
        left *= BARE_SHARE
    room = max(meaningful / MARK_WORDS, 1.0)
    for name in WEAKENING:
        left *= WEAKENED_SHARE ** min(marks[name] / room, MOST_MARKS)
    return left


def _density(total: float, meaningful: float) -> float:
    """Distinct telling words to all words, less for a text that is too short to tell."""
    if total <= 0:
        return 0.0
    return min(meaningful / total / FULL_DENSITY, 1.0) * min(meaningful / FULL_WORDS, 1.0)


def _actions(reading: Reading) -> float:
    marks = reading.marks
    limits = MARK_SHARE * marks["limit"]
    return reading.imperatives + marks["action"] + marks["preference"] + limits + min(reading.commands, 2)


def _facts(reading: Reading) -> float:
    """Figures, dates and identifiers count whole; that something is, has or lives somewhere counts half, and so does a
    limit, a condition, or what is at stake."""
    text, marks = reading.text, reading.marks
    named = {handle.value for handle in reading.handles if handle.kind in FACTS}
    numbers = {number.strip(".,:/-") for number in _DIGITS.findall(text)}
    stated = min(marks["state"] + min(len(_DEFINITION.findall(text)), 2), 3)
    return len(named) + min(len(numbers), 4) + 0.5 * stated + MARK_SHARE * (marks["limit"] + marks["stake"])


def _references(reading: Reading, memory: Memory) -> float:
    """What points elsewhere: links, tickets, paths, symbols; words that link; keys and tags that do."""
    keys = sum(1 for key in memory.metadata if key.lower() in REFERENCE_KEYS)
    pointing = sum(1 for handle in reading.handles if handle.kind in LINKS)
    pointing += len(set(_WIKILINK.findall(reading.text)))
    return pointing + reading.marks["link"] + keys + 0.5 * min(len(memory.tags), 4)
