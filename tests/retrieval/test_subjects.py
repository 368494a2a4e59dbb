"""Whom a task asks about."""

from __future__ import annotations

import numpy as np
import pytest

from sidecar.domain import Memory
from sidecar.retrieval.snapshot import Snapshot, snapshot_of

SPOKEN = [("Ann Smith" if n % 2 else "Will", f"I saw {'Zoë' if n % 3 else 'the sea'} on day {n}") for n in range(12)]


@pytest.fixture
def spoken() -> Snapshot:
    """Memories that begin with their speaker."""
    return snapshot_of([Memory(id=f"{n}", content=f"{who}: {what}") for n, (who, what) in enumerate(SPOKEN)])


def marked(snapshot: Snapshot, task: str) -> dict[str, int]:
    match = snapshot.match(task, None)
    masks = {"field": match.subject_field, "prefix": match.subject_prefix, "mention": match.subject_mention}
    return {name: int(np.count_nonzero(mask)) for name, mask in masks.items() if mask.any()}


@pytest.mark.parametrize("task", ["What did Ann see?", "what did ann see?", "ann smith's day", "ANN!", "Ann Smith"])
def test_a_speaker_is_known_by_full_or_first_name_in_any_case(spoken: Snapshot, task: str) -> None:
    """Memories that begin with the speaker are marked, also for a task in lower case."""
    assert marked(spoken, task)["prefix"] == 6


@pytest.mark.parametrize(("task", "found"), [("what will happen", 0), ("Will it rain", 0), ("What did Will see", 6)])
def test_a_name_that_is_also_a_common_word_needs_its_capital(spoken: Snapshot, task: str, found: int) -> None:
    """`will` is no person, `Will` in the middle of a task is."""
    assert marked(spoken, task).get("prefix", 0) == found


@pytest.mark.parametrize("task", ["when was Zoë there", "when was Zoe there", "when was zoe there", "Zoë's day"])
def test_a_name_that_many_memories_mention_is_marked(spoken: Snapshot, task: str) -> None:
    """A name inside sentences is found by mention, with or without its accents and capital."""
    assert marked(spoken, task) == {"mention": 8}


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
        assert [snapshot.columns.ids[row] for row in np.flatnonzero(field).tolist()] == [memory], task
    for task in ("the billing of annual service", "smith", "中田", ""):
        assert not snapshot.match(task, None).subject_field.any(), task


def test_whoever_is_known_is_also_marked_where_mentioned() -> None:
    """Memories that only name a known subject are marked as mentioning it, in any case."""
    snapshot = snapshot_of(
        [Memory(id="a", content="likes tea", subject="Ann"), Memory(id="b", content="saw ann at noon")]
    )
    assert marked(snapshot, "ann") == {"field": 1, "mention": 1}


@pytest.mark.parametrize(
    ("task", "rest"),
    [
        ("What did Ann Smith see on day 3?", "What did see on day 3?"),
        ("what is ann's favourite sea", "what is favourite sea"),
        ("What did Will see, will it rain?", "What did see, will it rain?"),
        ("who is Ann?", "who is Ann?"),
        ("when was Zoë there", "when was Zoë there"),
        ("", ""),
    ],
)
def test_a_task_is_embedded_without_the_names_of_speakers(spoken: Snapshot, task: str, rest: str) -> None:
    """Known speakers are left out of what is embedded; other names stay, and so does a task about nothing else."""
    assert spoken.task_to_embed(task) == rest


def test_a_speaker_in_a_script_without_spaces_is_left_out() -> None:
    """The name goes, the particle stays."""
    snapshot = snapshot_of([Memory(id=f"{n}", content=f"田中: 今日は{n}回泳いだ") for n in range(6)])
    assert snapshot.task_to_embed("田中さんはいつ泳いだか") == "さんはいつ泳いだか"
