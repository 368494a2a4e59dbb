"""Scores memories of a namespace: gathers what is known of each, and weighs it. Writes nothing, and logs no text.

Safe to use from many threads.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from sidecar.domain import Context, ImportancePart, Memory, Micros, ScoredContent
from sidecar.features.importance import marks_value
from sidecar.features.recency import HALF_LIFE_DAYS
from sidecar.features.view import NO_TIME
from sidecar.importance.access import RECENCY_SHARE, SESSIONS_SHARE, recency_value, sessions_value
from sidecar.importance.calibrated import Calibrations, OwnWeights
from sidecar.importance.consensus import AgentScore, Consensus, consensus_of
from sidecar.importance.context import cosines_with, read_context
from sidecar.importance.emotion import SHARES, read_emotion
from sidecar.importance.factors import Told, factors, is_promotion_candidate
from sidecar.importance.looking import Looked, bound_to_peers, look, no_pause
from sidecar.importance.scoring import (
    Breakdown,
    Signal,
    completeness,
    confidence,
    is_content_alone,
    retained,
    weigh,
)
from sidecar.importance.settings import SIGNALS, ImportanceSettings
from sidecar.retrieval.embedding import Embedder
from sidecar.retrieval.lexical import inverse_document_frequency
from sidecar.retrieval.namespaces import Namespaces
from sidecar.retrieval.snapshot import Snapshot
from sidecar.retrieval.vectors import Vectors

MOST_COMPARED = 20_000
"""Memories of the namespace that one which is written is compared with, the newest, so that a write stays quick."""
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
    """The part of an importance that follows from the content: what is stored of it when a memory is written."""

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
        found = self._look(snapshot, [subject.memory for subject in subjects])
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

    def score_contents(self, namespace: str, memories: Sequence[Memory]) -> list[ScoredContent]:
        """The content part of memories that are about to be written together: they are each other's neighbours, too. Of
        those only whose part can be told before all of them are there."""
        found = self._scored_contents(namespace, self._namespaces.get(namespace), memories, together=True)
        bound = bound_to_peers(memories)
        return [each for each, is_bound in zip(found, bound, strict=True) if not (is_bound or each.is_in_ring)]

    def has_reached(self, namespace: str, score_version: int) -> bool:
        """True if what is scored now is scored against the namespace as of this version or later."""
        return self._namespaces.get(namespace).score_version >= score_version

    def score_stored(
        self, namespace: str, memories: Sequence[Memory], pause: Callable[[], None] = no_pause
    ) -> list[ScoredContent]:
        """The content part of memories that are stored; of those only that the namespace's snapshot has by now. `pause`
        is called before each."""
        return self.score_against(self._namespaces.get(namespace), namespace, memories, pause)

    def score_against(
        self, snapshot: Snapshot, namespace: str, memories: Sequence[Memory], pause: Callable[[], None]
    ) -> list[ScoredContent]:
        """The same of those that a snapshot has, which may be of the namespace as it is not yet."""
        known = [memory for memory in memories if memory.id in snapshot.row_of_id]
        return self._scored_contents(namespace, snapshot, known, together=False, pause=pause)

    def _scored_contents(
        self,
        namespace: str,
        snapshot: Snapshot,
        memories: Sequence[Memory],
        *,
        together: bool,
        pause: Callable[[], None] = no_pause,
    ) -> list[ScoredContent]:
        now = self._clock()
        found = look(snapshot, memories, self._embedder, now, together=together, most_rows=MOST_COMPARED, pause=pause)
        weights = self.settings.of_domain(namespace=namespace)
        own = self._calibrations.of(
            namespace, snapshot, weights, lambda rows: self._values(namespace, snapshot, rows), is_rough=True
        )
        scored = []
        for memory, looked in zip(memories, found, strict=True):
            made = self._content_part(namespace, memory, looked, own)
            lines = tuple(line for line in made.breakdown.lines if line.value is not None)
            part = ImportancePart(made.confidence, now, made.factors, lines, looked.about)
            beside = {
                each: None if (row := snapshot.row_of_id.get(each)) is None else int(snapshot.columns.update_time[row])
                for each in looked.about
            }
            replaced = looked.replaced
            scored.append(
                ScoredContent(
                    memory,
                    part,
                    snapshot.score_version,
                    beside,
                    looked.concerns,
                    looked.repeats,
                    replaced.is_superseded,
                    bool(replaced.ring),
                )
            )
        return scored

    def _look(self, snapshot: Snapshot, memories: Sequence[Memory]) -> list[Looked]:
        return look(snapshot, memories, self._embedder, self._clock())

    def _signals(
        self,
        namespace: str,
        snapshot: Snapshot,
        subject: Subject,
        looked: Looked,
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

    def _access(self, snapshot: Snapshot, subject: Subject, looked: Looked, most_sessions: int) -> Signal:
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
        looked: Looked,
        signals: dict[str, Signal],
        own: OwnWeights,
    ) -> Scored:
        memory = looked.memory
        content = looked.content(own.parts)
        signals = {"content": content, **signals}
        rating = _rating(subject)
        adjustments = looked.around.adjustments(content.value or 0.0, is_superseded=looked.replaced.is_superseded)
        breakdown = weigh(
            signals, own.signals, memory.kind, self.settings, adjustments, looked.analysis.wording, rating
        )
        sure = confidence(
            has_user_signal=signals["user"].value is not None,
            quality=looked.quality,
            completeness=completeness(signals, own.signals, self._expected(namespace, signals)),
            is_content_alone=is_content_alone(signals),
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
            is_promotion_candidate=not (memory.suppressed or looked.replaced.is_superseded)
            and is_promotion_candidate(memory.kind, breakdown.score, sure),
        )

    def _content_part(self, namespace: str, memory: Memory, looked: Looked, own: OwnWeights) -> ContentPart:
        content = looked.content(own.parts)
        signals = {"content": content, "emotion": self._emotion(namespace, memory, None)}
        adjustments = looked.around.adjustments(content.value or 0.0, is_superseded=looked.replaced.is_superseded)
        breakdown = weigh(signals, own.signals, memory.kind, self.settings, adjustments, looked.analysis.wording)
        sure = confidence(
            has_user_signal=False,
            quality=looked.quality,
            completeness=completeness(signals, own.signals, self._expected(namespace, signals)),
            is_content_alone=is_content_alone(signals),
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

    def _age(self, snapshot: Snapshot, looked: Looked) -> Micros:
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
        for memory, looked in zip(memories, self._look(snapshot, memories), strict=True):
            access = self._access(snapshot, Subject(memory), looked, most)
            emotion = self._emotion(namespace, memory, None)
            found.append({**looked.parts(), "access": access.value, "emotion": emotion.value})
        return found


def _rating(subject: Subject) -> float | None:
    return subject.memory.importance_override if subject.user_rating is None else subject.user_rating


def _marks(memory: Memory) -> float | None:
    return marks_value(memory.helpful, memory.unhelpful) if memory.helpful or memory.unhelpful else None


def _rarity(snapshot: Snapshot) -> Callable[[str], float]:
    def idf(term: str) -> float:
        bearing, _ = snapshot.contents.terms.find(term, snapshot.columns.live, snapshot.contents.all_live)
        return inverse_document_frequency(snapshot.live_count, len(bearing))

    return idf
