"""One reading of a text: its words, names, handles and marks. What is made of them goes by it alone. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from sidecar.domain import Memory
from sidecar.importance import marks, words
from sidecar.importance.language import Words, count_markers, read_words
from sidecar.retrieval.handles import Handle, find_handles
from sidecar.retrieval.patterns import late

TABLES: Mapping[str, Mapping[str, str]] = {
    "action": words.ACTION,
    "preference": words.PREFERENCE,
    "decision": words.DECISION,
    "limit": marks.LIMIT,
    "stake": marks.STAKE,
    "state": words.STATE,
    "value": words.VALUE,
    "link": words.LINK,
    "first_person": words.FIRST_PERSON,
    "small_talk": words.SMALL_TALK,
    "hedge": words.HEDGE,
    "passing": marks.PASSING,
    "past": marks.PAST,
    "chatter": marks.CHATTER,
    "emphasis": marks.EMPHASIS,
    "truism": marks.TRUISM,
}
"""What a text can be marked as: the markers of each, by language."""
QUESTION_MARKS = ("?", "\uff1f", "\u061f")
TECHNICAL = frozenset(("symbol", "path", "ticket", "version", "url", "email", "code"))
LONGEST_READ = 20_000
"""Characters that are read; what follows is data more than words."""
GERMAN = "de"
"""Writes every noun with a capital, which names nothing then."""

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
    r"|(?:شركة|بنك|جامعة|مستشفى|مدينة|مطار|السيد|الدكتور)\s+\w+|《[^《》]+》|「[^「」]+」|『[^『』]+』"
)
_LOGGED = late(r"\s*[\[(]?(?:\d{4}-\d\d-\d\d[T ]\d\d:\d\d|(?:TRACE|DEBUG|INFO|NOTICE|WARN(?:ING)?)\b[:\] ])")
_FIGURE = late(r"\d[\d.,:/ -]*")  # a telephone number is one
_COMMAND = late(r"`[^`\n]{2,}`|^[ \t]*[$>] \S", re.MULTILINE)
_SENTENCE = late(
    r"(?:^|[.!;:,\n]\s*|\b(?:then|and|or|please|first|always)\s+|\d[.)]\s+|[-*•]\s+)(?:[Pp]lease\s+)?([A-Za-z']+)"
)
_SHOUT = late(r"[!\uff01]{2,}|[!\uff01][^!\uff01]*[!\uff01]")


@dataclass(frozen=True, slots=True)
class Reading:
    """What stands in a text. `lower` has a space at either end, for markers that have one; `marks` are how many
    different markers of each of TABLES it bears; the rest are counts of different things, or say yes or no."""

    text: str
    lower: str
    words: Words
    handles: frozenset[Handle]
    names: frozenset[str]
    marks: Mapping[str, int]
    figures: int
    imperatives: int
    commands: int
    asks: bool
    is_logged: bool
    shouts: bool
    speaks: bool


def read(memory: Memory) -> Reading:
    """Reads the content of a memory."""
    text = memory.content[:LONGEST_READ]
    lower = f" {text.lower()} "
    told, handles, shouts = read_words(text), find_handles(text), _SHOUT.search(text) is not None
    language = told.language
    return Reading(
        text=text,
        lower=lower,
        words=told,
        handles=handles,
        names=frozenset(_names(text, language, memory, handles, shouts=shouts)),
        marks={name: count_markers(lower, language, table) for name, table in TABLES.items()},
        figures=len(_FIGURE.findall(text)),
        imperatives=sum(1 for word in set(_SENTENCE.findall(text)) if word.lower() in words.IMPERATIVES),
        commands=len(_COMMAND.findall(text)),
        asks=text.rstrip().endswith(QUESTION_MARKS),
        is_logged=_LOGGED.match(text) is not None,
        shouts=shouts,
        speaks=_SPEAKER.match(text) is not None,
    )


def _names(text: str, language: str, memory: Memory, handles: frozenset[Handle], *, shouts: bool) -> set[str]:
    """Names and technical terms, each once."""
    found = {handle.value for handle in handles if handle.kind in TECHNICAL}
    if not shouts:  # in which capitals name nothing
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
