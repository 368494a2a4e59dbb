"""What an embedder is, and what it makes of a task. `sidecar.retrieval.embedders` has those there are."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, Protocol

from sidecar.retrieval.vectors import Vectors


class Embedder(Protocol):
    """Turns texts into vectors. Safe to use from any thread."""

    @property
    def name(self) -> str:
        """The name that settings use, without a folder."""

    @property
    def fingerprint(self) -> str:
        """Changes whenever the same text may give another vector; "" for an embedder that gives none."""

    @property
    def dimension(self) -> int:
        """Numbers in a vector; 0 for an embedder that gives none."""

    def embed(self, texts: Sequence[str]) -> Vectors:
        """Unit rows, shape (len(texts), dimension), float32; a zero row for a text without tokens.

        A row depends on its own text alone, not on the others beside it.
        """


def identity(embedder: Embedder) -> str:
    """What a store remembers of an embedder, name@fingerprint:dimension: vectors compare only if it is the same."""
    return f"{embedder.name}@{embedder.fingerprint}:{embedder.dimension}"


class WeighedWord(NamedTuple):
    """A word of a task: where it stands, in characters, and what it counts in the task's vector, in (0, 1]."""

    start: int
    end: int
    weight: float


class TaskVector(NamedTuple):
    """A task's vector, shape (dimension,), and how far it is to be trusted, in (0, 1]."""

    numbers: Vectors
    trust: float = 1.0
