"""How well uses are found in outputs that were labelled before the matcher was written, and apart from it."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from sidecar.feedback.clues import Clue
from sidecar.feedback.matching import Findings, Text, find_uses

CASES: list[dict[str, Any]] = [
    json.loads(line) for line in Path(__file__).with_name("output_cases.jsonl").read_text("utf-8").splitlines()
]


@dataclass(frozen=True, slots=True)
class Score:
    """Precision and recall over pairs of a case and a memory."""

    precision: float
    recall: float


def find(case: dict[str, Any]) -> Findings:
    contents = [*case["memories"].values(), *case.get("others", ())]
    namespace = [Text(content) for content in contents]

    def bearing(clue: Clue) -> int:
        return sum(text.bears(clue) for text in namespace)

    calls = [(name, arguments) for name, arguments in case.get("tool_calls", ())]
    return find_uses(case["task"], case["memories"], case["output"], calls, bearing=bearing, live=len(contents))


def score(part: str) -> Score:
    right = found = wanted = 0
    for case in CASES:
        if case["part"] == part:
            used, expected = set(find(case).confidence), set(case["used"])
            right, found, wanted = right + len(used & expected), found + len(used), wanted + len(expected)
    return Score(right / found, right / wanted)


@pytest.mark.parametrize("part", ["open", "sealed"])
def test_uses_are_found_in_labelled_outputs(part: str, record_property: Callable[[str, object], None]) -> None:
    """Of what is said to be used at least .95 was, and of what was used at least .70 is found; on the third that was
    kept for the end as on the others. Uses without any handle are among the cases, and are the misses."""
    measured = score(part)
    record_property("precision", measured.precision)
    record_property("recall", measured.recall)
    print(f"{part}: precision {measured.precision:.3f}, recall {measured.recall:.3f}")
    assert measured.precision >= 0.95
    assert measured.recall >= 0.70


@pytest.mark.parametrize("case", [case for case in CASES if case.get("echoed")], ids=lambda case: str(case["id"]))
def test_what_is_read_aloud_is_an_echo(case: dict[str, Any]) -> None:
    """A memory that is repeated word for word is an echo, and never a use as well."""
    found = find(case)
    assert sorted(found.echoed) == sorted(case["echoed"])
    assert not set(found.echoed) & set(found.confidence)


def test_the_cases_are_many_and_hard() -> None:
    """At least 150 cases, a third of them sealed, a third without any use, in many languages, with tool calls."""
    assert len(CASES) >= 150
    assert len({case["id"] for case in CASES}) == len(CASES)
    assert Counter(case["part"] for case in CASES)["sealed"] == len(CASES) // 3
    assert sum(not case["used"] for case in CASES) >= len(CASES) // 4
    assert len({case["language"] for case in CASES}) >= 20
    assert sum("tool_calls" in case for case in CASES) >= 10
