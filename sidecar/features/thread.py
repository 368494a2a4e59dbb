"""thread: how well the memory matches when it is read together with its neighbours in its source thread.

What a turn of a conversation is about often stands in the turn before: a question and its answer, a "yes, on Friday".
So the memory and up to two neighbours on either side are read as one passage, in which the memory's own words count
whole and a neighbour's the less, the farther it stands and the more the memory says by itself. A memory without
neighbours is a passage of its own.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from sidecar.domain import Floats
from sidecar.features import lexical, semantic
from sidecar.features.view import Feature, View

ANSWERED = 1.0
"""How far the previous memory counts if it asks."""
NEXT_TO = 0.7
TWO_AWAY = 0.4
SELF_CONTAINED = 30.0
"""A memory of so many terms, and any longer one, borrows less: by SELF_CONTAINED / length."""
K1 = 0.6
"""As in lexical, with words saturating sooner: what counts is that the passage has them."""


class Neighbour(NamedTuple):
    """One place in the passage: which row stands there for each row (n where none does), how far it counts, and, the
    other way round, for which row each row stands there."""

    of: NDArray[np.intp]
    factor: Floats
    stands_for: NDArray[np.intp]


def value(view: View) -> Floats:
    """Half the passage's share of the task's words, half its nearness in meaning. Shape (n,)."""
    around = neighbours(view)
    return (_wording(view, around) + _meaning(view, around)) / 2.0


def neighbours(view: View) -> list[Neighbour]:
    """The four places around every memory; none for a namespace without threads."""
    columns = view.columns
    n = len(columns)
    if not (columns.previous_row >= 0).any():
        return []
    before = np.append(np.where(columns.previous_row < 0, n, columns.previous_row), n).astype(np.intp)
    after = np.append(np.where(columns.next_row < 0, n, columns.next_row), n).astype(np.intp)
    two_before, two_after = before[before], after[after]
    borrowed = SELF_CONTAINED / np.maximum(view.text.lengths, SELF_CONTAINED)
    asks = np.append(columns.asks, False)
    places = (
        (before, np.where(asks[before[:n]], ANSWERED, NEXT_TO), after),
        (after, NEXT_TO, before),
        (two_before, TWO_AWAY, two_after),
        (two_after, TWO_AWAY, two_before),
    )
    return [Neighbour(of[:n], np.append(borrowed * factor, 0.0), back) for of, factor, back in places]


def _wording(view: View, around: list[Neighbour]) -> Floats:
    """Over the task's terms, the share of rarity that the passage bears: each term at its best place."""
    text = view.text
    n = len(view.columns)
    total = np.zeros(n)
    terms = lexical.telling(text)
    attainable = sum(term.idf for term in terms)
    if not attainable:
        return total
    norm = lexical.length_norm(text, K1)
    best = np.zeros(n + 1)
    for term in terms:
        rows = term.rows
        counts = term.counts.astype(np.float64)
        own = counts / (counts + norm[rows])
        best[rows] = own
        for place in around:
            rows_there = place.stands_for[rows]
            best[rows_there] = np.maximum(best[rows_there], own * place.factor[rows_there])
        total += term.idf * best[:n]
        best[:] = 0.0
    return total / attainable


def _meaning(view: View, around: list[Neighbour]) -> Floats:
    """Mean nearness in meaning over the passage, each place by how far it counts."""
    own = view.value(semantic.FEATURE)
    n = len(own)
    total, weight = own.copy(), np.ones(n)
    padded = np.append(own, 0.0)
    for place in around:
        factor = np.where(place.of < n, place.factor[:n], 0.0)
        total += factor * padded[place.of]
        weight += factor
    return total / weight


FEATURE = Feature(
    name="thread",
    source="the memory read as one passage with its neighbours from the same source thread: words and meaning",
    values={"default": value},
    needs_task=True,
    version=2,
)
