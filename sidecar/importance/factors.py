"""What moved a score, in words, strongest first; and what to make of it. Pure. They hold no word of a memory."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from sidecar.domain import MOST_SESSIONS, ImportanceLine
from sidecar.importance.consensus import Consensus
from sidecar.importance.neighbours import Neighbourhood
from sidecar.importance.scoring import MIDDLE, Breakdown
from sidecar.plurals import counted

HIGH, MODERATE = 0.7, 0.4
"""Scores from which a memory, or a signal of it, is called high and moderate."""
TELLING = 0.55
"""Value from which a part of the content is worth a word."""
MOST_FACTORS = 8
MOST_NAMED = 3
"""Ids that a factor names."""

_PARTS = {
    "content.semantic_density": "says much in few words",
    "content.entities": "names people, things or technical terms",
    "content.uniqueness": "new beside what is known",
    "content.actionability": "says what to do or what was decided",
    "content.factual_content": "states facts that can be checked",
    "content.cross_references": "points to other memories or things",
}
_WORDING = {
    "statement": (
        "the sort of statement that lasts: rules, reasons, what is at stake",
        "the sort of statement that passes: states, stories, doubts",
    ),
    "words": ("worded like what was worth keeping", "worded like what was not worth keeping"),
}
LEAST_MOVED = 0.05
"""What a wording must move a score by to be worth a word."""
PROMOTABLE = ("working", "episodic")
"""Kinds that a consumer may move into lasting memory."""
PROMOTION_SCORE, PROMOTION_CONFIDENCE = 0.7, 0.8


@dataclass(frozen=True, slots=True)
class Told:
    """What the words need beside the breakdown."""

    kind: str
    neighbourhood: Neighbourhood = field(default_factory=Neighbourhood)
    use_sessions: int | None = None
    decision_type: str = ""
    helpful: int = 0
    unhelpful: int = 0
    is_rated: bool = False
    consensus: Consensus | None = None


def factors(breakdown: Breakdown, told: Told) -> tuple[str, ...]:
    """The factors, strongest first: by how far each moves the score from where it would be without it."""
    found = list(_found(breakdown, told))
    found.sort(key=lambda each: -each[0])  # stable: of two that move alike, the one that is named first
    return tuple(words for _, words in found[:MOST_FACTORS])


def tier(score: float) -> str:
    """high, moderate or low."""
    return "high" if score >= HIGH else "moderate" if score >= MODERATE else "low"


def is_promotion_candidate(
    kind: str,
    score: float,
    confidence: float,
    least_score: float = PROMOTION_SCORE,
    least_confidence: float = PROMOTION_CONFIDENCE,
) -> bool:
    """True for a working or episodic memory that is worth keeping, and surely so."""
    return kind in PROMOTABLE and score >= least_score and confidence >= least_confidence - 1e-12


def _found(breakdown: Breakdown, told: Told) -> Iterable[tuple[float, str]]:
    lines = {line.factor: line for line in breakdown.lines}
    if told.is_rated:
        value = lines["override"].value or 0.0
        # The user's word stands above all others.
        yield 2.0, f"{tier(value)} user rating ({value:.2f}), which overrides"
    elif (user := lines["user"]).value is not None:
        marks = _counted([(told.helpful, "helpful"), (told.unhelpful, "unhelpful")])
        yield (
            _moved(user),
            f"marked {marks} by users" if marks else f"{tier(user.value)} user signal ({user.value:.2f})",
        )
    if (access := lines["access"]).value is not None:
        often = {"high": "frequent use", "moderate": "some use", "low": "little use"}[tier(access.value)]
        sessions = "" if told.use_sessions is None else f" in {counted(told.use_sessions, 'session')}"
        yield _moved(access), f"{often}{sessions} ({access.value:.2f})"
    if (context := lines["context"]).value is not None:
        strong = {"high": "strong", "moderate": "moderate", "low": "weak"}[tier(context.value)]
        yield _moved(context), f"{strong} contextual relevance ({context.value:.2f})"
    if (emotion := lines["emotion"]).value is not None:
        yield _moved(emotion), f"{tier(emotion.value)} emotional salience ({emotion.value:.2f})"
    if told.decision_type or told.kind == "decision":
        architectural = told.decision_type.lower().startswith("architect")
        yield 0.15, "architectural decision" if architectural else "a decision"
    for name, words in _PARTS.items():
        line = lines.get(name)
        if line is not None and line.value is not None and line.value >= TELLING:
            yield line.contribution / 2, f"{words} ({line.value:.2f})"
    for name, (for_it, against_it) in _WORDING.items():
        line = lines.get(name)
        if line is not None and abs(line.contribution) >= LEAST_MOVED:
            yield (
                abs(line.contribution),
                f"{for_it if line.contribution > 0 else against_it} ({line.contribution:+.2f})",
            )
    yield from _of_neighbours(lines, told.neighbourhood)
    if (baseline := lines["baseline"]).contribution:
        yield abs(baseline.contribution) / 2, f"baseline of its kind, {told.kind} ({baseline.value:.1f})"
    if "clamp" in lines:
        clamp = lines["clamp"]
        yield (
            abs(clamp.contribution) / 2,
            f"clamped to {'at least' if clamp.contribution > 0 else 'at most'} {clamp.value:g}",
        )
    if (agents := told.consensus) is not None:
        words = "agree on" if agents.is_agreed else "disagree around"
        several = f"{agents.agents} agents {words} {agents.score:.2f} (spread {agents.spread:.2f})"
        yield 0.1, several if agents.agents > 1 else f"another agent says {agents.score:.2f}"


def _of_neighbours(lines: dict[str, ImportanceLine], around: Neighbourhood) -> Iterable[tuple[float, str]]:
    if "superseded" in lines:
        yield abs(lines["superseded"].contribution), "superseded by a newer memory"
    if around.contradicted_by:
        yield (
            abs(lines["contradiction"].contribution),
            f"contradicted by {_named(around.contradicted_by)}, which is newer",
        )
    if around.inconsistent:
        yield 0.08, f"inconsistent with {_named(around.inconsistent)}"
    if around.outdates:
        yield 0.05, f"says another value than {_named(around.outdates)}, which is older"
    if around.sessions:
        yield (
            0.02 + lines["theme"].contribution,
            f"recurring theme: {around.sessions + 1} sessions{' or more' if around.sessions == MOST_SESSIONS else ''}, "
            f"as in {_named(around.theme)}",
        )
    if around.nearest and around.uniqueness is not None and around.uniqueness <= 1 - TELLING:
        yield 0.05, f"says little that {_named((around.nearest,))} does not"


def _moved(line: ImportanceLine) -> float:
    return abs(line.weight * ((line.value or 0.0) - MIDDLE)) + 0.1


def _named(ids: Sequence[str]) -> str:
    return " and ".join(each if len(each) <= 40 else each[:39] + "…" for each in ids[:MOST_NAMED])


def _counted(counts: Sequence[tuple[int, str]]) -> str:
    return " and ".join(f"{word} ({count})" for count, word in counts if count)
