"""The gates between trained weights and serving ones (LEARNING section 9). Pure.

Automatic if the held-out nDCG surely rises; by a person if it surely does not fall by much and seems to rise; refused
otherwise, and whenever another gate refuses.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

import numpy as np
from numpy.typing import NDArray
from scipy.stats import t as student

from sidecar.domain import Floats
from sidecar.plurals import counted
from training.dataset import Dataset
from training.gates import Gate, GateSettings
from training.held_out import Difference, Shown, bootstrap, ndcg_by_session
from training.off_policy import MIN_SESSIONS, OffPolicy
from training.time_folds import Fold


class Promotion(StrEnum):
    """Who may put the weights to work."""

    AUTOMATIC = "automatic"
    PERSON = "person"
    REFUSED = "refused"
    SKIPPED = "skipped"


@dataclass(frozen=True, slots=True)
class HeldOut:
    """nDCG@k of old and new weights on held-out sessions, and how far they are apart."""

    old: float
    new: float
    difference: Difference


def compare(
    dataset: Dataset,
    old_scores: Floats,
    new_scores: Floats,
    held_out: NDArray[np.bool_],
    settings: GateSettings,
    seed: int,
) -> HeldOut:
    """Old against new scores of the served rows, (n,) each, on the packets that `held_out` (p,) marks."""
    old, new = (ndcg_by_session(dataset, scores, held_out, settings.top_k) for scores in (old_scores, new_scores))
    apart = bootstrap(
        new.value - old.value, rounds=settings.bootstrap_rounds, confidence=settings.confidence, seed=seed
    )
    if not len(old.value):
        return HeldOut(0.0, 0.0, apart)
    return HeldOut(float(old.value.mean()), float(new.value.mean()), apart)


def ndcg_gates(found: HeldOut, settings: GateSettings) -> list[Gate]:
    """For an automatic promotion, and for one by a person."""
    apart = found.difference
    words = (
        f"On {counted(apart.sessions, 'held-out session')} nDCG@{settings.top_k} goes from {found.old:.4f} to "
        f"{found.new:.4f}, by {apart.mean:+.4f}, at least {apart.lower_bound:+.4f} ({settings.confidence:.0%}, "
        f"one-sided; deviation by session {apart.deviation:.3f})."
    )
    automatic = apart.lower_bound > 0.0
    person = apart.lower_bound > -settings.non_inferiority and apart.mean > 0.0
    how = ""
    if not automatic:
        # So many sessions would have shown a rise of this size.
        needed = (1.645 * apart.deviation / apart.mean) ** 2 if apart.mean > 0.0 else np.inf
        how = (
            f" A rise of this size shows surely from about {needed:.0f} held-out sessions on."
            if np.isfinite(needed) and needed > apart.sessions
            else " Nothing says that they are better: keep the weights that serve."
        )
    return [
        Gate("ndcg", apart.lower_bound, 0.0, automatic, words + how),
        Gate(
            "ndcg_by_a_person",
            apart.lower_bound,
            -settings.non_inferiority,
            person,
            f"A person may promote where the lower bound is above {-settings.non_inferiority:g} and the mean above 0.",
        ),
    ]


def namespace_gates(
    dataset: Dataset, old_scores: Floats, new_scores: Floats, held_out: NDArray[np.bool_], settings: GateSettings
) -> list[Gate]:
    """Whether a namespace surely ranks worse than with what serves it now, whatever all together gain. Judged are those
    with MIN_SESSIONS held-out sessions, by one-sided bounds (Student's t) that all hold at once (Bonferroni). No gate
    for one namespace alone, which the nDCG gates have judged."""
    if len(set(dataset.packets.namespace)) < 2:
        return []
    old, new = (ndcg_by_session(dataset, scores, held_out, settings.top_k) for scores in (old_scores, new_scores))
    apart = new.value - old.value
    first = np.unique(dataset.packets.session, return_index=True)[1]
    names, of_session = np.unique(
        np.array(dataset.packets.namespace, dtype=object).astype(str)[first[old.session]], return_inverse=True
    )
    count = np.bincount(of_session, minlength=len(names))
    judged = np.flatnonzero(count >= MIN_SESSIONS)
    if not len(judged):
        words = f"No namespace has {MIN_SESSIONS} held-out sessions: none is judged on its own."
        return [Gate("namespaces", None, 0.0, None, words)]
    highest = np.empty(len(judged))
    for place, number in enumerate(judged.tolist()):
        mine = apart[of_session == number]
        reach = student.ppf(1.0 - (1.0 - settings.confidence) / len(judged), len(mine) - 1)
        highest[place] = mine.mean() + reach * mine.std(ddof=1) / np.sqrt(len(mine))
    worst = int(highest.argmin())
    name, value = str(names[judged[worst]]), float(highest[worst])
    passed = value >= 0.0
    words = (
        f"Of {counted(len(judged), 'namespace')} with {MIN_SESSIONS} held-out sessions or more none surely ranks worse."
    )
    if not passed:
        words = (
            f"In {(highest < 0.0).sum()} of {counted(len(judged), 'namespace')} nDCG@{settings.top_k} surely falls, "
            f"most in {name!r}: at best by {value:+.4f}. Its need is another one: give it weights of its own "
            "(--namespace), or train without it."
        )
    return [Gate("namespaces", value, 0.0, passed, words)]


def curve_gates(sessions: int, folds: Sequence[Fold], settings: GateSettings) -> list[Gate]:
    """Whether curves may take the place of linear weights: enough sessions, and one time fold won after the other."""
    enough = sessions >= settings.least_curve_sessions
    words = f"{counted(sessions, 'session has', 'sessions have')} a used and an unused memory."
    if not enough:
        words += (
            f" Curves take the place of linear weights from {settings.least_curve_sessions:,} on: "
            f"{settings.least_curve_sessions - sessions:,} more. Until then train with --form linear."
        )
    first = Gate("curve_sessions", float(sessions), float(settings.least_curve_sessions), enough, words)
    row = 0
    for fold in folds:
        row = row + 1 if fold.won else 0
    passed = row >= settings.least_curve_folds
    shown = "; ".join(
        f"{fold.curves:.4f} against {fold.old:.4f} and {fold.linear:.4f} in {counted(fold.sessions, 'session')}"
        for fold in folds
    )
    words = (
        f"nDCG@{settings.top_k} of curves, against the weights that serve and linear ones fitted to the same sessions, "
        f"each fold by what came before it: {shown or 'no fold could be made'}. Won without a break at the end: {row}."
    )
    if not passed:
        words += (
            f" {settings.least_curve_folds} in a row are needed: train with --form linear, or wait for more sessions."
        )
    return [first, Gate("curve_folds", float(row), float(settings.least_curve_folds), passed, words)]


def starvation_gates(old: Shown, new: Shown, settings: GateSettings) -> list[Gate]:
    """Whether the new weights show fewer of the memories than the old ones do."""
    figures = (
        ("starvation_gini", old.gini, new.gini, "the Gini coefficient of how often each memory is shown"),
        ("starvation_top_share", old.top_share, new.top_share, "what the most shown hundredth of memories takes"),
        ("starvation_never", old.never, new.never, "the share of candidates that are never shown"),
    )
    gates = []
    for name, before, after, what in figures:
        passed = after - before <= settings.most_starvation
        words = f"With the new weights {what} goes from {before:.3f} to {after:.3f}."
        if not passed:
            words += f" It may rise by {settings.most_starvation:g} at most: fewer memories would ever be seen."
        gates.append(Gate(name, after - before, settings.most_starvation, passed, words))
    return gates


_NO_DRAWS = "INSUFFICIENT: no memory of a reserved slot was reported on in the held-out sessions."


def off_policy_gates(found: OffPolicy | None) -> list[Gate]:
    """What the reserved slots say. Too little evidence is shown, and neither passes nor blocks."""
    if found is None or not found.sufficient:
        words = found.words if found is not None else _NO_DRAWS
        return [Gate("off_policy", None, 0.0, None, words)]
    highest = min(found.estimates[name].high for name in ("SNIPS", "DR"))
    worse = found.words + (" An interval lies wholly below 0." if found.harmful else "")
    agree = "SNIPS and DR " + ("contradict each other beyond their intervals." if found.at_odds else "agree.")
    return [
        Gate("off_policy", highest, 0.0, not found.harmful, worse),
        Gate("off_policy_agreement", float(found.at_odds), 0.0, not found.at_odds, agree),
    ]


def decide(train: Sequence[Gate], promote: Sequence[Gate]) -> Promotion:
    """Who may promote, by all gates."""
    by_name = {gate.gate: gate for gate in promote}
    others = [gate for gate in promote if gate.gate not in ("ndcg", "ndcg_by_a_person")]
    if any(gate.passed is False for gate in (*train, *others)):
        return Promotion.REFUSED
    if by_name["ndcg"].passed:
        return Promotion.AUTOMATIC
    return Promotion.PERSON if by_name["ndcg_by_a_person"].passed else Promotion.REFUSED
