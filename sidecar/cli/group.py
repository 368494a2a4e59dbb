"""The command `memory-ranker`: which commands there are, and how their errors are shown."""

from __future__ import annotations

from importlib.metadata import EntryPoint, entry_points
from typing import Any

import click

from sidecar import __version__
from sidecar.cli import demo, feedback, memories, put, ranking, serve, settings, status
from sidecar.cli.failures import MEANINGS, ExitCode, Failure

EXTENSIONS = "memory_ranker.commands"
"""The entry points by which other packages add commands."""


class Group(click.Group):
    """Finds the commands of other packages too, and turns every error into the form that was asked for."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Names of all commands: ours in the order of a first use, then the others'."""
        return [*self.commands, *sorted(entry_points(group=EXTENSIONS).names - set(self.commands))]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """A command by its name."""
        if cmd_name in self.commands:
            return self.commands[cmd_name]
        for found in entry_points(group=EXTENSIONS, name=cmd_name):
            return _load(found)
        return None

    def invoke(self, ctx: click.Context) -> Any:
        """Runs the command."""
        as_json = "--json" in ctx.args
        try:
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


def _load(found: EntryPoint) -> click.Command:
    try:
        command = found.load()
    except ImportError as error:
        raise Failure(f"the command {found.name} ({found.value}) cannot be loaded: {error}") from error
    if not isinstance(command, click.Command):
        raise Failure(f"the command {found.name} ({found.value}) is not a click command")
    return command


@click.group(cls=Group, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110})
@click.version_option(__version__, message="%(prog)s %(version)s")
def cli() -> None:
    """Tells an agent which of its memories are worth the tokens.

    Start with `memory-ranker demo`. Then: `serve` runs the server, `put` stores memories, `rank` ranks them for a
    task, `report-use` says which were used. Every command has examples in its own --help.
    """


for command in (
    demo.demo,
    serve.serve,
    put.put,
    ranking.rank,
    feedback.report_use,
    feedback.rate,
    ranking.why,
    ranking.packet,
    memories.get,
    memories.list_memories,
    memories.update,
    memories.delete,
    memories.namespaces,
    status.status,
    settings.config,
):
    cli.add_command(command)
