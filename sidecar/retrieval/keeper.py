"""The thread that writes index files now and then, so that a start after a kill has little to read."""

from __future__ import annotations

import logging
import threading
import time

from sidecar.retrieval.heap import give_back
from sidecar.retrieval.namespaces import Namespaces

FEWEST_MEMORIES = 2_000
"""A smaller namespace is read from the store faster than anyone notices."""
SHARE_UNKEPT = 0.1
SHARE_AT_END = 0.005
FEWEST_UNKEPT = 500
"""A file is written anew when this share of its memories, and so many, were written since."""
PERIOD = 5.0
"""Seconds between two looks."""
PAUSE = 30.0
"""Seconds between two files of one namespace, unless it grew by half."""

_log = logging.getLogger(__name__)


class Keeper:
    """Keeps the index files of all loaded namespaces nearly up to date, and namespaces that have grown within their
    limit, until it is closed."""

    def __init__(self, namespaces: Namespaces, period: float = PERIOD) -> None:
        self._namespaces = namespaces
        self._period = period
        self._written: dict[str, float] = {}
        self._closing = threading.Event()
        self._thread = threading.Thread(target=self._run, name="index-keeper", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Brings the files up to date once more, and ends."""
        self._closing.set()
        self._thread.join()
        self._written.clear()
        self.look(SHARE_AT_END)

    def look(self, share: float = SHARE_UNKEPT) -> None:
        """Writes the files of the namespaces that need it. Never raises: files are no more than a help."""
        for namespace, (unkept, living) in self._namespaces.unkept().items():
            if living < FEWEST_MEMORIES or unkept < max(FEWEST_UNKEPT, share * living):
                continue
            since = time.monotonic() - self._written.get(namespace, float("-inf"))
            if since < PAUSE and unkept < living / 2:
                continue
            self._written[namespace] = time.monotonic()
            try:
                if self._namespaces.keep(namespace):
                    give_back()
            except Exception as error:  # noqa: BLE001 - a full disk, a store that closes: the next start reads more
                _log.warning("an index file could not be written, the next start takes longer: %s", error)

    def _run(self) -> None:
        standing: dict[str, tuple[int, int]] | None = None
        given = standing
        while not self._closing.wait(self._period):
            self.look()
            made_room = self._namespaces.make_room()
            before, standing = standing, self._namespaces.unkept()
            # After writes, too: what they took for a moment stays with the C library, 40 MB and more of it.
            if made_room or (standing == before and standing != given):
                given = standing
                give_back()
