"""frequency: in how many distinct sessions the memory was used."""

import numpy as np

from sidecar.domain import Floats
from sidecar.features.view import Columns, Feature, View

FULL_SESSIONS = 50
SMARTCTX_FULL = 5
_FULL = np.log1p(FULL_SESSIONS)


def most_uses(columns: Columns) -> float:
    """Sessions that used the most used of the living memories, 0 where none was used."""
    return float(columns.use_sessions.max(where=columns.live, initial=0))


def sessions(view: View) -> Floats:
    """Distinct sessions that used the memory. Shape (n,)."""
    return view.once("use_sessions", lambda: view.columns.use_sessions.astype(np.float64))


def value(view: View) -> Floats:
    """log(1 + sessions) / log(1 + FULL_SESSIONS), at most 1."""
    share: Floats = np.log1p(np.minimum(sessions(view), FULL_SESSIONS)) / _FULL
    return share


def linear(view: View) -> Floats:
    """The smartctx note's access bonus: weight .10 times this is min(count / 50, .10)."""
    return np.minimum(sessions(view) / SMARTCTX_FULL, 1.0)


def to_most_used(view: View) -> Floats:
    """The importance-scorer note's: log10(1 + sessions) / log10(1 + sessions of the namespace's most used memory); 0
    for all where none was used."""
    most = most_uses(view.columns) if view.most_uses is None else view.most_uses
    if not most:
        return view.nothing
    share: Floats = np.minimum(np.log1p(sessions(view)) / np.log1p(most), 1.0)
    return share


FEATURE = Feature(
    name="frequency",
    source="distinct sessions that used it, log-scaled, full at 50",
    values={"default": value, "smartctx": linear, "importance": to_most_used},
    in_use_family=True,
    raw={"use_sessions": sessions},
)
