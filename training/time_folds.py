"""Curves against linear weights, fold by fold in time: each fold is judged by what was fitted on the sessions before
it, so that a win is not the luck of one split. Pure but for LightGBM."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sidecar.domain import Floats
from training.curves import fit_each
from training.dataset import Dataset
from training.held_out import ndcg_by_session
from training.linear import fit_linear
from training.model import Model
from training.movement import with_values
from training.pairs import make_pairs

FIRST_PARTS = 2
"""As many folds' worth of sessions come before the first one."""
PRIOR = 0.01
"""The strength of the linear fit's prior, in the middle of the grid that cross-validation chooses from."""


@dataclass(frozen=True, slots=True)
class Fold:
    """The mean nDCG@K by session of one fold: of what serves, of linear weights and of curves fitted before it."""

    sessions: int
    old: float
    linear: float
    curves: float

    @property
    def won(self) -> bool:
        """True if curves rank better than both."""
        return self.curves > max(self.old, self.linear)


def time_folds(
    logged: Dataset,
    aged: Dataset,
    kept: NDArray[np.bool_],
    theta: Floats | None,
    old: Model,
    *,
    count: int,
    k: int,
    seed: int,
    max_agent_share: float,
    progress: Callable[[int, int], None] = lambda done, total: None,
) -> list[Fold]:
    """The last `count` of `count` + FIRST_PARTS even parts of the sessions with a pair, in time. `aged` is `logged`
    with the half-lives that are to serve; `kept` (p,) marks the packets that count."""
    sessions = make_pairs(aged, kept, theta, max_agent_share).sessions
    starts = [int(part[0]) for part in np.array_split(sessions, count + FIRST_PARTS) if len(part)]
    if len(starts) < count + FIRST_PARTS:
        return []
    of_packet = aged.packets.session
    before = [make_pairs(aged, kept & (of_packet < start), theta, max_agent_share) for start in starts[FIRST_PARTS:]]
    curves = fit_each(aged, before, old.common, k=k, seed=seed)
    old_scores = old.served_scores(logged)
    folds = []
    for number, start in enumerate(starts[FIRST_PARTS:]):
        progress(number, count)
        linear = with_values(old.common, fit_linear(before[number], old.common, lambdas=(PRIOR,)).weights)
        end = starts[FIRST_PARTS + number + 1] if number + 1 < count else np.inf
        judged = kept & (of_packet >= start) & (of_packet < end)
        found = [
            ndcg_by_session(aged, scores, judged, k).value
            for scores in (old_scores, *(Model(each).served_scores(aged) for each in (linear, curves[number])))
        ]
        if not len(found[0]):
            return []
        folds.append(Fold(len(found[0]), *(float(each.mean()) for each in found)))
    progress(count, count)
    return folds
