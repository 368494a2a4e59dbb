"""context: match with the current goals, projects and files."""

import numpy as np

from sidecar.domain import Floats
from sidecar.features.view import Feature, View


def value(view: View) -> Floats:
    """Share of the context's terms that the memory bears, by inverse document frequency. 0 without a context."""
    terms = [term for term in view.text.context_terms if not term.is_stop_word]
    attainable = sum(term.idf for term in terms)
    if not attainable:
        return view.nothing
    total = np.zeros(len(view.columns))
    for term in terms:
        total[term.rows] += term.idf
    return total / attainable


FEATURE = Feature(
    name="context",
    source="words and handles of the current goals, projects and files that it bears",
    values={"default": value},
    needs_task=True,
)
