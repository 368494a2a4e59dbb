"""The thread that scores what was written faster than it could be scored: long streams, and stores from before.

What is to be scored is what has no content part in the store, so that a kill loses nothing. Logs no text.
"""

from __future__ import annotations

import logging
import threading
import time

from sidecar.domain import Change
from sidecar.importance.scorer import ImportanceScorer
from sidecar.store.store import Store

AT_ONCE = 64
"""Memories that are scored between two looks at who else is at work."""
REST = 3.0
"""How much longer than a slice took it rests after it, while others write: streams go first."""

_log = logging.getLogger(__name__)


class LaterScoring:
    """Scores memories without a content part, in the order in which they came, until it is closed."""

    def __init__(self, scorer: ImportanceScorer, store: Store) -> None:
        self._scorer = scorer
        self._store = store
        self._lock = threading.Lock()
        self._waiting: dict[str, None] = dict.fromkeys(store.namespaces_unscored())
        self._wake = threading.Event()
        self._wake.set()
        self._closing = threading.Event()
        self._others_write = False
        store.subscribe(self._hear)
        self._thread = threading.Thread(target=self._run, name="importance", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Ends after the slice at hand; the next start goes on."""
        self._closing.set()
        self._wake.set()
        self._thread.join()

    def _hear(self, change: Change) -> None:
        self._others_write = self._others_write or bool(change.upserted)
        if any(memory.importance_content is None for memory in change.upserted) or (
            None in change.importance_contents.values()
        ):
            with self._lock:
                self._waiting[change.namespace] = None
            self._wake.set()

    def _run(self) -> None:
        while self._wake.wait() and not self._closing.is_set():
            with self._lock:
                namespace = next(iter(self._waiting), None)
                if namespace is None:
                    self._wake.clear()
                    continue
                del self._waiting[namespace]
            try:
                self._score(namespace)
            except Exception as error:  # noqa: BLE001 - a full disk, a store that closes: scored after the next write
                _log.warning("importances were not scored: %s", type(error).__name__)

    def _score(self, namespace: str) -> None:
        after = 0
        while not self._closing.is_set():
            began = time.monotonic()
            self._others_write = False
            memories = self._store.unscored(namespace, after, AT_ONCE)
            if not memories:
                return
            self._store.put_contents(namespace, self._scorer.score_stored(namespace, memories))
            after = memories[-1].key
            if self._others_write:
                self._closing.wait(REST * (time.monotonic() - began))
