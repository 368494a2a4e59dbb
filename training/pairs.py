"""Used against not used: the pairs of one packet and one channel that a fit goes by (LEARNING section 6). Pure.

Only memories of one packet that one channel speaks of are compared. A session weighs as much as another, however many
packets it has, and an agent no more than a share of all.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sidecar.domain import Floats, Segment
from training.dataset import SEGMENTS, Dataset, Ints

THETA_CLIP = (1 / 3, 3.0)
"""What the weight of a pair for its place, 1/theta, is kept within."""
OUTCOME_WEIGHT = 0.1
"""A packet whose turn went well weighs 1 + OUTCOME_WEIGHT g."""
MAX_AGENT_SHARE = 0.9
"""Of all weight, what one agent has at most where there are others."""
LEAST_AGENT_SCALE = 0.25
"""An agent is not scaled below this: a few sessions of another must not stand for half of all."""
MOST_ROWS = 200
"""Of one packet and channel the first so many used and unused memories, by place, are compared: the hardest ones."""


@dataclass(frozen=True, slots=True)
class Pairs:
    """q pairs over n rows, and whom they belong to.

    `features` (n, d) and `without_use` (n, k) are of the rows that stand in pairs; `better` and `worse` (q,) index
    them: used, not used. `weight` (q,) sums to 1 if theta is 1 throughout. `session` (q,) indexes the s sessions, whose
    numbers in the data set are `sessions` (s,), ascending. `row` (n,) indexes the data set's rows.
    """

    features: Floats
    without_use: Floats
    better: Ints
    worse: Ints
    weight: Floats
    session: Ints
    sessions: Ints
    row: Ints

    def __len__(self) -> int:
        return len(self.better)

    @property
    def session_weight(self) -> Floats:
        """The weight of each session, shape (s,)."""
        weight: Floats = np.bincount(self.session, self.weight, len(self.sessions)).astype(np.float64)
        return weight

    @property
    def effective_sessions(self) -> float:
        """Kish's effective sample size, in sessions."""
        weight = self.session_weight
        return float(weight.sum() ** 2 / (weight**2).sum()) if len(weight) else 0.0

    def of_sessions(self, chosen: NDArray[np.bool_]) -> Pairs:
        """The pairs of the sessions that `chosen` (s,) marks, with weights that sum to what all did."""
        kept = chosen[self.session]
        rows = np.zeros(len(self.row), bool)
        rows[self.better[kept]] = True
        rows[self.worse[kept]] = True
        place = np.cumsum(rows) - 1
        weight = self.weight[kept]
        return Pairs(
            features=self.features[rows],
            without_use=self.without_use[rows],
            better=place[self.better[kept]],
            worse=place[self.worse[kept]],
            weight=weight * (self.weight.sum() / weight.sum() if len(weight) else 1.0),
            session=(np.cumsum(chosen) - 1)[self.session[kept]],
            sessions=self.sessions[chosen],
            row=self.row[rows],
        )


def make_pairs(
    dataset: Dataset,
    packets: NDArray[np.bool_] | None = None,
    theta: Floats | None = None,
    max_agent_share: float = MAX_AGENT_SHARE,
) -> Pairs:
    """The pairs of the packets that `packets` (p,) marks, of all for None. `theta` (n,) is how often each served place
    is looked at, relative to the first; None means alike.

    A pinned memory stands in its packet by a person's word, whatever its score: it is in no pair.
    """
    kept = (dataset.segment != SEGMENTS.index(Segment.PINNED)) & ((dataset.used > 0) | (dataset.unused > 0))
    if packets is not None:
        kept &= packets[dataset.packet]
    rows = np.flatnonzero(kept)
    group = dataset.packet[rows] * 4 + dataset.channel[rows]
    names, group = np.unique(group, return_inverse=True)
    is_used = dataset.used[rows] > 0
    rows, group, is_used = _first_of_each(*_by_group(rows, group, is_used))
    worse_count = np.bincount(group[~is_used], minlength=len(names))
    better = np.flatnonzero(is_used)
    unused = np.flatnonzero(~is_used)  # stands by group
    first_unused = np.cumsum(worse_count) - worse_count
    repeats = worse_count[group[better]]
    pair_better = np.repeat(better, repeats)
    offset = np.arange(len(pair_better)) - np.repeat(np.cumsum(repeats) - repeats, repeats)
    pair_worse = unused[first_unused[group[pair_better]] + offset] if len(pair_better) else np.zeros(0, np.int64)
    strength = dataset.used[rows[pair_better]] * dataset.unused[rows[pair_worse]]
    packet = dataset.packet[rows[pair_better]]
    weight = strength / np.bincount(packet, strength, len(dataset.packets))[packet]
    weight *= _packet_weights(dataset, np.unique(packet), max_agent_share)[packet]
    if theta is not None:
        weight *= np.clip(1.0 / theta[rows[pair_better]], *THETA_CLIP)
    session = dataset.packets.session[packet]
    sessions, session = np.unique(session, return_inverse=True)
    in_pairs = np.zeros(len(rows), bool)
    in_pairs[pair_better] = True
    in_pairs[pair_worse] = True
    place = np.cumsum(in_pairs) - 1
    rows = rows[in_pairs]
    return Pairs(
        features=dataset.features[rows],
        without_use=dataset.without_use[rows],
        better=place[pair_better],
        worse=place[pair_worse],
        weight=weight,
        session=session.astype(np.int64),
        sessions=sessions,
        row=rows,
    )


def _by_group(
    rows: Ints, group: NDArray[np.intp], is_used: NDArray[np.bool_]
) -> tuple[Ints, NDArray[np.intp], NDArray[np.bool_]]:
    order = np.argsort(group, kind="stable")
    return rows[order], group[order], is_used[order]


def _first_of_each(
    rows: Ints, group: NDArray[np.intp], is_used: NDArray[np.bool_]
) -> tuple[Ints, NDArray[np.intp], NDArray[np.bool_]]:
    """MOST_ROWS of each group and label. Rows of a group ascend by place."""
    kept = np.zeros(len(rows), bool)
    for chosen in (np.flatnonzero(is_used), np.flatnonzero(~is_used)):
        mine = group[chosen]
        kept[chosen[np.arange(len(mine)) - np.searchsorted(mine, mine) < MOST_ROWS]] = True
    return rows[kept], group[kept], is_used[kept]


def _packet_weights(dataset: Dataset, paired: Ints, max_agent_share: float) -> Floats:
    """omega of every packet, shape (p,): 0 without a pair, and they sum to 1."""
    packets = dataset.packets
    omega = np.zeros(len(packets))
    if not len(paired):
        return omega
    session = packets.session[paired]
    omega[paired] = 1.0 / np.bincount(session)[session]
    omega[paired] *= 1.0 + OUTCOME_WEIGHT * packets.outcome[paired]
    names = np.array(packets.agent, dtype=object)[paired]
    _, agent = np.unique(names.astype(str), return_inverse=True)
    totals = np.bincount(agent, omega[paired])
    others = totals.sum() - totals
    most = np.full(len(totals), np.inf)
    if max_agent_share < 1.0:
        most = np.where(others > 0, others * max_agent_share / (1.0 - max_agent_share), np.inf)
    scale = np.clip(most / totals, LEAST_AGENT_SCALE, 1.0)
    omega[paired] *= scale[agent]
    normalised: Floats = omega / omega.sum()
    return normalised
