from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sidecar.audit.metrics import ndcg_at, order, recall_at

ids = st.lists(st.text("abcdefgh", min_size=1, max_size=3), unique=True, min_size=1, max_size=20)


def test_ndcg_of_a_hand_worked_order() -> None:
    """Relevant at places 1 and 3 of three relevant: (1 + 1/2) / (1 + 1/log2(3) + 1/2)."""
    ideal = 1 + 1 / math.log2(3) + 1 / 2
    assert ndcg_at(10, ["a", "x", "b"], {"a", "b", "c"}) == pytest.approx((1 + 1 / 2) / ideal)


def test_ndcg_counts_the_first_k_only() -> None:
    """What stands after place k adds nothing, and the best possible is that of k places."""
    assert ndcg_at(1, ["x", "a"], {"a"}) == 0.0
    assert ndcg_at(1, ["a", "x"], {"a", "b", "c"}) == 1.0
    assert ndcg_at(2, ["x", "a", "b"], {"a", "b"}) == pytest.approx((1 / math.log2(3)) / (1 + 1 / math.log2(3)))


def test_recall_is_the_share_of_the_relevant_that_was_found() -> None:
    """Two of three relevant ids among the first two are two thirds."""
    assert recall_at(2, ["a", "b", "c"], {"a", "b", "c"}) == pytest.approx(2 / 3)
    assert recall_at(10, ["x"], {"a"}) == 0.0


def test_ties_are_ordered_by_id() -> None:
    """Equal scores stand in the order of their ids."""
    assert order({"b": 0.5, "a": 0.5, "c": 0.7}) == ["c", "a", "b"]


@pytest.mark.parametrize("metric", [ndcg_at, recall_at])
def test_what_cannot_be_measured_is_refused(metric: object) -> None:
    """No relevant id, an id that stands twice and k = 0 are errors, not zeros."""
    assert callable(metric)
    with pytest.raises(ValueError, match="relevant"):
        metric(10, ["a"], set())
    with pytest.raises(ValueError, match="twice"):
        metric(10, ["a", "a"], {"a"})
    with pytest.raises(ValueError, match="at least 1"):
        metric(0, ["a"], {"a"})


@given(ids, st.data())
def test_the_best_order_has_all_and_no_order_has_more(ranked: list[str], data: st.DataObject) -> None:
    """Relevant ids first reach 1; any other order lies between 0 and that."""
    relevant = data.draw(st.sets(st.sampled_from(ranked), min_size=1))
    k = data.draw(st.integers(1, 25))
    best = sorted(ranked, key=lambda each: each not in relevant)
    assert ndcg_at(k, best, relevant) == pytest.approx(1.0)
    assert 0.0 <= ndcg_at(k, ranked, relevant) <= 1.0 + 1e-12
    assert recall_at(k, best, relevant) == min(k, len(relevant)) / len(relevant)
