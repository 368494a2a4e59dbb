"""`backup` and `restore`: a copy of the store, made while it serves, and a store made of it."""

from __future__ import annotations

import datetime
import os
import time
from pathlib import Path
from typing import Any

import click
from click.core import ParameterSource

from sidecar.cli import screen
from sidecar.cli.connection import Connection, json_option, no_color_option, server_options
from sidecar.cli.failures import ExitCode, Failure
from sidecar.cli.parsing import PATH
from sidecar.cli.store_folder import data_folder, data_option, store_errors
from sidecar.plurals import counted


@click.command(
    short_help="Copy the store while it serves.",
    epilog="""\b
Examples:
  memory-ranker backup backup-monday
  memory-ranker backup "backup-$(date +%F)" --json

The folder holds memories and the log as of one moment, without anything deleted before; whoever can read it can read
the memories, and deleting from it is up to you. `restore` makes a store of it.""",
)
@click.argument("folder", type=PATH)
@data_option("Copy the store in this folder, without a server.  [default: ask the server; without one, as for `serve`]")
@server_options(namespace=False, timeout=3_600)
def backup(connection: Connection, folder: Path, data: Path | None) -> None:
    """Copies the store to FOLDER, which must not exist or be empty, while the server goes on serving.

    The server writes the copy. Where none runs, the command takes the store's lock and copies it itself.
    """
    path = Path(os.path.abspath(folder))
    found = None if data else _by_server(connection, path)
    if found is None:
        found = _by_hand(data or data_folder(), path)
    if connection.as_json:
        screen.document({"path": str(path), **found})
        return
    shown = screen.visible(str(path))
    click.echo(f"Copied the store of {found['snapshot_time']} to {shown}: {int(found['byte_count']):,} bytes.")


def _by_server(connection: Connection, path: Path) -> dict[str, Any] | None:
    """What the server's copy came to; None if there is no server."""
    from sidecar.cli.plain import plain

    try:
        with connection.client() as client:
            return plain(client.backup(str(path)))
    except Failure as failure:
        # Of a server that was named on the command line, another store would be no backup.
        named = click.get_current_context().get_parameter_source("address") is ParameterSource.COMMANDLINE
        if named or failure.reason != ExitCode.UNAVAILABLE.name:
            raise
    return None


def _by_hand(data: Path, path: Path) -> dict[str, Any]:
    from sidecar.store.backup import copy_unserved

    with store_errors():
        made = copy_unserved(data, path, time.time_ns() // 1000)
    return {"byte_count": made.byte_count, "snapshot_time": _rfc3339(made.snapshot_time)}


@click.command(
    short_help="Make a store of a backup.",
    epilog="""\b
Examples:
  memory-ranker restore backup-monday --data ./restored
  memory-ranker restore backup-monday --data ./restored-too --json

Then start the server on it, as with `serve --data ./restored`.""",
)
@click.argument("backup", type=PATH)
@data_option("The folder that becomes the store.  [default: as for `serve`]")
@json_option
@no_color_option
def restore(backup: Path, data: Path | None, as_json: bool) -> None:
    """Makes the store in an empty folder from BACKUP, after looking at every page of it. Nothing is overwritten.

    Packets that agents keep from later than the backup are stale then: their score versions never come again.
    """
    from sidecar.store.restore import restore as make_store

    folder = data or data_folder()
    with store_errors():
        made = make_store(backup, folder, time.time_ns() // 1000)
    found = {
        "data": str(folder),
        "snapshot_time": _rfc3339(made.snapshot_time),
        "byte_count": made.byte_count,
        "memory_count": made.memory_count,
        "packet_count": made.packet_count,
        "report_count": made.report_count,
    }
    if as_json:
        screen.document(found)
        return
    click.echo(
        f"Restored {counted(made.memory_count, 'memory')}, {counted(made.packet_count, 'packet')} and "
        f"{counted(made.report_count, 'report')} of {found['snapshot_time']} to {screen.visible(str(folder))}."
    )


def _rfc3339(micros: int) -> str:
    moment = datetime.datetime.fromtimestamp(micros / 1e6, datetime.UTC)
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")
