"""Fits the weights of task features on judged tasks, and says how well they do on data that they were not fitted on.

    python -m training.fit_default DATASET... [--embedder SPEC] [--out FILE]

Each data set is a file in the format of docs/ranking.md. Conditional logit over each task's memories (the softmax of
the scores should be on the relevant ones), weights at least 0, a small ridge. Needs the extra `train`. The features
come from the ranking path that serves; the figures, too, by leaving out one data set at a time.
"""

from __future__ import annotations

import argparse
import math
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from sidecar.audit.datasets import Dataset, JudgedTask, read_dataset
from sidecar.audit.evaluation import MEASURES, Outcome, System, differences, evaluate, occasions
from sidecar.domain import Floats
from sidecar.errors import RankerError
from sidecar.features import FEATURE_NAMES
from sidecar.ranking.gates import PASSED
from sidecar.retrieval.embedders import DEFAULT_EMBEDDER, make_embedder
from sidecar.retrieval.embedding import Embedder
from sidecar.store.store import Store
from sidecar.weights import PRESETS, make_weights

FITTED = ("semantic", "lexical", "subject", "thread", "dates", "statement")
"""The features that say how a memory fits a task, and that every data set can tell something about."""
RIDGE = 1e-3
START = 3.0
STEPS = 1_000
"""Weights are multiples of 1 / STEPS, and sum to what they did before."""


@dataclass(frozen=True, slots=True)
class Example:
    """One task: features of the memories that passed the gates, shape (n, len(FITTED)), and rows of relevant ones."""

    features: Floats
    relevant: list[int]


def examples(datasets: Sequence[Dataset], embedder: Embedder) -> dict[str, list[Example]]:
    """The tasks of each data set as the ranking path sees them."""
    system = System("features", PRESETS["default"], embedder)
    with tempfile.TemporaryDirectory(prefix="memory-ranker-fit-") as folder, Store.open(Path(folder)) as store:
        return {dataset.id: list(_examples(dataset, system, store)) for dataset in datasets}


def _examples(dataset: Dataset, system: System, store: Store) -> Iterator[Example]:
    columns = [FEATURE_NAMES.index(name) for name in FITTED]
    prepare = occasions(dataset, system, store)
    for task in dataset.tasks:
        scored = prepare(task).scored
        passed = np.flatnonzero(scored.gates.codes == PASSED)
        relevant = _relevant(task, [scored.columns.ids[row] for row in passed.tolist()])
        if relevant:
            yield Example(scored.at(passed.tolist()).features[:, columns], relevant)


def _relevant(task: JudgedTask, ids: Sequence[str]) -> list[int]:
    return [place for place, each in enumerate(ids) if each in task.relevant]


def fit(tasks: Sequence[Example], without: str = "", names: Sequence[str] = FITTED) -> dict[str, float]:
    """Weights by feature, at least 0, that sum to 1; 0 for the feature `without`. Every task counts alike. `names` are
    of the examples' columns."""
    from scipy.optimize import minimize

    def loss(weights: Floats) -> tuple[float, Floats]:
        total, slope = 0.0, np.zeros(len(weights))
        for task in tasks:
            scores = task.features @ weights
            scores -= scores.max()
            odds = np.exp(scores)
            total += np.log(odds.sum()) - scores[task.relevant].mean()
            slope += odds @ task.features / odds.sum() - task.features[task.relevant].mean(axis=0)
        ridge = RIDGE * float(weights @ weights) / 2
        return total / len(tasks) + ridge, slope / len(tasks) + RIDGE * weights

    bounds = [(0.0, 0.0 if name == without else None) for name in names]
    start = np.array([0.0 if name == without else START for name in names])
    found = minimize(loss, start, jac=True, method="L-BFGS-B", bounds=bounds).x
    return dict(zip(names, (found / found.sum()).tolist(), strict=True))


def whole(fitted: dict[str, float]) -> dict[str, float]:
    """All weights: the fitted ones share what the committed default gives them together, the rest stays."""
    committed = dict(zip(FEATURE_NAMES, PRESETS["default"].values.tolist(), strict=True))
    steps = round(sum(committed[name] for name in fitted) * STEPS)
    exact = {name: value * steps for name, value in fitted.items()}
    rounded = {name: math.floor(value) for name, value in exact.items()}
    left = steps - sum(rounded.values())
    for name in sorted(fitted, key=lambda name: rounded[name] - exact[name])[:left]:  # what was cut off most
        rounded[name] += 1
    kept = {name: round(weight, 9) for name, weight in committed.items()}
    return {**kept, **{name: value / STEPS for name, value in rounded.items()}}


def leave_one_out(
    datasets: Sequence[Dataset], tasks: dict[str, list[Example]], embedder: Embedder
) -> tuple[Outcome, Outcome]:
    """Each data set ranked by weights that were fitted on the others, and by the committed default."""
    values: list[Floats] = []
    committed: list[Floats] = []
    categories: tuple[str, ...] = ()
    for dataset in datasets:
        others = [task for name, found in tasks.items() if name != dataset.id for task in found]
        weights = make_weights("fitted", whole(fit(others)))
        systems = [System("fitted", weights, embedder), System("default", PRESETS["default"], embedder)]
        fitted, default = evaluate([dataset], systems)
        values.append(fitted.values)
        committed.append(default.values)
        categories += fitted.categories
    return (
        Outcome("fitted on the others", np.concatenate(values), categories),
        Outcome("committed default", np.concatenate(committed), categories),
    )


def main(arguments: Sequence[str] | None = None) -> int:
    """The command. Returns its exit code."""
    parser = argparse.ArgumentParser(prog="python -m training.fit_default", description=__doc__)
    parser.add_argument("datasets", nargs="+", type=Path, metavar="DATASET")
    parser.add_argument("--embedder", default=DEFAULT_EMBEDDER)
    parser.add_argument("--out", type=Path, help="write the weights here, as TOML for --weights and the settings file")
    given = parser.parse_args(arguments)
    try:
        datasets = [read_dataset(path) for path in given.datasets]
        embedder = make_embedder(given.embedder)
    except (RankerError, OSError) as error:
        parser.error(str(error))
    tasks = examples(datasets, embedder)
    if len(datasets) > 1:
        print(
            "Each data set ranked by weights that were fitted on the others, and by the committed default, which may "
            "have been fitted on it:"
        )
        outcomes = leave_one_out(datasets, tasks, embedder)
        for outcome in outcomes:
            print(f"  {outcome.name:22}", "  ".join(f"{name} {mean:.3f}" for name, mean in outcome.means().items()))
        apart = differences(*outcomes)["ndcg@10"]
        print(f"  {'difference in ndcg@10':22} {apart.mean:+.3f} [{apart.low:+.3f}, {apart.high:+.3f}]")
    weights = whole(fit([task for found in tasks.values() for task in found]))
    lines = [f"{name} = {value}" for name, value in weights.items() if value]
    text = "\n".join(
        ["[features]", *lines, "", f"# {', '.join(MEASURES)} were not looked at: fitted by likelihood.", ""]
    )
    if given.out is None:
        print("\n" + "\n".join(lines))
    else:
        given.out.write_text(text, encoding="utf-8")
        print(f"\nWritten to {given.out}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
