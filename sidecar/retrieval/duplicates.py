"""Near-duplicates in any script: the same text but for case, accents, punctuation, spacing, Unicode form or a bit more.

Two texts are near-duplicates if the sets of their character trigrams have a Jaccard similarity of THRESHOLD or more,
and nothing in them speaks against it: the shorter one's words stand in the longer one in the same order (so that one
may say a little more, but nothing else: `enabled` is not `disabled`, Kim not Tim), and their tokens with digits and
their negations are the same. To hide a fact is worse than to show it twice: where in doubt, two texts differ.

A bitmap of hashed trigrams rejects most pairs at once, and never a near-duplicate: every bit that differs stands for at
least one trigram that only one of the texts has.
"""

from __future__ import annotations

import re
import threading
import unicodedata
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import blake2b

import numpy as np
from numpy.typing import NDArray

from sidecar.retrieval.tokenizer import UNSPACED, WORD, fold, normalize

THRESHOLD = 0.7
"""Jaccard similarity of trigrams from which two texts say the same."""
BITMAP_BITS = 2_048
CACHED_FINGERPRINTS = 8_192

_MIXER = np.uint64(0x9E3779B97F4A7C15)  # 2^64 / golden ratio: spreads neighbouring codes over the high bits
_BITMAP_SHIFT = np.uint64(64 - (BITMAP_BITS.bit_length() - 1))
_COMPARED = frozenset(("Lu", "Ll", "Lt", "Lm", "Lo", "Mn", "Mc", "Me", "Nd", "Nl", "No", "So"))
"""Categories of the characters that say something: letters, their marks, numbers, and pictures."""
_TATWEEL = "\u0640"
# In scripts without spaces every character is a word of its own; signs that code and formulas turn on are words, too.
_PIECES = re.compile(rf"(?P<unspaced>{UNSPACED})|{WORD}|[+*/<>=!#%&|^~@$-]")
_NEGATING_WORDS = frozenset(
    (
        "not no never none nothing without cannot nor nicht kein keine keinen keiner nie ohne ne pas jamais sans ni "
        "nunca sin non mai senza não nem sem niet geen không "
        "не нет никогда без لا لم لن ليس ليست غير بدون לא אין नहीं मत"
    ).split()
)
_CONTRACTED_NOT = re.compile("n['’]t(?!\\w)")
# Of scripts without spaces, and of Korean, whose negations stand inside a word.
_NEGATING_PARTS = re.compile("不|没|沒|未|无|無|非|别|別|勿|禁|ない|ません|なかっ|ไม่|ห้าม|않|못|없|안 |말")
_NUMBERED = re.compile(r"(?:(?<!\w)-)?(?<!\w)\w*\d(?:[.,:/-]?\w)*")


class _Kept(dict[int, str | None]):
    """A table for str.translate that drops what is not compared; filled as characters turn up."""

    def __missing__(self, code: int) -> str | None:
        character = chr(code)
        self[code] = found = character if unicodedata.category(character) in _COMPARED else None
        return found


_KEEP = _Kept()


@dataclass(frozen=True, slots=True)
class Fingerprint:
    """What is compared of a text. `whole` stands for texts shorter than a trigram, which compare as they are."""

    trigrams: NDArray[np.uint64]
    """Each once, ascending."""
    bitmap: NDArray[np.uint64]
    """BITMAP_BITS bits."""
    numbers: tuple[str, ...]
    pieces: tuple[str, ...] = ()
    """Words in their order; characters in scripts without spaces; and signs."""
    negating_words: tuple[str, ...] = ()
    negating_parts: tuple[str, ...] = ()
    whole: str = ""

    @staticmethod
    def of(text: str) -> Fingerprint:
        """Reads a text, in linear time."""
        folded = _ascii_digits(fold(unicodedata.normalize("NFKC", normalize(text))).replace(_TATWEEL, ""))
        numbers = tuple(sorted(_NUMBERED.findall(folded)))
        # Spaces go, too: where they stand is a habit in Thai or Korean, and none at all in Chinese.
        normal = folded.translate(_KEEP)
        if len(normal) < 3:
            whole = normal or " ".join(folded.split())
            return Fingerprint(np.empty(0, dtype=np.uint64), _bitmap_of(()), numbers, whole=whole)
        codes = np.frombuffer(normal.encode("utf-32-le"), dtype="<u4").astype(np.uint64)
        # A code point has 21 bits: three of them fit without loss.
        trigrams = np.unique(codes[:-2] << np.uint64(42) | codes[1:-1] << np.uint64(21) | codes[2:])
        pieces = _pieces(folded)
        negations = [word for word in pieces if word in _NEGATING_WORDS] + _CONTRACTED_NOT.findall(folded)
        return Fingerprint(
            trigrams=trigrams,
            bitmap=_bitmap_of((trigrams * _MIXER) >> _BITMAP_SHIFT),
            numbers=numbers,
            pieces=tuple(pieces),
            negating_words=tuple(sorted(negations)),
            negating_parts=tuple(sorted(_NEGATING_PARTS.findall(folded))),
        )


def is_near_duplicate(a: Fingerprint, b: Fingerprint) -> bool:
    """True if the two texts say the same. Symmetric."""
    return a.numbers == b.numbers and a.negating_parts == b.negating_parts and is_alike(a, b) and not _contradicts(a, b)


def is_alike(a: Fingerprint, b: Fingerprint) -> bool:
    """True if the trigrams of the two texts are similar enough, whatever the difference is."""
    if a.whole or b.whole:
        return a.whole == b.whole
    shared = len(np.intersect1d(a.trigrams, b.trigrams, assume_unique=True))
    return shared >= THRESHOLD * (len(a.trigrams) + len(b.trigrams) - shared)


class Seen:
    """Texts by a number of the caller's, to find those that say the same as another."""

    def __init__(self) -> None:
        self._numbers: list[int] = []
        self._fingerprints: list[Fingerprint] = []
        self._bitmaps = np.empty((32, BITMAP_BITS // 64), dtype=np.uint64)
        self._sizes = np.empty(32)

    def add(self, number: int, fingerprint: Fingerprint) -> None:
        """Keeps a text."""
        count = len(self._numbers)
        if count == len(self._bitmaps):
            self._bitmaps = np.concatenate((self._bitmaps, self._bitmaps))
            self._sizes = np.concatenate((self._sizes, self._sizes))
        self._bitmaps[count] = fingerprint.bitmap
        self._sizes[count] = len(fingerprint.trigrams)
        self._numbers.append(number)
        self._fingerprints.append(fingerprint)

    def twin(self, fingerprint: Fingerprint) -> int | None:
        """The number of the first text that says the same, or None."""
        count = len(self._numbers)
        at_least_apart = np.bitwise_count(self._bitmaps[:count] ^ fingerprint.bitmap).sum(axis=1)
        together = self._sizes[:count] + len(fingerprint.trigrams)
        # With d trigrams in one text only, the similarity is (together - d) / (together + d).
        near = together - at_least_apart >= THRESHOLD * (together + at_least_apart)
        for index in np.flatnonzero(near).tolist():
            if is_near_duplicate(self._fingerprints[index], fingerprint):
                return self._numbers[index]
        return None


def _bitmap_of(bits: Sequence[int] | NDArray[np.uint64]) -> NDArray[np.uint64]:
    flags = np.zeros(BITMAP_BITS, dtype=bool)
    if len(bits):
        flags[bits] = True
    return np.packbits(flags).view(np.uint64)


def _contradicts(a: Fingerprint, b: Fingerprint) -> bool:
    """True if one says something in place of what the other says, or only one negates."""
    shorter, longer = sorted((a.pieces, b.pieces), key=len)
    if 2 * len(set(shorter) & set(longer)) < len(set(shorter)):
        # The spaces stand elsewhere: words cannot be compared, but letters can.
        return not _stands_in(*sorted(("".join(a.pieces), "".join(b.pieces)), key=len))
    return a.negating_words != b.negating_words or not _stands_in(shorter, longer)


def _stands_in(shorter: Sequence[str], longer: Sequence[str]) -> bool:
    """True if all of the shorter one is in the longer one, in the same order."""
    rest = iter(longer)
    return all(piece in rest for piece in shorter)


def _pieces(folded: str) -> list[str]:
    pieces: list[str] = []
    for match in _PIECES.finditer(folded):
        if match["unspaced"]:
            pieces.extend(match[0])
        else:
            pieces.append(match[0])
    return pieces


class Fingerprints:
    """Fingerprints by text, made when first asked for; the least recently used are forgotten. Holds no text itself."""

    def __init__(self, capacity: int = CACHED_FINGERPRINTS) -> None:
        self._capacity = capacity
        self._lock = threading.Lock()
        self._held: OrderedDict[bytes, Fingerprint] = OrderedDict()

    def of(self, text: str) -> Fingerprint:
        """The fingerprint of a text."""
        key = blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).digest()
        with self._lock:
            if (found := self._held.get(key)) is not None:
                self._held.move_to_end(key)
                return found
        made = Fingerprint.of(text)
        with self._lock:
            self._held[key] = made
            while len(self._held) > self._capacity:
                self._held.popitem(last=False)
        return made

    def __len__(self) -> int:
        return len(self._held)


FINGERPRINTS = Fingerprints()
"""Shared by all snapshots: a fingerprint depends on the text alone."""


def _ascii_digits(text: str) -> str:
    return text if text.isascii() else "".join(str(unicodedata.digit(c)) if c.isdecimal() else c for c in text)
