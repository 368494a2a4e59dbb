"""The reported draws of a log, and the chance that each would have had under other weights. Pure.

The pool stays the logged one: who was in it was settled by the weights that served, and of those outside nothing is
known. Within it, the other weights' task fits go through the same rule that drew.
"""

from __future__ import annotations

from functools import cache

import numpy as np
from numpy.typing import NDArray

from sidecar.domain import Floats, Segment
from sidecar.features import RAW_NAMES
from sidecar.ranking.reserved import ReserveSettings, inclusion_propensity
from training.dataset import SEGMENTS, Dataset
from training.model import Model
from training.off_policy import Draws

_REPORTED_SESSIONS = RAW_NAMES.index("reported_sessions")


def reserved_draws(dataset: Dataset, model: Model, packets: NDArray[np.bool_] | None = None) -> Draws | None:
    """Draws of which it is known whether they were used, on the packets that `packets` (p,) marks (None: all); None if
    there are none. A memory that was drawn and trimmed, or whose packet has no report, is missing data.

    ValueError for packets whose exploration policy is of another rule than this version's.
    """
    known = (dataset.segment == SEGMENTS.index(Segment.RESERVED)) & (dataset.used + dataset.unused > 0.0)
    if packets is not None:
        known &= packets[dataset.packet]
    drawn = np.flatnonzero(known)
    if not len(drawn):
        return None
    namespaces = dataset.packets.namespace
    fit = model.task_fits(dataset.features, dataset.without_use, dataset.packet, namespaces)
    pool_fit = model.task_fits(dataset.pool_features, dataset.pool_without_use, dataset.pool_packet, namespaces)
    rule = cache(ReserveSettings.of_policy)
    reserved = np.flatnonzero(dataset.segment == SEGMENTS.index(Segment.RESERVED))
    target = np.zeros(len(dataset))
    of_pools: list[tuple[NDArray[np.int64], NDArray[np.int64], Floats]] = []
    for packet in np.unique(dataset.packet[drawn]).tolist():
        mine = _between(dataset.packet, reserved, packet)
        others = np.arange(*np.searchsorted(dataset.pool_packet, [packet, packet + 1]))
        reported = np.concatenate([dataset.raw[mine, _REPORTED_SESSIONS], dataset.pool_raw[others, _REPORTED_SESSIONS]])
        chances = inclusion_propensity(
            np.concatenate([fit[mine], pool_fit[others]]),
            reported.astype(np.int64).tolist(),
            int(dataset.packets.reserved_slots[packet]),
            rule(dataset.packets.exploration_policy[packet]),
        )
        target[mine] = chances[: len(mine)]
        of_pools.append((mine, others, chances))
    session = dataset.packets.session
    return Draws(
        reward=dataset.used[drawn],
        propensity=dataset.inclusion_propensity[drawn],
        target=target[drawn],
        session=session[dataset.packet[drawn]],
        features=dataset.features[drawn],
        pool_target=np.concatenate([chances for _, _, chances in of_pools]),
        pool_session=np.concatenate(
            [np.concatenate([session[dataset.packet[m]], session[dataset.pool_packet[o]]]) for m, o, _ in of_pools]
        ),
        pool_features=np.concatenate(
            [np.concatenate([dataset.features[m], dataset.pool_features[o]]) for m, o, _ in of_pools]
        ),
    )


def _between(packet: NDArray[np.int64], rows: NDArray[np.int64], number: int) -> NDArray[np.int64]:
    """Those of the ascending rows that belong to this packet."""
    return rows[slice(*np.searchsorted(packet[rows], [number, number + 1]))]
