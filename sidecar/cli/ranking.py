"""`rank`, `packet` and `why`: what is worth the tokens, what was served, and why something was not."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import click

from sidecar.cli import packets, screen
from sidecar.cli.connection import Connection, checked_values, server_options
from sidecar.cli.parsing import read_text
from sidecar.cli.plain import plain, word
from sidecar.cli.rank_options import for_client, rank_options
from sidecar.cli.screen import Column


@click.command(
    short_help="Rank memories for a task.",
    epilog="""\b
Examples:
  memory-ranker rank "add a retry to the webhook consumer"
  memory-ranker rank "add a retry" --max-items 5 --token-budget 800 --session s1 --context-project billing
  memory-ranker rank "roll back a deploy" --kind decision --tag deploy --since 90d --explain
  memory-ranker rank "roll back a deploy" --weights engine --dry-run
  memory-ranker rank "roll back a deploy" --weights weights.toml --dry-run
  memory-ranker rank "roll back a deploy" --weights '{"lexical": 0.6, "recency": 0.4}' --dry-run
  memory-ranker rank "roll back a deploy" --candidates memories.jsonl --as-of 2026-10-01 --json""",
)
@click.argument("task", required=False, default="")
@click.option(
    "--explain",
    type=click.Choice(["none", "contributions", "full"]),
    is_flag=False,
    flag_value="full",
    default="contributions",
    show_default=True,
    help="How much of the reasoning to show; full where no word follows.",
)
@rank_options
@click.option("--dry-run", is_flag=True, help="Log nothing and draw nothing: no packet id, no reserved memories.")
@click.option("--request-id", default="", metavar="ID", help="Makes a retry return the same packet.")
@server_options()
def rank(
    connection: Connection, task: str, explain: Any, options: dict[str, Any], dry_run: bool, request_id: str
) -> None:
    """Ranks memories for a TASK, or - to read it from standard input.

    Without a task they are ranked by what does not depend on one. Say afterwards with `report-use` which were used.
    """
    task = read_text("-") if task == "-" else task
    with connection.client() as client, checked_values():
        response = client.rank(
            connection.namespace, task, **for_client(options), explain=explain, dry_run=dry_run, request_id=request_id
        )
    if connection.as_json:
        screen.document(packets.as_json(response))
    else:
        packets.show(response, explain=explain)


@click.command(
    short_help="Show a packet and what was reported of it.",
    epilog="""\b
Examples:
  memory-ranker packet "$PACKET"
  memory-ranker packet "$PACKET" --json""",
)
@click.argument("packet_id")
@server_options()
def packet(connection: Connection, packet_id: str) -> None:
    """Shows a packet as it was served, and what was reported of it."""
    with connection.client() as client:
        response = client.get_packet(connection.namespace, packet_id)
    if connection.as_json:
        screen.document(plain(response) | {"packet": packets.as_json(response.packet)})
        return
    screen.fields(
        [
            ("served", response.create_time.ToJsonString()),
            ("agent", response.agent_id),
            ("session", response.session_id),
            ("surface", response.surface),
            ("reports", word(response, "report_state")),
        ]
    )
    click.echo()
    packets.show(response.packet)
    if response.uses:
        click.echo()
        screen.table(
            (Column("use"), Column("channel"), Column("sure", is_number=True), Column("id")),
            [
                ["used" if use.used else "not used", word(use, "channel"), screen.brief(use.confidence), use.memory_id]
                for use in response.uses
            ],
        )
    if response.undrawn:
        click.echo()
        screen.table(
            (Column("score", is_number=True), Column("chance", is_number=True), Column("in the pool, not drawn")),
            [
                [screen.brief(each.score, 3), screen.brief(each.inclusion_propensity), each.memory_id]
                for each in response.undrawn
            ],
        )


@click.command(
    short_help="Say why a memory was not in a packet.",
    epilog="""\b
Examples:
  memory-ranker why "$PACKET" m2
  memory-ranker why m2 --task "add a retry to the webhook consumer" --max-items 5""",
)
@click.argument("ids", nargs=-1, required=True, metavar="[PACKET_ID] MEMORY_ID")
@click.option("--task", metavar="TEXT", help="Instead of a packet: rank for this task now, without logging.")
@rank_options
@server_options()
def why(connection: Connection, ids: Sequence[str], task: str | None, options: dict[str, Any]) -> None:
    """Says why a memory was not in a packet, and the smallest change that would have put it there."""
    if task is None and len(ids) != 2:
        raise click.UsageError("name a packet and a memory, or a memory and --task TEXT")
    if task is not None and len(ids) != 1:
        raise click.UsageError("with --task, name one memory and no packet")
    if task is None and options:
        raise click.UsageError("a packet was ranked with options of its own; give others only with --task")
    with connection.client() as client, checked_values():
        if task is None:
            response = client.explain_miss(connection.namespace, ids[1], packet_id=ids[0])
        else:
            from memoryranker.client import rank_request

            request = rank_request(connection.namespace, task, **for_client(options))
            response = client.explain_miss(connection.namespace, ids[0], request=request)
    if connection.as_json:
        screen.document(plain(response))
    else:
        show_miss(ids[-1], response)


def show_miss(memory_id: str, response: Any) -> None:
    """Prints the answer to ExplainMiss."""
    if response.served:
        click.echo(f"{screen.visible(memory_id)} is in the packet, at place {response.place}.")
        return
    click.echo(f"{screen.visible(memory_id)}: {word(response, 'reason')}. {screen.visible(response.message)}")
    change = response.smallest_change
    screen.fields(
        [
            ("score", f"{response.score:.4f}" if response.HasField("score") else ""),
            ("rank", str(response.rank) if response.HasField("rank") else ""),
            ("last admitted", f"{response.admitted_score:.4f}" if response.HasField("admitted_score") else ""),
            ("would admit it", _change(change) if response.HasField("smallest_change") else ""),
        ]
    )
    gaps = [gap for gap in response.gaps if gap.contribution != gap.admitted_contribution]
    if gaps:
        click.echo()
        screen.table(
            (Column("feature"), Column("adds", is_number=True), Column("adds to the last admitted", is_number=True)),
            [
                [gap.feature, screen.brief(gap.contribution, 3), screen.brief(gap.admitted_contribution, 3)]
                for gap in gaps
            ],
        )
    if response.store_moved_on:
        screen.note("The namespace has changed since the packet was served; this is how it stands now.")


def _change(change: Any) -> str:
    return change.message or f"{change.field}: {change.from_json} -> {json.loads(change.to_json)}"
