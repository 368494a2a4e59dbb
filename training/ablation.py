"""What each feature adds, on each data set: prints the tables of docs/ranking.md.

    python -m training.ablation FITTED_ON... --other DATASET --other DATASET ...

The data sets that weights are fitted on are ranked by weights from the others of them (leave one out); `--other` ones
by weights from all of those. A feature is taken away before fitting; one that is not fitted loses its weight.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from sidecar.audit.datasets import Dataset, read_dataset
from sidecar.audit.evaluation import MEASURES, Outcome, System, differences, evaluate
from sidecar.retrieval.embedders import DEFAULT_EMBEDDER, make_embedder
from sidecar.retrieval.embedding import Embedder
from sidecar.weights import PRESETS, make_weights
from training.fit_default import FITTED, Example, examples, fit, whole

SINGLE = ("lexical", "semantic", "thread")
NDCG = MEASURES.index("ndcg@10")
RECALL = MEASURES.index("recall@10")


def weights_without(tasks: Sequence[Example], without: str) -> dict[str, float]:
    """All weights, fitted with one feature taken away; "" for none."""
    if without and without not in FITTED:
        return {**whole(fit(tasks)), without: 0.0}
    return whole(fit(tasks, without))


def outcomes(
    fitted_on: Sequence[Dataset],
    others: Sequence[Dataset],
    tasks: dict[str, list[Example]],
    embedder: Embedder,
    without: str,
) -> dict[str, Outcome]:
    """By data set; those that were fitted on stand together as "left out"."""
    parts = []
    for dataset in fitted_on:
        rest = [task for name, found in tasks.items() if name != dataset.id for task in found]
        parts += evaluate([dataset], [_system(weights_without(rest, without), embedder)])
    together = Outcome("", np.concatenate([part.values for part in parts]), ())
    found = {"left out": together}
    whole_fit = _system(weights_without([task for each in tasks.values() for task in each], without), embedder)
    for dataset in others:
        found[dataset.id] = evaluate([dataset], [whole_fit])[0]
    return found


def _system(weights: dict[str, float], embedder: Embedder) -> System:
    return System("fitted", make_weights("fitted", weights), embedder)


def _row(name: str, cells: Sequence[str]) -> str:
    return f"| {name} | {' | '.join(cells)} |"


def _means(outcome: Outcome) -> str:
    recall, ndcg = outcome.values[:, RECALL].mean(), outcome.values[:, NDCG].mean()
    return f"{recall:.3f} / {ndcg:.3f}"


def _apart(one: Outcome, other: Outcome) -> str:
    found = differences(one, other)["ndcg@10"]
    mark = "" if found.low <= 0.0 <= found.high else "*"
    return f"{found.mean:+.3f}{mark}"


def main(arguments: Sequence[str] | None = None) -> int:
    """The command. Returns its exit code."""
    parser = argparse.ArgumentParser(prog="python -m training.ablation", description=__doc__)
    parser.add_argument("fitted_on", nargs="+", type=Path, metavar="FITTED_ON")
    parser.add_argument("--other", action="append", default=[], type=Path, metavar="DATASET")
    parser.add_argument("--embedder", default=DEFAULT_EMBEDDER)
    given = parser.parse_args(arguments)
    embedder = make_embedder(given.embedder)
    fitted_on, others = [read_dataset(p) for p in given.fitted_on], [read_dataset(p) for p in given.other]
    tasks = examples(fitted_on, embedder)
    full = outcomes(fitted_on, others, tasks, embedder, "")
    print(_row("", list(full)))
    print(_row("---", ["---"] * len(full)))
    print(_row("fitted", [_means(each) for each in full.values()]))
    singles = [System(name, make_weights(name, {name: 1.0}), embedder) for name in SINGLE]
    groups = [fitted_on, *[[dataset] for dataset in others]]
    alone = [evaluate(group, [System("default", PRESETS["default"], embedder), *singles]) for group in groups]
    for index, name in enumerate(("committed default", *(f"{name} alone" for name in SINGLE))):
        print(_row(name, [_means(found[index]) for found in alone]), flush=True)
    best = [max(found[1:3], key=lambda each: each.values[:, NDCG].mean()) for found in alone]
    intervals = [differences(found[0], each)["ndcg@10"] for found, each in zip(alone, best, strict=True)]
    cells = [f"{each.mean:+.3f} [{each.low:+.3f}, {each.high:+.3f}]" for each in intervals]
    print(_row("committed default less the better of lexical and semantic", cells))
    print()
    for name, weight in whole(fit([task for found in tasks.values() for task in found])).items():
        if weight:
            without = outcomes(fitted_on, others, tasks, embedder, name)
            print(_row(f"without `{name}`", [_apart(without[key], full[key]) for key in full]), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
