"""Finds where a text repeats memories word for word. Pure, linear in the text.

A passage is a repetition if it has at least LONG_RUN words in a row from one memory, or nearly the whole of a shorter
one. Shorter runs are how people speak of the same thing, and how a fact is given in an answer.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import groupby

from sidecar.retrieval.patterns import late
from sidecar.retrieval.tokenizer import UNSPACED, WORD, fold, normalize

LONG_RUN = 12
SHORT_MEMORY = 8
"""Words of the shortest memory that can be repeated as a whole."""
NEARLY_ALL = 0.9
SHINGLE = 5
UNSPACED_PER_WORD = 2
"""Characters of a script without spaces that weigh as much as a word."""

_UNSPACED = late(UNSPACED)
_TOKEN = late(rf"{WORD}|{UNSPACED}")


def is_unspaced(character: str) -> bool:
    """True for a letter of a script that is written without spaces (and of Korean)."""
    return _UNSPACED.match(character) is not None


def without_repetition(text: str, memories: Mapping[str, str]) -> tuple[str, frozenset[str]]:
    """The text without passages that repeat a memory, and the ids of the memories that are repeated."""
    text = normalize(text)
    tokens = _tokens(text)
    shingles: dict[tuple[str, ...], list[int]] = {}
    for at in range(len(tokens) - SHINGLE + 1):
        shingles.setdefault(tuple(word for word, _, _ in tokens[at : at + SHINGLE]), []).append(at)
    repeated: set[str] = set()
    covered = bytearray(len(tokens))
    for memory_id, content in memories.items():
        own = [word for word, _, _ in _tokens(normalize(content))]
        marked = bytearray(len(tokens))
        for at in range(len(own) - SHINGLE + 1):
            for place in shingles.get(tuple(own[at : at + SHINGLE]), ()):
                marked[place : place + SHINGLE] = b"\1" * SHINGLE
        for start, end in _runs(marked):
            if _is_repetition(own, [word for word, _, _ in tokens[start:end]]):
                covered[start:end] = b"\1" * (end - start)
                repeated.add(memory_id)
    kept, last = [], 0
    for start, end in _runs(covered):
        kept.append(text[last : tokens[start][1]])
        last = tokens[end - 1][2]
    return "\n".join([*kept, text[last:]]), frozenset(repeated)


def _is_repetition(own: list[str], run: list[str]) -> bool:
    length = _weight(run)
    whole = _weight(own)
    return length >= LONG_RUN or (whole >= SHORT_MEMORY and length >= NEARLY_ALL * whole)


def _weight(words: list[str]) -> float:
    return sum(1 / UNSPACED_PER_WORD if is_unspaced(word) else 1 for word in words)


def _tokens(text: str) -> list[tuple[str, int, int]]:
    """Words with where they stand; of scripts without spaces each character."""
    found: list[tuple[str, int, int]] = []
    for match in _TOKEN.finditer(text):
        if is_unspaced(match[0]):
            found += [(character, at, at + 1) for at, character in enumerate(match[0], match.start())]
        else:
            found.append((fold(match[0]), match.start(), match.end()))
    return found


def _runs(marks: bytearray) -> list[tuple[int, int]]:
    """Stretches of marked places, as start and end."""
    runs, at = [], 0
    for marked, group in groupby(marks):
        size = len(list(group))
        if marked:
            runs.append((at, at + size))
        at += size
    return runs
