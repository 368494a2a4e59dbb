"""`report-output`: hands over what the agent said and did; the server finds the uses in it."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import click

from sidecar.cli import screen
from sidecar.cli.connection import Connection, checked_values, server_options
from sidecar.cli.parsing import FILE, json_lines, read_text
from sidecar.cli.plain import plain


@click.command(
    "report-output",
    short_help="Hand over an agent's output; the server finds the uses in it.",
    epilog="""\b
Examples:
  echo "Deployed, as memory 3 says." | memory-ranker report-output "$PACKET"
  memory-ranker report-output "$PACKET" notes/outage.md
  echo '{"name": "shell", "arguments": "make ship"}' | memory-ranker report-output "$PACKET" --tool-calls -""",
)
@click.argument("packet_id")
@click.argument("file", required=False, type=FILE)
@click.option(
    "--tool-calls",
    type=FILE,
    metavar="FILE",
    help='Calls to tools: lines of {"name": ..., "arguments": ...}; - reads them.',
)
@click.option("--shown", multiple=True, metavar="ID", help="Really went into the prompt.  [default: the whole packet]")
@click.option("--agent", "agent_id", default="", metavar="NAME", help="Who reports.  [default: the packet's agent]")
@click.option("--request-id", default="", metavar="ID", help="Makes a retry count once.")
@server_options()
def report_output(
    connection: Connection,
    packet_id: str,
    file: str | None,
    tool_calls: str | None,
    shown: Sequence[str],
    **others: Any,
) -> None:
    """Reads what the agent answered from FILE, or from standard input, and finds the memories of the packet in it.

    A memory counts as used where the answer, or a call to a tool, has a handle of it that the task did not have: a
    ticket, a path, a name, an order number, a date. What merely repeats a memory's text is an echo, and counts for
    next to nothing. The text is not stored.
    """
    if file is None and tool_calls != "-":
        file = "-"
    if file == "-" and tool_calls == "-":
        raise click.UsageError("standard input is either the output or the tool calls; name a FILE for one of them")
    output = read_text(file) if file else ""
    calls = _calls(tool_calls) if tool_calls else []
    namespace = connection.namespace if connection.namespace_given else None
    with connection.client() as client, checked_values():
        response = client.report_output(packet_id, output, tool_calls=calls, shown=shown, namespace=namespace, **others)
    if connection.as_json:
        screen.document(plain(response))
        return
    for match in response.matches:
        sure = screen.brief(match.confidence)
        click.echo(
            f"{screen.visible(match.memory_id)}  used ({sure})  {match.handle_kind} {screen.visible(match.handle)}"
        )
    for memory_id in response.echoed_memory_ids:
        click.echo(f"{screen.visible(memory_id)}  repeated word for word; not counted as used")
    if not response.matches and not response.echoed_memory_ids:
        click.echo("No memory of the packet was found in the output.")


def _calls(file: str) -> list[tuple[str, str]]:
    found: list[tuple[str, str]] = []
    for number, line in json_lines(read_text(file).encode().splitlines()):
        name = line.get("name") if isinstance(line, dict) else None
        if isinstance(line, str) or not isinstance(name, str):
            what = line if isinstance(line, str) else "has no name, as text"
            raise click.UsageError(f"{file}, line {number}: {what}")
        arguments = line.get("arguments", "")
        found.append((name, arguments if isinstance(arguments, str) else json.dumps(arguments, ensure_ascii=False)))
    return found
