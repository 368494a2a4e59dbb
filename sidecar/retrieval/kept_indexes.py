"""Index files of namespaces: read at the first look at a namespace, and written now and then, for the next start.

A file is a cache. It counts if the store names it and it is of this program, this embedder and this store; what was
written since is read from the store and applied. Anything in doubt is dropped and built anew from the store.
"""

from __future__ import annotations

import logging
import secrets
from itertools import compress
from pathlib import Path
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from sidecar.domain import IndexedState
from sidecar.retrieval import changing, index_file
from sidecar.retrieval.contents import Contents
from sidecar.retrieval.index_file import IndexArrays, UnusableError
from sidecar.retrieval.near import Near
from sidecar.retrieval.snapshot import Snapshot
from sidecar.retrieval.sources import Source
from sidecar.retrieval.table import Table

MOST_CHANGED = 0.5
"""Of a namespace's memories: when more than this share were written since the file was made, it is built anew."""

_log = logging.getLogger(__name__)


class IndexStore(Protocol):
    """What files are named in; see `sidecar.store.index_calls`."""

    folder: Path

    def indexed(self, namespace: str) -> IndexedState | None:
        """How a namespace stands to its file."""

    def begin_index(self, namespace: str) -> None:
        """Before the state is taken."""

    def keep_index(self, namespace: str, file: str, score_version: int) -> bool:
        """Names a file."""

    def forget_index(self, namespace: str) -> None:
        """Drops a file."""


class KeptIndexes:
    """Reads and writes index files."""

    def __init__(self, store: IndexStore, source: Source, prefix: str, of: tuple[object, ...]) -> None:
        """`prefix` is what names of files begin with; `of` says what all indexes of this server go by beside texts: a
        file of anything else is dropped."""
        self._store = store
        self._source = source
        self._prefix = prefix
        self._of = of

    def load(self, namespace: str) -> tuple[Snapshot, int] | None:
        """The snapshot of a namespace from its file and what was written since, and how many memories that were; None
        if there is no good file."""
        state = self._store.indexed(namespace)
        if state is None:
            return None
        try:
            return self._from_file(namespace, state)
        except (UnusableError, OSError) as error:
            _log.info("an index file is not used, the index is built anew: %s", error)
            self._store.forget_index(namespace)
            return None

    def begin(self, namespace: str) -> None:
        """To be called before the contents are taken that `save` gets."""
        self._store.begin_index(namespace)

    def forget(self, namespace: str) -> None:
        """Takes back what `begin` began, and the file of before."""
        self._store.forget_index(namespace)

    def save(self, namespace: str, contents: Contents) -> Contents | None:
        """Writes a file of these contents, and returns them out of it, without dead rows. None if the namespace was
        purged meanwhile.

        Raises OSError.
        """
        name = f"{self._prefix}{secrets.token_hex(8)}"
        path = self._store.folder / name
        try:
            index_file.write(path, contents, self._identity(namespace))
            found = index_file.read(path, self._identity(namespace), contents.score_version)
        except UnusableError as error:
            path.unlink(missing_ok=True)
            raise OSError(f"an index file is not what was written: {error}") from error
        except BaseException:
            path.unlink(missing_ok=True)
            raise
        if not self._store.keep_index(namespace, name, contents.score_version):
            return None
        live = contents.columns.live
        ids = list(compress(contents.columns.ids, live.tolist()))
        return self._of_arrays(found, ids, contents.near.renumbered(live))

    def _from_file(self, namespace: str, state: IndexedState) -> tuple[Snapshot, int]:
        change = state.change
        touched = len(change.upserted) + len(change.deleted_keys)
        if touched > MOST_CHANGED * len(state.ids) + 1_000:
            raise UnusableError("most of it was written anew since")
        if change.score_version < state.index_version:
            raise UnusableError("it is newer than the store")
        found = index_file.read(self._store.folder / state.file, self._identity(namespace), state.index_version)
        ids = _ids_of(found.columns["key"][: found.rows], state)
        contents = changing.changed(self._of_arrays(found, ids, Near(cells=found.cells)), change)
        if not np.array_equal(np.sort(contents.columns.key[contents.columns.live]), np.sort(state.keys)):
            raise UnusableError("it does not hold what the store holds")
        return Snapshot(contents), touched

    def _of_arrays(self, found: IndexArrays, ids: list[str], near: Near) -> Contents:
        table = Table.of(found.columns, found.rows)
        return changing.of_arrays(
            self._source, found.score_version, table, found.kinds, ids, found.terms, found.marks, near
        )

    def _identity(self, namespace: str) -> str:
        """Of everything but the program that a file goes by. Keyed, so that it does not tell the namespace's name."""
        return f"{self._source.hasher.of((namespace, *self._of)):016x}"


def _ids_of(keys: NDArray[np.int64], state: IndexedState) -> list[str]:
    """The ids of these keys, "" for one that is not there any more."""
    if not len(state.keys) or len(state.keys) != len(state.ids):
        raise UnusableError("it does not hold what the store holds")
    order = np.argsort(state.keys)
    sorted_keys = state.keys[order]
    at = np.minimum(sorted_keys.searchsorted(keys), len(order) - 1)
    ids = np.array(state.ids, dtype=object)[order[at]]
    ids[sorted_keys[at] != keys] = ""
    found: list[str] = ids.tolist()
    return found
