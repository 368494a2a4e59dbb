"""Text to vectors, offline. An embedder is loaded when it is first asked for anything but its name."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import numpy as np

from sidecar.errors import SettingsError
from sidecar.retrieval.embedding import Embedder
from sidecar.retrieval.vectors import Vectors

DEFAULT_EMBEDDER = "wordllama"
MOST_DIMENSIONS = 4_096


class NoEmbedder:
    """Gives no vectors: ranking then goes by words alone."""

    name = "none"
    fingerprint = ""
    dimension = 0

    def embed(self, texts: Sequence[str]) -> Vectors:
        """Rows without numbers."""
        return np.zeros((len(texts), 0), dtype=np.float32)


class ClientVectors:
    """Gives no vectors of its own: memories and tasks have those that callers bring, of one dimension."""

    name = "client"
    fingerprint = ""

    def __init__(self, dimension: int) -> None:
        self.dimension = dimension

    def embed(self, texts: Sequence[str]) -> Vectors:
        """Rows of zeros: texts without a vector."""
        return np.zeros((len(texts), self.dimension), dtype=np.float32)


def _client(dimension: str) -> Embedder:
    if not dimension.isdecimal() or not 1 <= int(dimension) <= MOST_DIMENSIONS:
        raise SettingsError(f"embedder: client:{dimension} needs a dimension from 1 to {MOST_DIMENSIONS:,}: client:768")
    return ClientVectors(int(dimension))


def _wordllama(_: str) -> Embedder:
    from sidecar.retrieval.static import WordLlamaEmbedder

    package = _need("wordllama", "wordllama", "install the package wordllama or set none")
    return WordLlamaEmbedder(_folder("wordllama", str(package), *WordLlamaEmbedder.FILES))


def _model2vec(folder: str) -> Embedder:
    from sidecar.retrieval.static import Model2VecEmbedder

    _need("model2vec", "tokenizers", "pip install 'memory-ranker[model2vec]'")
    return Model2VecEmbedder(_folder("model2vec", folder, "model.safetensors", "tokenizer.json"))


def _onnx(folder: str) -> Embedder:
    from sidecar.retrieval.onnx import OnnxEmbedder, model_file

    for module in ("onnxruntime", "tokenizers"):
        _need("onnx", module, "pip install 'memory-ranker[onnx]'")
    found = _folder("onnx", folder, "tokenizer.json")
    if model_file(found) is None:
        raise SettingsError(f"embedder: {found} holds neither model.onnx nor onnx/model.onnx")
    return OnnxEmbedder(found)


_MAKERS: Mapping[str, tuple[str, Callable[[str], Embedder]]] = {
    "wordllama": ("", _wordllama),
    "onnx": ("DIR", _onnx),
    "model2vec": ("DIR", _model2vec),
    "client": ("DIMENSION", _client),
    "none": ("", lambda _: NoEmbedder()),
}
CHOICES = tuple(f"{name}:{argument}" if argument else name for name, (argument, _) in _MAKERS.items())


def make_embedder(spec: str) -> Embedder:
    """The embedder that a setting names. SettingsError if there is none of that name, or it is not installed."""
    name, colon, argument = spec.partition(":")
    wanted, maker = _MAKERS.get(name, ("", None))
    if maker is None or bool(argument) != bool(wanted) or (colon and not argument):
        raise SettingsError(f"embedder: {spec!r} is not known; choose one of {', '.join(CHOICES)}")
    return maker(argument)


def _need(embedder: str, module: str, way_out: str) -> Path:
    """The folder of an installed package."""
    found = importlib.util.find_spec(module)
    if found is None or found.origin is None:
        raise SettingsError(f"embedder: {embedder} needs {module}, which is not installed; {way_out}")
    return Path(found.origin).parent


def _folder(embedder: str, folder: str, *files: str) -> Path:
    path = Path(folder).expanduser()
    missing = [name for name in files if not (path / name).is_file()]
    if missing:
        raise SettingsError(
            f"embedder: {embedder} finds no {' and no '.join(missing)} in {path}; nothing is downloaded"
        )
    return path
