"""Embedders that ship with the product."""

from __future__ import annotations

import importlib.util
import json
import shutil
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tokenizers import Tokenizer
from tokenizers.models import WordLevel
from tokenizers.pre_tokenizers import Whitespace

from sidecar.domain import Memory
from sidecar.errors import SettingsError
from sidecar.retrieval import static
from sidecar.retrieval.embedders import make_embedder
from sidecar.retrieval.embedding import Embedder
from sidecar.retrieval.snapshot import snapshot_of
from sidecar.retrieval.static import WordLlamaEmbedder

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


@pytest.fixture
def package(tmp_path: Path) -> Path:
    """A copy of wordllama's files."""
    installed = importlib.util.find_spec("wordllama")
    assert installed is not None
    assert installed.origin is not None
    for name in WordLlamaEmbedder.FILES:
        (tmp_path / name).parent.mkdir()
        shutil.copyfile(Path(installed.origin).parent / name, tmp_path / name)
    return tmp_path


def test_a_known_fingerprint_is_the_one_that_is_worked_out(package: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What stands in the table for wordllama's files is what they come to without it, so that stores stay good."""
    known = WordLlamaEmbedder(package).fingerprint
    assert known in static.FINGERPRINTS.values()
    monkeypatch.setattr(static, "FINGERPRINTS", {})
    assert WordLlamaEmbedder(package).fingerprint == known


@pytest.mark.parametrize("name", WordLlamaEmbedder.FILES)
def test_another_file_of_wordllama_is_another_fingerprint(package: Path, name: str) -> None:
    """A single number of its vectors, or one word of its tokenizer."""
    before = WordLlamaEmbedder(package).fingerprint
    data = (package / name).read_bytes()
    if name.endswith(".json"):
        found = json.loads(data)
        found["model"]["merges"].pop()
        data = json.dumps(found).encode()
    else:
        data = data[:-1] + bytes([data[-1] ^ 1])
    (package / name).write_bytes(data)
    assert WordLlamaEmbedder(package).fingerprint not in (before, "")


def test_a_wordllama_without_its_files_is_refused(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The error names the file and where it was looked for."""
    (tmp_path / "wordllama").mkdir()
    (tmp_path / "wordllama" / "__init__.py").touch()
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(SettingsError, match=rf"l2_supercat_256\.safetensors in {tmp_path / 'wordllama'}"):
        make_embedder("wordllama")


OFFLINE = """
import json, logging, os, socket, sys
from pathlib import Path

def refuse(*args, **kwargs):
    raise AssertionError("a connection was opened")

socket.socket.connect = socket.create_connection = socket.getaddrinfo = refuse
from sidecar.retrieval.embedders import make_embedder
lazy = "tokenizers" not in sys.modules
embedder = make_embedder("wordllama")
named = embedder.name, "tokenizers" in sys.modules
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


def test_vectors_from_the_client_have_one_dimension_and_none_of_their_own() -> None:
    """Texts get no direction; what callers bring is compared as it is."""
    embedder = make_embedder("client:3")
    assert (embedder.name, embedder.dimension) == ("client", 3)
    assert not embedder.embed(["a", "b"]).any()
    vectors = {
        "x": np.array([1, 0, 0], np.float32),
        "y": np.array([0, 2, 0], np.float32),
        "z": embedder.embed(["z"])[0],
    }
    snapshot = snapshot_of([Memory(id=name, content=name, embedding=vector) for name, vector in vectors.items()])
    found = snapshot.match("task", np.array([0, 1, 0], np.float32)).cosine
    assert [found[snapshot.row_of_id[name]] for name in "xy"] == [0.0, 1.0]
    assert np.isnan(found[snapshot.row_of_id["z"]])


def test_a_model2vec_folder_adds_up_its_vectors(folder: Path) -> None:
    """By hand: the vectors of the words, added and brought to length 1; half-precision files too."""
    table = np.array([[0, 0], [3, 0], [0, 4]], dtype=np.float16)
    header = json.dumps({"embeddings": {"dtype": "F16", "shape": [3, 2], "data_offsets": [0, 12]}}).encode()
    (folder / "model.safetensors").write_bytes(len(header).to_bytes(8, "little") + header + table.tobytes())
    embedder = make_embedder(f"model2vec:{folder}")
    assert embedder.dimension == 2
    assert embedder.embed(["cat", "dog dog", "cat dog", ""]).tolist() == [
        [1, 0],
        [0, 1],
        pytest.approx([0.6, 0.8]),
        [0, 0],
    ]


def test_a_model2vec_file_of_another_make_is_refused(folder: Path) -> None:
    """Vectors that are shared or weighed would come out wrong, so the file is refused and says why."""
    header = json.dumps({"embeddings": {"dtype": "F32"}, "mapping": {}}).encode()
    (folder / "model.safetensors").write_bytes(len(header).to_bytes(8, "little") + header)
    with pytest.raises(SettingsError, match="embeddings, mapping"):
        make_embedder(f"model2vec:{folder}").embed(["cat"])


@pytest.mark.parametrize(
    ("pooling", "expected"),
    [(None, [0.6, 0.8]), ({"pooling_mode_mean_tokens": True}, [0.6, 0.8]), ({"pooling_mode_cls_token": True}, [1, 0])],
)
def test_an_onnx_folder_pools_as_it_says(folder: Path, pooling: dict[str, bool] | None, expected: list[float]) -> None:
    """By hand: `cat` is (3, 0) and `dog` (0, 4); their mean points to (.6, .8), the first to (1, 0)."""
    write_model(folder / "model.onnx", np.array([[0, 0], [3, 0], [0, 4]], dtype=np.float32))
    if pooling is not None:
        (folder / "1_Pooling").mkdir()
        (folder / "1_Pooling" / "config.json").write_text(json.dumps(pooling), encoding="utf-8")
    embedder = make_embedder(f"onnx:{folder}")
    rows = embedder.embed(["cat dog", "dog", " "])
    assert embedder.dimension == 2
    assert rows.dtype == np.float32
    assert rows.tolist() == [pytest.approx(expected), [0, 1], [0, 0]]
    assert embedder.embed(["cat dog"])[0].tobytes() == rows[0].tobytes()


def test_another_model_in_the_folder_is_another_fingerprint(folder: Path) -> None:
    """What decides a vector is in the fingerprint: the model, and how it pools."""
    prints = set()
    (folder / "onnx").mkdir()
    for scale in (1, 2):
        write_model(folder / "onnx" / "model.onnx", scale * np.eye(3, 2, dtype=np.float32))
        prints.add(make_embedder(f"onnx:{folder}").fingerprint)
    (folder / "1_Pooling").mkdir()
    (folder / "1_Pooling" / "config.json").write_text('{"pooling_mode_cls_token": true}', encoding="utf-8")
    prints.add(make_embedder(f"onnx:{folder}").fingerprint)
    assert len(prints) == 3


def test_a_folder_that_cannot_be_used_is_refused_with_the_reason(folder: Path, tmp_path: Path) -> None:
    """A missing file, a file that is no model, and a pooling that is not known are each named."""
    with pytest.raises(SettingsError, match=r"tokenizer\.json"):
        make_embedder(f"onnx:{tmp_path / 'nowhere'}")
    with pytest.raises(SettingsError, match=r"model\.safetensors"):
        make_embedder(f"model2vec:{folder}")
    with pytest.raises(SettingsError, match=r"model\.onnx"):
        make_embedder(f"onnx:{folder}")
    (folder / "model.onnx").write_bytes(b"no model")
    with pytest.raises(SettingsError, match="cannot load"):
        make_embedder(f"onnx:{folder}").embed(["x"])
    write_model(folder / "model.onnx", np.eye(3, 2, dtype=np.float32))
    (folder / "1_Pooling").mkdir()
    (folder / "1_Pooling" / "config.json").write_text('{"pooling_mode_lasttoken": true}', encoding="utf-8")
    with pytest.raises(SettingsError, match="lasttoken"):
        make_embedder(f"onnx:{folder}").embed(["x"])


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with a tokenizer of two words."""
    tokenizer = Tokenizer(WordLevel({"[UNK]": 0, "cat": 1, "dog": 2}, unk_token="[UNK]"))
    tokenizer.pre_tokenizer = Whitespace()
    found = tmp_path / "model"
    found.mkdir()
    tokenizer.save(str(found / "tokenizer.json"))
    return found


def write_model(path: Path, table: np.ndarray[Any, np.dtype[np.float32]]) -> None:
    """The smallest text encoder in ONNX: each token's output is its row of `table`."""

    def field(number: int, value: int | str | bytes) -> bytes:
        if isinstance(value, int):
            return varint(number << 3) + varint(value)
        data = value.encode() if isinstance(value, str) else value
        return varint(number << 3 | 2) + varint(len(data)) + data

    def varint(value: int) -> bytes:
        low, rest = value & 0x7F, value >> 7
        return bytes([low | 0x80]) + varint(rest) if rest else bytes([low])

    def tensor(name: str, kind: int, *dimensions: int | str) -> bytes:
        shape = b"".join(field(1, field(1 if isinstance(each, int) else 2, each)) for each in dimensions)
        return field(1, name) + field(2, field(1, field(1, kind) + field(2, shape)))

    rows, size = table.shape
    node = field(1, "table") + field(1, "input_ids") + field(2, "last_hidden_state") + field(4, "Gather")
    weights = field(1, rows) + field(1, size) + field(2, 1) + field(8, "table") + field(9, table.tobytes())
    graph = field(1, node) + field(2, "encoder") + field(5, weights)
    graph += field(11, tensor("input_ids", 7, "batch", "tokens"))
    graph += field(12, tensor("last_hidden_state", 1, "batch", "tokens", size))
    path.write_bytes(field(1, 8) + field(7, graph) + field(8, field(1, "") + field(2, 13)))


@pytest.mark.parametrize("spec", ["", "wordlama", "onnx", "onnx:", "client:", "none:1", "wordllama:x", "None"])
def test_an_unknown_embedder_is_refused_with_the_choices(spec: str) -> None:
    """The error names the setting, the value and what can be chosen."""
    with pytest.raises(SettingsError) as caught:
        make_embedder(spec)
    for part in ("embedder", repr(spec), "none", "wordllama"):
        assert part in caught.value.message
