"""Which memories of a snapshot count for others, what replaces one, and who bears the same handle."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sidecar.domain import Memory, Micros
from sidecar.features.view import NO_TIME
from sidecar.retrieval.handles import Handle
from sidecar.retrieval.snapshot import Snapshot

Mask = NDArray[np.bool_]
FEW_BEARERS = 3
"""Other memories up to which all that bear a handle are told of one that bears it, too."""

LONGEST_RING = 64
"""Members up to which a ring of replacements is known as one."""


@dataclass(frozen=True, slots=True)
class Standing:
    """Masks over a snapshot's rows, shape (n,), as of one moment: what is there; what is valid; what something valid
    replaces; and what counts for others, which is what can be served."""

    there: Mask
    valid: Mask
    replaced: Mask
    counting: Mask


def standing_of(snapshot: Snapshot, now: Micros, left_out: Collection[int] = ()) -> Standing:
    """How the rows stand. `left_out` are taken as not there."""
    columns = snapshot.columns
    there = columns.live
    if left_out:
        there = there.copy()
        there[list(left_out)] = False
    until = columns.valid_until_time
    valid = there & (columns.valid_from_time <= now) & ((until == NO_TIME) | (until > now))
    replaced = snapshot.superseded_at(now)
    return Standing(there, valid, replaced, valid & ~replaced & ~columns.suppressed)


def counts(memory: Memory, now: Micros) -> bool:
    """True if a memory can be served as far as its own fields say."""
    starts, ends = memory.valid_from_time, memory.valid_until_time
    return not memory.suppressed and (starts is None or starts <= now) and (ends is None or ends > now)


@dataclass(frozen=True, slots=True)
class Replaced:
    """Whether something valid replaces a memory; the ids that this follows from: what it names, from there to the
    first that is valid, and all of a ring; and the other members of the ring of replacements that it is in."""

    is_superseded: bool = False
    about: tuple[str, ...] = ()
    ring: tuple[str, ...] = ()


def replacement(snapshot: Snapshot, memory: Memory, row: int | None, standing: Standing) -> Replaced:
    """How a memory stands to what replaces it."""
    if memory.superseded_by in ("", memory.id):
        return Replaced()
    about = [memory.superseded_by]
    target = snapshot.row_of_id.get(memory.superseded_by)
    if target is None or not standing.there[target]:
        return Replaced(about=tuple(about))
    if not standing.valid[target]:
        for further in snapshot.replacements(target):
            about.append(snapshot.columns.ids[further])
            if standing.valid[further]:
                break
    ring = _ring(snapshot, memory, target)
    about = list(dict.fromkeys((*about, *ring)))
    if row is not None and snapshot.replacement(row) == target:
        is_superseded = bool(standing.replaced[row])  # of a cycle, one survives
    else:
        is_superseded = bool(standing.valid[target] or standing.replaced[target])
    return Replaced(is_superseded, tuple(about), ring)


def _ring(snapshot: Snapshot, memory: Memory, target: int) -> tuple[str, ...]:
    """The ids from a row on along what replaces what, if they come back to a memory; else none. So far as LONGEST_RING
    reaches."""
    ids, at = snapshot.columns.ids, target
    found: list[int] = []
    while at >= 0 and ids[at] != memory.id and len(found) < LONGEST_RING:
        found.append(at)
        at = snapshot.replacement(at)
    if at >= 0:
        is_closed = ids[at] == memory.id
    else:  # a memory that is not stored yet has no row that it could lead to
        is_closed = bool(memory.id) and snapshot.memories[found[-1]].superseded_by == memory.id
    return tuple(ids[each] for each in found) if is_closed else ()


def fellow_bearer(snapshot: Snapshot, row: int | None, handle: Handle, standing: Standing) -> tuple[str, list[str]]:
    """The id of another memory that bears a handle, the one written before else after it, "" for none; and the ids of
    those that may have been scored as if they bore it alone. They are few, however many bear it."""
    rows = snapshot.contents.marks.find(("handle", *handle), standing.there)[0]
    ids = snapshot.columns.ids
    at = len(rows) if row is None else int(rows.searchsorted(row))
    others = rows[rows != row] if row is not None else rows
    if not len(others):
        return "", []
    # Which of many came first cannot be told from rows, for a correction keeps its row; but at their head one is first.
    told = others if len(others) <= FEW_BEARERS else others[:1] if at <= 1 else others[:0]
    return ids[int(others[max(at - 1, 0)])], [ids[each] for each in told.tolist()]
