"""Features in the ways of a preset that repeats a note, as the log has them beside those that scored. Pure.

The server logs with every packet what its memories measure in the ways that did not score them. Packets from before it
did have the ways that scored them alone.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from sidecar.features import FEATURE_NAMES
from training.dataset import Dataset
from training.gathering import DEFAULT
from training.model import Model


def ways_of(models: Iterable[Model]) -> tuple[str, ...]:
    """The ways in which these models measure features, but for the default ones."""
    pairs = {pair for model in models for pair in model.common.variants.items()}
    return tuple(f"{feature}:{way}" for feature, way in sorted(pairs) if way != DEFAULT)


def as_measured_by(dataset: Dataset, model: Model) -> tuple[Dataset, NDArray[np.bool_]]:
    """The data set, made with `ways_of` the model, with features in the model's ways; and which packets have them all,
    (p,)."""
    known = np.ones(len(dataset.packets), bool)
    features, pool_features = dataset.features.copy(), dataset.pool_features.copy()
    for way in ways_of([model]):
        column = FEATURE_NAMES.index(way.partition(":")[0])
        features[:, column], pool_features[:, column] = dataset.ways[way]
        known[dataset.packet[np.isnan(features[:, column])]] = False
        known[dataset.pool_packet[np.isnan(pool_features[:, column])]] = False
    return replace(dataset, features=features, pool_features=pool_features), known
