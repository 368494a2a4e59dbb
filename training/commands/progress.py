"""Long steps on a terminal: a bar for each, on standard error; in a pipe nothing."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from sidecar.cli import screen

Advance = Callable[[str, int, int], None]


@contextmanager
def steps() -> Iterator[Advance]:
    """Yields what a step calls with its name, what is done and how much there is."""
    from rich.progress import BarColumn, Progress, TaskID, TaskProgressColumn, TextColumn, TimeRemainingColumn

    console = screen.bars()
    if not console.is_terminal:
        yield lambda *_: None
        return
    columns = (TextColumn("{task.description}"), BarColumn(), TaskProgressColumn(), TimeRemainingColumn())
    with Progress(*columns, console=console, transient=True) as progress:
        tasks: dict[str, TaskID] = {}

        def advance(step: str, done: int, total: int) -> None:
            if step not in tasks:
                tasks[step] = progress.add_task(step, total=None)
            progress.update(tasks[step], completed=done, total=total)

        yield advance
