"""A LightGBM ranker in a process of its own: LightGBM and FAISS each bring an OpenMP runtime, and two in one process
can hang or crash it.

`boost` runs this file with a folder of arrays, and reads the booster back as LightGBM's own text. The file imports
neither the sidecar nor the rest of training, or FAISS would come with them.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Ranking:
    """Rows to rank: features (n, d), grades (n,) whole numbers from 0, group sizes (g,) that add up to n, and a weight
    for each row (n,)."""

    features: Floats
    grade: NDArray[np.int64]
    group: NDArray[np.int64]
    weight: Floats


class BoostingError(RuntimeError):
    """LightGBM failed; the message holds the end of what it said."""


def boost(
    train: Ranking,
    held_out: Ranking,
    parameters: Mapping[str, Any],
    rounds: int,
    on_round: Callable[[int, float], None] = lambda *_: None,
) -> str:
    """Fits at most `rounds` trees and keeps those up to the best nDCG on `held_out`: LightGBM's text of the booster.

    `on_round(round, ndcg)` is called after each. Raises ValueError for NaN, BoostingError if LightGBM fails.
    """
    for name, data in (("train", train), ("held_out", held_out)):
        if not np.isfinite(data.features).all():
            raise ValueError(f"{name}.features holds a number that is not finite")
    with tempfile.TemporaryDirectory(prefix="mr-boost-") as name:
        folder = Path(name)
        for which, data in (("train", train), ("held_out", held_out)):
            np.savez(
                folder / f"{which}.npz", features=data.features, grade=data.grade, group=data.group, weight=data.weight
            )
        (folder / "parameters.json").write_text(json.dumps({**parameters, "rounds": rounds}), encoding="utf-8")
        said: list[str] = []
        with subprocess.Popen(
            [sys.executable, str(Path(__file__).resolve()), str(folder)],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            env={**os.environ, "OMP_NUM_THREADS": "1"},
        ) as ran:
            assert ran.stdout is not None
            for line in ran.stdout:
                if line.startswith("round "):
                    _, number, ndcg = line.split()
                    on_round(int(number), float(ndcg))
                else:
                    said.append(line)
        if ran.returncode:
            raise BoostingError(f"LightGBM ended with code {ran.returncode}: {''.join(said[-20:]).strip()}")
        return (folder / "booster.txt").read_text(encoding="utf-8")


def _work(folder: Path) -> None:
    import lightgbm

    parameters = json.loads((folder / "parameters.json").read_text(encoding="utf-8"))
    rounds = parameters.pop("rounds")
    patience = parameters.pop("patience")
    sets: list[lightgbm.Dataset] = []
    for name in ("train", "held_out"):
        with np.load(folder / f"{name}.npz") as data:
            sets.append(
                lightgbm.Dataset(
                    data["features"],
                    label=data["grade"],
                    group=data["group"],
                    weight=data["weight"],
                    reference=sets[0] if sets else None,
                    params={"verbose": -1},
                    free_raw_data=False,
                )
            )

    def tell(environment: Any) -> None:
        print("round", environment.iteration + 1, environment.evaluation_result_list[0][2], flush=True)

    booster = lightgbm.train(
        parameters,
        sets[0],
        rounds,
        valid_sets=[sets[1]],
        callbacks=[lightgbm.early_stopping(patience, first_metric_only=True, verbose=False), tell],
    )
    booster.save_model(str(folder / "booster.txt"), num_iteration=booster.best_iteration)


if __name__ == "__main__":
    _work(Path(sys.argv[1]))
