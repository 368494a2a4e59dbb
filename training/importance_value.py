"""What the content of importance adds to a ranking: prints the table of docs/importance.md.

    python -m training.importance_value DATASET... [--embedder SPEC]

Each data set is a file in the format of docs/ranking.md. Its memories get the content part that the server would give
them; then tasks are ranked by `default` with other weights of `importance`, by the ranking path that serves. With more
data sets than one, the weight of each is also chosen on the others (leave one out).
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from sidecar.audit.datasets import Dataset, read_dataset
from sidecar.audit.evaluation import MEASURES, Outcome, System, differences, evaluate
from sidecar.features import FEATURE_NAMES
from sidecar.importance.scorer import ImportanceScorer, Subject
from sidecar.importance.settings import ImportanceSettings
from sidecar.retrieval.embedders import DEFAULT_EMBEDDER, make_embedder
from sidecar.retrieval.embedding import Embedder
from sidecar.retrieval.namespaces import Namespaces
from sidecar.weights import PRESETS, Weights, make_weights

GRID = (0.0, 0.02, 0.05, 0.1, 0.2)
NDCG, RECALL = MEASURES.index("ndcg@10"), MEASURES.index("recall@10")


def with_contents(dataset: Dataset, embedder: Embedder) -> Dataset:
    """The data set with a content part for each memory, as of its end."""
    state = dataset.state(embedder)
    scorer = ImportanceScorer(Namespaces(lambda _: state), embedder, ImportanceSettings(), lambda: dataset.as_of_time)
    scored = scorer.score(dataset.id, [Subject(memory) for memory in dataset.memories])
    return replace(
        dataset,
        memories=tuple(
            replace(memory, importance_content=each.content.breakdown.score)
            for memory, each in zip(dataset.memories, scored, strict=True)
        ),
    )


def with_weight(weight: float) -> Weights:
    """`default` with another weight of importance; the others share what is left as before."""
    values = dict(zip(FEATURE_NAMES, PRESETS["default"].values.tolist(), strict=True))
    rest = 1.0 - values.pop("importance")
    shared = {name: value * (1.0 - weight) / rest for name, value in values.items()}
    return make_weights("default", {**shared, "importance": weight})


def main(arguments: Sequence[str] | None = None) -> int:
    """The command. Returns its exit code."""
    parser = argparse.ArgumentParser(prog="python -m training.importance_value", description=__doc__)
    parser.add_argument("datasets", nargs="+", type=Path, metavar="DATASET")
    parser.add_argument("--embedder", default=DEFAULT_EMBEDDER)
    given = parser.parse_args(arguments)
    embedder = make_embedder(given.embedder)
    plain = [read_dataset(path) for path in given.datasets]
    scored = [with_contents(dataset, embedder) for dataset in plain]
    systems = [System(f"{weight:g}", with_weight(weight), embedder) for weight in GRID]
    by_set = [evaluate([dataset], systems) for dataset in scored]
    by_kind = evaluate(plain, [System("default", PRESETS["default"], embedder)])[0]
    without = _joined([found[0] for found in by_set])
    print("| importance | recall@10 / nDCG@10 | nDCG@10 against none |\n|---|---|---|")
    print(_row("none", without, without))
    print(_row("default, by kind alone", by_kind, without))
    for place, weight in enumerate(GRID[1:], 1):
        print(_row(f"weight {weight:g}, with the content", _joined([found[place] for found in by_set]), without))
    if len(plain) > 1:
        chosen = []
        for index, found in enumerate(by_set):
            means = [
                np.mean([other[place].values[:, NDCG].mean() for k, other in enumerate(by_set) if k != index])
                for place in range(len(GRID))
            ]
            chosen.append(found[int(np.argmax(means))])
        print(
            _row(f"weight chosen on the others ({', '.join(each.name for each in chosen)})", _joined(chosen), without)
        )
    return 0


def _joined(parts: Sequence[Outcome]) -> Outcome:
    return Outcome("", np.concatenate([part.values for part in parts]), ())


def _row(name: str, one: Outcome, other: Outcome) -> str:
    apart = differences(one, other)["ndcg@10"]
    means = f"{one.values[:, RECALL].mean():.3f} / {one.values[:, NDCG].mean():.3f}"
    return f"| {name} | {means} | {apart.mean:+.4f} [{apart.low:+.4f}, {apart.high:+.4f}] |"


if __name__ == "__main__":
    sys.exit(main())
