"""Finds which memories an agent's output rests on, by their clues, and which it merely repeats. Pure.

A clue says nothing where the agent knew it anyway: if it stands in the task, or in another memory of the packet; nor if
many memories of the namespace bear it. Passages that repeat a memory word for word are read by nobody as use: they are
taken out before clues are looked for, and a memory that is found only in them is an echo.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from sidecar.feedback import echo
from sidecar.feedback.clues import ALONE, Clue, compact, find_clues, number_value, pairs, squeezed, times
from sidecar.retrieval.handles import find_handles
from sidecar.retrieval.patterns import late
from sidecar.retrieval.tokenizer import fold, tokenize

PRIOR = (8.0, 2.0)
"""Beta prior of how often one strong clue means use, before packets with both channels say better."""
STEP = 0.5
"""Log-odds that a whole strength more or less than 1 is worth."""
MOST_STRENGTH = 4.0
MOST_SENTENCES = 64
"""Sentences of an output that are looked at for a word beside a weak clue."""
COMMON_SHARE = 0.01
COMMON_COUNT = 2
"""A clue is too common if more memories of a namespace bear it than COMMON_COUNT, and than this share of all."""

_BEYOND_LATIN = 0x250
_FIGURE = late(r"(?<![\w.,])\d+(?:[.,]\d+)*(?!\w|[.,]\d)")
_WORD = late(r"[^\W_]+")
_SENTENCE = late(r"[^.!?\n。！？]+(?:[.](?=\S)[^.!?\n。！？]*)*")


@dataclass(frozen=True, slots=True)
class Match:
    """A clue of a memory that was found in the output."""

    memory_id: str
    kind: str
    handle: str
    strength: float


@dataclass(frozen=True, slots=True)
class Findings:
    """What an output says of a packet's memories.

    `confidence` is by used memory; `judged` are all memories that have a clue which could have been found: that none of
    theirs was, says something. Of the others nothing is known.
    """

    matches: tuple[Match, ...] = ()
    confidence: Mapping[str, float] = field(default_factory=dict)
    echoed: tuple[str, ...] = ()
    judged: tuple[str, ...] = ()


def find_uses(
    task: str,
    memories: Mapping[str, str],
    output: str,
    tool_calls: Iterable[tuple[str, str]] = (),
    *,
    bearing: Callable[[Clue], int] = lambda _: 1,
    live: int = 0,
    precision: tuple[float, float] = PRIOR,
) -> Findings:
    """Looks the clues of the shown `memories` (content by id) up in the output and the tool calls (name, arguments).

    `task` is all that the agent knew without the packet. `bearing(clue)` says how many of the namespace's `live`
    memories bear a clue. `precision` is the Beta posterior of an inferred use.
    """
    said = "\n".join([output, *(f"{name}\n{plain_arguments(arguments)}" for name, arguments in tool_calls)])
    kept, repeated = echo.without_repetition(said, memories)
    known, spoken = Text(task), Text(kept)
    texts = {memory_id: Text(content) for memory_id, content in memories.items()}
    matches: list[Match] = []
    confidence: dict[str, float] = {}
    judged: list[str] = []
    for memory_id, content in memories.items():
        others = [text for other, text in texts.items() if other != memory_id]
        clues = [
            clue for clue in find_clues(content) if not known.bears(clue) and not any(t.bears(clue) for t in others)
        ]
        rare = [(clue, rarity) for clue in clues if (rarity := _rarity(bearing(clue), live)) > 0]
        if rare:
            judged.append(memory_id)
        found = _distinct([(clue, rarity) for clue, rarity in rare if spoken.bears(clue)])
        terms = {token.term for token in tokenize(content) if not token.is_stop_word}
        if not any(clue.strength >= ALONE or spoken.shares_around(clue, terms) for clue, _ in found):
            continue
        confidence[memory_id] = confidence_of(sum(clue.strength * rarity for clue, rarity in found), precision)
        matches += [Match(memory_id, clue.kind, clue.shown, clue.strength * rarity) for clue, rarity in found]
    echoed = tuple(memory_id for memory_id in memories if memory_id in repeated and memory_id not in confidence)
    # Of what was merely read aloud one cannot tell whether it was also used.
    silent = tuple(memory_id for memory_id in judged if memory_id not in echoed)
    return Findings(tuple(matches), confidence, echoed, silent)


def confidence_of(strength: float, precision: tuple[float, float] = PRIOR) -> float:
    """How sure a use is: the posterior's mean for one strong and rare clue, more for more, less for a weak one."""
    mean = precision[0] / (precision[0] + precision[1])
    odds = math.log(mean / (1 - mean)) + STEP * (min(strength, MOST_STRENGTH) - 1)
    return 1 / (1 + math.exp(-odds))


def plain_arguments(arguments: str) -> str:
    """A tool's arguments as text: of JSON all names and values, without its quoting."""
    try:
        found = json.loads(arguments)
    except (ValueError, RecursionError):
        return arguments
    lines: list[str] = []
    stack: list[object] = [found]
    while stack:
        each = stack.pop()
        if isinstance(each, Mapping):
            for name, value in reversed(list(each.items())):
                stack += [value, name]
        elif isinstance(each, list):
            stack += reversed(each)
        else:
            lines.append(str(each))
    return "\n".join(lines)


class Text:
    """A text in which clues are looked up."""

    def __init__(self, text: str) -> None:
        self._plain = squeezed(text)
        self._folded = fold(self._plain).replace("\\", "/")
        self._compact: str | None = None
        handles = find_handles(text)
        self._dates = [handle.value for handle in handles if handle.kind == "date"]
        self._numbers = {number_value(each) for each in _FIGURE.findall(self._plain)}
        self._numbers |= {handle.value for handle in handles if handle.kind == "number"}
        self._pairs = {f"{number} {word}" for number, word in pairs(self._plain)}
        self._times = {value for _, value in times(self._plain)}

    def bears(self, clue: Clue) -> bool:
        """True if the clue stands in the text, in whatever spelling."""
        match clue.form:
            case "text":
                return _stands_in(clue.value, self._folded)
            case "date":
                return any(_same_day(clue.value, other) for other in self._dates)
            case "number":
                return clue.value in self._numbers
            case "pair":
                return clue.value in self._pairs
            case "time":
                return clue.value in self._times
            case _:
                if self._compact is None:
                    self._compact = compact(self._plain)
                return clue.value in self._compact

    def shares_around(self, clue: Clue, terms: set[str]) -> bool:
        """True if a sentence with the clue shares another of these terms."""
        own = {token.term for token in tokenize(clue.shown)}
        looked = 0
        for sentence in _SENTENCE.findall(self._plain):
            # Cheap signs first: an output may have very many sentences.
            if not any(part in sentence for part in _WORD.findall(clue.shown)):
                continue
            looked += 1
            around = {token.term for token in tokenize(sentence)} & terms - own
            if clue.form == "pair":  # the neighbour is part of the clue
                around = {term for term in around if not term.startswith(clue.value.split()[1])}
            if any(not term.isdigit() for term in around) and Text(sentence).bears(clue):
                return True
            if looked == MOST_SENTENCES:
                return False
        return False


def _stands_in(value: str, text: str) -> bool:
    """True if `value` stands in `text` as a whole: no letter or digit of its own kind goes on at its ends."""
    at = text.find(value)
    while at >= 0:
        end = at + len(value)
        before, after = text[at - 1 : at], text[end : end + 1]
        further = text[end : end + 2]
        # 5.7.9 is not in 5.7.91, nor in 15.7.9; and 4.82 is not in 4.82.1.
        goes_on = value[-1].isdigit() and re.match(r"[.,]\d", further) is not None
        if not (_joins(before, value[0]) or _joins(value[-1], after) or goes_on):
            return True
        at = text.find(value, at + 1)
    return False


def _joins(left: str, right: str) -> bool:
    """True if two characters belong to one word: both of Latin script and digits, or neither. So a Latin name is whole
    in a Japanese, Korean or Hebrew sentence, where what follows it is another word or a particle."""
    if not left or not right or echo.is_unspaced(left) or echo.is_unspaced(right):
        return False
    if not all(each == "_" or each.isalnum() for each in (left, right)):
        return False
    return (ord(left) < _BEYOND_LATIN) == (ord(right) < _BEYOND_LATIN)


def _same_day(one: str, other: str) -> bool:
    """Equal, or equal but for a year that one of them leaves out."""
    return one == other or (one[-6:] == other[-6:] and "-" in (one[0], other[0]))


def _rarity(bearing: int, live: int) -> float:
    """1 for a clue that one memory bears, less for more, 0 for one that is too common to mean anything."""
    bearing = max(bearing, 1)
    if bearing > max(COMMON_COUNT, COMMON_SHARE * live):
        return 0.0
    return 1.0 if live <= 1 or bearing == 1 else 1.0 - math.log(bearing) / math.log(max(live, bearing + 1))


def _distinct(found: Sequence[tuple[Clue, float]]) -> list[tuple[Clue, float]]:
    """Without clues that are parts of others: a path and its file's name are one clue."""
    strongest = sorted(found, key=lambda each: (-each[0].strength * each[1], -len(each[0].value), each[0].value))
    kept: list[tuple[Clue, float]] = []
    for clue, rarity in strongest:
        value = fold(clue.shown)
        if not any(value in fold(other.shown) or fold(other.shown) in value for other, _ in kept):
            kept.append((clue, rarity))
    return kept
