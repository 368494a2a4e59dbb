"""Whom a task asks about."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

from sidecar.domain import Memory
from sidecar.retrieval.embedders import make_embedder
from sidecar.retrieval.snapshot import Snapshot, snapshot_of
from sidecar.retrieval.vectors import Vectors

SPOKEN = [("Ann Smith" if n % 2 else "Will", f"I saw {'Zoë' if n % 3 else 'the sea'} on day {n}") for n in range(12)]


@pytest.fixture
def spoken() -> Snapshot:
    """Memories that begin with their speaker."""
    return snapshot_of([Memory(id=f"{n}", content=f"{who}: {what}") for n, (who, what) in enumerate(SPOKEN)])


def marked(snapshot: Snapshot, task: str) -> dict[str, int]:
    match = snapshot.match(task, None)
    found = {"field": match.subject_field, "prefix": match.subject_prefix}
    return {name: len(rows) for name, rows in found.items() if len(rows)}


@pytest.mark.parametrize("task", ["What did Ann see?", "what did ann see?", "ann smith's day", "ANN!", "Ann Smith"])
def test_a_speaker_is_known_by_full_or_first_name_in_any_case(spoken: Snapshot, task: str) -> None:
    """Memories that begin with the speaker are marked, also for a task in lower case."""
    assert marked(spoken, task)["prefix"] == 6


@pytest.mark.parametrize(("task", "found"), [("what will happen", 0), ("Will it rain", 0), ("What did Will see", 6)])
def test_a_name_that_is_also_a_common_word_needs_its_capital(spoken: Snapshot, task: str, found: int) -> None:
    """`will` is no person, `Will` in the middle of a task is."""
    assert marked(spoken, task).get("prefix", 0) == found


def test_who_is_merely_mentioned_is_no_subject(spoken: Snapshot) -> None:
    """A name inside sentences marks no memory as being about that person."""
    assert marked(spoken, "when was Zoë there") == {}


def test_a_speaker_of_few_memories_is_no_speaker() -> None:
    """A prefix that few memories have may be anything, such as a heading."""
    few = [Memory(id=f"{n}", content="Note: something") for n in range(4)]
    many = [Memory(id=f"m{n}", content="something else") for n in range(20)]
    assert marked(snapshot_of([*few, *many]), "what does the note say") == {}


def test_a_subject_field_counts_from_one_memory_on() -> None:
    """A subject is whom its memory is about, however few there are; the task may name it in any case."""
    snapshot = snapshot_of(
        [
            Memory(id="a", content="likes tea", subject="Ann Smith"),
            Memory(id="b", content="is slow on Mondays", subject="billing service"),
            Memory(id="c", content="買い物", subject="田中"),
            Memory(id="d", content="nothing", subject="the"),
        ]
    )
    for task, memory in (
        ("what does ann like", "a"),
        ("Ann Smith?", "a"),
        ("why is the billing service slow", "b"),
        ("Billing Service", "b"),
        ("田中さんは何を買いましたか", "c"),
    ):
        field = snapshot.match(task, None).subject_field
        assert [snapshot.columns.ids[row] for row in field.tolist()] == [memory], task
    for task in ("the billing of annual service", "smith", "中田", ""):
        assert not len(snapshot.match(task, None).subject_field), task


class Remembering:
    """An embedder that is not made of tokens, and keeps what it was asked for."""

    name, fingerprint, dimension = "remembering", "1", 2

    def __init__(self) -> None:
        self.texts: list[str] = []

    def embed(self, texts: Sequence[str]) -> Vectors:
        """The same vector for everything."""
        self.texts += texts
        return np.ones((len(texts), 2), np.float32)


def embedded(snapshot: Snapshot, task: str) -> str:
    """What of a task is embedded by a model that reads whole texts."""
    embedder = Remembering()
    snapshot.task_vector(task, embedder)
    return embedder.texts[0]


@pytest.mark.parametrize(
    ("task", "rest"),
    [
        ("What did Ann Smith see on day 3?", "What did see on day 3?"),
        ("what is ann's favourite sea", "what is favourite sea"),
        ("What did Will see, will it rain?", "What did see, will it rain?"),
        ("who is Ann?", "who is Ann?"),
        ("when was Zoë there", "when was Zoë there"),
        ("what did zoe's cat see", "what did cat see"),
        ("", ""),
    ],
)
def test_a_task_is_embedded_without_the_names_that_are_everywhere(spoken: Snapshot, task: str, rest: str) -> None:
    """Speakers, and names that many memories mention, are left out; a task about nothing else stays whole."""
    assert embedded(spoken, task) == rest


def test_a_speaker_in_a_script_without_spaces_is_left_out() -> None:
    """The name goes, the particle stays."""
    snapshot = snapshot_of([Memory(id=f"{n}", content=f"田中: 今日は{n}回泳いだ") for n in range(6)])
    assert embedded(snapshot, "田中さんはいつ泳いだか") == "さんはいつ泳いだか"


def test_a_word_that_is_everywhere_weighs_little_in_the_tasks_vector(spoken: Snapshot) -> None:
    """Token embedders weigh words: the speaker's name hardly moves the vector, a new word does."""
    embedder = make_embedder("wordllama")
    plain = embedder.embed(["Ann swim", "swim"])
    weighed = [spoken.task_vector(text, embedder).numbers for text in ("Ann swim", "swim")]
    assert weighed[0] @ weighed[1] > plain[0] @ plain[1] + 0.1
    alone = snapshot_of([Memory(id="a", content="nothing")])
    assert alone.task_vector("Ann swim", embedder).numbers == pytest.approx(plain[0], abs=1e-6)


def test_a_script_that_the_embedder_spells_out_is_trusted_less(spoken: Snapshot) -> None:
    """English is trusted whole, Korean by a quarter."""
    embedder = make_embedder("wordllama")
    assert spoken.task_vector("when does the train leave", embedder).trust == 1.0
    assert spoken.task_vector("기차는 언제 떠나나요", embedder).trust == 0.25
