"""`serve`: runs the server until it is told to stop."""

from __future__ import annotations

import gc
from pathlib import Path
from typing import Any

import click

from sidecar.cli.failures import ExitCode, Failure
from sidecar.cli.settings import resolved, settings_options
from sidecar.errors import ListenError, RankerError, SettingsError, StoreUnavailableError


@click.command(
    short_help="Run the server.",
    epilog="""\b
Examples:
  memory-ranker serve
  memory-ranker serve --data ./store --listen unix:./ranker.sock
  memory-ranker serve --listen 127.0.0.1:7070 --threads 8 --log-format json

Ctrl-C or SIGTERM stops it in order: it takes no more calls, and those that run may finish.""",
)
@settings_options
def serve(file: Path | None, **flags: Any) -> None:
    """Runs the server until Ctrl-C or SIGTERM.

    Every setting can be given as a flag, in the environment (MEMORY_RANKER_THREADS=8) or in the settings file, and the
    first of these wins. `memory-ranker config` shows what they come to.
    """
    gc.disable()  # there is nothing to find among what a start makes; lifecycle.run switches it on again
    settings = resolved(file, flags).settings
    from sidecar.store.damage import LookAhead

    ahead = LookAhead(settings.data)  # it looks while all that follows is imported
    from sidecar import lifecycle
    from sidecar.observe import logs

    logs.set_up(settings.log_level, settings.log_format)
    try:
        lifecycle.run(settings, ahead)
    except RankerError as error:
        as_json = settings.log_format == "json"
        raise Failure(error.message, exit_code(error), reason=error.reason, as_json=as_json) from error


def exit_code(error: RankerError) -> ExitCode:
    """How a server ends that cannot start or go on because of `error`."""
    match error:
        case SettingsError():
            return ExitCode.USAGE
        case ListenError() | StoreUnavailableError():
            return ExitCode.TAKEN
        case _:
            return ExitCode.ERROR
