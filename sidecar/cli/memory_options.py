"""The flags that stand for a memory's fields and for a filter's parts, each said once."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from typing import Any

import click

from sidecar.cli.parsing import key_values, time_value, vector_value

Command = Callable[..., Any]

_TIME = {"metavar": "TIME", "callback": time_value}
_UNIT = {"type": float, "metavar": "0..1"}

MEMORY_FLAGS: dict[str, tuple[str, Mapping[str, Any]]] = {
    "kind": ("--kind", {"help": 'decision, fact, preference, failure, attempt, ... or your own.  [default: "fact"]'}),
    "create_time": ("--create-time", {**_TIME, "help": "When it was learned.  [default: now]"}),
    "valid_from_time": ("--valid-from-time", {**_TIME, "help": "Not served before."}),
    "valid_until_time": ("--valid-until-time", {**_TIME, "help": "Not served from then on."}),
    "superseded_by": ("--superseded-by", {"metavar": "ID", "help": "The memory that replaces it."}),
    "source_thread": ("--source-thread", {"metavar": "NAME", "help": "The conversation, file or document it is from."}),
    "source_sequence": ("--source-sequence", {"type": int, "metavar": "N", "help": "Its place in the source thread."}),
    "subject": ("--subject", {"metavar": "NAME", "help": "Whom or what it is about."}),
    "tags": ("--tag", {"multiple": True, "metavar": "TAG", "help": "A label; repeat for more."}),
    "metadata": (
        "--metadata",
        {
            "multiple": True,
            "metavar": "KEY=VALUE",
            "callback": key_values,
            "help": "Data of your own; repeat for more.",
        },
    ),
    "relevance": ("--relevance", {**_UNIT, "help": "Your own search score for it."}),
    "importance_override": ("--importance-override", {**_UNIT, "help": "Your word on its importance."}),
    "emotion": ("--emotion", {**_UNIT, "help": "Emotional salience; counts only where it is switched on."}),
    "pinned": ("--pinned/--no-pinned", {"default": None, "help": "Serve it first while it is valid and fits."}),
    "suppressed": ("--suppressed/--no-suppressed", {"default": None, "help": "Never serve it."}),
    "token_count": ("--token-count", {"type": int, "metavar": "N", "help": "Your own count of its tokens."}),
    "embedding": (
        "--embedding",
        {"metavar": "JSON|@FILE", "callback": vector_value, "help": "Its vector, as a JSON list of numbers."},
    ),
}
"""Flag and click's arguments, by field of the API's Memory; what `put` and `update` have in common."""

FILTER_FLAGS: dict[str, tuple[str, Mapping[str, Any]]] = {
    "kinds": ("--kind", {"multiple": True, "help": "Only this kind; repeat for more."}),
    "any_tags": ("--tag", {"multiple": True, "help": "Only with at least one of these tags; repeat for more."}),
    "all_tags": ("--all-tags", {"multiple": True, "metavar": "TAG", "help": "Only with all of these tags; repeat."}),
    "metadata_equals": (
        "--metadata",
        {
            "multiple": True,
            "metavar": "KEY=VALUE",
            "callback": key_values,
            "help": "Only where the metadata has this value; dots reach into objects.",
        },
    ),
    "create_time_from": ("--since", {**_TIME, "help": "Only learned at or after this time, as 2026-10-01 or 7d."}),
    "create_time_until": ("--until", {**_TIME, "help": "Only learned before this time."}),
    "update_time_from": ("--updated-since", {**_TIME, "help": "Only changed at or after this time."}),
    "update_time_until": ("--updated-until", {**_TIME, "help": "Only changed before this time."}),
    "ids": ("--id", {"multiple": True, "help": "Only these ids; repeat for more."}),
    "exclude_ids": ("--exclude-id", {"multiple": True, "metavar": "ID", "help": "Not these ids; repeat for more."}),
    "source_threads": (
        "--source-thread",
        {"multiple": True, "metavar": "NAME", "help": "Only from this thread; repeat."},
    ),
    "subjects": ("--subject", {"multiple": True, "metavar": "NAME", "help": "Only about this subject; repeat."}),
}
"""Flag and click's arguments, by part of the API's Filter."""


def memory_options(command: Command) -> Command:
    """Adds the flags of a memory's fields; the command gets those that were given as the dict `fields`."""
    return _gathered(command, MEMORY_FLAGS, "fields")


def filter_options(command: Command) -> Command:
    """Adds the flags of a filter; the command gets the parts that were given as the dict `filter`."""
    return _gathered(command, FILTER_FLAGS, "filter")


def _gathered(command: Command, flags: Mapping[str, tuple[str, Mapping[str, Any]]], name: str) -> Command:
    @functools.wraps(command)
    def run(**given: Any) -> Any:
        found = {field: given.pop(f"{name}_{field}") for field in flags}
        # Not given is None, or nothing of what may be repeated.
        found = {field: value for field, value in found.items() if value is not None and value not in ((), {})}
        return command(**{name: found}, **given)

    for field, (flag, arguments) in reversed(list(flags.items())):
        run = click.option(flag, f"{name}_{field}", **arguments)(run)
    return run
