"""Fits the table behind `sidecar.ranking.tokens` to texts whose tokens were counted by real tokenizers.

    python -m training.token_costs counted.jsonl sidecar/ranking/token_costs.npz

Each line of the input is an object: `text`, `tokens` (the highest count among the tokenizers to stay above) and
`weight` (how much this text matters). Every character of the Basic Multilingual Plane has to be there as a text of its
own: its count decides which class it falls in.

The costs minimise a smoothed pinball loss at the quantile `QUANTILE`: one token too few weighs as much as 199 too
many. Costs that no text speaks of stay near what their last character costs alone.
"""

from __future__ import annotations

import json
import string
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize
from scipy.sparse import csr_matrix, vstack

from sidecar.ranking.tokens import FOLDS, RESERVE, UNITS_PER_TOKEN, TokenCosts

QUANTILE = 0.995
PRIOR_WEIGHT = 3e-3
MOST = 20.0
"""Tokens that one cost may reach: U+FDFA alone is 18."""
STEPS = 500
WIDE = 5
"""From this many tokens on, characters are classed by their count alone, whatever their script."""


class Split(Enum):
    """Which of a range's characters share a class."""

    NONE = "none"
    COUNT = "count"
    EACH = "each"


@dataclass(frozen=True, slots=True)
class Range:
    """Code units `first` to `last`; ranges further down the list win, and those of one name share their classes."""

    name: str
    first: int
    last: int
    split: Split = Split.NONE


RANGES = (
    Range("other", 0x0000, 0xFFFF),
    Range("control", 0x0000, 0x001F),
    Range("control", 0x007F, 0x009F),
    Range("lower", ord("a"), ord("z"), Split.EACH),
    Range("upper", ord("A"), ord("Z")),
    Range("digit", ord("0"), ord("9")),
    *(Range(character, ord(character), ord(character)) for character in " \n\t\r" + string.punctuation),
    Range("latin symbol", 0x00A0, 0x00BF, Split.COUNT),
    Range("latin", 0x00C0, 0x024F, Split.COUNT),
    Range("phonetic", 0x0250, 0x02FF),
    Range("combining", 0x0300, 0x036F),
    Range("greek", 0x0370, 0x03FF, Split.COUNT),
    Range("greek lower", 0x03AC, 0x03CE, Split.COUNT),
    Range("cyrillic upper", 0x0400, 0x042F),
    Range("cyrillic lower", 0x0430, 0x044F, Split.EACH),
    Range("cyrillic more", 0x0450, 0x052F),
    Range("armenian", 0x0530, 0x058F),
    Range("hebrew points", 0x0590, 0x05FF),
    Range("hebrew", 0x05D0, 0x05EA, Split.COUNT),
    Range("arabic", 0x0600, 0x077F, Split.COUNT),
    Range("devanagari", 0x0900, 0x097F, Split.COUNT),
    Range("indic", 0x0980, 0x0DFF, Split.COUNT),
    Range("thai", 0x0E01, 0x0E5B, Split.COUNT),
    Range("lao and tibetan", 0x0E80, 0x0FFF),
    Range("burmese", 0x1000, 0x109F),
    Range("georgian", 0x10A0, 0x10FF),
    Range("jamo", 0x1100, 0x11FF),
    Range("khmer", 0x1780, 0x17FF),
    Range("latin and greek more", 0x1E00, 0x1FFF),
    Range("punctuation", 0x2000, 0x206F, Split.COUNT),
    Range("joiner", 0x200D, 0x200D),
    Range("symbol", 0x2070, 0x2BFF, Split.COUNT),
    Range("cjk punctuation", 0x3000, 0x303F, Split.COUNT),
    Range("hiragana", 0x3041, 0x309F, Split.COUNT),
    Range("katakana", 0x30A0, 0x30FF, Split.COUNT),
    Range("cjk more", 0x3100, 0x33FF, Split.COUNT),
    Range("han", 0x3400, 0x9FFF, Split.COUNT),
    Range("yi", 0xA000, 0xA4CF),
    Range("hangul", 0xAC00, 0xD7A3, Split.COUNT),
    Range("high surrogate", 0xD800, 0xDBFF),
    Range("high surrogate of mathematical letters", 0xD835, 0xD835),
    Range("high surrogate of emoji", 0xD83C, 0xD83F),
    Range("high surrogate of rare han", 0xD840, 0xD88A),
    Range("low surrogate", 0xDC00, 0xDFFF),
    Range("low surrogate of flags", 0xDDE6, 0xDDFF),
    Range("low surrogate of skin tones", 0xDFFB, 0xDFFF),
    Range("presentation form", 0xFB00, 0xFDFF),
    Range("variation selector", 0xFE00, 0xFE0F),
    Range("full width", 0xFF00, 0xFFEF, Split.COUNT),
)
SURROGATES = range(0xD800, 0xE000)
SURROGATE_TOKENS = 2.0


@dataclass(frozen=True, slots=True, eq=False)
class Classes:
    """The classes of the code units (65536), and of each class its fold and its usual tokens alone."""

    of_unit: NDArray[np.intp]
    folds: NDArray[np.intp]
    tokens: NDArray[np.float64]


def classify(character_tokens: Mapping[str, int]) -> Classes:
    """Number the classes of `RANGES`, given what each character but the surrogates costs as a text of its own."""
    keys: list[tuple[str, int]] = [("", 0)] * 0x10000
    for entry in RANGES:
        for unit in range(entry.first, entry.last + 1):
            split = 0
            if entry.split is Split.EACH:
                split = unit
            elif entry.split is Split.COUNT:
                split = min(3, character_tokens[chr(unit)])
            keys[unit] = (entry.name, split)
    tokens = np.full(0x10000, SURROGATE_TOKENS)
    for unit in range(0x10000):
        if unit not in SURROGATES:
            tokens[unit] = character_tokens[chr(unit)]
            if tokens[unit] >= WIDE:
                keys[unit] = ("wide", int(min(MOST, tokens[unit])))
    number = {key: index for index, key in enumerate(dict.fromkeys(keys))}
    of_unit = np.array([number[key] for key in keys], np.intp)
    folds = np.full(len(number), FOLDS - 1, np.intp)
    for unit in range(0x80):
        folds[of_unit[unit]] = _fold(chr(unit))
    usual = np.array([np.percentile(tokens[of_unit == index], 90) for index in range(len(number))])
    return Classes(of_unit, folds, usual)


def _fold(character: str) -> int:
    if character.islower():
        return ord(character) - ord("a")
    if character.isupper():
        return 26
    if character == " ":
        return 27
    if character.isdigit():
        return 28
    if character in "\n\t\r":
        return 29
    return 30 if character.isprintable() else FOLDS - 1


def neighbour_matrix(classes: Classes, texts: Sequence[str]) -> Any:
    """How often each pair and, behind them, each triple stands in each text: a sparse matrix, one row a text."""
    size = classes.folds.size**2
    empty = np.zeros(0, np.uint16)
    costs = TokenCosts(classes.of_unit, classes.folds, empty, empty)
    blocks = []
    for start in range(0, len(texts), 20_000):
        columns, ends = [], [0]
        for text in texts[start : start + 20_000]:
            pairs, triples = costs.neighbours(text)
            columns += [pairs.astype(np.int32), (triples + size).astype(np.int32)]
            ends.append(ends[-1] + 2 * pairs.size)
        ones = np.ones(ends[-1], np.float32)
        block = csr_matrix((ones, np.concatenate(columns), ends), shape=(len(ends) - 1, size + FOLDS**3))
        block.sum_duplicates()
        blocks.append(block)
    return vstack(blocks).tocsr()


def fit(
    classes: Classes, texts: Sequence[str], tokens: NDArray[np.float64], weights: NDArray[np.float64], steps: int
) -> TokenCosts:
    """The costs that keep the sums above `tokens` and close to them; `weights` and `tokens` are one a text."""
    count = classes.folds.size
    matrix = neighbour_matrix(classes, texts)
    transposed = matrix.T.tocsr()
    not_ascii = classes.folds == FOLDS - 1

    alone = np.tile(np.where(not_ascii, 1.0, 0.7) * classes.tokens, (count, 1))
    triples = np.full((FOLDS, FOLDS, FOLDS), 0.3)
    triples[:, :, FOLDS - 1] = 0.0
    prior = np.concatenate((alone.ravel(), triples.ravel()))
    scale = 1.0 / (tokens + 3.0)

    def loss(costs: NDArray[np.float64]) -> tuple[float, NDArray[np.float64]]:
        error = (matrix @ costs + RESERVE - tokens) * scale
        smooth = np.sqrt(error**2 + 0.02**2)
        shift = costs - prior
        value = (weights * (smooth / 2 + (0.5 - QUANTILE) * error)).sum() + PRIOR_WEIGHT * (shift**2).sum()
        slope = transposed @ (weights * scale * (error / smooth / 2 + 0.5 - QUANTILE)) + 2 * PRIOR_WEIGHT * shift
        return float(value), slope

    found = minimize(
        loss,
        prior,
        jac=True,
        method="L-BFGS-B",
        bounds=[(0.0, MOST)] * prior.size,
        options={"maxiter": steps, "maxfun": 2 * steps, "maxcor": 20},
    )
    units = np.rint(found.x * UNITS_PER_TOKEN).astype(np.uint16)
    return TokenCosts(classes.of_unit, classes.folds, units[: count * count], units[count * count :])


def main(source: Path, target: Path, steps: int = STEPS) -> None:
    """Fit the lines of `source` and write the costs to `target`."""
    texts, counts, importance = [], [], []
    with source.open(encoding="utf-8") as lines:
        for line in lines:
            item = json.loads(line)
            texts.append(item["text"])
            counts.append(item["tokens"])
            importance.append(item["weight"])
    tokens, weights = np.array(counts, np.float64), np.array(importance, np.float64)
    classes = classify({text: count for text, count in zip(texts, counts, strict=True) if len(text) == 1})
    fit(classes, texts, tokens, weights / weights.mean(), steps).save(target)


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
