"""Text to vectors, offline. An embedder is loaded when it is first asked for anything but its name."""

from __future__ import annotations

import hashlib
import importlib
import importlib.util
import logging
import threading
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from sidecar.errors import SettingsError
from sidecar.retrieval.vectors import Vectors

DEFAULT_EMBEDDER = "wordllama"


class Embedder(Protocol):
    """Turns texts into vectors. Safe to use from any thread."""

    @property
    def name(self) -> str:
        """The name that settings use."""

    @property
    def fingerprint(self) -> str:
        """Changes whenever the same text may give another vector; "" for an embedder that gives none."""

    @property
    def dimension(self) -> int:
        """Numbers in a vector; 0 for an embedder that gives none."""

    def embed(self, texts: Sequence[str]) -> Vectors:
        """Unit rows, shape (len(texts), dimension), float32; a zero row for a text without tokens.

        A row depends on its own text alone, not on the others beside it.
        """


class NoEmbedder:
    """Gives no vectors: ranking then goes by words alone, or by the vectors that callers bring."""

    name = "none"
    fingerprint = ""
    dimension = 0

    def embed(self, texts: Sequence[str]) -> Vectors:
        """Rows without numbers."""
        return np.zeros((len(texts), 0), dtype=np.float32)


class WordLlamaEmbedder:
    """The mean of static token vectors, from the files inside the installed wordllama package. Never downloads."""

    name = "wordllama"
    dimension = 256

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._loaded: tuple[Any, NDArray[np.float32], str] | None = None

    @property
    def fingerprint(self) -> str:
        """Of the token vectors and the tokenizer."""
        return self._load()[2]

    def embed(self, texts: Sequence[str]) -> Vectors:
        """See Embedder."""
        tokenizer, token_vectors, _ = self._load()
        rows = np.zeros((len(texts), self.dimension), dtype=np.float32)
        encodings = (
            [tokenizer.encode(texts[0], add_special_tokens=False)]
            if len(texts) == 1
            else (tokenizer.encode_batch_fast(list(texts), add_special_tokens=False))
        )
        for row, encoding in zip(rows, encodings, strict=True):
            # wordllama pads a batch to its longest text; each text by itself needs no such room and has one result.
            ids = np.minimum(encoding.ids, len(token_vectors) - 1)
            if len(ids):
                total = token_vectors[ids].sum(axis=0, dtype=np.float64)
                length = np.sqrt(np.square(total).sum())
                row[:] = total / length if length else 0.0
        return rows

    def _load(self) -> tuple[Any, NDArray[np.float32], str]:
        with self._lock:
            if self._loaded is None:
                package = _import_quietly("wordllama")
                # As shipped it looks in the user's cache and then downloads; its files lie beside its code.
                home = Path(package.__file__).parent
                model = package.WordLlama.load(dim=self.dimension, cache_dir=home, disable_download=True)
                model.tokenizer.no_padding()
                digest = hashlib.blake2b(model.tokenizer.to_str().encode(), digest_size=8)
                digest.update(model.embedding)
                self._loaded = (model.tokenizer, model.embedding, digest.hexdigest())
            return self._loaded


_MAKERS: Mapping[str, Callable[[], Embedder]] = {"wordllama": WordLlamaEmbedder, "none": NoEmbedder}


def make_embedder(spec: str) -> Embedder:
    """The embedder that a setting names. SettingsError if there is none of that name, or it is not installed."""
    maker = _MAKERS.get(spec)
    if maker is None:
        raise SettingsError(f"embedder: {spec!r} is not known; choose one of {', '.join(sorted(_MAKERS))}")
    if spec == "wordllama" and importlib.util.find_spec("wordllama") is None:
        raise SettingsError("embedder: wordllama is not installed; install the package wordllama or set none")
    return maker()


def _import_quietly(name: str) -> Any:
    """Imports a package that configures the root logger on import, and keeps it from doing so."""
    root = logging.getLogger()
    guard = logging.NullHandler()  # basicConfig leaves a root logger alone that has a handler
    root.addHandler(guard)
    try:
        return importlib.import_module(name)
    finally:
        root.removeHandler(guard)
