"""Packets of a log while its rows still come: of each only what a data set keeps, and all numbers in few pieces."""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sidecar.domain import Floats, Micros, OtherWays, Packet, PacketItem, PoolItem, Segment
from sidecar.features import FEATURE_NAMES, RAW_NAMES, WAYS
from sidecar.store.packets import session_key

SEGMENTS = (Segment.RANKED, Segment.RESERVED, Segment.PINNED)
"""What the number of a segment indexes."""
DEFAULT = "default"
"""The way of a feature that weights are fitted to."""


@dataclass(slots=True)
class Held:
    """A packet while rows still come: only what the data set keeps of it."""

    packet_id: str
    namespace: str
    session: tuple[str, str]
    agent: str
    surface: str
    model_version: str
    exploration_policy: str
    create_time: Micros
    pool_size: int
    reserved_slots: int
    budgets: tuple[float, float, float]
    memory_ids: tuple[str, ...]
    kinds: tuple[str, ...]
    start: int
    """Memories that were kept before its first."""
    pool_ids: tuple[str, ...]
    pool_kinds: tuple[str, ...]
    pool_start: int


class _Rows:
    """Rows of numbers that grow as one piece: an array for each of a million would take more than what it holds."""

    def __init__(self, columns: int) -> None:
        self._columns = columns
        self._data = array("d")

    def __len__(self) -> int:
        return len(self._data) // self._columns

    def add(self, rows: Floats) -> None:
        """Takes rows in, shape (n, columns)."""
        self._data.frombytes(rows.tobytes())

    def taken(self, order: NDArray[np.int64]) -> Floats:
        """The rows in this order, shape (len(order), columns). None is left behind."""
        data, self._data = self._data, array("d")
        if not self._columns:
            return np.empty((len(order), 0))
        return np.frombuffer(data).reshape(-1, self._columns)[order]


class Numbers:
    """What is kept of memories in numbers: `own` are (n, k), `features` and `raw` as logged; `ways` are their features
    measured in these other ways, feature:variant, NaN where that is not known."""

    def __init__(self, own: int, ways: Sequence[str] = ()) -> None:
        self.own = _Rows(own)
        self.features = _Rows(len(FEATURE_NAMES))
        self.raw = _Rows(len(RAW_NAMES))
        self.ways = _Rows(len(ways))
        self._names = ways

    def add(self, own: Floats, items: Sequence[PacketItem | PoolItem], others: OtherWays | None) -> int:
        """Takes in the memories of a packet, with what they measure in ways that did not score them; None if that was
        not logged. How many there were before."""
        start = len(self.own)
        features = _matrix(items, "features", len(FEATURE_NAMES))
        ways = np.full((len(items), len(self._names)), np.nan)
        if others is not None:
            for index, name in enumerate(self._names):
                if name in others.names:
                    ways[:, index] = others.values[:, others.names.index(name)]
                elif _scored_by(others.names, name):
                    ways[:, index] = features[:, _feature_of(name)]
            for index, name in enumerate(others.names):
                if name.endswith(f":{DEFAULT}"):  # another was scored, and stands in its place
                    features[:, _feature_of(name)] = others.values[:, index]
        self.own.add(own)
        self.features.add(features)
        self.raw.add(_matrix(items, "raw", len(RAW_NAMES)))
        self.ways.add(ways)
        return start


def _feature_of(way: str) -> int:
    return FEATURE_NAMES.index(way.partition(":")[0])


def _scored_by(others: Sequence[str], way: str) -> bool:
    """True if all ways of the feature but this one are the others."""
    feature = way.partition(":")[0]
    return [each for each in WAYS if each.startswith(f"{feature}:") and each not in others] == [way]


def hold(packet: Packet, names: dict[str, str], numbers: Numbers, pool_numbers: Numbers) -> Held:
    """`numbers` are segment, score, task fit, inclusion propensity, position probability, swapped; `pool_numbers`
    score, task fit, inclusion propensity. Features are in their default ways."""
    items, pool = packet.items, packet.undrawn
    order = sorted(range(len(pool)), key=lambda at: pool[at].memory_id)
    undrawn = tuple(pool[at] for at in order)
    of_items = of_undrawn = packet.other_ways
    if packet.other_ways is not None:
        names_of_ways, values = packet.other_ways.names, packet.other_ways.values
        of_items = OtherWays(names_of_ways, values[: len(items)])
        of_undrawn = OtherWays(names_of_ways, values[len(items) :][order])

    def once(text: str) -> str:
        """The same text object for equal texts: ids repeat in every packet."""
        return names.setdefault(text, text)

    def all_once(texts: list[str]) -> tuple[str, ...]:
        return tuple(map(names.setdefault, texts, texts))

    def budget(tokens: int | None) -> float:
        return np.nan if tokens is None else float(tokens)

    own = np.array(
        [
            (
                SEGMENTS.index(item.segment),
                item.score,
                item.task_fit,
                item.inclusion_propensity,
                item.position_probability,
                item.swapped,
            )
            for item in items
        ],
        np.float64,
    )
    pool_own = np.array([(item.score, item.task_fit, item.inclusion_propensity) for item in undrawn], np.float64)
    return Held(
        packet_id=packet.packet_id,
        namespace=once(packet.namespace),
        session=(once(packet.namespace), session_key(packet.session_id, packet.packet_id)),
        agent=once(packet.agent_id),
        surface=once(packet.surface),
        model_version=once(packet.model_version),
        exploration_policy=once(packet.exploration_policy),
        create_time=packet.create_time,
        pool_size=packet.reserve_pool_size,
        reserved_slots=packet.reserved_slots,
        budgets=(budget(packet.token_budget), budget(packet.ranked_budget), budget(packet.slot_budget)),
        memory_ids=all_once([item.memory_id for item in items]),
        kinds=all_once([item.kind for item in items]),
        start=numbers.add(own, items, of_items),
        pool_ids=all_once([item.memory_id for item in undrawn]),
        pool_kinds=all_once([item.kind for item in undrawn]),
        pool_start=pool_numbers.add(pool_own, undrawn, of_undrawn),
    )


def _matrix(items: Sequence[PacketItem | PoolItem], name: str, columns: int) -> Floats:
    """The numbers of all items, shape (n, columns). Copied: a view would keep the whole packet alive."""
    if not items:
        return np.empty((0, columns))
    return np.concatenate([getattr(item, name) for item in items], dtype=np.float64).reshape(len(items), columns)
