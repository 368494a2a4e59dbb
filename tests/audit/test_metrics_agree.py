"""Our figures are those of ir-measures, the reference of the field."""

from __future__ import annotations

import ir_measures
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from ir_measures import RR, R, nDCG

from sidecar.audit.metrics import ndcg_at, order, recall_at, reciprocal_place

ids = st.sampled_from([f"m{number}" for number in range(40)])


@settings(deadline=None)
@given(st.dictionaries(ids, st.integers(0, 1_000), min_size=1, max_size=40), st.sets(ids, min_size=1, max_size=12))
def test_ndcg_recall_and_reciprocal_place_agree(given_scores: dict[str, int], relevant: set[str]) -> None:
    """For any scores without ties and any relevant ids, also such as were not ranked at all. The reference has floats
    of single precision, in which larger scores would tie."""
    scores = {each: score + place / 100 for place, (each, score) in enumerate(given_scores.items())}
    qrels = [ir_measures.Qrel("task", each, 1) for each in relevant]
    run = [ir_measures.ScoredDoc("task", each, score) for each, score in scores.items()]
    found = ir_measures.calc_aggregate([R @ 5, R @ 10, R @ 25, nDCG @ 10, RR], qrels, run)
    ranked = order(scores)
    for k in (5, 10, 25):
        assert recall_at(k, ranked, relevant) == pytest.approx(found[R @ k])
    assert ndcg_at(10, ranked, relevant) == pytest.approx(found[nDCG @ 10])
    assert reciprocal_place(ranked, relevant) == pytest.approx(found[RR])
