"""How often each place is looked at, from places that chance gave (LEARNING section 5). Pure.

Drawn memories take their places uniformly among the last ones, so that between places nothing but the place differs.
The first place is never a draw's: where near-tied neighbours took the first two places by chance (`swap_near_ties`), it
is compared with the second, and so with all others.
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
    """theta from what chance placed in the packets that `packets` (p,) marks, and that were reported on."""
    known = packets[dataset.packet] & (dataset.used + dataset.unused > 0.0)
    drawn = np.flatnonzero(known & (dataset.segment == SEGMENTS.index(Segment.RESERVED)))
    swaps = np.flatnonzero(known & _by_chance_first(dataset))
    counts, swapped = (np.bincount(_bin_of(dataset.place[rows]), minlength=len(BINS)) for rows in (drawn, swaps))
    names = list(BINS)
    enough = [number for number in range(len(BINS)) if counts[number] >= LEAST_EXPOSURES]
    first_known = bool((swapped[:2] >= LEAST_EXPOSURES).all())
    if len(enough) < 2 and not first_known:
        return Positions((), "", False)
    # The earliest that chance gave: nothing is known of the places before it.
    reference = 0 if first_known else enough[0]
    found = [Bin(names[reference], 1.0, 1.0, 1.0, int((swapped if first_known else counts)[reference]))]
    scale = (1.0, 1.0, 1.0)
    if first_known:
        scale = _ratio(dataset, swaps, 1, 0)
        found.append(Bin(names[1], *scale, int(swapped[1])))
    base = 1 if first_known else reference
    found += [
        Bin(names[number], *_times(_ratio(dataset, drawn, number, base), scale), int(counts[number]))
        for number in enough
        if number > base and base in enough
    ]
    in_use = any(each.low > 1.0 or each.high < 1.0 for each in found[1:])
    return Positions(tuple(found), names[reference], in_use)


def _by_chance_first(dataset: Dataset) -> NDArray[np.bool_]:
    """Marks the ranked memories that took the first and second place of their packet by chance, each with 1/2."""
    ranked = dataset.segment == SEGMENTS.index(Segment.RANKED)
    even = ranked & (dataset.place <= 2) & (dataset.position_probability == 0.5)
    both = np.bincount(dataset.packet[even], minlength=len(dataset.packets)) == 2
    found: NDArray[np.bool_] = even & both[dataset.packet]
    return found


def _times(one: tuple[float, float, float], other: tuple[float, float, float]) -> tuple[float, float, float]:
    """The product of two independent ratios with their intervals."""
    theta = one[0] * other[0]
    if not np.isfinite([one[2], other[2]]).all():
        return theta, 0.0, np.inf
    reach = float(np.hypot(np.log(one[2] / one[0]), np.log(other[2] / other[0])))
    return theta, theta * float(np.exp(-reach)), theta * float(np.exp(reach))


def _bin_of(place: NDArray[np.int32]) -> NDArray[np.intp]:
    return np.searchsorted(list(BINS.values()), place, side="right") - 1


def _ratio(dataset: Dataset, rows: NDArray[np.intp], number: int, reference: int) -> tuple[float, float, float]:
    """The Mantel-Haenszel ratio of use rates over packet sizes, with the interval of Greenland and Robins (1985);
    (1, 0, inf) where nothing was used in one of the bins."""
    used = dataset.used[rows] >= RELEVANT
    bins = _bin_of(dataset.place[rows])
    sizes = np.bincount(dataset.packet, minlength=len(dataset.packets))[dataset.packet[rows]]
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
