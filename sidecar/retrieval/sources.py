"""Where a snapshot gets its memories from: a namespace of a million texts is not kept in memory for twenty answers.

A row knows the key of its memory and a digest of its text. Memories are asked for by both, so that a snapshot never
shows a text that was written after it: what a commit replaces or deletes is handed over before it, and kept for as
long as a Rank may take.
"""

from __future__ import annotations

import json
import threading
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import Protocol

from sidecar.domain import Memory
from sidecar.errors import OverloadedError
from sidecar.retrieval.hashing import Hasher

Name = tuple[int, int]
"""A memory's key, and the digest of its text."""

MOST_HELD = 16_384
"""Memories that are kept at hand, of all namespaces together: the last used ones, and at most twice as many."""
KEPT_SECONDS = 60.0
"""What was replaced or deleted is kept for so long: longer than any call may take."""


class Source(Protocol):
    """Gives the memories of snapshots, without their embeddings."""

    hasher: Hasher

    def put(self, digest: int, memory: Memory) -> None:
        """Takes a memory in as it stands from now on."""

    def get(self, names: Sequence[Name]) -> list[Memory]:
        """The memories of these names, in their order, with fields beside the text perhaps as of later."""


def digest(memory: Memory, hasher: Hasher) -> int:
    """Of everything that makes another row of a memory: all that is not kept in columns."""
    parts = [
        memory.id,
        memory.content,
        memory.subject,
        memory.source_thread,
        memory.superseded_by,
        f"{memory.source_sequence} {memory.create_time} {memory.token_count}",
        f"{memory.relevance is None} {memory.emotion is None}",
        "\0".join(memory.tags),
    ]
    if memory.metadata:
        parts.append(json.dumps(dict(memory.metadata), ensure_ascii=False, sort_keys=True))
    return hasher.of_text("\0".join(f"{len(part)}:{part}" for part in parts))


class Held:
    """Keeps all that it was given, for as long as it lives: for a caller's own list."""

    def __init__(self, hasher: Hasher) -> None:
        self.hasher = hasher
        self._memories: dict[Name, Memory] = {}

    def put(self, digest: int, memory: Memory) -> None:
        """Takes a memory in."""
        self._memories[memory.key, digest] = replace(memory, embedding=None)

    def get(self, names: Sequence[Name]) -> list[Memory]:
        """The memories of these names."""
        return [self._memories[name] for name in names]

    def __contains__(self, name: Name) -> bool:
        """True if a memory of this name was taken in."""
        return name in self._memories


class Aside:
    """What a source has, with what is put in here alone: for a snapshot of what might be."""

    def __init__(self, source: Source) -> None:
        self.hasher = source.hasher
        self._source = source
        self._own = Held(source.hasher)

    def put(self, digest: int, memory: Memory) -> None:
        """Takes a memory in, of which the source hears nothing."""
        self._own.put(digest, memory)

    def get(self, names: Sequence[Name]) -> list[Memory]:
        """The memories of these names. Raises what the source does."""
        rest = iter(self._source.get([name for name in names if name not in self._own]))
        return [self._own.get([name])[0] if name in self._own else next(rest) for name in names]


class Stored:
    """Keeps the memories that were used last, and reads the others from the store. Safe to use from many threads."""

    def __init__(
        self,
        read: Callable[[Sequence[int]], Sequence[Memory]],
        hasher: Hasher,
        clock: Callable[[], float],
        most_held: int = MOST_HELD,
    ) -> None:
        """`read` gives those of the memories of these keys that are there, without embeddings; `clock` is in seconds
        and never steps back."""
        self.hasher = hasher
        self._read = read
        self._clock = clock
        self._most_held = most_held
        # Two generations: the young one becomes the old one when it is full, and what is used again stays.
        self._young: dict[Name, Memory] = {}
        self._old: dict[Name, Memory] = {}
        self._leaving: dict[Name, Memory] = {}
        self._left: deque[tuple[float, Name]] = deque()
        self._lock = threading.Lock()

    def put(self, digest: int, memory: Memory) -> None:
        """Takes a memory in as it was committed."""
        self._hold((memory.key, digest), memory if memory.embedding is None else replace(memory, embedding=None))

    def leave(self, memories: Iterable[Memory]) -> None:
        """Takes in what the next commit replaces or deletes."""
        with self._lock:
            now = self._clock()
            while self._left and self._left[0][0] < now - KEPT_SECONDS:
                self._leaving.pop(self._left.popleft()[1], None)
            for memory in memories:
                name = memory.key, digest(memory, self.hasher)
                self._leaving[name] = replace(memory, embedding=None)
                self._left.append((now, name))

    def get(self, names: Sequence[Name]) -> list[Memory]:
        """The memories of these names. OverloadedError for one that was gone before its snapshot was."""
        found = [self._at_hand(name) for name in names]
        at_hand = [memory for memory in found if memory is not None]
        if len(at_hand) == len(names):
            return at_hand
        read = self._read([name[0] for name, memory in zip(names, found, strict=True) if memory is None])
        fresh = {(memory.key, digest(memory, self.hasher)): memory for memory in read}
        for name, memory in fresh.items():
            self._hold(name, memory)
        memories: list[Memory] = []
        for name in names:
            # What was committed meanwhile had been handed over before: so it is there, if it is not in the store.
            there = fresh.get(name) or self._at_hand(name)
            if there is None:
                raise OverloadedError("a memory was rewritten or deleted while it was read; try again")
            memories.append(there)
        return memories

    def _at_hand(self, name: Name) -> Memory | None:
        memory = self._young.get(name)
        if memory is None:
            memory = self._old.get(name)
            if memory is not None:
                self._hold(name, memory)
            else:
                memory = self._leaving.get(name)
        return memory

    def _hold(self, name: Name, memory: Memory) -> None:
        self._young[name] = memory
        if len(self._young) >= self._most_held:
            with self._lock:
                if len(self._young) >= self._most_held:
                    self._young, self._old = {}, self._young
