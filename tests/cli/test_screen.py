from __future__ import annotations

import click
import pytest
from hypothesis import given
from hypothesis import strategies as st
from memoryranker.v1 import ranker_pb2
from rich.cells import cell_len

from sidecar.cli import packets, screen
from sidecar.cli.screen import Column

COLUMNS = (Column("n", is_number=True), Column("id"), Column("content", is_text=True))


def test_nothing_is_shortened_in_a_pipe(capsys: pytest.CaptureFixture[str]) -> None:
    """Ids and contents are whole, however long, and columns are aligned, also behind wide characters."""
    long = "x" * 500
    screen.table(COLUMNS, [["1", "开船", long], ["12", "m2", "b"]])
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == " n  id    content"
    assert lines[1] == f" 1  开船  {long}"
    assert lines[2] == "12  m2    b"


def test_on_a_terminal_the_text_fits_its_width(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Only the text column is shortened, by the cells that its characters take."""
    monkeypatch.setattr(screen, "is_terminal", lambda: True)
    monkeypatch.setattr(screen, "width", lambda: 40)
    screen.table(COLUMNS, [["1", "an-id-of-some-length", "开船时间" * 20], ["2", "m2", "short"]])
    lines = [click.unstyle(line) for line in capsys.readouterr().out.splitlines()]
    assert "an-id-of-some-length" in lines[1]
    assert lines[1].endswith("…")
    assert lines[2].endswith("short")


@pytest.mark.parametrize("columns", [80, 110, 149, 150, 220])
def test_a_packet_fits_the_terminal(
    columns: int, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A narrow terminal takes two lines an item and a wide one a single line; no line is wider than it."""
    monkeypatch.setattr(screen, "is_terminal", lambda: True)
    monkeypatch.setattr(screen, "width", lambda: columns)
    response = ranker_pb2.RankResponse(feature_names=["lexical", "semantic", "importance"])
    item = response.items.add(
        place=1, score=0.3, contributions=[0.15, 0.1, 0.05], segment="SEGMENT_RESERVED", tokens=50
    )
    item.inclusion_propensity = 0.25
    item.memory.id, item.memory.kind, item.memory.content = "m1", "procedural", "开船时间 " * 60
    packets.show(response)
    lines = click.unstyle(capsys.readouterr().out).partition("\n\n")[0].splitlines()
    assert len(lines) == (3 if columns < packets.WIDE else 2)
    for part in ("m1", "procedural", "reserved p=.25", "lexical .15 · semantic .10", "50"):
        assert part in "\n".join(lines)
    assert all(cell_len(line) <= columns for line in lines)


def test_stored_text_cannot_command_the_terminal() -> None:
    """Escapes, line breaks and marks that turn the text around are shown, not obeyed."""
    assert screen.visible("a\x1b[31mb\nc\u202ed\x9b") == "a\\x1b[31mb\\nc\\u202ed\\x9b"
    assert screen.visible("naïve 开船 🧠") == "naïve 开船 🧠"


@given(st.text())
def test_visible_text_is_one_line_without_control_characters(text: str) -> None:
    """Whatever is stored comes out as one printable line."""
    shown = screen.visible(text)
    assert len(shown.splitlines()) <= 1
    assert not any(ord(c) < 32 or 127 <= ord(c) < 160 for c in shown)
    shown.encode("utf-8")


@pytest.mark.parametrize(
    ("seconds", "expected"), [(-5, "ahead"), (30, "30 s"), (7200, "2 h"), (86_400 * 45, "45 d"), (86_400 * 800, "2 y")]
)
def test_ages_are_in_a_fitting_unit(seconds: float, expected: str) -> None:
    """An age is told in the largest unit that it fills twice."""
    assert screen.age(seconds) == expected
