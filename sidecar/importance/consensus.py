"""What several agents say of one memory's importance: their consensus, and how far they are apart. Pure."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

AGREED = 0.1
"""Spread up to which agents agree."""


class AgentScore(NamedTuple):
    """One agent's score of a memory, and how sure it is, both in [0, 1]."""

    agent_id: str
    score: float
    confidence: float = 1.0


class Consensus(NamedTuple):
    """The mean of the scores, weighted by their confidence, and their standard deviation around it."""

    score: float
    spread: float
    agents: int

    @property
    def is_agreed(self) -> bool:
        """True if the agents are close together."""
        return self.spread <= AGREED


def consensus_of(scores: Sequence[AgentScore]) -> Consensus | None:
    """The consensus; None without scores. Scores of no confidence at all count alike."""
    if not scores:
        return None
    weights = [each.confidence for each in scores]
    if not sum(weights):
        weights = [1.0] * len(scores)
    total = math.fsum(weights)
    mean = math.fsum(w * each.score for w, each in zip(weights, scores, strict=True)) / total
    spread = math.fsum(w * (each.score - mean) ** 2 for w, each in zip(weights, scores, strict=True)) / total
    return Consensus(mean, math.sqrt(spread), len(scores))
