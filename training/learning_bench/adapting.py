"""Needs that differ by namespace, needs that change, and rounds of serving what was learned from what was served."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from sidecar.domain import Floats, Packet
from sidecar.features import FEATURE_NAMES
from sidecar.store.log import LoggedReport, LogRow
from sidecar.weights import PRESETS, Weights, make_weights
from training.gates import GateSettings
from training.learning_bench.rows import (
    FOREVER,
    PREVIEW,
    Row,
    Say,
    at_least,
    at_most,
    beside,
    interval,
    learned,
    supervised,
    trained,
)
from training.movement import MovementCaps
from training.promotion import Promotion
from training.rounds import served_next
from training.run import TrainSettings
from training.worlds import BETWEEN, START, Habits, Task, World, ndcg, play

SESSIONS = 300
KIND = FEATURE_NAMES.index("kind_prior")
FREQUENCY = FEATURE_NAMES.index("frequency")
PRIORS = (1.0, 6 / 7, 5 / 7, 4 / 7, 1 / 7)
NEVER_BELOW = -0.005
REFIT_EVERY = 50
WINDOW = 300
"""Sessions that a refit looks back on where the need may change."""
WITHIN = 0.01
NEVER = 1_001
DRIFT_SEEDS = (3, 4, 5)
ROUNDS = 10
ROUND_SESSIONS = 300
ROUND_HABITS = (Habits("careful", report=0.7), Habits("sloppy", use=0.6, slip=0.05, report=0.4))
UNCAPPED = TrainSettings(
    gates=GateSettings(most_standard_error=1.0), movement=MovementCaps(max_l1=2.0, max_step=1.0, least_overlap=0.0)
)
"""As a person sets it who wants large moves: what a run finds is served if the held-out comparison says so."""
UNGATED_SEEDS = 5
ALSO = ("kind_prior", "recency")
"""What some needs go by beside task fit."""


def only_one_kind(world: World, name: str) -> World:
    """The same memories with kinds dealt out, and only decisions that fit the task are used: the five likeliest."""
    dice = np.random.default_rng(5)
    kinds: dict[str, float] = {}

    def worth(task: Task) -> Task:
        prior = np.array([kinds.setdefault(each, PRIORS[int(dice.integers(len(PRIORS)))]) for each in task.ids])
        features = task.features.copy()
        features[:, KIND] = prior
        fit = np.where(prior == 1.0, task.parts(PRESETS["default"]).task_fit, -1.0)
        chosen = np.zeros(len(fit))
        chosen[np.argsort(-fit, kind="stable")[:5]] = 1.0
        return replace(task, features=features, worth=chosen)

    return World(name, tuple(worth(task) for task in world.tasks))


def with_pairs(world: World, dice: np.random.Generator, weights: Weights, sessions: int) -> list[LogRow]:
    """A log of so many reported sessions, each with a used and an unused memory: others are played again."""
    log: list[LogRow] = []
    kept = attempt = 0
    while kept < sessions:
        packet: Packet | None = None
        start = START + kept * BETWEEN
        for row in play(world, weights, dice, sessions=1, start=start, label=f"{attempt}-"):
            if isinstance(row, Packet):
                packet = row
            elif isinstance(row, LoggedReport) and packet is not None and 0 < len(row.report.used) < len(packet.items):
                log += [packet, row]
                kept += 1
        attempt += 1
        if attempt > 20 * sessions:
            raise RuntimeError(f"{world.name}: agents hardly ever use what is served")
    return log


def adapting(worlds: Sequence[World], say: Say) -> list[Row]:
    """300 reported sessions in each namespace, all served by `default`: weights of its own against one for all."""
    default = PRESETS["default"]
    halves = [world.split(0.5, seed=1) for world in worlds]
    log: list[LogRow] = []
    for number, (seen, _) in enumerate(halves):
        log += with_pairs(seen, np.random.default_rng(number), default, SESSIONS)
    say("adapting: sessions played")
    preview = trained(log, default)
    capped = trained(log, default, TrainSettings())
    common = trained(log, default, replace(PREVIEW, own_namespaces=False))
    assert preview.trained is not None
    assert common.trained is not None
    rows = []
    for seen, held in halves:
        gains = _gains(held, default, preview.trained.new.of(held.name))
        low, high = interval(gains)
        mean = float(np.mean(gains))
        of_common = float(np.mean(_gains(held, default, common.trained.new.common)))
        of_labels = _gains(held, default, supervised([seen], ALSO))
        least, most = interval(of_labels)
        gated = 0.0
        if capped.trained is not None and capped.trained.promotion is not Promotion.REFUSED:
            gated = float(np.mean(_gains(held, default, capped.trained.new.of(held.name))))
        note = (
            f"[{low:+.3f}, {high:+.3f}] on {len(held.tasks)} held-out tasks, {len(seen.tasks)} others played; labels "
            f"of every memory there {np.mean(of_labels):+.3f} [{least:+.3f}, {most:+.3f}]; one common model "
            f"{of_common:+.3f}; one gated, capped run {gated:+.3f}"
        )
        name = f"own weights of {held.name}: gain in nDCG@10"
        if least > 0.0:
            rows.append(Row(name, mean, "nDCG@10", "> 0 by the lower bound: the need differs", low > 0.0, note))
        else:
            rows.append(at_least(name, mean, NEVER_BELOW, "nDCG@10", f"{note}; no need that labels show to differ"))
        say(f"adapting: {held.name} {mean:+.3f}")
    return rows


def _gains(held: World, old: Weights, new: Weights) -> list[float]:
    return [ndcg(task, task.parts(new).score) - ndcg(task, task.parts(old).score) for task in held.tasks]


def drift(before: World, after: World, say: Say) -> list[Row]:
    """The need changes after 300 sessions; refits every 50 on the last 300. The slowest of DRIFT_SEEDS."""
    seen, held = after.split(0.5, seed=2)
    optimum = held.ndcg(
        learned(with_pairs(seen, np.random.default_rng(9), PRESETS["default"], 1_500), PRESETS["default"])
    )
    rows = []
    for name, settings in (("--preview", PREVIEW), ("gated and capped", TrainSettings())):
        found = [_followed(before, seen, held, optimum, settings, seed) for seed in DRIFT_SEEDS]
        slowest, worst = max(took for took, _ in found), min(lead for _, lead in found)
        note = (
            f"slowest of {len(found)} seeds; refit every {REFIT_EVERY} on the last {WINDOW} sessions; ended "
            f"{worst:+.3f} from the optimum, {optimum:.3f}; {NEVER:,} = never"
        )
        title = f"sessions after a change of need until within {WITHIN:g} of the optimum ({name})"
        rows.append(
            at_most(title, slowest, 400, "sessions", note)
            if settings.preview
            else beside(title, slowest, "sessions", note)
        )
        say(f"drift: {name} done, {[took for took, _ in found]}")
    return rows


def _followed(
    before: World, seen: World, held: World, optimum: float, settings: TrainSettings, seed: int
) -> tuple[int, float]:
    """After how many sessions of the new need the served weights were within WITHIN of its optimum, NEVER if they were
    not within a thousand, and by how much they were above it in the end."""
    dice = np.random.default_rng(seed)
    weights = PRESETS["default"]
    log = play(before, weights, dice, sessions=SESSIONS)
    lead = 0.0
    for done in range(0, NEVER - 1, REFIT_EVERY):
        start = START + (SESSIONS + done) * BETWEEN
        log += play(seen, weights, dice, sessions=REFIT_EVERY, start=start, label=f"{done}-")
        recent = [row for row in log if _time_of(row) > start + (REFIT_EVERY - WINDOW) * BETWEEN]
        weights = served_next(trained(recent, weights, settings), weights)
        lead = held.ndcg(weights) - optimum
        if lead >= -WITHIN:
            return done + REFIT_EVERY, lead
    return NEVER, lead


def _time_of(row: LogRow) -> int:
    if isinstance(row, LoggedReport):
        return row.report.receive_time
    return row.create_time if isinstance(row, Packet) else FOREVER


def holds(of_use: Sequence[float]) -> bool:
    """Whether nDCG never falls by more than .005 from one round to the next, and ends above the first."""
    return bool((np.diff(of_use) >= NEVER_BELOW).all() and of_use[-1] > of_use[0])


def spirals(of_serves: Sequence[float], top_share: Sequence[float]) -> bool:
    """Whether it ends worse than it began, with serves on fewer memories."""
    return of_serves[-1] < of_serves[0] and top_share[-1] > top_share[0]


def rounds(world: World, seed: int, settings: TrainSettings) -> tuple[float, ...]:
    """nDCG@10 on held-out tasks after each of ten rounds of serving, reporting and training on all reports so far, from
    poor weights."""
    seen, held = world.split(0.5, seed)
    dice = np.random.default_rng(seed)
    weights, log, found = PRESETS["engine"], [], []
    for number in range(ROUNDS):
        start = START + number * ROUND_SESSIONS * BETWEEN
        log += play(seen, weights, dice, sessions=ROUND_SESSIONS, habits=ROUND_HABITS, start=start, label=f"{number}-")
        weights = served_next(trained(log, weights, settings), weights)
        found.append(held.ndcg(weights))
    return tuple(found)


def serve_counting(world: World, seed: int) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """A hand-made formula that takes a serve for a use, on the same tasks: its frequency grows with every packet.

    nDCG@10 on held-out tasks after each round, and the share of all serves that the most served hundredth of the
    memories took in it.
    """
    seen, held = world.split(0.5, seed)
    dice = np.random.default_rng(seed)
    weights = make_weights("serve-counting", {"thread": 0.4, "semantic": 0.2, "lexical": 0.2, "frequency": 0.2})
    weights = replace(weights, use_family_cap=0.2)
    served: dict[str, int] = {}

    def counted(world: World) -> World:
        most = np.log1p(max(served.values(), default=0)) or 1.0

        def one(task: Task) -> Task:
            features: Floats = task.features.copy()
            features[:, FREQUENCY] = [np.log1p(served.get(each, 0)) / most for each in task.ids]
            return replace(task, features=features)

        return World(world.name, tuple(one(task) for task in world.tasks))

    found, shares = [], []
    for number in range(ROUNDS):
        now, counts = counted(seen), dict.fromkeys(served, 0)
        for row in play(now, weights, dice, sessions=ROUND_SESSIONS, slots=0, label=f"{number}-"):
            for item in getattr(row, "items", ()):
                served[item.memory_id] = served.get(item.memory_id, 0) + 1
                counts[item.memory_id] = counts.get(item.memory_id, 0) + 1
        amounts = np.sort(np.array(list(counts.values())))[::-1]
        every = {each for task in seen.tasks for each in task.ids}
        shares.append(float(amounts[: max(1, len(every) // 100)].sum() / amounts.sum()))
        found.append(counted(held).ndcg(weights))
    return tuple(found), tuple(shares)


def ten_rounds(world: World, seeds: int, say: Say) -> list[Row]:
    """Seeds in which learning from use holds, and in which counting serves spirals."""
    gated: list[tuple[float, ...]] = []
    ungated: list[tuple[float, ...]] = []
    counting: list[tuple[tuple[float, ...], tuple[float, ...]]] = []
    for seed in range(seeds):
        gated.append(rounds(world, seed, UNCAPPED))
        if seed < UNGATED_SEEDS:
            ungated.append(rounds(world, seed, PREVIEW))
        counting.append(serve_counting(world, seed))
        say(f"rounds: seed {seed}, {gated[-1][0]:.3f} -> {gated[-1][-1]:.3f}, {'' if holds(gated[-1]) else 'not '}held")
    least = 0.95 * seeds
    title = "ten rounds of learning from use: never falls by more than .005 and ends above round 1"
    how = f"on {world.name}, {ROUND_SESSIONS} sessions a round, training on all so far"
    served, shares = ([each[place] for each in counting] for place in (0, 1))
    return [
        at_least(
            title,
            sum(map(holds, gated)),
            least,
            "seeds",
            f"{seeds} seeds {how}; promoted by the gates alone, without caps on movement and standard errors; "
            f"{_ends(gated)}",
        ),
        beside(
            f"{title}, each round served without a gate",
            sum(map(holds, ungated)),
            "seeds",
            f"{len(ungated)} seeds {how}; --preview; {_ends(ungated)}",
        ),
        at_least(
            "counting serves on the same stream spirals",
            sum(spirals(*each) for each in counting),
            least,
            "seeds",
            f"{_ends(served)}; serves of the top hundredth {_first_and_last(shares)}",
        ),
    ]


def _ends(found: Sequence[tuple[float, ...]]) -> str:
    falls = min(float(np.diff(each).min()) for each in found)
    return f"nDCG@10 {_first_and_last(found)} in the mean, worst step {falls:+.3f}"


def _first_and_last(found: Sequence[tuple[float, ...]]) -> str:
    first, last = (float(np.mean([each[place] for each in found])) for place in (0, -1))
    return f"{first:.3f} -> {last:.3f}"
