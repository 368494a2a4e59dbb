"""Embedders that add up one vector a token: nothing is computed but a sum, so a task costs well under a millisecond."""

from __future__ import annotations

import hashlib
import json
import sys
import threading
from abc import abstractmethod
from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from sidecar.errors import SettingsError
from sidecar.retrieval.embedding import Embedder, TaskVector, WeighedWord
from sidecar.retrieval.vectors import Vectors

LEAST_TRUST = 0.25
CHARACTERS_OFF = 0.75
NO_WORD = WeighedWord(sys.maxsize, sys.maxsize, 1.0)
"""Stands behind the last one."""
FINGERPRINTS = {"5ea746254414d522d4d9b4b5e01da922d0c8fb8d610b788f70c0f18ffc74317d": "19bc3d17db97ddc9"}
"""SHA-256 of wordllama's files -> fingerprint, for those of known versions: to work it out takes longer than to load
them."""


class _Model(NamedTuple):
    tokenizer: Any
    token_vectors: Vectors
    fingerprint: str


class StaticEmbedder(Embedder):
    """The normalised sum of static token vectors. Loads once, from the thread that first needs it."""

    knows_bytes = False
    """True for a tokenizer that spells out scripts it does not know in pieces of characters."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._loaded: _Model | None = None

    @property
    def fingerprint(self) -> str:
        """Of the token vectors and the tokenizer."""
        return self._model().fingerprint

    @property
    def dimension(self) -> int:
        """See Embedder."""
        return int(self._model().token_vectors.shape[1])

    def embed(self, texts: Sequence[str]) -> Vectors:
        """See Embedder."""
        tokenizer, token_vectors, _ = self._model()
        rows = np.zeros((len(texts), token_vectors.shape[1]), dtype=np.float32)
        encodings = (
            [tokenizer.encode(texts[0], add_special_tokens=False)]
            if len(texts) == 1
            else tokenizer.encode_batch_fast(list(texts), add_special_tokens=False)
        )
        for row, encoding in zip(rows, encodings, strict=True):
            # Padding a batch to its longest text would make a row depend on its neighbours.
            ids = np.minimum(encoding.ids, len(token_vectors) - 1)
            if len(ids):
                row[:] = _unit(token_vectors[ids].sum(axis=0, dtype=np.float64))
        return rows

    def embed_task(self, task: str, words: Sequence[WeighedWord]) -> TaskVector:
        """The task's vector with its tokens weighed by the words that they belong to; others count whole.

        Trusted less where a script is known only by pieces of its characters.
        """
        tokenizer, token_vectors, _ = self._model()
        encoding = tokenizer.encode(task, add_special_tokens=False)
        ids = np.minimum(encoding.ids, len(token_vectors) - 1)
        if not len(ids):
            return TaskVector(np.zeros(token_vectors.shape[1], dtype=np.float32))
        weights = []
        following = iter(words)
        word = next(following, NO_WORD)
        for start, end in encoding.offsets:
            while word.end <= start:
                word = next(following, NO_WORD)
            weights.append(word.weight if word.start < end else 1.0)
        numbers = _unit(np.array(weights) @ token_vectors[ids].astype(np.float64)).astype(np.float32)
        if not self.knows_bytes:
            return TaskVector(numbers)
        # About four characters a token in a script that the tokenizer knows, one in a script that it spells out.
        characters = len("".join(task.split())) / len(ids)
        return TaskVector(numbers, min(max(characters - CHARACTERS_OFF, LEAST_TRUST), 1.0))

    @abstractmethod
    def _load(self) -> _Model:
        """Reads the files."""

    def _model(self) -> _Model:
        loaded = self._loaded
        if loaded is None:
            with self._lock:
                loaded = self._loaded = self._loaded or self._load()
        return loaded


class WordLlamaEmbedder(StaticEmbedder):
    """From the files inside the installed wordllama package. Of its code nothing is loaded: all that it imports, to
    download models above all, takes as long as everything else that an embedder needs."""

    name = "wordllama"
    dimension = 256
    knows_bytes = True
    FILES = ("tokenizers/l2_supercat_tokenizer_config.json", "weights/l2_supercat_256.safetensors")
    """Tokenizer and token vectors, in the package's folder."""

    def __init__(self, folder: Path) -> None:
        super().__init__()
        self._paths = [folder / name for name in self.FILES]

    @property
    def fingerprint(self) -> str:
        """Of the token vectors and the tokenizer as the library writes it."""
        return self._known or super().fingerprint

    @cached_property
    def _known(self) -> str | None:
        digest = hashlib.sha256()
        for path in self._paths:
            digest.update(path.read_bytes())
        return FINGERPRINTS.get(digest.hexdigest())

    def _load(self) -> _Model:
        tokenizer_file, vectors_file = self._paths
        tokenizer = _tokenizer(tokenizer_file.read_text(encoding="utf-8"))
        token_vectors = _read_vectors(vectors_file, vectors_file.read_bytes(), "embedding.weight")
        return _Model(tokenizer, token_vectors, self._known or _fingerprint(tokenizer.to_str(), token_vectors.data))


class Model2VecEmbedder(StaticEmbedder):
    """From a folder with model.safetensors and tokenizer.json, as model2vec saves them."""

    name = "model2vec"

    def __init__(self, folder: Path) -> None:
        super().__init__()
        self._folder = folder

    def _load(self) -> _Model:
        text = (self._folder / "tokenizer.json").read_text(encoding="utf-8")
        path = self._folder / "model.safetensors"
        data = path.read_bytes()
        return _Model(_tokenizer(text), _read_vectors(path, data, "embeddings"), _fingerprint(text, data))


def _tokenizer(text: str) -> Any:
    from tokenizers import Tokenizer

    tokenizer = Tokenizer.from_str(text)
    tokenizer.no_padding()
    tokenizer.no_truncation()
    return tokenizer


def _fingerprint(tokenizer: str, data: bytes | memoryview) -> str:
    digest = hashlib.blake2b(tokenizer.encode(), digest_size=8)
    digest.update(data)
    return digest.hexdigest()


def _read_vectors(path: Path, data: bytes, name: str) -> Vectors:
    """The only tensor of a safetensors file, of that name: a length, a JSON header, and raw numbers."""
    size = int.from_bytes(data[:8], "little")
    header = json.loads(data[8 : 8 + size])
    tensor = header.get(name)
    if tensor is None or tensor["dtype"] not in ("F32", "F16") or set(header) - {name, "__metadata__"}:
        # Newer files may map tokens to fewer vectors, or weigh them: read otherwise, they would give wrong vectors.
        tensors = ", ".join(sorted(set(header) - {"__metadata__"}))
        raise SettingsError(
            f"embedder: {path} holds {tensors}; it must hold `{name}` "
            "alone, as 16 or 32-bit floats. Save the model without quantisation of its vocabulary."
        )
    start, end = tensor["data_offsets"]
    kind = np.dtype("<f4" if tensor["dtype"] == "F32" else "<f2")
    numbers = np.frombuffer(data, kind, (end - start) // kind.itemsize, 8 + size + start).reshape(tensor["shape"])
    return np.array(numbers, dtype=np.float32)


def _unit(total: Any) -> Any:
    length = np.sqrt(np.square(total).sum())
    return total / length if length else np.zeros_like(total)
