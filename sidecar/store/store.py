"""The store as the rest of the program sees it: one folder, one writer, many readers, safe for any thread.

Memory writes, reports and ratings are on the disk itself when a call returns; a packet is committed, so that it
survives the process. `now` is the caller's clock in microseconds. With a `once`, a call that had been answered within
24 hours returns Replayed and does nothing.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from sqlite3 import Connection
from types import TracebackType

from sidecar.domain import (
    Change,
    Memory,
    Micros,
)
from sidecar.errors import OverloadedError, StoreUnavailableError
from sidecar.store import (
    indexes,
    meta,
    models,
    requests,
    snapshots,
)
from sidecar.store.backup import Backup
from sidecar.store.backup import write as write_backup
from sidecar.store.checkpoints import Limits
from sidecar.store.damage import LookAhead
from sidecar.store.files import sync_file
from sidecar.store.jobs import Done
from sidecar.store.log_calls import LogCalls
from sidecar.store.memory_calls import MemoryCalls
from sidecar.store.opening import Opened, open_files
from sidecar.store.readers import Readers
from sidecar.store.requests import Once, Replayed
from sidecar.store.score_calls import ScoreCalls
from sidecar.store.snapshots import NamespaceNumbers, StoreNumbers
from sidecar.store.writer import Writer
from sidecar.weights.roles import RoleEvent

SETTLE_SECONDS = 10.0
"""How long `settle` tries while readers are in the way."""
TOLD_SECONDS = 1.0
"""How long numbers wait for subscribers: at a disk that hangs they are told all the same."""


class Store(MemoryCalls, LogCalls, ScoreCalls):
    """Everything that outlives the process."""

    def __init__(self, opened: Opened, sync: Callable[[int], None]) -> None:
        """Use `Store.open`."""
        self.folder = opened.files.folder
        self.salt = opened.salt
        """32 random bytes, the secret of the draws for reserved slots."""
        self.schema_version = opened.schema_version
        self._closed = False
        self._backing_up = threading.Lock()
        self._opened = opened
        self._readers = Readers(opened.files.database)
        self._taken = opened.uncounted
        self._writer = Writer(
            opened.connection, opened.checkpoints, partial(sync, opened.wal), opened.max_pages, indexes.note
        )

    @classmethod
    def open(
        cls,
        folder: Path,
        *,
        quota_bytes: int | None = None,
        limits: Limits | None = None,
        sync: Callable[[int], None] = sync_file,
        ahead: LookAhead | None = None,
    ) -> Store:
        """Opens the store in `folder`, which is created if it is missing, and recovers from a kill.

        `quota_bytes` bounds the database with its log; above it growing writes raise StoreFullError. `sync` puts an
        open file on the disk, or raises OSError; `ahead` looks for damage in this folder since before.

        Raises StoreLockedError, SchemaTooNewError, StoreDamagedError, StoreFullError or StoreUnavailableError.
        """
        return cls(open_files(folder, quota_bytes, limits or Limits(), sync, ahead), sync)

    def close(self) -> None:
        """Finishes what waits, checkpoints and releases the folder. Calls after it raise StoreUnavailableError."""
        if self._closed:
            return
        self._closed = True
        self._readers.close()
        self._writer.close()
        self._opened.close_files()

    def __enter__(self) -> Store:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def subscribe(self, callback: Callable[[Change], None]) -> None:
        """Calls back after each commit that moved a score version, on the thread that wrote, before its caller goes on.

        Changes of a namespace come in the order of score_version, which grows by one each; who sees a gap loads anew.
        A callback must not write to the store: it would wait for itself.
        """
        self._writer.subscribe(callback)

    def forewarn(self, callback: Callable[[Sequence[Memory]], None]) -> None:
        """Calls back before each commit that deletes or rewrites memories, with how they stood, on the thread that
        writes. A purge says nothing. A callback must not write to the store."""
        self._writer.forewarn(callback)

    def settle(self) -> None:
        """Returns once all of the log is in the database and deleted text is in no file.

        Raises StoreUnavailableError if a reader or the disk stays in the way.
        """
        deadline = time.monotonic() + SETTLE_SECONDS
        while not self._writer.settle():
            if time.monotonic() > deadline:
                raise StoreUnavailableError(
                    f"the log of the store in {self.folder} could not be moved into the database within"
                    f" {SETTLE_SECONDS:.0f} s; a long read or the disk is in the way, see the server's log"
                )
            time.sleep(0.01)

    def backup(self, folder: Path, now: Micros, is_cancelled: Callable[[], bool] = lambda: False) -> Backup:
        """Copies the store into `folder`, which must not exist or be empty, while everything else goes on.

        Raises InvalidRequestError, BackupFailedError, DeadlineExceededError once `is_cancelled`, and OverloadedError
        while another backup is made.
        """
        if self._closed:
            raise StoreUnavailableError("the store is closed; the server is shutting down")
        if not self._backing_up.acquire(blocking=False):
            raise OverloadedError("another backup is being made; try again when it is done")
        try:
            return write_backup(self._opened.files.database, folder, now, is_cancelled)
        finally:
            self._backing_up.release()

    # Models

    def place_model(
        self,
        model: tuple[models.ModelRow, bytes] | None,
        events: Sequence[RoleEvent],
        identity: bytes | None,
        on_commit: Callable[[], None],
    ) -> None:
        """Takes a model with its archive in and writes role events down, all or none. With `identity`, what ranks is
        another from then on, and all namespaces move on; see `set_ranking`. `on_commit` is called after the commit,
        on the thread that wrote, before anyone hears of a new score version."""
        self._writer.submit(
            lambda db: replace(models.place(db, model, events, identity), after=on_commit), durable=True
        )

    def model_events(self) -> list[RoleEvent]:
        """Who had which role, oldest first."""
        with self._readers.snapshot() as db:
            return models.events(db)

    def list_models(self, before: int | None, limit: int) -> list[models.ModelRow]:
        """At most `limit` models that came in before number `before`, newest first."""
        with self._readers.snapshot() as db:
            return models.page(db, before, limit)

    def find_model(self, version: str) -> tuple[models.ModelRow, bytes] | None:
        """A model and its archive, None if there is none."""
        with self._readers.snapshot() as db:
            return models.find(db, version)

    # Facts about the whole

    def numbers(self) -> StoreNumbers:
        """The store in numbers."""
        with self._counted_snapshot() as db:
            return snapshots.store_numbers(db, sum(self._opened.files.sizes()))

    def problems(self) -> list[str]:
        """What keeps the store from being written to, and what was lost to a damaged log that still lies there, in
        words with what to do."""
        lost = [each.words for each in self._opened.kept_logs if each.path.exists()]
        return [*([problem] if (problem := self._writer.problem) else []), *lost]

    def namespace_numbers(self, namespace: str) -> NamespaceNumbers:
        """A namespace in numbers, of which subscribers have heard: what is told as scored is ranked as scored. Zeros
        for one that is not there."""
        with self._counted_snapshot() as db:
            numbers = snapshots.namespace_numbers(db, namespace)
        self._writer.wait_until_told(TOLD_SECONDS)
        return numbers

    def answered(self, namespace: str, once: Once, now: Micros) -> Replayed | None:
        """What this request was answered with within 24 hours. Raises RequestIdReusedError."""
        with self._readers.glance() as db:
            return requests.find(db, namespace, once, now)

    def meta(self, key: str) -> bytes | None:
        """A fact about the store by its key, None if it is not set."""
        with self._readers.snapshot() as db:
            return meta.get(db, key)

    def set_meta(self, facts: Mapping[str, bytes]) -> None:
        """Sets facts about the store, all or none."""

        def work(db: Connection) -> Done[None]:
            for key, value in facts.items():
                meta.put(db, key, value)
            return Done(None)

        self._writer.submit(work, durable=True)
