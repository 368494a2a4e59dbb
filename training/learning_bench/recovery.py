"""How much of what labels would give comes back from reports of use, starting from poor weights."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise

import numpy as np

from sidecar.weights import PRESETS, Weights
from training.learning_bench.rows import Row, Say, at_least, at_most, beside, learned, supervised, together, trained
from training.promotion import Promotion
from training.run import TrainSettings
from training.worlds import BETWEEN, START, World, play

COUNTS = (200, 1_000)
REFITS = (50, 100, 150, 200, 400, 600, 800, 1_000)
"""Reported packets after which weights are refitted and served."""
GOALS = {200: 0.90, 1_000: 0.97}
WHEN = "every 50 up to 200, then every 200"
RUNS = 12
"""Runs of a chain at most."""
RUN_SESSIONS = 500


def left_out(worlds: Sequence[World]) -> Iterator[tuple[World, World, float, float]]:
    """Each world left out: it, the others together, and nDCG@10 there of `engine` and of weights fitted on labels."""
    for held in worlds:
        others = [world for world in worlds if world is not held]
        yield held, together(others), held.ndcg(PRESETS["engine"]), held.ndcg(supervised(others))


def recovery(worlds: Sequence[World], seeds: int, say: Say) -> list[Row]:
    """After 200 and 1,000 reported packets, with refits that serve, and with `engine` serving throughout."""
    share: dict[tuple[int, bool], list[float]] = {}
    for held, others, low, high in left_out(worlds):
        for seed in range(seeds):
            for refits in (True, False):
                dice = np.random.default_rng(seed)
                log, weights = [], PRESETS["engine"]
                for done, count in pairwise((0, *REFITS)):
                    start = START + done * BETWEEN
                    log += play(others, weights, dice, sessions=count - done, start=start, label=f"{done}-")
                    if not refits and count not in COUNTS:
                        continue
                    fitted = learned(log, PRESETS["engine"])
                    if refits:
                        weights = fitted
                    if count in COUNTS:
                        gained = (held.ndcg(fitted) - low) / (high - low)
                        share.setdefault((count, refits), []).append(gained)
        say(f"recovery: {held.name} left out")
    rows = []
    for (count, refits), values in sorted(share.items()):
        name = f"share of the supervised gain recovered after {count:,} reported packets"
        mean = float(np.mean(values))
        note = f"{len(worlds)} conversations left out x {seeds} seeds, lowest {min(values):.2f}; --preview"
        if refits:
            rows.append(at_least(name, mean, GOALS[count], "share", f"{note}, refit and served {WHEN}"))
        else:
            rows.append(beside(f"{name}, `engine` serving throughout", mean, "share", note))
    return rows


def chain(worlds: Sequence[World], say: Say) -> list[Row]:
    """Gated, capped runs with default settings, each served if promoted automatically, until 90 % is reached."""
    needed: list[int] = []
    reached: list[float] = []
    for held, others, low, high in left_out(worlds):
        dice = np.random.default_rng(1)
        weights: Weights = PRESETS["engine"]
        log, promotions, share = [], 0, 0.0
        for run_number in range(RUNS):
            start = START + run_number * RUN_SESSIONS * BETWEEN
            log += play(others, weights, dice, sessions=RUN_SESSIONS, start=start, label=f"{run_number}-")
            run = trained(log, weights, TrainSettings())
            if run.trained is None or run.trained.promotion is not Promotion.AUTOMATIC:
                continue
            weights, promotions = run.trained.new.common, promotions + 1
            share = (held.ndcg(weights) - low) / (high - low)
            if share >= 0.9:
                break
        needed.append(promotions if share >= 0.9 else 99)
        reached.append(share)
        say(f"chain: {held.name} left out, {share:.2f} after {promotions} promotions")
    note = f"{len(worlds)} conversations left out, {RUN_SESSIONS} more sessions a run; 99 = not within {RUNS} runs"
    return [
        at_most("gated, capped runs: promotions until 90 % is recovered (worst)", max(needed), 8, "promotions", note),
        beside("gated, capped runs: share recovered where the chain ended", float(np.mean(reached)), "share", note),
    ]
