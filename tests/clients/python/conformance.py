"""Runs the scenario over any client's calls."""

from __future__ import annotations

import itertools
import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

Call = Callable[[Any, float, bool], Any]
"""The request as JSON, the deadline in seconds, whether to wait for a server; returns the answer as JSON."""


class RefusedError(Exception):
    """A refusal as JSON, whichever client it came from."""

    def __init__(self, error: Any, violations: list[tuple[str, str]]) -> None:
        super().__init__(str(error))
        self.shown = {
            "code": error.code.name,
            "reason": error.reason,
            "message": error.message,
            "metadata": dict(error.metadata),
            "violations": [{"field": field, "description": words} for field, words in violations],
            "text": str(error),
        }


def main(calls: dict[str, Call], scenario: str) -> int:
    """Runs every step, prints what became of each, and returns the exit code."""
    known: dict[str, Any] = {"namespace": "conformance"}
    failed = 0
    for step in json.loads(Path(scenario).read_text(encoding="utf-8"))["steps"]:
        problems = run(step, calls, known)
        failed += bool(problems)
        print(f"FAILED {step['name']}: {'; '.join(problems)}" if problems else f"ok {step['name']}", flush=True)
    return min(failed, 1)


def run(step: Any, calls: dict[str, Call], known: dict[str, Any]) -> list[str]:
    """What is wrong with a step; nothing, if all is as expected."""
    if control := step.get("control"):
        print(f"control {control}", flush=True)
        return [] if sys.stdin.readline().strip() == "done" else [f"nobody did {control}"]
    deadline = step.get("deadline_ms", 10_000) / 1000
    try:
        found = calls[step["call"]](filled(step["request"], known), deadline, step.get("wait_for_ready", True))
    except RefusedError as error:
        if "refused" not in step:
            return [f"refused: {error}"]
        found, checks = error.shown, step["refused"]
    else:
        if "expect" not in step:
            return [f"not refused: {found}"]
        checks = step["expect"]
    known.update({name: at(found, path) for name, path in step.get("save", {}).items()})
    return [problem for check in checks if (problem := wrong(check, found, known))]


def filled(value: Any, known: dict[str, Any]) -> Any:
    """The value with every ${name} replaced."""
    if isinstance(value, dict):
        return {name: filled(each, known) for name, each in value.items()}
    if isinstance(value, list):
        return [filled(each, known) for each in value]
    if isinstance(value, str) and value.startswith("${"):
        return known[value[2:-1]]
    return value


def at(value: Any, path: str) -> Any:
    """What a path leads to; `*` goes through a list, and what is not there is None."""
    if not path:
        return value
    first, _, rest = path.partition(".")
    if first == "*":
        return [at(each, rest) for each in value or []]
    if isinstance(value, list):
        return at(value[int(first)], rest) if int(first) < len(value) else None
    return at(value.get(first) if isinstance(value, dict) else None, rest)


def wrong(check: Any, found: Any, known: dict[str, Any]) -> str:
    """What is wrong with one value; empty, if nothing is."""
    value = at(found, check["path"])
    if "equals" in check:
        fine = same(value, filled(check["equals"], known))
    elif "length" in check:
        fine = len(value or []) == check["length"]
    elif "contains" in check:
        fine = isinstance(value, str) and check["contains"] in value
    elif "descends" in check:
        fine = bool(value) and all(one >= other for one, other in itertools.pairwise(value))
    elif "sums" in check:
        fine = bool(value) and all(added(each[check["sums"]["of"]]) == each[check["sums"]["to"]] for each in value)
    else:
        raise ValueError(f"unknown check {check}")
    return "" if fine else f"{check} found {json.dumps(value, ensure_ascii=False)}"


def same(one: Any, other: Any) -> bool:
    """Equal as JSON of messages: what is unset is a default, and a long number may be a text."""
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(same, one, other))
    if isinstance(one, str) and isinstance(other, int) and not isinstance(other, bool):
        return one == str(other)
    return bool(one == other) or not (one or other)


def added(numbers: list[float]) -> float:
    """The sum from left to right, as the score is defined: the built-in one rounds less."""
    total = 0.0
    for each in numbers:
        total += each
    return total
