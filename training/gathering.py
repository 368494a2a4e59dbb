"""Packets of a log while its rows still come: of each only what a data set keeps, and all numbers in few pieces."""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sidecar.domain import Floats, Micros, Packet, PacketItem, PoolItem, Segment
from sidecar.features import FEATURE_NAMES, RAW_NAMES
from sidecar.store.packets import session_key

SEGMENTS = (Segment.RANKED, Segment.RESERVED, Segment.PINNED)
"""What the number of a segment indexes."""


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
        return np.frombuffer(data).reshape(-1, self._columns)[order]


class Numbers:
    """What is kept of memories in numbers: `own` are (n, k), `features` and `raw` as logged."""

    def __init__(self, own: int) -> None:
        self.own = _Rows(own)
        self.features = _Rows(len(FEATURE_NAMES))
        self.raw = _Rows(len(RAW_NAMES))

    def add(self, own: Floats, items: Sequence[PacketItem | PoolItem]) -> int:
        """Takes in the memories of a packet. How many there were before."""
        start = len(self.own)
        self.own.add(own)
        self.features.add(_matrix(items, "features", len(FEATURE_NAMES)))
        self.raw.add(_matrix(items, "raw", len(RAW_NAMES)))
        return start


def hold(packet: Packet, names: dict[str, str], numbers: Numbers, pool_numbers: Numbers) -> Held:
    """`numbers` are segment, score, task fit, inclusion propensity, position probability, swapped; `pool_numbers`
    score, task fit, inclusion propensity."""
    items, undrawn = packet.items, tuple(sorted(packet.undrawn, key=lambda each: each.memory_id))

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
        start=numbers.add(own, items),
        pool_ids=all_once([item.memory_id for item in undrawn]),
        pool_kinds=all_once([item.kind for item in undrawn]),
        pool_start=pool_numbers.add(pool_own, undrawn),
    )


def _matrix(items: Sequence[PacketItem | PoolItem], name: str, columns: int) -> Floats:
    """The numbers of all items, shape (n, columns). Copied: a view would keep the whole packet alive."""
    if not items:
        return np.empty((0, columns))
    return np.concatenate([getattr(item, name) for item in items], dtype=np.float64).reshape(len(items), columns)
