"""From signals to a score that is the sum of what it shows, and how sure it is. Pure.

The five signals are weighed; one that is absent hands its weight to those that are there, and so does an absent part of
a signal. What else moves a score is a line of its own: the kind's baseline, a theme that recurs, what contradicts or
replaces it, the sort of statement that it is, its words, the clamp. The user's rating overrides all of it, as the last
line, and what it overrides stays beside it.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from sidecar.domain import ImportanceLine, closing, summed
from sidecar.features.importance import BASELINE
from sidecar.importance.settings import SIGNALS, ImportanceSettings, SignalWeights
from sidecar.importance.wording import Wording

BASELINE_SHARE = 0.4
"""What a kind's baseline counts, as far as it is above or below the middle. With it the note's own example, whose lines
sum to .797, comes to the .88 that it prints."""
MIDDLE = 0.5
ROUNDING = "rounding"
"""The line of the last bits, where no single number brings a sum of floating point to what it must be."""

USER_SHARE, QUALITY_SHARE, COMPLETENESS_SHARE = 0.4, 0.3, 0.3
CONFIDENCE_TIERS = (
    (0.8, "high confidence: multiple strong signals"),
    (0.6, "moderate confidence: adequate signals"),
    (0.4, "low confidence: limited signals"),
    (0.0, "very low confidence: a guess based on defaults"),
)
"""From which confidence on, in words."""
MOST_OF_CONTENT_ALONE = 0.49
"""How sure a score can be that nothing but the content speaks for, whatever the content weighs."""

Parts = Mapping[str, tuple[float | None, float]]
"""Value (None: absent) and share of each part of a signal."""


@dataclass(frozen=True, slots=True)
class Signal:
    """One of the five. `value` is None if it is absent; `parts` are what it is made of, "" for none."""

    value: float | None
    parts: Parts = field(default_factory=dict)

    @staticmethod
    def of_parts(parts: Parts) -> Signal:
        """The weighted mean of the parts that are there; absent if none is."""
        present = {name: (value, share) for name, (value, share) in parts.items() if value is not None and share > 0}
        total = math.fsum(share for _, share in present.values())
        if not total:
            return Signal(None, parts)
        return Signal(math.fsum(value * share / total for value, share in present.values()), parts)


@dataclass(frozen=True, slots=True)
class Adjustment:
    """Something beside the five signals: its line's name, its value in [0, 1], and what it adds."""

    factor: str
    value: float
    contribution: float


@dataclass(frozen=True, slots=True)
class Breakdown:
    """A score with its lines. `score` is the sum of the contributions of lines that are no parts, from first to last;
    `weighted` is the same without the user's override."""

    score: float
    weighted: float
    lines: tuple[ImportanceLine, ...]

    def value(self, factor: str) -> float | None:
        """The value of a line; None if it is absent."""
        return next((line.value for line in self.lines if line.factor == factor), None)


def weigh(
    signals: Mapping[str, Signal],
    weights: SignalWeights,
    kind: str,
    settings: ImportanceSettings,
    adjustments: Sequence[Adjustment] = (),
    wording: Wording | None = None,
    rating: float | None = None,
) -> Breakdown:
    """The score of one memory. Signals that are not named are absent."""
    lines: list[ImportanceLine] = []
    shares = shares_of(signals, weights)
    for name in SIGNALS:
        signal = signals.get(name, Signal(None))
        weight = shares.get(name, 0.0)
        lines.append(ImportanceLine(name, signal.value, weight, weight * (signal.value or 0.0)))
        lines += _parts(name, signal, weight)
    baseline = BASELINE.get(kind, BASELINE["default"])
    # Without any signal the baseline is all there is.
    added = BASELINE_SHARE * (baseline - MIDDLE) if shares else baseline
    lines.append(ImportanceLine("baseline", baseline, BASELINE_SHARE if shares else 1.0, added))
    lines += [ImportanceLine(each.factor, each.value, 1.0, each.contribution) for each in adjustments]
    if wording is not None:
        share = shares.get("content", 0.0)
        for name, leaning in (("statement", wording.statement), ("words", wording.words)):
            reached = min(max(summed(lines), settings.lowest), settings.highest)
            room = settings.highest - reached if leaning.pull > 0 else reached - settings.lowest
            lines.append(ImportanceLine(name, leaning.value, share, share * leaning.pull * room))
    raw = summed(lines)
    weighted = min(max(raw, settings.lowest), settings.highest)
    if weighted != raw:
        lines += _closing("clamp", raw, weighted)
    if rating is None:
        return Breakdown(weighted, weighted, tuple(lines))
    lines += _closing("override", weighted, rating)
    return Breakdown(rating, weighted, tuple(lines))


def shares_of(signals: Mapping[str, Signal], weights: SignalWeights) -> dict[str, float]:
    """What each signal that is there weighs among those that are; they sum to 1."""
    by_name = weights.by_name()
    present = [name for name in SIGNALS if (signal := signals.get(name)) and signal.value is not None]
    total = math.fsum(by_name[name] for name in present)
    # All that is there may weigh nothing, as where only access is known and has been set to 0.
    return {name: by_name[name] / total if total else 1.0 / len(present) for name in present}


def confidence(*, has_user_signal: bool, quality: float, completeness: float, is_content_alone: bool = False) -> float:
    """How sure a score is, in [0, 1]."""
    sure = USER_SHARE * has_user_signal + QUALITY_SHARE * quality + COMPLETENESS_SHARE * completeness
    return min(sure, MOST_OF_CONTENT_ALONE) if is_content_alone else sure


def is_content_alone(signals: Mapping[str, Signal]) -> bool:
    """True if no other signal is there."""
    return not any(signal.value is not None for name, signal in signals.items() if name != "content")


def completeness(signals: Mapping[str, Signal], weights: SignalWeights, expected: Sequence[str] = SIGNALS) -> float:
    """The weight of the signals that are there, to that of all that could be."""
    by_name = weights.by_name()
    known = math.fsum(by_name[name] for name in expected if (s := signals.get(name)) and s.value is not None)
    total = math.fsum(by_name[name] for name in expected)
    return known / total if total else 1.0


def confidence_words(value: float) -> str:
    """The tier of a confidence."""
    return next((words for least, words in CONFIDENCE_TIERS if value >= least - 1e-12), CONFIDENCE_TIERS[-1][1])


def retained(score: float, lowest: float, retention: float) -> float:
    """What is left of a score when so much of it is retained: it sinks to the floor and never below."""
    return score if score <= lowest or retention == 1.0 else lowest + (score - lowest) * retention


def _closing(factor: str, reached: float, wanted: float) -> list[ImportanceLine]:
    """The line that brings the sum to what is wanted, and one for the last bits where they need one."""
    return [
        ImportanceLine(name, wanted, 1.0, added)
        for name, added in zip((factor, ROUNDING), closing(reached, wanted), strict=False)
    ]


def _parts(name: str, signal: Signal, weight: float) -> list[ImportanceLine]:
    total = math.fsum(share for value, share in signal.parts.values() if value is not None)
    lines = []
    for part, (value, share) in signal.parts.items():
        of_signal = share / total if value is not None and total else 0.0
        lines.append(ImportanceLine(f"{name}.{part}", value, weight * of_signal, weight * of_signal * (value or 0.0)))
    return lines
