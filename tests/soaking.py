"""How long the tests run that look for what happens rarely: briefly, or with `make soak` at length."""

from __future__ import annotations

import os
from typing import TypeVar

T = TypeVar("T")

SOAK = os.environ.get("SOAK") == "1"


def at_length(soak: T, otherwise: T) -> T:
    """`soak` under `make soak`, `otherwise` in every other run."""
    return soak if SOAK else otherwise
