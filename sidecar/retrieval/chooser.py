"""The thread that keeps up to date what chooses candidates in large namespaces. Ranks and writes go on meanwhile."""

from __future__ import annotations

import logging
import threading
import time

from sidecar.retrieval import contents
from sidecar.retrieval.cells import make_cells
from sidecar.retrieval.heap import give_back
from sidecar.retrieval.namespaces import Namespaces
from sidecar.retrieval.near import Near, Standings
from sidecar.retrieval.snapshot import Snapshot

PERIOD = 0.5
"""Seconds between two looks."""
MOST_FRESH = 500
"""Rows that came or were written since, all of which are candidates until they are taken in."""
LONGEST = 600.0
"""Seconds until what stands high without a task is worked out again, as memories grow older."""

_log = logging.getLogger(__name__)


class Chooser:
    """Looks after the loaded namespaces of more than `exact_up_to` memories, until it is closed."""

    def __init__(self, namespaces: Namespaces, exact_up_to: int, period: float = PERIOD) -> None:
        self._namespaces = namespaces
        self._exact_up_to = exact_up_to
        self._period = period
        self._closing = threading.Event()
        self._thread = threading.Thread(target=self._run, name="candidate-chooser", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Ends, within a second or two."""
        self._closing.set()
        self._thread.join()

    def look(self) -> None:
        """Makes what is missing or has fallen behind. Never raises: until it is made, all memories are scored."""
        for namespace in self._namespaces.loaded():
            try:
                snapshot = self._namespaces.settled(namespace)
                if snapshot is not None and snapshot.live_count > self._exact_up_to:
                    self._keep_cells(namespace, snapshot)
                    self._keep_standings(namespace, snapshot.contents.near)
            except Exception as error:  # noqa: BLE001 - a namespace that goes, memory that is short
                _log.warning("candidates are not chosen for now, all memories are scored: %s", error)

    def _go_on(self) -> bool:
        return not self._closing.is_set()

    def _keep_cells(self, namespace: str, snapshot: Snapshot) -> None:
        near, matrix = snapshot.contents.near, snapshot.contents.table.column(contents.VECTOR)
        cells = near.cells
        if cells is None or not cells.suit(matrix):
            near.cells = make_cells(matrix, self._go_on) or cells
            give_back()
            if near.cells is not cells:
                self._namespaces.outdated(namespace)
        elif len(matrix) - len(cells) >= MOST_FRESH:
            near.cells = cells.extended(matrix, self._go_on) or cells

    def _keep_standings(self, namespace: str, near: Near) -> None:
        for key, make in list(near.wanted.items()):
            known, now = near.standings.get(key), time.monotonic()
            if known is not None and now - known.made_at < LONGEST and len(known.touched) < MOST_FRESH:
                snapshot = self._namespaces.settled(namespace)
                if snapshot is None or len(snapshot) - len(known.amounts) < MOST_FRESH:
                    continue
            touched: list[int] = []
            near.listening = [*near.listening, touched]
            snapshot = self._namespaces.settled(namespace)  # after it was said to listen: no write falls between
            if snapshot is None or snapshot.contents.near is not near:
                return
            near.standings[key] = Standings.of(make(snapshot), touched, snapshot.score_version, now)
            near.listening = [standings.touched for standings in near.standings.values()]

    def _run(self) -> None:
        while not self._closing.wait(self._period):
            self.look()
