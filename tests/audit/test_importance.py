"""Trends and fairness of importances, with a known truth, over plain numbers and over a real store."""

from __future__ import annotations

import random
from dataclasses import replace
from pathlib import Path

import pytest

from sidecar.audit.importance import FEWEST_OF_GROUP, MOST_GROUPS, Evidence, Gap, Trend, gaps, score, trends
from sidecar.domain import SECOND, UseCounts, UseReport
from sidecar.feedback.rescore import Rescorer
from sidecar.importance.language import language_of
from sidecar.store.audit_importance import JudgedMemory, Move, RunMoves, read_judged, read_runs
from sidecar.store.jobs import Done
from sidecar.store.packets import insert, to_rows
from sidecar.store.store import Store
from tests.audit.test_audit import packet

NOW = 1_790_000_000 * SECOND


def memories(count: int, seed: int, lower: float = 0.0) -> list[JudgedMemory]:
    """Memories of four languages, used alike; those in Thai score lower by so much."""
    dice = random.Random(seed)
    found = []
    for n in range(count):
        language = ("en", "ko", "de", "th")[n % 4]
        seen = dice.randint(1, 12)
        used = dice.randint(0, seen)
        content = min(max(dice.gauss(0.55, 0.12) - (lower if language == "th" else 0.0), 0.0), 1.0)
        author = ("anna", "bo", "")[n % 3]
        found.append(JudgedMemory("n", "fact", author, language, content, used / seen, UseCounts(used, seen)))
    return found


def gap_of(found: list[Gap], dimension: str, group: str) -> Gap:
    return next(each for each in found if (each.dimension, each.group) == (dimension, group))


def test_a_language_that_scores_lower_for_equal_use_is_found() -> None:
    """By how much, with an interval around the truth; the others are not called lower."""
    # .6 of the content counts beside a use part: .1 of content is .06 of the score.
    found = gaps(memories(2_000, seed=1, lower=0.15))
    thai = gap_of(found, "language", "th")
    assert thai.evidence is Evidence.LOWER
    assert thai.low <= -0.09 <= thai.high
    assert thai.memories == 500
    assert all(each.evidence is not Evidence.LOWER for each in found if each.group != "th")


def test_used_less_is_not_unfair() -> None:
    """A group that is used less, and scores lower for it, is compared with what is used as little."""
    dice = random.Random(2)
    found = []
    for n in range(2_000):
        group = ("en", "th")[n % 2]
        seen = 10
        used = dice.choices((0, 1, 2, 5, 9), (6, 3, 2, 1, 1) if group == "th" else (1, 1, 2, 3, 6))[0]
        content = min(max(dice.gauss(0.55, 0.1), 0.0), 1.0)
        found.append(JudgedMemory("n", "fact", "", group, content, used / seen, UseCounts(used, seen)))
    mean = {
        group: sum(score(each.kind, each.content, each.use) for each in found if each.language == group) / 1_000
        for group in ("en", "th")
    }
    assert mean["th"] < mean["en"] - 0.1
    assert abs(gap_of(gaps(found), "language", "th").gap) < 0.03


def test_chance_is_seldom_called_unfair() -> None:
    """Of 100 stores in which all score alike at most 5 have a group that is called lower."""
    called = sum(any(each.evidence is Evidence.LOWER for each in gaps(memories(300, seed=seed))) for seed in range(100))
    assert called <= 5


def test_too_few_are_insufficient() -> None:
    """Of a group, or of what it could be compared with; an interval that says nothing says so."""
    found = gaps(memories(4 * FEWEST_OF_GROUP - 8, seed=3, lower=0.5))
    thai = gap_of(found, "language", "th")
    assert thai.evidence is Evidence.INSUFFICIENT
    assert thai.low < -1 < 1 < thai.high
    assert gaps([]) == []


def test_memories_without_an_author_are_no_group() -> None:
    """And a dimension of one group alone says nothing."""
    found = gaps(memories(400, seed=4))
    assert {each.group for each in found if each.dimension == "author"} == {"anna", "bo"}
    assert not [each for each in found if each.dimension == "kind"]


def test_of_many_authors_the_largest_are_compared() -> None:
    """Quickly, and with as many intervals as are shown."""
    found = []
    for n, memory in enumerate(memories(6_000, seed=6)):
        found.append(replace(memory, author="anna" if n % 2 else f"author-{n % 999}"))
    authors = [each for each in gaps(found) if each.dimension == "author"]
    assert len(authors) == MOST_GROUPS
    assert gap_of(authors, "author", "anna").memories == 3_000
    assert gap_of(authors, "author", "anna").evidence is Evidence.NONE


def moved(runs: int, count: int, by: float, seed: int = 0) -> list[RunMoves]:
    """Runs that each move the use part of so many memories by about that much."""
    dice = random.Random(seed)
    use = {key: dice.uniform(0.45, 0.55) for key in range(count)}
    found = []
    for number in range(runs):
        moves = []
        for key, before in use.items():
            use[key] = min(max(before + dice.gauss(by, 0.05), 0.0), 1.0)
            moves.append(Move(key, "fact", 0.6, before, use[key]))
        found.append(RunMoves("n", f"run-{number}", NOW + number, tuple(moves)))
    return found


def only(found: list[Trend]) -> Trend:
    (trend,) = found
    return trend


@pytest.mark.parametrize(("by", "evidence"), [(0.08, Evidence.HIGHER), (-0.08, Evidence.LOWER), (0.0, Evidence.NONE)])
def test_a_trend_is_told_with_its_interval(by: float, evidence: Evidence) -> None:
    """Four runs of .08 in the use part move the score by .4 of it each."""
    trend = only(trends(moved(4, 200, by)))
    assert trend.evidence is evidence
    assert trend.low <= 4 * 0.4 * by <= trend.high
    assert [run.moved for run in trend.runs] == [200] * 4
    assert trend.runs[0].before + trend.move == pytest.approx(trend.runs[-1].after)


def test_two_runs_or_few_memories_are_no_trend() -> None:
    """They are shown, and called insufficient."""
    assert only(trends(moved(2, 200, 0.1))).evidence is Evidence.INSUFFICIENT
    assert only(trends(moved(4, 5, 0.1))).evidence is Evidence.INSUFFICIENT
    assert trends([]) == []


def test_both_are_read_from_a_store(tmp_path: Path) -> None:
    """What was used rises over three rescores; a run that was undone, and a memory with its user's word, are left
    out."""
    with Store.open(tmp_path / "data") as store:
        texts = {
            "m1": "The deploy needs a canary",
            "m2": "배포에는 카나리가 필요합니다",
            "m3": "Der Umzug ist am Montag",
        }
        fields = {"tokens": 1, "kind": "fact", "metadata": {"author": "anna"}}
        store.upsert("n", [(each, {**fields, "content": text}) for each, text in texts.items()], NOW)
        store.upsert("n", [("m4", {**fields, "content": "Mine", "importance_override": 0.9})], NOW)
        rescorer = Rescorer(store, lambda: NOW + 100)
        runs = []
        for number in range(4):
            rows = to_rows(packet(number, [1, 2, 3, 4]))

            def work(db: object, rows: object = rows) -> Done[None]:
                insert(db, rows)  # type: ignore[arg-type]
                return Done(None)

            store._writer.submit(work, durable=True)
            store.report(UseReport(f"p{number}", used_memory_ids=("m1",), complete=True), NOW + number)
            runs.append(rescorer.run("n", apply=True).run_id)
        rescorer.restore(runs[-1])
        with store._readers.snapshot() as db:
            found, judged = read_runs(db, "n"), read_judged(db, "", language_of)
    assert [run.run_id for run in found] == runs[:3]
    assert {move.memory_key for run in found for move in run.moves} == {1, 2, 3}
    rose = [move.after or 0.0 for run in found for move in run.moves if move.memory_key == 1]
    assert rose == sorted(rose)
    assert {(each.language, each.author) for each in judged} == {("en", "anna"), ("ko", "anna"), ("de", "anna")}
    assert next(each.counts.used for each in judged if each.language == "en") == 4
