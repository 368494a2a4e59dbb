"""lexical: how much of the task's wording the memory bears, rare words first and long memories discounted.

BM25 (Robertson & Zaragoza 2009) with the free parameters that did best on conversations, divided by what the task
could attain at most: a bound of the task alone, so that no other memory's score moves a value.
"""

from collections.abc import Sequence

import numpy as np

from sidecar.domain import Floats
from sidecar.features.view import Feature, TermMatch, TextMatches, View

K1 = 0.9
B = 0.4


def value(view: View) -> Floats:
    """sum over terms of idf * tf / (tf + K1 * (1 - B + B * length / mean)), over sum of idf. Shape (n,)."""
    text = view.text
    total = np.zeros(len(view.columns))
    terms = telling(text)
    attainable = sum(term.idf for term in terms)
    if not attainable:
        return total
    norm = length_norm(text, K1)
    for term in terms:
        counts = term.counts.astype(np.float64)
        total[term.rows] += term.idf * counts / (counts + norm[term.rows])
    return total / attainable


def telling(text: TextMatches) -> Sequence[TermMatch]:
    """The task's terms without stop words; all of them where it has nothing else."""
    return [term for term in text.terms if not term.is_stop_word] or text.terms


def length_norm(text: TextMatches, k1: float) -> Floats:
    """What BM25 adds to a term's count: k1 at the mean length, more for a longer memory. Shape (n,)."""
    return k1 * (1.0 - B + B * text.lengths / max(text.mean_length, 1.0))


def share_of_all_words(view: View) -> Floats:
    """Share of the task's words, of three characters or more, that the memory bears; every word in the denominator.

    The smartctx note's overlap, on tokens instead of substrings: `log` does not match `dialog`.
    """
    text = view.text
    n = len(view.columns)
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


FEATURE = Feature(
    name="lexical",
    source="overlap of tokens with the task, by inverse document frequency and length, over the attainable maximum",
    values={"default": value, "smartctx": share_of_all_words},
    needs_task=True,
)
