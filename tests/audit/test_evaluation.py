"""Judged tasks are read as they are written, and ranked by the path that serves."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from sidecar.audit.datasets import read_dataset
from sidecar.audit.evaluation import MEASURES, PLACES, Outcome, System, differences, evaluate, occasions, order_of
from sidecar.errors import InvalidRequestError
from sidecar.retrieval.embedders import make_embedder
from sidecar.store.store import Store
from sidecar.weights import PRESETS, make_weights

NONE = make_embedder("none")
LEXICAL = System("lexical", make_weights("lexical", {"lexical": 1.0}), NONE)
DAY = "2026-03-{:02}T09:00:00+00:00"


def write(folder: Path, **changes: Any) -> Path:
    """A data set of four memories in two sessions."""
    contents = ["Which port does the proxy use?", "8080, since Monday", "The canary runs for 30 minutes", "Lunch"]
    data = {
        "id": "four",
        "memories": [
            {"id": f"m{n}", "content": content, "created_at": DAY.format(n + 1), "session": n // 2}
            for n, content in enumerate(contents)
        ],
        "queries": [
            {"qid": "q0", "query": "canary", "relevant": ["m2"], "category": "plain"},
            {"qid": "q1", "query": "proxy port", "relevant": ["m0", "m1"], "category": "thread"},
            {"qid": "q2", "query": "nothing", "relevant": [], "category": "plain"},
        ],
    }
    path = folder / "four.json"
    path.write_text(json.dumps(data | changes), encoding="utf-8")
    return path


def test_a_session_is_a_thread_in_the_order_of_the_file(tmp_path: Path) -> None:
    """Sessions become threads, tasks without anything relevant are left out, and now is after the last memory."""
    dataset = read_dataset(write(tmp_path))
    assert [(memory.source_thread, memory.source_sequence) for memory in dataset.memories] == [
        ("0", 0),
        ("0", 1),
        ("1", 2),
        ("1", 3),
    ]
    assert [task.id for task in dataset.tasks] == ["q0", "q1"]
    assert dataset.as_of_time == dataset.memories[3].create_time + 1_000_000


def test_threads_that_the_file_names_are_its_threads(tmp_path: Path) -> None:
    """Where any memory has a source thread, sessions say nothing; pins are left aside."""
    path = write(
        tmp_path,
        memories=[
            {"id": "a", "content": "x", "session": 1, "source_thread": "t", "source_sequence": 2, "pinned": True},
            {"id": "b", "content": "y", "session": 1},
        ],
        queries=[],
    )
    first, second = read_dataset(path).memories
    assert (first.source_thread, first.source_sequence, first.pinned) == ("t", 2, False)
    assert second.source_thread == ""


def test_everything_wrong_with_a_file_is_said_at_once(tmp_path: Path) -> None:
    """A relevant id that is no memory, an id twice, and a memory without content are listed together."""
    path = write(
        tmp_path,
        memories=[{"id": "a", "content": "x"}, {"id": "a", "content": "x"}, {"id": "b"}],
        queries=[{"query": "x", "relevant": ["z"]}],
    )
    with pytest.raises(InvalidRequestError) as caught:
        read_dataset(path)
    said = [f"{each.field} {each.description}" for each in caught.value.violations]
    for found, part in zip(said, ("memories[2]", "an id twice", "names z"), strict=True):
        assert part in found
    path.write_text("{", encoding="utf-8")
    with pytest.raises(InvalidRequestError, match="not JSON"):
        read_dataset(path)


def test_tasks_are_measured_one_by_one(tmp_path: Path) -> None:
    """By hand: the first task's one memory stands first; of the second's two, one stands first, the other third or so.

    A word alone finds m0 (`port`, `proxy`) and not m1, which comes with the rest in the order of ids: m0, m1, m2, m3.
    """
    found = evaluate([read_dataset(write(tmp_path))], [LEXICAL])[0]
    assert found.values.tolist() == [[1.0, 1.0, 1.0, 1.0, 1.0], [1.0, 1.0, 1.0, 1.0, 1.0]]
    assert found.means() == dict.fromkeys(MEASURES, 1.0)
    assert {name: count for name, (count, _) in found.by_category().items()} == {"plain": 1, "thread": 1}


def test_the_order_is_that_of_the_ranking_path(tmp_path: Path) -> None:
    """Near-duplicates, expired and superseded memories stay out, as in a packet; no slot is drawn."""
    memories = [
        {"id": "new", "content": "The port is 8080", "created_at": DAY.format(2)},
        {"id": "old", "content": "The port is 80", "created_at": DAY.format(1), "superseded_by": "new"},
        {"id": "gone", "content": "The port is 99", "created_at": DAY.format(1), "valid_until": DAY.format(2)},
        {"id": "same", "content": "The port is 8080!", "created_at": DAY.format(2)},
        {"id": "other", "content": "Lunch", "created_at": DAY.format(3)},
    ]
    path = write(tmp_path, memories=memories, queries=[{"query": "port", "relevant": ["new"]}])
    dataset = read_dataset(path)
    with Store.open(tmp_path / "store") as store:
        occasion = occasions(dataset, System("default", PRESETS["default"], NONE), store)(dataset.tasks[0])
    assert order_of(occasion) == ["new", "other"]
    assert occasion.limits().slots == 0


def test_no_more_places_are_looked_at_than_said(tmp_path: Path) -> None:
    """What stands below PLACES counts as not found."""
    memories = [{"id": f"m{n:03}", "content": f"note {n} about {n * 7919}"} for n in range(PLACES + 5)]
    queries = [{"query": "unheard", "relevant": [memories[-1]["id"]]}]
    found = evaluate([read_dataset(write(tmp_path, memories=memories, queries=queries))], [LEXICAL])[0]
    assert found.values.tolist() == [[0.0] * 5]


def test_a_system_differs_from_itself_by_nothing_and_from_another_the_same_every_time() -> None:
    """The interval holds the mean, and two calls draw the same resamples."""
    rng = np.random.default_rng(1)
    one, other = (Outcome(name, rng.random((40, len(MEASURES))), ("",) * 40) for name in ("one", "other"))
    for found in differences(one, one).values():
        assert (found.mean, found.low, found.high) == (0.0, 0.0, 0.0)
    for found in differences(one, other).values():
        assert found.low < found.mean < found.high
    assert differences(one, other) == differences(one, other)


def test_the_demo_store_is_ranked_better_than_by_any_single_feature() -> None:
    """The shipped weights reach more than words or meaning alone on the store that ships with them."""
    dataset = read_dataset(Path(__file__).resolve().parents[2] / "sidecar" / "demo" / "store.json")
    wordllama = make_embedder("wordllama")
    systems = [System("default", PRESETS["default"], wordllama)]
    systems += [System(name, make_weights(name, {name: 1.0}), wordllama) for name in ("lexical", "semantic")]
    default, *others = (outcome.means()["ndcg@10"] for outcome in evaluate([dataset], systems))
    assert default > max(others) + 0.05
