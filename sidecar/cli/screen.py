"""What people read: tables and lists of fields. On a terminal they fit its width; in a pipe nothing is shortened."""

from __future__ import annotations

import json
import os
import shutil
import sys
import unicodedata
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from rich.console import Console

GAP = 2
LEAST_TEXT = 24
"""A shortened column is never narrower, however narrow the terminal."""


@dataclass(frozen=True, slots=True)
class Column:
    """A column of a table. `is_text` may be shortened on a terminal; the last alone may be it."""

    title: str
    is_number: bool = False
    is_text: bool = False


def table(
    columns: Sequence[Column],
    rows: Iterable[Sequence[str]],
    *,
    marks: Sequence[bool] = (),
    details: Sequence[str] = (),
) -> None:
    """Prints rows under their titles, each with its line of `details` below it.

    Rows that are marked in `marks` stand out where there is colour.
    """
    from rich.cells import cell_len

    shown = [[visible(cell) for cell in row] for row in rows]
    titles = [column.title for column in columns]
    widths = [max(map(cell_len, cells)) for cells in zip(titles, *shown, strict=True)]
    before = sum(widths[:-1]) + GAP * len(widths[:-1])

    def line(cells: Sequence[str]) -> str:
        parts = []
        for column, cell, size in zip(columns, cells, widths, strict=True):
            if column.is_text:
                parts.append(_shortened(cell, before))
            else:
                space = " " * (size - cell_len(cell))
                parts.append(space + cell if column.is_number else cell + space)
        return (" " * GAP).join(parts).rstrip()

    click.secho(line(titles), bold=True)
    for index, row in enumerate(shown):
        marked = index < len(marks) and marks[index]
        click.echo(click.style(line(row), fg="green") if marked else line(row))
        if index < len(details):
            indent = widths[0] + GAP
            click.secho(" " * indent + _shortened(visible(details[index]), indent), dim=True)


def _shortened(text: str, before: int) -> str:
    """`text` as it fits into a line of the terminal behind `before` cells; whole where there is no terminal."""
    from rich.cells import cell_len, set_cell_size

    size = max(LEAST_TEXT, width() - before)
    if not is_terminal() or cell_len(text) <= size:
        return text
    return set_cell_size(text, size - 1).rstrip() + "…"


def fields(pairs: Iterable[tuple[str, str]]) -> None:
    """Prints name and value, a line each; those without a value are left out."""
    shown = [(name, value) for name, value in pairs if value]
    size = max((len(name) for name, _ in shown), default=0)
    for name, value in shown:
        click.echo(f"{click.style(f'{name:<{size}}', bold=True)}  {visible(value)}")


def document(found: Any) -> None:
    """Prints what --json promises: one JSON document."""
    click.echo(json.dumps(found, ensure_ascii=False, indent=2))


def bars() -> Console:
    """Where bars of progress are drawn: standard error; without colour where none is wanted."""
    from rich.console import Console

    context = click.get_current_context(silent=True)
    is_plain = context is not None and context.color is False
    is_dumb = os.environ.get("TERM") == "dumb"  # which cannot go back to draw one anew
    return Console(stderr=True, color_system=None if is_plain else "auto", force_terminal=False if is_dumb else None)


def note(text: str) -> None:
    """Says something beside the answer, on standard error."""
    click.echo(text, err=True)


def asked(question: str, flag: str) -> str:
    """The line that answers a question. UsageError where nobody is there to ask, with the flag that saves asking."""
    click.echo(question, nl=False, err=True)
    answer = sys.stdin.readline()
    if not answer:
        click.echo(err=True)
        raise click.UsageError(f"there is nobody to ask: add {flag} to go on without being asked")
    return answer


def is_terminal() -> bool:
    """True if standard output is a terminal."""
    return sys.stdout.isatty()


def width() -> int:
    """Columns of the terminal."""
    return shutil.get_terminal_size().columns


def visible(text: str) -> str:
    """`text` on one line. What could command a terminal or turn the text around is shown as an escape: it is data."""
    return "".join(_escape(c) if unicodedata.category(c) in ("Cc", "Cf", "Cs", "Zl", "Zp") else c for c in text)


def _escape(character: str) -> str:
    if character in "\u200c\u200d":
        # Joiners are part of how Persian, Hindi and many emoji are written.
        return character
    return character.encode("unicode_escape", "surrogatepass").decode("ascii")


def brief(value: float, digits: int = 2) -> str:
    """0.2134 as .21."""
    text = f"{value:.{digits}f}"
    return text.removeprefix("0") if text.startswith("0.") else text.replace("-0.", "-.")


def age(seconds: float) -> str:
    """A length of time in its largest fitting unit."""
    if seconds < 0:
        return "ahead"
    for size, unit in ((365.25 * 86_400, "y"), (30.44 * 86_400, "mo"), (86_400, "d"), (3_600, "h"), (60, "min")):
        if seconds >= 2 * size:
            return f"{seconds / size:.0f} {unit}"
    return f"{seconds:.0f} s"
