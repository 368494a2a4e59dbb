"""How far new weights may go from old ones in one run (LEARNING section 6). Pure.

Along the way from the old weights to the fitted ones, the furthest point at which the weights have moved by no more
than MAX_L1 in sum and MAX_STEP each, and re-ranking what was logged keeps LEAST_OVERLAP of the top K.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from sidecar.domain import Floats, Segment
from sidecar.features import PARTLY_FED_BY_USE
from sidecar.weights import Weights, contributions
from training.dataset import SEGMENTS, Dataset, Ints

MAX_L1 = 0.20
MAX_STEP = 0.05
LEAST_OVERLAP = 0.8
TOP_K = 10
HALVINGS = 6
"""How finely the furthest point is looked for where the overlap is what stops it."""


@dataclass(frozen=True, slots=True)
class MovementCaps:
    """How far weights may move in one run."""

    max_l1: float = MAX_L1
    max_step: float = MAX_STEP
    least_overlap: float = LEAST_OVERLAP
    top_k: int = TOP_K


@dataclass(frozen=True, slots=True)
class Movement:
    """The weights that are reached, shape (d,), and what stopped them: "" where `eta` is 1, all the way."""

    weights: Floats
    eta: float
    overlap: float
    l1: float
    step: float
    stopped_by: str


@dataclass(frozen=True, slots=True)
class Candidates:
    """What each packet could have shown: served and undrawn, but for pinned ones. Rows ascend by packet."""

    features: Floats
    without_use: Floats
    packet: Ints
    memory_key: Ints
    width: Ints
    """How many of them the packet showed, by packet."""

    @classmethod
    def of(cls, dataset: Dataset) -> Candidates:
        """The candidates of all packets."""
        served = np.flatnonzero(dataset.segment != SEGMENTS.index(Segment.PINNED))
        packet = np.concatenate([dataset.packet[served], dataset.pool_packet])
        order = np.argsort(packet, kind="stable")
        return cls(
            features=np.concatenate([dataset.features[served], dataset.pool_features])[order],
            without_use=np.concatenate([dataset.without_use[served], dataset.pool_without_use])[order],
            packet=packet[order],
            memory_key=np.concatenate([dataset.memory_key[served], dataset.pool_memory_key])[order],
            width=np.bincount(dataset.packet[served], minlength=len(dataset.packets)),
        )

    def of_packets(self, chosen: NDArray[np.bool_]) -> Candidates:
        """Those of the packets that `chosen` (p,) marks; packets keep their numbers."""
        if chosen.all():
            return self
        rows = chosen[self.packet]
        return Candidates(
            self.features[rows], self.without_use[rows], self.packet[rows], self.memory_key[rows], self.width
        )

    def scores(self, weights: Weights) -> Floats:
        """As they are served, shape (n,)."""
        own = {name: self.without_use[:, k] for k, name in enumerate(PARTLY_FED_BY_USE)}
        return contributions(self.features, own, weights).score

    def top(self, scores: Floats, k: int) -> Ints:
        """Rows of the k best of each packet, or of as many as it showed; ties by memory, ids ascending."""
        order = np.lexsort((self.memory_key, -scores, self.packet))
        packet = self.packet[order]
        first = np.searchsorted(packet, packet)
        found: Ints = order[np.arange(len(order)) - first < np.minimum(self.width, k)[packet]]
        return found


def with_values(weights: Weights, values: Floats, version: str = "fitted") -> Weights:
    """The same weights with other values; a cap that followed its weight follows the new one."""
    caps = np.where(weights.caps != weights.values, weights.caps, values)
    return replace(weights, version=version, values=values, caps=caps)


def overlap(old: Ints, new: Ints, packet: Ints, count: int) -> float:
    """The mean over packets of the share of the old top that the new one keeps; 1 where there are none."""
    size = np.bincount(packet[old], minlength=count)
    kept = np.bincount(packet[np.intersect1d(old, new, assume_unique=True)], minlength=count)
    return float((kept[size > 0] / size[size > 0]).mean()) if size.any() else 1.0


def capped_movement(old: Weights, fitted: Floats, candidates: Candidates, caps: MovementCaps) -> Movement:
    """The furthest that the caps allow from `old` towards `fitted`, (d,)."""
    apart = fitted - old.values
    l1, step = float(np.abs(apart).sum()), float(np.abs(apart).max(initial=0.0))
    stops = {
        "": 1.0,
        f"the sum of moves, {caps.max_l1:g}": caps.max_l1 / l1 if l1 > 0 else 1.0,
        f"the move of one weight, {caps.max_step:g}": caps.max_step / step if step > 0 else 1.0,
    }
    stopped_by, eta = min(stops.items(), key=lambda stop: stop[1])
    packets = len(candidates.width)
    before = candidates.top(candidates.scores(old), caps.top_k)

    def kept(share: float) -> float:
        moved = candidates.scores(with_values(old, old.values + share * apart))
        return overlap(before, candidates.top(moved, caps.top_k), candidates.packet, packets)

    reached = kept(eta)
    if reached < caps.least_overlap:
        stopped_by = f"the share of the top {caps.top_k} that is kept, {caps.least_overlap:g}"
        low, high, reached = 0.0, eta, 1.0
        for _ in range(HALVINGS):
            middle = (low + high) / 2
            share = kept(middle)
            if share >= caps.least_overlap:
                low, reached = middle, share
            else:
                high = middle
        eta = low
    return Movement(old.values + eta * apart, eta, reached, eta * l1, eta * step, stopped_by)
