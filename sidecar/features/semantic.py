"""semantic: how near the memory's meaning is to the task's, by the embedder's cosine."""

import math

import numpy as np

from sidecar.domain import Floats
from sidecar.features.view import Feature, View

# What tells an opposite vector from an unrelated one: enough to order them, too little to weigh against anything.
OPPOSED = 2.0**-20


def value(view: View) -> Floats:
    """Trust times (max(c, 0) + OPPOSED * (min(c, 0) + 1)) / (1 + OPPOSED): grows with the cosine c throughout.

    An opposite vector has 0, an unrelated one as good as 0, the same one 1. 0 without vectors.
    """
    cosine = view.text.cosine
    near = np.minimum(cosine, 0.0)
    near += 1.0
    near *= OPPOSED
    near += np.maximum(cosine, 0.0)
    near *= view.text.trust / (1.0 + OPPOSED)
    if math.isnan(near.dot(near)):  # as soon as a single one is NaN
        near[np.isnan(cosine)] = 0.0
    return near


FEATURE = Feature(
    name="semantic",
    source="cosine between the vectors of memory and task, less where the embedder hardly knows the task's script",
    values={"default": value},
    needs_task=True,
    version=2,
)
