"""What the commands that open a store's folder themselves have in common."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import click

from sidecar.cli.connection import settings_environ
from sidecar.cli.failures import ExitCode, Failure
from sidecar.config import resolve
from sidecar.errors import (
    EmbedderMismatchError,
    InvalidRequestError,
    ModelGatedError,
    ModelRefusedError,
    NotFoundError,
    RankerError,
    SchemaTooNewError,
    SettingsError,
    StoreDamagedError,
    StoreLockedError,
    StoreUnavailableError,
)


def data_option(words: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Adds --data, an absolute path or None."""
    return click.option(
        "--data",
        metavar="FOLDER",
        callback=_folder,
        help=words,
    )


def _folder(_: click.Context, __: click.Parameter, value: str | None) -> Path | None:
    if value == "":
        raise click.BadParameter("is empty: name a folder, or leave it out")
    return None if value is None else Path(os.path.abspath(Path(value).expanduser()))


def data_folder() -> Path:
    """Where a server with the same environment and settings file would have its store."""
    try:
        return resolve({}, settings_environ(os.environ)).settings.data
    except SettingsError as error:
        raise Failure(error.message, ExitCode.USAGE, reason=error.reason) from error


@contextmanager
def store_errors() -> Iterator[None]:
    """Turns the store's errors, and what this user may not do, into a Failure with an exit code of its own."""
    try:
        yield
    except RankerError as error:
        violations = error.violations if isinstance(error, InvalidRequestError) else ()
        raise Failure(
            error.message,
            _exit_code(error),
            reason=error.reason,
            violations=tuple((each.field, each.description) for each in violations),
        ) from error
    except PermissionError as error:
        raise Failure(
            f"the store cannot be used: {error.filename}: {error.strerror}; name a folder that this user may read with"
            " --data, or run this as the user of the server",
            ExitCode.TAKEN,
            reason=StoreUnavailableError.reason,
        ) from error


def _exit_code(error: RankerError) -> ExitCode:
    match error:
        case InvalidRequestError():
            return ExitCode.REFUSED
        case StoreLockedError() | SchemaTooNewError() | EmbedderMismatchError():
            return ExitCode.TAKEN
        case StoreDamagedError():
            return ExitCode.DAMAGED
        case StoreUnavailableError():
            return ExitCode.UNAVAILABLE
        case ModelRefusedError():
            return ExitCode.REFUSED
        case ModelGatedError():
            return ExitCode.GATED
        case NotFoundError():
            return ExitCode.NOT_FOUND
        case _:
            return ExitCode.ERROR
