"""The access signal: in how many sessions a memory was used, and how lately (note: "Access Pattern Scoring"). Pure.

Sessions that used it count, never serves: what was shown and not used says nothing for it.
"""

from __future__ import annotations

import math

from sidecar.domain import DAY, Micros
from sidecar.importance.settings import AccessForm

SESSIONS_SHARE = 0.6
RECENCY_SHARE = 0.4
TIERS = ((0, 0.0), (2, 0.2), (5, 0.4), (10, 0.6), (20, 0.8))
"""The most sessions of each tier, and its value; 1 above the last."""


def sessions_value(sessions: int, most_sessions: int, form: AccessForm = AccessForm.LOGARITHM) -> float:
    """What the sessions are worth, in [0, 1]. `most_sessions` are those of the most used memory of the namespace; with
    none at all every memory has 0."""
    if form is AccessForm.TIERS:
        return next((value for most, value in TIERS if sessions <= most), 1.0)
    most = max(most_sessions, sessions)
    return math.log10(sessions + 1) / math.log10(most + 1) if most else 0.0


def recency_value(age: Micros, half_life_days: float) -> float:
    """2^(-age / half-life); an age below 0 is 0."""
    return math.exp2(-max(age, 0) / DAY / half_life_days)
