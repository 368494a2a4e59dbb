"""Scores memories of a namespace: gathers what is known of each, and weighs it. Writes nothing, and logs no text.

Safe to use from many threads.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from sidecar.domain import Context, Memory, Micros
from sidecar.features.recency import HALF_LIFE_DAYS
from sidecar.features.view import NO_TIME
from sidecar.importance.access import RECENCY_SHARE, SESSIONS_SHARE, recency_value, sessions_value
from sidecar.importance.calibrated import Calibrations, OwnWeights
from sidecar.importance.consensus import AgentScore, Consensus, consensus_of
from sidecar.importance.content import Analysis, analyse
from sidecar.importance.context import cosines_with, read_context
from sidecar.importance.emotion import SHARES, read_emotion
from sidecar.importance.factors import Told, factors, is_promotion_candidate
from sidecar.importance.neighbours import Neighbour, Neighbourhood, look_around
from sidecar.importance.scoring import (
    Breakdown,
    Signal,
    completeness,
    confidence,
    retained,
    weigh,
)
from sidecar.importance.settings import SIGNALS, ImportanceSettings
from sidecar.retrieval.embedding import Embedder
from sidecar.retrieval.lexical import inverse_document_frequency
from sidecar.retrieval.namespaces import Namespaces
from sidecar.retrieval.nearest import is_borne_by_another, nearest, nearest_by_words, vector_of
from sidecar.retrieval.snapshot import Snapshot
from sidecar.retrieval.vectors import Vectors

NEIGHBOURS = 16
"""Nearest memories that are looked at."""
QUALITY_WITHOUT_NEIGHBOURS = 0.8
"""What is left of a content analysis's quality where novelty could not be told."""
NO_CONTEXT = Context()


@dataclass(frozen=True, slots=True)
class Subject:
    """A memory to score, with what the caller knows better; None where the scorer is to find out."""

    memory: Memory
    user_rating: float | None = None
    use_sessions: int | None = None
    recency: float | None = None
    emotion: float | None = None
    contextual_relevance: float | None = None
    agent_scores: tuple[AgentScore, ...] = ()


@dataclass(frozen=True, slots=True)
class ContentPart:
    """The part of an importance that follows from the content: what is stored when a memory is written."""

    breakdown: Breakdown
    confidence: float
    factors: tuple[str, ...]
    language: str


@dataclass(frozen=True, slots=True)
class Scored:
    """The importance of one memory now: the five signals weighed, and all that is shown of it.

    `retention` is what its kind's decay leaves of it (1 if pinned, or if the user's word stands), `decayed` the score
    that is left.
    """

    memory: Memory
    breakdown: Breakdown
    content: ContentPart
    confidence: float
    factors: tuple[str, ...]
    half_life_days: float
    retention: float
    decayed: float
    consensus: Consensus | None
    is_promotion_candidate: bool


class ImportanceScorer:
    """Scores against the namespaces as they are now."""

    def __init__(
        self,
        namespaces: Namespaces,
        embedder: Embedder,
        settings: ImportanceSettings,
        clock: Callable[[], Micros],
        half_life_days: Callable[[], Mapping[str, float]] = lambda: HALF_LIFE_DAYS,
    ) -> None:
        self.settings = settings
        self._namespaces = namespaces
        self._embedder = embedder
        self._clock = clock
        self._half_life_days = half_life_days
        self._calibrations = Calibrations()

    def score(
        self, namespace: str, subjects: Sequence[Subject], context: Context = NO_CONTEXT, domain: str = ""
    ) -> list[Scored]:
        """The importance of each subject. A memory whose id the namespace knows has its uses, and is not its own
        neighbour. SettingsError for an unknown domain."""
        weights = self.settings.of_domain(domain, namespace)
        snapshot = self._namespaces.get(namespace)
        found = self._look(namespace, snapshot, [subject.memory for subject in subjects])
        goals = self._embedder.embed(context.goals) if context.goals and self._embedder.dimension else None
        most_sessions = int(snapshot.columns.use_sessions.max(where=snapshot.columns.live, initial=0))
        signals = [
            self._signals(namespace, snapshot, subject, looked, context, goals, most_sessions)
            for subject, looked in zip(subjects, found, strict=True)
        ]
        own = self._calibrations.of(namespace, snapshot, weights, lambda rows: self._values(namespace, snapshot, rows))
        return [
            self._weighed(namespace, snapshot, subject, looked, each, own)
            for subject, looked, each in zip(subjects, found, signals, strict=True)
        ]

    def score_contents(
        self, namespace: str, memories: Sequence[Memory], most_rows: int | None = None
    ) -> list[ContentPart]:
        """The content part of memories that are about to be written together: they are each other's neighbours, too.

        `most_rows` bounds how many of the namespace's memories each is compared with: the newest ones then.
        """
        snapshot = self._namespaces.get(namespace)
        found = self._look(namespace, snapshot, memories, together=True, most_rows=most_rows)
        weights = self.settings.of_domain(namespace=namespace)
        own = self._calibrations.of(namespace, snapshot, weights, lambda rows: self._values(namespace, snapshot, rows))
        return [
            self._content_part(namespace, memory, looked, own) for memory, looked in zip(memories, found, strict=True)
        ]

    def _look(
        self,
        namespace: str,
        snapshot: Snapshot,
        memories: Sequence[Memory],
        *,
        together: bool = False,
        most_rows: int | None = None,
    ) -> list[_Looked]:
        """Analyses texts, and finds each memory's neighbours."""
        now = self._clock()
        rows = [snapshot.row_of_id.get(memory.id) if memory.id else None for memory in memories]
        vectors = self._vectors(snapshot, memories, rows)
        # What is not stored yet comes after all that is; a time that is not given is now.
        timed = [
            replace(memory, create_time=memory.create_time or now, key=memory.key or 2**62 + place)
            for place, memory in enumerate(memories)
        ]
        left_out = {row for row in rows if row is not None} if together else set()
        around = self._neighbours(snapshot, timed, rows, vectors, left_out, most_rows)
        if together and len(timed) > 1:
            _add_peers(around, timed, vectors)
        others = snapshot.live_count - len(left_out) + (len(timed) - 1 if together else 0)
        looked = []
        for memory, row, vector, neighbours in zip(timed, rows, vectors, around, strict=True):
            neighbours.sort(key=lambda each: -each.cosine)
            analysis = analyse(memory, functools.partial(is_borne_by_another, snapshot, row))
            has_others = others > (0 if together or row is None else 1)
            neighbourhood = look_around(memory, neighbours, has_others=has_others)
            superseded = bool(snapshot.columns.superseded[row]) if row is not None else False
            replaced = memory.superseded_by not in ("", memory.id) and memory.superseded_by in snapshot.row_of_id
            looked.append(_Looked(memory, row, vector, analysis, neighbourhood, superseded or replaced))
        return looked

    def _vectors(self, snapshot: Snapshot, memories: Sequence[Memory], rows: Sequence[int | None]) -> Vectors:
        """Each memory's vector: its own, else the stored one of the same text, else made now. Shape (n, dimension)."""
        dimension = self._embedder.dimension
        found = np.zeros((len(memories), dimension), dtype=np.float32)
        missing = []
        for place, (memory, row) in enumerate(zip(memories, rows, strict=True)):
            if memory.embedding is not None and len(memory.embedding) == dimension:
                found[place] = memory.embedding
            elif row is not None and dimension and snapshot.memories[row].content == memory.content:
                found[place] = vector_of(snapshot, row)
            else:
                missing.append(place)
        if missing and dimension:
            found[missing] = self._embedder.embed([memories[place].content for place in missing])
        return found

    def _neighbours(
        self,
        snapshot: Snapshot,
        memories: Sequence[Memory],
        rows: Sequence[int | None],
        vectors: Vectors,
        left_out: set[int],
        most_rows: int | None,
    ) -> list[list[Neighbour]]:
        if self._embedder.dimension:
            near = nearest(snapshot, vectors, NEIGHBOURS + 1, most_rows)
            pairs = [(near.rows[place], near.cosines[place]) for place in range(len(memories))]
        else:
            by_words = [nearest_by_words(snapshot, memory.content, NEIGHBOURS + 1) for memory in memories]
            pairs = [(each.rows[0], each.cosines[0]) for each in by_words]
        # One read for all of them: a snapshot keeps no texts.
        wanted = sorted({row for found, _ in pairs for row in found.tolist() if row >= 0})
        memory_of = dict(zip(wanted, snapshot.memories.at(wanted), strict=True))
        around = []
        for own, (found, cosines) in zip(rows, pairs, strict=True):
            kept = [
                Neighbour(memory_of[row], cosine)
                for row, cosine in zip(found.tolist(), cosines.tolist(), strict=True)
                if row >= 0 and row != own and row not in left_out and memory_of[row].content
            ]
            around.append(kept[:NEIGHBOURS])
        return around

    def _signals(
        self,
        namespace: str,
        snapshot: Snapshot,
        subject: Subject,
        looked: _Looked,
        context: Context,
        goals: Vectors | None,
        most_sessions: int,
    ) -> dict[str, Signal]:
        """All but the content, whose parts wait for the weights of the namespace."""
        rating = _rating(subject)
        marks = _marks(subject.memory)
        context_signal = Signal(subject.contextual_relevance)
        if subject.contextual_relevance is None:
            idf = _rarity(snapshot)
            cosines = [] if goals is None else cosines_with(looked.vector, goals)
            context_signal = read_context(looked.memory, context, cosines, idf, self._clock())
        return {
            "user": Signal(marks if rating is None else rating),
            "access": self._access(snapshot, subject, looked, most_sessions),
            "emotion": self._emotion(namespace, subject.memory, subject.emotion),
            "context": context_signal,
        }

    def _access(self, snapshot: Snapshot, subject: Subject, looked: _Looked, most_sessions: int) -> Signal:
        columns, row = snapshot.columns, looked.row
        stored = row is not None and bool(columns.use_sessions[row] or columns.reported_sessions[row])
        sessions = subject.use_sessions
        if sessions is None and stored:
            sessions = int(columns.use_sessions[row])
        if sessions is None and subject.recency is None:
            # Nobody has reported on it: nothing is known, which is not nothing.
            return Signal(None, {"sessions": (None, SESSIONS_SHARE), "recency": (None, RECENCY_SHARE)})
        recency = subject.recency
        if recency is None and (row is not None or subject.memory.create_time):
            recency = recency_value(self._age(snapshot, looked), self._half_life(looked.memory.kind))
        value = None if sessions is None else sessions_value(sessions, most_sessions, self.settings.access_form)
        return Signal.of_parts({"sessions": (value, SESSIONS_SHARE), "recency": (recency, RECENCY_SHARE)})

    def _emotion(self, namespace: str, memory: Memory, given: float | None) -> Signal:
        if given is not None:
            return Signal(given)
        if namespace not in self.settings.emotion_namespaces:
            return Signal(None)
        if memory.emotion is not None:
            return Signal(memory.emotion)
        found = read_emotion(memory.content)
        return Signal.of_parts({name: (getattr(found, name), share) for name, share in SHARES.items()})

    def _weighed(
        self,
        namespace: str,
        snapshot: Snapshot,
        subject: Subject,
        looked: _Looked,
        signals: dict[str, Signal],
        own: OwnWeights,
    ) -> Scored:
        memory = looked.memory
        content = looked.content(own.parts)
        signals = {"content": content, **signals}
        rating = _rating(subject)
        adjustments = looked.around.adjustments(content.value or 0.0, is_superseded=looked.is_superseded)
        breakdown = weigh(signals, own.signals, memory.kind, self.settings, adjustments, rating)
        sure = confidence(
            has_user_signal=signals["user"].value is not None,
            quality=looked.quality,
            completeness=completeness(signals, own.signals, self._expected(namespace, signals)),
        )
        consensus = consensus_of(subject.agent_scores)
        row = looked.row
        sessions = subject.use_sessions
        if sessions is None and row is not None and signals["access"].value is not None:
            sessions = int(snapshot.columns.use_sessions[row])
        told = Told(
            kind=memory.kind,
            neighbourhood=looked.around,
            use_sessions=sessions,
            decision_type=looked.analysis.decision_type,
            helpful=memory.helpful,
            unhelpful=memory.unhelpful,
            is_rated=rating is not None,
            consensus=consensus,
        )
        half_life = self._half_life(memory.kind)
        keeps = memory.pinned or rating is not None
        retention = 1.0 if keeps else recency_value(self._age(snapshot, looked), half_life)
        return Scored(
            memory=memory,
            breakdown=breakdown,
            content=self._content_part(namespace, memory, looked, own),
            confidence=sure,
            factors=factors(breakdown, told),
            half_life_days=half_life,
            retention=retention,
            decayed=retained(breakdown.score, self.settings.lowest, retention),
            consensus=consensus,
            is_promotion_candidate=is_promotion_candidate(memory.kind, breakdown.score, sure),
        )

    def _content_part(self, namespace: str, memory: Memory, looked: _Looked, own: OwnWeights) -> ContentPart:
        content = looked.content(own.parts)
        signals = {"content": content, "emotion": self._emotion(namespace, memory, None)}
        adjustments = looked.around.adjustments(content.value or 0.0, is_superseded=looked.is_superseded)
        breakdown = weigh(signals, own.signals, memory.kind, self.settings, adjustments)
        sure = confidence(
            has_user_signal=False,
            quality=looked.quality,
            completeness=completeness(signals, own.signals, self._expected(namespace, signals)),
        )
        told = Told(memory.kind, looked.around, decision_type=looked.analysis.decision_type)
        return ContentPart(breakdown, sure, factors(breakdown, told), looked.analysis.language)

    def _expected(self, namespace: str, signals: Mapping[str, Signal]) -> list[str]:
        """The signals that could be there: emotion only where it is switched on, or was brought."""
        emotion = signals.get("emotion")
        is_on = namespace in self.settings.emotion_namespaces or (emotion is not None and emotion.value is not None)
        return [name for name in SIGNALS if name != "emotion" or is_on]

    def _half_life(self, kind: str) -> float:
        table = self._half_life_days()
        return table.get(kind, table["default"])

    def _age(self, snapshot: Snapshot, looked: _Looked) -> Micros:
        """Time since it was learned or last used, whichever is later."""
        learned, row = looked.memory.create_time, looked.row
        if row is not None and (used := int(snapshot.columns.last_use_time[row])) != NO_TIME:
            learned = max(learned, used)
        return self._clock() - learned

    def _values(self, namespace: str, snapshot: Snapshot, rows: Sequence[int]) -> list[Mapping[str, float | None]]:
        """What calibration goes by: the values of signals and of the content's parts for stored memories."""
        memories = snapshot.memories.at(rows)
        most = int(snapshot.columns.use_sessions.max(where=snapshot.columns.live, initial=0))
        found: list[Mapping[str, float | None]] = []
        for memory, looked in zip(memories, self._look(namespace, snapshot, memories), strict=True):
            access = self._access(snapshot, Subject(memory), looked, most)
            emotion = self._emotion(namespace, memory, None)
            found.append({**looked.parts(), "access": access.value, "emotion": emotion.value})
        return found


@dataclass(frozen=True, slots=True)
class _Looked:
    """What was found of one memory before anything is weighed."""

    memory: Memory
    row: int | None
    vector: Vectors
    analysis: Analysis
    around: Neighbourhood
    is_superseded: bool

    def parts(self) -> dict[str, float | None]:
        analysis = self.analysis
        return {
            "semantic_density": analysis.semantic_density,
            "entities": analysis.entities,
            "uniqueness": self.around.uniqueness,
            "actionability": analysis.actionability,
            "factual_content": analysis.factual_content,
            "cross_references": analysis.cross_references,
        }

    def content(self, shares: Mapping[str, float]) -> Signal:
        return Signal.of_parts({name: (value, shares[name]) for name, value in self.parts().items()})

    @property
    def quality(self) -> float:
        return self.analysis.quality * (QUALITY_WITHOUT_NEIGHBOURS if self.around.uniqueness is None else 1.0)


def _add_peers(around: list[list[Neighbour]], memories: Sequence[Memory], vectors: Vectors) -> None:
    """Adds to each memory's neighbours the nearest among those that are written with it."""
    if not vectors.shape[1]:
        return
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    unit = np.divide(vectors, lengths, out=np.zeros_like(vectors), where=lengths > 0)
    cosines = unit @ unit.T
    np.fill_diagonal(cosines, -np.inf)
    k = min(NEIGHBOURS, len(memories) - 1)
    nearest_of = np.argpartition(-cosines, k - 1, axis=1)[:, :k]
    for place, neighbours in enumerate(around):
        for peer in nearest_of[place].tolist():
            if math.isfinite(cosine := float(cosines[place, peer])):
                neighbours.append(Neighbour(memories[peer], cosine))


def _rating(subject: Subject) -> float | None:
    return subject.memory.importance_override if subject.user_rating is None else subject.user_rating


def _marks(memory: Memory) -> float | None:
    """Helpful against unhelpful marks, with half a mark on either side; None without any."""
    marks = memory.helpful + memory.unhelpful
    return (memory.helpful + 0.5) / (marks + 1.0) if marks else None


def _rarity(snapshot: Snapshot) -> Callable[[str], float]:
    def idf(term: str) -> float:
        bearing, _ = snapshot.contents.terms.find(term, snapshot.columns.live, snapshot.contents.all_live)
        return inverse_document_frequency(snapshot.live_count, len(bearing))

    return idf
