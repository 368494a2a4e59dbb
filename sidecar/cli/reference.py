"""`python -m sidecar.cli.reference` prints docs/cli.md: every command, option and example, from the commands."""

from __future__ import annotations

import re

import click

from sidecar.cli.failures import MEANINGS
from sidecar.cli.group import cli


def page() -> str:
    """The page, as Markdown."""
    with click.Context(cli) as ctx:
        found = ((name, cli.get_command(ctx, name)) for name in cli.list_commands(ctx))
        commands = {name: command for name, command in found if command is not None}
    lines = ["# The command line", "", "Made by `python -m sidecar.cli.reference > docs/cli.md`; do not edit.", ""]
    lines += [_unwrapped(cli.help or ""), ""]
    lines += ["| command | |", "|---|---|"]
    lines += [f"| [`{name}`](#{name}) | {command.short_help} |" for name, command in commands.items()]
    lines += ["", "## Exit codes", "", "| code | means |", "|---|---|"]
    lines += [f"| {int(code)} | {words} |" for code, words in MEANINGS.items()]
    lines += [
        "",
        'Errors go to standard error; with `--json` as one JSON object: `{"error": {"reason", "message", '
        '"violations", "violations_total", "metadata", "retry_after", "exit_code"}}`.',
    ]
    for name, command in commands.items():
        lines += ["", *_command(name, command)]
    return "\n".join(lines) + "\n"


def _command(name: str, command: click.Command) -> list[str]:
    with click.Context(command, info_name=name) as ctx:
        pieces = " ".join(command.collect_usage_pieces(ctx))
    lines = [f"## {name}", "", f"`memory-ranker {name} {pieces}`", "", _unwrapped(command.help or ""), ""]
    options = [each for each in command.params if isinstance(each, click.Option)]
    lines += ["| option | |", "|---|---|"]
    lines += [f"| `{_flags(option)}` | {_cell(option.help or '')} |" for option in options]
    examples, _, rest = (command.epilog or "").partition("\n\n")
    commands = [line.strip() for line in examples.splitlines() if "memory-ranker " in line]
    lines += ["", "```sh", *commands, "```"]
    return lines + (["", _unwrapped(rest)] if rest else [])


def _flags(option: click.Option) -> str:
    flags = ", ".join(option.opts)
    if option.secondary_opts:
        flags += " / " + ", ".join(option.secondary_opts)
    if option.is_flag:
        return flags
    return f"{flags} {option.metavar or _metavar(option)}".replace("|", "\\|")


def _metavar(option: click.Option) -> str:
    return "|".join(map(str, option.type.choices)) if isinstance(option.type, click.Choice) else "TEXT"


def _cell(text: str) -> str:
    return re.sub(r"  +", " ", text).replace("|", "\\|").replace("<", "&lt;")


def _unwrapped(text: str) -> str:
    """Paragraphs on a line each."""
    paragraphs = re.split(r"\n\s*\n", text.replace("\b", "").strip())
    return "\n\n".join(" ".join(paragraph.split()) for paragraph in paragraphs)


if __name__ == "__main__":
    click.echo(page(), nl=False)
