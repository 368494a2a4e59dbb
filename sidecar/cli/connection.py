"""What the commands that talk to a server have in common: their options, and a client whose errors end the command."""

from __future__ import annotations

import functools
import math
import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import click

from sidecar.cli.failures import ExitCode, Failure, failure_of
from sidecar.cli.screen import visible

if TYPE_CHECKING:
    from memoryranker.client import Client

OWN_VARIABLES = ("MEMORY_RANKER_NAMESPACE",)
"""Variables of the command line alone, which are no settings of the server."""

Command = Callable[..., Any]


@dataclass(frozen=True, slots=True)
class Connection:
    """Where a command's server is, whose memories it is about, and in which form the answer is wanted."""

    address: str
    namespace: str
    timeout: float
    as_json: bool
    namespace_given: bool = True

    @contextmanager
    def client(self, *, wait_for_ready: bool = False) -> Iterator[Client]:
        """A client. What its calls raise becomes a Failure."""
        from memoryranker.client import Client, RankerRpcError

        with Client(self.address, timeout=self.timeout, wait_for_ready=wait_for_ready) as client:
            try:
                yield client
            except RankerRpcError as error:
                raise failure_of(error, self.address, self.timeout) from error


def check_namespace(client: Client, name: str) -> None:
    """Failure if nothing was ever stored or logged in a namespace: its name is most likely misspelt."""
    status = client.status(name).namespace
    if not (status.memory_count or status.packet_count) and all(each.namespace != name for each in client.namespaces()):
        raise unknown_namespace(name)


def unknown_namespace(name: str) -> Failure:
    """A namespace that is not there."""
    return Failure(
        f"there is no namespace {visible(name)}: nothing was ever stored in it; memory-ranker namespaces lists those "
        "there are",
        ExitCode.NOT_FOUND,
    )


@contextmanager
def checked_values() -> Iterator[None]:
    """Turns a value that no message can hold, such as a number of more than 32 bits, into a Failure."""
    try:
        yield
    except (TypeError, ValueError) as error:
        raise Failure(str(error), ExitCode.REFUSED) from error


def settings_environ(environ: Mapping[str, str]) -> dict[str, str]:
    """The environment without the command line's own variables."""
    return {name: value for name, value in environ.items() if name not in OWN_VARIABLES}


class NumberRange(click.FloatRange):
    """click's range, and no NaN, which is below and above nothing."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """The number. BadParameter for what is none of the range."""
        found = super().convert(value, param, ctx)
        if math.isnan(found):
            self.fail(f"{value} is not in the range {self._describe_range()}.", param, ctx)
        return found


def server_options(
    *, namespace: bool = True, unnamed: str = '"default"', timeout: float = 10.0
) -> Callable[[Command], Command]:
    """Adds --address, --namespace, --timeout and --json to a command, which gets them as `connection`. `unnamed` says
    in its help whose memories it is about without --namespace."""

    def decorate(command: Command) -> Command:
        @functools.wraps(command)
        def run(address: str | None, timeout: float, as_json: bool, **others: Any) -> Any:
            name = others.pop("namespace", None)
            connection = Connection(
                address or _default_address(), name or "default", timeout, as_json, namespace_given=name is not None
            )
            return command(connection=connection, **others)

        options = [
            click.option(
                "-a",
                "--address",
                envvar="MEMORY_RANKER_LISTEN",
                metavar="ADDRESS",
                callback=_check_address,
                help="The server: unix:PATH or HOST:PORT (or MEMORY_RANKER_LISTEN).  [default: as for `serve`]",
            ),
            click.option(
                "--timeout",
                type=NumberRange(min=0, min_open=True, max=86_400),
                default=timeout,
                show_default=True,
                metavar="SECONDS",
                help="How long to wait for an answer.",
            ),
            json_option,
            no_color_option,
        ]
        if namespace:
            options.insert(
                1,
                click.option(
                    "-n",
                    "--namespace",
                    envvar="MEMORY_RANKER_NAMESPACE",
                    metavar="NAME",
                    callback=_check_namespace,
                    help=f"Whose memories (or MEMORY_RANKER_NAMESPACE).  [default: {unnamed}]",
                ),
            )
        for option in reversed(options):
            run = option(run)
        return run

    return decorate


def _set_color(ctx: click.Context, _: click.Parameter, no_color: bool) -> None:
    # Click strips colour by itself where the output is no terminal.
    if no_color or os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb":
        ctx.color = False


json_option = click.option("--json", "as_json", is_flag=True, help="One JSON document on standard output.")
no_color_option = click.option(
    "--no-color",
    is_flag=True,
    expose_value=False,
    is_eager=True,
    callback=_set_color,
    help="No colour (or set NO_COLOR, or TERM=dumb).",
)


def _check_address(_: click.Context, __: click.Parameter, value: str | None) -> str | None:
    """As `serve` reads it, but that the server may be on another machine."""
    from sidecar.config.rules import SaidBetterError, parse_address

    if value is None:
        return None
    try:
        return parse_address(value)[0]
    except SaidBetterError as error:
        raise click.BadParameter(f"{value!r} is no address: write {error}") from error
    except ValueError as error:
        raise click.BadParameter(
            f"{value!r} is no address: write unix:PATH or HOST:PORT, with a port up to 65535"
        ) from error


def _check_namespace(_: click.Context, __: click.Parameter, value: str | None) -> str | None:
    if value == "":
        raise click.BadParameter("is empty: name a namespace, or leave it out for the namespace 'default'")
    return value


def _default_address() -> str:
    """Where a server with the same environment and settings file would listen."""
    from sidecar.config import resolve
    from sidecar.errors import SettingsError

    try:
        return resolve({}, settings_environ(os.environ)).settings.listen
    except SettingsError as error:
        raise Failure(error.message, ExitCode.USAGE, reason=error.reason) from error
