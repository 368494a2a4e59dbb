"""Which of two memories should be kept? 150 pairs in eight languages, written and then labelled twice by language
models that saw neither the scorer nor each other's labels (tests/data/importance_pairs.jsonl).

All 150 were looked at when the content signal was made better, so they say how well it fits what it was made with, and
no more: less than LEAST means that something broke.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from memoryranker.v1 import memory_pb2

from tests.rpc.test_importance import score, subject
from tests.serving import Running

PAIRS: list[dict[str, Any]] = [
    json.loads(line)
    for line in (Path(__file__).parent.parent / "data" / "importance_pairs.jsonl").read_text("utf-8").splitlines()
]
LEAST = 0.95
"""A little below what was found."""


def agreement(values: Sequence[float], labels: Sequence[str]) -> float:
    """The share of pairs whose labelled memory has the higher value; a tie is half a pair."""
    sides = zip(values[::2], values[1::2], labels, strict=True)
    wins = [0.5 if a == b else float((a > b) == (label == "a")) for a, b, label in sides]
    return sum(wins) / len(wins)


def part_value(result: memory_pb2.ImportanceResult, factor: str) -> float:
    return next((line.value for line in result.lines if line.factor == factor), 0.0)


def test_the_score_agrees_more_than_length_and_any_single_part(shared_server: Running, namespace: str) -> None:
    """With either labelling; each memory is scored alone, so that only its own words and kind tell. Recency tells
    nothing: no pair has times."""
    memories = [pair[side] for pair in PAIRS for side in ("a", "b")]
    results = score(shared_server, namespace, *(subject(each["content"], each["kind"]) for each in memories))
    parts = {line.factor for each in results for line in each.lines if "." in line.factor or line.factor == "baseline"}
    for name in ("label_1", "label_2"):
        labels = [pair[name] for pair in PAIRS]
        found = agreement([each.importance.score for each in results], labels)
        assert found >= LEAST
        assert found > agreement([len(each["content"]) for each in memories], labels)
        for part in parts:
            assert found > agreement([part_value(each, part) for each in results], labels), part


def test_there_are_enough_pairs() -> None:
    """120 at least, each labelled twice."""
    assert len(PAIRS) >= 120
    assert all(pair["label_1"] in "ab" and pair["label_2"] in "ab" for pair in PAIRS)


def test_the_two_labellings_are_a_ceiling() -> None:
    """They agree on nearly all pairs."""
    assert sum(pair["label_1"] == pair["label_2"] for pair in PAIRS) / len(PAIRS) > 0.95
