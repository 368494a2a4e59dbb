"""The LightGBM ranker whose score is a sum of one step function a feature, and those functions themselves.

Every tree may split on one feature alone (singleton interaction constraints), so the booster is a sum of functions of
one feature each: curves. They are read out of the trees exactly, and served by binary search without LightGBM. Rising
curves alone are allowed (monotone constraints), for every feature says how good a memory is.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from sidecar.domain import Floats
from training.boosting import Ranking, boost, raw_scores

DEFAULT_ROUNDS = 200
PATIENCE = 30
PROOF_ROWS = 1_000
"""Random rows, and cells of the grid, on which curves are held against their booster."""
TRUNCATION_BEYOND_K = 3
"""Pairs count down to place K + 3, so that what stands just below the cut can still be lifted above it."""


@dataclass(frozen=True, slots=True)
class Curve:
    """A step function: `values[i]` where i thresholds are below x (x equal to a threshold belongs to its left).

    `thresholds` ascend, shape (m,); `values` has shape (m + 1,).
    """

    thresholds: Floats
    values: Floats

    def at(self, x: Floats) -> Floats:
        """The values at x, of the same shape. ValueError for NaN, which has no place on a curve."""
        if np.isnan(x).any():
            raise ValueError("x holds NaN")
        found: Floats = self.values[np.searchsorted(self.thresholds, x, side="left")]
        return found


@dataclass(frozen=True, slots=True)
class Booster:
    """LightGBM's text of the booster, its curves by column (none for a column without a tree), and how many trees."""

    text: str
    curves: Mapping[int, Curve]
    tree_count: int


def parameters(
    feature_count: int, k: int, seed: int, gains: Sequence[float] = (0.0, 1.0), **others: Any
) -> dict[str, Any]:
    """LightGBM's parameters for a ranker that can be served as curves. `gains` are by grade, linear and binary by
    default; `others` add to them or replace them."""
    return {
        "objective": "lambdarank",
        "metric": "ndcg",
        "eval_at": [k],
        "label_gain": list(gains),
        "lambdarank_truncation_level": k + TRUNCATION_BEYOND_K,
        "monotone_constraints": [1] * feature_count,
        "monotone_constraints_method": "basic",
        "interaction_constraints": [[column] for column in range(feature_count)],
        "max_depth": 3,
        "num_leaves": 8,
        "learning_rate": 0.1,
        "min_data_in_leaf": 20,
        "linear_tree": False,
        "use_missing": False,
        "deterministic": True,
        "force_row_wise": True,
        "num_threads": 1,
        "seed": seed,
        "verbose": -1,
        "patience": PATIENCE,
        **others,
    }


def fit_booster(
    train: Ranking,
    held_out: Ranking,
    given: Mapping[str, Any],
    rounds: int = DEFAULT_ROUNDS,
    on_round: Callable[[int, float], None] = lambda *_: None,
) -> Booster:
    """Fits on `train`, stops by `held_out`. Groups without a used and an unused row must be left out before: LightGBM
    counts them as nDCG 1. Raises what `boost` does."""
    return read_booster(boost(train, held_out, given, rounds, on_round))


def read_booster(text: str) -> Booster:
    """The booster of LightGBM's text. Raises what `parse_trees` does."""
    trees = parse_trees(text)
    return Booster(text, curves_of(trees), len(trees))


def difference(booster: Booster, column_count: int, seed: int) -> tuple[float, int]:
    """By how much the sum of the curves differs from LightGBM's own raw scores at most, and on how many rows: an even
    grid, every threshold with the numbers next to it, and random rows, all in [0, 1]. Raises BoostingError."""
    dice = np.random.default_rng(seed)
    rows = [
        dice.random((PROOF_ROWS, column_count)),
        np.repeat(np.linspace(0.0, 1.0, PROOF_ROWS + 1)[:, None], column_count, axis=1),
    ]
    for column, curve in booster.curves.items():
        for beside in (curve.thresholds, np.nextafter(curve.thresholds, -1.0), np.nextafter(curve.thresholds, 2.0)):
            row = dice.random((len(beside), column_count))
            row[:, column] = np.clip(beside, 0.0, 1.0)
            rows.append(row)
    features = np.concatenate(rows)
    summed = np.zeros(len(features))
    for column, curve in booster.curves.items():
        summed += curve.at(features[:, column])
    return float(np.abs(summed - raw_scores(booster.text, features)).max()), len(features)


@dataclass(frozen=True, slots=True)
class Tree:
    """A tree on one column: thresholds of its inner nodes, children (negative: -1 - leaf), values of its leaves."""

    column: int
    thresholds: tuple[float, ...]
    left: tuple[int, ...]
    right: tuple[int, ...]
    leaves: tuple[float, ...]

    def at(self, x: float) -> float:
        """The leaf's value at x."""
        node = 0
        while node >= 0:
            node = self.left[node] if x <= self.thresholds[node] else self.right[node]
        return self.leaves[-1 - node]


def parse_trees(text: str) -> list[Tree]:
    """The trees of LightGBM's text. ValueError for a tree that splits on two features or on categories, and for one
    with a linear leaf: no curve could be equal to it. Trees without a split are constants, and left out."""
    trees = []
    for block in text.split("\nTree=")[1:]:
        entries = dict(line.split("=", 1) for line in block.splitlines() if "=" in line)
        if entries.get("is_linear", "0") != "0" or entries.get("num_cat", "0") != "0":
            raise ValueError("a tree has linear leaves or splits on categories")
        if entries["num_leaves"] == "1":
            continue
        columns = {int(each) for each in entries["split_feature"].split()}
        if len(columns) != 1:
            raise ValueError(
                f"a tree splits on columns {sorted(columns)}; it needs interaction constraints of one each"
            )
        trees.append(
            Tree(
                column=columns.pop(),
                thresholds=tuple(float(each) for each in entries["threshold"].split()),
                left=tuple(int(each) for each in entries["left_child"].split()),
                right=tuple(int(each) for each in entries["right_child"].split()),
                leaves=tuple(float(each) for each in entries["leaf_value"].split()),
            )
        )
    return trees


def curves_of(trees: Sequence[Tree]) -> dict[int, Curve]:
    """The sum of the trees of each column as one step function, exactly: between two thresholds nothing changes."""
    curves = {}
    for column in sorted({tree.column for tree in trees}):
        own = [tree for tree in trees if tree.column == column]
        thresholds = sorted({each for tree in own for each in tree.thresholds})
        inside = [*thresholds, np.inf]  # one x of every stretch: its right end belongs to it
        values = [sum(tree.at(x) for tree in own) for x in inside]
        curves[column] = Curve(np.array(thresholds), np.array(values))
    return curves


def normalised(curves: Mapping[int, Curve]) -> dict[int, Curve]:
    """Each shifted to a minimum of 0, all scaled alike so that their maxima sum to 1; flat ones are left out. No
    ranking changes by it. ValueError where nothing is left."""
    shifted = {column: Curve(each.thresholds, each.values - each.values.min()) for column, each in curves.items()}
    total = sum(float(each.values.max()) for each in shifted.values())
    if total <= 0.0:
        raise ValueError("every curve is flat: the booster learned nothing")
    return {
        column: Curve(each.thresholds, each.values / total)
        for column, each in shifted.items()
        if each.values.max() > 0.0
    }
