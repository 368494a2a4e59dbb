"""recency: exponential decay of the time since the memory was learned or last used, by kind.

2^(-age / half-life). A serve never makes a memory younger; a use does. A time ahead of now is age 0, so that a clock
that steps back cannot lift a value above 1.
"""

import numpy as np

from sidecar.domain import DAY, Floats
from sidecar.features.view import NO_TIME, Feature, View

HALF_LIFE_DAYS = {
    "decision": 180.0,
    "fact": 90.0,
    "preference": 120.0,
    "failure": 45.0,
    "attempt": 14.0,
    "debugging": 7.0,
    "semantic": 90.0,
    "procedural": 180.0,
    "archival": 180.0,
    "episodic": 30.0,
    "working": 1.0,
    "default": 90.0,
}


def age_days(view: View) -> Floats:
    """Days since creation or last use, whichever is later, at least 0. Shape (n,)."""
    columns = view.columns
    # A use after as_of has not happened yet.
    use_time = np.where(columns.last_use_time <= view.as_of_time, columns.last_use_time, NO_TIME)
    latest = np.maximum(columns.create_time, use_time)
    age: Floats = np.maximum(view.as_of_time - latest, 0) / DAY
    return age


def value(view: View) -> Floats:
    """2^(-age / half-life of the row's kind)."""
    return np.exp2(-age_days(view) / view.by_kind(view.half_life_days))


FEATURE = Feature(
    name="recency",
    source="2^(-age / half-life of its kind), age from creation or last use, never from a serve",
    values={"default": value},
    raw={"age_days": age_days},
)
