"""semantic: how near the memory's meaning is to the task's, by the embedder's cosine."""

import numpy as np

from sidecar.domain import Floats
from sidecar.features.view import Feature, View


def value(view: View) -> Floats:
    """max(cosine, 0): an opposite vector is as far off as an unrelated one."""
    return np.maximum(view.text.cosine, 0.0)


FEATURE = Feature(
    name="semantic",
    source="cosine between the vectors of memory and task, negatives as 0",
    values={"default": value},
    needs_task=True,
)
