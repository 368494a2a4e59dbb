"""Runs a rescore over the store: reads the feedback, works out what moves, and writes it only when told to."""

from __future__ import annotations

import secrets
import threading
from collections.abc import Callable
from dataclasses import dataclass

from sidecar.domain import Micros
from sidecar.features.use_rate import PRIOR
from sidecar.feedback.rescoring import Move, fit_priors, moves
from sidecar.store.rescores import Run
from sidecar.store.store import Store

MAX_MOVE = 0.1
"""How far a score moves in one run at most, unless the settings say otherwise."""


@dataclass(frozen=True, slots=True)
class Rescored:
    """What a run came to. `run_id` is "" where nothing was written; `moves` are all, largest first."""

    run_id: str
    memory_count: int
    moves: tuple[Move, ...]


def random_run_id() -> str:
    """64 random bits."""
    return secrets.token_hex(8)


class Rescorer:
    """One run at a time."""

    def __init__(
        self,
        store: Store,
        clock: Callable[[], Micros],
        max_move: float = MAX_MOVE,
        new_run_id: Callable[[], str] = random_run_id,
    ) -> None:
        self._store = store
        self._clock = clock
        self._max_move = max_move
        self._new_run_id = new_run_id
        self._running = threading.Lock()

    def run(self, namespace: str, *, apply: bool) -> Rescored:
        """Rescores a namespace, or all for "". A run over all also refits the priors, which belong to all."""
        with self._running:
            feedback = self._store.feedback(namespace)
            priors = {**PRIOR, **self._store.use_priors()} if namespace else fit_priors(feedback.explicit)
            found = moves(feedback.memories, priors, self._max_move)
            if not apply:
                return Rescored("", feedback.memory_count, tuple(found))
            now = self._clock()
            run = Run(
                run_id=self._new_run_id(),
                namespace=namespace,
                memory_count=feedback.memory_count,
                uses={move.standing.key: move.use for move in found},
                parts={move.standing.key: move.part(now) for move in found if move.use is not None},
                priors=None if namespace else priors,
                precision=None if namespace else (feedback.confirmed, feedback.refuted),
            )
            self._store.apply_rescore(run, now)
            return Rescored(run.run_id, feedback.memory_count, tuple(found))

    def restore(self, run_id: str) -> int:
        """Brings back the scores from before a run. Returns how many. Raises RunNotFoundError."""
        with self._running:
            return self._store.restore_scores(run_id, self._clock())
