"""Bounds on single values that hold at every door: the API, files that are read in, logs that are brought back."""

from __future__ import annotations

NAMESPACE_BYTES = 128
ID_BYTES = 256
REQUEST_ID_BYTES = 128
KIND_BYTES = 64
# 1900-01-01 and 2201-01-01, in seconds since 1970-01-01 UTC.
FIRST_SECOND = -2_208_988_800
END_SECOND = 7_289_654_400


def shown(value: object) -> str:
    """A glimpse of a value for a message: at most some 60 characters."""
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:45]}... ({len(text)} characters)"
