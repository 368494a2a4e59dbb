"""What a Rank costs with a model of curves, by what it costs with one of weights."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from sidecar.features import FEATURE_NAMES
from sidecar.weights import PRESETS
from tests.bench import servers, workload
from tests.bench.filling import fill, ranking
from tests.bench.rows import Row, bounded, interleaved
from tests.weights.making import make_artifact

STEPS = 100
"""Thresholds of each curve: about what 200 trees over these features come to."""


def measure_forms(count: int, blocks: int, size: int, most: float) -> Iterator[Row]:
    """Two servers over the same memories, asked in turns: one serves the weights of `default` as a model, the other a
    curve of STEPS uneven steps for each of its features."""
    weights = {
        name: value for name, value in zip(FEATURE_NAMES, PRESETS["default"].values.tolist(), strict=True) if value
    }
    dice = np.random.default_rng(1)
    curves = {
        name: {
            "thresholds": np.sort(dice.random(STEPS)).tolist(),
            "values": [top * step / STEPS for step in range(STEPS + 1)],
        }
        for name, top in weights.items()
    }
    tables: dict[str, dict[str, Any]] = {"linear": {"features": weights}, "curves": {"curves": curves}}
    with servers.many() as start:
        asked = {}
        for form, table in tables.items():
            folder = start.folder()
            client = start.client(start.server(folder)[0])
            fill(client, count, vectors=client.status().dimension)
            client.load_model(archive=make_artifact(folder / "model", table).archive)
            asked[form] = ranking(client, workload.tasks(300))
        found = interleaved(asked, blocks, size)
    p50 = {form: float(np.median(values)) for form, values in found.items()}
    for form, value in p50.items():
        yield bounded(f"rank_{form}_p50", 1e3 * value, "ms")
    yield bounded("rank_curves_to_linear_p50", p50["curves"] / p50["linear"], "x linear", most=most)
