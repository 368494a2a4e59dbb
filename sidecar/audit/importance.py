"""Importances over time and across groups: how rescore runs moved a namespace, and whether memories of a kind, an
author or a language get lower scores for equal use. Pure.

A trend goes by what the runs did to each memory, whose content and kind stand as they are now. Fairness compares,
within strata of equal use, the mean score of a group with that of all others; the strata are weighted by the group's
share of them. Both say INSUFFICIENT where there is too little to tell.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from statistics import NormalDist, fmean, variance

import numpy as np

from sidecar.domain import Micros
from sidecar.features.importance import BASELINE, combine
from sidecar.store.audit_importance import JudgedMemory, RunMoves

CONFIDENCE = 0.95
FEWEST_RUNS = 3
"""Rescore runs that moved a namespace, below which there is no trend to tell."""
FEWEST_MOVED = 10
"""Memories that its runs moved."""
STEADY = 0.01
"""A mean move that is surely within this, either way, is none."""
MOST_GROUPS = 50
"""Of a dimension the largest groups are looked at."""
FEWEST_OF_GROUP = 20
"""Memories of a group, and of all others beside them in the same strata, before they are compared."""
TELLING_GAP = 0.05
"""How far below the others' a group's mean must be to be called lower."""
RATES = (0.0, 0.1, 0.3, 0.6)
"""Bounds of the strata: share of the sessions that saw a memory in which it was used."""
SEEN = (2.0, 8.0)
"""And how many sessions saw it."""


_WHERE_TO_LOOK = {
    "kind": "is its baseline right for what is stored under it?",
    "author": "look at what the content of their memories misses (importance --id)",
    "language": "look at what the content of its memories misses (importance --id)",
}


Stratum = tuple[int, int]
"""Of equal use: places among RATES and SEEN."""


class Evidence(StrEnum):
    """What the numbers say."""

    INSUFFICIENT = "insufficient"
    NONE = "none"
    LOWER = "lower"
    HIGHER = "higher"


@dataclass(frozen=True, slots=True)
class RunMean:
    """One run: when, how many memories it moved, and their mean importance before and after."""

    run_id: str
    create_time: Micros
    moved: int
    before: float
    after: float


@dataclass(frozen=True, slots=True)
class Trend:
    """How the runs moved a namespace: `move` is the mean over all moved memories from before their first run to after
    their last one, with its interval."""

    namespace: str
    runs: tuple[RunMean, ...]
    memories: int
    move: float
    low: float
    high: float
    evidence: Evidence


@dataclass(frozen=True, slots=True)
class Gap:
    """A group's mean score less that of the others for equal use, with its interval, corrected for how many groups of
    its dimension (kind, author, language) are looked at."""

    dimension: str
    group: str
    memories: int
    gap: float
    low: float
    high: float
    evidence: Evidence


@dataclass(slots=True)
class _Sums:
    """Of scores: how many, their sum, and that of their squares."""

    count: int = 0
    total: float = 0.0
    squares: float = 0.0

    def add(self, value: float) -> None:
        self.count += 1
        self.total += value
        self.squares += value * value

    def less(self, other: _Sums) -> _Sums:
        return _Sums(self.count - other.count, self.total - other.total, self.squares - other.squares)

    @property
    def mean(self) -> float:
        return self.total / self.count

    @property
    def variance_of_mean(self) -> float:
        """Needs two scores."""
        return max(self.squares - self.total * self.mean, 0.0) / (self.count - 1) / self.count


def trends(runs: Sequence[RunMoves]) -> list[Trend]:
    """The trend of each namespace that a run moved, by name."""
    by_namespace: dict[str, list[RunMoves]] = defaultdict(list)
    for run in runs:
        by_namespace[run.namespace].append(run)
    return [_trend(name, of_name) for name, of_name in sorted(by_namespace.items())]


def gaps(memories: Sequence[JudgedMemory]) -> list[Gap]:
    """The gaps of the MOST_GROUPS largest groups of every dimension that has two or more, by dimension and name.
    Memories without an author are no group of theirs."""
    scores = [score(each.kind, each.content, each.use) for each in memories]
    strata = [_stratum(each) for each in memories]
    dimensions: dict[str, Callable[[JudgedMemory], str]] = {
        "kind": lambda each: each.kind,
        "author": lambda each: each.author,
        "language": lambda each: each.language,
    }
    found = []
    for dimension, of in dimensions.items():
        own: dict[str, dict[Stratum, _Sums]] = defaultdict(lambda: defaultdict(_Sums))
        everyone: dict[Stratum, _Sums] = defaultdict(_Sums)
        for each, value, stratum in zip(memories, scores, strata, strict=True):
            everyone[stratum].add(value)
            if group := of(each):
                own[group][stratum].add(value)
        sizes = {group: sum(each.count for each in by_stratum.values()) for group, by_stratum in own.items()}
        names = sorted(sorted(sizes, key=lambda name: (-sizes[name], name))[:MOST_GROUPS])
        if len(names) > 1:
            sure = 1.0 - (1.0 - CONFIDENCE) / len(names)
            found += [_gap(dimension, name, own[name], everyone, sure) for name in names]
    return found


def findings(found: Sequence[Gap]) -> list[str]:
    """What is unfair, in words."""
    return [
        f"fairness: the importances of {each.memories:,} memories of {each.dimension} {each.group} are {-each.gap:.2f} "
        f"lower than others' for equal use (interval {each.low:+.2f} to {each.high:+.2f}): "
        f"{_WHERE_TO_LOOK[each.dimension]}"
        for each in found
        if each.evidence is Evidence.LOWER
    ]


def score(kind: str, content: float | None, use: float | None) -> float:
    """The importance of a memory without a user's word, from its parts."""
    own, used = (np.array([math.nan if part is None else part]) for part in (content, use))
    baseline = np.array([BASELINE.get(kind, BASELINE["default"])])
    return float(combine(own, used, np.array([math.nan]), baseline)[0])


def _trend(namespace: str, runs: Sequence[RunMoves]) -> Trend:
    first: dict[int, float] = {}
    last: dict[int, float] = {}
    means = []
    for run in runs:
        before = [score(each.kind, each.content, each.before) for each in run.moves]
        after = [score(each.kind, each.content, each.after) for each in run.moves]
        for moved, old, new in zip(run.moves, before, after, strict=True):
            first.setdefault(moved.memory_key, old)
            last[moved.memory_key] = new
        means.append(RunMean(run.run_id, run.create_time, len(run.moves), fmean(before), fmean(after)))
    moves = [last[key] - first[key] for key in first]
    spread = variance(moves) / len(moves) if len(moves) > 1 else math.inf
    move, low, high = _interval(fmean(moves), spread, CONFIDENCE)
    evidence = Evidence.NONE
    if len(runs) < FEWEST_RUNS or len(moves) < FEWEST_MOVED:
        evidence = Evidence.INSUFFICIENT
    elif high < -STEADY:
        evidence = Evidence.LOWER
    elif low > STEADY:
        evidence = Evidence.HIGHER
    return Trend(namespace, tuple(means), len(moves), move, low, high, evidence)


def _gap(
    dimension: str, name: str, own: Mapping[Stratum, _Sums], everyone: Mapping[Stratum, _Sums], sure: float
) -> Gap:
    others = {each: everyone[each].less(own[each]) for each in own}
    memories = sum(each.count for each in own.values())
    # Only where there are two of each can they be compared, and their spread be told.
    shared = [each for each in own if min(own[each].count, others[each].count) > 1]
    count, beside = sum(own[each].count for each in shared), sum(others[each].count for each in shared)
    if min(count, beside) < FEWEST_OF_GROUP:
        return Gap(dimension, name, memories, 0.0, -math.inf, math.inf, Evidence.INSUFFICIENT)
    apart = spread = 0.0
    for each in shared:
        share = own[each].count / count
        apart += share * (own[each].mean - others[each].mean)
        spread += share**2 * (own[each].variance_of_mean + others[each].variance_of_mean)
    apart, low, high = _interval(apart, spread, sure)
    evidence = Evidence.NONE
    if high < 0.0 and apart <= -TELLING_GAP:
        evidence = Evidence.LOWER
    elif low > 0.0 and apart >= TELLING_GAP:
        evidence = Evidence.HIGHER
    return Gap(dimension, name, memories, apart, low, high, evidence)


def _interval(mean: float, spread: float, sure: float) -> tuple[float, float, float]:
    """A mean with its normal interval from the variance of the mean."""
    wide = NormalDist().inv_cdf((1.0 + sure) / 2) * math.sqrt(spread)
    return mean, mean - wide, mean + wide


def _stratum(memory: JudgedMemory) -> Stratum:
    rate = memory.counts.used / memory.counts.seen
    return sum(rate > bound for bound in RATES), sum(memory.counts.seen > bound for bound in SEEN)
