"""The serving road in one place: occasion, slots, packing, packet log, answer.

Effects are here and in what makes occasions, and nowhere else in ranking: they read snapshots, embed the task, ask the
clock and the dice for values, and log the packet before they answer.
"""

from __future__ import annotations

import contextlib
import secrets
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace

import numpy as np

from sidecar.domain import (
    DegradationReason,
    Memory,
    Micros,
    OtherWays,
    Packet,
    PacketItems,
    PoolItems,
    RankRequest,
    Segment,
)
from sidecar.errors import ModelRefusedError, StoreFullError
from sidecar.features import SCHEMA_HASH, Kept
from sidecar.ranking.occasion import Occasion, Occasions, wrapper_tokens
from sidecar.ranking.pipeline import (
    Limits,
    Packed,
    Reserve,
    arrange,
    asks_all,
    empty_reason,
    left_out_counts,
    pack,
    reserve,
)
from sidecar.ranking.priors import PriorsByVersion
from sidecar.ranking.reserved import Places, ReserveSettings, chance_of
from sidecar.ranking.shadow import shadow_scores
from sidecar.ranking.stages import LOG, PACK, Stopwatch
from sidecar.retrieval.embedding import Embedder
from sidecar.retrieval.namespaces import Namespaces
from sidecar.retrieval.part import Part
from sidecar.retrieval.snapshot import Snapshot, snapshot_of
from sidecar.store.requests import Once, Replayed
from sidecar.store.store import Store
from sidecar.weights import Weights, WeightsHolder

RECENT_PACKETS = 3
"""A memory that was drawn for a session is not drawn again in its next packets, this many."""


@dataclass(frozen=True, slots=True)
class RankAnswer:
    """A packet with what is needed to show it: `memories` by key for every item, and the weights that scored it.

    `kept` is for what follows from the memories as they are shown; None where they are shown just once.
    """

    packet: Packet
    memories: Mapping[int, Memory]
    weights: Weights
    replayed: bool = False
    kept: Kept | None = None


class Served(Mapping[int, Memory]):
    """The memories of some rows by key, read when one is first asked for. Raises what their source raises."""

    def __init__(self, snapshot: Snapshot | Part, rows: list[int]) -> None:
        self._snapshot = snapshot
        self._rows = rows
        self._keys: list[int] = snapshot.columns.key[rows].tolist()
        self._found: dict[int, Memory] | None = None

    def __getitem__(self, key: int) -> Memory:
        if self._found is None:
            self._found = dict(zip(self._keys, self._snapshot.memories.at(self._rows), strict=True))
        return self._found[key]

    def __iter__(self) -> Iterator[int]:
        return iter(self._keys)

    def __len__(self) -> int:
        return len(self._keys)


def random_packet_id() -> str:
    """A packet id that no one can guess: 128 random bits, as hexadecimal digits."""
    return secrets.token_hex(16)


class Ranker:
    """Ranks memories for tasks. Safe to call from many threads."""

    def __init__(
        self,
        store: Store,
        namespaces: Namespaces,
        embedder: Embedder,
        weights: WeightsHolder,
        clock: Callable[[], Micros],
        *,
        reserve_settings: ReserveSettings | None = None,
        emotion_namespaces: frozenset[str] = frozenset(),
        new_packet_id: Callable[[], str] = random_packet_id,
        priors: PriorsByVersion | None = None,
        exact_up_to: int = 0,
    ) -> None:
        """In a namespace of more than `exact_up_to` memories those are scored that could come to stand at the top; 0:
        always all. `priors` must hear of the store's changes before `namespaces` does; None means as they are now, for
        good."""
        self._store = store
        self._namespaces = namespaces
        self.weights = weights
        self._clock = clock
        self._reserve = reserve_settings or ReserveSettings()
        self._policy = self._reserve.policy
        self._new_packet_id = new_packet_id
        self._salt = store.salt
        priors = priors or PriorsByVersion(store.use_priors())
        self.occasions = Occasions(
            store, namespaces, embedder, weights, clock, self._reserve, emotion_namespaces, priors, exact_up_to
        )

    def rank(
        self,
        request: RankRequest,
        check: Callable[[], None],
        vet: Callable[[RankAnswer], None] = lambda _: None,
        watch: Stopwatch | None = None,
    ) -> RankAnswer:
        """Ranks, logs the packet, and answers. `check` raises once the caller's deadline has passed; `vet` may refuse
        an answer that cannot be sent, before it is logged as served; `watch` is told of the stages.

        Raises InvalidRequestError, UnknownWeightsError, RequestIdReusedError, DeadlineExceededError.
        """
        once, watch = None, watch or Stopwatch()
        if request.request_id and not request.dry_run:
            once = Once("Rank", request.request_id, request.payload_hash, lambda packet_id: packet_id.encode())
            known = self._store.answered(request.namespace, once, self._clock())
            if known is not None:
                return self._again(request, known)
        packet_id = "" if request.dry_run else self._new_packet_id()
        occasion = self.occasions.prepare(request, check, packet_id, watch)
        limits = occasion.limits()
        packed = pack(occasion.scored, limits, occasion.ranked)
        if asks_all(occasion.scored, limits, packed):
            occasion = self.occasions.prepare(request, check, packet_id, watch, explaining=True)
            packed = pack(occasion.scored, limits, occasion.ranked)
        answer = self._answer(occasion, limits, packed, packet_id)
        vet(answer)
        check()
        watch.lap(PACK)
        if request.dry_run:
            return answer
        try:
            logged = self._store.log_packet(answer.packet, once)
            watch.lap(LOG)
        except StoreFullError as full:
            # Ranking goes on without its log; but a draw that is not logged would spoil the propensities.
            notice = (DegradationReason.LOG_UNAVAILABLE, f"{full.message}. This packet cannot be reported on.")
            undrawn = replace(
                occasion,
                request=replace(request, dry_run=True),
                degradations=(*occasion.degradations, notice),
            )
            limits = undrawn.limits()
            return self._answer(undrawn, limits, pack(undrawn.scored, limits, undrawn.ranked), "")
        if isinstance(logged, Replayed):  # another call with the same request_id was faster
            return self._again(request, logged)
        return answer

    def replay(self, namespace: str, packet_id: str) -> RankAnswer:
        """A packet as it was logged, with each memory as it is now; of one that was deleted since, or has grown beyond
        the tokens that were charged for it, only the id is left."""
        packet = self._store.get_packet(namespace, packet_id).packet
        return self._as_logged(packet, self._namespaces.get(namespace), None, 0)

    def snapshot(self, namespace: str) -> Snapshot:
        """The namespace as it is now."""
        return self._namespaces.get(namespace)

    def _again(self, request: RankRequest, known: Replayed) -> RankAnswer:
        """The answer to a request that was answered before. Of a caller's own list the store knows only ids, and of
        weights that came with it only their effect; the repeated request brings both."""
        packet = self._store.get_packet(request.namespace, known.response.decode()).packet
        own = request.candidates
        snapshot = self._namespaces.get(request.namespace) if own is None else snapshot_of(own)
        return self._as_logged(packet, snapshot, request.explicit_weights, wrapper_tokens(request))

    def _as_logged(
        self, packet: Packet, snapshot: Snapshot, weights: Weights | None, wrapper_tokens: int
    ) -> RankAnswer:
        memories = {}
        for item in packet.items:
            row = snapshot.row_of_id.get(item.memory_id)
            memory = snapshot.memories[row] if row is not None else None
            if memory is None or memory.key != item.memory_key or memory.tokens + wrapper_tokens > item.tokens:
                # Deleted since; or rewritten, and longer than what the packet's budget was charged for.
                memory = Memory(id=item.memory_id, content="", kind="")
            memories[item.memory_key] = memory
        if weights is None:
            with contextlib.suppress(ModelRefusedError):  # what it made is logged, and shown all the same
                weights = self.weights.find(packet.model_version, packet.namespace)
            weights = weights or self.weights.active_for(packet.namespace)
        return RankAnswer(packet, memories, weights, replayed=True)

    def _answer(self, occasion: Occasion, limits: Limits, packed: Packed, packet_id: str) -> RankAnswer:
        request, scored = occasion.request, occasion.scored
        drawn_from = Reserve()
        chance = chance_of(self._salt, packet_id, self._policy)
        if limits.slots:
            recent = self._store.recent_reserved(request.namespace, request.session_id, RECENT_PACKETS)
            drawn_from = reserve(scored, packed, limits, recent, chance, self._reserve)
        swap_within = self._reserve.swap_within if packet_id else 0.0  # what is not logged teaches nothing
        rows, places = arrange(packed, drawn_from.drawn, chance, scored.score, swap_within)
        items, undrawn, others = _log_rows(occasion, packed, drawn_from, rows, places)
        shadow = None
        if packet_id and occasion.shadow is not None:
            drawn = set(drawn_from.drawn)
            shadow = shadow_scores(*occasion.shadow, rows, [row for row in drawn_from.rows if row not in drawn])
        snapshot = occasion.snapshot
        packet = Packet(
            packet_id=packet_id,
            namespace=request.namespace,
            items=items,
            undrawn=undrawn,
            model_version=occasion.weights.version,
            feature_schema_hash=SCHEMA_HASH,
            exploration_policy=self._policy,
            score_version=snapshot.score_version,
            as_of_time=occasion.as_of_time,
            create_time=self._clock(),
            valid_until_time=snapshot.next_expiry(occasion.as_of_time),
            left_out=left_out_counts(scored, packed, drawn_from.drawn),
            degradations=occasion.degradations,
            empty_reason=None if rows else empty_reason(scored, packed),
            reserve_pool_size=len(drawn_from.rows),
            pool_sizes=drawn_from.pool_sizes,
            reserved_slots=limits.slots,
            token_budget=request.token_budget,
            ranked_budget=packed.budgets.ranked,
            slot_budget=packed.budgets.slot,
            agent_id=request.agent_id,
            session_id=request.session_id,
            surface=request.surface,
            request_id=request.request_id,
            payload=request.payload,
            shadow=shadow,
            other_ways=others,
            newest_memory_key=snapshot.newest_key,
        )
        return RankAnswer(packet, Served(occasion.ranked, rows), occasion.weights, kept=snapshot.kept_of_memories)


def _log_rows(
    occasion: Occasion, packed: Packed, drawn_from: Reserve, rows: list[int], places: Places
) -> tuple[PacketItems, PoolItems, OtherWays]:
    """What the log keeps of every served memory, by place, and of the pool members that were not drawn; and of both in
    that order, what they measure in other ways."""
    scored, columns = occasion.scored, occasion.scored.columns
    propensity = dict(zip(drawn_from.rows, drawn_from.outcome.inclusion_propensity.tolist(), strict=True))
    drawn = drawn_from.drawn
    undrawn = [row for row in drawn_from.rows if row not in drawn]
    n, every = len(rows), rows + undrawn
    segments = [Segment.RANKED] * n
    chances = [1.0] * n
    if packed.pinned.rows:
        pinned = set(packed.pinned.rows)
        segments = [Segment.PINNED if row in pinned else Segment.RANKED for row in rows]
    for at in places.drawn:
        segments[at] = Segment.RESERVED
        chances[at] = propensity[rows[at]]
    taken = np.array(every, dtype=np.intp)
    ids = occasion.ranked.ids_at(every)
    keys, scores, fits, tokens, kinds = (
        column.take(taken).tolist()
        for column in (columns.key, scored.score, scored.task_fit, scored.tokens, columns.kind)
    )
    kinds = list(map(columns.kinds.__getitem__, kinds))
    details = scored.at(every)
    items = PacketItems(
        memory_ids=ids[:n],
        memory_keys=keys[:n],
        segments=segments,
        scores=scores[:n],
        contributions=details.contributions[:n],
        features=details.features[:n],
        raw=details.raw[:n],
        tokens=tokens[:n],
        task_fits=fits[:n],
        inclusion_propensities=chances,
        position_probabilities=places.probability,
        swapped=[places.swapped and number < 2 for number in range(n)],
        kinds=kinds[:n],
    )
    pool = PoolItems(
        memory_ids=ids[n:],
        memory_keys=keys[n:],
        features=details.features[n:],
        raw=details.raw[n:],
        tokens=tokens[n:],
        scores=scores[n:],
        task_fits=fits[n:],
        inclusion_propensities=[propensity[row] for row in undrawn],
        kinds=kinds[n:],
    )
    return items, pool, occasion.other_ways(taken, details)
