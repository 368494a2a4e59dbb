"""`reindex`: embeds all memories again, with the store's embedder or with another one."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource

from sidecar.cli import screen
from sidecar.cli.connection import Connection, server_options
from sidecar.cli.failures import ExitCode, Failure
from sidecar.cli.settings import resolved
from sidecar.cli.store_folder import data_option, store_errors
from sidecar.plurals import counted

if TYPE_CHECKING:
    from sidecar.config import Settings
    from sidecar.retrieval.embedding import Embedder

Advance = Callable[[int, int], None]


@click.command(
    short_help="Embed all memories again, or change the embedder.",
    epilog="""\b
Examples:
  memory-ranker reindex
  memory-ranker reindex --embedder none --json

Run it again after a break: what another embedder has embedded stays. A client's own vectors are replaced by the
embedder's; with client:DIMENSION memories have none until clients send them.""",
)
@click.option(
    "--embedder",
    "spec",
    metavar="SPEC",
    help="wordllama, none, onnx:FOLDER, model2vec:FOLDER or client:DIMENSION.  [default: the store's own]",
)
@data_option(
    "Reindex the store in this folder, without a server.  [default: ask the server; without one, as for `serve`]"
)
@server_options(namespace=False, timeout=86_400)
def reindex(connection: Connection, spec: str | None, data: Path | None) -> None:
    """Embeds every memory again, while the server goes on ranking.

    With the store's own embedder, vectors are replaced in place. Those of another are kept beside the ones that serve,
    never mixed with them, and take over when the server is started with that embedder. Where no server runs, the
    command takes the store's lock, embeds and changes the embedder itself.
    """
    settings = resolved(None, {}).settings
    wanted = _absolute(spec or "")
    found = None if data else _by_server(connection, wanted)
    if found is None:
        found = _by_hand(data or settings.data, wanted, settings)
    if connection.as_json:
        screen.document(found)
        return
    name = screen.visible(found["embedder"])
    click.echo(
        f"{found['done_count']:,} of {counted(found['total_count'], 'memory has', 'memories have')} vectors of {name}."
    )
    if not found["in_use"]:
        click.echo(f"The server ranks with its own as before. Start it with --embedder {name} to change over.")


def _absolute(spec: str) -> str:
    """The server may have another working folder."""
    kind, colon, folder = spec.partition(":")
    return f"{kind}:{os.path.abspath(os.path.expanduser(folder))}" if kind in ("onnx", "model2vec") and colon else spec


def _by_server(connection: Connection, spec: str) -> dict[str, Any] | None:
    """What the server's run came to; None if there is no server."""
    try:
        with connection.client() as client:
            status = client.status()
            serving = (status.embedder, status.dimension)
            # Made here too: whether it is the server's is told by its fingerprint alone.
            in_use = not spec or _named(_made(spec)) == serving
            answers = client.reindex(spec, timeout=connection.timeout)
            done, total = _followed((each.done_count, each.total_count) for each in answers)
    except Failure as failure:
        # Of a server that was named on the command line, no other store is meant.
        named = click.get_current_context().get_parameter_source("address") is ParameterSource.COMMANDLINE
        if named or failure.reason != ExitCode.UNAVAILABLE.name:
            raise
        return None
    return _result(done, total, spec or status.embedder.partition("@")[0], in_use=in_use)


def _by_hand(data: Path, wanted: str, settings: Settings) -> dict[str, Any]:
    from sidecar.errors import EmbedderMismatchError, StoreNotFoundError
    from sidecar.reindex import Reindexer
    from sidecar.retrieval.embedders import make_embedder
    from sidecar.retrieval.embedding import identity
    from sidecar.store import meta
    from sidecar.store.store import Store

    spec = wanted or settings.embedder
    embedder = _made(spec)
    with store_errors():
        if not (data / "memories.db").is_file():
            raise StoreNotFoundError(f"there is no store in {data}; name its folder with --data")
        with Store.open(data, quota_bytes=settings.quota_bytes or None) as store:
            reindexer = Reindexer(store, embedder, make_embedder)
            known = store.meta(meta.EMBEDDER)
            if known is None:
                store.set_meta({meta.EMBEDDER: identity(embedder).encode()})
            if not wanted and known not in (None, identity(embedder).encode()):
                raise EmbedderMismatchError(
                    f"the store in {data} holds vectors of {known.decode()}, and embedder is set to {spec};"
                    f" --embedder {spec} changes the store"
                )
            is_own = known is None or known == identity(embedder).encode()
            done, total = _followed(reindexer.run(embedder) if is_own else reindexer.switch(embedder))
    return _result(done, total, spec, in_use=True)


def _made(spec: str) -> Embedder:
    from sidecar.errors import SettingsError
    from sidecar.retrieval.embedders import make_embedder

    try:
        made = make_embedder(spec)
        _named(made)  # loads it
    except SettingsError as error:
        raise Failure(error.message, ExitCode.USAGE, reason=error.reason) from error
    return made


def _named(embedder: Embedder) -> tuple[str, int]:
    return f"{embedder.name}@{embedder.fingerprint}", embedder.dimension


def _result(done: int, total: int, embedder: str, *, in_use: bool) -> dict[str, Any]:
    return {"done_count": done, "total_count": total, "embedder": embedder, "in_use": in_use}


def _followed(steps: Iterable[tuple[int, int]]) -> tuple[int, int]:
    """Shows each step, and returns the last."""
    done, total = 0, 0
    with _progress() as advance:
        for done, total in steps:
            advance(done, total)
    return done, total


@contextmanager
def _progress() -> Iterator[Advance]:
    """A bar on a terminal. What it counts is on the disk."""
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    console = screen.bars()
    if not console.is_terminal:
        yield lambda *_: None
        return
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=console, transient=True) as progress:
        task = progress.add_task("memories", total=None)
        yield lambda done, total: progress.update(task, completed=done, total=total)
