"""Near-duplicates in any script: the same text but for case, accents, punctuation, spacing, Unicode form or a bit more.

Two texts are near-duplicates if the sets of their character trigrams have a Jaccard similarity of THRESHOLD or more,
and nothing in them speaks against it: the shorter one's words stand in the longer one in the same order (so that one
may say a little more, but nothing else: `enabled` is not `disabled`, Kim not Tim), and their tokens with digits and
their negations are the same. To hide a fact is worse than to show it twice: where in doubt, two texts differ.

A bitmap of hashed trigrams rejects most pairs at once, and never a near-duplicate: every bit that differs stands for at
least one trigram that only one of the texts has.
"""

from __future__ import annotations

import threading
import unicodedata
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Protocol, TypeAlias

import numpy as np
import simsimd
from numpy.typing import NDArray

from sidecar.retrieval.hashing import Hasher
from sidecar.retrieval.patterns import late
from sidecar.retrieval.tokenizer import UNSPACED, WORD, fold, normalize

THRESHOLD = 0.7
"""Jaccard similarity of trigrams from which two texts say the same."""
BITMAP_BITS = 2_048
BITMAP_WORDS = BITMAP_BITS // 64
CACHED_FINGERPRINTS = 2_048
MOST_APART = (1.0 - THRESHOLD) / (1.0 + THRESHOLD) + 1e-9
"""Share of what two near-duplicates have together that only one of them has; a little more, against rounding."""
COMPARED_AT_ONCE = 24
"""Texts that are compared with what is in a packet in one go."""
OUTLINED_AT_ONCE = 10_000
"""Characters of texts that are outlined in one go: what is made of so many fits into the processor's caches."""

_BITMAP_SHIFT = np.uint64(64 - (BITMAP_BITS.bit_length() - 1))
_COMPARED = frozenset(("Lu", "Ll", "Lt", "Lm", "Lo", "Mn", "Mc", "Me", "Nd", "Nl", "No", "So"))
"""Categories of the characters that say something: letters, their marks, numbers, and pictures."""
_TATWEEL = "\u0640"
# In scripts without spaces every character is a word of its own; signs that code and formulas turn on are words, too.
_PIECES = late(rf"(?P<unspaced>{UNSPACED})|{WORD}|[+*/<>=!#%&|^~@$-]")
_NEGATING_WORDS = frozenset(
    (
        "not no never none nothing without cannot nor nicht kein keine keinen keiner nie ohne ne pas jamais sans ni "
        "nunca sin non mai senza não nem sem niet geen không "
        "не нет никогда без لا لم لن ليس ليست غير بدون לא אין नहीं मत"
    ).split()
)
_CONTRACTED_NOT = late("n't(?!\\w)")
# Of scripts without spaces, and of Korean, whose negations stand inside a word.
_NEGATING_PARTS = late("不|没|沒|未|无|無|非|别|別|勿|禁|ない|ません|なかっ|ไม่|ห้าม|않|못|없|안|말")
_SAME_SIGN = str.maketrans(dict.fromkeys("‘’‛ʹʻʼʽ′＇", "'") | dict.fromkeys("‐‑‒–—―−", "-"))
"""Apostrophes and dashes are one each, whichever the keyboard made."""
_NUMBERED = late(r"(?:(?<!\w)-)?(?<!\w)\w*\d(?:[.,:/-]?\w)*")


class _Kept(dict[int, str | None]):
    """A table for str.translate that drops what is not compared; filled as characters turn up. Spaces go, too: where
    they stand is a habit in Thai or Korean, and none at all in Chinese."""

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
    numbers: tuple[str, ...]
    pieces: tuple[str, ...] = ()
    """Words in their order; characters in scripts without spaces; and signs."""
    negating_words: tuple[str, ...] = ()
    negating_parts: tuple[str, ...] = ()
    whole: str = ""

    @staticmethod
    def of(text: str) -> Fingerprint:
        """Reads a text, in linear time."""
        folded = _folded(text)
        numbers = tuple(sorted(_NUMBERED.findall(folded)))
        letters = folded.translate(_KEEP)
        if len(letters) < 3:
            whole = letters or " ".join(folded.split())
            return Fingerprint(np.empty(0, dtype=np.uint64), numbers, whole=whole)
        trigrams = np.unique(_trigrams(letters))
        pieces = _pieces(folded)
        negations = [word for word in pieces if word in _NEGATING_WORDS] + _CONTRACTED_NOT.findall(folded)
        return Fingerprint(
            trigrams=trigrams,
            numbers=numbers,
            pieces=tuple(pieces),
            negating_words=tuple(sorted(negations)),
            negating_parts=tuple(sorted(_NEGATING_PARTS.findall(folded))),
        )


Outlines: TypeAlias = NDArray[np.uint64]
"""What rejects most pairs of n texts, shape (n, OUTLINE_WORDS): how many trigrams a text has, as a float64, and its
bitmap."""
OUTLINE_WORDS = 1 + BITMAP_WORDS


def outlines_of(texts: Sequence[str], hasher: Hasher) -> Outlines:
    """The outlines of texts, whose trigrams are hashed with the hasher's secret."""
    letters = [found if len(found := _folded(text).translate(_KEEP)) >= 3 else "" for text in texts]
    mixer = np.uint64(hasher.of("trigrams") | 1)  # odd, so that a product's highest bits depend on all of a trigram
    outlines = np.zeros((len(texts), OUTLINE_WORDS), np.uint64)
    first = characters = 0
    for end, found in enumerate(letters, start=1):
        characters += max(len(found), BITMAP_BITS // 8)
        if characters >= OUTLINED_AT_ONCE or end == len(letters):
            _outline(outlines[first:end], letters[first:end], mixer)
            first, characters = end, 0
    return outlines


def _outline(outlines: Outlines, letters: Sequence[str], mixer: np.uint64) -> None:
    """Writes the outlines of texts of three letters and more, or none."""
    if not any(letters):
        return
    lengths = np.array(list(map(len, letters)))
    ends = lengths.cumsum()[lengths > 0]
    within = np.ones(ends[-1], bool)
    within[ends - 1] = within[ends - 2] = False  # trigrams that would end in the next text
    trigrams = _trigrams("".join(letters))[within[:-2]]
    owner = np.arange(len(letters)).repeat(np.maximum(lengths - 2, 0))
    flags = np.zeros((len(letters), BITMAP_BITS), bool)
    flags[owner, (trigrams * mixer) >> _BITMAP_SHIFT] = True
    outlines[:, 1:] = np.packbits(flags, axis=1).view(np.uint64)
    starts = np.flatnonzero(np.diff(owner, prepend=-1))
    for start, end in zip(starts.tolist(), [*starts[1:].tolist(), len(trigrams)], strict=True):
        trigrams[start:end].sort()
    is_first = np.append(True, trigrams[1:] != trigrams[:-1])
    is_first[starts] = True
    outlines[:, 0] = np.bincount(owner[is_first], minlength=len(letters)).astype(np.float64).view(np.uint64)


def _trigrams(letters: str) -> NDArray[np.uint64]:
    """One for each three neighbouring characters. A code point has 21 bits: three of them fit without loss."""
    codes = np.frombuffer(letters.encode("utf-32-le"), dtype="<u4").astype(np.uint64)
    found: NDArray[np.uint64] = codes[:-2] << np.uint64(42) | codes[1:-1] << np.uint64(21) | codes[2:]
    return found


def _folded(text: str) -> str:
    folded = _ascii_digits(fold(unicodedata.normalize("NFKC", normalize(text))).replace(_TATWEEL, ""))
    return folded if folded.isascii() else folded.translate(_SAME_SIGN)


def is_near_duplicate(a: Fingerprint, b: Fingerprint) -> bool:
    """True if the two texts say the same. Symmetric."""
    return a.numbers == b.numbers and a.negating_parts == b.negating_parts and is_alike(a, b) and not _contradicts(a, b)


def is_alike(a: Fingerprint, b: Fingerprint) -> bool:
    """True if the trigrams of the two texts are similar enough, whatever the difference is."""
    if a.whole or b.whole:
        return a.whole == b.whole
    shared = len(np.intersect1d(a.trigrams, b.trigrams, assume_unique=True))
    return shared >= THRESHOLD * (len(a.trigrams) + len(b.trigrams) - shared)


class Fingerprints:
    """Fingerprints by text, made when first asked for; the oldest are forgotten. Holds no text itself. Safe to use from
    many threads."""

    def __init__(self, capacity: int = CACHED_FINGERPRINTS) -> None:
        self._capacity = capacity
        self._lock = threading.Lock()
        self._held: dict[tuple[int, int], Fingerprint] = {}

    def of(self, text: str) -> Fingerprint:
        """The fingerprint of a text."""
        # A keyed hash of 64 bits, which Python keeps with the text: nobody can make two texts of the same.
        name = (hash(text), len(text))
        found = self._held.get(name)
        if found is None:
            found = Fingerprint.of(text)
            with self._lock:
                self._held[name] = found
                while len(self._held) > self._capacity:
                    del self._held[next(iter(self._held))]
        return found

    def __len__(self) -> int:
        return len(self._held)


FINGERPRINTS = Fingerprints()
"""Shared by all snapshots: a fingerprint depends on the text alone."""


class Texts(Protocol):
    """The texts of some numbers, as far as they are compared."""

    def outlines(self, numbers: Sequence[int], /) -> Outlines:
        """Their outlines, in their order."""

    def fingerprint(self, number: int, /) -> Fingerprint:
        """The fingerprint of one."""


class Seen:
    """What is in a packet, by the numbers of its memories, so that nothing that says the same comes in twice."""

    def __init__(self, texts: Texts) -> None:
        self._texts = texts
        self._admitted: dict[int, None] = {}
        self._upcoming: list[int] = []
        self._near: dict[int, Collection[int]] = {}

    def upcoming(self, numbers: list[int]) -> None:
        """Hears of numbers that may be asked for next, in their order: they are compared some at a time."""
        self._upcoming = numbers

    def admits(self, number: int) -> bool:
        """Adds one to what is in the packet; False if something there says the same, and it stays out."""
        near = self._near.get(number)
        if near is None:
            near = self._compare(number)
        if near and self.twin(number) is not None:
            return False
        self._admitted[number] = None
        return True

    def add(self, numbers: Sequence[int]) -> None:
        """Hears of others for which whatever says the same has to stand back."""
        self._admitted.update(dict.fromkeys(numbers))
        self._near = {}

    def twin(self, number: int) -> int | None:
        """The first that says the same and was there before, or None."""
        near = self._near.get(number)
        if near is None:
            near = self._compare(number)
        if near:
            own = self._texts.fingerprint(number)
            for other in self._admitted:
                if other in near and is_near_duplicate(self._texts.fingerprint(other), own):
                    return other
        return None

    def _compare(self, number: int) -> Collection[int]:
        """Which others may say the same as `number`. Those that follow it are compared with it, for their turn."""
        first = self._upcoming.index(number) if number in self._upcoming else -1
        numbers = self._upcoming[first : first + COMPARED_AT_ONCE] if first >= 0 else [number]
        every = [*self._admitted.keys() - numbers, *numbers]
        self._near = dict.fromkeys(numbers, ())
        for one, other in _may_be_alike(self._texts.outlines(every), len(numbers)):
            self._near[numbers[other]] = {*self._near[numbers[other]], every[one]}
        return self._near[number]


def _may_be_alike(outlines: Outlines, last: int) -> list[tuple[int, int]]:
    """Pairs that are not certainly unlike, by their outlines alone: an index into all, and one into the `last` ones of
    them. None is paired with itself.

    With d trigrams in one text only, the similarity is (together - d) / (together + d); it reaches the threshold for no
    d above a share of what is together in them.
    """
    most = outlines[:, 0].view(np.float64) * MOST_APART
    most = most[-last:, None] + most
    most[np.arange(last), np.arange(-last, 0)] = -1.0
    bitmaps = outlines[:, 1:].view(np.uint8)
    apart = simsimd.cdist(bitmaps[-last:], bitmaps, metric="hamming", dtype="bin8")
    other, one = (np.asarray(apart) <= most).nonzero()
    return list(zip(one.tolist(), other.tolist(), strict=True))


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


def _ascii_digits(text: str) -> str:
    return text if text.isascii() else "".join(str(unicodedata.digit(c)) if c.isdecimal() else c for c in text)
