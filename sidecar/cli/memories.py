"""`get`, `list`, `update`, `delete` and `namespaces`: the memories that are stored."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

import click

from sidecar.cli import screen
from sidecar.cli.connection import Connection, checked_values, server_options
from sidecar.cli.failures import Failure, end_batch
from sidecar.cli.memory_options import MEMORY_FLAGS, filter_options, memory_options
from sidecar.cli.plain import plain
from sidecar.cli.screen import Column

_LIST_COLUMNS = (Column("id"), Column("kind"), Column("learned"), Column("marks"), Column("content", is_text=True))


@click.command(
    short_help="Show a memory.",
    epilog="""\b
Examples:
  memory-ranker get m1
  memory-ranker get m1 --json --embedding""",
)
@click.argument("memory_id")
@click.option("--embedding", is_flag=True, help="Its vector too; only with --json.")
@server_options()
def get(connection: Connection, memory_id: str, embedding: bool) -> None:
    """Shows one memory with all its fields."""
    with connection.client() as client:
        memory = client.get(connection.namespace, memory_id, include_embedding=embedding)
    show_memory(connection, memory)


@click.command(
    "list",
    short_help="List memories.",
    epilog="""\b
Examples:
  memory-ranker list
  memory-ranker list --kind decision --tag deploy --since 30d
  memory-ranker list --metadata team=billing --limit 20 --json""",
)
@filter_options
@click.option("--limit", type=click.IntRange(min=1), metavar="N", help="Stop after so many.  [default: all]")
@click.option("--embedding", is_flag=True, help="Their vectors too; only with --json.")
@server_options()
def list_memories(connection: Connection, filter: Any, limit: int | None, embedding: bool) -> None:
    """Lists memories in the order of their ids: all, or those that pass the filter."""
    with connection.client() as client, checked_values():
        memories = client.list(
            connection.namespace, filter or None, page_size=min(limit or 500, 500), include_embedding=embedding
        )
        found = list(itertools.islice(memories, limit))
    if connection.as_json:
        screen.document({"memories": [plain(memory) for memory in found]})
        return
    if not found:
        name = screen.visible(connection.namespace)
        click.echo(
            f"No memory of the namespace {name} passes the filter."
            if filter
            else f"The namespace {name} has no memories."
        )
        return
    screen.table(
        _LIST_COLUMNS,
        [
            [each.id, each.kind, each.create_time.ToJsonString()[:10], ",".join(marks(each)), each.content]
            for each in found
        ],
    )


@click.command(
    short_help="Change a memory.",
    epilog="""\b
Examples:
  memory-ranker update m1 --pinned
  memory-ranker update m2 --suppressed
  memory-ranker update m1 --importance-override 0.9 --tag deploy --tag canary
  memory-ranker update m3 --superseded-by m1
  memory-ranker update m2 --no-suppressed --clear superseded_by""",
)
@click.argument("memory_id")
@click.option("--content", metavar="TEXT", help="Its new text.")
@memory_options
@click.option(
    "--clear",
    multiple=True,
    type=click.Choice(list(MEMORY_FLAGS)),
    metavar="FIELD",
    help=f"Unset a field; repeat for more: {', '.join(MEMORY_FLAGS)}.",
)
@server_options()
def update(
    connection: Connection, memory_id: str, content: str | None, fields: dict[str, Any], clear: Sequence[str]
) -> None:
    """Changes the fields that are given, and no others. Tags and metadata are replaced as a whole."""
    changes = fields | ({} if content is None else {"content": content})
    if both := [name for name in clear if name in changes]:
        raise click.UsageError(f"{both[0]} is both set and cleared")
    if not changes and not clear:
        raise click.UsageError("name at least one field to change, as --pinned")
    changes |= dict.fromkeys(clear)
    with connection.client() as client, checked_values():
        response = client.update(connection.namespace, memory_id, **changes)
    show_memory(connection, response.memory)


@click.command(
    short_help="Delete memories.",
    epilog="""\b
Examples:
  memory-ranker delete m4 m5
  memory-ranker delete --kind working --until 2026-01-01 --yes""",
)
@click.argument("memory_ids", nargs=-1)
@filter_options
@click.option("--yes", is_flag=True, help="Do not ask before deleting by filter.")
@server_options()
def delete(connection: Connection, memory_ids: Sequence[str], filter: Any, yes: bool) -> None:
    """Deletes memories with their text, vectors and handles: by id, or all that pass a filter."""
    if bool(memory_ids) == bool(filter):
        raise click.UsageError("name ids or give a filter, one of the two")
    with connection.client() as client, checked_values():
        if filter and not yes:
            count = len(list(client.list(connection.namespace, filter, page_size=1000)))
            _ask(f"{count} of the namespace {connection.namespace!r}")
        response = client.delete(connection.namespace, memory_ids, filter=filter or None)
    found = plain(response)
    if connection.as_json:
        screen.document(found)
    else:
        click.echo(f"{response.deleted_count} deleted")
    end_batch(found["results"], as_json=connection.as_json)


@click.command(
    short_help="List the namespaces.",
    epilog="""\b
Examples:
  memory-ranker namespaces
  memory-ranker namespaces --json""",
)
@server_options(namespace=False)
def namespaces(connection: Connection) -> None:
    """Lists the namespaces of the store, and how many memories each holds."""
    with connection.client() as client:
        found = list(client.namespaces())
    if connection.as_json:
        screen.document({"namespaces": [plain(each) for each in found]})
        return
    if not found:
        click.echo("No namespace holds a memory.")
        return
    screen.table(
        (Column("memories", is_number=True), Column("last written"), Column("namespace")),
        [[str(each.memory_count), each.update_time.ToJsonString(), each.namespace] for each in found],
    )


def _ask(what: str) -> None:
    """Goes on if the user says yes; Failure otherwise."""
    answer = screen.asked(f"This deletes memories for good: {what}. Go on? [y/N] ", "--yes")
    if answer.strip().lower() not in ("y", "yes"):
        raise Failure("nothing was deleted")


def marks(memory: Any) -> list[str]:
    """What may keep a memory out of packets, or in them, in words."""
    found = [name for name in ("pinned", "suppressed") if getattr(memory, name)]
    found += ["superseded"] if memory.superseded_by else []
    return found + (["unhelpful"] if memory.ratings.unhelpful else [])


def show_memory(connection: Connection, memory: Any) -> None:
    """Prints one memory, in the form that was asked for."""
    found = plain(memory)
    if connection.as_json:
        screen.document(found)
        return
    importance = found.pop("importance", None)
    ratings = found.pop("ratings", None)
    found.pop("embedding", None)
    content = found.pop("content")
    if importance:
        found["importance"] = screen.brief(importance["score"], 3)
    if ratings and any(ratings.values()):
        found["ratings"] = ", ".join(f"{count} {name}" for name, count in ratings.items() if count)
    screen.fields((name, _shown(value)) for name, value in found.items())
    click.echo()
    for line in content.splitlines() or [""]:
        click.echo(screen.visible(line))


def _shown(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else ""
    if isinstance(value, list):
        return ", ".join(map(str, value))
    if isinstance(value, dict):
        return ", ".join(f"{name}={each}" for name, each in value.items())
    return str(value)
