"""`check`: what is wrong with a store, and putting it right."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from sidecar.cli import screen
from sidecar.cli.connection import json_option, no_color_option
from sidecar.cli.failures import ExitCode, exit_with
from sidecar.cli.parsing import PATH
from sidecar.cli.screen import Column
from sidecar.cli.store_folder import data_folder, data_option, store_errors

if TYPE_CHECKING:
    from sidecar.store.check import Checked
    from sidecar.store.salvage import Saved

LOST_SHOWN = 20
"""Lost ids of a table that are told on the terminal."""


@click.command(
    short_help="Find what is damaged in a store, and repair it.",
    epilog="""\b
Examples:
  memory-ranker check
  memory-ranker check --data backup-monday --json
  memory-ranker check --repair
  memory-ranker check --repair --into ./saved

Exit code 8 says that something is wrong or lost, or still is wrong after a repair. docs/backup.md has a line for
each fault.""",
)
@data_option("The folder of the store, or of a backup.  [default: as for `serve`]")
@click.option("--repair", is_flag=True, help="Put right what can be. The server must be stopped.")
@click.option(
    "--into",
    metavar="FOLDER",
    type=PATH,
    help="With --repair: save what can be read into this new folder, and leave the store as it is.",
)
@json_option
@no_color_option
def check(data: Path | None, repair: bool, into: Path | None, as_json: bool) -> None:
    """Looks at every page and every row of a store, and names what is wrong. The server may go on serving.

    Sums of use, counts and other derived rows are compared with the reports and memories that they follow from. A
    repair rebuilds them, and takes out what cannot be read; a database whose pages are damaged is salvaged --into
    another folder.
    """
    if into is not None and not repair:
        raise click.UsageError("--into goes with --repair")
    folder = data or data_folder()
    saved: Saved | None = None
    with store_errors():
        from sidecar.store import check as checks
        from sidecar.store import repair as repairs
        from sidecar.store import salvage as salvages

        found = before = checks.check(folder)
        if into is not None:
            target = Path(os.path.abspath(into.expanduser()))
            saved = salvages.salvage(folder, target, time.time_ns() // 1000)
            found = checks.check(target)
        elif repair:
            found = repairs.repair(folder, time.time_ns() // 1000)
    if as_json:
        screen.document({**_plain(before), "after_repair": _plain(found) if repair else None, **_saved(saved)})
    else:
        _show(before)
        if repair and before.findings:
            click.echo(f"\nAfter the repair, {screen.visible(str(found.database))}:\n")
            _show(found)
        _show_lost(saved)
    exit_with(ExitCode.DAMAGED if found.findings or (saved and saved.lost) else ExitCode.OK)


def _saved(saved: Saved | None) -> dict[str, Any]:
    lost = [{"table": each.table, "count": each.count, "ids": each.ids} for each in saved.lost] if saved else None
    return {"saved_rows": saved.rows if saved else None, "lost": lost}


def _show_lost(saved: Saved | None) -> None:
    for each in saved.lost if saved else ():
        ids = ", ".join(screen.visible(each_id) for each_id in each.ids[:LOST_SHOWN])
        more = "; --json has all" if len(each.ids) > LOST_SHOWN else ""
        click.echo(
            f"\nLost, of {each.table}: at least {each.count:,}. {f'Known: {ids}{more}.' if ids else ''}".rstrip()
        )


def _plain(found: Checked) -> dict[str, Any]:
    return {
        "database": str(found.database),
        "schema_version": found.schema_version,
        "rows": found.rows,
        "findings": [
            {
                "fault": each.fault.value,
                "table": each.table,
                "count": each.count,
                "message": each.message,
                "way_out": each.way_out.value,
                "examples": list(each.examples),
            }
            for each in found.findings
        ],
    }


def _show(found: Checked) -> None:
    if not found.findings:
        read = ", ".join(f"{table} {count:,}" for table, count in found.rows.items() if count)
        click.echo(f"Nothing is wrong. Rows looked at: {read}." if read else "Nothing is wrong. The store is empty.")
        return
    columns = (
        Column("fault"),
        Column("table"),
        Column("count", is_number=True),
        Column("way out"),
        Column("what", is_text=True),
    )
    rows = [
        (each.fault.value, each.table, f"{each.count:,}", each.way_out.value, each.message) for each in found.findings
    ]
    screen.table(columns, rows, details=["; ".join(each.examples) for each in found.findings])
