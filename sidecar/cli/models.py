"""`promote`, `rollback` and `models`: which model serves, through the server, or in a store that no server has."""

from __future__ import annotations

import os
import re
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click
from click.core import ParameterSource

from sidecar.cli import screen
from sidecar.cli.connection import Connection, server_options, settings_environ
from sidecar.cli.failures import ExitCode, Failure
from sidecar.cli.parsing import FILE, PATH
from sidecar.cli.plain import plain, word
from sidecar.cli.screen import Column
from sidecar.cli.store_folder import data_folder, data_option, store_errors
from sidecar.errors import StoreLockedError

if TYPE_CHECKING:
    from memoryranker.client import Client

    from sidecar.models import Models

VERSION = re.compile(r"[a-z]+-[0-9a-f]{12}")
MOST_EVENTS = 20
_DATA = data_option(
    "Change the store in this folder, without a server.  [default: ask the server; without one, as for `serve`]"
)

R = TypeVar("R")


@click.command(
    short_help="Put a model to work.",
    epilog="""\b
Examples:
  memory-ranker promote model --validate-only
  memory-ranker promote model --role shadow
  memory-ranker promote model --role canary --share 0.1
  memory-ranker promote model --yes
  memory-ranker promote model --force "the bench on our own tasks says so"

Ends with 9 if the gates refuse it or leave it to a person, and with 4 if it is damaged or made for other features. In
both cases nothing has changed.""",
)
@click.argument("model", type=FILE, metavar="PATH|VERSION")
@click.option(
    "--role",
    type=click.Choice(["active", "shadow", "canary", "retired"]),
    default="active",
    show_default=True,
    help="What for: to serve, to score beside what serves, to serve some sessions; or stop it as either of these.",
)
@click.option("--share", type=float, metavar="SHARE", help="Share of the sessions for a canary, above 0 and below 1.")
@click.option(
    "--yes", "by_person", is_flag=True, help="You have read its report and decide, where its gates leave it to you."
)
@click.option("--force", "force_reason", default="", metavar="REASON", help="Overrule the gates; the reason is kept.")
@click.option("--validate-only", is_flag=True, help="Verify it, ask its gates, and change nothing.")
@_DATA
@server_options(namespace=False, timeout=60)
def promote(
    connection: Connection,
    model: str,
    role: str,
    share: float | None,
    by_person: bool,
    force_reason: str,
    validate_only: bool,
    data: Path | None,
) -> None:
    """Verifies a model and gives it a role: a folder or tar archive that `train` wrote, or a VERSION of the registry.

    Hashes, feature schema, bounds and golden rows must be right and the gates must let it through, or what served
    before serves on. A server that runs takes it up between two calls; where none runs, the command takes the store's
    lock and does it itself. `rollback` leads back.
    """
    if (share is not None) != (role == "canary"):
        raise click.UsageError("--share is a canary's, and a canary needs it: --role canary --share 0.1")
    from sidecar.weights.archive import archive_of, read_files

    path = Path(model)
    given: dict[str, Any] = {"version": model}
    if path.exists():
        with store_errors():
            given = {"archive": archive_of(read_files(path))}
    elif not VERSION.fullmatch(model):
        words = (
            f"there is no {model!r} here: name the folder that `train` wrote, or a version of `memory-ranker models`"
        )
        raise Failure(words, ExitCode.NOT_FOUND)
    given |= {"role": role, "canary_share": share or 0.0, "validate_only": validate_only}
    given |= {"force_reason": force_reason, "by_person": by_person}

    def by_hand(models: Models) -> Any:
        from memoryranker.client import load_model_request

        from sidecar.rpc.admin_models import load

        return load(models, load_model_request(**given))

    response = _either(connection, data, lambda client: client.load_model(**given), by_hand)
    found = plain(response)
    if connection.as_json:
        screen.document(found)
    else:
        for check in response.checks:
            click.echo(f"- {screen.visible(check)}")
        of = response.model
        if not validate_only:
            now = f"{word(of, 'role')}" + (f" for {of.canary_share:g} of the sessions" if of.canary_share else "")
            click.echo(f"{of.version} is {now} now.")
        elif not of.problem:
            click.echo(f"{of.version} could be {role}. Nothing has changed.")
    if validate_only and response.model.problem:
        raise Failure(response.model.problem, ExitCode.GATED, reason="MODEL_GATED")


@click.command(
    short_help="Go back to the model before.",
    epilog="""\b
Examples:
  memory-ranker rollback --reason "worse on the weekly tasks"
  memory-ranker rollback default --json""",
)
@click.argument("version", default="")
@click.option("--reason", default="", metavar="WORDS", help="Why; it is kept in the history.")
@_DATA
@server_options(namespace=False, timeout=60)
def rollback(connection: Connection, version: str, reason: str, data: Path | None) -> None:
    """Goes back to VERSION, which has served, or to the model before the one that serves. Before the first model come
    the weights of the settings, which can be named too. No gate is asked."""

    def by_hand(models: Models) -> Any:
        from memoryranker.client import rollback_model_request

        from sidecar.rpc.admin_models import roll_back

        return roll_back(models, rollback_model_request(version, reason))

    response = _either(connection, data, lambda client: client.rollback_model(version, reason=reason), by_hand)
    if connection.as_json:
        screen.document(plain(response))
        return
    click.echo(f"{response.model.version} serves now.")


@click.command(
    short_help="List the models and who served when.",
    epilog="""\b
Examples:
  memory-ranker models
  memory-ranker models --json
  memory-ranker models --get "$VERSION" --out copied""",
)
@click.option("--get", "version", metavar="VERSION", help="Write the files of this model into --out instead.")
@click.option("--out", type=PATH, metavar="FOLDER", help="A new folder.")
@server_options(namespace=False)
def models(connection: Connection, version: str | None, out: Path | None) -> None:
    """Lists the models of the registry, newest first, with their roles, and the history of who had which."""
    if (version is None) != (out is None):
        raise click.UsageError("--get VERSION and --out FOLDER go together")
    with connection.client() as client:
        if version is not None and out is not None:
            _get(client, version, out, as_json=connection.as_json)
            return
        pages = list(client.models())
        serving = client.status().model_version
    found = [model for page in pages for model in page.models]
    events = list(pages[0].events)
    if connection.as_json:
        screen.document(
            {
                "serving": serving,
                "models": [plain(model) for model in found],
                "events": [plain(event) for event in events],
            }
        )
        return
    click.echo(f"serving: {serving}")
    if found:
        click.echo()
        columns = [Column(title) for title in ("version", "role", "share", "gates", "made", "since")]
        rows = [
            [
                model.version,
                word(model, "role"),
                f"{model.canary_share:g}" if model.canary_share else "",
                "preview" if model.preview else model.promote_gate,
                _day(model, "create_time"),
                _day(model, "role_time"),
            ]
            for model in found
        ]
        screen.table(columns, rows)
    if events:
        click.echo()
        rows = [
            [
                event.time.ToJsonString(),
                word(event, "action").replace("_", " "),
                word(event, "role") + (f" {event.canary_share:g}" if event.canary_share else ""),
                _whose(events, place),
                event.reason,
            ]
            for place, event in enumerate(events[:MOST_EVENTS])
        ]
        titles = ("time", "how", "role", "version")
        screen.table([*(Column(title) for title in titles), Column("why", is_text=True)], rows)
    for model in found:
        if model.problem:
            click.echo(f"! {screen.visible(f'{model.version} cannot serve: {model.problem}')}")


def _whose(events: Sequence[Any], place: int) -> str:
    """The version in the event at `place`, newest first; where a canary or a shadow ended, the one that it had been; ""
    if that is further back than these events."""
    event = events[place]
    if event.version:
        return str(event.version)
    if word(event, "action") != "stopped":
        return "(settings)"
    return next((each.version for each in events[place + 1 :] if each.role == event.role), "")


def _get(client: Client, version: str, out: Path, *, as_json: bool) -> None:
    from sidecar.weights.archive import files_of, write_files

    response = client.model(version)
    with store_errors():
        files = files_of(response.archive)
    try:
        write_files(files, Path(os.path.abspath(out)))
    except OSError as error:
        raise Failure(f"{out} cannot be written: {error.strerror}; name a folder that is not there") from error
    if as_json:
        screen.document({"version": version, "folder": str(out), "files": sorted(files)})
    else:
        click.echo(f"Wrote {len(files)} files of {version} to {screen.visible(str(out))}.")


def _either(
    connection: Connection, data: Path | None, by_server: Callable[[Client], R], by_hand: Callable[[Models], R]
) -> R:
    """Asks the server; without one, does it in the store itself, whose lock keeps a server out meanwhile."""
    unreached = ""
    if data is None:
        try:
            with connection.client() as client:
                return by_server(client)
        except Failure as failure:
            named = click.get_current_context().get_parameter_source("address") is ParameterSource.COMMANDLINE
            if named or failure.reason != ExitCode.UNAVAILABLE.name:
                raise
            unreached = failure.message
    try:
        with _registry(data or data_folder()) as found:
            return by_hand(found)
    except Failure as failure:
        if unreached and failure.reason == StoreLockedError.reason:
            raise failure.adding(f"That server was asked first, and not reached: {unreached}") from failure
        raise


@contextmanager
def _registry(folder: Path) -> Iterator[Models]:
    from sidecar.config import resolve
    from sidecar.errors import StoreNotFoundError
    from sidecar.models import Models
    from sidecar.store.store import Store
    from sidecar.weights.settled import settled_weights

    if not (folder / "memories.db").is_file():
        raise Failure(
            f"there is no server, and no store in {folder}; name the store's folder with --data",
            ExitCode.NOT_FOUND,
            reason=StoreNotFoundError.reason,
        )
    with store_errors():
        weights = settled_weights(resolve({}, settings_environ(os.environ)).settings)
        with Store.open(folder) as store:
            found = Models(store, weights, lambda: time.time_ns() // 1000)
            found.start()
            yield found


def _day(model: Any, field: str) -> str:
    return getattr(model, field).ToJsonString()[:10] if model.HasField(field) else ""
