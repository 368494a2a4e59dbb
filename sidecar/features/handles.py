"""handles: concrete handles that task and memory share: paths, tickets, symbols, dates."""

import numpy as np

from sidecar.domain import Floats
from sidecar.features.view import Feature, View


def value(view: View) -> Floats:
    """Share of the task's handles that the memory bears, rare ones weighing more. 0 for a task without any."""
    attainable = sum(handle.idf for handle in view.text.handles)
    if not attainable:
        return view.nothing
    total = np.zeros(len(view.columns))
    for handle in view.text.handles:
        total[handle.rows] += handle.idf
    return total / attainable


FEATURE = Feature(
    name="handles",
    source="paths, tickets, symbols and dates that task and memory share",
    values={"default": value},
    needs_task=True,
)
