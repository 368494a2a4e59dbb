"""What the features that use feeds in part would have been without it, from the logged ages. Pure."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from sidecar.domain import Floats
from sidecar.features import FEATURE_NAMES, PARTLY_FED_BY_USE, RAW_NAMES
from sidecar.features.recency import HALF_LIFE_DAYS

_RECENCY = FEATURE_NAMES.index("recency")
_AGE, _CREATE_AGE = RAW_NAMES.index("age_days"), RAW_NAMES.index("create_age_days")
_IMPORTANCE = RAW_NAMES.index("importance_without_use")


def values_without_use(features: Floats, raw: Floats, kinds: Sequence[str], kind: NDArray[np.int32]) -> Floats:
    """The values of PARTLY_FED_BY_USE as if nothing were known of use, shape (n, len(PARTLY_FED_BY_USE))."""
    found = {"recency": _recency(features, raw, kinds, kind), "importance": raw[:, _IMPORTANCE]}
    return np.stack([found[name] for name in PARTLY_FED_BY_USE], axis=1)


def _recency(features: Floats, raw: Floats, kinds: Sequence[str], kind: NDArray[np.int32]) -> Floats:
    """2^(-age since creation / half-life), by the half-life that the logged value itself shows; where that shows none
    (no age at all, or a value that has underflowed), by the shipped one of the kind."""
    value, age, create_age = features[:, _RECENCY], raw[:, _AGE], raw[:, _CREATE_AGE]
    shipped = np.array([HALF_LIFE_DAYS.get(each, HALF_LIFE_DAYS["default"]) for each in kinds] or [1.0])
    found = np.exp2(-create_age / shipped[kind]) if len(kind) else np.zeros(0)
    shows = (value > 0.0) & (value < 1.0) & (age > 0.0)
    found[shows] = value[shows] ** (create_age[shows] / age[shows])
    never_used = create_age == age
    found[never_used] = value[never_used]
    return found
