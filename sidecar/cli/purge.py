"""`purge`: removes a namespace with everything in it."""

from __future__ import annotations

import click

from sidecar.cli import screen
from sidecar.cli.connection import Connection, check_namespace, server_options
from sidecar.cli.plain import plain
from sidecar.plurals import counted


@click.command(
    short_help="Remove a namespace with everything in it.",
    epilog="""\b
Examples:
  memory-ranker purge example-namespace --yes example-namespace""",
)
@click.argument("name", metavar="NAMESPACE")
@click.option("--yes", "confirmed", metavar="NAMESPACE", help="The name once more, instead of being asked for it.")
@server_options(namespace=False)
def purge(connection: Connection, name: str, confirmed: str | None) -> None:
    """Removes NAMESPACE: memories with texts, vectors and handles, ratings, packets and reports.

    Deleted text is in none of the store's files within 30 seconds. Exports and backups are not touched.
    """
    with connection.client() as client:
        check_namespace(client, name)
    if confirmed is None:
        words = f"Everything in {screen.visible(name)} will be gone. Type its name: "
        confirmed = screen.asked(words, f"--yes {name}").rstrip("\n")
    if confirmed != name:
        raise click.UsageError(f"{confirmed!r} is not {name!r}; nothing was removed")
    with connection.client() as client:
        response = client.purge_namespace(name)
    if connection.as_json:
        screen.document(plain(response))
    else:
        click.echo(f"{counted(response.memory_count, 'memory')} and {counted(response.packet_count, 'packet')} removed")
