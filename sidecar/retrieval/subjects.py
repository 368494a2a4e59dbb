"""Whom a task asks about, by subject field and by speaker; and a task without the names that are everywhere."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import compress, pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from sidecar.retrieval.lexical import InvertedIndex
from sidecar.retrieval.patterns import late
from sidecar.retrieval.tokenizer import UNSPACED, WORD, fold, is_stop_word, normalize, tokenize

Mask = NDArray[np.bool_]
RowNumbers = NDArray[np.int32]
Mark = tuple[Any, ...]

FEWEST_BEARERS = 5
SHARE_OF_BEARERS = 0.05
"""A speaker or a mentioned name counts from this many memories on, and from this share of all."""
NEARLY_ALWAYS = 0.9
"""A word that memories write with a capital this often is a name."""
LONGEST_NAME = 5
"""Words of a subject or speaker that a task may name."""
LONGEST_RUN = 8
"""Characters of a name in a script without spaces."""

_NOBODY: RowNumbers = np.empty(0, np.int32)
_PREFIX = late(r"([^:\n]{1,40}):\s")
_WORD = late(WORD)
_ASCII_CAPITAL = late(r"[A-Z](?<![A-Za-z0-9_][A-Z])[0-9_]*+[a-z][a-z0-9_]*+(?![A-Z])")
"""What `_is_capital` says of a word, of a text of ASCII alone: found without looking at each word."""
_NAME_WORD = late(rf"({WORD})(?:['’]s\b)?|({UNSPACED})")


class _Word(NamedTuple):
    text: str
    is_capital: bool
    is_unspaced: bool
    start: int
    end: int


class Subjects(NamedTuple):
    """Rows that are about whom the task asks about, ascending, each once."""

    field: RowNumbers
    prefix: RowNumbers


def name_marks(content: str, subject: str) -> Iterator[Mark]:
    """What one memory says of names: its subject, its speaker, and its words with a capital."""
    if subject:
        yield from _name_marks("of subject", _words(subject))
    if (prefix := _PREFIX.match(content)) is not None:
        yield from _name_marks("of speaker", _words(prefix[1]))
    for word in _with_capital(content):
        if not is_stop_word(folded := fold(word)):
            yield ("capital", folded)


def _with_capital(text: str) -> set[str]:
    """Words whose first letter alone is a capital."""
    if text.isascii():
        return set(_ASCII_CAPITAL.findall(text))
    return set(filter(_is_capital, _WORD.findall(normalize(text))))


def find_subjects(task: str, marks: InvertedIndex[Mark], live: Mask) -> Subjects:
    """The rows that are about whom `task` asks about. `live` is the mask of the snapshot's n rows."""
    field, prefix = [_NOBODY], [_NOBODY]
    names = {name for name, _, _ in _candidates(_words(task))}
    for name in compress(names, marks.among([("named", name) for name in names])):
        for part in ("whole", "first"):
            field.append(marks.find(("of subject", part, name), live)[0])
            speaking, _ = marks.find(("of speaker", part, name), live)
            if len(speaking) >= _fewest(live):
                prefix.append(speaking)
    return Subjects(*(np.unique(np.concatenate(found)) if len(found) > 1 else _NOBODY for found in (field, prefix)))


def without_names(task: str, marks: InvertedIndex[Mark], terms: InvertedIndex[str], live: Mask) -> str:
    """The task without the names of known speakers, and of those whom many memories mention, for embedding.

    Such a name in a task's vector draws in all that this person ever said and drowns what is asked; the person is
    matched as subject and by words instead. A task that asks for nothing else stays whole.
    """
    text = normalize(task)
    fewest = _fewest(live)
    kept, covered = [], 0
    for name, start, end in sorted(_candidates(_words(task)), key=lambda found: (found[1], -found[2])):
        if start >= covered and (_speaks(name, marks, live, fewest) or _is_mentioned(name, marks, terms, live, fewest)):
            kept.append(text[covered:start])
            covered = end
    rest = " ".join(" ".join([*kept, text[covered:]]).split())
    return rest if any(not token.is_stop_word for token in tokenize(rest)) else task


def _fewest(live: Mask) -> float:
    """Memories that must bear a name before it counts as a speaker's, or as one that many mention."""
    return max(FEWEST_BEARERS, SHARE_OF_BEARERS * int(np.count_nonzero(live)))


def _speaks(name: str, marks: InvertedIndex[Mark], live: Mask, fewest: float) -> bool:
    return any(len(marks.find(("of speaker", part, name), live)[0]) >= fewest for part in ("whole", "first"))


def _is_mentioned(word: str, marks: InvertedIndex[Mark], terms: InvertedIndex[str], live: Mask, fewest: float) -> bool:
    with_capital = len(marks.find(("capital", word), live)[0])
    if with_capital < fewest:
        return False
    bearing = max((len(terms.find(token.term, live)[0]) for token in tokenize(word)), default=0)
    return with_capital >= NEARLY_ALWAYS * bearing


def _words(text: str) -> list[_Word]:
    found = []
    for match in _NAME_WORD.finditer(normalize(text)):
        word = match[1] or match[2]
        found.append(_Word(fold(word), _is_capital(word), match[1] is None, match.start(), match.end()))
    return found


def _is_capital(word: str) -> bool:
    return word[0].isupper() and word[1:].islower()


def _name_marks(source: str, words: list[_Word]) -> Iterator[Mark]:
    """The whole name, and the first of several words if that is a name by itself: `Ann` of `Ann Smith`, but not
    `billing` of `billing service`."""
    if 0 < len(words) <= LONGEST_NAME:
        name = words[0].text
        for before, after in pairwise(words):
            name = _joined(name, before, after)
        yield (source, "whole", name)
        yield ("named", name)
        if len(words) > 1 and not is_stop_word(words[0].text) and all(w.is_capital or w.is_unspaced for w in words):
            yield (source, "first", words[0].text)
            yield ("named", words[0].text)


def _joined(name: str, before: _Word, after: _Word) -> str:
    """A name that ends in one word and the next; with a space between, except in scripts without spaces."""
    return f"{name}{after.text}" if before.is_unspaced and after.is_unspaced else f"{name} {after.text}"


def _candidates(words: list[_Word]) -> Iterator[tuple[str, int, int]]:
    """Everything in a task that may be a name, with where it stands: one to five words in a row; in scripts without
    spaces any short run.

    A name that is also a stop word (Will, May) must have its capital, and not because it begins the task.
    """
    for at, word in enumerate(words):
        name, before = word.text, word
        if not is_stop_word(name) or (word.is_capital and at > 0):
            yield name, word.start, word.end
        for last in words[at + 1 : at + LONGEST_NAME]:
            name, before = _joined(name, before, last), last
            yield name, word.start, last.end
        if word.is_unspaced and len(word.text) == word.end - word.start:
            for start in range(len(word.text)):
                for end in range(start + 2, min(start + LONGEST_RUN, len(word.text)) + 1):
                    yield word.text[start:end], word.start + start, word.start + end
