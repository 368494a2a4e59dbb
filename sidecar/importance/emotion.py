"""The emotion signal: how strongly a text feels, by a lexicon on this machine (note: "Emotional Salience"). Pure.

The lexicon is VADER's (Hutto & Gilbert 2014), of the package nltk-vader-sentiment: English words, and emoji in any
language. It is an extra; without it, or where it knows no word of a text in another language, intensity is absent and
hands its share to markers and personal relevance, which know the languages of `words`.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import NamedTuple

from sidecar.importance.content import level
from sidecar.importance.language import ENGLISH, count_markers, language_of
from sidecar.importance.reading import LONGEST_READ
from sidecar.importance.words import DECISION, FIRST_PERSON, PREFERENCE, VALUE

SHARES = {"intensity": 0.4, "markers": 0.3, "personal_relevance": 0.3}
MISSING = (
    "emotion is switched on and the lexicon for its intensity is not installed, so it goes by markers alone: install "
    "memory-ranker[emotion]"
)


class Emotion(NamedTuple):
    """The three parts, in [0, 1]; intensity is None where nothing could tell it."""

    intensity: float | None
    markers: float
    personal_relevance: float


def read_emotion(text: str) -> Emotion:
    """How strongly a text feels, which marks of it there are, and how much it is about the one who speaks."""
    text = text[:LONGEST_READ]
    lower, language = text.lower(), language_of(text)
    first = count_markers(lower, language, FIRST_PERSON)
    kinds = [count_markers(lower, language, table) for table in (VALUE, PREFERENCE, DECISION)]
    return Emotion(
        intensity=_intensity(text, language),
        markers=level((first > 0) + sum(count > 0 for count in kinds)),
        # Said in the first person, more so with what the speaker wants or values.
        personal_relevance=level(1.0 + 0.5 * sum(kinds[:2])) if first else level(0.5 * kinds[1]),
    )


def has_lexicon() -> bool:
    """True if the extra is installed."""
    return _scorer() is not None


def _intensity(text: str, language: str) -> float | None:
    scorer = _scorer()
    if scorer is None:
        return None
    strength = abs(scorer(text)["compound"])
    return strength if strength > 0.0 or language == ENGLISH else None


@functools.cache
def _scorer() -> Callable[[str], dict[str, float]] | None:
    try:
        from vader import polarity_scores
    except ImportError:
        return None
    scores: Callable[[str], dict[str, float]] = polarity_scores
    return scores
