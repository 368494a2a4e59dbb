"""Embedders that ship with the product."""

from __future__ import annotations

import json
import subprocess
import sys
import threading

import numpy as np
import pytest

from sidecar.errors import SettingsError
from sidecar.retrieval.embedders import Embedder, make_embedder

TEXTS = ["the cat sat on the mat", "a kitten on a rug", "quarterly revenue grew", "", "  ", "猫が好き", "cat " * 5000]


@pytest.fixture(scope="module")
def wordllama() -> Embedder:
    return make_embedder("wordllama")


def test_rows_are_unit_vectors_and_a_text_without_tokens_is_zero(wordllama: Embedder) -> None:
    """Shape, type and length of what comes out; an empty text has no direction."""
    rows = wordllama.embed(TEXTS)
    assert rows.shape == (len(TEXTS), wordllama.dimension) == (7, 256)
    assert rows.dtype == np.float32
    lengths = np.linalg.norm(rows, axis=1)
    assert lengths[[0, 1, 2, 5, 6]] == pytest.approx(1.0, abs=1e-5)
    assert lengths[3] == 0
    assert wordllama.embed([]).shape == (0, 256)


def test_meaning_is_nearer_than_the_rest(wordllama: Embedder) -> None:
    """The vectors carry meaning: a kitten is nearer to a cat than revenue is."""
    cat, kitten, revenue = wordllama.embed(TEXTS[:3])
    assert cat @ kitten > cat @ revenue + 0.1


def test_a_row_depends_on_its_own_text_alone(wordllama: Embedder) -> None:
    """The same text has the same vector to the last bit, whatever is embedded beside it."""
    rows = wordllama.embed(TEXTS)
    for text, row in zip(TEXTS, rows, strict=True):
        assert wordllama.embed([text])[0].tobytes() == row.tobytes()


def test_many_threads_load_once_and_agree() -> None:
    """The first use from many threads at once gives every thread the same vectors."""
    embedder = make_embedder("wordllama")
    results: list[bytes] = []
    threads = [threading.Thread(target=lambda: results.append(embedder.embed(TEXTS).tobytes())) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(results) == 6
    assert len(set(results)) == 1


def test_the_fingerprint_stays(wordllama: Embedder) -> None:
    """Two loads of the same files have the same fingerprint."""
    assert wordllama.fingerprint
    assert wordllama.fingerprint == make_embedder("wordllama").fingerprint


OFFLINE = """
import json, logging, os, socket, sys
from pathlib import Path

def refuse(*args, **kwargs):
    raise AssertionError("a connection was opened")

socket.socket.connect = socket.create_connection = socket.getaddrinfo = refuse
from sidecar.retrieval.embedders import make_embedder
lazy = "wordllama" not in sys.modules
embedder = make_embedder("wordllama")
named = embedder.name, "wordllama" in sys.modules
embedder.embed(["hello"])
root = logging.getLogger()
print(json.dumps([lazy, named, root.level, len(root.handlers), list(map(str, Path.home().iterdir()))]))
"""


def test_it_loads_offline_and_leaves_logging_and_home_alone(tmp_path_factory: pytest.TempPathFactory) -> None:
    """Loading opens no connection, adds no log handler, changes no level, and writes nothing to the home folder."""
    home = tmp_path_factory.mktemp("home")
    done = subprocess.run(
        [sys.executable, "-c", OFFLINE], env={"HOME": str(home), "PATH": ""}, capture_output=True, text=True, check=True
    )
    assert json.loads(done.stdout) == [True, ["wordllama", False], 30, 0, []]


def test_none_gives_no_vectors() -> None:
    """Without an embedder the rows are there and have no numbers."""
    embedder = make_embedder("none")
    assert embedder.embed(["a", "b"]).shape == (2, 0)
    assert (embedder.name, embedder.dimension, embedder.fingerprint) == ("none", 0, "")


@pytest.mark.parametrize("spec", ["", "wordlama", "onnx", "None"])
def test_an_unknown_embedder_is_refused_with_the_choices(spec: str) -> None:
    """The error names the setting, the value and what can be chosen."""
    with pytest.raises(SettingsError) as caught:
        make_embedder(spec)
    for part in ("embedder", repr(spec), "none", "wordllama"):
        assert part in caught.value.message
