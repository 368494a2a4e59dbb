"""One tokenizer for tasks and memories: texts become terms that match whole, in any script.

Words are case-folded, stripped of accents and, where they are plain ASCII, stemmed as English. Identifiers give
themselves and their parts. A Korean word loses a question's ending and one particle; what is left, and runs of scripts
that are written without spaces, give character n-grams: Han both single characters and pairs, kana and Hangul pairs,
Thai, Lao, Khmer and Burmese pairs and triples of written clusters. Nothing matches as a mere substring.
"""

from __future__ import annotations

import re
import threading
import unicodedata
from collections.abc import Iterable, Iterator
from itertools import chain, pairwise
from typing import NamedTuple

import Stemmer

from sidecar.features.view import TaskWord
from sidecar.retrieval.patterns import MARKS, late

LONGEST_TERM = 256
"""Characters. A longer identifier gives only its parts."""
LONGEST_CASED_PART = 64
"""Characters. A longer unbroken part is data, not a camel-case name, and is not split by case."""
MOST_GROWTH, ROOM_TO_GROW = 4, 1_000
"""A text may come to so many times its length and some characters more when its ligatures are spelled out; what goes
beyond is not looked at. Only rows of U+FDFA and U+FDFB do, which stand for 18 and 8 characters."""
CACHED_CHUNK = 32
CACHED_CHUNKS = 200_000

_STOP_WORDS = """
a an the and or but if then than so of in on at to for with by from as is are was were be been being am do does did
doing done have has had having will would could should can may might shall must this that these those it its i me my
mine we our ours us you your yours he him his she her hers they them their theirs there here not no nor too very just
about into over up out off again also what which who whom whose when where why how many much s t ve re ll d m don didn
doesn isn aren wasn weren hasn haven hadn won wouldn couldn shouldn mustn
어디 누구 누가 언제 무엇 무슨 어느 어떤 어떻 어떻게 얼마 얼마나 몇 왜 뭐 어째서
"""
STOP_WORDS = frozenset(_STOP_WORDS.split())
_CONTRACTED = frozenset(("s", "t", "ve", "re", "ll", "d", "m"))

_HAN = "\u3005-\u3007\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"
_KANA = "\u3041-\u309f\u30a1-\u30fa\u30fc-\u30ff\u3100-\u312f\u31f0-\u31ff"
_HANGUL = "\u1100-\u11ff\u3130-\u318f\uac00-\ud7af"
_PAIRED = _HAN + _KANA + _HANGUL
_CLUSTERED = (
    "\u0e01-\u0e3a\u0e40-\u0e4e\u0e50-\u0e59\u0e81-\u0edf\u1000-\u1049\u1050-\u109f\u1780-\u17d3\u17dc-\u17dd"
    "\u17e0-\u17e9\uaa60-\uaa7f"
)
# What closes a Korean question, and the particles that close a noun; longer ones first where one ends in another.
_KOREAN_QUESTION = late(
    "(?:인가요|인가|입니까|이었나요|였나요|했나요|하나요|되나요|됐나요|되었나요|있나요|있는가|었나요|나요|는가|은가|습니까|까요|할까|일까|인지|이야|이니)$"
)
_KOREAN_PARTICLE = late(
    "(?:에서는|에게서|으로는|이라는|라는|이란|에서|에게|으로|로서|까지|부터|에는|에도|와의|과의|들의|들은|들이|은|는|이|가|을|를|의|에|로|와|과|도|만)$"
)
_SYLLABLES = late("[가-힣]+")
_EMOJI = "\u2600-\u27bf\U0001f000-\U0001f3fa\U0001f400-\U0001faff"  # without the skin tones


# Possessive throughout: no text makes the search go back.
_JOINER = r"(?:://|:\\|::|->|--|[-‐./\\:@'’#+&=~%?$]|(?<=\d),(?=\d{3}(?!\d)))"
WORD = rf"[^\W{_PAIRED}{_CLUSTERED}]++(?:[{MARKS}]++[^\W{_PAIRED}{_CLUSTERED}]*+)*+"
"""Source of a regular expression for an unbroken word of a script with spaces, digits and underscores included."""
ASCII_WORD = "[A-Za-z0-9_]++"
"""The same for a text of ASCII alone, where it finds as much in a third of the time."""
UNSPACED = rf"[{_PAIRED}]++|[{_CLUSTERED}]++"
"""Source of a regular expression for a run that is written without spaces."""
_CHUNK = late(rf"{WORD}(?:{_JOINER}{WORD})*+|{UNSPACED}|[{_EMOJI}]")
_ASCII_CHUNK = late(rf"{ASCII_WORD}(?:{_JOINER}{ASCII_WORD})*+")
_STARTS_PAIRED = late(f"[{_PAIRED}]")
_STARTS_CLUSTERED = late(f"[{_CLUSTERED}]")
_HAN_CHARACTER = late(f"[{_HAN}]")
_CLUSTER = late(rf".[{MARKS}]*+", re.DOTALL)
# From the outermost joint inwards, so that `svc/auth-gw/rotate.py` also gives `auth-gw` and `rotate.py`.
_JOINTS = tuple(map(late, (r"(?:://|:\\|::|->|[/\\:@#+&=~%?$])", r"\.", r"--|[-‐]", r"_+")))
# rotateApiKey -> rotate, Api, Key; HTTPServer2 -> HTTP, Server, 2.
_CASED = late(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+|[^A-Za-z\d]+")
_PLURAL_ACRONYM = late(r"[A-Z]{2,}s")
_APOSTROPHE = late("['’]")

# Invisible characters: a zero-width space parts words, which is what it is for in scripts that are written without
# spaces (UAX 14, class ZW); the others stand inside them.
_INVISIBLE = {0x200B: " "} | dict.fromkeys(
    [0xAD, 0x200C, 0x200D, 0x2060, 0xFEFF, *range(0x200E, 0x2010), *range(0x202A, 0x202F), *range(0xFE00, 0xFE10)]
)
_FOLDED = {ord(a): b for a, b in zip("øłđðıħŧ", "olddiht", strict=True)} | {
    ord("æ"): "ae",
    ord("œ"): "oe",
    ord("þ"): "th",
}
# Marks that writers leave out at will: Latin, Greek and Cyrillic accents, Hebrew points, Arabic vowel signs.
_OPTIONAL_MARKS = late("[\u0300-\u036f\u0591-\u05c7\u064b-\u065f\u0670]+")


class _Stemmer(threading.local):
    """A stemmer must not be used by two threads at once."""

    def __init__(self) -> None:
        self.stem = Stemmer.Stemmer("english").stemWord


_stemmer = _Stemmer()
_cache: dict[str, tuple[Token, ...]] = {}
_words: dict[str, tuple[int, tuple[Token, ...]]] = {}


class Token(NamedTuple):
    """A term of a text. Whether it is a stop word depends on the term alone."""

    term: str
    is_stop_word: bool


def tokenize(text: str) -> list[Token]:
    """Tokens of `text` in its order; empty for a text without letters, digits and emoji. Linear time."""
    return list(chain.from_iterable(map(_tokens_of, _chunks(text))))


def count_terms(text: str) -> tuple[dict[str, int], int]:
    """How often each term of `text` stands in it, in order of first occurrence, and how many of all are no stop
    words."""
    terms: dict[str, int] = {}
    length = 0
    for chunk in _chunks(text):
        for term, is_stop_word in _cache.get(chunk) or _tokens_of(chunk):
            terms[term] = terms.get(term, 0) + 1
            length += not is_stop_word
    return terms, length


def _chunks(text: str) -> list[str]:
    return _ASCII_CHUNK.findall(text) if text.isascii() else _CHUNK.findall(normalize(text))


def task_words(text: str) -> tuple[tuple[Token, ...], tuple[TaskWord, ...]]:
    """Distinct tokens of `text` in order of first occurrence, and its words between white space with the indices of
    their tokens.

    A word's length counts its characters without punctuation around it; a word without tokens is left out.
    """
    index: dict[Token, int] = {}
    words = []
    for word in normalize(text).split():
        length, tokens = _words.get(word) or _read_word(word)
        if tokens:
            words.append(TaskWord(length, tuple([index.setdefault(token, len(index)) for token in tokens])))
    return tuple(index), tuple(words)


def _read_word(word: str) -> tuple[int, tuple[Token, ...]]:
    """Length of a word without punctuation around it, and its distinct tokens."""
    found = len(_bare(word)), tuple(dict.fromkeys(tokenize(word)))
    if len(word) <= CACHED_CHUNK:
        if len(_words) >= CACHED_CHUNKS:
            _words.clear()
        _words[word] = found
    return found


def normalize(text: str) -> str:
    """NFKC without invisible characters; case and accents stay."""
    if text.isascii():
        return text
    spelled_out = unicodedata.normalize("NFKC", text)
    return spelled_out[: MOST_GROWTH * len(text) + ROOM_TO_GROW].translate(_INVISIBLE)


def fold(text: str) -> str:
    """Case-folded and without optional marks, so that both spellings are the same."""
    if text.isascii():
        return text.lower()
    parts = unicodedata.normalize("NFKD", text.casefold())
    return unicodedata.normalize("NFC", _OPTIONAL_MARKS.sub("", parts)).translate(_FOLDED)


def is_stop_word(term: str) -> bool:
    """True for words that say nothing of what a text is about, question words among them."""
    return term in STOP_WORDS


def _bare(word: str) -> str:
    start, end = 0, len(word)
    while start < end and not word[start].isalnum():
        start += 1
    while end > start and not (word[end - 1].isalnum() or unicodedata.category(word[end - 1])[0] == "M"):
        end -= 1
    return word[start:end] or word


def _tokens_of(chunk: str) -> tuple[Token, ...]:
    tokens = _cache.get(chunk)
    if tokens is None:
        tokens = tuple(Token(term, term in STOP_WORDS) for term in _terms_of(chunk))
        if len(chunk) <= CACHED_CHUNK:
            if len(_cache) >= CACHED_CHUNKS:
                _cache.clear()
            _cache[chunk] = tokens
    return tokens


def _terms_of(chunk: str) -> Iterable[str]:
    if chunk.isascii() and chunk.isalpha() and (chunk.islower() or chunk.istitle()):
        return (_stem(chunk.lower()),)
    if _STARTS_PAIRED.match(chunk):
        return _pairs(fold(chunk))
    if _STARTS_CLUSTERED.match(chunk):
        clusters = _CLUSTER.findall(chunk)
        return chain(_grams(clusters, 2), _grams(clusters, 3)) if len(clusters) > 2 else ("".join(clusters),)
    pieces = _APOSTROPHE.split(chunk)
    if len(pieces) > 1 and pieces[-1].lower() in _CONTRACTED:
        pieces.pop()
    return dict.fromkeys(chain.from_iterable(_parts(piece.strip("_").replace(",", ""), 0) for piece in pieces))


def _pairs(run: str) -> Iterator[str]:
    """Pairs of neighbours, and each Han character, as it may be a word of its own."""
    run = _korean_stem(run)
    if len(run) == 1 or run in STOP_WORDS:
        yield run
        return
    for first, second in pairwise(run):
        if _HAN_CHARACTER.match(first):
            yield first
        yield first + second
    if _HAN_CHARACTER.match(run[-1]):
        yield run[-1]


def _korean_stem(run: str) -> str:
    """A run of Hangul without the ending of a question and one particle; one that is nothing else stays whole."""
    if not _SYLLABLES.fullmatch(run):
        return run
    stem = _KOREAN_QUESTION.sub("", run) or run
    noun = _KOREAN_PARTICLE.sub("", stem) if len(stem) > 2 else stem
    return noun if len(noun) > 1 else stem


def _grams(clusters: list[str], size: int) -> Iterator[str]:
    return ("".join(clusters[at : at + size]) for at in range(len(clusters) - size + 1))


def _parts(whole: str, level: int) -> Iterator[str]:
    """The identifier itself, then its parts from the joint of `level` inwards."""
    if not whole:
        return
    if len(whole) <= LONGEST_TERM:
        yield _stem(fold(whole))
    while level < len(_JOINTS):
        parts = _JOINTS[level].split(whole)
        level += 1
        if len(parts) > 1:
            for part in parts:
                yield from _parts(part, level)
            return
    if len(whole) <= LONGEST_CASED_PART and not _PLURAL_ACRONYM.fullmatch(whole):
        parts = _CASED.findall(whole) if whole.isascii() else []
        if len(parts) > 1:
            yield from (_stem(fold(part)) for part in parts)


def _stem(word: str) -> str:
    if not (word.isascii() and word.isalpha()) or word in STOP_WORDS:
        return word
    stem: str = _stemmer.stem(word)
    return word if stem in STOP_WORDS else stem
