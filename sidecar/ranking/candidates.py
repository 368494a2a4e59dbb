"""Which memories of a large namespace are scored for a task: those that could come to stand at the top.

What is chosen here is approximate, and nothing else: a candidate's score is computed by the code that scores
everything, from the same numbers. docs/speed.md says how well the choice is made.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sidecar.domain import Floats, Micros
from sidecar.features import FEATURE_NAMES, Columns, TermMatch, TextMatches, View, dates, lexical
from sidecar.features.view import MOST_WORDS
from sidecar.ranking.gates import PASSED, Gates
from sidecar.ranking.standing import standing_of
from sidecar.retrieval.near import Near, Standings
from sidecar.retrieval.part import Part, meeting
from sidecar.retrieval.snapshot import Snapshot
from sidecar.retrieval.vectors import Codes
from sidecar.weights import Weights, add_up

Rows = NDArray[np.int32]
Amounts = NDArray[np.floating[Any]]
Bearing = tuple[Rows, Amounts]
"""Rows, each once, and what they might have of something that a task asks for."""

LOOKED_AT = 800
"""Rows whose vectors are compared with the task's, at least."""
STANDING_LOOKED_AT = 300
"""Rows beside them: those that stand best before any task."""
DEEPER = 15
DEEPER_BY_ROOT = 0.045
"""So many times as many of both, or this share of the root of all rows times, are looked at for weights by which words
hardly count: then it is meaning and standing together that decide, and none of the two finds the best alone."""
FEWEST_WORDS = 0.4
"""Words hardly count below this share of what words and meaning count."""
BEST_OF_TERM = 1_024
"""Rows to which a word of the task gives most are taken, so many;"""
POSTINGS = 20_000
FEWEST_OF_TERM = 64
"""of a task of many words fewer of each: about POSTINGS together, but no fewer than FEWEST_OF_TERM."""
LEAST_PULL = 1e-3
"""So much words count here at least: what bears them is near in meaning."""
MANY = 2_000
"""Of more rows that share a handle, a subject or a date, those are taken that stand best."""
SHORTLIST = 1_000
"""Of the other rows so many that bear most are compared by meaning, too."""
SEEDS = 300
SEEDS_OF_DEEPER = 500
"""The best of these are candidates, more where it is looked deeper;"""
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
    vector: Codes | None
    weights: Weights

    def pull(self, *features: str) -> float:
        """The weights of features together; the passage is half wording and half meaning."""
        share = {"thread": 0.5}
        return sum(share.get(name, 1.0) * float(self.weights.values[FEATURE_NAMES.index(name)]) for name in features)

    @property
    def counts_words_alike(self) -> bool:
        """True for weights by which a common word counts as much as a rare one."""
        return "lexical" in self.weights.variants

    @property
    def worth_of_a_word(self) -> float:
        """What one of them is worth then."""
        return self.pull("lexical", "thread") / len(lexical.telling(self.text))

    def words_by_rarity(self) -> tuple[list[TermMatch], list[TermMatch]]:
        """The rarest terms, of POSTINGS rows together, and the others."""
        terms = sorted(lexical.telling(self.text), key=lambda term: len(term.rows))
        rare = int(np.searchsorted(np.cumsum([len(term.rows) for term in terms]), POSTINGS, side="right"))
        return terms[:rare], terms[rare:]


def candidates_of(snapshot: Snapshot, task: Task, gates: Gates, standings: Standings, fewest_sessions: int) -> Rows:
    """The rows to be scored, ascending: all passed the gates. `fewest_sessions` is below what a memory may have been
    reported on in for reserved slots to draw it."""
    codes, columns, near = gates.codes, snapshot.columns, snapshot.contents.near
    pull, words = task.pull("semantic", "thread"), task.pull("lexical", "thread")
    is_deep = task.counts_words_alike or words < FEWEST_WORDS * (pull + words)
    depth = max(DEEPER, int(DEEPER_BY_ROOT * len(snapshot) ** 0.5)) if is_deep else 1
    best = _passing(standings.best, codes)
    nearest = _alike(_nearest(near, task, codes, LOOKED_AT * depth), 0.0)
    standing_best = _alike(best[: STANDING_LOOKED_AT * depth], 0.0)
    rows, amounts, is_compared = _added_up(nearest, standing_best, *_bearing(snapshot, task, standings))
    passed = np.flatnonzero(codes.take(rows[: rows.searchsorted(len(codes))]) == PASSED)
    rows, amounts, is_compared = rows.take(passed), amounts.take(passed), is_compared.take(passed)
    amounts += _standing_at(standings, rows)
    if task.counts_words_alike:
        for term in task.words_by_rarity()[1]:
            amounts[meeting(rows, term.rows)[0]] += task.worth_of_a_word
    if pull:
        others = np.flatnonzero(~is_compared)
        is_compared[others.take(_best_of(amounts.take(others), SHORTLIST * depth))] = True
        compared = np.flatnonzero(is_compared)
        amounts[compared] += pull * _meaning(snapshot, task, rows.take(compared))
    at = _best_of(amounts, SEEDS_OF_DEEPER if is_deep else SEEDS)
    seeds = rows[at]
    around = _with_neighbours(columns, seeds[_best_of(amounts[at], WITH_NEIGHBOURS)])
    if np.count_nonzero(columns.reported_sessions.take(seeds) < fewest_sessions) < min(NEW_TO_USE, len(seeds)):
        drawn = np.flatnonzero(columns.reported_sessions.take(rows) < fewest_sessions)
        seeds = np.concatenate((seeds, rows[drawn[_best_of(amounts[drawn], NEW_TO_USE)]]))
    fresh = np.arange(min(len(standings.amounts), len(near.cells or ())), len(snapshot), dtype=np.int32)
    touched = np.array(standings.touched[:], dtype=np.int32)
    pinned = gates.pinned.astype(np.int32)
    return _passing(_distinct(seeds, around, best[:BEST_STANDING], fresh, touched, pinned), codes)


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
_NO_ROWS = np.empty(0, np.int32)
_NO_TEXT = TextMatches(_NO_FLOATS, 1.0, (), (), _NO_FLOATS, 0.0, (), (), _NO_ROWS, _NO_ROWS, None)


def _added_up(compared: Bearing, *others: Bearing) -> tuple[Rows, Amounts, NDArray[np.bool_]]:
    """All rows, ascending, each once; what they bear together; and which of them are among those to be `compared`."""
    every = (compared, *others)
    rows = np.concatenate([rows for rows, _ in every])
    if not len(rows):
        return rows, np.empty(0), np.empty(0, bool)
    amounts = np.concatenate([amounts for _, amounts in every])
    order = rows.argsort()
    rows = rows.take(order)
    is_first = _is_first(rows)
    at = is_first.cumsum() - 1
    is_compared = np.zeros(at[-1] + 1, bool)
    is_compared[at[order < len(compared[0])]] = True
    added_up = np.asarray(np.bincount(at, weights=amounts.take(order)), np.float64)
    return rows[is_first], added_up, is_compared


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


def _bearing(snapshot: Snapshot, task: Task, standings: Standings) -> Iterator[Bearing]:
    """Rows that bear something that the task names, and what that could be worth to them."""
    text = task.text
    if task.counts_words_alike:
        yield from (_alike(term.rows, task.worth_of_a_word) for term in task.words_by_rarity()[0])
    else:
        yield from _worded(snapshot, task, standings)
    telling_context = [term for term in text.context_terms if not term.is_stop_word]
    for terms, pull in ((text.handles, task.pull("handles")), (telling_context, task.pull("context"))):
        attainable = sum(term.idf for term in terms)
        for term in terms:
            yield _alike(_some(term.rows, standings), pull * term.idf / attainable)
    if len(text.subject_field) or len(text.subject_prefix):
        yield _alike(_some(_distinct(text.subject_field, text.subject_prefix), standings), task.pull("subject"))
    if text.days_off is not None:
        near_day = np.flatnonzero(text.days_off < dates.FARTHEST_DAYS).astype(np.int32)
        near_day = _some(near_day, standings)
        yield near_day, task.pull("dates") * np.exp(-text.days_off[near_day] / dates.FADING_DAYS)


def _alike(rows: Rows, amount: float) -> Bearing:
    return rows, np.full(len(rows), amount)


def _worded(snapshot: Snapshot, task: Task, standings: Standings) -> Iterator[Bearing]:
    """Of each of the task's terms the rows to which it gives most."""
    terms, known = lexical.telling(task.text), standings.of_terms
    pull, attainable = max(task.pull("lexical", "thread"), LEAST_PULL), lexical.attainable_of(terms)
    most = max(FEWEST_OF_TERM, min(BEST_OF_TERM, POSTINGS // max(len(terms), 1)))
    for term in terms:
        best = known.get(term.term)
        if best is None:
            rows, given = term.rows, pull * term.idf * _saturated(task.text, term.rows, term.counts)
            found = given + _standing_at(standings, rows)
            at = _best_of(found, BEST_OF_TERM)
            at = at[np.argsort(-found[at])]
            best = rows[at], given[at].astype(np.float32)
            if snapshot.score_version >= standings.score_version:
                if len(known) >= MOST_WORDS:
                    known.clear()
                known[term.term] = best
        yield best[0][:most], best[1][:most] / np.float32(attainable)


def _saturated(text: TextMatches, rows: Rows, counts: Rows) -> Floats:
    norm = lexical.K1 * (1.0 - lexical.B + lexical.B * text.lengths[rows] / max(text.mean_length, 1.0))
    share: Floats = counts / (counts + norm)
    return share


def _some(rows: Rows, standings: Standings) -> Rows:
    return rows if len(rows) <= MANY else rows[_best_of(_standing_at(standings, rows), MANY)]


def _meaning(snapshot: Snapshot, task: Task, rows: Rows) -> Floats:
    cosines = snapshot.cosines_at(task.vector, rows)
    return task.text.trust * np.fmax(cosines, 0.0)  # NaN is 0


def _standing_at(standings: Standings, rows: Rows) -> NDArray[np.float32]:
    """What is known of rows that ascend, 0 of those that came since."""
    known = standings.amounts
    found = known.take(rows[: rows.searchsorted(len(known))])
    return found if len(found) == len(rows) else np.append(found, np.zeros(len(rows) - len(found), np.float32))


def _best_of(amounts: Amounts, count: int) -> NDArray[np.intp]:
    """Where so many of the greatest stand, in no order."""
    return np.arange(len(amounts)) if len(amounts) <= count else np.argpartition(-amounts, count - 1)[:count]


def _with_neighbours(columns: Columns, rows: Rows) -> Rows:
    """The rows and up to two on either side in their threads, ascending."""
    found = [rows]
    for links in (columns.previous_row, columns.next_row):
        beside = links.take(rows)
        beside = beside[beside >= 0]
        further = links.take(beside)
        found += [beside, further[further >= 0]]
    return _distinct(*found)


def _distinct(*parts: Rows) -> Rows:
    """Each row once, ascending."""
    rows = np.concatenate(parts)
    rows.sort()
    distinct: Rows = rows[_is_first(rows)]
    return distinct


def _is_first(rows: Rows) -> NDArray[np.bool_]:
    """True for each of the ascending rows that is not the one before it."""
    is_first = np.ones(len(rows), bool)
    np.not_equal(rows[1:], rows[:-1], out=is_first[1:])
    return is_first
