"""Near-duplicates in any script: the same text but for case, punctuation, spacing, Unicode form or a small edit.

Two texts are near-duplicates if the sets of their character trigrams have a Jaccard similarity of THRESHOLD or more,
and their tokens with digits are the same: `limit 500` and `limit 600` are two facts. A bitmap of hashed trigrams
rejects most pairs at once, and never a near-duplicate: every bit that differs stands for at least one trigram that
only one of the texts has.
"""

from __future__ import annotations

import re
import threading
import unicodedata
from collections import OrderedDict
from dataclasses import dataclass
from hashlib import blake2b

import numpy as np

from sidecar.retrieval.tokenizer import normalize

THRESHOLD = 0.7
"""Jaccard similarity of trigrams from which two texts say the same."""
BITMAP_BITS = 1024
CACHED_FINGERPRINTS = 4096

_MIXER = np.uint64(0x9E3779B97F4A7C15)  # 2^64 / golden ratio: spreads neighbouring codes over the high bits
_BITMAP_SHIFT = np.uint64(64 - (BITMAP_BITS.bit_length() - 1))
_COMPARED = frozenset(("Lu", "Ll", "Lt", "Lm", "Lo", "Mn", "Mc", "Me", "Nd", "Nl", "No", "So"))
"""Categories of the characters that say something: letters, their marks, numbers, and pictures."""
_NUMBERED = re.compile(r"(?:(?<!\w)-)?\w*\d(?:[.,:/-]?\w)*")


@dataclass(frozen=True, slots=True)
class Fingerprint:
    """What is compared of a text. `whole` stands for texts shorter than a trigram, which compare as they are."""

    trigrams: frozenset[int]
    bitmap: int
    numbers: tuple[str, ...]
    whole: str = ""

    @staticmethod
    def of(text: str) -> Fingerprint:
        """Reads a text, in linear time."""
        folded = unicodedata.normalize("NFKC", normalize(text).casefold())
        numbers = tuple(sorted(map(_ascii_digits, _NUMBERED.findall(folded))))
        # Spaces go, too: where they stand is a habit in Thai or Korean, and none at all in Chinese.
        normal = "".join(c for c in folded if unicodedata.category(c) in _COMPARED)
        if len(normal) < 3:
            return Fingerprint(frozenset(), 0, numbers, normal or " ".join(folded.split()))
        codes = np.frombuffer(normal.encode("utf-32-le"), dtype="<u4").astype(np.uint64)
        # A code point has 21 bits: three of them fit without loss.
        trigrams = np.unique(codes[:-2] << np.uint64(42) | codes[1:-1] << np.uint64(21) | codes[2:])
        bits = np.zeros(BITMAP_BITS, dtype=bool)
        bits[(trigrams * _MIXER) >> _BITMAP_SHIFT] = True
        return Fingerprint(frozenset(trigrams.tolist()), int.from_bytes(np.packbits(bits).tobytes()), numbers)


def is_near_duplicate(a: Fingerprint, b: Fingerprint, threshold: float = THRESHOLD) -> bool:
    """True if the two texts say the same. Symmetric. `threshold` in (0, 1]."""
    if a.numbers != b.numbers:
        return False
    if a.whole or b.whole:
        return a.whole == b.whole
    together = len(a.trigrams) + len(b.trigrams)
    # With d trigrams in one text only, the similarity is (together - d) / (together + d).
    at_least_apart = (a.bitmap ^ b.bitmap).bit_count()
    if together - at_least_apart < threshold * (together + at_least_apart):
        return False
    shared = len(a.trigrams & b.trigrams)
    return shared >= threshold * (together - shared)


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
