"""What a reader of a snapshot can see, so that two snapshots can be compared."""

from __future__ import annotations

from typing import Any

import numpy as np

from sidecar.domain import Context, Filter
from sidecar.features.view import Columns
from sidecar.retrieval.snapshot import Snapshot

TASKS = ("What did Ann deploy with rotateApiKey?", "OPS-1234 猫 in 1970", "bob's release notes")
CONTEXT = Context(goals=("ship the release",), files=("svc/auth-gw/rotate.py",))
FILTERS = (
    Filter(),
    Filter(kinds=frozenset({"decision", "own"})),
    Filter(any_tags=frozenset({"x", "y"}), create_time_from=3),
    Filter(all_tags=frozenset({"x", "y"}), update_time_until=4),
    Filter(ids=frozenset({"a", "b", "nobody"}), exclude_ids=frozenset({"b"})),
    Filter(source_threads=frozenset({"t1"}), subjects=frozenset({"Ann"})),
)
TIMES = (0, 3, 7)


def picture(snapshot: Snapshot) -> dict[str, Any]:
    """Everything a reader can see, by id, so that rows do not matter."""
    columns = snapshot.columns
    live = np.flatnonzero(columns.live).tolist()
    ids = {row: columns.ids[row] for row in live}
    seen: dict[str, Any] = {"version": snapshot.score_version, "live": snapshot.live_count}
    for name in Columns.__slots__:
        if name in ("ids", "kinds", "kind", "live", "previous_row", "next_row"):
            continue
        values = getattr(columns, name)
        seen[name] = {ids[row]: values[row].tobytes() for row in live}
    seen["kind"] = {ids[row]: columns.kinds[columns.kind[row]] for row in live}
    for name in ("previous_row", "next_row"):
        linked = getattr(columns, name)
        seen[name] = {ids[row]: ids[int(linked[row])] if linked[row] >= 0 else None for row in live}
    seen["memories"] = {ids[row]: snapshot.memories[row] for row in live}
    seen["rows"] = dict(snapshot.row_of_id) == {ids[row]: row for row in live}
    for task in TASKS:
        text = snapshot.match(task, np.array([3.0, -1.0, 2.0], np.float32), CONTEXT)
        seen[task] = {
            "words": text.words,
            "mean": text.mean_length,
            "rows": {
                ids[row]: (
                    text.cosine[row].tobytes(),
                    text.lengths[row],
                    row in text.subject_field,
                    row in text.subject_prefix,
                    None if text.days_off is None else text.days_off[row],
                )
                for row in live
            },
            "terms": [
                (
                    term.term,
                    term.idf,
                    term.is_stop_word,
                    {ids[int(r)]: int(c) for r, c in zip(term.rows, term.counts, strict=True)},
                )
                for term in (*text.terms, *text.handles, *text.context_terms)
            ],
        }
    seen["filters"] = [
        sorted(ids[row] for row in np.flatnonzero(snapshot.filter_mask(wanted)).tolist()) for wanted in FILTERS
    ]
    for as_of in TIMES:
        hidden = snapshot.superseded_at(as_of)
        seen[f"superseded at {as_of}"] = sorted(ids[row] for row in live if hidden[row])
        seen[f"expiry after {as_of}"] = snapshot.next_expiry(as_of)
    return seen
