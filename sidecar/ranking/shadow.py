"""What another model makes of a task beside the one that serves: it changes nothing, and is logged. Pure."""

from __future__ import annotations

from dataclasses import replace

from sidecar.domain import ShadowScores
from sidecar.features import REGISTRY, View
from sidecar.ranking.pipeline import OF_TASK, Scored, score
from sidecar.ranking.standing import standing
from sidecar.retrieval.part import Part
from sidecar.retrieval.snapshot import Snapshot
from sidecar.weights import Weights

_OF_TASK = frozenset(("", *(REGISTRY[index].name for index in OF_TASK)))
"""What a view remembers of the task: those features, and the array that stands for nothing."""


def score_beside(scored: Scored, view: View, snapshot: Snapshot | Part, weights: Weights) -> Scored:
    """Scores every row of a view that is scored already by other weights. What the task gives is not worked out again,
    unless either has variants of its own; what depends on half-lives is."""
    is_same = view.variants == weights.variants
    memo = {name: values for name, values in view.memo.items() if is_same and name in _OF_TASK}
    beside = replace(view, half_life_days=weights.half_life_days, variants=weights.variants, memo=memo)
    return score(beside, scored.gates, standing(snapshot, beside, weights), weights, 0)


def shadow_scores(weights: Weights, scored: Scored, served: list[int], undrawn: list[int]) -> ShadowScores:
    """What the log keeps of it, for the served rows in the packet's order and for the undrawn ones."""
    return ShadowScores(weights.version, scored.score[[*served, *undrawn]], scored.at(served).contributions)
