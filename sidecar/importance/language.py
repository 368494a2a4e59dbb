"""Which language a text is in, as far as markers go by it, and which of its words say something. Pure.

The script decides where it can; among languages of one script the one most of whose function words stand in the text.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Mapping
from dataclasses import dataclass

from sidecar.importance.words import FUNCTION_WORDS, HAN_FUNCTION, THAI_FUNCTION, WITHOUT_EDGES
from sidecar.retrieval.patterns import late
from sidecar.retrieval.tokenizer import STOP_WORDS

ENGLISH, ARABIC = "en", "ar"
_ARABIC_PREFIXES = "(?:[وف]?(?:[بك]?ال|لل|[بلك])?)"
"""And, so, by, as, for, the: written on to the word that follows, as endings are; so an Arabic marker begins a word."""
_LINE_END = late(r"\s*\n\s*")
_WORD = late(r"[^\W_]+(?:['’][^\W_]+)?")
_BY_LANGUAGE = {language: frozenset(words.split()) for language, words in FUNCTION_WORDS.items()}
_LATIN = ("de", "fr", "es", "pt", "it", "nl", "sv", "pl", "tr", "vi", "id")
_LETTERS: Mapping[str, frozenset[str]] = {
    "de": frozenset("äöüß"),
    "fr": frozenset("àâçèêëîïôœùû"),
    "es": frozenset("ñ¿¡áíóú"),
    "pt": frozenset("ãõ"),
    "pl": frozenset("ąęłńśźż"),
    "tr": frozenset("ğış"),
    "sv": frozenset("å"),
    "vi": frozenset("ăđơư"),
}
"""Letters that English does not have, by the languages that write them most."""
OWN_LETTER = 2
"""Function words that one of them counts as: a short sentence may have none."""
_SCRIPTS: tuple[tuple[str, str, tuple[str, ...]], ...] = (
    ("latin", r"[A-Za-z\u00c0-\u024f\u1e00-\u1eff]", (ENGLISH, *_LATIN)),
    ("hangul", r"[\uac00-\ud7af\u1100-\u11ff\u3130-\u318f]", ("ko",)),
    ("kana", r"[\u3041-\u30ff]", ("ja",)),
    ("han", r"[\u3400-\u4dbf\u4e00-\u9fff]", ("zh",)),
    ("cyrillic", r"[\u0400-\u04ff]", ("ru", "uk")),
    ("arabic", r"[\u0600-\u06ff]", ("ar", "fa")),
    ("thai", r"[\u0e00-\u0e7f]", ("th",)),
    ("hebrew", r"[\u0590-\u05ff]", ("he",)),
    ("devanagari", r"[\u0900-\u097f]", ("hi",)),
    ("greek", r"[\u0370-\u03ff]", ("el",)),
)
_COUNTED = tuple((name, late(pattern), languages) for name, pattern, languages in _SCRIPTS)
LONGEST_READ = 4_000
"""Characters from which a language is told; more would say the same."""

_HAN = late(r"[\u3400-\u4dbf\u4e00-\u9fff]")
_KANA_WORD = late(r"[\u30a1-\u30fa\u30fc]{2,}")
_HIRAGANA = late(r"[\u3041-\u309f]")
_THAI = late(r"[\u0e01-\u0e2e]")
_THAI_FUNCTION = late("|".join(sorted(THAI_FUNCTION, key=len, reverse=True)))
_LATIN_WORD = late(r"[A-Za-z0-9][\w'’.-]*")
CONSONANTS_A_WORD = 3.0
"""Thai consonants to a word, about."""


@dataclass(frozen=True, slots=True)
class Words:
    """How much of a text says something: words in all, and distinct ones that are no function words."""

    language: str
    total: float
    meaningful: float


def read_words(text: str) -> Words:
    """Counts a text's words. In scripts without spaces two Han characters, or three Thai consonants, make one."""
    language, words = _read(text)
    if language in ("zh", "ja"):
        han = _HAN.findall(text)
        telling = [c for c in han if c not in HAN_FUNCTION]
        katakana, latin = _KANA_WORD.findall(text), _LATIN_WORD.findall(text)
        whole = len(katakana) + len(latin)
        distinct = len(set(katakana)) + len(set(latin))
        total = len(han) / 2 + len(_HIRAGANA.findall(text)) / 2 + whole
        return Words(language, total, len(set(telling)) / 2 + distinct)
    if language == "th":
        rest = _THAI_FUNCTION.sub("", text)
        latin = _LATIN_WORD.findall(text)
        total = len(_THAI.findall(text)) / CONSONANTS_A_WORD + len(latin)
        return Words(language, total, len(_THAI.findall(rest)) / CONSONANTS_A_WORD + len(set(latin)))
    function = STOP_WORDS if language == ENGLISH else _BY_LANGUAGE.get(language, STOP_WORDS)
    return Words(language, len(words), len({word for word in words if word not in function}))


def language_of(text: str) -> str:
    """An ISO 639-1 code; English where nothing says otherwise."""
    return _read(text)[0]


def _read(text: str) -> tuple[str, list[str]]:
    words = _WORD.findall(text.lower())
    read = text[:LONGEST_READ]
    languages: tuple[str, ...] = (ENGLISH, *_LATIN)
    if not read.isascii():
        counts = {name: len(pattern.findall(read)) for name, pattern, _ in _COUNTED}
        # Few languages mix scripts but by borrowing Latin words, and Japanese by Han: those weigh less than their own.
        counts["latin"] //= 2
        if counts["kana"] * 5 >= counts["han"] and counts["kana"]:
            counts["han"] = 0
            counts["kana"] *= 4
        best = max(counts, key=lambda name: counts[name])
        if counts[best]:
            languages = next(found for name, _, found in _COUNTED if name == best)
    if len(languages) == 1:
        return languages[0], words
    found = set(words[:200])
    letters = set(read.lower())
    scores = {
        language: len(found & _BY_LANGUAGE.get(language, STOP_WORDS))
        + (OWN_LETTER if letters & _LETTERS.get(language, frozenset()) else 0)
        for language in languages
    }
    best_language = max(languages, key=lambda language: scores[language])
    # Short words are shared by many languages: two of them at least, and more than English has.
    if languages[0] == ENGLISH and (scores[best_language] < 2 or scores[best_language] <= scores[ENGLISH]):
        return ENGLISH, words
    return best_language, words


@functools.cache
def _pattern(language: str, entries: str) -> re.Pattern[str]:
    # An entry's own space at its end counts, in languages whose words bear endings.
    choices = _LINE_END.sub("", entries).split("|")
    if language == ARABIC:
        whole = (rf"{each.strip()}(?!\w)" if each.endswith(" ") else each.strip() for each in choices)
        return re.compile(rf"(?<!\w){_ARABIC_PREFIXES}({'|'.join(whole)})")
    if language in WITHOUT_EDGES:
        return re.compile("|".join(choices))
    parts = [choice[:-1] + r"\w*" if choice.endswith("*") and choice[-2:-1] != "w" else choice for choice in choices]
    return re.compile(rf"(?<!\w)(?:{'|'.join(parts)})(?!\w)")


def count_markers(lower: str, language: str, table: Mapping[str, str]) -> int:
    """How many different markers of `table` stand in a lower-case text; English ones count in every language."""
    found = set()
    for each in dict.fromkeys((language, ENGLISH)):
        if each in table:
            found.update(_pattern(each, table[each]).findall(lower))
    return len(found)
