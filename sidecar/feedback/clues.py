"""Clues of a memory: the concrete handles by which it can be recognised in what an agent said and did. Pure.

The handles of `sidecar.retrieval.handles`, and what points at one thing in running text: names of people, places and
things, order and part numbers, numbers with their unit, times of day, numbers written in groups. Each has a strength:
how much it says, alone, that the memory was in use. A ticket or a path says 1; what may stand anywhere by chance says
less.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from sidecar.retrieval.handles import find_handles
from sidecar.retrieval.patterns import late
from sidecar.retrieval.tokenizer import STOP_WORDS, UNSPACED, fold, normalize

ALONE = 0.5
"""A weaker clue counts only where the sentence around it shares another word with the memory."""

STRENGTH = {
    "ticket": 1.0,
    "url": 1.0,
    "email": 1.0,
    "path": 1.0,
    "symbol": 1.0,
    "version": 1.0,
    "code": 1.0,
    "quoted": 0.9,
    "date": 0.8,
    "name": 0.6,
    "number": 0.5,
}
"""By kind, for a usual one of it."""
WHOLE_NAME = 1.0
LONG_NUMBER = 0.9
LONG_NUMBER_DIGITS = 5
UNDATED_YEAR = 0.5
"""A day without its year."""
WEAK = 0.4
"""A number of two digits with its unit, a time of day, a plain compound with a hyphen."""


@dataclass(frozen=True, slots=True)
class Clue:
    """`shown` is as it stands in the memory; `value` is what it is compared by, in the form that `form` names:

    `text` (folded, to be found as a whole), `compact` (letters and digits without their gaps), `date` (ISO 8601, `-`
    for an unknown year), `pair` (a number and the beginning of its neighbour) or `number`.
    """

    kind: str
    shown: str
    value: str
    form: str
    strength: float


_SPACES = late(r"\s+")
_CODE = late(r"(?<![A-Za-z0-9_])[A-Za-z0-9]+(?:[-./:_#][A-Za-z0-9]+)*(?![A-Za-z0-9_])")
_MEASURED = late(r"\d+(?:st|nd|rd|th|[a-z]{1,3})", re.IGNORECASE)
_TIME = late(r"(?<![\d:.])(\d{1,2})(?:[:.]| ?h ?)(\d{2})(?![\d:])(?: (?:uhr|am|pm))?", re.IGNORECASE)
_CLOCK = late(r"\d{1,2}:\d{2}")
_DATE_LIKE = late(r"\d{1,4}[-./]\d{1,2}[-./]\d{1,4}")
_DAY = late(r"(?:-|\d{4})-\d\d-\d\d")
_COMPOUND = late(r"(?<![\w-])[A-Za-z]+(?:-[A-Za-z]+)+(?![\w-])")
_GROUPED = late(r"(?<![\w+])\+?[A-Z0-9]{2,4}(?: [A-Z0-9]{2,4}){2,8}(?!\w)")
_FIGURE = late(r"(?<![\w.,:-])\d+(?:[.,]\d+)*(?![\w]|[.,:-]\d)")
_NEAR = 24
_BEFORE = late(r"([^\W\d_]{2,})\s*$")
_AFTER = late(r"\s*([^\W\d_]{2,}|[%€$£°])")
_YEAR = late(r"(?:19|20)\d\d")
_TITLE = late("《([^》\n]{2,40})》|〈([^〉\n]{2,40})〉")
_QUOTED = late(r"(?<!\w)'[^'\n]{2,80}'(?!\w)|\"[^\"\n]{2,80}\"|“[^”\n]{2,80}”|«[^»\n]{2,80}»|`[^`\n]{2,80}`")
_KATAKANA = late("[\u30a1-\u30fa\u30fc]{4,}")
_WORD = late(r"[^\W_]+")
_SENTENCE_END = late(r"(?:[.!?:;…]|\n|^|[\"“„«(])\s*$")
_PARTICLES = "de|del|della|da|do|di|du|la|le|von|van|vom|der|für|of|the|and|y|&|al|bin"
_CASED = r"[^\W\d_a-zß-öø-ÿа-яёіїєґα-ω][^\W_]*"
_NAME = late(rf"{_CASED}(?:(?:[ ]|[ ](?:{_PARTICLES})[ ]){_CASED})*")
_HONORIFICS = "Herrn?|Frau|Firma|Dr|Prof|Mr|Mrs|Ms|Madame|Monsieur|Mme|Señora?|Sra?|Signora?|Pani?|пані|пан"
_HONORIFIC = late(rf"\b(?:{_HONORIFICS})\b\.? ({_CASED}(?: {_CASED})*)")
_UNSPACED = late(UNSPACED)
_CALENDAR = frozenset(
    """monday tuesday wednesday thursday friday saturday sunday mondays tuesdays wednesdays thursdays fridays saturdays
    sundays january february march april may june july august september october november december montag dienstag
    mittwoch donnerstag freitag samstag sonntag januar februar märz mai juni juli oktober dezember monday's""".split()
)
NOUN_CAPITALS = 0.25
"""Share of words with a capital inside sentences from which a text writes all its nouns so, as German does."""
SHORTEST_NAME = 3


def find_clues(text: str) -> tuple[Clue, ...]:
    """All clues of a memory, each once: of the same value the strongest."""
    found: dict[tuple[str, str], Clue] = {}
    for clue in _all(squeezed(text)):
        known = found.get((clue.form, clue.value))
        if known is None or known.strength < clue.strength:
            found[clue.form, clue.value] = clue
    return tuple(found.values())


def squeezed(text: str) -> str:
    """Normalised, with single spaces; lines stay."""
    return "\n".join(_SPACES.sub(" ", line).strip() for line in normalize(text).split("\n"))


def number_value(figure: str) -> str:
    """A number without its grouping: 1,240 and 1.240 are 1240; 312,50 is 312.50."""
    parts = re.split("[.,]", figure)
    if len(parts) > 1 and all(len(part) == 3 for part in parts[1:]):
        return "".join(parts)
    return "".join(parts[:-1]) + "." + parts[-1] if len(parts) > 1 else figure


def pairs(text: str) -> Iterator[tuple[str, str]]:
    """Numbers of two digits, or with a fraction, beside their neighbours: the number, and how the neighbour begins."""
    for match in _FIGURE.finditer(text):
        value = number_value(match[0])
        if len(value) < 2 or _YEAR.fullmatch(value):
            continue
        before = text[max(0, match.start() - _NEAR) : match.start()]
        for neighbour in (_BEFORE.search(before), _AFTER.match(text, match.end(), match.end() + _NEAR)):
            if neighbour is not None and (word := fold(neighbour[1])) not in STOP_WORDS:
                yield value, word[:4]


def times(text: str) -> Iterator[tuple[str, str]]:
    """Times of day: as they stand, and as 06:52."""
    for match in _TIME.finditer(text):
        if int(match[1]) < 24 and int(match[2]) < 60 and (":" in match[0] or "h" in match[0].lower()):
            yield match[0], f"{int(match[1]):02}:{match[2]}"


def compact(text: str) -> str:
    """Letters and digits alone, folded."""
    return "".join(_WORD.findall(fold(text)))


def _all(text: str) -> Iterator[Clue]:
    yield from _handles(text)
    yield from _codes(text)
    # What is quoted is one thing, as is a code: a word of a title or the letters of a ticket are no name.
    yield from _names(_CODE.sub(_masked_code, _QUOTED.sub(_masked, text)))
    for match in _TITLE.finditer(text):
        yield Clue("quoted", match[1] or match[2], fold(match[1] or match[2]), "text", STRENGTH["quoted"])
    for run in _KATAKANA.findall(text):
        yield Clue("name", run, fold(run), "text", STRENGTH["name"])
    for match in _GROUPED.finditer(text):
        if sum(map(str.isdigit, match[0])) >= 6:
            yield Clue("code", match[0], compact(match[0]), "compact", STRENGTH["code"])
    for shown, value in times(text):
        yield Clue("number", shown, value, "time", WEAK)
    for figure, neighbour in pairs(text):
        yield Clue("number", figure, f"{figure} {neighbour}", "pair", WEAK)


def _masked(found: re.Match[str]) -> str:
    return "_" * len(found[0])


def _masked_code(found: re.Match[str]) -> str:
    joined = any(each in found[0] for each in "-./:_#") and any(map(str.isdigit, found[0]))
    return _masked(found) if joined else found[0]


def _handles(text: str) -> Iterator[Clue]:
    for kind, value in find_handles(text):
        if kind == "date":
            if _DAY.fullmatch(value):  # a month is too long to be shared by use alone
                strength = UNDATED_YEAR if value.startswith("-") else STRENGTH["date"]
                yield Clue("date", value, value, "date", strength)
        elif kind == "number":
            long = sum(map(str.isdigit, value)) >= LONG_NUMBER_DIGITS
            yield Clue("number", value, value, "number", LONG_NUMBER if long else STRENGTH["number"])
        elif len(value) > SHORTEST_NAME and not (kind == "symbol" and _COMPOUND.fullmatch(value)):
            yield Clue(kind, value, value, "text", STRENGTH[kind])


def _codes(text: str) -> Iterator[Clue]:
    """Order, part and flight numbers, hosts and error codes: a stretch with letters or joints, and digits."""
    for match in _CODE.finditer(text):
        stretch = match[0]
        digits = sum(map(str.isdigit, stretch))
        joined = not stretch.isalnum()
        if digits == 0 or len(stretch) < 4 or _DATE_LIKE.fullmatch(stretch) or _CLOCK.fullmatch(stretch):
            continue
        if stretch.isdigit() or _MEASURED.fullmatch(stretch) or (joined and re.fullmatch(r"\d+[.,:]\d+", stretch)):
            continue
        strength = STRENGTH["code"] if digits > 1 else 0.8
        yield Clue("code", stretch, fold(stretch), "text", strength)
    for match in _COMPOUND.finditer(text):
        parts = match[0].count("-") + 1
        yield Clue("symbol", match[0], fold(match[0]), "text", STRENGTH["symbol"] if parts > 2 else WEAK)


def _names(text: str) -> Iterator[Clue]:
    """Words with a capital inside a sentence, and runs of them; in a text that writes nouns so, only after a title."""
    for match in _HONORIFIC.finditer(text):
        yield from _name(match[1])
    inside = [match for match in _WORD.finditer(text) if not _begins_sentence(text, match.start())]
    letters = [match[0] for match in inside if match[0][0].isalpha() and not _UNSPACED.match(match[0])]
    capitals = [word for word in letters if word[0].isupper()]
    nouns = len(capitals) > NOUN_CAPITALS * len(letters) and _writes_nouns_so(text)
    for match in _NAME.finditer(text):
        words = match[0].split(" ")
        if _begins_sentence(text, match.start()):
            if len(words) == 1 or nouns:
                if not _is_spelt_like_a_name(words[0]):
                    continue
                words = words[:1]
        elif nouns:
            words = [word for word in words if _is_spelt_like_a_name(word)]
        name = " ".join(words)
        if name:
            yield from _name(name)


def _writes_nouns_so(text: str) -> bool:
    words = set(_WORD.findall(fold(text)))
    return bool(words & {"der", "die", "das", "und", "ist", "ein", "eine", "wird", "nicht", "im", "wenn", "mit"})


def _is_spelt_like_a_name(word: str) -> bool:
    """SIGBUS, BankID, iPhone: capitals where no sentence puts them."""
    return len(word) >= SHORTEST_NAME and any(character.isupper() for character in word[1:])


def _name(name: str) -> Iterator[Clue]:
    words = [word for word in _WORD.findall(name) if not _is_empty(word)]
    if not words:
        return
    if len(words) > 1:
        yield Clue("name", name, fold(name), "text", WHOLE_NAME)
    for word in words:
        if len(word) >= SHORTEST_NAME and word[0].isupper():
            yield Clue("name", word, fold(word), "text", STRENGTH["name"])


def _is_empty(word: str) -> bool:
    folded = fold(word)
    return folded in STOP_WORDS or folded in _CALENDAR or folded.isdigit()


def _begins_sentence(text: str, at: int) -> bool:
    return _SENTENCE_END.search(text, max(0, at - 4), at) is not None if at else True
