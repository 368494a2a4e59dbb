"""An embedder for sentence-transformers models that were exported to ONNX. Runs on this machine's processor alone."""

from __future__ import annotations

import hashlib
import json
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from sidecar.errors import SettingsError
from sidecar.retrieval.vectors import Vectors

MODEL_FILES = ("model.onnx", "onnx/model.onnx")
LONGEST_TEXT = 512
"""Tokens, where neither sentence_bert_config.json nor the tokenizer says less."""
POOLINGS = ("cls_token", "mean_tokens")


class _Model(NamedTuple):
    session: Any
    tokenizer: Any
    inputs: frozenset[str]
    output: str
    takes_first: bool
    dimension: int
    fingerprint: str


def model_file(folder: Path) -> Path | None:
    """The model in a folder, or None."""
    return next((folder / name for name in MODEL_FILES if (folder / name).is_file()), None)


class OnnxEmbedder:
    """The pooled, normalised output of a transformer: model.onnx (or onnx/model.onnx) beside tokenizer.json.

    Pools as 1_Pooling/config.json says, by the mean of the tokens where it is missing. A model with an output
    `sentence_embedding` pools by itself. Loads once, from the thread that first needs it.
    """

    name = "onnx"

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._lock = threading.Lock()
        self._loaded: _Model | None = None

    @property
    def fingerprint(self) -> str:
        """Of the model, the tokenizer and how its output is pooled."""
        return self._model().fingerprint

    @property
    def dimension(self) -> int:
        """See Embedder."""
        return self._model().dimension

    def embed(self, texts: Sequence[str]) -> Vectors:
        """See Embedder. One text at a time: in a batch, padding would make a row depend on its neighbours."""
        model = self._model()
        rows = np.zeros((len(texts), model.dimension), dtype=np.float32)
        for row, text in zip(rows, texts, strict=True):
            if text.strip():
                row[:] = self._embed(model, text)
        return rows

    @staticmethod
    def _embed(model: _Model, text: str) -> Any:
        encoding = model.tokenizer.encode(text)
        given = {
            "input_ids": encoding.ids,
            "attention_mask": encoding.attention_mask,
            "token_type_ids": encoding.type_ids,
        }
        fed = {name: np.array([given[name]], dtype=np.int64) for name in model.inputs}
        output = model.session.run([model.output], fed)[0].astype(np.float64)
        if output.ndim == 3:
            output = output[:, 0] if model.takes_first else output.mean(axis=1)
        length = np.sqrt(np.square(output[0]).sum())
        return output[0] / length if length else 0.0

    def _model(self) -> _Model:
        loaded = self._loaded
        if loaded is None:
            with self._lock:
                loaded = self._loaded = self._loaded or _load(self._folder)
        return loaded


def _load(folder: Path) -> _Model:
    import onnxruntime
    from tokenizers import Tokenizer

    path = model_file(folder)
    assert path is not None
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1  # the same sums in the same order, every time
    try:
        session = onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
    except Exception as error:  # its exceptions have no class of their own
        raise SettingsError(f"embedder: onnxruntime cannot load {path}: {error}") from error
    inputs = frozenset(each.name for each in session.get_inputs())
    if unknown := inputs - {"input_ids", "attention_mask", "token_type_ids"}:
        raise SettingsError(f"embedder: {path} wants {', '.join(sorted(unknown))}; export it as a text encoder")
    outputs = {each.name: each.shape for each in session.get_outputs()}
    output = next(
        (name for name in ("sentence_embedding", "last_hidden_state") if name in outputs), next(iter(outputs))
    )
    dimension = outputs[output][-1]
    if not isinstance(dimension, int):
        raise SettingsError(f"embedder: the output {output} of {path} has no fixed dimension")
    pooling = _json(folder / "1_Pooling" / "config.json")
    takes_first = bool(pooling.get("pooling_mode_cls_token", False))
    asked = {
        name.removeprefix("pooling_mode_") for name, on in pooling.items() if name != "include_prompt" and on is True
    }
    if len(outputs[output]) == 3 and not asked <= set(POOLINGS):
        raise SettingsError(f"embedder: {folder} pools by {', '.join(sorted(asked))}; known are {', '.join(POOLINGS)}")
    text = (folder / "tokenizer.json").read_text(encoding="utf-8")
    longest = int(_json(folder / "sentence_bert_config.json").get("max_seq_length") or LONGEST_TEXT)
    tokenizer = Tokenizer.from_str(text)
    tokenizer.no_padding()
    tokenizer.enable_truncation(max_length=longest)
    digest = hashlib.blake2b(digest_size=8)
    for part in (path.read_bytes(), text.encode(), f"{takes_first} {longest} {output}".encode()):
        digest.update(hashlib.blake2b(part).digest())
    return _Model(session, tokenizer, inputs, output, takes_first, dimension, digest.hexdigest())


def _json(path: Path) -> dict[str, Any]:
    if not path.is_file():
        return {}
    found: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return found
