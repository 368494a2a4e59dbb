"""docs/cases.md: one row for every fault that was seen elsewhere, and the test that tries it here."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

import pytest

from tests.test_notes import ROOT, names_in

_ROW = re.compile(r"\| ([A-Z]{2}-\d\d) \|.*")
_TESTS = r"`tests/[^`]+`(, `tests/[^`]+`)*"
_OUTCOME = re.compile(rf"{_TESTS}|({_TESTS}; )?waiting: \S.*")


def rows_of(text: str) -> list[list[str]]:
    """The cells of every row with an id."""
    return [
        [cell.strip() for cell in line.strip().strip("|").split("|")] for line in text.split("\n") if _ROW.match(line)
    ]


@pytest.fixture(scope="module")
def rows() -> list[list[str]]:
    return rows_of((ROOT / "docs" / "cases.md").read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def known() -> set[str]:
    return {test for path in (ROOT / "tests").rglob("test_*.py") for test in names_in(path)}


def test_every_row_names_tests_that_exist_or_what_it_waits_for(rows: list[list[str]], known: set[str]) -> None:
    """No row is empty, stands twice, or names a test that there is not."""
    assert rows
    for row in rows:
        assert len(row) == 3, row
        assert row[1], row
        assert _OUTCOME.fullmatch(row[2]), row
    named = [test for row in rows for test in re.findall(r"`(tests/[^`]+)`", row[2])]
    assert [test for test in named if test not in known] == []
    assert [each for each, count in Counter(row[0] for row in rows).items() if count > 1] == []


def test_no_fault_is_left_out(rows: list[list[str]], shared: Path) -> None:
    """Every fault of the collection has its row, in the same order, and no other has one."""
    collection = rows_of((shared / "cases" / "README.md").read_text(encoding="utf-8"))
    assert [row[0] for row in rows] == [row[0] for row in collection]
    assert collection


def test_every_test_of_a_case_is_named(rows: list[list[str]]) -> None:
    """A test in tests/cases stands in the row of the fault whose id it bears."""
    outcome = {row[0]: row[2] for row in rows}
    for path in sorted((ROOT / "tests" / "cases").glob("test_*.py")):
        for test in names_in(path):
            group, number = test.split("::test_")[1].split("_")[:2]
            assert f"`{test}`" in outcome[f"{group.upper()}-{number}"]
