"""Rows of the table, and how times are taken: in turns, so that a busy moment of the machine meets all alike."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True, slots=True)
class Row:
    """One line of the table. `goal` is an upper bound ("<=") or a lower one (">="); None where there is none.
    `value` is None for what could not be run; `unit` says why then."""

    name: str
    value: float | None
    unit: str
    goal: str | None
    ok: bool | None


def bounded(name: str, value: float, unit: str, most: float | None = None, least: float | None = None) -> Row:
    """A row that is ok below `most`, or above `least`."""
    if most is not None:
        return Row(name, value, unit, f"<= {most:g}", value <= most)
    if least is not None:
        return Row(name, value, unit, f">= {least:g}", value >= least)
    return Row(name, value, unit, None, None)


def interleaved(calls: dict[str, Callable[[], object]], blocks: int, size: int) -> dict[str, np.ndarray]:
    """Seconds of each call, shape (blocks * size,), taken in turns of `size` calls after two turns of warm-up."""
    seconds: dict[str, list[float]] = {name: [] for name in calls}
    for block in range(blocks + 2):
        for name, call in calls.items():
            for _ in range(size):
                start = time.perf_counter()
                call()
                if block >= 2:
                    seconds[name].append(time.perf_counter() - start)
    return {name: np.array(found) for name, found in seconds.items()}


def show(words: str) -> None:
    """Progress on a terminal; nothing in a log."""
    if sys.stderr.isatty():
        print(f"\r\033[K{words}", end="", file=sys.stderr, flush=True)
