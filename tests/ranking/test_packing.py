"""Packing: budgets are kept, nothing is cut, and a bigger budget never gives less."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sidecar.domain import LeftOutReason
from sidecar.ranking.packing import ByScore, Fill, fill, split_budget, split_places


def packed(sizes: list[int], places: int, budget: int | None, same: set[tuple[int, int]] | None = None) -> Fill:
    """Fills with rows 0, 1, 2, ... in order."""
    admitted: list[int] = []
    pairs = same or set()

    def admits(row: int) -> bool:
        if any((other, row) in pairs for other in admitted):
            return False
        admitted.append(row)
        return True

    return fill(
        ByScore(np.arange(len(sizes)), -np.arange(len(sizes), dtype=float), [""] * len(sizes)),
        np.array(sizes, dtype=np.int64),
        places,
        budget,
        admits,
    )


def test_a_memory_that_does_not_fit_is_passed_over() -> None:
    """Sizes 30, 500, 20, 10 in a budget of 70: the first, third and fourth (TB-02)."""
    result = packed([30, 500, 20, 10], 10, 70)
    assert result.rows == [0, 2, 3]
    assert result.reason_of(1) is LeftOutReason.OVERSIZED


def test_reasons_are_told_apart() -> None:
    """Too large for the whole, too large for the rest, the same as another, and outranked."""
    result = packed([30, 90, 50, 30, 10, 10], 2, 70, same={(0, 3)})
    assert result.rows == [0, 4]
    assert [result.reason_of(row) for row in (1, 2, 3, 5)] == [
        LeftOutReason.OVERSIZED,
        LeftOutReason.BUDGET,
        LeftOutReason.NEAR_DUPLICATE,
        LeftOutReason.OUTRANKED,
    ]


sizes_lists = st.lists(st.integers(1, 60), min_size=0, max_size=40)


@given(sizes=sizes_lists, places=st.integers(0, 12), small=st.integers(0, 200), more=st.integers(0, 200))
def test_a_bigger_budget_never_gives_less(sizes: list[int], places: int, small: int, more: int) -> None:
    """Tokens never fall as the budget grows, and the first difference is a memory that the bigger budget admits."""
    less, greater = packed(sizes, places, small), packed(sizes, places, small + more)
    assert less.tokens <= small
    assert less.tokens <= greater.tokens
    if less.rows != greater.rows:
        first = min(set(less.rows) ^ set(greater.rows))
        assert first in greater.rows


@given(sizes=sizes_lists, places=st.integers(1, 12), budget=st.integers(0, 300))
def test_the_next_budget_is_the_next_difference(sizes: list[int], places: int, budget: int) -> None:
    """Every budget below next_budget gives the same packet; next_budget gives another."""
    result = packed(sizes, places, budget)
    if result.next_budget is None:
        assert packed(sizes, places, 10**9).rows == result.rows
    else:
        assert packed(sizes, places, result.next_budget - 1).rows == result.rows
        assert packed(sizes, places, result.next_budget).rows != result.rows


@given(sizes=sizes_lists, places=st.integers(0, 12), budget=st.none() | st.integers(0, 300))
def test_every_memory_is_admitted_or_counted_once(sizes: list[int], places: int, budget: int | None) -> None:
    """No memory disappears: each is in the packet or passed over for exactly one reason."""
    result = packed(sizes, places, budget)
    over = [row for row in range(len(sizes)) if result.reason_of(row)]
    assert sorted(over + result.rows) == list(range(len(sizes)))
    assert sum(result.left_out().values()) == len(over)


pins = st.lists(st.integers(0, 60), max_size=6)


@given(
    budget=st.integers(0, 300), more=st.integers(1, 9), slots=st.integers(0, 2), pinned=pins, demand=st.integers(0, 200)
)
def test_every_part_grows_with_the_whole(budget: int, more: int, slots: int, pinned: list[int], demand: int) -> None:
    """A bigger budget shrinks no part, whatever is pinned; and the parts never exceed the whole."""
    sizes = np.array(pinned, dtype=np.int64)
    now, then = (split_budget(whole, slots, sizes, demand) for whole in (budget, budget + more))
    for before, after in ((now.pinned, then.pinned), (now.ranked, then.ranked), (now.slot, then.slot)):
        assert before is not None
        assert after is not None
        assert before <= after
    assert now.pinned is not None
    assert now.ranked is not None
    assert now.slot is not None
    held = packed(pinned, 9, now.pinned).tokens if pinned else 0
    assert held + now.ranked + slots * now.slot <= budget


@given(budget=st.integers(0, 150), pinned=pins.filter(bool), demand=st.integers(0, 200))
def test_ranked_memories_have_all_that_no_bigger_budget_takes_away(budget: int, pinned: list[int], demand: int) -> None:
    """One token more than the ranked segment has would be lost again at some bigger budget, or is of no use."""
    sizes = np.array(pinned, dtype=np.int64)
    ranked = split_budget(budget, 0, sizes, demand).ranked
    assert ranked is not None
    assert 2 * ranked >= min(budget, 2 * demand)
    left = []
    for whole in range(budget, budget + 150):
        most = split_budget(whole, 0, sizes, demand).pinned
        assert most is not None
        left.append(whole - min(most, sum(size for size in pinned if size <= most)))
    assert ranked == min(demand, *left)


@given(st.integers(0, 12), st.integers(0, 12), st.integers(0, 12))
def test_places_that_either_leaves_are_the_others(places: int, pinned: int, others: int) -> None:
    """No place is kept for nothing, each has half if it needs it, and a place more is none less for either."""
    of_pinned, of_ranked = split_places(places, pinned, others)
    assert of_pinned + of_ranked == places
    assert of_pinned <= pinned
    assert of_pinned >= min(pinned, (places + 1) // 2, places)
    assert min(of_ranked, others) >= min(others, places // 2)
    assert min(of_pinned, pinned) + min(of_ranked, others) == min(places, pinned + others)
    for now, then in zip((of_pinned, of_ranked), split_places(places + 1, pinned, others), strict=True):
        assert now <= then


def test_no_budget_means_no_limit() -> None:
    """Unset is not 0: everything fits without a budget, nothing in an empty one."""
    assert split_budget(None, 2).ranked is None
    assert packed([5, 5], 10, None).rows == [0, 1]
    assert packed([5, 5], 10, 0).rows == []


@given(scores=st.lists(st.sampled_from([0.0, 0.1, 0.25, 0.5, 1.0]), max_size=600), data=st.data())
def test_order_is_by_score_then_id(scores: list[float], data: st.DataObject) -> None:
    """Chunks come highest score first, ties by id, each row once, however many tie at a chunk's edge."""
    ids = data.draw(st.permutations([f"m{i:03d}" for i in range(len(scores))]))
    rows = np.arange(len(scores))
    got = [int(row) for chunk in ByScore(rows, np.array(scores), ids) for row in chunk]
    assert got == sorted(rows.tolist(), key=lambda row: (-scores[row], ids[row]))


@pytest.mark.parametrize("budget", [-1, 0])
def test_an_empty_or_negative_rest_admits_nothing(budget: int) -> None:
    """What pinned memories have used up cannot go below nothing."""
    assert packed([1, 2], 5, budget).rows == []
