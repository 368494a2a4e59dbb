"""Rows of the table, and what every part of it needs: worlds, supervised optima, a training run on a played log."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from sidecar.features import FEATURE_NAMES
from sidecar.store.log import LogRow
from sidecar.weights import Weights, make_weights
from training import fit_default
from training.dataset import Cutoffs, Dataset, build_dataset
from training.gates import GateSettings
from training.model import Model
from training.run import Run, TrainSettings, train
from training.worlds import World

FOREVER = 2**62
PREVIEW = TrainSettings(preview=True, gates=GateSettings(held_out_share=0.0))
"""Without gates and caps. Nothing is held out of the fit: every part has tasks of its own that no agent was given."""
Say = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Row:
    """One line of the table. `goal` is a bound in words ("<= 11"), None where a figure stands beside others; `note`
    says how it was measured."""

    name: str
    value: float
    unit: str
    goal: str | None
    ok: bool | None
    note: str = ""


def at_least(name: str, value: float, least: float, unit: str, note: str = "") -> Row:
    """A row that is ok from `least` on."""
    return Row(name, value, unit, f">= {least:g}", value >= least, note)


def at_most(name: str, value: float, most: float, unit: str, note: str = "") -> Row:
    """A row that is ok up to `most`."""
    return Row(name, value, unit, f"<= {most:g}", value <= most, note)


def beside(name: str, value: float, unit: str, note: str = "") -> Row:
    """A row without a goal."""
    return Row(name, value, unit, None, None, note)


def dataset_of(log: Iterable[LogRow]) -> Dataset:
    """The data set of a whole log."""
    return build_dataset(log, Cutoffs(FOREVER, FOREVER))


def trained(log: Sequence[LogRow], base: Weights | Model, settings: TrainSettings = PREVIEW) -> Run:
    """A training run on a whole log."""
    model = base if isinstance(base, Model) else Model(base)
    return train(dataset_of(log), model, settings)


def learned(log: Sequence[LogRow], base: Weights, settings: TrainSettings = PREVIEW) -> Weights:
    """The common weights of such a run. RuntimeError if a gate refuses it."""
    run = trained(log, base, settings)
    if run.trained is None:
        raise RuntimeError("; ".join(gate.words for gate in run.refusals) or "nothing to learn from")
    return run.trained.new.common


def supervised(worlds: Sequence[World], also: Sequence[str] = ()) -> Weights:
    """The best that labels of every memory give: conditional logit over all of them, as for the shipped default, and on
    the features `also` beside those."""
    names = (*fit_default.FITTED, *also)
    columns = [FEATURE_NAMES.index(name) for name in names]
    examples = [
        fit_default.Example(task.features[:, columns], np.flatnonzero(task.worth >= 0.5).tolist())
        for world in worlds
        for task in world.tasks
    ]
    return make_weights("supervised", fit_default.whole(fit_default.fit(examples, names=names)))


def together(worlds: Sequence[World], name: str = "all") -> World:
    """The tasks of several worlds as those of one namespace."""
    return World(name, tuple(task for world in worlds for task in world.tasks))


def interval(values: Sequence[float], seed: int = 0) -> tuple[float, float]:
    """95 % interval of the mean, by a bootstrap."""
    given = np.array(values)
    means = given[np.random.default_rng(seed).integers(0, len(given), (2_000, len(given)))].mean(axis=1)
    low, high = np.quantile(means, [0.025, 0.975]).tolist()
    return low, high
