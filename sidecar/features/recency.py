"""recency: exponential decay of the time since the memory was learned or last used, by kind.

2^(-age / half-life). A serve never makes a memory younger; a use does. A time ahead of now is age 0, so that a clock
that steps back cannot lift a value above 1. Now is rounded up to a whole minute, so that what a minute's tasks have in
common is computed once, and yet of two memories the newer one is always worth more.
"""

import numpy as np
from numpy.typing import NDArray

from sidecar.domain import DAY, MINUTE, Floats, Micros
from sidecar.features.view import Feature, View

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


def whole_minute(time: Micros) -> Micros:
    """The first whole minute that is not before `time`."""
    return -(-time // MINUTE) * MINUTE


def age_days(view: View) -> Floats:
    """Days since creation or last use, whichever is later, at least 0. Shape (n,)."""
    columns = view.columns
    return view.once("age_days", lambda: _days_since(view, np.maximum(columns.create_time, columns.last_use_time)))


def create_age_days(view: View) -> Floats:
    """Days since creation, at least 0. Shape (n,)."""
    return view.once("create_age_days", lambda: _days_since(view, view.columns.create_time))


def _days_since(view: View, time: NDArray[np.int64]) -> Floats:
    age: Floats = np.maximum(whole_minute(view.as_of_time) - time, 0) / DAY
    return age


def value(view: View) -> Floats:
    """2^(-age / half-life of the row's kind)."""
    return _left(view, age_days(view))


def without_use(view: View) -> Floats:
    """The same from creation alone: how recent it would be if no one had used it. Shape (n,)."""
    return _left(view, create_age_days(view))


def _left(view: View, age: Floats) -> Floats:
    half_life = view.once("half-life", lambda: view.by_kind(view.half_life_days))
    left: Floats = np.exp2(-age / half_life)
    return left


FEATURE = Feature(
    name="recency",
    source="2^(-age / half-life of its kind), age from creation or last use, never from a serve",
    values={"default": value},
    without_use=without_use,
    raw={"age_days": age_days, "create_age_days": create_age_days},
    version=2,
)
