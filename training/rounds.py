"""Rounds in a world with a known truth: agents work, a run trains on their reports, what it found may serve. Pure.

Position effects, noise and report rates are the agents' habits; memories may arrive, and the need may change.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import chain

import numpy as np

from sidecar.plurals import counted
from sidecar.store.log import LoggedReport, LogRow
from sidecar.weights import Weights
from training.dataset import build_dataset
from training.model import Model
from training.promotion import Promotion
from training.run import Run, TrainSettings, train
from training.worlds import BETWEEN, START, Habits, World, of_memories, only_recent, play


@dataclass(frozen=True, slots=True)
class Course:
    """How a simulation goes. Half of the tasks are played in `rounds` of `sessions`, the others are held out.

    `at_first` of the memories, in (0, 1], are there in the first round; as many of the others come with each round.
    From the round `drift` on (counted from 1; None: never) agents use nothing but the newest hundredth of the memories.
    """

    rounds: int = 5
    sessions: int = 300
    habits: tuple[Habits, ...] = (Habits(),)
    at_first: float = 1.0
    drift: int | None = None
    window: int | None = None
    """How many rounds' reports a run trains on, the last ones; None: all."""
    seed: int = 0
    settings: TrainSettings = field(default_factory=lambda: TrainSettings(own_namespaces=False))


@dataclass(frozen=True, slots=True)
class Round:
    """What one round came to. `served` is nDCG@10, on held-out tasks, of the weights that served in it, `learned` that
    of those that its run found, None where a gate refused; `serves` says whether these serve from the next round on."""

    number: int
    memories: int
    packets: int
    reported: int
    served: float
    learned: float | None
    serves: bool
    run: Run
    rows: tuple[LogRow, ...]


def served_next(run: Run, serving: Weights) -> Weights:
    """What serves after a run: its weights if it was promoted automatically, or was a preview; else those that did."""
    if run.trained is None or not (run.settings.preview or run.trained.promotion is Promotion.AUTOMATIC):
        return serving
    return run.trained.new.common


def play_rounds(
    world: World,
    weights: Weights,
    course: Course,
    progress: Callable[[int, int], None] = lambda done, total: None,
) -> Iterator[Round]:
    """The rounds, each training on the reports of those before and its own. ValueError if no task to play, or none to
    hold out, has a relevant memory that is there."""
    dice = np.random.default_rng(course.seed)
    ids = sorted({each for task in world.tasks for each in task.ids})
    order = [ids[place] for place in dice.permutation(len(ids)).tolist()]
    log: list[list[LogRow]] = []
    for number in range(1, course.rounds + 1):
        progress(number - 1, course.rounds)
        share = course.at_first + (1.0 - course.at_first) * (number - 1) / max(1, course.rounds - 1)
        there = set(order[: max(1, round(share * len(order)))])
        seen, held = (of_memories(each, there) for each in world.split(0.5, course.seed))
        if not seen.tasks or not held.tasks:
            raise ValueError(
                f"round {number}: of {counted(len(world.tasks), 'task')} too few have a relevant memory that is "
                "there; have more of the memories there at first, or give more tasks"
            )
        if course.drift is not None and number >= course.drift:
            seen, held = only_recent(seen, world.name), only_recent(held, world.name)
        start = START + (number - 1) * course.sessions * BETWEEN
        rows = play(
            seen, weights, dice, sessions=course.sessions, habits=course.habits, start=start, label=f"{number}-"
        )
        log = [*log, rows][-(course.window or course.rounds) :]
        run = train(build_dataset(chain.from_iterable(log)), Model(weights), course.settings)
        reported = sum(isinstance(row, LoggedReport) for row in rows)
        after = served_next(run, weights)
        yield Round(
            number,
            len(there),
            len(rows) - reported,
            reported,
            held.ndcg(weights),
            None if run.trained is None else held.ndcg(run.trained.new.common),
            after is not weights,
            run,
            tuple(rows),
        )
        weights = after
    progress(course.rounds, course.rounds)
