"""Which memories of a large namespace are scored for a task: those that could come to stand at the top.

What is chosen here is approximate, and nothing else: a candidate's score is computed by the code that scores
everything, from the same numbers. docs/speed.md says how well the choice is made.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from sidecar.domain import Floats, Micros
from sidecar.features import FEATURE_NAMES, Columns, TextMatches, View, dates, lexical
from sidecar.ranking.gates import PASSED, Gates
from sidecar.ranking.standing import standing_of
from sidecar.retrieval.near import Near, Standings
from sidecar.retrieval.part import Part, meeting
from sidecar.retrieval.snapshot import Snapshot
from sidecar.retrieval.vectors import Vectors
from sidecar.weights import Weights, add_up

Rows = NDArray[np.int32]
Amounts = NDArray[np.floating[Any]]

LOOKED_AT = 1_200
"""Rows whose vectors are compared with the task's, at least."""
STANDING_LOOKED_AT = 300
"""Rows beside them: those that stand best before any task."""
DEEPER = 10
"""So many times as many of both are looked at for weights by which words hardly count: then it is meaning and standing
together that decide, and none of the two finds the best alone."""
FEWEST_WORDS = 0.4
"""Words hardly count below this share of what words and meaning count."""
POSTINGS = 20_000
"""Postings that are gone through, rarest terms first; of the terms left over, the rows are taken to which they give
most."""
BEST_OF_TERM = 512
MANY = 2_000
"""Of more rows that share a handle, a subject or a date, those are taken that stand best."""
SHORTLIST = 1_000
"""Rows that match best by meaning, and as many that do by what they bear, are compared by both together."""
SEEDS = 400
"""The best of these are candidates;"""
WITH_NEIGHBOURS = 120
"""the best of those with their neighbours in the thread, two on either side;"""
BEST_STANDING = 60
"""those that stand best before any task;"""
NEW_TO_USE = 60
"""and the best of those that reserved slots may draw from."""
AT_ONCE = 65_536


@dataclass(frozen=True, slots=True)
class Task:
    """What is known of a task before any memory is scored: its text's matches (without cosines), its vector, and how
    much each kind of match counts."""

    text: TextMatches
    vector: Vectors | None
    weights: Weights

    def pull(self, *features: str) -> float:
        """The weights of features together; the passage is half wording and half meaning."""
        share = {"thread": 0.5}
        return sum(share.get(name, 1.0) * float(self.weights.values[FEATURE_NAMES.index(name)]) for name in features)


def candidates_of(snapshot: Snapshot, task: Task, gates: Gates, standings: Standings, fewest_sessions: int) -> Rows:
    """The rows to be scored, ascending: all passed the gates. `fewest_sessions` is below what a memory may have been
    reported on in for reserved slots to draw it."""
    codes, columns, near = gates.codes, snapshot.columns, snapshot.contents.near
    pull = task.pull("semantic", "thread")
    words = task.pull("lexical", "thread")
    best = _passing(standings.best, codes)
    depth = DEEPER if words < FEWEST_WORDS * (pull + words) else 1
    looked = _distinct(_nearest(near, task, codes, LOOKED_AT * depth), best[: STANDING_LOOKED_AT * depth])
    meaning = pull * _meaning(snapshot, task, looked)
    meant = _top(looked, meaning + _standing_at(standings, looked), SHORTLIST)
    with _Pad(len(snapshot)) as pad:
        for bearing, worth in _bearing(snapshot, task, standings):
            pad.add(bearing, worth)
        borne = _passing(pad.rows(), codes)
        borne = _top(borne, pad.amounts[borne] + _standing_at(standings, borne), SHORTLIST)
        rows = _distinct(meant, borne)
        amounts = pad.amounts[rows] + _standing_at(standings, rows)
    known, at = meeting(rows, looked)
    is_new = np.ones(len(rows), bool)
    is_new[known] = False
    amounts[known] += meaning[at]
    amounts[is_new] += pull * _meaning(snapshot, task, rows[is_new])
    seeds = _top(rows, amounts, SEEDS)
    around = _with_neighbours(columns, _top(rows, amounts, WITH_NEIGHBOURS))
    may_be_drawn = columns.reported_sessions[rows] < fewest_sessions
    drawn = _top(rows[may_be_drawn], amounts[may_be_drawn], NEW_TO_USE)
    fresh = np.arange(min(len(standings.amounts), len(near.cells or ())), len(snapshot), dtype=np.int32)
    touched = np.array(standings.touched[:], dtype=np.int32)
    pinned = gates.pinned.astype(np.int32)
    return _passing(_distinct(seeds, around, drawn, best[:BEST_STANDING], fresh, touched, pinned), codes)


def part_with(snapshot: Snapshot, rows: Rows, gates: Gates) -> tuple[Part, Gates]:
    """The part of a snapshot that scores `rows` exactly, with what stands beside them in threads, and its gates.

    Never empty for a snapshot that is not, so that there is a gate to name.
    """
    columns = snapshot.columns
    everything = _with_neighbours(columns, rows if len(rows) else np.flatnonzero(columns.live)[:1].astype(np.int32))
    candidates = np.zeros(len(everything), bool)
    candidates[everything.searchsorted(rows)] = True
    part = Part.of(snapshot, everything)
    return part, gates.of_part(everything, candidates, part.columns)


def standing_amounts(
    weights: Weights,
    use_prior: Mapping[str, tuple[float, float]],
    emotion_enabled: bool,
    as_of_time: Micros,
    snapshot: Snapshot,
) -> NDArray[np.float32]:
    """What weights give each row before any task, some rows at a time. Shape (n,)."""
    found = np.empty(len(snapshot), np.float32)
    for first in range(0, len(snapshot), AT_ONCE):
        rows = np.arange(first, min(first + AT_ONCE, len(snapshot)), dtype=np.int32)
        part = Part.of(snapshot, rows)
        view = View(
            part.columns,
            _NO_TEXT,
            as_of_time,
            weights.half_life_days,
            use_prior,
            emotion_enabled,
            weights.variants,
            snapshot.most_uses,
        )
        found[rows] = add_up(standing_of(view, weights).known, {})[0]
    return found


_NO_FLOATS: Floats = np.empty(0)
_NO_MASK = np.empty(0, bool)
_NO_TEXT = TextMatches(_NO_FLOATS, 1.0, (), (), _NO_FLOATS, 0.0, (), (), _NO_MASK, _NO_MASK, None)


class _Pad:
    """Amounts by row, 0 but for those that were added. One for each thread, cleaned after use."""

    _own = threading.local()

    def __init__(self, rows: int) -> None:
        amounts = getattr(self._own, "amounts", None)
        if amounts is None or len(amounts) < rows:
            amounts = self._own.amounts = np.zeros(rows + rows // 8, np.float32)
        self.amounts: NDArray[np.float32] = amounts
        self._rows: list[Rows] = []

    def add(self, rows: Rows, amounts: Amounts | float) -> None:
        """Rows, each once."""
        self._rows.append(rows)
        self.amounts[rows] += amounts

    def rows(self) -> Rows:
        """All rows that were added, each as often as it was."""
        return np.concatenate(self._rows) if self._rows else np.empty(0, np.int32)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for rows in self._rows:
            self.amounts[rows] = 0.0


def _nearest(near: Near, task: Task, codes: NDArray[np.int8], count: int) -> Rows:
    """Rows of the cells that are nearest to the task, `count` or a few more."""
    if task.vector is None or not task.pull("semantic", "thread") or near.cells is None or not len(near.cells):
        return np.empty(0, np.int32)
    return _passing(near.cells.near(task.vector, count), codes)


def _passing(rows: Rows, codes: NDArray[np.int8]) -> Rows:
    """Those that are rows of the snapshot, which what chooses may be ahead of, and passed its gates."""
    rows = rows[rows < len(codes)]
    passed: Rows = rows[codes[rows] == PASSED]
    return passed


def _bearing(snapshot: Snapshot, task: Task, standings: Standings) -> Iterator[tuple[Rows, Amounts | float]]:
    """Rows that bear something that the task names, and what that could be worth to them."""
    text = task.text
    yield from _worded(snapshot, task, standings, task.pull("lexical", "thread"))
    telling_context = [term for term in text.context_terms if not term.is_stop_word]
    for terms, pull in ((text.handles, task.pull("handles")), (telling_context, task.pull("context"))):
        attainable = sum(term.idf for term in terms)
        for term in terms:
            yield _some(term.rows, standings), pull * term.idf / attainable
    about = text.subject_field | text.subject_prefix
    if about.any():
        yield _some(np.flatnonzero(about).astype(np.int32), standings), task.pull("subject")
    if text.days_off is not None:
        near_day = np.flatnonzero(text.days_off < dates.FARTHEST_DAYS).astype(np.int32)
        near_day = _some(near_day, standings)
        yield near_day, task.pull("dates") * np.exp(-text.days_off[near_day] / dates.FADING_DAYS)


def _worded(
    snapshot: Snapshot, task: Task, standings: Standings, pull: float
) -> Iterator[tuple[Rows, Amounts | float]]:
    """Rows that bear the task's terms. Where every word counts alike, so it does here."""
    terms, alike, left = lexical.telling(task.text), "lexical" in task.weights.variants, POSTINGS
    attainable = len(terms) if alike else sum(term.idf for term in terms)
    for term in sorted(terms, key=lambda term: len(term.rows)):
        rows, counts = term.rows, term.counts
        left -= len(rows)
        if left < 0:
            best = standings.of_terms.get(term.term)
            if best is None:
                best = np.sort(_top(rows, _saturated(task.text, rows, counts), BEST_OF_TERM))
                if snapshot.score_version >= standings.score_version:
                    standings.of_terms[term.term] = best
            here = meeting(rows, best)[0]
            rows, counts = rows[here], counts[here]
        yield rows, pull / attainable * (1.0 if alike else term.idf * _saturated(task.text, rows, counts))


def _saturated(text: TextMatches, rows: Rows, counts: Rows) -> Floats:
    norm = lexical.K1 * (1.0 - lexical.B + lexical.B * text.lengths[rows] / max(text.mean_length, 1.0))
    share: Floats = counts / (counts + norm)
    return share


def _some(rows: Rows, standings: Standings) -> Rows:
    return rows if len(rows) <= MANY else _top(rows, _standing_at(standings, rows), MANY)


def _meaning(snapshot: Snapshot, task: Task, rows: Rows) -> Floats:
    cosines = snapshot.cosines_at(task.vector, rows)
    return task.text.trust * np.fmax(cosines, 0.0)  # NaN is 0


def _standing_at(standings: Standings, rows: Rows) -> NDArray[np.float32]:
    known = len(standings.amounts)
    return np.where(rows < known, standings.amounts[np.minimum(rows, known - 1)], np.float32(0.0))


def _top(rows: Rows, amounts: Amounts, count: int) -> Rows:
    if len(rows) <= count:
        return rows
    best: Rows = rows[np.argpartition(-amounts, count - 1)[:count]]
    return best


def _with_neighbours(columns: Columns, rows: Rows) -> Rows:
    """The rows and up to two on either side in their threads, ascending."""
    found = [rows]
    for links in (columns.previous_row, columns.next_row):
        beside = links[rows]
        beside = beside[beside >= 0]
        further = links[beside]
        found += [beside, further[further >= 0]]
    return _distinct(*found)


def _distinct(*parts: Rows) -> Rows:
    """Each row once, ascending."""
    rows = np.concatenate(parts)
    rows.sort()
    is_first = np.append(True, rows[1:] != rows[:-1])[: len(rows)]
    distinct: Rows = rows[is_first]
    return distinct
