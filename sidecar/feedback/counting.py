"""The thread that counts reports a moment after they were taken, so that nobody has to wait for it."""

from __future__ import annotations

import logging
import threading

from sidecar.errors import RankerError
from sidecar.store.store import Store

PAUSE = 0.01
"""Seconds from a report to its counting, unless somebody asks before: those that come meanwhile are counted with it."""

_log = logging.getLogger(__name__)


class LaterCounting:
    """Counts the reports of a store, until it is closed."""

    def __init__(self, store: Store) -> None:
        """From now on reports are counted here."""
        self._store = store
        self._wake = threading.Event()
        self._closing = threading.Event()
        self._thread = threading.Thread(target=self._run, name="counting", daemon=True)
        self._thread.start()
        store.count_later(self._tell)

    def close(self) -> None:
        """Ends once all are counted."""
        self._closing.set()
        self._wake.set()
        self._thread.join()

    def _tell(self) -> None:
        if not self._wake.is_set():
            self._wake.set()

    def _run(self) -> None:
        while not self._closing.is_set():
            self._wake.wait()
            self._closing.wait(PAUSE)
            self._wake.clear()
            try:
                self._store.count_reports()
            except RankerError as error:  # a full disk: who reads tries again, and so does the next report
                _log.warning("reports were not counted: %s", error)
