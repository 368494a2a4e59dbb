"""The command `memory-ranker`: which commands there are, and how their errors are shown."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from importlib import import_module
from typing import TYPE_CHECKING, Any, cast

import click

from sidecar import __version__
from sidecar.cli.failures import MEANINGS, ExitCode, Failure

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint, EntryPoints

EXTENSIONS = "memory_ranker.commands"
"""The entry points by which other packages add commands."""


_COMMANDS = {
    "demo": ("demo", "demo"),
    "serve": ("serve", "serve"),
    "put": ("put", "put"),
    "import": ("import_memories", "import_memories"),
    "export": ("export_memories", "export"),
    "rank": ("ranking", "rank"),
    "report-use": ("feedback", "report_use"),
    "report-output": ("report_output", "report_output"),
    "audit": ("audit", "audit"),
    "rescore": ("rescore", "rescore"),
    "importance": ("importance", "importance"),
    "promote": ("models", "promote"),
    "rollback": ("models", "rollback"),
    "models": ("models", "models"),
    "prune": ("prune", "prune"),
    "purge": ("purge", "purge"),
    "rate": ("feedback", "rate"),
    "why": ("ranking", "why"),
    "packet": ("ranking", "packet"),
    "get": ("memories", "get"),
    "list": ("memories", "list_memories"),
    "update": ("memories", "update"),
    "delete": ("memories", "delete"),
    "namespaces": ("memories", "namespaces"),
    "eval": ("evaluation", "evaluate_command"),
    "status": ("status", "status"),
    "backup": ("backup", "backup"),
    "restore": ("backup", "restore"),
    "check": ("check", "check"),
    "reindex": ("reindex", "reindex"),
    "config": ("settings", "config"),
}
"""Name -> the module in sidecar.cli and the command in it; in the order of a first use."""


class Commands(Mapping[str, click.Command]):
    """Our commands. The module of one is imported when it is asked for: all of them take as long as click does."""

    def __getitem__(self, name: str) -> click.Command:
        module, attribute = _COMMANDS[name]
        found: click.Command = getattr(import_module(f"sidecar.cli.{module}"), attribute)
        return found

    def __iter__(self) -> Iterator[str]:
        return iter(_COMMANDS)

    def __len__(self) -> int:
        return len(_COMMANDS)


class Group(click.Group):
    """Finds the commands of other packages too, and turns every error into the form that was asked for."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Names of all commands: ours in the order of a first use, then the others'."""
        return [*self.commands, *sorted(_extensions().names - set(self.commands))]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """A command by its name."""
        if (own := self.commands.get(cmd_name)) is not None:
            return own
        for found in _extensions().select(name=cmd_name):
            return _load(found)
        return None

    def make_context(self, *arguments: Any, **others: Any) -> click.Context:
        """Reads the command line, and shows the help and the version."""
        with _reader_may_stop():
            return super().make_context(*arguments, **others)

    def invoke(self, ctx: click.Context) -> Any:
        """Runs the command."""
        as_json = "--json" in ctx.args
        try:
            with _reader_may_stop():
                return super().invoke(ctx)
        except (KeyboardInterrupt, click.Abort):
            ctx.exit(ExitCode.INTERRUPTED)
        except Failure as failure:
            failure.as_json |= as_json
            raise
        except click.UsageError as error:
            if not as_json:
                raise
            raise Failure(error.format_message(), ExitCode.USAGE, as_json=True) from error

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Ends the help with the exit codes."""
        with formatter.section("Exit codes"):
            formatter.write_dl([(str(int(code)), words) for code, words in MEANINGS.items()])


@contextmanager
def _reader_may_stop() -> Iterator[None]:
    """Ends the command with the code that a shell shows for tools which the closed pipe kills, and without a word."""
    try:
        yield
    except BrokenPipeError:
        # What is still buffered could not be written at the exit either.
        nowhere = os.open(os.devnull, os.O_WRONLY)
        for stream in (1, 2):
            os.dup2(nowhere, stream)
        raise click.exceptions.Exit(ExitCode.CLOSED) from None


def _extensions() -> EntryPoints:
    # Half of all that is imported here, and needed only for the list and for commands of others.
    from importlib.metadata import entry_points

    return entry_points(group=EXTENSIONS)


def _load(found: EntryPoint) -> click.Command:
    """The command of another package; one that says what is wrong where it cannot be had, so that help still works."""
    try:
        command = found.load()
    except ImportError as error:
        return _broken(found, f"cannot be loaded: {error}")
    return command if isinstance(command, click.Command) else _broken(found, "is not a click command")


def _broken(found: EntryPoint, words: str) -> click.Command:
    def fail(**_: Any) -> None:
        raise Failure(f"the command {found.name} ({found.value}) {words}")

    anything = click.Argument(["arguments"], nargs=-1, type=click.UNPROCESSED)
    settings = {"ignore_unknown_options": True}
    return click.Command(
        found.name, callback=fail, params=[anything], context_settings=settings, short_help=f"({words})"
    )


@click.group(
    cls=Group,
    commands=cast("Any", Commands()),
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110},
)
@click.version_option(__version__, message="%(prog)s %(version)s")
def cli() -> None:
    """Tells an agent which of its memories are worth the tokens.

    Start with `memory-ranker demo`. Then: `serve` runs the server, `put` stores memories, `rank` ranks them for a
    task, `report-use` says which were used. Every command has examples in its own --help.
    """
