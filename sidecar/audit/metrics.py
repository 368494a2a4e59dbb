"""How good an order is against known answers: nDCG and recall at k, and the reciprocal place. Pure.

Binary relevance with linear gain: a relevant memory at place i (from 1) gains 1 / log2(i + 1), and the sum is divided
by the best that any order could reach (Järvelin and Kekäläinen 2002).
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence


def order(scores: Mapping[str, float]) -> list[str]:
    """Ids, highest score first and ties by id."""
    return sorted(scores, key=lambda each: (-scores[each], each))


def ndcg_at(k: int, ranked: Sequence[str], relevant: Collection[str]) -> float:
    """nDCG@k in [0, 1] of ids in their order, each once. ValueError without a relevant id: nothing could be found."""
    _check(k, ranked, relevant)
    gain = sum(_discount(place) for place, each in enumerate(ranked[:k], 1) if each in relevant)
    return gain / sum(_discount(place) for place in range(1, min(k, len(set(relevant))) + 1))


def recall_at(k: int, ranked: Sequence[str], relevant: Collection[str]) -> float:
    """Share of the relevant ids among the first k, in [0, 1]. ValueError without a relevant id."""
    _check(k, ranked, relevant)
    return len(set(ranked[:k]) & set(relevant)) / len(set(relevant))


def reciprocal_place(ranked: Sequence[str], relevant: Collection[str]) -> float:
    """1 / place of the first relevant id, 0 if none is there; its mean over tasks is MRR. ValueError as above."""
    _check(1, ranked, relevant)
    return next((1.0 / place for place, each in enumerate(ranked, 1) if each in relevant), 0.0)


def _discount(place: int) -> float:
    return 1.0 / math.log2(place + 1)


def _check(k: int, ranked: Sequence[str], relevant: Collection[str]) -> None:
    if k < 1:
        raise ValueError(f"k is {k}; must be at least 1")
    if not relevant:
        raise ValueError("no id is relevant; leave such a task out of the average")
    if len(set(ranked)) != len(ranked):
        raise ValueError("an id stands twice in the order")
