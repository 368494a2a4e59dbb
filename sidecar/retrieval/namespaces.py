"""The snapshots of all namespaces in use: loaded once when first asked for, moved on by every committed change."""

from __future__ import annotations

import itertools
import logging
import threading
from collections.abc import Callable
from dataclasses import dataclass, field

from sidecar.domain import Change, NamespaceState
from sidecar.retrieval.kept_indexes import KeptIndexes
from sidecar.retrieval.snapshot import Snapshot, empty_snapshot, snapshot_from
from sidecar.retrieval.sources import Source

FEW = 4
"""So many changes at most are caught up with while the writer waits."""

USES_A_TEXT = 10
"""So many use counts are read as fast as one memory whose text changed."""

LOADS = 3
"""Loads before giving up on a store whose changes do not follow on its state."""

_log = logging.getLogger(__name__)


@dataclass(slots=True, eq=False)
class _Entry:
    """One namespace. `lock` guards all of it; `snapshot` alone may be read without."""

    lock: threading.Lock = field(default_factory=threading.Lock)
    loading: threading.Lock = field(default_factory=threading.Lock)
    snapshot: Snapshot | None = None
    waiting: list[Change] = field(default_factory=list)
    """Changes that came while the namespace was loaded."""
    missed: list[Change] | None = None
    """Changes that came while its index file is written; None while none is."""
    unkept: int = 0
    """Memories that a start would have to read, for what was written since its index file was made."""
    used: int = 0
    """Grows with each use of any namespace."""


class Namespaces:
    """Namespace -> snapshot.

    `load` reads a namespace's committed state; for an unknown one it returns a state without memories. The store must
    call `apply` after each commit and in the order of score_version.
    """

    def __init__(
        self,
        load: Callable[[str], NamespaceState],
        source: Source | None = None,
        indexes: KeptIndexes | None = None,
        most_bytes: int = 0,
        settle: Callable[[], None] = lambda: None,
    ) -> None:
        """Memories are kept in `source`, None: all in memory. With `indexes`, a namespace is loaded from its index
        file where there is a good one. Of namespaces that together take more than `most_bytes`, about, those that were
        not used for longest are let go of, to be loaded when they are asked for again; 0: none ever. `settle` is
        called before a snapshot is given out: it may tell of changes that were put off until somebody asks.
        """
        self._load = load
        self._source = source
        self._indexes = indexes
        self._lock = threading.Lock()
        self._most_bytes = most_bytes
        self._settle = settle
        self._uses = itertools.count(1)
        self.let_go = 0
        """How often one was let go of to make room."""
        self._entries: dict[str, _Entry] = {}

    def get(self, namespace: str) -> Snapshot:
        """The snapshot as of the last committed change. Loads it the first time; other callers wait for that load.

        Raises what `load` raises; the next call tries again.
        """
        self._settle()
        entry = self._entries.get(namespace)
        if entry is not None and (snapshot := entry.snapshot) is not None:
            entry.used = next(self._uses)
            return snapshot
        with self._lock:
            entry = self._entries.setdefault(namespace, _Entry())
        with entry.loading:
            if entry.snapshot is None:
                self._fill(namespace, entry)
            assert entry.snapshot is not None
            entry.used = next(self._uses)
        self.make_room()
        return entry.snapshot

    def make_room(self) -> bool:
        """Lets go of what was not used for longest, until the rest keeps within the limit; one always stays. False if
        all stayed."""
        if not self._most_bytes:
            return False
        with self._lock:
            loaded = [(entry.used, name, entry.snapshot) for name, entry in self._entries.items()]
        sizes = [(used, name, found.nbytes) for used, name, found in loaded if found is not None]
        total, before = sum(size for *_, size in sizes), self.let_go
        for _, name, size in sorted(sizes)[:-1]:
            if total <= self._most_bytes:
                break
            self.evict(name)
            total -= size
            self.let_go += 1
        return self.let_go > before

    def apply(self, change: Change) -> None:
        """Moves a loaded namespace on. One that is not loaded will see the change when it is; one that begins with this
        change is loaded with it, so that it grows as it is written to.

        After a gap in the versions or an error the namespace is dropped, to be loaded afresh: a snapshot is a cache.
        """
        with self._lock:
            entry = self._entries.get(change.namespace)
            if entry is None and change.score_version == 1 and not change.purged:
                entry = self._entries[change.namespace] = _Entry(snapshot=empty_snapshot(source=self._source))
        if entry is None:
            return
        with entry.lock:
            if entry.snapshot is None:
                entry.waiting.append(change)
                return
            try:
                moved = _moved_on(entry.snapshot, [change])
            except BaseException:
                self.evict(change.namespace)
                raise
            if moved is None:
                _log.warning(
                    "namespace dropped, to be loaded afresh: change %d came after %d",
                    change.score_version,
                    entry.snapshot.score_version,
                )
                self.evict(change.namespace)
            else:
                entry.snapshot = moved
                entry.unkept += _to_read(change)
                if entry.missed is not None:
                    entry.missed.append(change)

    def unkept(self) -> dict[str, tuple[int, int]]:
        """Namespace -> memories that a start would have to read, for what was written since its index file was made,
        and living memories; of the loaded ones."""
        with self._lock:
            entries = list(self._entries.items())
        return {
            name: (entry.unkept, snapshot.live_count)
            for name, entry in entries
            if (snapshot := entry.snapshot) is not None
        }

    def keep(self, namespace: str) -> bool:
        """Writes the index file of a loaded namespace, and goes on with it: what was in memory is mapped then, and dead
        rows are gone. Readers and the writer go on meanwhile. False if it is not loaded, or was purged.

        Raises OSError.
        """
        entry = self._entries.get(namespace)
        if self._indexes is None or entry is None:
            return False
        with entry.loading:
            self._indexes.begin(namespace)
            with entry.lock:
                snapshot, unkept = entry.snapshot, entry.unkept
                entry.missed = []
            try:
                if snapshot is None or not snapshot.live_count:  # not even its name is to be noted after a purge
                    self._indexes.forget(namespace)
                    return False
                contents = self._indexes.save(namespace, snapshot.contents)
                if contents is None:
                    return False
                fresh: Snapshot | None = Snapshot(contents)
                while fresh is not None:
                    with entry.lock:
                        missed = entry.missed
                        if len(missed) <= FEW:
                            fresh = _moved_on(fresh, missed)
                            if fresh is not None:
                                entry.snapshot = fresh
                                entry.unkept -= unkept
                            return fresh is not None
                        entry.missed = []
                    fresh = _moved_on(fresh, missed)
                return False
            finally:
                with entry.lock:
                    entry.missed = None

    def outdated(self, namespace: str) -> None:
        """To be said when something was made that only the next index file will hold and that takes long to make: it
        is due then."""
        entry = self._entries.get(namespace)
        if entry is not None:
            with entry.lock:
                if entry.snapshot is not None:
                    entry.unkept += len(entry.snapshot)

    def settled(self, namespace: str) -> Snapshot | None:
        """The snapshot of a loaded namespace once no change is being made to it; None if it is not loaded."""
        entry = self._entries.get(namespace)
        if entry is None:
            return None
        with entry.lock:
            return entry.snapshot

    def loaded(self) -> list[str]:
        """Names of the namespaces in memory, in order."""
        with self._lock:
            return sorted(name for name, entry in self._entries.items() if entry.snapshot is not None)

    def evict(self, namespace: str) -> None:
        """Forgets a namespace's snapshot; the next call loads it. Snapshots in use stay valid."""
        with self._lock:
            self._entries.pop(namespace, None)

    def _fill(self, namespace: str, entry: _Entry) -> None:
        try:
            for _ in range(LOADS):
                snapshot, unkept = self._read(namespace)
                with entry.lock:
                    entry.unkept = unkept
                    entry.snapshot = _moved_on(snapshot, entry.waiting)
                    if entry.snapshot is not None:
                        entry.waiting.clear()
                        return
            raise RuntimeError(f"the store's state of a namespace and its changes do not join after {LOADS} loads")
        except BaseException:
            self.evict(namespace)
            raise

    def _read(self, namespace: str) -> tuple[Snapshot, int]:
        """The snapshot as of some moment after now, and how many of its memories are in no index file."""
        found = self._indexes.load(namespace) if self._indexes is not None else None
        if found is not None:
            return found
        snapshot = snapshot_from(self._load(namespace), self._source)
        return snapshot, snapshot.live_count


def _to_read(change: Change) -> int:
    """How many memories a start reads if the index file lacks this change. A use or a rating of those that it reads
    anyway counts little."""
    parts = len(change.importance_contents) + len(change.importance_uses)
    return len(change.upserted) + len(change.deleted_keys) + parts + len(change.uses) // USES_A_TEXT


def _moved_on(snapshot: Snapshot, changes: list[Change]) -> Snapshot | None:
    """The snapshot after those changes that it does not hold yet; None if one is missing between."""
    for change in changes:
        if change.score_version > snapshot.score_version + 1:
            return None
        if change.score_version > snapshot.score_version:
            snapshot = snapshot.apply(change)
    return snapshot
