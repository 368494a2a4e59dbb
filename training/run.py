"""One training run over a data set: gates, half-lives, weights, movement, namespaces, and the gates of a promotion.

Pure: the same data set, weights and settings give the same run, to the last bit.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from sidecar.domain import Floats
from sidecar.weights import Weights
from training.curves import GROUPS, CurvesFit, capped_curves, fit_curves
from training.dataset import Dataset
from training.gates import (
    Coverage,
    Gate,
    GateSettings,
    coverage,
    curves_gate,
    data_gates,
    fit_gates,
    of_agents,
    refused,
    silent_agents,
    sound,
)
from training.half_lives import HalfLife, fit_half_lives, moved, with_half_lives
from training.held_out import Shown, Split, shown_by, split_by_time
from training.linear import FOLDS, LAMBDAS, LEAST_VARYING_SESSIONS, LinearFit, fit_linear
from training.model import Model, moved_weights
from training.movement import Candidates, Movement, MovementCaps, capped_movement
from training.namespaces import Namespaces, fit_namespaces
from training.off_policy import OffPolicy, estimate
from training.pairs import MAX_AGENT_SHARE, Pairs, make_pairs
from training.position import Positions, estimate_positions
from training.promotion import (
    HeldOut,
    Promotion,
    compare,
    curve_gates,
    decide,
    namespace_gates,
    ndcg_gates,
    off_policy_gates,
    starvation_gates,
)
from training.reserved_draws import reserved_draws
from training.time_folds import Fold, time_folds

MOST_OWN = 1_000
"""Namespaces that one run gives weights of their own, those with the most sessions: a model fits into one message."""
FITTED = "fitted"
"""The version of weights before their files have given them one."""

Progress = Callable[[str, int, int], None]


@dataclass(frozen=True, slots=True)
class TrainSettings:
    """How a run goes. `form`: linear or curves. `preview`: without any gate or movement cap; what comes out cannot be
    promoted.

    `namespace`: fit this one alone, beside common weights that stay. Curves are common to all namespaces.
    """

    form: str = "linear"
    seed: int = 0
    preview: bool = False
    namespace: str = ""
    gates: GateSettings = field(default_factory=GateSettings)
    movement: MovementCaps = field(default_factory=MovementCaps)
    lambdas: tuple[float, ...] = LAMBDAS
    folds: int = FOLDS
    least_varying_sessions: int = LEAST_VARYING_SESSIONS
    max_agent_share: float = MAX_AGENT_SHARE
    half_lives: bool = True
    own_namespaces: bool = True


@dataclass(frozen=True, slots=True)
class Trained:
    """What a run made, and all that it goes by.

    `logged` is the data set as it was served, `dataset` the same with the new half-lives; `old` and `new` score them.
    `movements` are by namespace, "" for the common weights; a preview has none. `folds` are of curves that would take
    the place of linear weights.
    """

    logged: Dataset
    dataset: Dataset
    pairs: Pairs
    split: Split
    old: Model
    new: Model
    fit: LinearFit | CurvesFit
    half_lives: tuple[HalfLife, ...]
    positions: Positions
    namespaces: Namespaces
    movements: Mapping[str, Movement]
    held_out: HeldOut
    shown_before: Shown
    shown_after: Shown
    off_policy: OffPolicy | None
    promotion: Promotion
    folds: tuple[Fold, ...] = ()


@dataclass(frozen=True, slots=True)
class Run:
    """A run's outcome: `trained` is None where a gate refused, and the gates say why."""

    settings: TrainSettings
    agents: tuple[Coverage, ...]
    left_out_agents: tuple[str, ...]
    train_gates: tuple[Gate, ...]
    promote_gates: tuple[Gate, ...]
    trained: Trained | None

    @property
    def refusals(self) -> list[Gate]:
        """The gates that stopped the training."""
        return refused(self.train_gates)


def train(
    dataset: Dataset, base: Model, settings: TrainSettings, progress: Progress = lambda step, done, total: None
) -> Run:
    """Trains from `base` on the data set. A refused run changes nothing."""
    agents = coverage(dataset)
    left_out = [] if settings.preview else silent_agents(agents, settings.gates)
    kept = of_agents(dataset, left_out)
    pairs = make_pairs(dataset, kept, max_agent_share=settings.max_agent_share)
    gates = [sound(dataset)] if settings.preview else data_gates(dataset, pairs, agents, settings.gates)
    if refused(gates) or not len(pairs):
        if not refused(gates):  # a preview of nothing
            gates += [each for each in data_gates(dataset, pairs, agents, settings.gates) if each.gate == "sessions"]
        return Run(settings, tuple(agents), tuple(left_out), tuple(gates), (), None)
    least = 0 if settings.preview else settings.gates.least_held_out_sessions
    split = split_by_time(dataset, pairs, settings.gates.held_out_share, least)
    del pairs
    old = base.of(settings.namespace)
    positions = estimate_positions(dataset, kept & split.fit)
    theta = positions.of_rows(dataset)
    fitted_pairs = make_pairs(dataset, kept & split.fit, theta, settings.max_agent_share)
    half_lives: list[HalfLife] = []
    if settings.half_lives:
        half_lives = fit_half_lives(
            dataset,
            fitted_pairs,
            old,
            seed=settings.seed,
            progress=lambda done, total: progress("half-lives", done, total),
        )
    days = moved(half_lives)
    aged = with_half_lives(dataset, days)
    if days:
        fitted_pairs = make_pairs(aged, kept & split.fit, theta, settings.max_agent_share)
    fit = _fit(aged, fitted_pairs, old, settings, progress)
    if isinstance(fit, CurvesFit):
        gates.append(curves_gate(fit))
    if not settings.preview:
        gates += fit_gates(fit, settings.gates)
    if refused(gates):
        return Run(settings, tuple(agents), tuple(left_out), tuple(gates), (), None)
    found = Namespaces()
    if isinstance(fit, LinearFit) and settings.own_namespaces and not settings.namespace:
        columns = np.flatnonzero(fit.fitted)
        found = fit_namespaces(
            aged,
            kept & split.fit,
            old,
            columns,
            fit.v[columns],
            theta,
            settings.max_agent_share,
            lambda done, total: progress("namespaces", done, total),
        )
    candidates = Candidates.of(dataset)
    progress("movement", 0, 1)
    if isinstance(fit, CurvesFit):
        new, movements = _moved_curves(base, fit, days, candidates, settings)
    else:
        new, movements = _moved(base, fit, found, days, candidates, dataset.packets.namespace, settings)
    progress("movement", 1, 1)
    folds: list[Fold] = []
    if isinstance(fit, CurvesFit) and base.common.form == "linear" and not settings.preview:
        folds = time_folds(
            dataset,
            aged,
            kept,
            theta,
            base,
            count=settings.gates.least_curve_folds,
            k=settings.gates.top_k,
            seed=settings.seed,
            max_agent_share=settings.max_agent_share,
            progress=lambda done, total: progress("time folds", done, total),
        )
    return _judged(
        Run(settings, tuple(agents), tuple(left_out), tuple(gates), (), None),
        dataset,
        aged,
        kept,
        fitted_pairs,
        split,
        base,
        new,
        (fit, tuple(half_lives), positions, found, movements, tuple(folds)),
        progress,
    )


def _fit(
    dataset: Dataset, pairs: Pairs, old: Weights, settings: TrainSettings, progress: Progress
) -> LinearFit | CurvesFit:
    if settings.form == "curves":
        return fit_curves(
            dataset,
            pairs,
            old,
            k=settings.gates.top_k,
            seed=settings.seed,
            groups=0 if settings.preview else GROUPS,
            least_varying_sessions=settings.least_varying_sessions,
            progress=lambda done, total: progress("curves", done, total),
        )
    return fit_linear(
        pairs,
        old,
        lambdas=settings.lambdas,
        folds=settings.folds,
        seed=settings.seed,
        least_varying_sessions=settings.least_varying_sessions,
        progress=lambda done, total: progress("weights", done, total),
    )


def _moved_curves(
    base: Model, fit: CurvesFit, days: Mapping[str, float], candidates: Candidates, settings: TrainSettings
) -> tuple[Model, dict[str, Movement]]:
    """The new curves, as far from what serves as re-ranking allows; a preview goes all the way."""
    found, movement = capped_curves(base.common, fit.curves, candidates, settings.movement, free=settings.preview)
    common = replace(found, version=FITTED, half_life_days={**found.half_life_days, **days})
    return Model(common), {} if settings.preview else {"": movement}


def _moved(
    base: Model,
    fit: LinearFit,
    found: Namespaces,
    days: Mapping[str, float],
    candidates: Candidates,
    namespaces: tuple[str, ...],
    settings: TrainSettings,
) -> tuple[Model, dict[str, Movement]]:
    """The new weights of all, each as far from what serves there now as the caps allow."""
    wanted: dict[str, Floats] = {settings.namespace: fit.weights}
    differing = sorted((each for each in found.found if each.differs), key=lambda each: -each.sessions)
    wanted |= {each.namespace: each.weights for each in differing[:MOST_OWN]}
    names = np.array(namespaces, dtype=object).astype(str)
    own: dict[str, Floats] = {}
    movements: dict[str, Movement] = {}
    for name, values in wanted.items():
        if settings.preview:
            own[name] = values
            continue
        chosen = np.ones(len(names), bool) if not name else names == name
        movements[name] = capped_movement(base.of(name), values, candidates.of_packets(chosen), settings.movement)
        own[name] = movements[name].weights
    of_common = own.pop("", base.common.values)
    common = moved_weights(base.common, of_common, days, FITTED)
    of_namespaces = {
        name: moved_weights(base.of(name), own.get(name, base.of(name).values), days, FITTED)
        for name in {**base.namespaces, **own}
    }
    return Model(common, of_namespaces), movements


def _judged(
    run: Run,
    logged: Dataset,
    aged: Dataset,
    kept: NDArray[np.bool_],
    pairs: Pairs,
    split: Split,
    old: Model,
    new: Model,
    parts: tuple[
        LinearFit | CurvesFit, tuple[HalfLife, ...], Positions, Namespaces, Mapping[str, Movement], tuple[Fold, ...]
    ],
    progress: Progress,
) -> Run:
    settings = run.settings
    progress("comparison", 0, 3)
    scores = old.served_scores(logged), new.served_scores(aged)
    judged = kept & split.held_out
    held_out = compare(logged, *scores, judged, settings.gates, settings.seed)
    progress("comparison", 1, 3)
    namespaces = logged.packets.namespace
    before, after = Candidates.of(logged), Candidates.of(aged)
    shown_before = shown_by(before, old.candidate_scores(before, namespaces), settings.gates.top_k)
    shown_after = shown_by(after, new.candidate_scores(after, namespaces), settings.gates.top_k)
    progress("comparison", 2, 3)
    off_policy = _off_policy(aged, new, judged)
    progress("comparison", 3, 3)
    fit, half_lives, positions, found, movements, folds = parts
    replaces_linear = new.common.form == "curves" and old.common.form == "linear"
    sessions = fit.sessions + held_out.difference.sessions
    promote = [
        *ndcg_gates(held_out, settings.gates),
        *namespace_gates(logged, *scores, judged, settings.gates),
        *(curve_gates(sessions, folds, settings.gates) if replaces_linear else ()),
        *off_policy_gates(off_policy),
        *starvation_gates(shown_before, shown_after, settings.gates),
    ]
    trained = Trained(
        logged=logged,
        dataset=aged,
        pairs=pairs,
        split=split,
        old=old,
        new=new,
        fit=fit,
        half_lives=half_lives,
        positions=positions,
        namespaces=found,
        movements=movements,
        held_out=held_out,
        shown_before=shown_before,
        shown_after=shown_after,
        off_policy=off_policy,
        promotion=Promotion.SKIPPED if settings.preview else decide(run.train_gates, promote),
        folds=folds,
    )
    return Run(settings, run.agents, run.left_out_agents, run.train_gates, tuple(promote), trained)


def _off_policy(dataset: Dataset, new: Model, packets: NDArray[np.bool_]) -> OffPolicy | None:
    """What the reserved slots of held-out packets say of the new weights; None where nothing can be said."""
    try:
        draws = reserved_draws(dataset, new, packets)
    except ValueError:  # of another rule than this version's: its chances cannot be computed again
        return None
    return None if draws is None else estimate(draws)
