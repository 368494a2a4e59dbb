"""The use rate's priors at each score version: a rescore changes them for all namespaces, and no ranking mixes two."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from sidecar.domain import Change
from sidecar.features.use_rate import PRIOR

Priors = Mapping[str, tuple[float, float]]


@dataclass(frozen=True, slots=True)
class _Standing:
    """The newest priors, the score version of each namespace that they begin with, and those before."""

    now: Priors
    before: Priors
    since: Mapping[str, int] = field(default_factory=dict)


class PriorsByVersion:
    """Must hear of every change before the snapshots do. Safe to read from many threads."""

    def __init__(self, stored: Priors) -> None:
        now = {**PRIOR, **stored}
        self._standing = _Standing(now, now)

    def apply(self, change: Change) -> None:
        """Takes the priors of a rescore over."""
        moved = change.use_priors
        # A rescore tells of each namespace with the same priors: the first has it all.
        if moved is not None and moved.since != self._standing.since:
            self._standing = _Standing({**PRIOR, **moved.priors}, self._standing.now, moved.since)

    def of(self, namespace: str, score_version: int) -> Priors:
        """The priors of a namespace's snapshot."""
        standing = self._standing
        return standing.now if score_version >= standing.since.get(namespace, 0) else standing.before
