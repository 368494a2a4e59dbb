from __future__ import annotations

import numpy as np
import pytest

from sidecar.plurals import counted


@pytest.mark.parametrize(
    ("number", "words", "told"),
    [
        (1, ("packet",), "1 packet"),
        (0, ("memory",), "0 memories"),
        (2_000, ("used memory",), "2,000 used memories"),
        (2, ("day",), "2 days"),
        (1.0, ("day",), "1 day"),
        (0.5, ("day",), "0.5 days"),
        (1, ("memory is", "memories are"), "1 memory is"),
        (3, ("memory is", "memories are"), "3 memories are"),
        (np.int64(1_234_567), ("row",), "1,234,567 rows"),
    ],
)
def test_one_is_told_as_one(number: float, words: tuple[str, ...], told: str) -> None:
    """And everything else as many, with its verb where it has one."""
    assert counted(number, *words) == told
