"""lexical: how much of the task's wording the memory bears, rare words first and long memories discounted.

BM25 (Robertson & Zaragoza 2009) with the free parameters that did best on conversations, divided by what the task
could attain at most: a bound of the task alone, so that no other memory's score moves a value.
"""

import math
from collections.abc import Sequence
from functools import partial

import numpy as np
from numpy.typing import NDArray

from sidecar.domain import Floats
from sidecar.features.view import Feature, Rows, TermMatch, TextMatches, View

K1 = 0.9
B = 0.4
COMMON = 16
"""A term that more than one in so many memories bear is common: what it gives each of them is kept."""


def value(view: View) -> Floats:
    """sum over terms of idf * tf / (tf + K1 * (1 - B + B * length / mean)), over sum of idf. Shape (n,)."""
    terms = telling(view.text)
    attainable = attainable_of(terms)
    if not attainable:
        return view.nothing
    n = len(view.columns)
    total, common = np.zeros(n), fewest_of_common(view)
    for term in terms:
        if len(term.rows) > common:
            total += view.kept.of_term("lexical", term.term, partial(_everywhere, view, term))
        else:
            total[term.rows] += term.idf * _saturated(view, term)
    total /= attainable
    return total


def _saturated(view: View, term: TermMatch) -> Floats:
    """tf / (tf + norm) of the rows that bear the term."""
    counts = term.counts.astype(np.float64)
    share: Floats = counts / (counts + length_norm(view, K1)[term.rows])
    return share


def _everywhere(view: View, term: TermMatch) -> Floats:
    """idf times the same for every row, 0 where it does not stand."""
    share = np.zeros(len(view.columns))
    share[term.rows] = term.idf * _saturated(view, term)
    return share


def fewest_of_common(view: View) -> float:
    """A term of more rows is common: so many memories bear it that it is worth keeping what it gives them."""
    return len(view.columns) / COMMON if view.kept.keeps_terms else math.inf


def attainable_of(terms: Sequence[TermMatch]) -> float:
    """What a memory has that bears all of the terms."""
    return sum([term.idf for term in terms])


def telling(text: TextMatches) -> Sequence[TermMatch]:
    """The task's terms without stop words; all of them where it has nothing else."""
    return [term for term in text.terms if not term.is_stop_word] or text.terms


def length_norm(view: View, k1: float) -> Floats:
    """What BM25 adds to a term's count: k1 at the mean length, more for a longer memory. Shape (n,)."""
    text = view.text
    return view.kept.once(("norm", k1), lambda: k1 * (1.0 - B + B * text.lengths / max(text.mean_length, 1.0)))


def share_of_all_words(view: View) -> Floats:
    """Share of the task's words, of three characters or more, that the memory bears; every word in the denominator.

    The smartctx note's overlap, on tokens instead of substrings: `log` does not match `dialog`.
    """
    text = view.text
    n = len(view.columns)
    if not text.words:
        return view.nothing
    found = np.zeros(n)
    for word in text.words:
        if word.length < 3 or not word.terms:
            continue
        bears_all = np.ones(n, dtype=bool)
        for index in word.terms:
            bears = np.zeros(n, dtype=bool)
            bears[text.terms[index].rows] = True
            bears_all &= bears
        found += bears_all
    return found / max(len(text.words), 1)


def value_at(view: View, rows: Rows) -> Floats:
    """`value` of some rows. Shape (len(rows),)."""
    terms = telling(view.text)
    total = np.zeros(len(rows))
    attainable = attainable_of(terms)
    if not attainable:
        return total
    norm = length_norm(view, K1)[rows]
    rows = rows.astype(np.int32)
    for term in terms:
        counts = np.zeros(len(rows))
        bears, at = _bearing(term, rows)
        counts[bears] = term.counts[at[bears]]
        total += term.idf * (counts / (counts + norm))
    total /= attainable
    return np.minimum(total, 1.0)


def share_of_all_words_at(view: View, rows: Rows) -> Floats:
    """`share_of_all_words` of some rows. Shape (len(rows),)."""
    text = view.text
    found = np.zeros(len(rows))
    rows = rows.astype(np.int32)  # what terms have: else their rows are converted, each time
    bears = [_bearing(term, rows)[0] for term in text.terms]
    for word in text.words:
        if word.length < 3 or not word.terms:
            continue
        bears_all = bears[word.terms[0]]
        for index in word.terms[1:]:
            bears_all = bears_all & bears[index]
        found += bears_all
    return found / max(len(text.words), 1)


def _bearing(term: TermMatch, rows: Rows) -> tuple[NDArray[np.bool_], Rows]:
    """Which of the rows bear the term, and where in its own rows: both of shape (len(rows),)."""
    at = term.rows.searchsorted(rows)
    if not term.rows.size:
        return at > 0, at
    return term.rows.take(at, mode="clip") == rows, at


FEATURE = Feature(
    name="lexical",
    source="overlap of tokens with the task, by inverse document frequency and length, over the attainable maximum",
    values={"default": value, "smartctx": share_of_all_words},
    values_at={"default": value_at, "smartctx": share_of_all_words_at},
    needs_task=True,
)
