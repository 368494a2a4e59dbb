"""The serving road in one place: candidates, features, weights, slots, packing, packet log, answer.

Effects are here and nowhere else in ranking: it reads snapshots, embeds the task, asks the clock and the dice for
values, and logs the packet before it answers.
"""

from __future__ import annotations

import contextlib
import secrets
import unicodedata
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from sidecar.domain import (
    DegradationReason,
    LeftOutReason,
    Memory,
    Micros,
    Packet,
    PacketItems,
    PoolItems,
    RankRequest,
    Segment,
)
from sidecar.errors import ModelRefusedError, StoreFullError
from sidecar.features import SCHEMA_HASH, Kept, View
from sidecar.ranking.candidates import Task, candidates_of, part_with, standing_amounts
from sidecar.ranking.gates import PASSED, Gates, gate_codes
from sidecar.ranking.long_task import HEAD_CHARS, TAIL_CHARS, both_ends, is_too_long
from sidecar.ranking.pipeline import (
    Limits,
    Packed,
    Reserve,
    Scored,
    arrange,
    empty_reason,
    left_out_counts,
    pack,
    reserve,
    score,
)
from sidecar.ranking.priors import PriorsByVersion
from sidecar.ranking.reserved import Places, ReserveSettings, chance_of, default_slots
from sidecar.ranking.shadow import score_beside, shadow_scores
from sidecar.ranking.stages import EMBED, LOG, MATCH, PACK, SCORE, Stopwatch
from sidecar.ranking.standing import gates_at, standing
from sidecar.ranking.tokens import count_tokens
from sidecar.retrieval.embedding import Embedder, TaskVector
from sidecar.retrieval.namespaces import Namespaces
from sidecar.retrieval.part import Part
from sidecar.retrieval.snapshot import Snapshot, snapshot_of
from sidecar.store.requests import Once, Replayed
from sidecar.store.store import Store
from sidecar.weights import Weights, WeightsHolder

RECENT_PACKETS = 3
"""A memory that was drawn for a session is not drawn again in its next packets, this many."""
FEWEST_CANDIDATES = 200
"""Of fewer no packet may be full: then all memories that pass the gates are scored."""


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


@dataclass(frozen=True, slots=True)
class Occasion:
    """A request and everything it is ranked with: from here on, packing is a pure function."""

    request: RankRequest
    snapshot: Snapshot
    ranked: Snapshot | Part
    """What was scored: all of the snapshot, or a part of it."""
    candidates: NDArray[np.int32] | None
    """The rows of the snapshot that are scored to serve the request, None for all."""
    scored: Scored
    """Its rows are those of `ranked`."""
    weights: Weights
    shadow: tuple[Weights, Scored] | None
    """What a shadow model makes of the same."""
    as_of_time: Micros
    degradations: tuple[tuple[DegradationReason, str], ...]

    def limits(self) -> Limits:
        """The request's limits. Slots default by packet size, and to none for a caller's own list: only memories that
        are stored have a use to be learned."""
        request = self.request
        slots = request.reserved_slots
        if slots is None:
            slots = default_slots(request.max_items) if request.candidates is None else 0
        if request.dry_run:
            slots = 0
        return Limits(request.max_items, request.token_budget, slots, request.min_score)


def says_something(task: str) -> bool:
    """False for a blank task, and for one of punctuation or of characters that cannot be seen, of which an embedder
    would still make a vector."""
    return any(c.isalnum() or unicodedata.category(c) == "So" for c in task)


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
        self._embedder = embedder
        self.weights = weights
        self._clock = clock
        self._reserve = reserve_settings or ReserveSettings()
        self._policy = self._reserve.policy
        self._emotion = emotion_namespaces
        self._new_packet_id = new_packet_id
        self._exact_up_to = exact_up_to
        self._salt = store.salt
        self._priors = priors or PriorsByVersion(store.use_priors())

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
        occasion = self.prepare(request, check, packet_id, watch)
        answer = self._answer(occasion, packet_id)
        if not answer.packet.items and LeftOutReason.NOT_A_CANDIDATE in answer.packet.left_out:
            # None of the candidates can be served, by their size or by min_score: before that is said, all are asked.
            occasion = self.prepare(request, check, packet_id, watch, explaining=True)
            answer = self._answer(occasion, packet_id)
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
            notice = (DegradationReason.LOG_UNAVAILABLE, f"{full.message} This packet cannot be reported on.")
            undrawn = replace(
                occasion,
                request=replace(request, dry_run=True),
                degradations=(*occasion.degradations, notice),
            )
            return self._answer(undrawn, "")
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
        return self._as_logged(packet, snapshot, request.explicit_weights, _wrapper_tokens(request))

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

    def prepare(
        self,
        request: RankRequest,
        check: Callable[[], None],
        packet_id: str = "",
        watch: Stopwatch | None = None,
        explaining: bool = False,
    ) -> Occasion:
        """Finds and scores the candidates of a request; draws and logs nothing. A request without session is a session
        of its own, named by its `packet_id`. For `explaining`, all memories are scored, whatever the size."""
        as_of = self._clock() if request.as_of_time is None else request.as_of_time
        degradations: list[tuple[DegradationReason, str]] = []
        task = request.task if says_something(request.task) else ""
        if is_too_long(task):
            task = both_ends(task)
            degradations.append(
                (
                    DegradationReason.TASK_SHORTENED,
                    f"task has {len(request.task):,} characters: of the first {HEAD_CHARS:,} and last {TAIL_CHARS:,} "
                    "the questions were read, or each kind of line once. Say what is asked in fewer.",
                )
            )
        watch = watch or Stopwatch()
        snapshot = self._snapshot(request, as_of)
        check()
        vector = self._task_vector(request, task, snapshot)
        if vector is None and task:
            degradations.append(
                (
                    DegradationReason.NO_EMBEDDING,
                    "no embedder is set and the task has no embedding, so semantic is 0. Send task_embedding, or start "
                    "the server with --embedder wordllama.",
                )
            )
        check()
        watch.lap(EMBED)
        # After the snapshot: what is scored by weights of before a swap must not bear the score version of after it.
        weights, shadow = self._weights_for(request, packet_id, degradations)
        text = snapshot.match_text(task, request.context, vector.trust if vector else 1.0)
        gates = _gates(request, snapshot, as_of)
        numbers = vector and vector.numbers
        candidates = self._candidates(request, snapshot, Task(text, numbers, weights), gates, explaining)
        ranked: Snapshot | Part = snapshot
        if candidates is not None and not explaining:
            ranked, gates = part_with(snapshot, candidates, gates)
        text = ranked.with_vectors(text, numbers)
        watch.lap(MATCH)
        view = View(
            columns=ranked.columns,
            text=text,
            as_of_time=as_of,
            half_life_days=weights.half_life_days,
            use_prior=self._priors.of(request.namespace, snapshot.score_version),
            emotion_enabled=request.namespace in self._emotion,
            variants=weights.variants,
            kept=ranked.kept_of_texts,
        )
        known = standing(ranked, view, weights)
        scored = score(view, gates, known, weights, _wrapper_tokens(request))
        beside = None if shadow is None else (shadow, score_beside(scored, view, ranked, shadow))
        check()
        watch.lap(SCORE)
        return Occasion(request, snapshot, ranked, candidates, scored, weights, beside, as_of, tuple(degradations))

    def _candidates(
        self, request: RankRequest, snapshot: Snapshot, task: Task, gates: Gates, explaining: bool
    ) -> NDArray[np.int32] | None:
        """The rows to be scored, None for all: in a small namespace, for a time in the past and for weights that came
        with the request, and until what chooses is ready."""
        if not self._exact_up_to or snapshot.live_count <= self._exact_up_to or request.candidates is not None:
            return None
        if request.explicit_weights is not None or (request.as_of_time is not None and not explaining):
            return None
        passed = len(gates.pinned) + len(gates.others)
        allowed = np.flatnonzero(gates.codes == PASSED).astype(np.int32)
        if passed <= max(self._exact_up_to, snapshot.live_count // 2):
            # What chooses looks at rows before their gates: where few pass, it would look in the wrong places.
            return allowed
        near, weights, namespace = snapshot.contents.near, task.weights, request.namespace
        emotion = namespace in self._emotion

        def make(then: Snapshot) -> NDArray[np.float32]:
            prior = self._priors.of(namespace, then.score_version)
            return standing_amounts(weights, prior, emotion, self._clock(), then)

        standings = near.want((id(weights), emotion), make)
        if standings is None or near.cells is None:
            return None
        found = candidates_of(snapshot, task, gates, standings, self._reserve.min_reported_sessions)
        return found if len(found) >= FEWEST_CANDIDATES else allowed

    def _weights_for(
        self, request: RankRequest, packet_id: str, degradations: list[tuple[DegradationReason, str]]
    ) -> tuple[Weights, Weights | None]:
        """The weights that score the request, and those of the shadow beside them. A choice of its own has no shadow,
        and is no canary's."""
        if request.explicit_weights is not None:
            return request.explicit_weights, None
        if request.weights:
            try:
                return self.weights.named(request.weights, request.namespace), None
            except ModelRefusedError as refused:
                notice = f"the model {request.weights} cannot serve ({'; '.join(refused.faults)}); the active one did"
                degradations.append((DegradationReason.MODEL_FALLBACK, notice))
        session = f"s:{request.session_id}" if request.session_id else packet_id and f"p:{packet_id}"
        return self.weights.serving(request.namespace, session, self._salt)

    def _snapshot(self, request: RankRequest, as_of: Micros) -> Snapshot:
        if request.candidates is not None:
            missing = [i for i, memory in enumerate(request.candidates) if memory.embedding is None]
            vectors = self._embedder.embed([request.candidates[i].content for i in missing])
            candidates = list(request.candidates)
            if self._embedder.dimension:
                for i, vector in zip(missing, vectors, strict=True):
                    candidates[i] = replace(candidates[i], embedding=vector)
            return snapshot_of(candidates)
        snapshot = self._namespaces.get(request.namespace)
        if request.as_of_time is not None and as_of < self._clock():
            # Ranking for a past time must not know of uses that were reported later.
            return snapshot.with_uses(self._store.use_counts_as_of(request.namespace, as_of))
        return snapshot

    def _task_vector(self, request: RankRequest, task: str, snapshot: Snapshot) -> TaskVector | None:
        if request.task_embedding is not None:
            return TaskVector(request.task_embedding)
        if not self._embedder.dimension or not task:
            return None
        return snapshot.task_vector(task, self._embedder)

    def _answer(self, occasion: Occasion, packet_id: str) -> RankAnswer:
        request, scored, limits = occasion.request, occasion.scored, occasion.limits()
        packed = pack(scored, limits, occasion.ranked)
        drawn_from = Reserve()
        chance = chance_of(self._salt, packet_id, self._policy)
        if limits.slots:
            recent = self._store.recent_reserved(request.namespace, request.session_id, RECENT_PACKETS)
            drawn_from = reserve(scored, packed, limits, recent, chance, self._reserve)
        swap_within = self._reserve.swap_within if packet_id else 0.0  # what is not logged teaches nothing
        rows, places = arrange(packed, drawn_from.drawn, chance, scored.score, swap_within)
        items, undrawn = _log_rows(occasion, packed, drawn_from, rows, places)
        budgets = limits.budgets
        shadow = None
        if packet_id and occasion.shadow is not None:
            drawn = set(drawn_from.drawn)
            shadow = shadow_scores(*occasion.shadow, rows, [row for row in drawn_from.rows if row not in drawn])
        packet = Packet(
            packet_id=packet_id,
            namespace=request.namespace,
            items=items,
            undrawn=undrawn,
            model_version=occasion.weights.version,
            feature_schema_hash=SCHEMA_HASH,
            exploration_policy=self._policy,
            score_version=occasion.snapshot.score_version,
            as_of_time=occasion.as_of_time,
            create_time=self._clock(),
            valid_until_time=occasion.snapshot.next_expiry(occasion.as_of_time),
            left_out=left_out_counts(scored, packed, drawn_from.drawn),
            degradations=occasion.degradations,
            empty_reason=None if rows else empty_reason(scored, packed),
            reserve_pool_size=len(drawn_from.rows),
            pool_sizes=drawn_from.pool_sizes,
            reserved_slots=limits.slots,
            token_budget=request.token_budget,
            ranked_budget=budgets.ranked,
            slot_budget=budgets.slot,
            agent_id=request.agent_id,
            session_id=request.session_id,
            surface=request.surface,
            request_id=request.request_id,
            payload=request.payload,
            shadow=shadow,
        )
        snapshot = occasion.snapshot
        return RankAnswer(packet, Served(occasion.ranked, rows), occasion.weights, kept=snapshot.kept)


def _log_rows(
    occasion: Occasion, packed: Packed, drawn_from: Reserve, rows: list[int], places: Places
) -> tuple[PacketItems, PoolItems]:
    """What the log keeps of every served memory, by place, and of the pool members that were not drawn."""
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
    return items, pool


def _gates(request: RankRequest, snapshot: Snapshot, as_of: Micros) -> Gates:
    if request.filter.is_empty and request.as_of_time is None:
        return gates_at(snapshot, as_of)
    columns = snapshot.columns
    allowed = None if request.filter.is_empty else snapshot.filter_mask(request.filter)
    codes = gate_codes(columns, allowed, snapshot.superseded_at(as_of, request.as_of_time), as_of, request.as_of_time)
    return Gates.of(codes, columns)


def _wrapper_tokens(request: RankRequest) -> int:
    return count_tokens(request.item_wrapper) if request.item_wrapper else 0
