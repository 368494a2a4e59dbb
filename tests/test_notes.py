"""docs/notes.md: one row for every statement of the notes this grew from, and what became of each."""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
PREFIXES = {"smartctx-scorer": "SC", "scoring-engine": "SE", "starving-ranker": "SR", "importance-scorer": "IS"}

_RANGE = re.compile(r"([a-z-]+) (\d+)-(\d+)")
_TEST = re.compile(r"`(tests/[^`]*)`")
_OUTCOME = re.compile(r"`tests/[^`]+`(, `tests/[^`]+`)*|chosen otherwise, because \S.*")


@dataclass(frozen=True, slots=True)
class Row:
    """One row of the tables, cell by cell."""

    id: str
    lines: str
    statement: str
    outcome: str

    def faults(self, known: set[str]) -> Iterator[str]:
        """What is wrong with it, in words; `known` are the tests there are."""
        place = _RANGE.fullmatch(self.lines)
        if not place or place[1] not in PREFIXES or not 1 <= int(place[2]) <= int(place[3]):
            yield f"{self.id}: {self.lines!r} is not a note and a range of its lines, as `scoring-engine 11-11`"
        elif not re.fullmatch(rf"{PREFIXES[place[1]]}-\d\d\d?", self.id):
            yield f"{self.id}: ids of {place[1]} are {PREFIXES[place[1]]}-01, {PREFIXES[place[1]]}-02, ..."
        if not self.statement:
            yield f"{self.id}: says nothing"
        if not _OUTCOME.fullmatch(self.outcome):
            yield f"{self.id}: {self.outcome!r} is not `tests/...` or chosen otherwise, because ..."
        for test in _TEST.findall(self.outcome):
            if test not in known:
                yield f"{self.id}: there is no test {test}"

    @property
    def span(self) -> tuple[str, range]:
        """The note and its line numbers. Needs a row without faults."""
        place = _RANGE.fullmatch(self.lines)
        assert place, self.lines
        return place[1], range(int(place[2]), int(place[3]) + 1)


def read_rows(text: str) -> list[Row]:
    """The rows of all tables in a Markdown text; a `\\|` is a bar inside a cell."""
    rows = []
    for number, line in enumerate(text.split("\n"), 1):
        if not line.startswith("|"):
            continue
        cells = [cell.strip().replace("\\|", "|") for cell in re.split(r"(?<!\\)\|", line.strip())[1:-1]]
        if cells[:1] == ["id"] or all(re.fullmatch(r":?-+:?", cell) for cell in cells):
            continue
        assert len(cells) == 4, f"line {number} has {len(cells)} cells: {line}"
        rows.append(Row(*cells))
    return rows


def names_in(path: Path) -> Iterator[str]:
    """The tests of a file, as path::name or path::Class::name, without parameters."""
    name = path.relative_to(ROOT).as_posix()
    for node in ast.parse(path.read_text(encoding="utf-8")).body:
        members = [(f"{name}::", node)]
        if isinstance(node, ast.ClassDef) and node.name.startswith("Test"):
            members = [(f"{name}::{node.name}::", member) for member in node.body]
        for prefix, member in members:
            if isinstance(member, ast.FunctionDef | ast.AsyncFunctionDef) and member.name.startswith("test_"):
                yield f"{prefix}{member.name}"


@pytest.fixture(scope="module")
def rows() -> list[Row]:
    return read_rows((ROOT / "docs" / "notes.md").read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def known() -> set[str]:
    return {test for path in (ROOT / "tests").rglob("test_*.py") for test in names_in(path)}


def note_lines(shared: Path, note: str) -> list[str]:
    return (shared / "notes" / f"{note}.txt").read_text(encoding="utf-8").split("\n")


def test_every_statement_has_come_to_something(rows: list[Row], known: set[str]) -> None:
    """Each row names its lines, and a test that exists, what it waits for, or why it was chosen otherwise."""
    assert rows
    assert [fault for row in rows for fault in row.faults(known)] == []


def test_every_statement_has_an_id_of_its_own(rows: list[Row]) -> None:
    """No id stands twice."""
    assert [each for each, count in Counter(row.id for row in rows).items() if count > 1] == []


@pytest.mark.parametrize("note", PREFIXES)
def test_every_line_of_a_note_lies_in_a_row(note: str, rows: list[Row], shared: Path) -> None:
    """No line that says anything is left out, and no row names lines that are not there."""
    lines = note_lines(shared, note)
    covered: set[int] = set()
    for row in rows:
        of_note, numbers = row.span
        if of_note == note:
            assert numbers[-1] <= len(lines), f"{row.id}: {note} ends at line {len(lines)}"
            covered.update(numbers)
    missing = [number for number, line in enumerate(lines, 1) if line.strip() and number not in covered]
    assert missing == []


HEAD = "| id | note and lines | statement | what became of it |\n|---|---|---|---|\n"


@pytest.mark.parametrize(
    ("row", "fault"),
    [
        ("| SE-01 | scoring-engine 1-1 | it ranks | |", "is not `tests/"),
        ("| SE-01 | scoring-engine 1-1 | it ranks | done |", "is not `tests/"),
        ("| SE-01 | scoring-engine 1-1 | it ranks | later: ranks |", "is not `tests/"),
        ("| SE-01 | scoring-engine 1-1 | it ranks | chosen otherwise |", "is not `tests/"),
        ("| SE-01 | scoring-engine 1-1 | it ranks | `tests/test_notes.py::test_nothing` |", "there is no test"),
        ("| SE-01 | scoring-engine 1-1 | it ranks | chosen otherwise, because `tests/a.py::test_b` |", "no test"),
        ("| SE-01 | scoring-engine 1-1 | | chosen otherwise, because it does |", "says nothing"),
        ("| SE-01 | scoring-engine 3-2 | it ranks | chosen otherwise, because it does |", "not a note and a range"),
        ("| SE-01 | scoring-engine 0-1 | it ranks | chosen otherwise, because it does |", "not a note and a range"),
        ("| SE-01 | scoring-engine 1 | it ranks | chosen otherwise, because it does |", "not a note and a range"),
        ("| SE-01 | other-note 1-1 | it ranks | chosen otherwise, because it does |", "not a note and a range"),
        ("| SR-01 | scoring-engine 1-1 | it ranks | chosen otherwise, because it does |", "ids of scoring-engine"),
    ],
)
def test_a_row_with_a_fault_is_refused(row: str, fault: str, known: set[str]) -> None:
    """What this file looks for, it finds."""
    (found,) = read_rows(HEAD + row)
    (said,) = found.faults(known)
    assert fault in said


def test_a_sound_row_is_taken(known: set[str]) -> None:
    """Bars may stand inside a cell, and several tests in an outcome."""
    own = "`tests/test_notes.py::test_a_sound_row_is_taken`"
    (row,) = read_rows(HEAD + rf"| SE-01 | scoring-engine 1-3 | a \| b | {own}, {own} |")
    assert row.statement == "a | b"
    assert row.span == ("scoring-engine", range(1, 4))
    assert list(row.faults(known)) == []


def test_tests_are_found_in_classes_and_with_parameters(known: set[str]) -> None:
    """A parametrised test has one name, and helpers are no tests."""
    assert "tests/test_notes.py::test_a_row_with_a_fault_is_refused" in known
    assert "tests/test_notes.py::read_rows" not in known
