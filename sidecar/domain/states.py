"""What the store hands to the index: a namespace as it stands, and what a write changed in it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from sidecar.domain.memories import Memory, UseCounts


@dataclass(frozen=True, slots=True)
class NamespaceState:
    """Everything of one namespace that ranking needs, as of one score version."""

    namespace: str
    score_version: int
    memories: tuple[Memory, ...]
    uses: Mapping[int, UseCounts]
    """By memory key; a memory without an entry has UseCounts()."""


@dataclass(frozen=True, slots=True)
class IndexedState:
    """How a namespace stands to the index file that was kept of it, as of one moment. `index_version` is the score
    version of the file, `change` all that was written since; `keys` and `ids` are those of all memories, the i-th
    of each of one."""

    file: str
    index_version: int
    change: Change
    keys: NDArray[np.int64]
    ids: Sequence[str]


@dataclass(frozen=True, slots=True)
class UsePriors:
    """(mu, kappa) of the use rate by kind, and the score version of each namespace that they begin with."""

    priors: Mapping[str, tuple[float, float]]
    since: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class Change:
    """What one committed write changed in a namespace. Changes of a namespace arrive in the order of score_version,
    which grows by one with each.

    `upserted` memories replace those of the same key; `uses`, `ratings` ((helpful, unhelpful)), `importance_contents`
    and `importance_uses` (parts of an importance) are the new standing by memory key. `use_priors` are set where a
    rescore moved them.
    """

    namespace: str
    score_version: int
    upserted: tuple[Memory, ...] = ()
    deleted_keys: tuple[int, ...] = ()
    uses: Mapping[int, UseCounts] = field(default_factory=dict)
    ratings: Mapping[int, tuple[int, int]] = field(default_factory=dict)
    purged: bool = False
    importance_contents: Mapping[int, float | None] = field(default_factory=dict)
    importance_uses: Mapping[int, float | None] = field(default_factory=dict)
    replaced: tuple[Memory, ...] = ()
    """Memories as they stood before, of those that were deleted or rewritten; not all of them after a purge."""
    use_priors: UsePriors | None = None
