"""What helps to choose the memories of a large namespace that a task looks at. None of it is exact, and none of it is
in a score: it may lag behind, and what was written since is looked at always.

Shared by the snapshots of one numbering of rows, and brought up to date in the background.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from sidecar.retrieval.cells import Cells

MOST_STANDINGS = 4
BEST_ROWS = 4_096

Rows = NDArray[np.int32]
Amounts = NDArray[np.float32]


@dataclass(frozen=True, slots=True, eq=False)
class Standings:
    """What some weights gave the first rows of a snapshot before any task, shape (rows,); `best` are the rows of most,
    descending. `touched` are rows that were written since the snapshot of `score_version` was made."""

    amounts: Amounts
    best: Rows
    touched: list[int]
    score_version: int
    made_at: float
    of_terms: dict[str, tuple[Rows, Amounts]] = field(default_factory=dict)
    """The rows to which a term gives most, descending, and what: found no earlier than the standings, so that what was
    written since is fresh or touched."""

    @staticmethod
    def of(amounts: Amounts, touched: list[int], score_version: int, made_at: float) -> Standings:
        """`made_at` is in seconds of a clock that never steps back."""
        count = min(BEST_ROWS, len(amounts))
        best = np.argpartition(-amounts, count - 1)[:count] if count else np.empty(0, np.int64)
        best = best[np.argsort(-amounts[best], kind="stable")]
        return Standings(amounts, best.astype(np.int32), touched, score_version, made_at)


@dataclass(slots=True, eq=False)
class Near:
    """One writer, which touches; one maker, which replaces `cells` and `standings`; any number of readers."""

    cells: Cells | None = None
    standings: dict[Hashable, Standings] = field(default_factory=dict)
    wanted: dict[Hashable, Callable[..., Amounts]] = field(default_factory=dict)
    """How to make the standings that were asked for last, from a snapshot."""
    listening: list[list[int]] = field(default_factory=list)

    def want(self, key: Hashable, make: Callable[..., Amounts]) -> Standings | None:
        """The standings of a key, None while there are none."""
        if key not in self.wanted:
            if len(self.wanted) >= MOST_STANDINGS:
                self.wanted, self.standings = {}, {}
            self.wanted[key] = make
        return self.standings.get(key)

    def touch(self, rows: set[int]) -> None:
        """Hears of rows that are written inside, before their snapshot is seen."""
        for touched in self.listening:
            touched.extend(rows)

    def renumbered(self, live: NDArray[np.bool_]) -> Near:
        """The same for these rows without those that do not live."""
        row_of = np.cumsum(live, dtype=np.int32) - 1
        after = Near(wanted=dict(self.wanted))
        if (cells := self.cells) is not None:
            after.cells = Cells.of(cells.centres, cells.cell[: len(live)][live[: len(cells)]])
        for key, standings in list(self.standings.items()):
            known, touched = live[: len(standings.amounts)], list(standings.touched)
            best = standings.best[standings.best < len(known)]
            after.standings[key] = Standings(
                standings.amounts[: len(known)][known],
                row_of[best[known[best]]],
                [int(row_of[row]) for row in touched if row < len(live) and live[row]],
                standings.score_version,
                standings.made_at,
            )
        after.listening = [standings.touched for standings in after.standings.values()]
        return after
