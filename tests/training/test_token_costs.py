"""Fitting the token counter's costs: above what was counted, close to it, and kept by the file."""

from __future__ import annotations

import json
import random

import pytest

from sidecar.ranking.tokens import TokenCosts
from training.token_costs import main

WORDS = ("ship", "parcel", "harbour", "of", "the", "Quay", "42", "1907", "(old)", "über", "漢字", "--")


def counted(text: str) -> int:
    """A made-up tokenizer: two letters a token, and every other character one."""
    letters = sum(character.isascii() and character.isalpha() for character in text)
    return len(text) - letters + -(-letters // 2)


@pytest.fixture(scope="module")
def costs(tmp_path_factory: pytest.TempPathFactory) -> TokenCosts:
    """Costs fitted to that tokenizer, through the files that the command reads and writes."""
    draw = random.Random(7)
    texts = [chr(code) for code in range(0x10000) if not 0xD800 <= code < 0xE000]
    texts += [" ".join(draw.choices(WORDS, k=draw.randint(1, 20))) for _ in range(1000)]
    folder = tmp_path_factory.mktemp("costs")
    with (folder / "counted.jsonl").open("w", encoding="utf-8") as lines:
        for text in texts:
            weight = 0.05 if len(text) == 1 else 1.0
            lines.write(json.dumps({"text": text, "tokens": counted(text), "weight": weight}) + "\n")
    main(folder / "counted.jsonl", folder / "costs.npz", steps=25)
    return TokenCosts.load(folder / "costs.npz")


def test_texts_that_took_no_part_count_above_and_close(costs: TokenCosts) -> None:
    """On texts of the same kinds the counts are not below the tokenizer's, and a third above at most on average."""
    draw = random.Random(8)
    texts = [" ".join(draw.choices(WORDS, k=draw.randint(5, 30))) for _ in range(300)]
    ratios = [costs.count(text) / counted(text) for text in texts]
    assert min(ratios) >= 1.0
    assert sum(ratios) / len(ratios) <= 1.33


def test_no_cost_is_below_zero_and_every_unit_has_a_class(costs: TokenCosts) -> None:
    """What makes the count grow with the text: costs from zero up, for each of the 65536 code units."""
    assert costs.classes.size == 0x10000
    assert costs.pairs.size == costs.folds.size**2
    assert costs.pairs.min() >= 0
    assert costs.triples.min() >= 0
