"""What a text's wording tells of its worth, learned from pairs of memories of which one was the more worth keeping.

Two linear sums, each of weights that stand in wording.json: over the sort of `statement` that it is, by its marks (a
rule, a stake, something that passes, hedged, told as a story, ...), and over its `words` (in scripts without spaces
runs of one to three characters). A word counts once, and less among many.
`python -m training.wording_fit` fits the weights.
"""

from __future__ import annotations

import functools
import hashlib
import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from sidecar.importance.reading import Reading
from sidecar.retrieval.patterns import late

FILE = Path(__file__).with_name("wording.json")
SCALE = 3.0
"""A sum so far from the middle, in log-odds of being the one to keep, takes or adds three quarters of what it could."""
FEW = 4
"""From so many figures and names on, more tell nothing more."""
MANY_PARTICULARS = 5
LOG_WORDS = 4.0
FEW_WORDS = 12
"""Of fewer words none counts more."""
LONGEST_RUN = 3

_UNSPACED = "\u3041-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af\u0e01-\u0e5b"
_PIECE = late(rf"[{_UNSPACED}]+|[^\W\d_{_UNSPACED}]+(?:['’][^\W\d_]+)?")
_GRAMMAR = late("[\u3041-\u309f]+$")
_IS_UNSPACED = late(rf"[{_UNSPACED}]")


class Leaning(NamedTuple):
    """Where a sum stands: `value` in [0, 1], .5 for a text like most. `pull` in [-1, 1] is the share of what is above
    the least score that it takes, or of what is left to the highest that it adds."""

    value: float
    pull: float


@dataclass(frozen=True, slots=True)
class Wording:
    """What the sort of statement and the words tell."""

    statement: Leaning
    words: Leaning


def wording_of(reading: Reading, density: float, quality: float) -> Wording:
    """Of a text that was read; `density` is the share of its words that tell something, in [0, 1]. It pulls as far as
    there is enough to go by, which is `quality`, in [0, 1]."""
    learned = _learned()
    return Wording(
        _leaning(statement_of(reading, density), learned["statement"], quality),
        _leaning(words_of(reading.text), learned["words"], quality),
    )


def statement_of(reading: Reading, density: float) -> dict[str, float]:
    """The marks of a text by name, as far as it bears them; each in [0, 2]."""
    found = {name: 1.0 for name, count in reading.marks.items() if count}
    found |= {f"several:{name}": 1.0 for name, count in reading.marks.items() if count > 1}
    found |= {f"handle:{handle.kind}": 1.0 for handle in reading.handles}
    told = {
        "asks": reading.asks,
        "logged": reading.is_logged,
        "shouts": reading.shouts,
        "imperative": reading.imperatives,
        "command": reading.commands,
        "speaker": reading.speaks,
        "many_particulars": reading.figures + len(reading.names) >= MANY_PARTICULARS,
    }
    found |= {name: 1.0 for name, is_so in told.items() if is_so}
    found["figures"] = 2.0 * min(reading.figures, FEW) / FEW
    found["names"] = 2.0 * min(len(reading.names), FEW) / FEW
    found["density"] = density
    found["length"] = math.log1p(reading.words.total) / LOG_WORDS
    return found


def words_of(text: str) -> dict[str, float]:
    """The distinct words of a text, each 1 / the root of how many they are, or of FEW_WORDS. Signs and numbers are
    none, for how many somebody writes is a matter of style; nor are runs of hiragana, which are grammar."""
    found: set[str] = set()
    for piece in _PIECE.findall(text.lower()):
        if _IS_UNSPACED.match(piece):
            runs = (piece[at : at + size] for size in range(1, LONGEST_RUN + 1) for at in range(len(piece) - size + 1))
            found.update(run for run in runs if not _GRAMMAR.match(run))
        else:
            found.add(piece)
    return dict.fromkeys(found, 1.0 / math.sqrt(max(len(found), FEW_WORDS)))


@functools.cache
def fingerprint() -> str:
    """Changes with the weights."""
    return hashlib.sha256(FILE.read_bytes()).hexdigest()


def _leaning(found: Mapping[str, float], learned: Mapping[str, Any], quality: float) -> Leaning:
    weights = learned["weights"]
    above = math.fsum(value * weights.get(name, 0.0) for name, value in found.items()) - learned["middle"]
    return Leaning((1.0 + math.tanh(above / 2.0)) / 2.0, quality * math.tanh(above / SCALE))


@functools.cache
def _learned() -> Mapping[str, Any]:
    found: Mapping[str, Any] = json.loads(FILE.read_text(encoding="utf-8"))
    return found
