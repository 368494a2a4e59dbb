"""use_rate: of the sessions in which the memory was seen and reported on, the share that used it, shrunk.

(U + kappa * mu) / (V + kappa) over distinct sessions. A memory without reports has its kind's mean mu, not 0, and a
serve is in neither count.
"""

import numpy as np

from sidecar.domain import Floats
from sidecar.features.view import Feature, View

PRIOR = {"default": (0.2, 10.0)}
"""(mu, kappa) before the first rescore: one use in five sightings, worth ten sessions of evidence."""


def used(view: View) -> Floats:
    """U: sessions that used it, weighted by confidence. Shape (n,)."""
    return view.columns.used


def seen(view: View) -> Floats:
    """V: sessions that saw it and reported, weighted by confidence. Shape (n,)."""
    return view.columns.seen


def reported(view: View) -> Floats:
    """Sessions that saw it and reported, unweighted. Shape (n,)."""
    count: Floats = view.columns.reported_sessions.astype(np.float64)
    return count


def value(view: View) -> Floats:
    """(U + kappa mu) / (V + kappa), by kind."""
    columns, prior = view.columns, view.use_prior
    of_kind = np.array([prior.get(kind, prior["default"]) for kind in columns.kinds] or [prior["default"]])
    mu, kappa = of_kind.T.take(columns.kind, axis=1)
    return np.asarray((used(view) + kappa * mu) / (seen(view) + kappa))


FEATURE = Feature(
    name="use_rate",
    source="share of the reported sessions that used it, shrunk to its kind's mean",
    values={"default": value},
    in_use_family=True,
    raw={"used": used, "seen": seen, "reported_sessions": reported},
)
