"""What the content of importance adds to a ranking: the parts of that measurement."""

from __future__ import annotations

from pathlib import Path

import pytest

from sidecar.audit.datasets import read_dataset
from sidecar.features import FEATURE_NAMES
from sidecar.retrieval.embedders import make_embedder
from sidecar.weights import PRESETS
from training.importance_value import with_contents, with_weight

STORE = Path(__file__).parents[2] / "sidecar" / "demo" / "store.json"


def test_memories_get_the_content_part_that_the_server_would_give_them() -> None:
    """Each one, and they differ; nothing else of the data set changes."""
    plain = read_dataset(STORE)
    scored = with_contents(plain, make_embedder("none"))
    values = [memory.importance_content for memory in scored.memories]
    assert all(value is not None and 0.1 <= value <= 1.0 for value in values)
    assert len(set(values)) > len(values) / 2
    assert [memory.id for memory in scored.memories] == [memory.id for memory in plain.memories]
    assert scored.tasks == plain.tasks


def test_other_features_share_what_importance_leaves() -> None:
    """In the proportions of `default`; all sum to 1."""
    found, default = with_weight(0.2), PRESETS["default"]
    place = {name: FEATURE_NAMES.index(name) for name in ("importance", "thread", "dates")}
    assert found.values.sum() == pytest.approx(1.0)
    assert found.values[place["importance"]] == 0.2
    ratio = default.values[place["thread"]] / default.values[place["dates"]]
    assert found.values[place["thread"]] / found.values[place["dates"]] == pytest.approx(ratio)
