"""Which of two memories should be kept? 150 pairs in eight languages, written and then labelled twice by language
models that saw neither the scorer nor each other's labels (tests/data/importance_pairs.jsonl).

The first run, on an untuned scorer: the two labellings agree on 98 % of the pairs, the score with them on 75 %, length
on 55 to 57 %, the best single part of it on 66 %. That is .23 below the ceiling, where .10 is wanted: mostly vague
shouts that look like rules, and facts in few words.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.rpc.test_importance import score, subject
from tests.serving import Running

PAIRS = [
    json.loads(line)
    for line in (Path(__file__).parent.parent / "data" / "importance_pairs.jsonl").read_text("utf-8").splitlines()
]
LEAST = 0.70
"""Below this something broke; it is no goal."""


def agreement(values: Sequence[float], label: str) -> float:
    """The share of pairs whose labelled memory has the higher value; a tie is half a pair."""
    sides = zip(values[::2], values[1::2], PAIRS, strict=True)
    wins = [0.5 if a == b else float((a > b) == (pair[label] == "a")) for a, b, pair in sides]
    return sum(wins) / len(wins)


@pytest.mark.parametrize("label", ["label_1", "label_2"])
def test_the_score_agrees_more_than_length_and_any_single_part(
    shared_server: Running, namespace: str, label: str
) -> None:
    """With either labelling; each memory is scored alone, so that only its own words and kind tell."""
    memories = [pair[side] for pair in PAIRS for side in ("a", "b")]
    results = score(shared_server, namespace, *(subject(each["content"], each["kind"]) for each in memories))
    found = agreement([each.importance.score for each in results], label)
    assert found >= LEAST
    assert found > agreement([len(each["content"]) for each in memories], label)
    parts = {line.factor for each in results for line in each.lines if "." in line.factor or line.factor == "baseline"}
    for part in parts:
        values = [next((line.value for line in each.lines if line.factor == part), 0.0) for each in results]
        assert found > agreement(values, label), part


def test_the_two_labellings_are_a_ceiling() -> None:
    """They agree on nearly all pairs."""
    assert sum(pair["label_1"] == pair["label_2"] for pair in PAIRS) / len(PAIRS) > 0.95
