"""The stages of a Rank, and a watch that tells how long each took. The names are here and nowhere else."""

from __future__ import annotations

import time
from collections.abc import Callable

READ, EMBED, MATCH, SCORE, PACK, LOG, WRITE = STAGES = ("read", "embed", "match", "score", "pack", "log", "write")
"""Checking the request; the task's vector; what each memory shares with the task; features and scores; budgets,
near-duplicates and draws; the packet's commit; the answer's message."""


class Stopwatch:
    """Seconds by stage of one Rank. From one lap to the next is the stage that is named at its end."""

    __slots__ = ("_clock", "_since", "seconds")

    def __init__(self, clock: Callable[[], float] = time.perf_counter) -> None:
        self._clock = clock
        self._since = clock()
        self.seconds: dict[str, float] = {}

    def lap(self, stage: str) -> None:
        """Ends a stage. One that ends twice has the sum."""
        now = self._clock()
        self.seconds[stage] = self.seconds.get(stage, 0.0) + now - self._since
        self._since = now

    def __str__(self) -> str:
        """As in HTTP's Server-Timing: `read;dur=0.021, embed;dur=0.080`, in milliseconds."""
        return ", ".join(f"{stage};dur={1e3 * seconds:.3f}" for stage, seconds in self.seconds.items())
