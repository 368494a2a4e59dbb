"""When a task asks about, and how far off a memory was learned."""

from __future__ import annotations

import datetime

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sidecar.domain import DAY, Memory
from sidecar.retrieval.dates import days_off
from sidecar.retrieval.snapshot import snapshot_of

DAYS = ("2022-12-30", "2023-05-07", "2023-05-08", "2023-06-01", "2024-05-08")
NONE = float("inf")


def micros(day: str, hour: int = 23) -> int:
    time = datetime.datetime.fromisoformat(f"{day}T{hour:02}:00:00+00:00")
    return round(time.timestamp()) * 1_000_000


def off(task: str, days: tuple[str, ...] = DAYS) -> list[float]:
    times = np.array([micros(day) for day in days])
    found = days_off(task, times, np.ones(len(times), bool))
    return [NONE] * len(days) if found is None else found.tolist()


@pytest.mark.parametrize(
    "task",
    [
        "what happened on 8 May 2023?",
        "May 8th, 2023",
        "on 2023-05-08",
        "8.5.2023",
        "2023年5月8日に",
        "2023년 5월 8일에 무엇을",
    ],
)
def test_a_day_is_found_however_it_is_written(task: str) -> None:
    """On the day 0; a day after counts one, a day before four."""
    assert off(task)[1:4] == [4.0, 0.0, 24.0]


@pytest.mark.parametrize("task", ["in May 2023", "what was in 2023-05", "2023年5月の", "May of 2023", "2023년 5월에"])
def test_inside_a_named_month_nothing_is_off(task: str) -> None:
    """The month is 0 throughout; what came after counts from its last day."""
    assert off(task)[1:4] == [0.0, 0.0, 1.0]


def test_a_year_is_a_span_too() -> None:
    """In 2023 all of 2023 is 0, two days before it eight."""
    assert off("what did she do in 2023?") == [8.0, 0.0, 0.0, 0.0, 129.0]


def test_without_a_year_every_year_is_meant_in_which_something_was_learned() -> None:
    """May 8 is that of 2023 for what was learned then, and of 2024 for what was learned in 2024."""
    assert off("what happened on May 8?")[1:] == [4.0, 0.0, 24.0, 0.0]
    assert off("what happened in May?")[1:3] == [0.0, 0.0]


def test_of_several_dates_the_nearest_counts() -> None:
    """Two days are named; each memory is measured from the one that suits it."""
    assert off("between May 7, 2023 and June 1, 2023")[1:4] == [0.0, 1.0, 0.0]


@pytest.mark.parametrize(
    "task",
    [
        "",
        "may I march on",
        "mark the second one",
        "port 2023/tcp",
        "$2023",
        "version 2023.5",
        "2,023",
        "1850",
    ],
)
def test_what_names_no_date_is_infinitely_far(task: str) -> None:
    """Words that are also months, amounts, ports and versions are no dates."""
    assert off(task) == [NONE] * 5


@given(st.text(), st.lists(st.integers(-(10**17), 10**17), max_size=5))
def test_any_text_and_time_gives_days_from_zero_up(task: str, times: list[int]) -> None:
    """No text and no time breaks it, and nothing is below 0."""
    found = days_off(task, np.array(times, np.int64), np.ones(len(times), bool))
    assert found is None or found.shape == (len(times),)
    assert found is None or (found >= 0).all()


def test_february_29_is_only_in_years_that_have_it() -> None:
    """A day that a year does not have is no day of that year."""
    assert off("on February 29", ("2023-02-28", "2024-02-29")) == [366 * 4.0, 0.0]
    assert off("on February 30") == [NONE] * 5


def test_a_match_knows_the_days_off() -> None:
    """A snapshot's match carries them, for all rows."""
    snapshot = snapshot_of([Memory(id="a", content="x", create_time=micros("2023-05-08")), Memory(id="b", content="y")])
    found = snapshot.match("on 9 May 2023", None).days_off
    assert found is not None
    assert found[snapshot.row_of_id["a"]] == 4.0
    assert found[snapshot.row_of_id["b"]] == 4 * (micros("2023-05-09") // DAY)
