"""The flags of a Rank request, shared by `rank` and `why --task`, and what the client makes of them."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import click

from sidecar.cli.memory_options import MEMORY_FLAGS, filter_options
from sidecar.cli.parsing import FILE, json_lines, memory_fields, read_text, time_value, vector_value, weights

Command = Callable[..., Any]

# Each: the flag, the name that the client knows it by, and click's arguments.
_FLAGS: tuple[tuple[str, str, dict[str, Any]], ...] = (
    ("--max-items", "max_items", {"type": int, "metavar": "N", "help": "Most memories in the packet.  [default: 10]"}),
    ("--token-budget", "token_budget", {"type": int, "metavar": "N", "help": "Most tokens.  [default: no budget]"}),
    ("--min-score", "min_score", {"type": float, "metavar": "0..1", "help": "Leave out what scores lower."}),
    (
        "--reserved-slots",
        "reserved_slots",
        {
            "type": int,
            "metavar": "0|1|2",
            "help": "Slots kept for memories that have had few turns.  [default: by --max-items]",
        },
    ),
    (
        "--weights",
        "weights",
        {
            "metavar": "NAME|FILE|JSON",
            "help": "A preset (default, smartctx, engine, importance, ...), a .toml or .json file, or the JSON "
            "itself.  [default: the active weights]",
        },
    ),
    ("--model", "model", {"metavar": "VERSION", "help": "A learned model instead of weights."}),
    (
        "--as-of",
        "as_of_time",
        {"metavar": "TIME", "callback": time_value, "help": "Rank as if now were then: 2026-10-01, 7d (ago)."},
    ),
    ("--session", "session_id", {"metavar": "NAME", "help": "Your session; uses count once a session."}),
    ("--agent", "agent_id", {"metavar": "NAME", "help": "Which agent asks."}),
    ("--surface", "surface", {"metavar": "NAME", "help": "Where the agent meets its user: cli, ide, voice, ..."}),
    ("--context-goal", "goals", {"multiple": True, "metavar": "TEXT", "help": "A current goal; repeat for more."}),
    ("--context-project", "projects", {"multiple": True, "metavar": "NAME", "help": "An active project; repeat."}),
    ("--context-file", "files", {"multiple": True, "metavar": "PATH", "help": "An open or changed file; repeat."}),
    (
        "--task-embedding",
        "task_embedding",
        {"metavar": "JSON|@FILE", "callback": vector_value, "help": "The task's vector, as a JSON list of numbers."},
    ),
    (
        "--candidates",
        "candidates",
        {
            "type": FILE,
            "metavar": "FILE",
            "help": "Rank these instead of what is stored: JSON Lines, as for `put --jsonl`.",
        },
    ),
    ("--item-wrapper", "item_wrapper", {"metavar": "TEXT", "help": "What you put around each memory; charged too."}),
)


def rank_options(command: Command) -> Command:
    """Adds the flags of a Rank request; the command gets those that were given as the dict `options`, ready for the
    client, with weights that are a table as {features, caps, ...}."""

    @functools.wraps(command)
    def run(filter: dict[str, Any], **given: Any) -> Any:
        options = {name: given.pop(f"rank_{name}") for _, name, _ in _FLAGS}
        options = {name: value for name, value in options.items() if value is not None and value != ()}
        if filter:
            options["filter"] = filter
        if "weights" in options:
            if "model" in options:
                raise click.UsageError("--weights and --model exclude each other")
            options["weights"] = weights(options["weights"])
        if "candidates" in options:
            options["candidates"] = _candidates(options["candidates"])
        return command(options=options, **given)

    decorated = filter_options(run)
    for flag, name, arguments in reversed(_FLAGS):
        decorated = click.option(flag, f"rank_{name}", **arguments)(decorated)
    return decorated


def for_client(options: dict[str, Any]) -> dict[str, Any]:
    """The options with weights as the client takes them: a preset's name, or a message."""
    from memoryranker.client import rank_request

    table = options.get("weights")
    if not isinstance(table, dict):
        return options
    message = rank_request("", weights=table["features"]).weights.values
    message.caps.update(table.get("caps") or {})
    message.half_life_days.update(table.get("half_life_days") or {})
    if table.get("use_family_cap") is not None:
        message.use_family_cap = table["use_family_cap"]
    return options | {"weights": message}


def _candidates(name: str) -> list[dict[str, Any]]:
    """The memories of a file of JSON Lines. UsageError names the first bad line: a list with holes is not ranked."""
    found = []
    for number, line in json_lines(read_text(name).encode("utf-8").splitlines()):
        try:
            if isinstance(line, str):
                raise ValueError(line)
            found.append(memory_fields(line, ("content", *MEMORY_FLAGS)))
            if not isinstance(line.get("id"), str):
                raise ValueError("a candidate needs an id")
        except ValueError as error:
            raise click.UsageError(f"{name}, line {number}: {error}") from error
    if not found:
        raise click.UsageError(f"{name} holds no candidates; leave --candidates away to rank what is stored")
    return found
