"""`import`: brings memories in from files: JSON Lines, JSON documents, and Markdown that agents keep as memory."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING, Any

import click

from sidecar.cli import screen
from sidecar.cli.connection import Connection, server_options
from sidecar.cli.failures import Failure, batch_exit_code, exit_with, failure_of
from sidecar.cli.import_files import Reading, count, find
from sidecar.cli.import_stream import Found, LogLines
from sidecar.cli.import_tally import MOST_SHOWN, Tally, show, show_look
from sidecar.cli.parsing import FILE
from sidecar.formats.detect import FORMATS
from sidecar.formats.items import Problem, unsaid_words
from sidecar.formats.mapping import parse_maps
from sidecar.plurals import counted

if TYPE_CHECKING:
    from memoryranker.client import Client, IngestResult


@click.command(
    "import",
    short_help="Bring memories in from files.",
    epilog="""\b
Examples:
  memory-ranker import memories.jsonl
  memory-ranker import MEMORY.md CLAUDE.md memory/ --dry-run
  memory-ranker import chat.jsonl --map content=message.text --map create_time=ts --map metadata.user=from
  memory-ranker export --no-log | memory-ranker import - --namespace trial

A bad line is told by its number, and the rest goes in: exit code 6. What the file says stands: importing it again puts
back what was changed or deleted since, and changes nothing where nothing was. So an import that broke off, or a file
that has grown, can be imported again. docs/import.md describes the formats.""",
)
@click.argument("files", nargs=-1, required=True, type=FILE)
@click.option("--format", "format_", type=click.Choice(FORMATS), help="The files' format.  [default: detected]")
@click.option(
    "--map",
    "maps",
    multiple=True,
    metavar="FIELD=PATH",
    help="Take a field from a foreign one; dots reach into objects. Repeat for more.",
)
@click.option("--dry-run", is_flag=True, help="Show what would go in, and send no memory.")
@server_options()
def import_memories(
    connection: Connection, files: Sequence[str], format_: str | None, maps: Sequence[str], dry_run: bool
) -> None:
    """Brings memories in from FILES: files, folders of Markdown, or - for standard input.

    JSON Lines have a memory a line, with the API's field names; a file of `export` brings use, ratings and packets too.
    In Markdown every bullet or paragraph is a memory, and files that are imported with @path follow.
    """
    try:
        reading = Reading(parse_maps(maps), format_)
    except ValueError as error:
        raise click.UsageError(f"--map {error}") from error
    sources = find(files, reading)
    tally = Tally()
    with ExitStack() as stack:
        log = stack.enter_context(LogLines.opened())
        found = Found(sources, reading, tally, log)
        if dry_run:
            absent = _ask_if_there(connection, found)
            shown, total, rows = _look(found)
            if absent and found.has_vectors:
                words = f"no vector was compared with a store, which may have others: {absent}"
                tally.notes.append((None, Problem(0, "", words)))
        else:
            client = stack.enter_context(connection.client())
            _ask(client, found)
            _send(connection, client, found, stack)
    tally.notes += [(source, note) for source in sources for note in source.notes]
    if reading.aside:
        names = ", ".join(f"{name} ({times})" for name, times in sorted(reading.aside.items()))
        tally.notes.append((None, Problem(0, "", f"left aside, as no --map takes them: {names}")))
    if tally.unsaid and (dry_run or tally.counts["updated"] or tally.counts["unchanged"]):
        tally.notes.append((None, Problem(0, "", unsaid_words(tally.unsaid))))
    tally.refused.sort(key=lambda each: (sources.index(each[0]), each[1].place))
    if dry_run:
        show_look(connection, tally, shown, total, rows)
        exit_with(batch_exit_code(len(tally.refused), total + rows + len(tally.refused)))
    else:
        show(connection, tally)
        exit_with(batch_exit_code(len(tally.refused), tally.total))


def _ask(client: Client, found: Found) -> None:
    status = client.status()
    found.embedder, found.dimension = status.embedder, status.dimension


def _ask_if_there(connection: Connection, found: Found) -> str:
    """Asks the server what vectors its store has. Returns why there is no answer, "" if there is one."""
    try:
        with connection.client() as client:
            _ask(client, found)
    except Failure as failure:
        return failure.message
    return ""


def _send(connection: Connection, client: Client, found: Found, stack: ExitStack) -> None:
    tally = found.tally
    advance = stack.enter_context(_progress(found))
    done = 0

    def note(result: IngestResult) -> None:
        nonlocal done
        done = result.acknowledged
        advance("memories", result.acknowledged)

    try:
        result = client.ingest(connection.namespace, found.memories(), on_progress=note)
    except click.ClickException:
        raise
    except KeyboardInterrupt:
        screen.note(
            f"interrupted: {counted(done, 'memory')} acknowledged; run it again to go on, what is in is found unchanged"
        )
        raise
    except Exception as error:
        from memoryranker.client import RankerRpcError

        if not isinstance(error, RankerRpcError):
            raise
        raise _broken_off(connection, error, found.place_of(done - 1)) from error
    tally.counts |= {name: getattr(result, name) for name in tally.counts}
    tally.score_version = result.score_version
    for rejection in result.rejections:
        found.refuse(rejection.position, rejection.message)
    for start, chunk in found.log.chunks():
        answer = client.import_log(connection.namespace, chunk)
        tally.log["imported"] += answer.imported_count
        tally.log["known"] += answer.known_count
        for each in answer.rejections:
            found.refuse_row(start + each.line - 1, each.message)
        advance("rows of the log", start + chunk.count(b"\n"), len(found.log))


def _broken_off(connection: Connection, error: Any, place: str) -> Failure:
    so_far = f"this run was acknowledged up to {place}" if place else "nothing of this run was acknowledged"
    return failure_of(error, connection.address, connection.timeout).adding(
        f"{so_far}, and what was in before still is; run it again when that is mended: what is in is found unchanged"
    )


@contextmanager
def _progress(found: Found) -> Iterator[Callable[..., None]]:
    """A bar on a terminal. What it counts is acknowledged by the server, and so durable and rankable."""
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    console = screen.bars()
    if not console.is_terminal:
        yield lambda *_: None
        return
    counts = [count(source, found.reading) for source in found.sources]
    total = None if None in counts else sum(each or 0 for each in counts)
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=console, transient=True) as progress:
        tasks: dict[str, Any] = {"memories": progress.add_task("memories", total=total)}

        def advance(what: str, done: int, of: int | None = None) -> None:
            if what not in tasks:
                tasks[what] = progress.add_task(what, total=of)
            elif what == "memories" and total is not None:
                of = max(done, total - len(found.tally.refused))
            progress.update(tasks[what], completed=done, total=of)

        yield advance


def _look(found: Found) -> tuple[list[Any], int, int]:
    """The first memories that would go in, how many would, and how many rows of the log."""
    from sidecar.store.log_rows import read_row

    shown: list[Any] = []
    total = 0
    for total, message in enumerate(found.memories(), 1):
        if len(shown) < MOST_SHOWN:
            shown.append((found.place_of(total - 1), message))
    rows = 0
    for start, chunk in found.log.chunks():
        for index, line in enumerate(chunk.splitlines(), start):
            try:
                read_row(line)
                rows += 1
            except ValueError as error:
                found.refuse_row(index, str(error))
    return shown, total, rows
