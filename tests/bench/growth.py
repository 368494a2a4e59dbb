"""`python -m tests.bench.growth FOLDER [COUNT ...]`: what finding and scoring costs as a namespace grows, with all
memories scored and with candidates, and how many of the best twenty the candidates hold. In process, in CPU time;
writes docs/growth.json, of which docs/pictures.py makes a picture.

Indexes are made once and kept in FOLDER: a million memories take some minutes and 1.5 GB there. Their arrays are made
directly, of texts as `workload.topical` has them; a text's vector is the sum of its words'.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from sidecar.domain import DAY, RankRequest
from sidecar.features.view import NO_TIME
from sidecar.ranking.gates import PASSED
from sidecar.ranking.occasion import Occasion
from sidecar.ranking.ranker import Ranker
from sidecar.retrieval import changing, index_file, vectors
from sidecar.retrieval import contents as names
from sidecar.retrieval.chooser import Chooser
from sidecar.retrieval.contents import Contents
from sidecar.retrieval.embedders import make_embedder
from sidecar.retrieval.hashing import PLAIN
from sidecar.retrieval.namespaces import Namespaces
from sidecar.retrieval.near import Near
from sidecar.retrieval.postings import EMPTY, Packed
from sidecar.retrieval.snapshot import Snapshot
from sidecar.retrieval.sources import Held
from sidecar.retrieval.table import Table
from sidecar.retrieval.tokenizer import tokenize
from sidecar.store.store import Store
from sidecar.weights import WeightsHolder
from tests.bench import workload
from tests.features.building import NOW

OUTPUT = Path(__file__).parents[2] / "docs" / "growth.json"
COUNTS = (1_000, 3_000, 10_000, 30_000, 100_000, 300_000, 1_000_000)
TASKS = 60
AT_ONCE = 20_000


def made(count: int) -> Contents:
    """A namespace of so many memories."""
    rng = np.random.default_rng(1)
    words, lengths = workload.topical_words(count)
    starts = np.concatenate(([0], np.cumsum(lengths)))
    row = np.repeat(np.arange(count, dtype=np.int32), lengths)
    known = workload.words(1)
    embedder = make_embedder("wordllama")
    of_word = embedder.embed(known)
    vector = np.empty((count, embedder.dimension), np.int8)
    for first in range(0, count, AT_ONCE):
        last = min(count, first + AT_ONCE)
        theirs = of_word[words[starts[first] : starts[last]]]
        vector[first:last] = vectors.quantised(np.add.reduceat(theirs, starts[first:last] - starts[first], axis=0))
    hashes = np.array([PLAIN.of(next(iter(tokenize(word))).term) for word in known], np.uint64)
    order = np.lexsort((row, hashes[words]))
    key, bearing = hashes[words][order], row[order]
    first_of = np.flatnonzero(np.append(True, (key[1:] != key[:-1]) | (bearing[1:] != bearing[:-1])))
    times = np.diff(np.append(first_of, len(key))).astype(np.int32)
    key, bearing = key[first_of], bearing[first_of]
    each, begin = np.unique(key, return_index=True)
    terms = Packed.of(each, np.append(begin, len(key)).astype(np.int64), bearing, times, count)
    columns = {name: np.zeros(count, dtype) for name, dtype in changing.COLUMN_TYPES.items() if name != names.VECTOR}
    columns |= {name: np.full(count, -1, np.int32) for name in changing.LINKS}
    for name in ("valid_from_time", "valid_until_time", "last_use_time"):
        columns[name][:] = NO_TIME
    for name in ("importance_use", "importance_override"):
        columns[name][:] = np.nan
    at = np.arange(count)
    reported = np.where(rng.random(count) < 0.15, rng.integers(1, 9, count), 0)
    columns |= {
        names.VECTOR: vector,
        names.INVERSE_LENGTH: vectors.inverse_lengths(vector),
        names.LENGTH: lengths.astype(np.float64),
        names.ALL_TERMS: lengths.astype(np.float64),
        "key": at + 1,
        "live": np.ones(count, bool),
        "kind": (at % len(workload.KINDS)).astype(np.int32),
        "create_time": NOW - (60 * DAY * rng.exponential(size=count)).astype(np.int64),
        "importance_content": rng.beta(4, 3, count),
        "reported_sessions": reported.astype(np.int32),
        "seen": reported.astype(np.float64),
        "used": rng.binomial(reported, 0.3).astype(np.float64),
        "previous_row": np.where(at % 20 == 0, -1, at - 1).astype(np.int32),
        "next_row": np.where((at % 20 == 19) | (at == count - 1), -1, at + 1).astype(np.int32),
    }
    ids = [f"m{number:07d}" for number in range(count)]
    return changing.of_arrays(Held(PLAIN), 1, Table.of(columns, count), workload.KINDS, ids, terms, EMPTY)


def kept(folder: Path, count: int) -> Contents:
    """The same from a file in `folder`, which is made if it is not there or not good; with cells."""
    path, identity = folder / f"growth-{count}", "growth"
    try:
        found = index_file.read(path, identity, 1)
    except (OSError, index_file.UnusableError):
        path.unlink(missing_ok=True)
        contents = made(count)
        chooser = Chooser(_Standing(contents), 0, period=1e9)
        chooser.look()
        chooser.close()
        index_file.write(path, contents, identity)
        found = index_file.read(path, identity, 1)
    table, ids = Table.of(found.columns, found.rows), [f"m{number:07d}" for number in range(count)]
    near = Near(cells=found.cells)
    return changing.of_arrays(Held(PLAIN), 1, table, found.kinds, ids, found.terms, found.marks, near)


class _Standing(Namespaces):
    """One namespace that is there."""

    def __init__(self, contents: Contents) -> None:
        super().__init__(lambda _: (_ for _ in ()).throw(KeyError))
        self._snapshot = Snapshot(contents)

    def get(self, namespace: str) -> Snapshot:
        return self._snapshot

    def settled(self, namespace: str) -> Snapshot:
        return self._snapshot

    def loaded(self) -> list[str]:
        return ["n"]


def best(occasion: Occasion) -> set[str]:
    """Ids of the twenty that score highest; of equal scores, those of the lesser ids."""
    scored = occasion.scored
    rows = np.flatnonzero(scored.gates.codes == PASSED)
    return {scored.columns.ids[row] for row in rows[np.lexsort((rows, -scored.score[rows]))][:20].tolist()}


def measure(contents: Contents, store: Store) -> dict[str, float]:
    """CPU milliseconds of finding and scoring, the median over tasks, and the share of the best twenty."""
    count, namespaces = len(contents), _Standing(contents)
    embedder, weights = make_embedder("wordllama"), WeightsHolder()
    exact, cut = (
        Ranker(store, namespaces, embedder, weights, lambda: NOW, exact_up_to=limit) for limit in (0, count // 50)
    )
    requests = [RankRequest("n", task, max_items=20) for task in workload.topical_tasks(TASKS, count)]
    cut.occasions.prepare(requests[0], lambda: None)
    chooser = Chooser(namespaces, 0, period=1e9)
    chooser.look()
    chooser.close()
    spent: dict[Ranker, list[float]] = {exact: [], cut: []}
    found = 0
    for request in requests:
        tops = []
        for ranker, times in spent.items():
            ranker.occasions.prepare(request, lambda: None)
            start = time.thread_time()
            occasion = ranker.occasions.prepare(request, lambda: None)
            times.append(1e3 * (time.thread_time() - start))
            tops.append(best(occasion))
        found += len(tops[0] & tops[1])
    return {
        "memories": count,
        "exact_ms": round(float(np.median(spent[exact])), 3),
        "candidates_ms": round(float(np.median(spent[cut])), 3),
        "recall": round(found / (20 * TASKS), 4),
    }


def main(folder: Path, counts: Sequence[int]) -> None:
    """Measures one size after the other."""
    rows = []
    with tempfile.TemporaryDirectory() as empty, Store.open(Path(empty)) as store:
        for count in counts:
            rows.append(measure(kept(folder, count), store))
            print(json.dumps(rows[-1]), flush=True)
    OUTPUT.write_text(json.dumps(rows, indent=1) + "\n")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(prog="python -m tests.bench.growth", description=__doc__)
    parser.add_argument("folder", type=Path, help="where indexes are kept for the next run")
    parser.add_argument("count", type=int, nargs="*", default=COUNTS, help="memories of one size after the other")
    given = parser.parse_args()
    main(given.folder, given.count)
