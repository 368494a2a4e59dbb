"""What the gates let through: random feedback, harmful weights, helpful ones."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from sidecar.domain import Packet
from sidecar.store.log import LoggedReport, LogRow
from sidecar.weights import PRESETS, Weights, make_weights
from training.gates import GateSettings
from training.held_out import shown_by
from training.learning_bench.rows import Row, Say, at_least, at_most, dataset_of, supervised, together, trained
from training.model import Model
from training.movement import Candidates, with_values
from training.off_policy import estimate
from training.promotion import Promotion, compare, decide, ndcg_gates, off_policy_gates, starvation_gates
from training.reserved_draws import reserved_draws
from training.run import TrainSettings
from training.worlds import Habits, World, play

SETTINGS = GateSettings()
HELD_OUT = 400
NOISE = (
    Habits("careful", use=0.9, slip=0.02, report=0.9),
    Habits("sloppy", use=0.6, slip=0.08, report=0.6, patience=0.93),
)
"""Two agents, one of which misses a third of what is relevant, names others, and looks at the first places more."""
LARGE = 6_000
"""Sessions by which the true difference is known to about .001."""
HALVINGS = 9


def judged(log: Sequence[LogRow], old: Weights, new: Weights, seed: int) -> tuple[Promotion, float, float]:
    """What the promotion gates say of weights that come from elsewhere: the outcome, the difference in nDCG@10, and its
    deviation by session. The whole log is held out."""
    dataset = dataset_of(log)
    every = np.ones(len(dataset.packets), bool)
    before, after = Model(old).served_scores(dataset), Model(new).served_scores(dataset)
    found = compare(dataset, before, after, every, SETTINGS, seed)
    candidates = Candidates.of(dataset)
    shown, would_show = (shown_by(candidates, candidates.scores(each), SETTINGS.top_k) for each in (old, new))
    draws = reserved_draws(dataset, Model(new))
    gates = [
        *ndcg_gates(found, SETTINGS),
        *off_policy_gates(None if draws is None else estimate(draws)),
        *starvation_gates(shown, would_show, SETTINGS),
    ]
    return decide([], gates), found.difference.mean, found.difference.deviation


def of_true_difference(world: World, good: Weights, away: Weights, wanted: float) -> Weights:
    """Weights on the way from `good` to `away` by which nDCG@10 on what is logged truly falls by `wanted`, as a large
    sample served by `good` shows."""
    log = play(world, good, np.random.default_rng(99), sessions=LARGE, habits=NOISE)
    dataset = dataset_of(log)
    every = np.ones(len(dataset.packets), bool)
    quick = replace(SETTINGS, bootstrap_rounds=10)
    before = Model(good).served_scores(dataset)
    low, high = 0.0, 1.0
    for _ in range(HALVINGS):
        middle = (low + high) / 2
        mixed = with_values(good, (1 - middle) * good.values + middle * away.values, "mixed")
        fall = -compare(dataset, before, Model(mixed).served_scores(dataset), every, quick, 0).difference.mean
        low, high = (middle, high) if fall < wanted else (low, middle)
    return with_values(good, (1 - high) * good.values + high * away.values, "mixed")


def promotions(worlds: Sequence[World], seeds: int, say: Say) -> list[Row]:
    """Harmful and helpful weights through the gates, and runs on reports that say nothing."""
    world = together(worlds)
    good = supervised(worlds)
    away = make_weights("away", {"semantic": 0.2, "kind_prior": 0.4, "recency": 0.4})
    harmful, poor = (of_true_difference(world, good, away, wanted) for wanted in (0.02, 0.03))
    say("promotions: weights of a known difference found")
    outcomes: dict[str, list[tuple[Promotion, float, float]]] = {"harmful": [], "helpful": []}
    for seed in range(seeds):
        for name, old, new in (("harmful", good, harmful), ("helpful", poor, good)):
            log = play(world, old, np.random.default_rng(seed), sessions=HELD_OUT, habits=NOISE)
            outcomes[name].append(judged(log, old, new, seed))
        if seed % 20 == 19:
            say(f"promotions: {seed + 1} of {seeds} seeds")

    def automatic(name: str) -> int:
        return sum(each[0] is Promotion.AUTOMATIC for each in outcomes[name])

    def note(name: str) -> str:
        differences = [difference for _, difference, _ in outcomes[name]]
        deviations = [deviation for _, _, deviation in outcomes[name]]
        return (
            f"{seeds} seeds, {HELD_OUT} sessions with {len(NOISE)} agents; nDCG@10 {np.mean(differences):+.4f} in the "
            f"mean, deviation by session {np.mean(deviations):.3f}"
        )

    random = sum(_random_feedback(world, seed) for seed in range(seeds))
    say("promotions: random feedback done")
    return [
        at_most(
            "harmful weights (true -.02) promoted automatically", automatic("harmful"), 0, "seeds", note("harmful")
        ),
        at_least(
            "helpful weights (true +.03) promoted automatically",
            automatic("helpful"),
            0.8 * seeds,
            "seeds",
            note("helpful"),
        ),
        at_most(
            "random feedback: promotions", random, 0.11 * seeds, "seeds", f"{seeds} seeds, 400 sessions, whole runs"
        ),
    ]


def _random_feedback(world: World, seed: int) -> bool:
    """Whether a whole run is promoted automatically when use is the same for every memory."""
    dice = np.random.default_rng(10_000 + seed)
    log: list[LogRow] = []
    packets: dict[str, Packet] = {}
    for row in play(world, PRESETS["default"], dice, sessions=400):
        if isinstance(row, LoggedReport):
            items = packets[row.packet_id].items
            used = frozenset(item.memory_id for item in items if dice.random() < 0.25)
            row = replace(row, report=replace(row.report, used=used))
        elif isinstance(row, Packet):
            packets[row.packet_id] = row
        log.append(row)
    run = trained(log, PRESETS["default"], TrainSettings(seed=seed))
    return run.trained is not None and run.trained.promotion is Promotion.AUTOMATIC
