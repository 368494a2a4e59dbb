"""The store's word for files that hold indexes: see `sidecar.store.indexes`."""

from __future__ import annotations

from pathlib import Path
from sqlite3 import Connection

from sidecar.domain import IndexedState
from sidecar.store import indexes
from sidecar.store.count_calls import CountCalls
from sidecar.store.jobs import Done


class IndexCalls(CountCalls):
    """What the store does for index files. They lie in its folder, and are of no use without it."""

    folder: Path

    def indexed(self, namespace: str) -> IndexedState | None:
        """How a namespace stands to its index file, and all that was written since; None without a file."""
        with self._counted_snapshot() as db:
            return indexes.state(db, namespace)

    def begin_index(self, namespace: str) -> None:
        """To be called before the state is taken that an index file will hold: what is written from now on is noted."""

        def work(db: Connection) -> Done[None]:
            indexes.begin(db, namespace)
            return Done(None)

        self._writer.submit(work, durable=False)

    def keep_index(self, namespace: str, file: str, score_version: int) -> bool:
        """Names the file, which must be on the disk, and removes the one before. False if the namespace was purged
        meanwhile; then the file is removed."""
        kept = self._writer.submit(lambda db: Done(indexes.keep(db, namespace, file, score_version)), durable=False)
        self.sweep_indexes()
        return kept

    def forget_index(self, namespace: str) -> None:
        """Drops the index file of a namespace."""

        def work(db: Connection) -> Done[None]:
            indexes.forget(db, namespace)
            return Done(None)

        self._writer.submit(work, durable=False, frees=True)
        self.sweep_indexes()

    def sweep_indexes(self) -> None:
        """Removes files that are not named: left over by a kill, a purge, or another state of the database."""
        with self._readers.snapshot() as db:
            named = indexes.files(db)
        indexes.sweep(self.folder, named)
