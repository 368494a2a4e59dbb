"""Embeds all memories again: with the store's own embedder in place, or with another one beside the vectors that serve.

Another embedder's vectors are collected until there is one for each memory, and take over in one transaction when
nobody ranks: at the start of a server that is set to it, or without a server. So the vectors of two embedders are
never mixed, and ranking goes on for as long as it takes.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import closing

from sidecar.errors import OverloadedError, Violations
from sidecar.retrieval.embedding import Embedder, identity
from sidecar.store import meta
from sidecar.store.reembedded import Embedded, Text
from sidecar.store.store import Store

BATCH = 128
"""Memories embedded and written at a time: few enough that a kill costs little and no Rank waits long."""

Progress = tuple[int, int]
"""Memories done, and memories in all."""


class Reindexer:
    """Embeds the memories of a store again, one run at a time."""

    def __init__(self, store: Store, own: Embedder, make_embedder: Callable[[str], Embedder]) -> None:
        """`own` is the embedder that the server is set to."""
        self._store = store
        self._own = own
        self._make = make_embedder
        self._running = threading.Lock()

    def target(self, spec: str) -> Embedder:
        """The embedder of that name, the store's own for "". SettingsError if it cannot be had."""
        if not spec:
            return self._own
        made = self._make(spec)
        return self._own if identity(made) == identity(self._own) else made

    def run(self, target: Embedder, namespace: str = "") -> Iterator[Progress]:
        """Embeds while the store serves. The store's own embedder replaces vectors in place; those of another are
        collected, and serve from the next start with it on. What a run that was broken off had collected stays.

        Raises InvalidRequestError, and OverloadedError while another run goes on.
        """
        is_own = identity(target).encode() == self._store.meta(meta.EMBEDDER)
        bad = Violations()
        if namespace and not is_own:
            bad.add("namespace", "is set beside another embedder; leave it unset, for all of a store has one embedder")
        if is_own and target.name == "client":
            bad.add("embedder", f"is client:{target.dimension}, the store's own: its vectors are the callers' to send")
        bad.raise_if_any()
        if not self._running.acquire(blocking=False):
            raise OverloadedError("another reindex goes on; try again when it is done")
        try:
            with closing(self._renew(target, namespace) if is_own else self._collect(target)) as steps:
                yield from steps
        finally:
            self._running.release()

    def switch(self, target: Embedder) -> Iterator[Progress]:
        """Embeds what is missing for another embedder, and makes it the store's. For a store that nobody serves."""
        while True:
            yield from self._collect(target)
            if self._store.switch_embedder(identity(target)):
                return

    def _renew(self, own: Embedder, namespace: str) -> Generator[Progress, None, None]:
        self._store.abandon_reindex()
        _, total = self._store.reindex_counts(namespace)
        yield 0, total
        done, after = 0, 0
        while page := self._store.texts(after, BATCH, namespace=namespace):
            self._store.renew_embeddings(identity(own), _embedded(own, page))
            done, after = done + len(page), page[-1].key
            yield done, max(done, total)

    def _collect(self, target: Embedder) -> Generator[Progress, None, None]:
        store, name = self._store, identity(target)
        store.begin_reindex(name)
        done, total = store.reindex_counts()
        yield done, total
        after = 0
        # Again from the first, until nothing was rewritten behind the walk's back.
        while (page := store.texts(after, BATCH, only_missing=True)) or after:
            if page:
                done += store.keep_reembedded(name, _embedded(target, page))
                yield min(done, total), total
            else:
                done, total = store.reindex_counts()
                yield done, total
            after = page[-1].key if page else 0


def _embedded(embedder: Embedder, page: Sequence[Text]) -> list[Embedded]:
    if not embedder.dimension:
        return [Embedded(text, None) for text in page]
    vectors = embedder.embed([text.content for text in page])
    return [Embedded(text, vector) for text, vector in zip(page, vectors, strict=True)]
