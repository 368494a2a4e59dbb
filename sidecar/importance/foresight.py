"""How a namespace would stand after a change of one memory, once importances are worked out again. Writes nothing.

Who would be scored anew, and to what, is said by the functions that the background scoring goes by.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from sidecar.domain import Change, Micros, says_the_same
from sidecar.importance.later import AT_ONCE
from sidecar.importance.scorer import ImportanceScorer
from sidecar.retrieval.namespaces import Namespaces
from sidecar.retrieval.snapshot import Snapshot
from sidecar.store.store import Store


class Foresight:
    """Sees ahead from the namespaces as they are now. Safe to use from many threads."""

    def __init__(
        self, namespaces: Namespaces, store: Store, scorer: ImportanceScorer, clock: Callable[[], Micros]
    ) -> None:
        self._namespaces = namespaces
        self._store = store
        self._scorer = scorer
        self._clock = clock

    def written(
        self, namespace: str, memory_id: str, fields: Mapping[str, Any], check: Callable[[], None], *, scores: bool
    ) -> Snapshot:
        """After a write of these STANDING_FIELDS of a memory. Without `scores` content parts stay as they are, for a
        ranking that does not count them. `check` raises past the caller's deadline.

        It is a copy of the namespace, and takes as long as the background scoring would. Raises MemoryNotFoundError.
        """
        before = self._namespaces.get(namespace)
        old = self._store.get(namespace, memory_id)
        new = replace(old, **fields, update_time=self._clock())
        after = before.apart(Change(namespace, before.score_version + 1, upserted=(new,)))
        if not scores or not self._scorer.settings.enabled or says_the_same(old, new):
            return after
        return self._scored(namespace, after, new.key, self._store.followers(namespace, memory_id), check)

    def unrated(self, namespace: str, memory_id: str) -> Snapshot:
        """After all who rated a memory unhelpful withdrew that, which moves no content part. Raises
        MemoryNotFoundError."""
        before = self._namespaces.get(namespace)
        memory = self._store.get(namespace, memory_id)
        ratings = {memory.key: (memory.helpful, 0)}
        return before.apart(Change(namespace, before.score_version + 1, ratings=ratings))

    def _scored(
        self, namespace: str, after: Snapshot, written: int, followers: list[int], check: Callable[[], None]
    ) -> Snapshot:
        """`after` a write, with all content parts that follow from it. No part depends on another, so that each is
        worked out once, whoever puts it up."""
        waiting = [written, *followers]
        contents: dict[int, float | None] = {}
        while waiting:
            contents |= dict.fromkeys(waiting)
            rows = [row for key in waiting if (row := after.contents.directory.row_of_key(key)) is not None]
            told: list[int] = []
            for start in range(0, len(rows), AT_ONCE):
                some = after.memories.at(rows[start : start + AT_ONCE])
                scored = self._scorer.score_against(after, namespace, some, check)
                contents |= {each.memory.key: each.part.score for each in scored}
                told += self._store.told_of_scores(namespace, scored, written)
            waiting = [key for key in dict.fromkeys(told) if key not in contents]
        return after.apply(Change(namespace, after.score_version + 1, importance_contents=contents))
