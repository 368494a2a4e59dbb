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


class Passages(NamedTuple):
    """The k places of a passage, around each of n memories; none in a namespace without threads.

    `of` tells which row stands there for each row, `factor` how far it counts, 0 where none does. `to` tells, the other
    way round, for which row each row stands there, n for none, and `lends` how far it counts there. All four have shape
    (k, n). `weight` is how far all places of a memory's passage count together, shape (n,).
    """

    of: Rows
    factor: Floats
    to: Rows
    lends: Floats
    weight: Floats


def value(view: View) -> Floats:
    """Half the passage's share of the task's words, half its nearness in meaning. Shape (n,)."""
    around = view.kept.once("passages", lambda: _passages(view))
    wording, meaning = _wording(view, around), _meaning(view, around)
    if wording is view.nothing and meaning is view.nothing:
        return view.nothing
    both = wording + meaning
    both *= 0.5
    return both


def _passages(view: View) -> Passages:
    columns, n = view.columns, len(view.columns)
    weight = np.ones(n)
    if not (columns.previous_row >= 0).any():
        none = np.empty((0, n))
        return Passages(none.astype(np.intp), none, none.astype(np.intp), none, weight)
    of = np.full((4, n + 1), n, np.intp)  # the last column is of none
    for place, links in enumerate((columns.previous_row, columns.next_row)):
        np.copyto(of[place, :n], links, where=links >= 0)
        of[place].take(of[place], out=of[place + 2], mode="clip")
    counts = np.empty((4, n + 1))
    counts[:2], counts[2:], counts[:, n] = NEXT_TO, TWO_AWAY, 0.0
    counts[0, :n][np.append(columns.asks, False).take(of[0, :n])] = ANSWERED
    counts[:, :n] *= SELF_CONTAINED / np.maximum(view.text.lengths, SELF_CONTAINED)
    of, to = of[:, :n], of[[1, 0, 3, 2], :n]
    factor = np.where(of < n, counts[:, :n], 0.0)
    for held in factor:
        weight += held
    lends = np.empty((4, n))
    for place, there in enumerate(to):
        counts[place].take(there, out=lends[place], mode="clip")
    return Passages(of, factor, to, lends, weight)


def _wording(view: View, around: Passages) -> Floats:
    """Over the task's terms, the share of rarity that the passage bears: each term at its best place."""
    terms = lexical.telling(view.text)
    attainable = lexical.attainable_of(terms)
    if not attainable:
        return view.nothing
    n, common = len(view.columns), lexical.fewest_of_common(view)
    rare = iter(_at_best(view, [term for term in terms if len(term.rows) <= common], around))
    total = np.zeros(n)
    for term in terms:
        if len(term.rows) > common:
            total += view.kept.of_term("thread", term.term, partial(_alone, view, term, around))
        else:
            total += next(rare)
    total /= attainable
    return total


def _at_best(view: View, terms: Sequence[TermMatch], around: Passages) -> Floats:
    """idf times how much of each term the passage of each row has, at the best place. Shape (len(terms), n)."""
    n = len(view.columns)
    best = np.zeros((len(terms), n + 1))
    if not terms:
        return best
    rows = np.concatenate([term.rows for term in terms]).astype(np.intp)
    counts = np.concatenate([term.counts for term in terms]).astype(np.float64)
    own = counts / (counts + lexical.length_norm(view, K1).take(rows))
    first = np.arange(0, best.size, n + 1).repeat([len(term.rows) for term in terms])
    flat = best.reshape(-1)
    flat[first + rows] = own
    for there, share in zip(around.to.take(rows, axis=1), around.lends.take(rows, axis=1), strict=True):
        there += first
        share *= own
        flat[there] = np.maximum(flat.take(there), share)
    best *= np.array([[term.idf] for term in terms])
    return best[:, :n]


def _alone(view: View, term: TermMatch, around: Passages) -> Floats:
    """The same for one term. Shape (n,)."""
    alone: Floats = _at_best(view, [term], around)[0]
    return alone


def _meaning(view: View, around: Passages) -> Floats:
    """Mean nearness in meaning over the passage, each place by how far it counts."""
    own = view.value(semantic.FEATURE)
    if not len(around.of):
        return own
    total = own.copy()
    for of, factor in zip(around.of, around.factor, strict=True):
        there = own.take(of, mode="clip")  # of none, whatever comes counts for nothing
        there *= factor
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
