"""A LightGBM ranker in a process of its own: LightGBM and FAISS each bring an OpenMP runtime, and two in one process
can hang or crash it.

`boost_all` runs this file with a folder of arrays, and reads the boosters back as LightGBM's own text. The file imports
neither the sidecar nor the rest of training, or FAISS would come with them.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
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


@dataclass(frozen=True, slots=True)
class Job:
    """One fit: at most `rounds` trees on `train`. With `held_out` those up to its best nDCG are kept, else all."""

    train: Ranking
    held_out: Ranking | None
    parameters: Mapping[str, Any]
    rounds: int


OnRound = Callable[[int, float], None]


def boost(
    train: Ranking,
    held_out: Ranking,
    parameters: Mapping[str, Any],
    rounds: int,
    on_round: OnRound = lambda *_: None,
) -> str:
    """Fits at most `rounds` trees and keeps those up to the best nDCG on `held_out`: LightGBM's text of the booster.

    `on_round(round, ndcg)` is called after each. Raises ValueError for NaN, BoostingError if LightGBM fails.
    """
    (text,) = boost_all([Job(train, held_out, parameters, rounds)], lambda _, number, ndcg: on_round(number, ndcg))
    return text


def boost_all(jobs: Sequence[Job], on_round: Callable[[int, int, float], None] = lambda *_: None) -> list[str]:
    """The boosters of all jobs, one after the other in one process. `on_round(job, round, ndcg)` is called after each
    round; without held-out rows its nDCG is NaN. Raises what `boost` does."""
    with tempfile.TemporaryDirectory(prefix="mr-boost-") as name:
        folder = Path(name)
        for number, job in enumerate(jobs):
            for which, data in (("train", job.train), ("held_out", job.held_out)):
                if data is None:
                    continue
                if not np.isfinite(data.features).all():
                    raise ValueError(f"{which}.features holds a number that is not finite")
                np.savez(
                    folder / f"{number}-{which}.npz",
                    features=data.features,
                    grade=data.grade,
                    group=data.group,
                    weight=data.weight,
                )
            parameters = {**job.parameters, "rounds": job.rounds}
            (folder / f"{number}-parameters.json").write_text(json.dumps(parameters), encoding="utf-8")

        def told(line: str) -> bool:
            if not line.startswith("round "):
                return False
            _, job, number, ndcg = line.split()
            on_round(int(job), int(number), float(ndcg))
            return True

        _in_another_process("fit", folder, told)
        return [(folder / f"{number}-booster.txt").read_text(encoding="utf-8") for number in range(len(jobs))]


def raw_scores(text: str, features: Floats) -> Floats:
    """What LightGBM itself makes of rows, shape (n,): the booster's raw scores. Raises BoostingError."""
    with tempfile.TemporaryDirectory(prefix="mr-boost-") as name:
        folder = Path(name)
        (folder / "booster.txt").write_text(text, encoding="utf-8")
        np.save(folder / "features.npy", features)
        _in_another_process("score", folder, lambda _: False)
        scores: Floats = np.load(folder / "scores.npy")
        return scores


def _in_another_process(task: str, folder: Path, told: Callable[[str], bool]) -> None:
    """Runs this file on a folder. Lines that `told` does not take are what an error ends with."""
    said: list[str] = []
    with subprocess.Popen(
        [sys.executable, str(Path(__file__).resolve()), task, str(folder)],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
    ) as ran:
        assert ran.stdout is not None
        said += [line for line in ran.stdout if not told(line)]
    if ran.returncode:
        raise BoostingError(f"LightGBM ended with code {ran.returncode}: {''.join(said[-20:]).strip()}")


def _fit(folder: Path) -> None:
    for number in range(len(list(folder.glob("*-parameters.json")))):
        _fit_one(folder, number)


def _fit_one(folder: Path, job: int) -> None:
    import lightgbm

    parameters = json.loads((folder / f"{job}-parameters.json").read_text(encoding="utf-8"))
    rounds = parameters.pop("rounds")
    patience = parameters.pop("patience")
    sets: list[lightgbm.Dataset] = []
    for name in ("train", "held_out"):
        if not (file := folder / f"{job}-{name}.npz").exists():
            continue
        with np.load(file) as data:
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
        results = environment.evaluation_result_list
        print("round", job, environment.iteration + 1, results[0][2] if results else "nan", flush=True)

    stopping = [lightgbm.early_stopping(patience, first_metric_only=True, verbose=False)] if len(sets) > 1 else []
    booster = lightgbm.train(parameters, sets[0], rounds, valid_sets=sets[1:], callbacks=[*stopping, tell])
    booster.save_model(str(folder / f"{job}-booster.txt"), num_iteration=booster.best_iteration if stopping else None)


def _score(folder: Path) -> None:
    import lightgbm

    booster = lightgbm.Booster(model_file=str(folder / "booster.txt"))
    np.save(folder / "scores.npy", booster.predict(np.load(folder / "features.npy"), raw_score=True))


if __name__ == "__main__":
    {"fit": _fit, "score": _score}[sys.argv[1]](Path(sys.argv[2]))
