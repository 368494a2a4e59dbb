"""`prune`: removes old packets with their reports."""

from __future__ import annotations

import datetime

import click

from sidecar.cli import screen
from sidecar.cli.connection import Connection, checked_values, server_options
from sidecar.cli.parsing import length_value
from sidecar.cli.plain import plain
from sidecar.plurals import counted


@click.command(
    short_help="Remove old packets with their reports.",
    epilog="""\b
Examples:
  memory-ranker prune --older-than 90d --dry-run
  memory-ranker prune --older-than 90d --max-bytes 2000000000""",
)
@click.option("--older-than", callback=length_value, metavar="LENGTH", help="Remove what is older: 90d, 26w.")
@click.option("--max-bytes", type=int, metavar="N", help="Remove the oldest until the log has at most so many bytes.")
@click.option("--dry-run", is_flag=True, help="Count, and remove nothing.")
@server_options(unnamed="all")
def prune(connection: Connection, older_than: datetime.timedelta | None, max_bytes: int | None, dry_run: bool) -> None:
    """Removes old packets and the reports on them, of all namespaces unless --namespace names one.

    No score moves: what use came to is kept. The log of the last prune_keep_days (30) stays, for training needs it. The
    room is used again by the store; its file does not shrink.
    """
    if older_than is None and max_bytes is None:
        raise click.UsageError("say how much: --older-than LENGTH, --max-bytes N, or both")
    namespace = connection.namespace if connection.namespace_given else ""
    with connection.client() as client, checked_values():
        response = client.prune(namespace, older_than=older_than, max_bytes=max_bytes, dry_run=dry_run)
    if connection.as_json:
        screen.document(plain(response))
        return
    would = "would be " if dry_run else ""
    click.echo(
        f"{counted(response.packet_count, 'packet')} and {counted(response.report_count, 'report')} {would}removed; "
        f"about {response.freed_bytes:,} bytes are free again"
    )
