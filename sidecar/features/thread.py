"""thread: how well the memory matches when it is read together with its neighbours in its source thread.

What a turn of a conversation is about often stands in the turn before: a question and its answer, a "yes, on Friday".
So the memory and up to two neighbours on either side are read as one passage, in which the memory's own words count
whole and a neighbour's the less, the farther it stands and the more the memory says by itself. A memory without
neighbours is a passage of its own.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import NamedTuple

import numpy as np

from sidecar.domain import Floats
from sidecar.features import lexical, semantic
from sidecar.features.view import Feature, Rows, TermMatch, View

ANSWERED = 1.0
"""How far the previous memory counts if it asks."""
NEXT_TO = 0.7
TWO_AWAY = 0.4
SELF_CONTAINED = 30.0
"""A memory of so many terms, and any longer one, borrows less: by SELF_CONTAINED / length."""
K1 = 0.6
"""As in lexical, with words saturating sooner: what counts is that the passage has them."""


class Neighbour(NamedTuple):
    """One place in the passage. The sentinel row n stands for none.

    `of` tells which row stands there for each row, `factor` how far it counts, 0 where none does: both shape (n,).
    `stands_for` tells, the other way round, for which row each row stands there, `lends` how far it counts for row r:
    both shape (n + 1,).
    """

    of: Rows
    factor: Floats
    stands_for: Rows
    lends: Floats


class Passages(NamedTuple):
    """The four places around every memory, none for a namespace without threads, and how far all places of a memory's
    passage count together, shape (n,)."""

    places: list[Neighbour]
    weight: Floats


def value(view: View) -> Floats:
    """Half the passage's share of the task's words, half its nearness in meaning. Shape (n,)."""
    around = view.kept.once("passages", lambda: _passages(view))
    wording, meaning = _wording(view, around.places), _meaning(view, around)
    if wording is view.nothing and meaning is view.nothing:
        return view.nothing
    both = wording + meaning
    both *= 0.5
    return both


def _passages(view: View) -> Passages:
    columns = view.columns
    n = len(columns)
    weight = np.ones(n)
    if not (columns.previous_row >= 0).any():
        return Passages([], weight)
    before = np.append(np.where(columns.previous_row < 0, n, columns.previous_row), n).astype(np.intp)
    after = np.append(np.where(columns.next_row < 0, n, columns.next_row), n).astype(np.intp)
    two_before, two_after = before[before], after[after]
    borrowed = SELF_CONTAINED / np.maximum(view.text.lengths, SELF_CONTAINED)
    asks = np.append(columns.asks, False)
    places = []
    for of, factor, back in (
        (before, np.where(asks[before[:n]], ANSWERED, NEXT_TO), after),
        (after, NEXT_TO, before),
        (two_before, TWO_AWAY, two_after),
        (two_after, TWO_AWAY, two_before),
    ):
        lends = np.append(borrowed * factor, 0.0)
        held = np.where(of[:n] < n, lends[:n], 0.0)
        weight += held
        places.append(Neighbour(of[:n], held, back, lends))
    return Passages(places, weight)


def _wording(view: View, around: list[Neighbour]) -> Floats:
    """Over the task's terms, the share of rarity that the passage bears: each term at its best place."""
    terms = lexical.telling(view.text)
    attainable = lexical.attainable_of(terms)
    if not attainable:
        return view.nothing
    n = len(view.columns)
    rare = iter(_at_best(view, [term for term in terms if not lexical.is_common(term, n)], around))
    total = np.zeros(n)
    for term in terms:
        if lexical.is_common(term, n):
            total += view.kept.of_term("thread", term.term, partial(_alone, view, term, around))
        else:
            best = next(rare)
            best *= term.idf
            total += best
    total /= attainable
    return total


def _at_best(view: View, terms: Sequence[TermMatch], around: list[Neighbour]) -> Floats:
    """How much of each term the passage of each row has, at the best place. Shape (len(terms), n)."""
    n = len(view.columns)
    best = np.zeros((len(terms), n + 1))
    if not terms:
        return best
    rows = np.concatenate([term.rows for term in terms]).astype(np.intp)
    counts = np.concatenate([term.counts for term in terms]).astype(np.float64)
    flat = best.reshape(-1)
    first = np.repeat(np.arange(len(terms)) * (n + 1), [len(term.rows) for term in terms])
    own = counts / (counts + lexical.length_norm(view, K1)[rows])
    flat[first + rows] = own
    for place in around:
        there = place.stands_for[rows]
        at = first + there
        flat[at] = np.maximum(flat[at], own * place.lends[there])
    return best[:, :n]


def _alone(view: View, term: TermMatch, around: list[Neighbour]) -> Floats:
    """idf times the same for one term. Shape (n,)."""
    alone: Floats = term.idf * _at_best(view, [term], around)[0]
    return alone


def _meaning(view: View, around: Passages) -> Floats:
    """Mean nearness in meaning over the passage, each place by how far it counts."""
    own = view.value(semantic.FEATURE)
    if not around.places:
        return own
    total = own.copy()
    padded = np.append(own, 0.0)
    for place in around.places:
        there = padded.take(place.of)
        there *= place.factor
        total += there
    total /= around.weight
    return total


FEATURE = Feature(
    name="thread",
    source="the memory read as one passage with its neighbours from the same source thread: words and meaning",
    values={"default": value},
    needs_task=True,
    version=2,
)
