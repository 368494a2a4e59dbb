"""What became of an import, and how it is told."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import click

from sidecar.cli import screen
from sidecar.cli.connection import Connection
from sidecar.cli.import_files import Source
from sidecar.cli.screen import Column
from sidecar.formats.items import Problem
from sidecar.plurals import counted

MOST_SHOWN = 20
"""Problems that are told on the terminal, and memories that --dry-run shows; --json has all problems."""


@dataclass(slots=True)
class Tally:
    """What became of an import. A refusal is (source, place, memory id, words)."""

    counts: dict[str, int] = field(default_factory=lambda: {"created": 0, "updated": 0, "unchanged": 0})
    log: dict[str, int] = field(default_factory=lambda: {"imported": 0, "known": 0})
    refused: list[tuple[Source, Problem]] = field(default_factory=list)
    notes: list[tuple[Source | None, Problem]] = field(default_factory=list)
    unsaid: dict[str, int] = field(default_factory=dict)
    score_version: int = 0

    @property
    def total(self) -> int:
        """Everything that was read."""
        return sum(self.counts.values()) + sum(self.log.values()) + len(self.refused)


def show_look(connection: Connection, tally: Tally, shown: list[Any], total: int, log_rows: int) -> None:
    """Says what would go in: `shown` are the first memories, with where each stood."""
    if connection.as_json:
        from sidecar.cli.plain import plain

        first = [{"place": place, "memory": plain(message)} for place, message in shown]
        screen.document({"memories": total, "log_rows": log_rows, "first": first, **_told(tally)})
        return
    if shown:
        rows = [
            [place, memory.create_time.ToJsonString()[:10] if memory.HasField("create_time") else "", memory.content]
            for place, memory in shown
        ]
        screen.table((Column("from"), Column("learned"), Column("content", is_text=True)), rows)
        click.echo()
    log = f" and {counted(log_rows, 'row')} of the log" if log_rows else ""
    click.echo(f"{counted(total, 'memory')}{log} would go into namespace {screen.visible(connection.namespace)}")
    _tell(tally, "would not go in.")


def show(connection: Connection, tally: Tally) -> None:
    """Says what went in, and what did not."""
    if connection.as_json:
        screen.document({**tally.counts, "log": tally.log, "score_version": tally.score_version, **_told(tally)})
        return
    click.echo(", ".join(f"{number} {name}" for name, number in tally.counts.items()))
    if any(tally.log.values()):
        click.echo(f"log: {counted(tally.log['imported'], 'row')} new, {tally.log['known']} there already")
    rest = "the rest is in" if len(tally.refused) < tally.total else "nothing is in"
    _tell(tally, f"did not go in; {rest}.")


def _told(tally: Tally) -> dict[str, Any]:
    return {
        "refused": [
            {"file": source.name, source.unit: each.place, "memory_id": each.memory_id, "message": each.message}
            for source, each in tally.refused
        ],
        "notes": [_words(source, each) for source, each in tally.notes],
    }


def _tell(tally: Tally, words: str) -> None:
    for source, each in [*tally.refused[:MOST_SHOWN], *tally.notes]:
        screen.note(_words(source, each))
    if len(tally.refused) > MOST_SHOWN:
        screen.note(f"and {len(tally.refused) - MOST_SHOWN} more; --json has all of them")
    if tally.refused:
        screen.note(f"{len(tally.refused)} {words}")


def _words(source: Source | None, each: Problem) -> str:
    if source is None:
        return each.message
    about = f" ({screen.visible(each.memory_id)})" if each.memory_id else ""
    place = f", {source.unit} {each.place}" if each.place else ""
    return f"{screen.visible(source.name)}{place}{about}: {screen.visible(each.message)}"
