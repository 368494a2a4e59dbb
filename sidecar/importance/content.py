"""What a content is worth by itself: six parts, each in [0, 1] (note: importance-scorer, "Content Analysis Factors").

Read from the text alone, but for uniqueness and for references that other memories share: those two come in. Pure. A
part that counts things levels off: the first is worth half, each further one half of what is left.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from sidecar.domain import Memory
from sidecar.importance.language import Words, count_markers, read_words
from sidecar.importance.marks import CHATTER, EMPHASIS, LIMIT, PASSING, PAST, STAKE, TRUISM
from sidecar.importance.words import ACTION, HEDGE, IMPERATIVES, LINK, PREFERENCE, SMALL_TALK, STATE
from sidecar.retrieval.handles import Handle, find_handles
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
WEAKENING = (HEDGE, PASSING, PAST, CHATTER, EMPHASIS, TRUISM)
WEAKENED_SHARE = 0.65
"""What each mark of these leaves of a part, of marks that are as dense as one in MARK_WORDS telling words."""
MARK_WORDS = 10.0
MOST_MARKS = 3.0
SHOUTED_SHARE = 0.5
"""What is left of a part of a text that shouts."""
MANY_PARTICULARS = 5
BARE_SHARE = 0.7
"""What is left of a part of so many figures and names beside which no rule, no limit and nothing at stake stands."""
LOGGED_SHARE = 0.4
"""What is left of a part of a line of a log."""
PASSING_KINDS = ("episodic", "working")
PASSING_KIND_SHARE = 0.5
"""What a name and a figure count in memories of these kinds."""
MARK_SHARE = 0.5
"""What a limit or a stake counts beside an instruction or a figure."""
GERMAN = "de"
"""Writes every noun with a capital, which names nothing then."""
QUESTION_MARKS = ("?", "\uff1f", "\u061f")
FACTS = frozenset(("date", "version", "url", "email", "code", "ticket", "number", "path"))
TECHNICAL = frozenset(("symbol", "path", "ticket", "version", "url", "email", "code"))
LINKS = frozenset(("url", "path", "ticket", "symbol"))
LONGEST_READ = 20_000
"""Characters that are analysed; what follows is data more than words."""
MOST_LOOKED_UP = 8
"""Handles that are looked for in other memories."""
REFERENCE_KEYS = frozenset(
    "related links link refs ref references reference see alternatives sources source project".split()
)
DECISION_KEYS = ("decision_type", "decisionType", "decision-type")

# A word with a capital after a word without sentence's end between; and words that are names wherever they stand.
_NAME = late(r"(?<=[a-z0-9,;:)] )[A-ZÀ-ÖØ-ÞА-ЯЁΑ-Ω][\w'’-]+")
_TWO_CAPITALS = late(r"(?<!\w)[A-ZÀ-ÞА-ЯЁ][\w'’-]+ (?:[a-z]{2,3} )?[A-ZÀ-ÞА-ЯЁ][\w'’-]+")
_ACRONYM = late(r"(?<!\w)(?:[A-Z][A-Z0-9]{1,9}s?|[A-Z]?[a-z]+[A-Z]\w*|[A-Za-z]+\d\w*)(?!\w)")
_SPEAKER = late(r"([^:\n]{1,40}):\s")
_LATIN_IN_OTHERS = late(r"[A-Za-z][A-Za-z0-9.+#-]+")
_KATAKANA = late(r"[\u30a1-\u30fa\u30fc]{3,}")
_ENTITY_ENDINGS = late(
    r"\w{1,6}(?:公司|银行|銀行|大学|大學|医院|醫院|机场|機場|会社|病院|空港|さん|氏|市|省|県|区|區|駅|站|路)"
    r"|[가-힣]{1,6}(?:씨|님|시|구|동|대학교|회사|병원|공항|역)(?![가-힣])"
    r"|(?:บริษัท|โรงพยาบาล|มหาวิทยาลัย|ธนาคาร|คุณ|เมือง|จังหวัด)[\u0e01-\u0e4e]{2,12}"
    r"|(?:شركة|بنك|جامعة|مستشفى|مدينة|مطار|السيد|الدكتور)\s+\w+|《[^》]+》|「[^」]+」|『[^』]+』"
)
_LOGGED = late(r"\s*[\[(]?(?:\d{4}-\d\d-\d\d[T ]\d\d:\d\d|(?:TRACE|DEBUG|INFO|NOTICE|WARN(?:ING)?)\b[:\] ])")
_DIGITS = late(r"\d[\d.,:/-]*")
_FIGURE = late(r"\d[\d.,:/ -]*")  # a telephone number is one
_COMMAND = late(r"`[^`\n]{2,}`|^\s*[$>] \S", re.MULTILINE)
_SENTENCE = late(
    r"(?:^|[.!;:,\n]\s*|\b(?:then|and|or|please|first|always)\s+|\d[.)]\s+|[-*•]\s+)(?:[Pp]lease\s+)?([A-Za-z']+)"
)
_WIKILINK = late(r"\[\[[^\]\n]+\]\]|\]\([^)\s]+\)")
_SHOUT = late(r"[!\uff01]{2,}|[!\uff01][^!\uff01]*[!\uff01]")
_DEFINITION = late(r"(?<![=!<>:])=(?!=)|\w:\s+\S|→|->")


@dataclass(frozen=True, slots=True)
class Analysis:
    """What the text of one memory says of itself. Values are in [0, 1]; `quality` is how far they are to be trusted."""

    language: str
    semantic_density: float
    entities: float
    actionability: float
    factual_content: float
    cross_references: float
    quality: float
    handles: frozenset[Handle]
    decision_type: str


def analyse(memory: Memory, is_shared: Callable[[Handle], bool] = lambda _: False) -> Analysis:
    """Reads a memory. `is_shared` says whether another memory of the namespace bears a handle, too."""
    text = memory.content[:LONGEST_READ]
    lower = f" {text.lower()} "  # edges, for the markers that have a space at their end
    words = read_words(text)
    handles = find_handles(text)
    names = _names(text, words.language, memory, handles)
    said = _said(text, lower, words, handles, names)
    stands = said * said  # Names, figures and verbs fill what passes as they fill what lasts.
    decision_type = decision_type_of(memory.metadata)
    shared = sum(1 for handle in sorted(handles)[:MOST_LOOKED_UP] if is_shared(handle))
    # A decision or a method says what to do by what it is.
    by_kind = 1.0 if decision_type or memory.kind in ("decision", "procedural") else 0.0
    # What an event or the work of the moment names and counts is of that moment.
    lasting = PASSING_KIND_SHARE if memory.kind in PASSING_KINDS else 1.0
    return Analysis(
        language=words.language,
        semantic_density=_density(words.total, words.meaningful) * said,
        entities=level(0.75 * lasting * len(names)) * stands,
        actionability=level(0.8 * _actions(text, lower, words.language) + by_kind) * stands,
        factual_content=level(0.6 * lasting * _facts(text, lower, words.language, handles)) * stands,
        cross_references=level(0.7 * (_references(text, lower, words.language, memory, handles) + shared)) * stands,
        quality=min(words.meaningful / SURE_WORDS, 1.0),
        handles=handles,
        decision_type=decision_type,
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


def _said(text: str, lower: str, words: Words, handles: frozenset[Handle], names: set[str]) -> float:
    """How far a text stands by what it says, in (0, 1]: 1 for plain words, less for what asks, is vague,
    passes, chats or shouts."""
    left = ASKED_SHARE if text.rstrip().endswith(QUESTION_MARKS) else 1.0
    if _LOGGED.match(text):
        left *= LOGGED_SHARE
    if _SHOUT.search(text):
        left *= SHOUTED_SHARE
    if words.meaningful < CHAT_WORDS and count_markers(lower, words.language, SMALL_TALK) > 0 and not handles:
        left *= SMALL_TALK_SHARE
    if len(_FIGURE.findall(text)) + len(names) >= MANY_PARTICULARS and not any(
        count_markers(lower, words.language, table) for table in (LIMIT, STAKE, ACTION, PREFERENCE)
    ):
        left *= BARE_SHARE
    room = max(words.meaningful / MARK_WORDS, 1.0)
    for table in WEAKENING:
        left *= WEAKENED_SHARE ** min(count_markers(lower, words.language, table) / room, MOST_MARKS)
    return left


def _density(total: float, meaningful: float) -> float:
    """Distinct telling words to all words, less for a text that is too short to tell."""
    if total <= 0:
        return 0.0
    return min(meaningful / total / FULL_DENSITY, 1.0) * min(meaningful / FULL_WORDS, 1.0)


def _names(text: str, language: str, memory: Memory, handles: frozenset[Handle]) -> set[str]:
    """Names and technical terms, each once."""
    found = {handle.value for handle in handles if handle.kind in TECHNICAL}
    if not _SHOUT.search(text):  # in which capitals name nothing
        if language != GERMAN:
            found.update(name.lower() for name in _NAME.findall(text))
            found.update(name.lower() for name in _TWO_CAPITALS.findall(text))
        found.update(name.lower() for name in _ACRONYM.findall(text))
    if not text.isascii():
        found.update(_KATAKANA.findall(text))
        found.update(_ENTITY_ENDINGS.findall(text))
        if sum(map(str.isascii, text)) * 2 < len(text):
            found.update(name.lower() for name in _LATIN_IN_OTHERS.findall(text))
    if memory.subject:
        found.add(memory.subject.lower())
    elif (speaker := _SPEAKER.match(text)) is not None:
        found.add(speaker[1].lower())
    return found


def _actions(text: str, lower: str, language: str) -> float:
    imperative = sum(1 for word in set(_SENTENCE.findall(text)) if word.lower() in IMPERATIVES)
    markers = count_markers(lower, language, ACTION) + count_markers(lower, language, PREFERENCE)
    limits = MARK_SHARE * count_markers(lower, language, LIMIT)
    return imperative + markers + limits + min(len(_COMMAND.findall(text)), 2)


def _facts(text: str, lower: str, language: str, handles: frozenset[Handle]) -> float:
    """Figures, dates and identifiers count whole; that something is, has or lives somewhere counts half, and so does a
    limit, a condition, or what is at stake."""
    named = {handle.value for handle in handles if handle.kind in FACTS}
    numbers = {number.strip(".,:/-") for number in _DIGITS.findall(text)}
    stated = min(count_markers(lower, language, STATE) + min(len(_DEFINITION.findall(text)), 2), 3)
    marks = count_markers(lower, language, LIMIT) + count_markers(lower, language, STAKE)
    return len(named) + min(len(numbers), 4) + 0.5 * stated + MARK_SHARE * marks


def _references(text: str, lower: str, language: str, memory: Memory, handles: frozenset[Handle]) -> float:
    """What points elsewhere: links, tickets, paths, symbols; words that link; keys and tags that do."""
    keys = sum(1 for key in memory.metadata if key.lower() in REFERENCE_KEYS)
    pointing = sum(1 for handle in handles if handle.kind in LINKS) + len(set(_WIKILINK.findall(text)))
    return pointing + count_markers(lower, language, LINK) + keys + 0.5 * min(len(memory.tags), 4)
