"""What other weights would have done with packets that no fit has seen: nDCG by session, and who gets shown. Pure.

nDCG is pinned: binary relevance, linear gain, ties by id (`sidecar.audit.metrics`), over the memories of a packet that
something is known of. The bootstrap draws whole sessions, the same for old and new.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sidecar.domain import Floats, Segment
from sidecar.features import PARTLY_FED_BY_USE
from sidecar.weights import Weights, contributions
from training.dataset import SEGMENTS, Dataset, Ints
from training.movement import Candidates
from training.pairs import Pairs

RELEVANT = 0.5
"""From which a_i on a memory counts as used: more likely than not."""
AT_ONCE = 4_000_000
"""Numbers that the bootstrap draws at one time."""


@dataclass(frozen=True, slots=True)
class Split:
    """Which packets are fitted on and which are held out, (p,) each; no session is in both."""

    fit: NDArray[np.bool_]
    held_out: NDArray[np.bool_]


def split_by_time(dataset: Dataset, pairs: Pairs, share: float, least: int) -> Split:
    """Holds out the last sessions to start: of those in pairs `share`, and `least` at least. Sessions without a pair go
    with the time they started at."""
    packets = dataset.packets
    count = min(len(pairs.sessions), max(least, int(np.ceil(share * len(pairs.sessions)))))
    if not count:
        return Split(np.ones(len(packets), bool), np.zeros(len(packets), bool))
    # Sessions are numbered by when they start.
    out = packets.session >= pairs.sessions[-count]
    return Split(~out, out)


@dataclass(frozen=True, slots=True)
class Ndcg:
    """nDCG@k by session, (s,) each: the mean over the session's packets that have a used and an unused one."""

    session: NDArray[np.int64]
    value: Floats


def ndcg_by_session(dataset: Dataset, scores: Floats, packets: NDArray[np.bool_], k: int) -> Ndcg:
    """Of the packets that `packets` (p,) marks, under these scores of all rows, (n,)."""
    numbers, value = ndcg_by_packet(dataset, scores, packets[dataset.packet], k)
    sessions, of_packet = np.unique(dataset.packets.session[numbers], return_inverse=True)
    return Ndcg(sessions, np.bincount(of_packet, value, len(sessions)) / np.maximum(np.bincount(of_packet), 1))


def ndcg_by_packet(dataset: Dataset, scores: Floats, chosen: NDArray[np.bool_], k: int) -> tuple[Ints, Floats]:
    """Numbers of the packets that have a used and an unused one among the rows that `chosen` (n,) marks, ascending,
    and the nDCG@k of these rows in each."""
    relevant = dataset.used >= RELEVANT
    rows = np.flatnonzero(
        (relevant | (dataset.unused > 0)) & (dataset.segment != SEGMENTS.index(Segment.PINNED)) & chosen
    )
    p = len(dataset.packets)
    order = rows[np.lexsort((dataset.memory_key[rows], -scores[rows], dataset.packet[rows]))]
    packet = dataset.packet[order]
    place = np.arange(len(order)) - np.searchsorted(packet, packet) + 1
    gain = np.where(relevant[order] & (place <= k), 1.0 / np.log2(place + 1.0), 0.0)
    used = np.bincount(packet[relevant[order]], minlength=p)
    shown = np.bincount(packet, minlength=p)
    best = np.concatenate([[0.0], np.cumsum(1.0 / np.log2(np.arange(2, k + 2)))])
    tells = np.flatnonzero((used > 0) & (used < shown))
    return tells, np.bincount(packet, gain, p)[tells] / best[np.minimum(used[tells], k)]


def served_scores(dataset: Dataset, weights: Weights) -> Floats:
    """What these weights give every served row, as serving would, (n,)."""
    own = {name: dataset.without_use[:, k] for k, name in enumerate(PARTLY_FED_BY_USE)}
    return contributions(dataset.features, own, weights).score


@dataclass(frozen=True, slots=True)
class Difference:
    """A mean over sessions with the one-sided lower bound, and the whole interval, of a paired bootstrap.

    `deviation` is the standard deviation over sessions.
    """

    mean: float
    lower_bound: float
    low: float
    high: float
    deviation: float
    sessions: int


def bootstrap(apart: Floats, *, rounds: int, confidence: float, seed: int) -> Difference:
    """Of differences by session, (s,). One session or none says nothing: the bounds are then infinite."""
    s = len(apart)
    if s < 2:
        mean = float(apart.mean()) if s else 0.0
        return Difference(mean, -np.inf, -np.inf, np.inf, 0.0, s)
    dice = np.random.default_rng(seed)
    means = np.empty(rounds)
    step = max(1, AT_ONCE // s)
    for start in range(0, rounds, step):
        drawn = dice.integers(0, s, (min(step, rounds - start), s))
        means[start : start + step] = apart[drawn].mean(axis=1)
    lower_bound, low, high = np.quantile(means, [1 - confidence, (1 - confidence) / 2, (1 + confidence) / 2]).tolist()
    return Difference(float(apart.mean()), lower_bound, low, high, float(apart.std(ddof=1)), s)


@dataclass(frozen=True, slots=True)
class Shown:
    """Who would be shown. `gini` of how often each candidate is in a top K, `top_share` what the most shown hundredth
    of them takes, `never` the share that is never in one."""

    gini: float
    top_share: float
    never: float


def shown_by(candidates: Candidates, scores: Floats, k: int) -> Shown:
    """The figures for these scores of the candidates. All 0 without a candidate."""
    keys, of_row = np.unique(candidates.memory_key, return_inverse=True)
    n = len(keys)
    if not n:
        return Shown(0.0, 0.0, 0.0)
    times = np.sort(np.bincount(of_row[candidates.top(scores, k)], minlength=n))
    total = float(times.sum())
    if not total:
        return Shown(0.0, 0.0, 1.0)
    gini = float((2 * np.arange(1, n + 1) - n - 1) @ times / (n * total))
    most = times[n - max(1, n // 100) :].sum()
    return Shown(gini, float(most / total), float((times == 0).mean()))
