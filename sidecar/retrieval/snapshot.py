"""An immutable view of one namespace at one score version: what ranking reads, and how it finds."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from sidecar.domain import NO_CONTEXT, Change, Context, Filter, Memory, Micros, NamespaceState, UseCounts
from sidecar.features.frequency import most_uses
from sidecar.features.view import NO_TIME, Columns, Kept, Same, TermMatch, TextMatches, Words
from sidecar.retrieval import changing, contents, filtering, vectors
from sidecar.retrieval.contents import Contents, MemoryRows
from sidecar.retrieval.dates import days_off
from sidecar.retrieval.duplicates import FINGERPRINTS, Fingerprint, Outlines
from sidecar.retrieval.embedding import Embedder, TaskVector, WeighedWord
from sidecar.retrieval.handles import find_handles
from sidecar.retrieval.hashing import PLAIN
from sidecar.retrieval.lexical import inverse_document_frequency
from sidecar.retrieval.patterns import late
from sidecar.retrieval.rows import hidden
from sidecar.retrieval.sources import Aside, Held, Source
from sidecar.retrieval.static import StaticEmbedder
from sidecar.retrieval.subjects import find_subjects, without_names
from sidecar.retrieval.tokenizer import Token, task_words, tokenize

Mask = NDArray[np.bool_]

COMMON = 0.002
"""A word that is this share of all words in the namespace has half the weight of a new one."""
FEWEST_WORDS = 3_000
"""Words that a namespace is taken to have beside its own, so that a small one does not call its few words common."""
_WORD = late(r"[^\W_]+")
BYTES_A_ROW = 200
"""An id, and a share of what is kept between tasks."""
_NO_COSINES = np.empty(0)


@dataclass(frozen=True, slots=True, eq=False)
class Snapshot:
    """One namespace at one score version. Safe to read from any number of threads, for as long as wanted."""

    contents: Contents

    def __len__(self) -> int:
        """Rows, dead ones included."""
        return len(self.contents)

    @property
    def score_version(self) -> int:
        """Version of everything in the namespace that can change a ranking."""
        return self.contents.score_version

    @property
    def live_count(self) -> int:
        """Memories that live."""
        return self.contents.live_count

    @property
    def most_uses(self) -> float:
        """Sessions that used the most used memory."""
        return self.kept.once("most uses", lambda: most_uses(self.columns))

    @property
    def newest_key(self) -> int:
        """Key of the last memory that it was given; 0 for none."""
        return self.kept.once("newest key", lambda: int(self.columns.key.max(initial=0)))

    @property
    def columns(self) -> Columns:
        """The memories as arrays. `superseded` asks only whether a living memory replaces one: see superseded_at."""
        return self.contents.columns

    @property
    def nbytes(self) -> int:
        """What it takes in memory, about: its arrays, and a little for each row."""
        held = self.contents
        arrays = sum(array.nbytes for array in held.table.arrays.values())
        return arrays + held.terms.nbytes + held.marks.nbytes + BYTES_A_ROW * len(self)

    @property
    def kept(self) -> Kept:
        """For what follows from this snapshot, whatever the task."""
        return self.contents.kept

    @property
    def kept_of_texts(self) -> Kept:
        """For what follows from texts, threads and which rows live, whatever the task."""
        return self.contents.kept_of_texts

    @property
    def kept_of_memories(self) -> Kept:
        """For what follows from memories alone, all fields included; what is known of their use leaves it."""
        return self.contents.kept_of_memories

    @property
    def kept_of_rows(self) -> Kept:
        """Of all snapshots of this numbering of rows: for what can be moved on from one to the next."""
        return self.contents.kept_of_rows

    @property
    def memories(self) -> MemoryRows:
        """Row -> memory, without its embedding; a dead row's text is gone."""
        return self.contents.memories

    @property
    def row_of_id(self) -> Mapping[str, int]:
        """Id -> row, of live memories."""
        return self.contents.row_of_id

    def apply(self, change: Change) -> Snapshot:
        """The snapshot after a committed change; this one stays as it is. One writer at a time in a namespace."""
        return Snapshot(changing.changed(self.contents, change))

    def apart(self, change: Change) -> Snapshot:
        """The snapshot after a change that nobody has committed. It is a copy, which shares nothing that is written to,
        and may be moved on by `apply`."""
        copied = changing.compacted(self.contents)
        return Snapshot(changing.changed(replace(copied, source=Aside(copied.source)), change))

    def with_uses(self, uses: Mapping[int, UseCounts]) -> Snapshot:
        """The same snapshot with other use counts, by memory key; a memory without an entry was never used."""
        return Snapshot(changing.with_uses(self.contents, uses))

    def filter_mask(self, wanted: Filter) -> Mask:
        """Live rows that `wanted` lets through, shape (n,). InvalidRequestError for an unknown metadata key."""
        return filtering.filter_mask(self.contents, wanted)

    def task_vector(self, task: str, embedder: Embedder) -> TaskVector:
        """The task's vector, in which words that this namespace has in every other memory weigh little."""
        if isinstance(embedder, StaticEmbedder):
            return embedder.embed_task(task, list(self._weighed_words(task)))
        rest = without_names(task, self.contents.marks, self.contents.terms, self.columns.live)
        return TaskVector(embedder.embed([rest])[0])

    def match(
        self, task: str, task_vector: vectors.Vectors | None, context: Context = NO_CONTEXT, trust: float = 1.0
    ) -> TextMatches:
        """How every row matches a task. `task_vector` has the memories' dimension, of any length; None for no vector.

        ValueError if its dimension is another or it is not finite.
        """
        asked = None if task_vector is None else vectors.quantised(task_vector)[0]
        return self.with_vectors(self.match_text(task, context, trust), asked)

    def with_vectors(self, text: TextMatches, task: vectors.Codes | None) -> TextMatches:
        """What `match_text` found, with every row's cosine."""
        return replace(text, cosine=self._cosines(task))

    def match_text(self, task: str, context: Context = NO_CONTEXT, trust: float = 1.0) -> TextMatches:
        """The same without vectors: `cosine` is of no length."""
        tokens, words = task_words(task)
        known = self._terms
        about = find_subjects(task, self.contents.marks, self.columns.live)
        around = dict.fromkeys(
            token for text in (*context.goals, *context.projects, *context.files) for token in tokenize(text)
        )
        return TextMatches(
            cosine=_NO_COSINES,
            trust=trust,
            terms=tuple(map(known.__getitem__, tokens)),
            words=words,
            lengths=self.contents.table.column(contents.LENGTH),
            mean_length=self.contents.mean_length,
            handles=tuple(self._handle(handle.kind, handle.value) for handle in sorted(find_handles(task))),
            context_terms=tuple(map(known.__getitem__, around)),
            subject_field=about.field,
            subject_prefix=about.prefix,
            days_off=days_off(task, self.columns.create_time, self.columns.live),
        )

    def outlines(self, rows: Sequence[int]) -> Outlines:
        """What rejects most pairs of rows that are no near-duplicates."""
        return self.contents.table.column(contents.OUTLINE).take(rows, axis=0)

    def ids_at(self, rows: Iterable[int]) -> list[str]:
        """The ids of rows, in their order."""
        return list(map(self.contents.id_list.__getitem__, rows))

    def fingerprint(self, row: int) -> Fingerprint:
        """What tells whether the text of a row is a near-duplicate of another's."""
        return FINGERPRINTS.of(self.memories.content(row))

    def superseded_at(self, as_of_time: Micros, known: Mask | None = None) -> Mask:
        """True for rows that another memory replaces, directly or through a chain, and that is itself valid at
        `as_of_time`. Shape (n,).

        A replacement that has expired or is not yet valid, or is not `known` (None: all are), hides nothing; a
        suppressed one does, for what it replaced is out of date all the same. Of a cycle, the member learned last (then
        of the greatest id) survives; while that one is not valid, the last valid one before it does.
        """
        columns = self.columns
        if not columns.superseded.any():
            return np.zeros(len(self), dtype=bool)
        from_time, until_time = columns.valid_from_time, columns.valid_until_time
        valid = columns.live & (from_time <= as_of_time) & ((until_time == NO_TIME) | (until_time > as_of_time))
        if known is not None:
            valid &= known
        return hidden(self.contents.table.column(contents.SUPERSEDING), valid)

    def replacement(self, row: int) -> int:
        """The living row that a row names as its replacement; -1 for none."""
        return int(self.contents.table.column(contents.REPLACEMENT)[row])

    def replacements(self, row: int) -> list[int]:
        """What replaces a row, directly or through a chain, from the next one on; cycles are cut as superseded_at
        does."""
        links, found = self.contents.table.column(contents.SUPERSEDING), []
        while (row := int(links[row])) >= 0:
            found.append(row)
        return found

    def next_expiry(self, as_of_time: Micros) -> Micros | None:
        """The next time after `as_of_time` at which a memory becomes valid or expires, or None."""
        at = self.era(as_of_time)
        return int(self._turns[at]) if at < len(self._turns) else None

    def era(self, as_of_time: Micros) -> int:
        """A number that is the same for two times if no memory becomes valid or expires between them."""
        return int(self._turns.searchsorted(as_of_time, side="right")) if len(self._turns) else 0

    @property
    def _turns(self) -> NDArray[np.int64]:
        """Times at which a memory becomes valid or expires, ascending."""
        columns = self.columns
        of = Same(columns.valid_from_time, columns.valid_until_time)
        return self.kept_of_texts.latest("turns", of, self._find_turns)

    def _find_turns(self) -> NDArray[np.int64]:
        columns = self.columns
        bounds = (columns.valid_from_time, columns.valid_until_time)
        return np.unique(np.concatenate([times[columns.live & (times != NO_TIME)] for times in bounds]))

    def _cosines(self, task: vectors.Codes | None) -> NDArray[np.float64]:
        matrix = self.contents.table.column(contents.VECTOR)
        if task is None or not matrix.shape[1]:
            return np.full(len(self), np.nan)
        inverse = self.contents.table.column(contents.INVERSE_LENGTH)
        cosines = vectors.cosines(matrix, inverse, task)
        if not task.any():
            cosines[:] = np.nan
        elif len(without := self.kept_of_texts.once("no vector", lambda: np.flatnonzero(inverse == 0.0))):
            cosines[without] = np.nan
        return cosines

    def cosines_at(self, task: vectors.Codes | None, rows: NDArray[np.int32]) -> NDArray[np.float64]:
        """The cosines of some rows, as `match` gives them; NaN without vectors. Shape (len(rows),)."""
        matrix = self.contents.table.column(contents.VECTOR)
        if task is None or not matrix.shape[1]:
            return np.full(len(rows), np.nan)
        inverse = self.contents.table.column(contents.INVERSE_LENGTH).take(rows)
        cosines = vectors.cosines(matrix.take(rows, axis=0), inverse, task)
        cosines[(inverse == 0.0) if task.any() else slice(None)] = np.nan
        return cosines

    def _weighed_words(self, task: str) -> Iterator[WeighedWord]:
        """Each word with COMMON / (COMMON + its share of all words here): Arora, Liang & Ma (2017)."""
        all_terms, terms = self.contents.total_terms + FEWEST_WORDS, self._terms

        def weigh(word: str) -> float:
            share = min((int(terms[token].counts.sum()) for token in tokenize(word)), default=0) / all_terms
            return COMMON / (COMMON + share)

        weights: Words[str, float] = self.kept_of_texts.once("weights", lambda: Words(weigh))
        for match in _WORD.finditer(task):
            yield WeighedWord(*match.span(), weights[match[0]])

    @property
    def _terms(self) -> Words[Token, TermMatch]:
        contents = self.contents
        terms, live, live_count = contents.terms, contents.columns.live, contents.live_count

        def find(token: Token) -> TermMatch:
            rows, counts = terms.find(token.term, live, live_count == len(live))
            return TermMatch(
                token.term, inverse_document_frequency(live_count, len(rows)), rows, counts, token.is_stop_word
            )

        return self.kept_of_texts.once("terms", lambda: Words(find))

    def _handle(self, kind: str, value: str) -> TermMatch:
        rows, counts = self.contents.marks.find(("handle", kind, value), self.columns.live, self.contents.all_live)
        return TermMatch(f"{kind}:{value}", self._idf(len(rows)), rows, counts)

    def _idf(self, bearing: int) -> float:
        return inverse_document_frequency(self.contents.live_count, bearing)


def snapshot_from(state: NamespaceState, source: Source | None = None) -> Snapshot:
    """The snapshot of what the store holds. Its memories are kept in `source`; None means in memory, all of them."""
    before = changing.empty(source or Held(PLAIN))
    change = Change(state.namespace, state.score_version, upserted=state.memories, uses=state.uses)
    after = changing.changed(before, change)
    return Snapshot(changing.compacted(after) if len(after) >= changing.BULK_ROWS else after)


def snapshot_of(memories: Iterable[Memory]) -> Snapshot:
    """The snapshot of a caller's own list, without a store. Of memories with the same id the last counts.

    Memories without a key get negative ones, which no stored memory has.
    """
    keyed = tuple(
        memory if memory.key else replace(memory, key=-number) for number, memory in enumerate(memories, start=1)
    )
    return Snapshot(changing.changed(changing.empty(Held(PLAIN)), Change("", 0, upserted=keyed)))


def empty_snapshot(score_version: int = 0, source: Source | None = None) -> Snapshot:
    """The snapshot of a namespace without memories; those to come are kept in `source`, as above."""
    return Snapshot(changing.empty(source or Held(PLAIN), score_version))
