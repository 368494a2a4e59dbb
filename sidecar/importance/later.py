"""The thread that scores what was written faster than it could be scored: long streams, and stores from before; and
what is to be scored anew, for a memory that it was compared with came, changed, went, or is not valid any more.

What is to be scored is what has no content part in the store, so that a kill loses nothing. Logs no text.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable

from sidecar.domain import Change, Micros
from sidecar.importance.scorer import ImportanceScorer
from sidecar.store.store import Store

AT_ONCE = 32
"""Memories that are scored between two looks at who else is at work."""
WRITTEN_AT_ONCE = 8
"""Of these, memories whose scores are written in one piece: others who write wait for no more."""
REST = 10.0
"""How much longer than it computed on a slice it rests after it, while others write: streams go first."""
QUIET = 1.0
"""Seconds after which a write is over: a chunk of a stream may take longer than a slice."""
BEHIND = 0.002
"""Seconds between two looks at whether a snapshot has got what the store has already."""
LONGEST_REST = 3_600.0
"""Seconds after which it looks at the clock again, which somebody may have set."""

_log = logging.getLogger(__name__)


class LaterScoring:
    """Scores memories without a content part, in the order in which they came, until it is closed."""

    def __init__(
        self,
        scorer: ImportanceScorer,
        store: Store,
        clock: Callable[[], Micros],
        give_way: Callable[[], None] = lambda: None,
    ) -> None:
        """`give_way` is called before each piece of work, and returns when it may begin."""
        self._give_way = give_way
        self._scorer = scorer
        self._clock = clock
        self._store = store
        self._lock = threading.Lock()
        self._waiting: dict[str, None] = dict.fromkeys(store.namespaces_unscored())
        self._wake = threading.Event()
        self._wake.set()
        self._closing = threading.Event()
        self._last_write = float("-inf")
        self._next_turn: Micros | None = 0
        store.subscribe(self._hear)
        self._thread = threading.Thread(target=self._run, name="importance", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Ends after the slice at hand; the next start goes on."""
        self._closing.set()
        self._wake.set()
        self._thread.join()

    def _hear(self, change: Change) -> None:
        if change.upserted:
            self._last_write = time.monotonic()
        with self._lock:
            if any(memory.importance_content is None for memory in change.upserted) or (
                None in change.importance_contents.values()
            ):
                self._waiting[change.namespace] = None
                self._wake.set()
            for memory in change.upserted:
                if memory.valid_from_time is not None or memory.valid_until_time is not None:
                    self._next_turn = 0  # it may be the next to turn
                    self._wake.set()

    def _run(self) -> None:
        while not self._closing.is_set():
            self._wake.wait(self._rest())
            try:
                self._see_to_turns()
                while (namespace := self._next()) is not None:
                    self._score(namespace)
            except Exception as error:  # noqa: BLE001 - a full disk, a store that closes: scored after the next write
                _log.warning("importances were not scored: %s", type(error).__name__)

    def _next(self) -> str | None:
        with self._lock:
            namespace = None if self._closing.is_set() else next(iter(self._waiting), None)
            if namespace is None:
                if not self._closing.is_set():
                    self._wake.clear()
            else:
                del self._waiting[namespace]
        return namespace

    def _rest(self) -> float | None:
        """Seconds to the next memory that begins or ceases to be valid; None if there is none."""
        with self._lock:
            turn = self._next_turn
        return None if turn is None else min(max((turn - self._clock()) / 1e6, 0.0), LONGEST_REST)

    def _see_to_turns(self) -> None:
        now = self._clock()
        with self._lock:
            if self._next_turn is None or self._next_turn > now:
                return
            self._next_turn = None  # unless one is written meanwhile
        following = self._store.put_up_turned(now)
        with self._lock:
            if self._next_turn is None:
                self._next_turn = following

    def _score(self, namespace: str) -> None:
        after = 0
        while not self._closing.is_set():
            began = time.thread_time()
            memories = self._store.unscored(namespace, after, AT_ONCE)
            # Read after them: the snapshot must have all that they were written or put up for, or of two that came at
            # once neither would see the other.
            version = self._store.namespace(namespace).score_version
            if not memories or not self._wait_for(namespace, version):
                return
            scored = self._scorer.score_stored(namespace, memories, self._pause)
            for first in range(0, len(scored), WRITTEN_AT_ONCE):
                self._pause()
                self._store.put_contents(namespace, scored[first : first + WRITTEN_AT_ONCE])
            after = memories[-1].key
            if time.monotonic() - self._last_write < QUIET:
                self._closing.wait(REST * (time.thread_time() - began))

    def _pause(self) -> None:
        if not self._closing.is_set():
            self._give_way()

    def _wait_for(self, namespace: str, score_version: int) -> bool:
        """Returns when the snapshot has what is committed, which it is just being told; False when this closes."""
        while not self._scorer.has_reached(namespace, score_version):
            if self._closing.wait(BEHIND):
                return False
        return True
