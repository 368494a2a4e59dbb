"""The least change of a number, where more is not always better."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from sidecar.ranking.case import settled


@given(old=st.integers(0, 50), admitting=st.sets(st.integers(1, 400), min_size=1), far=st.booleans())
def test_neither_one_less_nor_half_of_the_way_admits(old: int, admitting: set[int], far: bool) -> None:
    """Whatever numbers admit, and within few tries."""
    good = old + max(admitting) + 10_000_000 * far
    admitting = {old + each for each in admitting} | {good}
    tried: list[int] = []

    def admits(number: int) -> bool:
        tried.append(number)
        return number in admitting

    found = settled(old, good, admits)
    assert found in admitting
    assert found - 1 not in admitting
    assert (old + found) // 2 not in admitting
    assert len(tried) <= 24 * 26
    assert all(old < number < good for number in tried)
