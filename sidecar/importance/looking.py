"""What is found of memories before anything is weighed: what their texts say, and what stands near them."""

from __future__ import annotations

import functools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from sidecar.domain import Memory, Micros
from sidecar.importance.claims import read_pieces
from sidecar.importance.content import Analysis, analyse
from sidecar.importance.neighbours import Neighbour, Neighbourhood, look_around
from sidecar.importance.scoring import Signal
from sidecar.retrieval.embedding import Embedder
from sidecar.retrieval.nearest import is_borne_by_another, nearest, nearest_by_words, vector_of
from sidecar.retrieval.snapshot import Snapshot
from sidecar.retrieval.vectors import Vectors, snap

NEIGHBOURS = 16
"""Nearest memories that are looked at."""
QUALITY_WITHOUT_NEIGHBOURS = 0.8
"""What is left of a content analysis's quality where novelty could not be told."""


@dataclass(frozen=True, slots=True)
class Looked:
    """What was found of one memory. `row` is its row in the snapshot, None if it is not stored."""

    memory: Memory
    row: int | None
    vector: Vectors
    analysis: Analysis
    around: Neighbourhood
    is_superseded: bool

    def parts(self) -> dict[str, float | None]:
        """The parts of the content signal; None for one that could not be told."""
        analysis = self.analysis
        return {
            "semantic_density": analysis.semantic_density,
            "entities": analysis.entities,
            "uniqueness": self.around.uniqueness,
            "actionability": analysis.actionability,
            "factual_content": analysis.factual_content,
            "cross_references": analysis.cross_references,
        }

    def content(self, shares: Mapping[str, float]) -> Signal:
        """The content signal."""
        return Signal.of_parts({name: (value, shares[name]) for name, value in self.parts().items()})

    @property
    def quality(self) -> float:
        """How far the content signal is to be trusted, in [0, 1]."""
        return self.analysis.quality * (QUALITY_WITHOUT_NEIGHBOURS if self.around.uniqueness is None else 1.0)


def look(
    snapshot: Snapshot,
    memories: Sequence[Memory],
    embedder: Embedder,
    now: Micros,
    *,
    together: bool = False,
    most_rows: int | None = None,
) -> list[Looked]:
    """Analyses texts, and finds each memory's neighbours in a namespace; none is its own.

    `together`: they are written together, and so are each other's neighbours. `most_rows` bounds how many of the
    namespace's memories each is compared with: the newest ones then.
    """
    rows = [snapshot.row_of_id.get(memory.id) if memory.id else None for memory in memories]
    vectors = _vectors(snapshot, memories, rows, embedder)
    # What is not stored yet comes after all that is; a time that is not given is now.
    timed = [
        replace(memory, create_time=memory.create_time or now, key=memory.key or 2**62 + place)
        for place, memory in enumerate(memories)
    ]
    left_out = {row for row in rows if row is not None} if together else set()
    around = _neighbours(snapshot, timed, rows, vectors, left_out, most_rows)
    if together and len(timed) > 1:
        _add_peers(around, timed, vectors)
    others = snapshot.live_count - len(left_out) + (len(timed) - 1 if together else 0)
    pieces_of = functools.cache(read_pieces)
    found = []
    for memory, row, vector, neighbours in zip(timed, rows, vectors, around, strict=True):
        neighbours.sort(key=lambda each: -each.cosine)
        analysis = analyse(memory, functools.partial(is_borne_by_another, snapshot, row))
        has_others = others > (0 if together or row is None else 1)
        neighbourhood = look_around(memory, neighbours, has_others=has_others, pieces_of=pieces_of)
        superseded = bool(snapshot.columns.superseded[row]) if row is not None else False
        replaced = memory.superseded_by not in ("", memory.id) and memory.superseded_by in snapshot.row_of_id
        found.append(Looked(memory, row, vector, analysis, neighbourhood, superseded or replaced))
    return found


def _vectors(snapshot: Snapshot, memories: Sequence[Memory], rows: Sequence[int | None], embedder: Embedder) -> Vectors:
    """Each memory's vector: its own, else the stored one of the same text, else made now. Shape (n, dimension)."""
    dimension = embedder.dimension
    found = np.zeros((len(memories), dimension), dtype=np.float32)
    missing = []
    for place, (memory, row) in enumerate(zip(memories, rows, strict=True)):
        if memory.embedding is not None and len(memory.embedding) == dimension:
            found[place] = memory.embedding
        elif row is not None and dimension and snapshot.memories[row].content == memory.content:
            found[place] = vector_of(snapshot, row)
        else:
            missing.append(place)
    if missing and dimension:
        found[missing] = embedder.embed([memories[place].content for place in missing])
    return found


def _neighbours(
    snapshot: Snapshot,
    memories: Sequence[Memory],
    rows: Sequence[int | None],
    vectors: Vectors,
    left_out: set[int],
    most_rows: int | None,
) -> list[list[Neighbour]]:
    if vectors.shape[1]:
        near = nearest(snapshot, vectors, NEIGHBOURS + 1, most_rows)
        pairs = [(near.rows[place], near.cosines[place]) for place in range(len(memories))]
    else:
        by_words = [nearest_by_words(snapshot, memory.content, NEIGHBOURS + 1) for memory in memories]
        pairs = [(each.rows[0], each.cosines[0]) for each in by_words]
    # One read for all of them: a snapshot keeps no texts.
    wanted = sorted({row for found, _ in pairs for row in found.tolist() if row >= 0})
    memory_of = dict(zip(wanted, snapshot.memories.at(wanted), strict=True))
    around = []
    for own, (found, cosines) in zip(rows, pairs, strict=True):
        kept = [
            Neighbour(memory_of[row], cosine)
            for row, cosine in zip(found.tolist(), cosines.tolist(), strict=True)
            if row >= 0 and row != own and row not in left_out and memory_of[row].content
        ]
        around.append(kept[:NEIGHBOURS])
    return around


def _add_peers(around: list[list[Neighbour]], memories: Sequence[Memory], vectors: Vectors) -> None:
    """Adds to each memory's neighbours the nearest among those that are written with it."""
    if not vectors.shape[1]:
        return
    unit = snap(vectors)
    cosines = unit @ unit.T
    cosines[~unit.any(axis=1)] = -np.inf
    np.fill_diagonal(cosines, -np.inf)
    k = min(NEIGHBOURS, len(memories) - 1)
    nearest_of = np.argpartition(-cosines, k - 1, axis=1)[:, :k]
    for place, neighbours in enumerate(around):
        for peer in nearest_of[place].tolist():
            if math.isfinite(cosine := float(cosines[place, peer])):
                neighbours.append(Neighbour(memories[peer], cosine))
