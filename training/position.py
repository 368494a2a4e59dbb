"""How often each place is looked at, from places that chance gave (LEARNING section 5). Pure.

Drawn memories take their places uniformly among the last ones, so that between places nothing but the place differs.
Use rates by bin are compared within packets of one size (Mantel and Haenszel). theta is used only when the 95 %
interval of a bin excludes 1, with LEAST_EXPOSURES randomised ones in each bin that is used; otherwise all places count
alike. It is not assumed to fall with the place.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sidecar.domain import Floats, Segment
from training.dataset import SEGMENTS, Dataset
from training.held_out import RELEVANT

BINS = {"first": 1, "early": 2, "middle": 4, "late": 8}
"""The first place of each bin, from 1."""
LEAST_EXPOSURES = 200
_NORMAL = 1.959964


@dataclass(frozen=True, slots=True)
class Bin:
    """One bin: theta against the reference bin with its 95 % interval, from so many randomised exposures."""

    name: str
    theta: float
    low: float
    high: float
    exposures: int


@dataclass(frozen=True, slots=True)
class Positions:
    """What is known of places. `in_use` says whether training goes by it; `reference` is "" where nothing is known."""

    bins: tuple[Bin, ...]
    reference: str
    in_use: bool

    def of_rows(self, dataset: Dataset) -> Floats | None:
        """theta of every served row, (n,): 1 in bins that nothing is known of; None if all places count alike."""
        if not self.in_use:
            return None
        theta = np.ones(len(dataset))
        number = _bin_of(dataset.place)
        for each in self.bins:
            theta[number == list(BINS).index(each.name)] = each.theta
        return theta


def estimate_positions(dataset: Dataset, packets: NDArray[np.bool_]) -> Positions:
    """theta from the reserved memories of the packets that `packets` (p,) marks, and that were reported on."""
    rows = np.flatnonzero(
        (dataset.segment == SEGMENTS.index(Segment.RESERVED))
        & packets[dataset.packet]
        & (dataset.used + dataset.unused > 0.0)
    )
    used = dataset.used[rows] >= RELEVANT
    bins = _bin_of(dataset.place[rows])
    sizes = np.bincount(dataset.packet, minlength=len(dataset.packets))[dataset.packet[rows]]
    counts = np.bincount(bins, minlength=len(BINS))
    enough = [number for number in range(len(BINS)) if counts[number] >= LEAST_EXPOSURES]
    names = list(BINS)
    if len(enough) < 2:
        return Positions((), "", False)
    # The earliest of them: the places before it are no draw's, so nothing is known of them.
    reference, *others = enough
    found = [Bin(names[reference], 1.0, 1.0, 1.0, int(counts[reference]))]
    for number in others:
        ratio, low, high = _ratio(used, bins, sizes, number, reference)
        found.append(Bin(names[number], ratio, low, high, int(counts[number])))
    in_use = any(each.low > 1.0 or each.high < 1.0 for each in found[1:])
    return Positions(tuple(found), names[reference], in_use)


def _bin_of(place: NDArray[np.int32]) -> NDArray[np.intp]:
    return np.searchsorted(list(BINS.values()), place, side="right") - 1


def _ratio(
    used: NDArray[np.bool_], bins: NDArray[np.intp], sizes: NDArray[np.int64], number: int, reference: int
) -> tuple[float, float, float]:
    """The Mantel-Haenszel ratio of use rates over packet sizes, with the interval of Greenland and Robins (1985);
    (1, 0, inf) where nothing was used in one of the bins."""
    above = below = spread = 0.0
    for size in np.unique(sizes):
        mine, base = (sizes == size) & (bins == number), (sizes == size) & (bins == reference)
        n, m = int(mine.sum()), int(base.sum())
        a, b = int(used[mine].sum()), int(used[base].sum())
        total = n + m
        if n and m:
            above += a * m / total
            below += b * n / total
            spread += ((a + b) * n * m - a * b * total) / total**2
    if not above or not below:
        return 1.0, 0.0, np.inf
    ratio = above / below
    error = float(np.sqrt(spread / (above * below)))
    return ratio, ratio * float(np.exp(-_NORMAL * error)), ratio * float(np.exp(_NORMAL * error))
