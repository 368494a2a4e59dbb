"""`status`: how the server stands."""

from __future__ import annotations

import click

from sidecar.cli import screen
from sidecar.cli.connection import Connection, server_options
from sidecar.cli.plain import plain


@click.command(
    short_help="Show how the server stands.",
    epilog="""\b
Examples:
  memory-ranker status
  memory-ranker status --namespace default --json""",
)
@server_options()
def status(connection: Connection) -> None:
    """Shows how the server stands, with what is wrong and what to do; --namespace adds that namespace's numbers."""
    with connection.client() as client:
        response = client.status(connection.namespace if connection.namespace_given else "")
    found = plain(response)
    if connection.as_json:
        screen.document(found)
        return
    problems = found.pop("problems")
    of_namespace = found.pop("namespace", {})
    found.pop("feature_schema_hash")
    if not found.get("canary_version"):
        found.pop("canary_share", None)
    screen.fields((name, ", ".join(value) if isinstance(value, list) else str(value)) for name, value in found.items())
    if of_namespace:
        click.echo()
        screen.fields((name, str(value)) for name, value in of_namespace.items())
    click.echo()
    click.echo("All is well." if not problems else "")
    for problem in problems:
        click.echo(f"! {screen.visible(problem)}")
