"""What is found of memories before anything is weighed: what their texts say, and what stands near them."""

from __future__ import annotations

import functools
import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from sidecar.domain import Memory, Micros
from sidecar.importance.claimed import claimed
from sidecar.importance.claims import read_pieces
from sidecar.importance.content import Analysis, analyse
from sidecar.importance.neighbours import Neighbour, Neighbourhood, look_around
from sidecar.importance.scoring import Signal
from sidecar.importance.standing import Replaced, Standing, counts, fellow_bearer, replacement, standing_of
from sidecar.retrieval.embedding import Embedder
from sidecar.retrieval.handles import Handle, find_handles
from sidecar.retrieval.nearest import Mask, nearest, nearest_by_words, vector_of
from sidecar.retrieval.snapshot import Snapshot
from sidecar.retrieval.stated import stated
from sidecar.retrieval.vectors import Codes, cosine_table, inverse_lengths, quantised

NEIGHBOURS = 16
"""Nearest memories that are looked at."""
QUALITY_WITHOUT_NEIGHBOURS = 0.8
"""What is left of a content analysis's quality where novelty could not be told."""


@dataclass(frozen=True, slots=True)
class Looked:
    """What was found of one memory. `row` is its row in the snapshot, None if it is not stored.

    `about` are ids of the memories that the rest follows from. `concerns` are those that follow from it in turn: id ->
    the uniqueness that it leaves them, else None; `repeats` are those whose theme it is. Empty while it is not served.
    """

    memory: Memory
    row: int | None
    vector: Codes
    analysis: Analysis
    around: Neighbourhood
    replaced: Replaced
    about: tuple[str, ...]
    concerns: Mapping[str, float | None]
    repeats: tuple[str, ...]

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


def no_pause() -> None:
    """Goes on at once."""


def look(
    snapshot: Snapshot,
    memories: Sequence[Memory],
    embedder: Embedder,
    now: Micros,
    *,
    together: bool = False,
    most_rows: int | None = None,
    pause: Callable[[], None] = no_pause,
) -> list[Looked]:
    """Analyses texts, and finds each memory's neighbours in a namespace; none is its own, and of those that cannot be
    served none takes anything from it.

    `together`: they are written together, and so are each other's neighbours. `most_rows` bounds how many of the
    namespace's memories each is compared with: the newest ones then. `pause` is called before each memory is analysed.
    """
    rows = [snapshot.row_of_id.get(memory.id) if memory.id else None for memory in memories]
    vectors = _vectors(snapshot, memories, rows, embedder)
    # What is not stored yet comes after all that is; a time that is not given is now.
    timed = [replace(memory, create_time=memory.create_time or now) for memory in memories]
    left_out = {row for row in rows if row is not None} if together else set()
    standing = standing_of(snapshot, now, left_out)
    around = _neighbours(snapshot, timed, rows, vectors, standing.counting, most_rows)
    hidden = standing.there & ~standing.counting
    uncounted: list[list[Neighbour]] = [[] for _ in timed]
    if hidden.any():
        uncounted = _neighbours(snapshot, timed, rows, vectors, hidden, most_rows)
    bearing: dict[Handle, list[str]] = {}
    if together and len(timed) > 1:
        for memory in timed:
            for handle in find_handles(memory.content):
                bearing.setdefault(handle, []).append(memory.id)
        _add_peers(around, [each if counts(each, now) else None for each in timed], vectors)
    # What is stored is new beside all that there is, also if that is nothing.
    is_stored = most_rows is not None
    pieces_of = functools.cache(read_pieces)
    found = []
    for place, (memory, row, vector) in enumerate(zip(timed, rows, vectors, strict=True)):
        pause()
        fellows: dict[str, float | None] = {}
        bearers: list[str] = []
        peers = functools.partial(_other_bearer, bearing, memory.id)
        analysis = analyse(memory, functools.partial(_is_shared, snapshot, row, standing, peers, bearers, fellows))
        claims = claimed(snapshot, memory, row, standing)
        neighbourhood = look_around(
            memory,
            sorted(around[place], key=_nearest_first),
            uncounted=uncounted[place],
            claimed=claims,
            has_others=is_stored or snapshot.live_count > (0 if row is None else 1),
            pieces_of=pieces_of,
        )
        replaced = replacement(snapshot, memory, row, standing)
        about = dict.fromkeys((*neighbourhood.about, *claims.about, *bearers, *replaced.about))
        told = fellows | dict.fromkeys(replaced.ring)
        is_counted = counts(memory, now) and not replaced.is_superseded
        concerns = {**neighbourhood.concerns} if is_counted else {}
        repeats = neighbourhood.repeats if is_counted else ()
        found.append(
            Looked(memory, row, vector, analysis, neighbourhood, replaced, tuple(about), concerns | told, repeats)
        )
    return found


def bound_to_peers(memories: Sequence[Memory]) -> list[bool]:
    """Which of the memories that are written together state something of an attribute that another one does, or are or
    have a replacement as another one is or has: what follows from that is seen when all of them are there."""
    borne = [
        {("id", memory.id), ("id", memory.superseded_by)}
        | ({("chain", "")} if memory.superseded_by else set())
        | ({("claim", *claim[:2])} if (claim := stated(memory)) is not None else set())
        for memory in memories
    ]
    bearing = Counter(each for marks in borne for each in marks if each != ("id", ""))
    return [any(bearing[each] > 1 for each in marks) for marks in borne]


def _nearest_first(neighbour: Neighbour) -> tuple[float, int, str]:
    return -neighbour.cosine, neighbour.memory.create_time, neighbour.memory.id


def _is_shared(
    snapshot: Snapshot,
    row: int | None,
    standing: Standing,
    peers: Callable[[Handle], str],
    bearers: list[str],
    concerns: dict[str, float | None],
    handle: Handle,
) -> bool:
    """True if another memory bears a handle, too. Notes which, and which may have been alone with it before."""
    bearer, maybe_alone = fellow_bearer(snapshot, row, handle, standing)
    if bearer := bearer or peers(handle):
        bearers.append(bearer)
    concerns.update(dict.fromkeys(maybe_alone))
    return bool(bearer)


def _other_bearer(bearing: Mapping[Handle, Sequence[str]], own_id: str, handle: Handle) -> str:
    return next((each for each in bearing.get(handle, ()) if each != own_id), "")


def _vectors(snapshot: Snapshot, memories: Sequence[Memory], rows: Sequence[int | None], embedder: Embedder) -> Codes:
    """Each memory's vector: its own, else the stored one of the same text, else made now. Shape (n, dimension),
    quantised as the stored ones are."""
    dimension = embedder.dimension
    found = np.zeros((len(memories), dimension), dtype=np.int8)
    missing = []
    for place, (memory, row) in enumerate(zip(memories, rows, strict=True)):
        if memory.embedding is not None and len(memory.embedding) == dimension:
            found[place] = quantised(memory.embedding)[0]
        elif row is not None and dimension and snapshot.memories[row].content == memory.content:
            found[place] = vector_of(snapshot, row)
        else:
            missing.append(place)
    if missing and dimension:
        found[missing] = quantised(embedder.embed([memories[place].content for place in missing]))
    return found


def _neighbours(
    snapshot: Snapshot,
    memories: Sequence[Memory],
    rows: Sequence[int | None],
    vectors: Codes,
    among: Mask,
    most_rows: int | None,
) -> list[list[Neighbour]]:
    if vectors.shape[1]:
        near = nearest(snapshot, vectors, NEIGHBOURS + 1, among, most_rows)
        pairs = [(near.rows[place], near.cosines[place]) for place in range(len(memories))]
    else:
        by_words = [nearest_by_words(snapshot, memory.content, NEIGHBOURS + 1, among) for memory in memories]
        pairs = [(each.rows[0], each.cosines[0]) for each in by_words]
    # One read for all of them: a snapshot keeps no texts.
    wanted = sorted({row for found, _ in pairs for row in found.tolist() if row >= 0})
    memory_of = dict(zip(wanted, snapshot.memories.at(wanted), strict=True))
    around = []
    for own, (found, cosines) in zip(rows, pairs, strict=True):
        kept = [
            Neighbour(memory_of[row], cosine)
            for row, cosine in zip(found.tolist(), cosines.tolist(), strict=True)
            if row >= 0 and row != own and memory_of[row].content
        ]
        around.append(kept[:NEIGHBOURS])
    return around


def _add_peers(around: list[list[Neighbour]], memories: Sequence[Memory | None], vectors: Codes) -> None:
    """Adds to each memory's neighbours the nearest among those that are written with it; None for one that does not
    count."""
    if not vectors.shape[1]:
        return
    cosines = cosine_table(vectors, vectors, inverse_lengths(vectors))
    cosines[:, [each is None for each in memories]] = -np.inf
    cosines[~vectors.any(axis=1)] = -np.inf
    np.fill_diagonal(cosines, -np.inf)
    k = min(NEIGHBOURS, len(memories) - 1)
    nearest_of = np.argsort(-cosines, axis=1, kind="stable")[:, :k]  # of equal ones the first
    for place, neighbours in enumerate(around):
        for peer in nearest_of[place].tolist():
            other = memories[peer]
            if other is not None and math.isfinite(cosine := float(cosines[place, peer])):
                neighbours.append(Neighbour(other, cosine))
