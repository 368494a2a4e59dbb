"""thread: how well the memory's neighbours in its source thread match the task."""

import numpy as np

from sidecar.domain import Floats
from sidecar.features import lexical, semantic
from sidecar.features.view import Feature, View


def value(view: View) -> Floats:
    """Mean of the two neighbours' match, a match being the mean of lexical and semantic; a missing neighbour is 0."""
    match = (view.value(lexical.FEATURE) + view.value(semantic.FEATURE)) / 2
    padded = np.append(match, 0.0)  # row -1, "no neighbour", reads the 0 at the end
    neighbours: Floats = (padded[view.columns.previous_row] + padded[view.columns.next_row]) / 2
    return neighbours


FEATURE = Feature(
    name="thread",
    source="how well the neighbours from the same source thread match the task",
    values={"default": value},
    needs_task=True,
)
