"""`config`: the settings, and where each comes from; and the flags that stand for them."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import click

from sidecar.cli.connection import json_option, settings_environ
from sidecar.cli.failures import ExitCode, Failure
from sidecar.cli.parsing import PATH
from sidecar.config import ENVIRONMENT_PREFIX, FIELDS, Resolved, Settings, resolve
from sidecar.errors import Faults, SettingsError

Command = Callable[..., Any]

ON_THE_MACHINE = {
    "data": "~/.local/share/memory-ranker",
    "listen": "unix:$XDG_RUNTIME_DIR/memory-ranker.sock, else in the store's folder",
}
"""Defaults that depend on the machine, in words."""


def _default(name: str) -> str:
    value = FIELDS[name].default
    return ",".join(value) if isinstance(value, tuple) else f"{value}"


def settings_options(command: Command) -> Command:
    """Adds a flag for each setting, and --config; made from the settings' own declarations."""
    for name, field in reversed(FIELDS.items()):
        about = field.metadata
        default = ON_THE_MACHINE.get(name) or _default(name) or "none"
        unit = about["unit"]
        limit = about["rule"].limit
        metavar = unit.upper() if unit else name.rpartition("_")[2].upper()
        command = click.option(
            f"--{name.replace('_', '-')}",
            name,
            metavar=metavar,
            help=f"{about['help'][0].upper()}{about['help'][1:]}: {limit}.  [default: {default}]",
        )(command)
    return click.option(
        "--config",
        "file",
        metavar="FILE",
        type=PATH,
        help="The settings file (or MEMORY_RANKER_CONFIG).  [default: ~/.config/memory-ranker/config.toml]",
    )(command)


def resolved(file: Path | None, flags: dict[str, Any]) -> Resolved:
    """The settings that these flags, the environment and the file come to. Failure if one is wrong."""
    with _settings_failures():
        return resolve(flags, settings_environ(os.environ), file, settle_tables)


@click.command(
    short_help="Show every setting and where it comes from.",
    epilog="""\b
Examples:
  memory-ranker config
  memory-ranker config --threads 8 --json
  memory-ranker config --defaults > config.toml""",
)
@click.option("--print", "_", is_flag=True, help="Show the settings with their origin.  [default]")
@json_option
@click.option("--defaults", is_flag=True, help="Print a settings file with every setting, its default and meaning.")
@settings_options
def config(_: bool, as_json: bool, defaults: bool, file: Path | None, **flags: Any) -> None:
    """Shows every setting and where it comes from: flag, environment, file or default, the first that gives it.

    It takes the flags of `serve`, so that you see what the server would run with.
    """
    if defaults and as_json:
        raise click.UsageError("--defaults prints TOML, not JSON")
    if defaults:
        click.echo(template())
        return
    found = resolved(file, flags)
    with _settings_failures():
        settle_tables(found.settings)
    click.echo(found.as_json() if as_json else found.as_text())


@contextmanager
def _settings_failures() -> Iterator[None]:
    try:
        yield
    except SettingsError as error:
        raise Failure(error.message, ExitCode.USAGE, reason=error.reason) from error


def settle_tables(settings: Settings) -> None:
    """Refuses the weights and the embedder that `serve` would refuse, in its words. Raises SettingsError."""
    from sidecar.retrieval.embedders import make_embedder  # here, for they take their time
    from sidecar.settled import settled

    faults = Faults()
    with faults.noted():
        settled(settings)
    with faults.noted():
        make_embedder(settings.embedder)  # loads nothing yet
    faults.raise_if_any()


def template() -> str:
    """A settings file in which every setting stands as a comment with its default, its limit and its meaning."""
    lines = [
        "# Settings of memory-ranker. A flag wins over the environment, and the environment over this file.",
        f"# In the environment a setting has the prefix {ENVIRONMENT_PREFIX}: {ENVIRONMENT_PREFIX}THREADS=8.",
    ]
    for name, field in FIELDS.items():
        about = field.metadata
        unit = f", in {about['unit']}" if about["unit"] else ""
        where = f" By default {ON_THE_MACHINE[name]}." if name in ON_THE_MACHINE else ""
        value = '"..."' if name in ON_THE_MACHINE else _toml(field.default)
        lines += ["", f"# {about['help'][0].upper()}{about['help'][1:]}: {about['rule'].limit}{unit}.{where}"]
        lines += [f"# {name} = {value}"]
    lines += [
        "",
        "# Named weights of your own; with them, the active weights are named here:",
        "# [weights]",
        '# active = "mine"',
        "# [weights.mine.features]",
        "# lexical = 0.5",
        "# semantic = 0.3",
        "# [weights.mine.half_life_days]",
        "# decision = 180",
        "",
        "# Weights of importance for a domain of your own, and whose weights a namespace takes:",
        "# [importance.recipes]",
        "# content = 0.6",
        "# user = 0.4",
        "# [importance_namespaces]",
        '# kitchen = "recipes"',
    ]
    return "\n".join(lines)


def _toml(value: Any) -> str:
    return json.dumps(list(value) if isinstance(value, tuple) else value)
