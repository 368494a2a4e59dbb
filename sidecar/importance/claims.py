"""Whether two memories say another value of the same attribute of the same subject. Pure, and careful: to take worth
from a true memory is worse than to leave a false one its own.

Two texts disagree if all of their words are the same in the same order but for one short stretch that is not the first,
and what stands there can be only one of two: yes against no, or what comes after a word that says what something is.
Things that happened do not exclude each other, nor do two things that differ in what they are about.
The caller may say subject, attribute and value in the metadata, which is exact.
"""

from __future__ import annotations

from collections.abc import Callable

from sidecar.domain import Memory
from sidecar.importance.reading import QUESTION_MARKS
from sidecar.retrieval.patterns import late
from sidecar.retrieval.stated import plain_words, stated
from sidecar.retrieval.tokenizer import UNSPACED, WORD, fold, normalize

PiecesOf = Callable[[str], list[str]]

LONGEST_CLAIM = 60
"""Words, or characters in scripts without spaces, of a text that may be a claim."""
LONGEST_VALUE = 5
"""Words of what may stand in the place of something else, and characters in scripts without spaces."""
READ_FOR_FIRST, SHORTEST_FIRST = 64, 16
"""Characters that are read for the first word, and that are compared of it."""
LEAST_SHARED = 0.5
"""Share of the words of the shorter text that stand in both."""
FEWEST_SHARED = 2
HAPPENED = frozenset(("episodic", "attempt", "debugging", "failure", "working"))
"""Kinds of memories of which two may both be true, whatever they say."""

_PIECES = late(rf"(?:{WORD})(?:[.:/@-](?:{WORD}))*|{UNSPACED}|[=:]")
_UNSPACED = late(UNSPACED)
# What something is: after one of these only one thing can stand.
_STATES = frozenset(
    """is are was were = uses use using named called prefers prefer costs equals becomes defaults
    ist sind war heißt bevorzugt est sont était s'appelle préfère es son era prefiere é são prefere è sono preferisce
    usa utilise nutzt verwendet это предпочитает использует هو هي يفضل يستخدم""".split()
)
# Where something is; only after a word that says that it is, lives or stays there.
_PLACES = frozenset("in at on to an auf à en a em в на في".split())
_STAYS = _STATES | frozenset(
    """lives live works work runs run stored located listens due stays belongs reports vive mora trabaja trabalha habite
    travaille wohnt arbeitet lavora живёт живет работает يعيش يعمل""".split()
)
_STATES_UNSPACED = ("是", "为", "為", "叫", "在", "は", "が", "은", "는", "이", "가", "คือ", "เป็น", "ที่", "เท่ากับ")
_NEGATIONS = frozenset(
    """not no never n't don't doesn't isn't aren't wasn't won't can't cannot without nicht kein keine nie ne pas jamais
    sans no nunca sin não sem non mai не нет никогда без لا ليس لم لن غير 不 没 沒 未 无 無 ない 않 안 못""".split()
)


def read_pieces(text: str) -> list[str]:
    """Words in their order; characters in scripts without spaces, but numbers whole."""
    pieces: list[str] = []
    for match in _PIECES.findall(fold(normalize(text[: 20 * LONGEST_CLAIM]))):
        if not match.isascii() and _UNSPACED.fullmatch(match):
            pieces.extend(match)
        else:
            pieces.append("=" if match in "=:" else match)
    return pieces


def disagree(one: Memory, other: Memory, pieces_of: PiecesOf = read_pieces) -> bool:
    """True if both cannot be true: the same subject and attribute, another value. Symmetric.

    `pieces_of` cuts a text as `read_pieces` does, if the caller keeps what it gives.
    """
    if HAPPENED & {one.kind, other.kind}:
        return False
    if one.subject and other.subject and plain_words(one.subject) != plain_words(other.subject):
        return False
    said = stated(one), stated(other)
    if said[0] is not None and said[1] is not None:
        return said[0][:2] == said[1][:2] and said[0][2] != said[1][2]
    # What differs may not be the first word: that alone spares reading most pairs.
    if _first_piece(one.content) != _first_piece(other.content):
        return False
    if _asks(one.content) or _asks(other.content):
        return False
    return _texts_disagree(pieces_of(one.content), pieces_of(other.content))


def says_of_the_same(one: Memory, other: Memory) -> bool:
    """True if both state the same attribute of the same subject outright."""
    said = stated(one), stated(other)
    return said[0] is not None and said[1] is not None and said[0][:2] == said[1][:2]


def _asks(text: str) -> bool:
    return text.rstrip().endswith(QUESTION_MARKS)


def _texts_disagree(a: list[str], b: list[str]) -> bool:
    if not a or not b or a == b or max(len(a), len(b)) > LONGEST_CLAIM:
        return False
    start = 0
    while start < min(len(a), len(b)) and a[start] == b[start]:
        start += 1
    end = 0
    while end < min(len(a), len(b)) - start and a[-1 - end] == b[-1 - end]:
        end += 1
    mine, theirs = a[start : len(a) - end], b[start : len(b) - end]
    shared = start + end
    if start == 0 or shared < FEWEST_SHARED or shared < LEAST_SHARED * min(len(a), len(b)):
        return False
    if max(len(mine), len(theirs)) > LONGEST_VALUE:
        return False
    if not mine or not theirs:
        # One says a word more: it disagrees only if that word denies.
        return bool(set(mine + theirs)) and set(mine + theirs) <= _NEGATIONS
    if bool(_NEGATIONS & set(mine)) != bool(_NEGATIONS & set(theirs)):
        return True
    before = a[:start]
    return (
        before[-1] in _STATES
        or (before[-1] in _PLACES and bool(_STAYS & set(before)))
        or "".join(before).endswith(_STATES_UNSPACED)
    )


def _first_piece(text: str) -> str | None:
    match = _PIECES.search(fold(normalize(text[:READ_FOR_FIRST])))
    if match is None:
        return None
    return match[0][0] if _UNSPACED.fullmatch(match[0]) else match[0][:SHORTEST_FIRST]
