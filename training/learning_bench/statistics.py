"""Whether the estimates are what they say: coverage of intervals, missing reports, published figures, and what a large
log costs."""

from __future__ import annotations

import resource
import time
from dataclasses import replace
from pathlib import Path

import numpy as np

from sidecar.domain import Floats, Packet
from sidecar.features import FEATURE_NAMES, PARTLY_FED_BY_USE
from sidecar.ranking.reserved import ReserveSettings, draw
from sidecar.store.log import LoggedReport, LogRow
from sidecar.weights import PRESETS, Weights, make_weights
from training.boosting import Ranking
from training.lambdarank import fit_booster, parameters
from training.learning_bench.rows import Row, Say, at_least, at_most, dataset_of, trained
from training.linear import fit_linear
from training.off_policy import Draws, estimate
from training.pairs import make_pairs
from training.run import TrainSettings
from training.worlds import Habits, Task, World, play

SETTINGS = ReserveSettings()
SESSIONS = 150


def coverage(seeds: int, say: Say) -> list[Row]:
    """How often the 95 % interval of SNIPS holds the truth, with sessions that have moods of their own."""
    held = 0
    for seed in range(seeds):
        draws, truth = _pools(seed)
        found = estimate(draws).estimates["SNIPS"]
        held += found.low <= truth <= found.high
        if seed % 500 == 499:
            say(f"coverage: {seed + 1} of {seeds} seeds")
    share = held / seeds
    note = f"{seeds:,} seeds, {SESSIONS} sessions of 1 to 3 packets"
    # For fewer seeds the bounds widen by what chance alone does to a correct interval.
    room = 0.015 if seeds >= 2_000 else 0.015 + 3 * (0.95 * 0.05 / seeds) ** 0.5
    goal = f"{0.95 - room:.3f} to {0.95 + room:.3f}"
    return [
        Row("SNIPS: coverage of the clustered 95 % interval", share, "share", goal, abs(share - 0.95) <= room, note)
    ]


def _pools(seed: int) -> tuple[Draws, float]:
    """Draws from small pools by the product's rule, and by how much the target's use rate truly differs."""
    dice = np.random.default_rng(seed)
    logged, target = np.array([0.5, 0.5]), np.array([1.0, 0.0])
    drawn: list[tuple[float, float, float, int, Floats]] = []
    pools: list[tuple[float, int, Floats]] = []
    apart = []
    for session in range(SESSIONS):
        mood = dice.normal(0.0, 0.1)
        for _ in range(int(dice.integers(1, 4))):
            features = dice.random((int(dice.integers(3, 12)), 2))
            reported = dice.integers(0, 5, len(features)).tolist()
            chance = np.clip(0.15 + 0.6 * features[:, 0] - 0.2 * features[:, 1] + mood, 0.02, 0.98)
            found = draw(features @ logged, reported, 1, lambda _: float(dice.random()), SETTINGS)
            pi = found.inclusion_propensity
            wanted = draw(features @ target, reported, 1, lambda _: 0.0, SETTINGS).inclusion_propensity
            apart.append(float((wanted - pi) @ chance))
            (index,) = found.drawn
            reward = float(dice.random() < chance[index])
            drawn.append((reward, float(pi[index]), float(wanted[index]), session, features[index]))
            pools += [(float(w), session, row) for w, row in zip(wanted, features, strict=True)]
    rewards, propensity, weighted, sessions, rows = zip(*drawn, strict=True)
    pool_target, pool_sessions, pool_rows = zip(*pools, strict=True)
    return (
        Draws(
            reward=np.array(rewards),
            propensity=np.array(propensity),
            target=np.array(weighted),
            session=np.array(sessions),
            features=np.array(rows),
            pool_target=np.array(pool_target),
            pool_session=np.array(pool_sessions),
            pool_features=np.array(pool_rows),
        ),
        float(np.mean(apart)),
    )


TRUTH = {"semantic": 0.4, "lexical": 0.3, "subject": 0.3, "handles": 0.0}
RATES = {"talkative": 0.70, "silent": 0.05}


def missing(sessions: int, say: Say) -> list[Row]:
    """Agents that report 70 % and 5 % of their packets, the more of them the more was used: how far the worst weight
    lies from the truth."""
    dice = np.random.default_rng(11)
    columns = [FEATURE_NAMES.index(name) for name in TRUTH]
    values = np.array(list(TRUTH.values()))
    ids = tuple(f"m{n:02}" for n in range(12))
    log: list[LogRow] = []
    names = list(RATES)
    for session in range(sessions):
        features = np.zeros((12, len(FEATURE_NAMES)))
        features[:, columns] = dice.random((12, len(columns)))
        chance = 1 / (1 + np.exp(5.0 - 8.0 * features[:, columns] @ values))
        used = (dice.random(12) < chance).astype(float)
        name = names[session % 2]
        rate = RATES[name] * (1.0 if used.sum() >= 2 else 0.5) * (0.6 + 0.8 * features[:, columns[-1]].mean())
        task = Task(features, np.zeros((12, len(PARTLY_FED_BY_USE))), used, ids)
        habit = Habits(name, use=1.0, slip=0.0, report=min(rate, 1.0))
        log += play(World("n", (task,)), _alike(), dice, sessions=1, habits=(habit,), slots=0, label=f"{session}-")
    settings = TrainSettings(preview=True, lambdas=(0.0,), max_agent_share=1.0, half_lives=False, own_namespaces=False)
    run = trained(log, _alike(), settings)
    assert run.trained is not None
    found = run.trained.fit.weights[columns]
    say("missing: fitted")
    worst = float(np.abs(found - values).max())
    shown = ", ".join(f"{name} {value:.3f}" for name, value in zip(TRUTH, found, strict=True))
    note = f"{sessions:,} sessions of agents at 70 % and 5 %, whose reports depend on what was used; found {shown}"
    return [
        at_most("informative missing reports: the worst weight's distance from the truth", worst, 0.03, "weight", note)
    ]


def _alike() -> Weights:
    return make_weights("alike", dict.fromkeys(TRUTH, 0.25))


def published(ltr: Path, say: Say) -> list[Row]:
    """LightGBM's own lambdarank example through our training code, stopped as its own test stops."""
    train, test = _example(ltr, "train"), _example(ltr, "test")
    given = parameters(301, 3, 7, [2.0**grade - 1 for grade in range(5)], eval_at=[1, 3], patience=10)
    found = fit_booster(train, test, given, rounds=50)
    score = sum(
        (curve.at(test.features[:, column]) for column, curve in found.curves.items()), np.zeros(len(test.grade))
    )
    say("published: fitted")
    note = "graded gains; singleton, rising curves; best iteration chosen on the test set, as LightGBM's own test does"
    return [
        at_least("LightGBM's example: nDCG@1", _graded(1, test, score), 0.5674, "nDCG@1", note),
        at_least("LightGBM's example: nDCG@3", _graded(3, test, score), 0.578, "nDCG@3", note),
        at_most("LightGBM's example: best iteration", found.tree_count, 24, "trees", note),
    ]


def _example(folder: Path, name: str) -> Ranking:
    lines = [line.split() for line in (folder / f"rank.{name}").read_text(encoding="utf-8").splitlines()]
    features = np.zeros((len(lines), 301))
    for number, line in enumerate(lines):
        for column, value in (each.split(":") for each in line[1:]):
            features[number, int(column)] = float(value)
    group = np.loadtxt(folder / f"rank.{name}.query", dtype=np.int64)
    return Ranking(features, np.array([int(line[0]) for line in lines]), group, np.ones(len(lines)))


def _graded(k: int, data: Ranking, score: Floats) -> float:
    values = []
    for rows in np.split(np.arange(len(score)), np.cumsum(data.group)[:-1]):
        gain = 2.0 ** data.grade[rows] - 1.0
        discount = 1.0 / np.log2(np.arange(2, k + 2))
        best = np.sort(gain)[::-1][:k]
        got = gain[np.argsort(-score[rows], kind="stable")[:k]]
        values.append(1.0 if best.sum() == 0 else float(got @ discount[: len(got)] / (best @ discount[: len(best)])))
    return float(np.mean(values))


def large(world: World, packets: int, say: Say) -> list[Row]:
    """Building and fitting a log of so many packets of 12 memories, read as a stream, and the most memory that this
    process ever took."""
    few = play(world, PRESETS["default"], np.random.default_rng(1), sessions=min(packets, 2_000))
    copies = -(-packets // min(packets, 2_000))
    say("large: log made")
    begun, begun_processor = time.perf_counter(), time.process_time()
    dataset = dataset_of(_renamed(row, copy) for copy in range(copies) for row in few)
    fit_linear(make_pairs(dataset), PRESETS["default"])
    seconds, processor = time.perf_counter() - begun, time.process_time() - begun_processor
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    size = f"{len(dataset.packets):,} packets, {len(dataset):,} memories"
    say(f"large: {processor:.0f} s of the processor in {seconds:.0f} s")
    return [
        at_most(
            "a large log: build and fit, seconds of the processor",
            processor,
            60.0,
            "s",
            f"{size}; {seconds:.0f} s by the clock, with other work on both cores",
        ),
        at_most("a large log: peak memory", peak, 2.0, "GiB", f"{size}, read as a stream"),
    ]


def _renamed(row: LogRow, copy: int) -> LogRow:
    if isinstance(row, Packet):
        return replace(row, packet_id=f"{copy}-{row.packet_id}", session_id=f"{copy}-{row.session_id}")
    if isinstance(row, LoggedReport):
        report = replace(row.report, report_id=f"{copy}-{row.report.report_id}")
        return replace(row, packet_id=f"{copy}-{row.packet_id}", report=report)
    return row
