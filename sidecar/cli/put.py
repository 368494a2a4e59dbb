"""`put`: stores memories, one from the command line or many from a file of JSON Lines."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from sidecar.cli import screen
from sidecar.cli.connection import Connection, server_options
from sidecar.cli.failures import ExitCode, Failure, batch_exit_code, exit_with, unreadable
from sidecar.cli.memory_options import MEMORY_FLAGS, memory_options
from sidecar.cli.parsing import FILE, json_lines, memory_fields, read_text
from sidecar.cli.plain import plain
from sidecar.formats.items import made_id, unsaid, unsaid_words
from sidecar.plurals import counted

if TYPE_CHECKING:
    from memoryranker.client import Client

BATCH_MEMORIES = 500
BATCH_BYTES = 1 << 20
"""Far below what the server takes in one message, so that a batch of long memories fits too."""


@dataclass(slots=True)
class Tally:
    """What became of a stream of memories. `refused` has (line, id, reason); `unsaid` counts, by field, the lines that
    gave it null or empty."""

    counts: dict[str, int] = field(default_factory=lambda: {"created": 0, "updated": 0, "unchanged": 0})
    refused: list[tuple[int, str, str]] = field(default_factory=list)
    unsaid: dict[str, int] = field(default_factory=dict)
    score_version: int = 0

    @property
    def total(self) -> int:
        """Memories that were read."""
        return sum(self.counts.values()) + len(self.refused)


@click.command(
    short_help="Store memories.",
    epilog="""\b
Examples:
  memory-ranker put "Deploys need a green canary for 30 minutes" --kind decision --tag deploy
  memory-ranker put --id m7 --kind failure --file notes/outage.md
  echo "Priya wants table-driven tests" | memory-ranker put - --kind preference --subject priya
  memory-ranker put --jsonl memories.jsonl --json

A line of a --jsonl file is an object with the API's field names, of which content alone is needed:
{"id": "m1", "content": "...", "kind": "fact", "create_time": "2026-10-01T09:30:00Z", "tags": ["a"]}""",
)
@click.argument("text", required=False)
@click.option("--file", "path", type=FILE, metavar="FILE", help="Take the text from a file, or - for standard input.")
@click.option(
    "--jsonl", type=FILE, metavar="FILE", help="Take many memories from a file of JSON Lines, or - for standard input."
)
@click.option("--id", "memory_id", metavar="ID", help="Its id.  [default: made from the text]")
@memory_options
@server_options()
def put(
    connection: Connection,
    text: str | None,
    path: str | None,
    jsonl: str | None,
    memory_id: str | None,
    fields: dict[str, Any],
) -> None:
    """Stores a memory: TEXT, or - to read it from standard input.

    One that has the same id is changed; what is not given keeps its old value. Without --id the id is made from the
    text, so that the same text is the same memory. A memory that was acknowledged is durable and can be ranked.
    """
    if sum(source is not None for source in (text, path, jsonl)) != 1:
        raise click.UsageError("give exactly one of TEXT, --file and --jsonl")
    if jsonl is not None:
        if memory_id is not None or fields:
            raise click.UsageError("with --jsonl, every line has its own id and fields; give no other flags for them")
        _put_lines(connection, jsonl)
        return
    content = text if text is not None and text != "-" else read_text(path or "-")
    tally = Tally()
    chosen = made_id(content) if memory_id is None else memory_id
    with connection.client() as client:
        result = put_batch(client, connection.namespace, [(1, {"id": chosen, "content": content, **fields})], tally)
    if tally.refused:
        raise Failure(tally.refused[0][2], ExitCode.REFUSED, reason="MEMORY_REFUSED")
    if connection.as_json:
        screen.document({"memory_id": chosen, "outcome": result[0], "score_version": tally.score_version})
    else:
        click.echo(f"{screen.visible(chosen)}  {result[0]}")


def put_batch(client: Client, namespace: str, batch: list[tuple[int, Mapping[str, Any]]], tally: Tally) -> list[str]:
    """Writes one batch of (line, memory) and adds what became of it to the tally; the outcomes, in words."""
    built: list[Any] = []
    lines: list[int] = []
    from memoryranker.client import memory

    for line, given in batch:
        try:
            message = memory(**given)
            if message.ByteSize() > BATCH_BYTES:  # it may not even fit into a message
                _check(client, message)
            built.append(message)
            lines.append(line)
        except (TypeError, ValueError) as error:
            tally.refused.append((line, str(given.get("id", "")), str(error)))
    if not built:
        return []
    response = client.upsert(namespace, built)
    tally.score_version = response.score_version
    outcomes = []
    for line, result in zip(lines, response.results, strict=True):
        found = plain(result)
        outcomes.append(found["outcome"])
        if found.get("status", {}).get("code", "ok") == "ok":
            tally.counts[found["outcome"]] += 1
        else:
            tally.refused.append((line, result.memory_id, found["status"]["message"]))
    return outcomes


def _check(client: Client, message: Any) -> None:
    from sidecar.rpc.incoming_memories import faults

    if wrong := faults(message, client.status().dimension):
        raise ValueError(wrong)


def batches(
    lines: Iterable[tuple[int, dict[str, Any] | str]], tally: Tally
) -> Iterator[list[tuple[int, Mapping[str, Any]]]]:
    """Groups the lines that hold a memory into batches that fit into a message; the tally gets the others."""
    batch: list[tuple[int, Mapping[str, Any]]] = []
    size = 0
    for number, found in lines:
        try:
            if isinstance(found, str):
                raise ValueError(found)
            fields = memory_fields(found, ("content", *MEMORY_FLAGS))
            content = fields.get("content")
            if content is None:
                raise ValueError("content is missing; every line needs it, a text")
            if not isinstance(content, str):
                raise ValueError(f"content: {content!r} is not a text")
        except ValueError as error:
            known = str(found.get("id", "")) if isinstance(found, dict) else ""
            tally.refused.append((number, known, str(error)))
            continue
        fields.setdefault("id", made_id(content))
        for name in unsaid(fields):
            tally.unsaid[name] = tally.unsaid.get(name, 0) + 1
        weight = 4 * len(content) + 4 * len(fields.get("embedding") or ())
        if batch and (len(batch) == BATCH_MEMORIES or size + weight > BATCH_BYTES):
            yield batch
            batch, size = [], 0
        batch.append((number, fields))
        size += weight
    if batch:
        yield batch


def _put_lines(connection: Connection, name: str) -> None:
    tally = Tally()
    line = 0
    try:
        with ExitStack() as stack:
            stream = sys.stdin.buffer if name == "-" else stack.enter_context(Path(name).open("rb"))
            client = stack.enter_context(connection.client())
            for batch in batches(json_lines(stream), tally):
                put_batch(client, connection.namespace, batch, tally)
                line = batch[-1][0]
    except OSError as error:
        raise unreadable(name, error) from error
    except Failure as failure:
        # Doing it again is safe: what is stored is found unchanged.
        raise failure.adding(f"stored up to line {line}; run it again when that is mended") from failure
    tally.refused.sort()
    if connection.as_json:
        refused = [{"line": line, "memory_id": known, "message": words} for line, known, words in tally.refused]
        screen.document({**tally.counts, "refused": refused, "score_version": tally.score_version})
    else:
        click.echo(", ".join(f"{count} {name}" for name, count in tally.counts.items()))
        for line, known, words in tally.refused:
            screen.note(f"line {line}{f' ({screen.visible(known)})' if known else ''}: {screen.visible(words)}")
        if tally.refused:
            rest = "; the rest is stored." if len(tally.refused) < tally.total else "; nothing was stored."
            screen.note(f"{len(tally.refused)} of {counted(tally.total, 'line was', 'lines were')} refused{rest}")
    if tally.unsaid and (tally.counts["updated"] or tally.counts["unchanged"]):
        screen.note(unsaid_words(tally.unsaid))
    exit_with(batch_exit_code(len(tally.refused), tally.total))
