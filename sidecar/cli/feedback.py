"""`report-use` and `rate`: the road back, from what was used to what is served next."""

from __future__ import annotations

import datetime
from collections.abc import Sequence
from typing import Any

import click

from sidecar.cli import screen
from sidecar.cli.connection import Connection, checked_values, server_options
from sidecar.cli.failures import end_batch
from sidecar.cli.parsing import parse_json, parse_time, read_text
from sidecar.cli.plain import plain

CHANNELS = ("explicit", "inferred", "packet", "echo")
_PAYLOAD = {
    "packet_id": "packet_id",
    "kind": "channel",
    "channel": "channel",
    "used_memory_ids": "used",
    "unused_memory_ids": "unused",
    "shown_memory_ids": "shown",
    "complete": "complete",
    "outcome": "outcome",
    "confidence": "confidence",
    "sequence": "sequence",
    "report_time": "report_time",
    "namespace": "namespace",
    "agent_id": "agent_id",
    "request_id": "request_id",
}
"""Names in a JSON payload, and what the client calls them. "kind" is another word for the channel."""


@click.command(
    "report-use",
    short_help="Say which memories of a packet were used.",
    epilog="""\b
Examples:
  memory-ranker report-use "$PACKET" m1 m2
  memory-ranker report-use "$PACKET" m1 --unused m3 --incomplete
  memory-ranker report-use "$PACKET" --channel packet --outcome 0.5
  memory-ranker report-use --json-payload '{"packet_id": "'$PACKET'", "kind": "explicit", "used_memory_ids": ["m1"]}'
  echo '{"packet_id": "'$PACKET'", "used_memory_ids": []}' | memory-ranker report-use -""",
)
@click.argument("packet_id", required=False)
@click.argument("used", nargs=-1)
@click.option("--unused", multiple=True, metavar="ID", help='Was not used; takes a "used" back. Repeat for more.')
@click.option("--shown", multiple=True, metavar="ID", help="Really went into the prompt.  [default: the whole packet]")
@click.option("--incomplete", is_flag=True, help="What is not named may have been used too.")
@click.option("--complete", is_flag=True, help="What was shown and is not named was not used.")
@click.option("--channel", type=click.Choice(CHANNELS), help="How the use came to be known.  [default: explicit]")
@click.option("--outcome", type=float, metavar="0..1", help="How well the turn went; only with --channel packet.")
@click.option("--confidence", type=float, metavar="0..1", help="How sure the use is; only with --channel inferred.")
@click.option("--sequence", type=int, metavar="N", help="Orders your reports on one packet; the highest stands.")
@click.option("--agent", "agent_id", metavar="NAME", help="Who reports.  [default: the packet's agent]")
@click.option("--request-id", metavar="ID", help="Makes a retry count once.")
@click.option("--json-payload", metavar="JSON", help="The whole report as JSON; - in place of PACKET_ID reads it.")
@server_options()
def report_use(
    connection: Connection,
    packet_id: str | None,
    used: Sequence[str],
    unused: Sequence[str],
    shown: Sequence[str],
    incomplete: bool,
    complete: bool,
    json_payload: str | None,
    **others: Any,
) -> None:
    """Says which memories of a packet were USED: ids, or none if none was.

    The packet is the one named PACKET_ID in the answer of `rank`. Unless --incomplete is given, what is not named
    counts as not used.
    """
    if incomplete and complete:
        raise click.UsageError("--complete and --incomplete exclude each other")
    named = {"used": used, "unused": unused, "shown": shown, **others}
    given = {name: value for name, value in named.items() if value is not None and value != ()}
    if incomplete or complete:
        given["complete"] = complete
    if connection.namespace_given:
        given["namespace"] = connection.namespace
    if json_payload is not None or packet_id == "-":
        if json_payload is not None and packet_id is not None:
            raise click.UsageError("give PACKET_ID or --json-payload, one of the two")
        given = read_payload(read_text("-") if json_payload is None else json_payload) | given
    elif packet_id is not None:
        given["packet_id"] = packet_id
    else:
        raise click.UsageError("name the packet: PACKET_ID, as the answer of `rank` has it")
    with connection.client() as client, checked_values():
        response = client.report_use(**given)
    _show(connection, response)


def read_payload(text: str) -> dict[str, Any]:
    """A report from its JSON payload, as the client takes it. UsageError names what is wrong."""
    try:
        payload = parse_json(text)
    except ValueError as error:
        raise click.UsageError(f"the payload is not JSON: {error}") from error
    if not isinstance(payload, dict):
        raise click.UsageError("the payload is no JSON object")
    found: dict[str, Any] = {}
    for name, value in payload.items():
        if name not in _PAYLOAD:
            raise click.UsageError(f"unknown name {name!r} in the payload; known are {', '.join(_PAYLOAD)}")
        if name.endswith("_ids") and not (isinstance(value, list) and all(isinstance(each, str) for each in value)):
            raise click.UsageError(f"{name} is no list of texts in the payload")
        if _PAYLOAD[name] in found:
            raise click.UsageError("the payload names its channel twice, as kind and as channel")
        found[_PAYLOAD[name]] = value
    if not isinstance(found.get("packet_id"), str):
        raise click.UsageError("packet_id is no text in the payload")
    if found.get("channel", "explicit") not in CHANNELS:
        raise click.UsageError(f"kind is {found['channel']!r} in the payload; it is one of {', '.join(CHANNELS)}")
    if "report_time" in found:
        try:
            found["report_time"] = parse_time(found["report_time"], datetime.datetime.now(datetime.UTC))
        except (TypeError, ValueError) as error:
            raise click.UsageError(f"report_time is no time in the payload: {error}") from error
    return found


@click.command(
    short_help="Mark a memory as helpful or unhelpful.",
    epilog="""\b
Examples:
  memory-ranker rate m1 helpful
  memory-ranker rate m2 unhelpful --reason "out of date since the move"
  memory-ranker rate m2 withdrawn""",
)
@click.argument("memory_id")
@click.argument("rating", type=click.Choice(["helpful", "unhelpful", "withdrawn"]))
@click.option("--agent", "agent_id", default="", metavar="NAME", help="Who rates.  [default: one unnamed rater]")
@click.option("--reason", default="", metavar="TEXT", help="Why, in words.")
@click.option("--request-id", default="", metavar="ID", help="Makes a retry count once.")
@server_options()
def rate(connection: Connection, memory_id: str, rating: Any, **others: Any) -> None:
    """Marks a memory, or takes your mark back. One that is unhelpful is left out of packets until then."""
    with connection.client() as client, checked_values():
        response = client.rate(connection.namespace, memory_id, rating, **others)
    if connection.as_json:
        screen.document(plain(response))
        return
    standing = f"{response.ratings.helpful} helpful, {response.ratings.unhelpful} unhelpful"
    click.echo(f"{screen.visible(memory_id)}  {standing}{'; left out of packets' if response.left_out else ''}")


def _show(connection: Connection, response: Any) -> None:
    found = plain(response)
    if connection.as_json:
        screen.document(found)
    else:
        again = " (recorded before)" if response.replayed else ""
        counts = f"{response.used_count} used, {response.unused_count} not used"
        click.echo(f"{counts}; packet {found['report_state']}{again}")
    end_batch(found["results"], as_json=connection.as_json)
