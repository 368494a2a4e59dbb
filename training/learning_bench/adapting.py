"""Needs that differ by namespace, needs that change, and rounds of serving what was learned from what was served."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from sidecar.domain import Floats, Packet
from sidecar.features import FEATURE_NAMES
from sidecar.store.log import LoggedReport, LogRow
from sidecar.weights import PRESETS, Weights, make_weights
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
    trained,
)
from training.promotion import Promotion
from training.run import TrainSettings
from training.worlds import BETWEEN, START, Habits, Task, World, ndcg, play

SESSIONS = 300
RECENCY = FEATURE_NAMES.index("recency")
KIND = FEATURE_NAMES.index("kind_prior")
FREQUENCY = FEATURE_NAMES.index("frequency")
PRIORS = (1.0, 6 / 7, 5 / 7, 4 / 7, 1 / 7)
NEVER_BELOW = -0.005
REFIT_EVERY = 50
WINDOW = 300
"""Sessions that a refit looks back on where the need may change."""
WITHIN = 0.01
ROUNDS = 10
ROUND_SESSIONS = 300


def only_recent(world: World, name: str) -> World:
    """The same tasks, of which only the newest hundredth of the memories is ever used."""

    def worth(task: Task) -> Task:
        recency = task.features[:, RECENCY]
        return replace(task, worth=(recency >= np.quantile(recency, 0.99)).astype(float))

    return World(name, tuple(worth(task) for task in world.tasks))


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
        start = START + attempt * BETWEEN
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
    for _, held in halves:
        gains = _gains(held, default, preview.trained.new.of(held.name))
        low, high = interval(gains)
        mean = float(np.mean(gains))
        of_common = float(np.mean(_gains(held, default, common.trained.new.common)))
        gated = 0.0
        if capped.trained is not None and capped.trained.promotion is not Promotion.REFUSED:
            gated = float(np.mean(_gains(held, default, capped.trained.new.of(held.name))))
        note = (
            f"[{low:+.3f}, {high:+.3f}] on {len(held.tasks)} held-out tasks; one common model {of_common:+.3f}; one "
            f"gated, capped run {gated:+.3f}"
        )
        rows.append(at_least(f"own weights of {held.name}: gain in nDCG@10", mean, NEVER_BELOW, "nDCG@10", note))
    return rows


def _gains(held: World, old: Weights, new: Weights) -> list[float]:
    return [ndcg(task, task.parts(new).score) - ndcg(task, task.parts(old).score) for task in held.tasks]


def drift(before: World, after: World, say: Say) -> list[Row]:
    """The need changes after 300 sessions; refits every 50 on the last 300."""
    seen, held = after.split(0.5, seed=2)
    optimum = held.ndcg(
        learned(with_pairs(seen, np.random.default_rng(9), PRESETS["default"], 1_500), PRESETS["default"])
    )
    rows = []
    for name, settings in (("--preview", PREVIEW), ("gated and capped", TrainSettings())):
        dice = np.random.default_rng(3)
        weights = PRESETS["default"]
        log = play(before, weights, dice, sessions=SESSIONS)
        took, lead = 1_001, 0.0
        for done in range(0, 1_000, REFIT_EVERY):
            start = START + (SESSIONS + done) * BETWEEN
            log += play(seen, weights, dice, sessions=REFIT_EVERY, start=start, label=f"{done}-")
            recent = [row for row in log if _time_of(row) > start + (REFIT_EVERY - WINDOW) * BETWEEN]
            run = trained(recent, weights, settings)
            if run.trained is not None and (settings.preview or run.trained.promotion is Promotion.AUTOMATIC):
                weights = run.trained.new.common
            lead = held.ndcg(weights) - optimum
            if lead >= -WITHIN:
                took = done + REFIT_EVERY
                break
        note = (
            f"refit every {REFIT_EVERY} on the last {WINDOW} sessions; ended {lead:+.3f} from the optimum; 1001 = never"
        )
        title = f"sessions after a change of need until within {WITHIN:g} of the optimum ({name})"
        rows.append(
            at_most(title, took, 400, "sessions", note) if settings.preview else beside(title, took, "sessions", note)
        )
        say(f"drift: {name} done")
    return rows


def _time_of(row: LogRow) -> int:
    if isinstance(row, LoggedReport):
        return row.report.receive_time
    return row.create_time if isinstance(row, Packet) else FOREVER


@dataclass(frozen=True, slots=True)
class Rounds:
    """nDCG@10 on held-out tasks after each round, of learning from use and of counting serves; and, of the latter, the
    share of all serves that the most served hundredth of the memories took in each round."""

    of_use: tuple[float, ...]
    of_serves: tuple[float, ...]
    top_share: tuple[float, ...]

    @property
    def holds(self) -> bool:
        """Learning from use never falls by more than .005, and ends above its first round."""
        steps = np.diff(self.of_use)
        return bool((steps >= NEVER_BELOW).all() and self.of_use[-1] > self.of_use[0])

    @property
    def spirals(self) -> bool:
        """Counting serves ends worse than it began, with serves on fewer memories."""
        return self.of_serves[-1] < self.of_serves[0] and self.top_share[-1] > self.top_share[0]


def rounds(world: World, seed: int) -> Rounds:
    """Ten rounds of serving, reporting and refitting, from poor weights; beside it the ranker that raises what it has
    served, on the same tasks."""
    seen, held = world.split(0.5, seed)
    habits = [Habits("careful", report=0.7), Habits("sloppy", use=0.6, slip=0.05, report=0.4)]
    dice = np.random.default_rng(seed)
    weights, log, of_use = PRESETS["engine"], [], []
    for number in range(ROUNDS):
        start = START + number * ROUND_SESSIONS * BETWEEN
        log += play(seen, weights, dice, sessions=ROUND_SESSIONS, habits=habits, start=start, label=f"{number}-")
        weights = learned(log, PRESETS["engine"])
        of_use.append(held.ndcg(weights))
    of_serves, top_share = _serve_counting(seen, held, np.random.default_rng(seed))
    return Rounds(tuple(of_use), of_serves, top_share)


def _serve_counting(seen: World, held: World, dice: np.random.Generator) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """A hand-made formula that takes a serve for a use: its frequency grows with every packet."""
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
    found = []
    for seed in range(seeds):
        found.append(rounds(world, seed))
        say(f"rounds: seed {seed}, {found[-1].of_use[0]:.3f} -> {found[-1].of_use[-1]:.3f}")
    first, last = (float(np.mean([each.of_use[place] for each in found])) for place in (0, -1))
    counting = [float(np.mean([each.of_serves[place] for each in found])) for place in (0, -1)]
    shares = [float(np.mean([each.top_share[place] for each in found])) for place in (0, -1)]
    least = 0.95 * seeds
    return [
        at_least(
            "ten rounds of learning from use: never falls by more than .005 and ends above round 1",
            sum(each.holds for each in found),
            least,
            "seeds",
            f"{seeds} seeds on {world.name}, {ROUND_SESSIONS} sessions a round; nDCG@10 {first:.3f} -> {last:.3f}",
        ),
        at_least(
            "counting serves on the same stream spirals",
            sum(each.spirals for each in found),
            least,
            "seeds",
            f"nDCG@10 {counting[0]:.3f} -> {counting[1]:.3f}, serves of the top hundredth {shares[0]:.3f} -> "
            f"{shares[1]:.3f}",
        ),
    ]
