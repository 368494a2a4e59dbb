"""A request to rank, the packet that answers it, and what is reported of its use."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar, overload

import numpy as np
from numpy.typing import NDArray

from sidecar.domain.memories import NO_FILTER, Filter, Memory
from sidecar.domain.words import Channel, DegradationReason, EmptyReason, Floats, LeftOutReason, Micros, Segment


@dataclass(frozen=True, slots=True)
class Context:
    """What the agent works on beyond the task."""

    goals: tuple[str, ...] = ()
    projects: tuple[str, ...] = ()
    files: tuple[str, ...] = ()


NO_CONTEXT = Context()


@dataclass(frozen=True, slots=True)
class RankRequest:
    """A checked Rank request: every bound has been tested, every default filled in but those that need a store.

    `weights` names a preset or a model, or "" for the active weights; `explicit_weights` overrides it. `payload` is the
    serialised request without inline candidates, kept with the packet so that a miss can be explained later.
    """

    namespace: str
    task: str = ""
    session_id: str = ""
    agent_id: str = ""
    surface: str = ""
    task_embedding: NDArray[np.float32] | None = None
    context: Context = NO_CONTEXT
    candidates: tuple[Memory, ...] | None = None
    max_items: int = 10
    token_budget: int | None = None
    filter: Filter = NO_FILTER
    reserved_slots: int | None = None
    min_score: float | None = None
    weights: str = ""
    explicit_weights: Any = None
    as_of_time: Micros | None = None
    dry_run: bool = False
    request_id: str = ""
    item_wrapper: str = ""
    payload: bytes = b""
    payload_hash: bytes = b""


@dataclass(frozen=True, slots=True)
class PacketItem:
    """One memory in a packet, with all that the log keeps of it (LEARNING section 1).

    `features` and `contributions` are in the registry's order; `raw` holds the ages and counts behind the values, in
    the order of `sidecar.features.RAW_NAMES`. `task_fit` is the score without the use family, scaled into [0, 1].
    `kind` is the memory's as it was scored, "" in a log from before kinds were kept.
    """

    memory_id: str
    memory_key: int
    segment: Segment
    score: float
    contributions: Floats
    features: Floats
    raw: Floats
    tokens: int
    task_fit: float = 0.0
    inclusion_propensity: float = 1.0
    position_probability: float = 1.0
    swapped: bool = False
    kind: str = ""
    shadow_score: float | None = None
    shadow_contributions: Floats | None = None


@dataclass(frozen=True, slots=True)
class PoolItem:
    """A member of the reserve pool that was not drawn."""

    memory_id: str
    memory_key: int
    features: Floats
    raw: Floats
    tokens: int
    score: float
    task_fit: float
    inclusion_propensity: float
    kind: str = ""


Item = TypeVar("Item")


class _ByPlace(Sequence[Item]):
    """Items, each made from the columns when it is asked for."""

    __slots__ = ()

    def _item(self, at: int) -> Item:
        raise NotImplementedError

    @overload
    def __getitem__(self, at: int) -> Item: ...
    @overload
    def __getitem__(self, at: slice) -> Sequence[Item]: ...
    def __getitem__(self, at: int | slice) -> Item | Sequence[Item]:
        places = range(len(self))[at]
        return self._item(places) if isinstance(places, int) else tuple(map(self._item, places))


@dataclass(frozen=True, slots=True, eq=False)
class PacketItems(_ByPlace[PacketItem]):
    """The n memories of a packet as columns, by place: see PacketItem for what each holds.

    `contributions` and `features` have shape (n, d), `raw` has (n, r).
    """

    memory_ids: Sequence[str]
    memory_keys: Sequence[int]
    segments: Sequence[Segment]
    scores: Sequence[float]
    contributions: Floats
    features: Floats
    raw: Floats
    tokens: Sequence[int]
    task_fits: Sequence[float]
    inclusion_propensities: Sequence[float]
    position_probabilities: Sequence[float]
    swapped: Sequence[bool]
    kinds: Sequence[str]

    @staticmethod
    def of(items: Sequence[PacketItem]) -> PacketItems:
        """The same items as columns."""
        if isinstance(items, PacketItems):
            return items
        return PacketItems(
            memory_ids=[item.memory_id for item in items],
            memory_keys=[item.memory_key for item in items],
            segments=[item.segment for item in items],
            scores=[item.score for item in items],
            contributions=np.array([item.contributions for item in items], np.float64),
            features=np.array([item.features for item in items], np.float64),
            raw=np.array([item.raw for item in items], np.float64),
            tokens=[item.tokens for item in items],
            task_fits=[item.task_fit for item in items],
            inclusion_propensities=[item.inclusion_propensity for item in items],
            position_probabilities=[item.position_probability for item in items],
            swapped=[item.swapped for item in items],
            kinds=[item.kind for item in items],
        )

    def __len__(self) -> int:
        return len(self.memory_ids)

    def _item(self, at: int) -> PacketItem:
        return PacketItem(
            memory_id=self.memory_ids[at],
            memory_key=self.memory_keys[at],
            segment=self.segments[at],
            score=self.scores[at],
            contributions=self.contributions[at],
            features=self.features[at],
            raw=self.raw[at],
            tokens=self.tokens[at],
            task_fit=self.task_fits[at],
            inclusion_propensity=self.inclusion_propensities[at],
            position_probability=self.position_probabilities[at],
            swapped=self.swapped[at],
            kind=self.kinds[at],
        )


@dataclass(frozen=True, slots=True, eq=False)
class PoolItems(_ByPlace[PoolItem]):
    """The u members of a reserve pool that were not drawn, as columns in their order: see PoolItem for what each
    holds. `features` has shape (u, d), `raw` has (u, r)."""

    memory_ids: Sequence[str]
    memory_keys: Sequence[int]
    features: Floats
    raw: Floats
    tokens: Sequence[int]
    scores: Sequence[float]
    task_fits: Sequence[float]
    inclusion_propensities: Sequence[float]
    kinds: Sequence[str]

    @staticmethod
    def of(items: Sequence[PoolItem]) -> PoolItems:
        """The same items as columns."""
        if isinstance(items, PoolItems):
            return items
        return PoolItems(
            memory_ids=[item.memory_id for item in items],
            memory_keys=[item.memory_key for item in items],
            features=np.array([item.features for item in items], np.float64),
            raw=np.array([item.raw for item in items], np.float64),
            tokens=[item.tokens for item in items],
            scores=[item.score for item in items],
            task_fits=[item.task_fit for item in items],
            inclusion_propensities=[item.inclusion_propensity for item in items],
            kinds=[item.kind for item in items],
        )

    def __len__(self) -> int:
        return len(self.memory_ids)

    def _item(self, at: int) -> PoolItem:
        return PoolItem(
            memory_id=self.memory_ids[at],
            memory_key=self.memory_keys[at],
            features=self.features[at],
            raw=self.raw[at],
            tokens=self.tokens[at],
            score=self.scores[at],
            task_fit=self.task_fits[at],
            inclusion_propensity=self.inclusion_propensities[at],
            kind=self.kinds[at],
        )


@dataclass(frozen=True, slots=True)
class ShadowScores:
    """What a shadow model made of a packet without changing it: scores of the items by place and then of the undrawn,
    shape (n + u,), and the items' contributions, shape (n, d)."""

    version: str
    scores: Floats
    contributions: Floats


@dataclass(frozen=True, slots=True)
class OtherWays:
    """What the memories of a packet measure in the ways of their features that did not score them: `names` are
    feature:variant, `values` have shape (n + u, k), items by place and then the undrawn."""

    names: tuple[str, ...]
    values: Floats


@dataclass(frozen=True, slots=True)
class Packet:
    """The answer to one Rank, and what the log keeps of it. `packet_id` is "" where nothing is logged."""

    packet_id: str
    namespace: str
    items: Sequence[PacketItem]
    undrawn: Sequence[PoolItem]
    model_version: str
    feature_schema_hash: str
    exploration_policy: str
    score_version: int
    as_of_time: Micros
    create_time: Micros
    valid_until_time: Micros | None
    left_out: Mapping[LeftOutReason, int]
    degradations: tuple[tuple[DegradationReason, str], ...]
    empty_reason: EmptyReason | None
    reserve_pool_size: int
    pool_sizes: tuple[int, int]
    reserved_slots: int
    token_budget: int | None
    ranked_budget: int | None
    slot_budget: int | None
    agent_id: str = ""
    session_id: str = ""
    surface: str = ""
    request_id: str = ""
    payload: bytes = b""
    shadow: ShadowScores | None = None
    other_ways: OtherWays | None = None
    """None in a log from before they were kept."""
    newest_memory_key: int | None = None
    """Of the last memory that the namespace had been given; None as above, and in one from another store."""

    @property
    def tokens_used(self) -> int:
        """Tokens of all items."""
        items = self.items
        return sum(items.tokens if isinstance(items, PacketItems) else (item.tokens for item in items))


@dataclass(frozen=True, slots=True)
class UseReport:
    """A checked use report. `confidence` belongs to INFERRED, `outcome` to PACKET; `shown_memory_ids` empty = all."""

    packet_id: str
    namespace: str | None = None
    channel: Channel = Channel.EXPLICIT
    used_memory_ids: tuple[str, ...] = ()
    unused_memory_ids: tuple[str, ...] = ()
    shown_memory_ids: tuple[str, ...] = ()
    complete: bool = True
    outcome: float = 1.0
    confidence: float = 0.8
    sequence: int | None = None
    report_time: Micros | None = None
    agent_id: str = ""
    request_id: str = ""


@dataclass(frozen=True, slots=True)
class MemoryUse:
    """What is known of one memory's use in one packet on one channel, after merging (LEARNING section 2)."""

    memory_id: str
    channel: Channel
    used: bool
    confidence: float
    receive_time: Micros
