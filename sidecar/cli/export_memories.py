"""`export`: writes everything of a namespace into a file of JSON Lines, from which `import` brings it back."""

from __future__ import annotations

import base64
import datetime
import os
import secrets
import signal
import stat
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import IO, TYPE_CHECKING

import click

from sidecar.cli import screen
from sidecar.cli.connection import Connection, check_namespace, server_options
from sidecar.cli.failures import unwritable
from sidecar.cli.parsing import FILE
from sidecar.formats import jsonl
from sidecar.plurals import counted

if TYPE_CHECKING:
    from memoryranker.client import Client

PAGE_SIZE = 500
_STATE = b'{"type":"memory_state"'
_SCORED = b'"importance_content":'
"""In the row of a memory, and of one that has its importance. No text holds them: quotation marks are escaped in it."""


@click.command(
    short_help="Write memories, use and ratings into a file.",
    epilog="""\b
Examples:
  memory-ranker export --output memories-today.jsonl
  memory-ranker export --no-log --no-embeddings > only-memories.jsonl""",
)
@click.option(
    "-o", "--output", type=FILE, default="-", metavar="FILE", help="Where to; - is standard output.  [default: -]"
)
@click.option("--no-embeddings", is_flag=True, help="Leave vectors out; whoever imports the file embeds the texts.")
@click.option("--no-log", is_flag=True, help="Leave out packets, reports, ratings and importances.")
@server_options()
def export(connection: Connection, output: str, no_embeddings: bool, no_log: bool) -> None:
    """Writes a namespace as JSON Lines: every memory with all fields, then what is known of its use.

    Imported into an empty store, it ranks as it does here. A file is there whole or not at all. It holds memories in
    plain text, is as secret as they are, and outlives their deletion.
    """
    if _is_standard_output(output):
        output = "-"
    if output == "-" and connection.as_json:
        raise click.UsageError("--json tells about a file that was written: name it with --output FILE")
    with ExitStack() as stack:
        client = stack.enter_context(connection.client())
        if connection.namespace_given:
            check_namespace(client, connection.namespace)
        file = stack.enter_context(_written(output))
        memories = _write_memories(connection, client, file, with_embeddings=not no_embeddings)
        rows, unscored = (0, 0) if no_log else _write_log(connection, client, file)
    if connection.as_json:
        screen.document({"output": output, "memories": memories, "log_rows": rows, "unscored_count": unscored})
    elif output != "-":
        click.echo(
            f"{counted(memories, 'memory')} and {counted(rows, 'row')} of the log written to {screen.visible(output)}"
        )
    if unscored:
        screen.note(
            f"{counted(unscored, 'memory')} had no importance yet, and the file holds none of theirs: they are"
            " worked out anew at the import. `status --namespace NAME` shows as unscored_count how many still wait."
        )


def _write_memories(connection: Connection, client: Client, file: IO[bytes], *, with_embeddings: bool) -> int:
    from sidecar.cli.plain import plain

    time = datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds").replace("+00:00", "Z")
    file.write(jsonl.header_line(connection.namespace, client.status().embedder, time))
    number = 0
    found = client.list(connection.namespace, page_size=PAGE_SIZE, include_embedding=with_embeddings)
    for number, memory in enumerate(found, 1):  # noqa: B007 - the last number is wanted
        vector = memory.embedding
        memory.ClearField("embedding")
        fields = plain(memory)
        if vector:
            fields["embedding"] = base64.b64encode(vector).decode()
        file.write(jsonl.memory_line(fields))
    return number


def _write_log(connection: Connection, client: Client, file: IO[bytes]) -> tuple[int, int]:
    """How many rows there were, and of how many memories the importance was still to come."""
    is_scoring = client.status(connection.namespace).namespace.unscored_count > 0  # never while importance is off
    rows = unscored = 0
    for chunk in client.export_log(connection.namespace):
        file.write(chunk)
        rows += chunk.count(b"\n")
        unscored += chunk.count(_STATE) - chunk.count(_SCORED)
    return rows, unscored if is_scoring else 0


def _is_standard_output(output: str) -> bool:
    """True for /dev/stdout and the like, whatever stands behind it."""
    try:
        return os.path.samestat(os.stat(output), os.fstat(1))
    except OSError:
        return False


@contextmanager
def _written(output: str) -> Iterator[IO[bytes]]:
    """Standard output; a file that takes its name when all of it is on the disk; or what is there and no file, such as
    a pipe or a device, straight. Links are followed."""
    if output == "-":
        yield sys.stdout.buffer
        sys.stdout.buffer.flush()
        return
    if not _is_file_or_new(output):
        with _straight(output) as file:
            yield file
        return
    path = Path(os.path.realpath(output))
    part = path.with_name(f".{path.name[:200]}.{secrets.token_hex(4)}.part")
    # Otherwise the process would end at once, and leave the part behind.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    try:
        with _opened(part, output) as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        part.replace(path)
        _sync_folder(path.parent)
    except OSError as error:
        raise unwritable(output, error) from error
    finally:
        part.unlink(missing_ok=True)


def _is_file_or_new(output: str) -> bool:
    try:
        return stat.S_ISREG(os.stat(output).st_mode)
    except FileNotFoundError:
        return True
    except OSError as error:
        raise unwritable(output, error) from error


@contextmanager
def _straight(output: str) -> Iterator[IO[bytes]]:
    try:
        with open(output, "wb") as file:
            yield file
    except BrokenPipeError:
        raise  # as on standard output
    except OSError as error:
        raise unwritable(output, error) from error


def _opened(part: Path, output: str) -> IO[bytes]:
    try:
        # Memories are nobody else's business.
        return os.fdopen(os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb")
    except OSError as error:
        raise unwritable(output, error) from error


def _sync_folder(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
