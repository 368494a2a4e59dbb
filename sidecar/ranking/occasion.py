"""What a request is ranked with: snapshot, candidates, weights and scores. Nothing is drawn or logged here."""

from __future__ import annotations

import unicodedata
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
from numpy.typing import NDArray

from sidecar.domain import DegradationReason, Memory, Micros, OtherWays, Packet, RankRequest
from sidecar.errors import ModelRefusedError
from sidecar.features import FEATURE_NAMES, OTHERS_KNOWN, View, other_ways_at
from sidecar.ranking.candidates import Task, candidates_of, part_with, standing_amounts
from sidecar.ranking.gates import PASSED, Gates, gate_codes
from sidecar.ranking.long_task import HEAD_CHARS, TAIL_CHARS, both_ends, is_too_long
from sidecar.ranking.pipeline import Limits, Scored, score
from sidecar.ranking.priors import PriorsByVersion
from sidecar.ranking.reserved import ReserveSettings, default_slots
from sidecar.ranking.shadow import score_beside
from sidecar.ranking.stages import EMBED, MATCH, SCORE, Stopwatch
from sidecar.ranking.standing import Details, gates_at, standing
from sidecar.ranking.tokens import count_tokens
from sidecar.retrieval.embedding import Embedder, TaskVector
from sidecar.retrieval.namespaces import Namespaces
from sidecar.retrieval.part import Part
from sidecar.retrieval.snapshot import Snapshot, snapshot_of
from sidecar.retrieval.vectors import quantised
from sidecar.store.store import Store
from sidecar.weights import Weights, WeightsHolder

FEWEST_CANDIDATES = 200
"""Of fewer no packet may be full: then all memories that pass the gates are scored."""


@dataclass(frozen=True, slots=True)
class Occasion:
    """A request and everything it is ranked with: from here on, packing is a pure function."""

    request: RankRequest
    snapshot: Snapshot
    ranked: Snapshot | Part
    """What was scored: all of the snapshot, or a part of it."""
    candidates: NDArray[np.int32] | None
    """The rows of the snapshot that are scored to serve the request, None for all."""
    choose: Callable[[Gates], NDArray[np.int32] | None]
    """What they would be behind other gates."""
    view: View
    """What the features read to score it. Its rows are those of `ranked`."""
    scored: Scored
    weights: Weights
    shadow: tuple[Weights, Scored] | None
    """What a shadow model makes of the same."""
    as_of_time: Micros
    known: NDArray[np.bool_] | None
    """The rows of the snapshot that had been learned by then, None for all."""
    degradations: tuple[tuple[DegradationReason, str], ...]

    @property
    def counts_importance(self) -> bool:
        """True if scores have a share of importances that the server works out."""
        index = FEATURE_NAMES.index("importance")
        return self.request.candidates is None and index in self.weights.weighted

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

    def other_ways(self, rows: NDArray[np.intp], known: Details) -> OtherWays:
        """What rows of the view, in any order, measure in ways that did not score them; `known` is all else of them."""
        of_task = other_ways_at(self.view, rows)
        values = np.empty((len(rows), OTHERS_KNOWN + len(of_task)))
        values[:, :OTHERS_KNOWN] = known.other_ways
        for index, column in enumerate(of_task.values(), OTHERS_KNOWN):
            values[:, index] = column
        return OtherWays((*self.scored.standing.other_ways, *of_task), values)


def says_something(task: str) -> bool:
    """False for a blank task, and for one of punctuation or of characters that cannot be seen, of which an embedder
    would still make a vector."""
    return any(c.isalnum() or unicodedata.category(c) == "So" for c in task)


class Occasions:
    """Reads, matches and scores what a request is ranked with. Safe to call from many threads."""

    def __init__(
        self,
        store: Store,
        namespaces: Namespaces,
        embedder: Embedder,
        weights: WeightsHolder,
        clock: Callable[[], Micros],
        reserve: ReserveSettings,
        emotion_namespaces: frozenset[str],
        priors: PriorsByVersion,
        exact_up_to: int,
    ) -> None:
        """As for a Ranker."""
        self._store = store
        self._namespaces = namespaces
        self._embedder = embedder
        self._weights = weights
        self._clock = clock
        self._reserve = reserve
        self._emotion = emotion_namespaces
        self._priors = priors
        self._exact_up_to = exact_up_to
        self._salt = store.salt

    def prepare(
        self,
        request: RankRequest,
        check: Callable[[], None],
        packet_id: str = "",
        watch: Stopwatch | None = None,
        explaining: bool = False,
        packet: Packet | None = None,
        namespace: Snapshot | None = None,
    ) -> Occasion:
        """Finds and scores the candidates of a request; draws and logs nothing. A request without session is a session
        of its own, named by its `packet_id`. For `explaining`, all memories are scored, whatever the size;
        where the request names no time, that of `packet` is now, if one is given; `namespace` is how its namespace
        might stand, or what a caller's own list came to, None for as it does."""
        as_of = request.as_of_time
        if as_of is None:
            as_of = self._clock() if packet is None else packet.as_of_time
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
        has_moved_on = packet is not None and self._has_moved_on(packet)
        then = self._clock() if packet is None or has_moved_on else packet.create_time
        is_past = as_of < then and (request.as_of_time is not None or has_moved_on)
        snapshot = self._snapshot(request, as_of if is_past else None, namespace)
        learned = _known(request, snapshot, packet, has_moved_on)
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
        gates = _gates(request, snapshot, as_of, learned)
        numbers = None if vector is None else quantised(vector.numbers)[0]
        choose = partial(self._candidates, request, snapshot, Task(text, numbers, weights))
        candidates = choose(gates)
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
            most_uses=snapshot.most_uses,
            kept=ranked.kept_of_texts,
        )
        known = standing(ranked, view, weights)
        scored = score(view, gates, known, weights, wrapper_tokens(request))
        beside = None if shadow is None else (shadow, score_beside(scored, view, ranked, shadow))
        check()
        watch.lap(SCORE)
        return Occasion(
            request=request,
            snapshot=snapshot,
            ranked=ranked,
            candidates=candidates,
            choose=choose,
            view=view,
            scored=scored,
            weights=weights,
            shadow=beside,
            as_of_time=as_of,
            known=learned,
            degradations=tuple(degradations),
        )

    def embedded(self, memories: Sequence[Memory]) -> tuple[Memory, ...]:
        """A caller's own memories, with vectors."""
        found = list(memories)
        missing = [i for i, memory in enumerate(found) if memory.embedding is None]
        if self._embedder.dimension and missing:
            vectors = self._embedder.embed([found[i].content for i in missing])
            for i, vector in zip(missing, vectors, strict=True):
                found[i] = replace(found[i], embedding=vector)
        return tuple(found)

    def _candidates(
        self, request: RankRequest, snapshot: Snapshot, task: Task, gates: Gates
    ) -> NDArray[np.int32] | None:
        """The rows to be scored, None for all: in a small namespace, for a time in the past and for weights that came
        with the request, and until what chooses is ready."""
        if not self._exact_up_to or snapshot.live_count <= self._exact_up_to or request.candidates is not None:
            return None
        if request.explicit_weights is not None or request.as_of_time is not None:
            return None
        passed = len(gates.pinned) + len(gates.others)
        if passed <= max(self._exact_up_to, snapshot.live_count // 2):
            # What chooses looks at rows before their gates: where few pass, it would look in the wrong places.
            return _passing(gates)
        near, weights, namespace = snapshot.contents.near, task.weights, request.namespace
        emotion = namespace in self._emotion

        def make(then: Snapshot) -> NDArray[np.float32]:
            prior = self._priors.of(namespace, then.score_version)
            return standing_amounts(weights, prior, emotion, self._clock(), then)

        standings = near.want((id(weights), emotion), make)
        if standings is None or near.cells is None:
            return None
        found = candidates_of(snapshot, task, gates, standings, self._reserve.min_reported_sessions)
        return found if len(found) >= FEWEST_CANDIDATES else _passing(gates)

    def _weights_for(
        self, request: RankRequest, packet_id: str, degradations: list[tuple[DegradationReason, str]]
    ) -> tuple[Weights, Weights | None]:
        """The weights that score the request, and those of the shadow beside them. A choice of its own has no shadow,
        and is no canary's."""
        if request.explicit_weights is not None:
            return request.explicit_weights, None
        if request.weights:
            try:
                return self._weights.named(request.weights, request.namespace), None
            except ModelRefusedError as refused:
                notice = f"the model {request.weights} cannot serve ({'; '.join(refused.faults)}); the active one did"
                degradations.append((DegradationReason.MODEL_FALLBACK, notice))
        session = f"s:{request.session_id}" if request.session_id else packet_id and f"p:{packet_id}"
        return self._weights.serving(request.namespace, session, self._salt)

    def _has_moved_on(self, packet: Packet) -> bool:
        return self._namespaces.get(packet.namespace).score_version != packet.score_version

    def _snapshot(self, request: RankRequest, past: Micros | None, namespace: Snapshot | None) -> Snapshot:
        if request.candidates is not None:
            return snapshot_of(self.embedded(request.candidates)) if namespace is None else namespace
        snapshot = self._namespaces.get(request.namespace) if namespace is None else namespace
        if past is None:
            return snapshot
        # Ranking for a past time must not know of uses that were reported later.
        return snapshot.with_uses(self._store.use_counts_as_of(request.namespace, past))

    def _task_vector(self, request: RankRequest, task: str, snapshot: Snapshot) -> TaskVector | None:
        if request.task_embedding is not None:
            return TaskVector(request.task_embedding)
        if not self._embedder.dimension or not task:
            return None
        return snapshot.task_vector(task, self._embedder)


def _known(
    request: RankRequest, snapshot: Snapshot, packet: Packet | None, has_moved_on: bool
) -> NDArray[np.bool_] | None:
    """The rows that had been learned by the time that is ranked for, None for all. For now all have been: a create_time
    ahead of it is that of a clock that stepped back, or the caller's. What came after a `packet` had not been."""
    time = request.as_of_time
    if time is None and packet is None:
        return None
    columns, known = snapshot.columns, np.ones(len(snapshot), bool)
    if packet is not None and packet.newest_memory_key is not None:
        known &= columns.key <= packet.newest_memory_key
    elif packet is not None and has_moved_on:
        time = packet.as_of_time
    if time is not None:
        known &= columns.create_time <= time
    return None if known.all() else known


def _gates(request: RankRequest, snapshot: Snapshot, as_of: Micros, known: NDArray[np.bool_] | None) -> Gates:
    if request.filter.is_empty and known is None:
        return gates_at(snapshot, as_of)
    columns = snapshot.columns
    allowed = None if request.filter.is_empty else snapshot.filter_mask(request.filter)
    codes = gate_codes(columns, allowed, snapshot.superseded_at(as_of, known), as_of, known)
    return Gates.of(codes, columns)


def _passing(gates: Gates) -> NDArray[np.int32]:
    """The rows that no gate stops, ascending."""
    return np.flatnonzero(gates.codes == PASSED).astype(np.int32)


def wrapper_tokens(request: RankRequest) -> int:
    """What each item is charged on top of its memory."""
    return count_tokens(request.item_wrapper) if request.item_wrapper else 0
