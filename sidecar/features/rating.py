"""rating: helpful marks, a durable boost. An unhelpful mark is a gate (see `sidecar.ranking.gates`), not a value."""

import numpy as np

from sidecar.domain import Floats
from sidecar.features.view import Feature, View


def helpful(view: View) -> Floats:
    """Raters whose latest word is helpful. Shape (n,)."""
    return view.once("helpful", lambda: view.columns.helpful.astype(np.float64))


def value(view: View) -> Floats:
    """1 - 2^(-helpful raters): the first mark is worth .5, each further one half of what is left."""
    return 1.0 - np.exp2(-helpful(view))


FEATURE = Feature(
    name="rating",
    source="raters whose latest word is helpful: 0, .5, .75, ...",
    values={"default": value},
    in_use_family=True,
    raw={"helpful": helpful},
)
