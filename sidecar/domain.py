"""The words of the product as plain data: what the roads carry between the store, the ranking and the wire.

Knows no grpc, no SQL and no FAISS. Times are whole microseconds since 1970-01-01 UTC (`Micros`): one clock for every
road, so that a host's time zone can never enter an age. Scores and feature values are float64.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, TypeVar, overload

import numpy as np
from numpy.typing import NDArray

Micros = int
Floats = NDArray[np.float64]

SECOND: Micros = 1_000_000
MINUTE: Micros = 60 * SECOND
DAY: Micros = 86_400 * SECOND

KNOWN_KINDS = (
    "decision",
    "fact",
    "preference",
    "failure",
    "attempt",
    "debugging",
    "semantic",
    "episodic",
    "procedural",
    "working",
    "archival",
)
DEFAULT_KIND = "fact"


class Segment(StrEnum):
    """The part of a packet a memory stands in."""

    RANKED = "ranked"
    RESERVED = "reserved"
    PINNED = "pinned"


class Channel(StrEnum):
    """How a use came to be known, strongest first."""

    EXPLICIT = "explicit"
    INFERRED = "inferred"
    PACKET = "packet"
    ECHO = "echo"


class ReportState(StrEnum):
    """How a packet stands with respect to reports."""

    OPEN = "open"
    REPORTED = "reported"
    UNREPORTED = "unreported"
    LATE = "late"


class Rating(StrEnum):
    """A rater's mark on a memory; WITHDRAWN takes an earlier one back."""

    HELPFUL = "helpful"
    UNHELPFUL = "unhelpful"
    WITHDRAWN = "withdrawn"


class LeftOutReason(StrEnum):
    """Why a memory is not in a packet, in the order in which the gates stand."""

    FILTERED = "filtered"
    SUPPRESSED = "suppressed"
    RATED_UNHELPFUL = "rated_unhelpful"
    EXPIRED = "expired"
    NOT_YET_VALID = "not_yet_valid"
    SUPERSEDED = "superseded"
    NOT_A_CANDIDATE = "not_a_candidate"
    BELOW_MIN_SCORE = "below_min_score"
    NEAR_DUPLICATE = "near_duplicate"
    OVERSIZED = "oversized"
    BUDGET = "budget"
    OUTRANKED = "outranked"


class EmptyReason(StrEnum):
    """Why a packet has no items."""

    NO_MEMORIES = "no_memories"
    FILTERED = "filtered"
    BELOW_MIN_SCORE = "below_min_score"
    BUDGET = "budget"


class DegradationReason(StrEnum):
    """Something that was not done as well as usual; the answer still holds."""

    LOG_UNAVAILABLE = "log_unavailable"
    NO_EMBEDDING = "no_embedding"
    TASK_SHORTENED = "task_shortened"
    MODEL_FALLBACK = "model_fallback"


class WriteOutcome(StrEnum):
    """What a write did to one memory."""

    CREATED = "created"
    UPDATED = "updated"
    UNCHANGED = "unchanged"
    DELETED = "deleted"


@dataclass(frozen=True, slots=True)
class Memory:
    """One memory as it stands. Field by field as in `memoryranker.v1.Memory`.

    `key` is the store's own number for it, never reused: a memory that is deleted and written again under the same id
    has a new key and so inherits nothing. `tokens` is what a packet is charged for the content: `token_count` if the
    caller brought it, else the server's count.
    """

    id: str
    content: str
    kind: str = DEFAULT_KIND
    create_time: Micros = 0
    update_time: Micros = 0
    valid_from_time: Micros | None = None
    valid_until_time: Micros | None = None
    superseded_by: str = ""
    source_thread: str = ""
    source_sequence: int | None = None
    subject: str = ""
    tags: tuple[str, ...] = ()
    metadata: Mapping[str, Any] = field(default_factory=dict)
    relevance: float | None = None
    importance_override: float | None = None
    emotion: float | None = None
    pinned: bool = False
    suppressed: bool = False
    token_count: int | None = None
    embedding: NDArray[np.float32] | None = None
    key: int = 0
    tokens: int = 0
    importance_content: float | None = None
    importance_use: float | None = None
    helpful: int = 0
    unhelpful: int = 0


@dataclass(frozen=True, slots=True)
class ImportanceLine:
    """One line of an importance's breakdown: value in [0, 1], None if it is absent; what it adds to the score. A factor
    with a dot is a part of the line of the signal before the dot."""

    factor: str
    value: float | None
    weight: float
    contribution: float

    @property
    def is_part(self) -> bool:
        """True for a part of a signal: it is already in that signal's contribution."""
        return "." in self.factor


def summed(lines: Iterable[ImportanceLine]) -> float:
    """The contributions of the lines that are no parts of a signal, from first to last, as a reader adds up."""
    total = 0.0
    for line in lines:
        if not line.is_part:
            total += line.contribution
    return total


class PartName(StrEnum):
    """The three stored parts of an importance."""

    CONTENT = "content"
    USE = "use"
    USER = "user"


@dataclass(frozen=True, slots=True)
class ImportancePart:
    """How a stored part of an importance came about: how sure it is, in [0, 1], when it was worked out, what moved it,
    in words, and its breakdown. Holds no word of a memory's text."""

    confidence: float
    time: Micros
    factors: tuple[str, ...] = ()
    lines: tuple[ImportanceLine, ...] = ()

    @property
    def score(self) -> float:
        """The sum of the lines."""
        return summed(self.lines)


def closing(reached: float, wanted: float) -> float:
    """The contribution that brings the sum to `wanted` to the last bit, where floating point has one."""
    apart = wanted - reached
    for candidate in (apart, math.nextafter(apart, math.inf), math.nextafter(apart, -math.inf)):
        if reached + candidate == wanted:
            return candidate
    return apart


SCORED_FIELDS = ("content", "kind", "subject", "tags", "metadata", "emotion", "superseded_by", "source_thread")
"""Fields of a memory that the content part of its importance follows from."""


@dataclass(frozen=True, slots=True)
class ScoredContent:
    """The content part of `memory`'s importance, worked out before the write. `outdated` are ids of memories that were
    there before and that it contradicts: they are to be scored anew."""

    memory: Memory
    part: ImportancePart
    outdated: tuple[str, ...] = ()

    def holds_for(self, memory: Memory) -> bool:
        """True if it follows from the memory as it stands."""
        return says_the_same(self.memory, memory)


def says_the_same(one: Memory, other: Memory) -> bool:
    """True if two states of a memory have the same content part of an importance, the neighbours being the same."""
    return all(getattr(one, name) == getattr(other, name) for name in SCORED_FIELDS)


@dataclass(frozen=True, slots=True)
class UseCounts:
    """What use says of one memory (LEARNING section 4), over distinct sessions.

    `used` is U and `seen` is V, so 0 <= used <= seen; `use_sessions` are the sessions that used it (also from
    incomplete reports), `reported_sessions` those with seen > 0; `last_use_time` is None before the first use.
    """

    used: float = 0.0
    seen: float = 0.0
    use_sessions: int = 0
    reported_sessions: int = 0
    last_use_time: Micros | None = None


@dataclass(frozen=True, slots=True)
class Filter:
    """Which memories may take part; empty parts do not restrict. See `memoryranker.v1.Filter`."""

    kinds: frozenset[str] = frozenset()
    any_tags: frozenset[str] = frozenset()
    all_tags: frozenset[str] = frozenset()
    metadata_equals: Mapping[str, Any] = field(default_factory=dict)
    create_time_from: Micros | None = None
    create_time_until: Micros | None = None
    update_time_from: Micros | None = None
    update_time_until: Micros | None = None
    ids: frozenset[str] = frozenset()
    exclude_ids: frozenset[str] = frozenset()
    source_threads: frozenset[str] = frozenset()
    subjects: frozenset[str] = frozenset()

    @property
    def is_empty(self) -> bool:
        """True if it restricts nothing."""
        return self is NO_FILTER or self == NO_FILTER


NO_FILTER = Filter()


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
    payload_hash: bytes = b""


@dataclass(frozen=True, slots=True)
class MemoryUse:
    """What is known of one memory's use in one packet on one channel, after merging (LEARNING section 2)."""

    memory_id: str
    channel: Channel
    used: bool
    confidence: float
    receive_time: Micros


@dataclass(frozen=True, slots=True)
class NamespaceState:
    """Everything of one namespace that ranking needs, as of one score version."""

    namespace: str
    score_version: int
    memories: tuple[Memory, ...]
    uses: Mapping[int, UseCounts]
    """By memory key; a memory without an entry has UseCounts()."""


@dataclass(frozen=True, slots=True)
class IndexedState:
    """How a namespace stands to the index file that was kept of it, as of one moment. `index_version` is the score
    version of the file, `change` all that was written since; `ids` are those of all memories, by key."""

    file: str
    index_version: int
    change: Change
    ids: Mapping[int, str]


@dataclass(frozen=True, slots=True)
class UsePriors:
    """(mu, kappa) of the use rate by kind, and the score version of each namespace that they begin with."""

    priors: Mapping[str, tuple[float, float]]
    since: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class Change:
    """What one committed write changed in a namespace. Changes of a namespace arrive in the order of score_version,
    which grows by one with each.

    `upserted` memories replace those of the same key; `uses`, `ratings` ((helpful, unhelpful)), `importance_contents`
    and `importance_uses` (parts of an importance) are the new standing by memory key. `use_priors` are set where a
    rescore moved them.
    """

    namespace: str
    score_version: int
    upserted: tuple[Memory, ...] = ()
    deleted_keys: tuple[int, ...] = ()
    uses: Mapping[int, UseCounts] = field(default_factory=dict)
    ratings: Mapping[int, tuple[int, int]] = field(default_factory=dict)
    purged: bool = False
    importance_contents: Mapping[int, float | None] = field(default_factory=dict)
    importance_uses: Mapping[int, float | None] = field(default_factory=dict)
    replaced: tuple[Memory, ...] = ()
    """Memories as they stood before, of those that were deleted or rewritten; not all of them after a purge."""
    use_priors: UsePriors | None = None
