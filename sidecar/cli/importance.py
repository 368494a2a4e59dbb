"""`importance`: what memories are worth by themselves, and why. Nothing is written."""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from sidecar.cli import importance_report, screen
from sidecar.cli.connection import Connection, checked_values, server_options, unknown_namespace
from sidecar.cli.failures import ExitCode, Failure, end_batch
from sidecar.cli.parsing import key_values, read_text, share_values
from sidecar.cli.plain import plain

if TYPE_CHECKING:
    from memoryranker.client import Client

Command = Callable[..., Any]

BATCH_MEMORIES = 500
_LOOKS_LIKE_PATH = re.compile(r"(?!\w+://)[!-~]*/[!-~]*|\S+\.(?:md|txt|json|jsonl|html)")
_UNIT: dict[str, Any] = {"type": float, "metavar": "0..1"}
_MEMORY_FLAGS: dict[str, tuple[str, dict[str, Any]]] = {
    "kind": ("--kind", {"help": 'Of a text: decision, fact, working, ...  [default: "fact"]'}),
    "subject": ("--subject", {"metavar": "NAME", "help": "Of a text: whom or what it is about."}),
    "metadata": (
        "--metadata",
        {
            "multiple": True,
            "metavar": "KEY=VALUE",
            "callback": key_values,
            "help": "Of a text: data of your own, as decision_type=architecture; repeat.",
        },
    ),
}
_SUBJECT_FLAGS: dict[str, tuple[str, dict[str, Any]]] = {
    "user_rating": ("--rating", {**_UNIT, "help": "The user's word on it."}),
    "use_sessions": ("--use-sessions", {"type": int, "metavar": "N", "help": "Sessions that used it."}),
    "recency": ("--recency", {**_UNIT, "help": "Your own value for its recency."}),
    "emotion": ("--emotion", {**_UNIT, "help": "Your own value for its emotional salience."}),
    "contextual_relevance": ("--contextual-relevance", {**_UNIT, "help": "Your own value for its fit to the context."}),
    "agent_scores": (
        "--agent-score",
        {
            "multiple": True,
            "metavar": "AGENT=0..1",
            "callback": share_values,
            "help": "What another agent makes of it; repeat, and their consensus is shown.",
        },
    ),
}
_CONTEXT_FLAGS: dict[str, tuple[str, dict[str, Any]]] = {
    "goals": ("--context-goal", {"multiple": True, "metavar": "TEXT", "help": "A current goal; repeat for more."}),
    "projects": ("--context-project", {"multiple": True, "metavar": "NAME", "help": "An active project; repeat."}),
    "files": ("--context-file", {"multiple": True, "metavar": "PATH", "help": "An open or changed file; repeat."}),
    "domain": (
        "--domain",
        {"metavar": "NAME", "help": "code, conversation, decisions, or your own.  [default: the server's]"},
    ),
}


def _options(command: Command) -> Command:
    """Adds the flags; the command gets those that were given as `memory`, `given` and `context`."""
    groups = {"memory": _MEMORY_FLAGS, "given": _SUBJECT_FLAGS, "context": _CONTEXT_FLAGS}

    @functools.wraps(command)
    def run(**others: Any) -> Any:
        for name, flags in groups.items():
            found = {field: others.pop(f"{name}_{field}") for field in flags}
            others[name] = {field: value for field, value in found.items() if value not in (None, (), {})}
        return command(**others)

    for name, flags in reversed(groups.items()):
        for field, (flag, arguments) in reversed(flags.items()):
            run = click.option(flag, f"{name}_{field}", **arguments)(run)
    return run


@click.command(
    short_help="What memories are worth by themselves, and why.",
    epilog="""\b
Examples:
  memory-ranker importance "Decision: use PostgreSQL with pgvector for semantic search" --kind decision
  memory-ranker importance notes/outage.md --kind failure --markdown
  memory-ranker importance --id m1 --context-goal "ship the billing service"
  memory-ranker importance "Never deploy on Fridays" --rating 0.9 --agent-score planner=0.8 --json
  memory-ranker importance --namespace default --limit 50
  memory-ranker importance --namespace default --candidates
  memory-ranker importance --all-namespaces --json""",
)
@click.argument("text", metavar="[TEXT|FILE]", required=False)
@click.option("--id", "memory_id", metavar="ID", help="A stored memory instead of a text.")
@_options
@click.option("--all-namespaces", is_flag=True, help="All memories of the store.")
@click.option("--markdown", is_flag=True, help="A report in Markdown.  [default: a table]")
@click.option(
    "--limit",
    type=click.IntRange(min=1),
    default=20,
    show_default=True,
    metavar="N",
    help="Of a whole namespace: show so many, highest first; --json has all.",
)
@click.option(
    "--candidates", is_flag=True, help="Of a whole namespace: only working and episodic memories to keep for good."
)
@server_options()
def importance(
    connection: Connection,
    text: str | None,
    memory_id: str | None,
    memory: dict[str, Any],
    given: dict[str, Any],
    context: dict[str, Any],
    all_namespaces: bool,
    markdown: bool,
    limit: int,
    candidates: bool,
) -> None:
    """Scores a TEXT, a FILE (- is standard input), a stored memory, or all memories of a namespace, or of the store.

    A text is compared with the namespace's memories, and not stored. The score is the sum of what is shown: five
    signals, the baseline of the kind, and what neighbours add or take; a user's rating overrides it. With it come how
    sure it is, what moved it, and what to make of it.
    """
    if text is not None and memory_id is not None:
        raise click.UsageError("give a text or --id, not both")
    if markdown and connection.as_json:
        raise click.UsageError("--markdown and --json exclude each other")
    if text is None and memory_id is None:
        if not connection.namespace_given and not all_namespaces:
            raise click.UsageError("give a TEXT, a FILE, --id, --namespace for all its memories, or --all-namespaces")
        if memory or given or markdown:
            raise click.UsageError("a whole namespace is scored as it is stored: give these flags with a text or --id")
        _score_all(connection, context, limit, all_namespaces=all_namespaces, candidates=candidates)
        return
    if candidates or all_namespaces:
        raise click.UsageError("--candidates and --all-namespaces are of whole namespaces: give no text and no --id")
    if text is not None:
        memory["content"] = _content(text)
    subject = {"memory": {"id": memory_id or "", **memory}, **given}
    with connection.client() as client, checked_values():
        stored = client.get(connection.namespace, memory_id) if memory_id else None
        (result,) = client.score_importance(connection.namespace, [subject], **context).results
        if result.status.code:
            raise Failure(result.status.message, ExitCode.REFUSED, reason="SUBJECT_REFUSED")
    if connection.as_json:
        screen.document(plain(result))
        return
    content = memory.get("content", stored.content if stored else "")
    kind = memory.get("kind") or (stored.kind if stored else "fact")
    if markdown:
        click.echo(importance_report.markdown(result, content, kind), nl=False)
    else:
        importance_report.show(result, content, kind)


def _content(text: str) -> str:
    """The text itself, or that of the file or pipe it names."""
    if not text.strip():
        raise Failure("the text is empty; send words, the name of a file, or - for standard input", ExitCode.USAGE)
    try:
        is_file = text == "-" or Path(text).exists()
        is_folder = is_file and Path(text).is_dir()
    except (OSError, ValueError):  # a text that no path could be
        is_file = is_folder = False
    if is_folder:
        raise Failure(
            f"{text} is a folder; name a file in it, or send these words themselves on standard input to -",
            ExitCode.USAGE,
        )
    if not is_file and _LOOKS_LIKE_PATH.fullmatch(text):
        raise Failure(
            f"there is no file {text}; to score these words themselves, send them on standard input to -",
            ExitCode.NOT_FOUND,
        )
    return read_text(text) if is_file else text


def _score_all(
    connection: Connection, context: dict[str, Any], limit: int, *, all_namespaces: bool, candidates: bool
) -> None:
    from rich.progress import Progress

    results: list[tuple[str, Any, Any]] = []
    statuses: list[dict[str, Any]] = []
    console = screen.bars()
    with connection.client() as client, checked_values():
        counts = {each.namespace: each.memory_count for each in client.namespaces()}
        names = list(counts) if all_namespaces else [connection.namespace]
        if not all_namespaces and connection.namespace not in counts:
            raise unknown_namespace(connection.namespace)
        with Progress(console=console, transient=True, disable=not console.is_terminal) as progress:
            task = progress.add_task("memories", total=sum(counts.get(name, 0) for name in names))
            for name in names:
                for batch in _batches(client, name):
                    subjects = [{"memory": {"id": each.id}} for each in batch]
                    answer = client.score_importance(name, subjects, **context)
                    for each, result in zip(batch, answer.results, strict=True):
                        statuses.append({"memory_id": each.id, "status": plain(result.status)})
                        if not result.status.code and (result.promotion_candidate or not candidates):
                            results.append((name, each, result))
                    progress.advance(task, len(batch))
        if not statuses:
            # Where nothing was asked about, the server has not said yet whether it scores at all.
            client.score_importance(connection.namespace, [{"memory": {"content": "-"}}], **context)
    results.sort(key=lambda each: (-each[2].importance.score, each[0], each[1].id))
    if connection.as_json:
        found = [
            {"namespace": name, "memory_id": each.id, "kind": each.kind, **plain(result)}
            for name, each, result in results
        ]
        refused = [each for each in statuses if each["status"]["code"] != "ok"]
        screen.document({"results": found, "refused": refused})
    else:
        importance_report.show_all(results, limit, with_namespace=all_namespaces)
    end_batch(statuses, as_json=connection.as_json)


def _batches(client: Client, namespace: str) -> Iterator[Sequence[Any]]:
    batch: list[Any] = []
    for memory in client.list(namespace, page_size=BATCH_MEMORIES):
        batch.append(memory)
        if len(batch) == BATCH_MEMORIES:
            yield batch
            batch = []
    if batch:
        yield batch
