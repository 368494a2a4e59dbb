from __future__ import annotations

import fnmatch
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sidecar.audit.verdict import Verdict, gini, judge
from sidecar.store.audit import AuditNumbers, ClientNumbers, ModelNumbers, ReserveNumbers, ServedMemory

HEALTHY = AuditNumbers(
    memory_count=400,
    lifted=60,
    reported_memories=200,
    moved=190,
    packets=1_000,
    reported_packets=600,
    sessions=300,
    reports=640,
    used_memories=90,
    served=tuple(ServedMemory("n", f"m{i}", 0.7, 60 - i // 6, 12 - i // 40, 40 - i // 8) for i in range(300)),
    clients=(ClientNumbers("n", "a", "cli", 1_000, 300, 600, 0, 500),),
    late_word=200,
    stale_word=3,
    stale_packets=0,
    new_memories=10,
    reserve=ReserveNumbers(1_000, 1_000, (0.1, -0.1) * 500, 100, 95, 100.0, 1_000, (10,) * 95),
    slot_budget=None,
    too_large=0,
)
BIASED = tuple(ServedMemory("n", f"m{i}", 0.9, 900 if i < 20 else 3, 1, 400 if i < 20 else 2) for i in range(300))


def verdict(**changes: Any) -> Verdict:
    return judge(replace(HEALTHY, **changes), 5).verdict


def test_a_fed_ranker_is_healthy() -> None:
    """No warning beside it either."""
    found = judge(HEALTHY, 5)
    assert (found.verdict, found.warnings) == (Verdict.HEALTHY, 0)
    assert found.findings[0].startswith("healthy")


def test_the_page_has_every_figure_and_no_other() -> None:
    """docs/audit.md has each in its table; a star stands for what the packets are told apart by."""
    page = (Path(__file__).resolve().parents[2] / "docs" / "audit.md").read_text(encoding="utf-8")
    table = page.partition("## Figures")[2].partition("\n## ")[0]
    rows = re.findall(r"^\| (`.*?`) \|", table, re.MULTILINE)
    told = {name for row in rows for name in re.findall(r"`([\w*]+)`", row)}
    shown = {figure.name for figure in judge(replace(HEALTHY, models=(ModelNumbers("m", 9, 9, 9, 9),)), 5).figures}
    assert [name for name in shown if not any(fnmatch.fnmatch(name, each) for each in told)] == []
    assert [each for each in told if not fnmatch.filter(shown, each)] == []


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"reported_packets": 3, "reports": 3}, Verdict.STARVING),
        ({"served": BIASED}, Verdict.POSITION_BIAS),
        ({"moved": 4}, Verdict.FLAT_FORMULA),
        ({"stale_word": 120}, Verdict.STALE_CACHE),
        ({"stale_packets": 1}, Verdict.STALE_CACHE),
        ({"packets": 19, "reported_packets": 0}, Verdict.TOO_LITTLE),
    ],
)
def test_each_illness_is_called_by_its_name(changes: dict[str, Any], expected: Verdict) -> None:
    """And begins the findings; below twenty packets there is nothing to tell, and no health either."""
    found = judge(replace(HEALTHY, **changes), 5)
    assert found.verdict is expected
    assert found.findings[0].startswith(expected.value.replace("_", " "))


def test_the_verdicts_come_in_the_order_in_which_to_look() -> None:
    """Whoever starves is not told about a formula; bias goes before flatness, and that before caches."""
    ill: dict[str, Any] = {"served": BIASED, "moved": 0, "stale_word": 200}
    starving = judge(replace(HEALTHY, reported_packets=3, **ill), 5)
    assert starving.verdict is Verdict.STARVING
    assert "innocent" in starving.findings[0]
    assert not any(words.startswith("flat") for words in starving.findings)
    assert verdict(**ill) is Verdict.POSITION_BIAS
    assert verdict(moved=0, stale_word=200) is Verdict.FLAT_FORMULA


def test_popular_memories_that_are_used_are_no_bias() -> None:
    """That few are served most is fine where they are used as often as the others."""
    popular = tuple(replace(memory, used=memory.judged // 2) for memory in BIASED)
    assert verdict(served=popular) is Verdict.HEALTHY


def test_dead_counters_are_named_by_client() -> None:
    """One that sends nothing, one that sends only outcomes, and one that never names a use, each on its surface."""
    clients = (
        ClientNumbers("n", "mute", "ide", 500, 9, 0, 0, 0),
        ClientNumbers("n", "weak", "voice", 500, 9, 0, 400, 0),
        ClientNumbers("n", "empty", "cli", 500, 9, 500, 0, 0),
        ClientNumbers("n", "fine", "cli", 500, 9, 100, 0, 90),
        ClientNumbers("n", "new", "cli", 5, 1, 0, 0, 0),
    )
    found = judge(replace(HEALTHY, clients=clients), 5)
    dead = [words for words in found.findings if words.startswith("dead counter")]
    assert ["mute on ide" in dead[0], "weak on voice" in dead[1], "empty on cli" in dead[2]] == [True] * 3
    assert len(dead) == found.warnings == 3


def test_the_reserve_is_watched() -> None:
    """A queue near its limit, memories that fit no slot, and draws that do not follow the logged propensities warn."""
    busy = judge(replace(HEALTHY, new_memories=100), 5)
    assert next(figure.value for figure in busy.figures if figure.name == "reserve_load") == pytest.approx(
        0.1 * 5 / 0.6
    )
    assert any("queue grows" in words for words in busy.findings)
    for count, words in ((360, "3.0 times as fast"), (36_000_000, "over 100 times as fast")):
        (found,) = [each for each in judge(replace(HEALTHY, new_memories=count), 5).findings if "reserve" in each]
        assert words in found
    large = judge(replace(HEALTHY, slot_budget=200, too_large=7), 5)
    assert any("7 memories" in words and "200 tokens" in words for words in large.findings)
    off = replace(HEALTHY.reserve, weight_gaps=(1.0, 1.2) * 500)
    assert any("propensities" in words for words in judge(replace(HEALTHY, reserve=off), 5).findings)
    thin = judge(replace(HEALTHY, reported_packets=100), 5)
    assert any(words.startswith("thin") for words in thin.findings)


def test_figures_come_by_agent_surface_and_namespace() -> None:
    """Each share of packets with feedback has its own line."""
    clients = (
        ClientNumbers("n1", "a", "cli", 100, 9, 50, 0, 40),
        ClientNumbers("n2", "a", "ide", 100, 9, 0, 0, 0),
    )
    found = judge(replace(HEALTHY, clients=clients), 5)
    by = {(figure.name, figure.about): figure.value for figure in found.figures}
    assert by["packets_with_feedback_by_agent", "a"] == 0.25
    assert by["packets_with_feedback_by_surface", "ide"] == 0.0
    assert by["packets_with_feedback_by_namespace", "n1"] == 0.5


@given(st.lists(st.integers(0, 1_000), min_size=1, max_size=50))
def test_gini_is_0_for_equals_and_grows_towards_1(counts: list[int]) -> None:
    """By its definition as the mean difference of pairs."""
    assert 0 <= gini(counts) < 1
    assert gini([7] * len(counts)) == pytest.approx(0)
    if sum(counts):
        pairs = sum(abs(one - other) for one in counts for other in counts)
        assert gini(counts) == pytest.approx(pairs / (2 * len(counts) * sum(counts)))


def test_an_empty_store_is_judged_too() -> None:
    """All figures are numbers."""
    nothing = AuditNumbers(0, 0, 0, 0, 0, 0, 0, 0, 0, (), (), 0, 0, 0, 0, ReserveNumbers(), None, 0)
    found = judge(nothing, 5)
    assert found.verdict is Verdict.TOO_LITTLE
    assert all(figure.value == 0 for figure in found.figures)
