"""One file a feature: each says its name, where its values come from, and how a number in [0, 1] comes out.

The same code makes the values that are served and the values that are logged for training. `REGISTRY` is the order of
every contribution list; `SCHEMA_HASH` changes with any change of name, order or version, and guards every artifact.
"""

from sidecar.features.registry import (
    BY_NAME,
    FEATURE_NAMES,
    OTHERS_KNOWN,
    PARTLY_FED_BY_USE,
    RAW_NAMES,
    REGISTRY,
    SCHEMA_HASH,
    USE_FAMILY,
    WAYS,
    feature_matrix,
    known_values,
    other_ways_at,
    raw_columns,
    raw_matrix,
)
from sidecar.features.view import (
    NO_TIME,
    Columns,
    Feature,
    Kept,
    Same,
    TaskWord,
    TermMatch,
    TextMatches,
    View,
    changed_rows,
)

__all__ = [
    "BY_NAME",
    "FEATURE_NAMES",
    "NO_TIME",
    "OTHERS_KNOWN",
    "PARTLY_FED_BY_USE",
    "RAW_NAMES",
    "REGISTRY",
    "SCHEMA_HASH",
    "USE_FAMILY",
    "WAYS",
    "Columns",
    "Feature",
    "Kept",
    "Same",
    "TaskWord",
    "TermMatch",
    "TextMatches",
    "View",
    "changed_rows",
    "feature_matrix",
    "known_values",
    "other_ways_at",
    "raw_columns",
    "raw_matrix",
]
