"""`demo`: the main job on made-up memories, with a real server: rank, report, rank again, explain, measure."""

from __future__ import annotations

import dataclasses
import datetime
import shlex
import signal
import sys
import time
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from sidecar.cli import packets, screen
from sidecar.cli.connection import json_option, no_color_option
from sidecar.cli.demo_moves import moves, show_moves
from sidecar.cli.failures import Failure
from sidecar.cli.plain import plain
from sidecar.cli.ranking import show_miss
from sidecar.cli.screen import Column

if TYPE_CHECKING:
    from memoryranker.client import Client

    from sidecar.cli.demo_quality import Quality
    from sidecar.cli.demo_store import DemoStore, Task

NAMESPACE = "demo"
AS_OF = datetime.datetime(2026, 10, 1, tzinfo=datetime.UTC)
TASKS = ("q32", "q51", "q30", "q71")
TRAP = "m015"
"""An old decision that answers the first task word for word, and that a later one replaces."""
BATCH = 32


@click.command(
    short_help="Show what it does, on made-up memories.",
    epilog="""\b
Examples:
  memory-ranker demo
  memory-ranker demo --json""",
)
@click.option("--keep", is_flag=True, help="Keep the store, and say how to serve it.")
@json_option
@no_color_option
def demo(keep: bool, as_json: bool) -> None:
    """Shows what it does, in half a minute, on made-up memories of a coding agent.

    It runs a server of its own in a temporary folder and removes both in the end. Your own store is not touched.
    """
    from sidecar.cli import demo_store
    from sidecar.cli.demo_server import running_server, temporary_folder

    # Otherwise the process would end at once and leave server and folder behind.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    started = time.monotonic()
    store = demo_store.load()
    with ExitStack() as stack:
        folder = stack.enter_context(temporary_folder(keep=keep))
        _say(as_json, f"Starting a server in {folder} ...")
        connection = stack.enter_context(running_server(folder))
        client = stack.enter_context(connection.client())
        put(client, store)
        _say(as_json, f"{len(store.memories)} memories of a made-up coding agent are stored.")
        shown = _show_tasks(client, store, as_json)
        _say(as_json, f"\nHow good is that? {len(store.tasks)} tasks of this store have judged memories:\n")
        quality = _measure(client, store, as_json)
        seconds = time.monotonic() - started
        if as_json:
            document = {**shown, "quality": [dataclasses.asdict(each) for each in quality]}
            screen.document({**document, "seconds": round(seconds, 1), "folder": str(folder) if keep else None})
            return
        click.echo(_next_steps(folder if keep else None, seconds))


def put(client: Client, store: DemoStore) -> None:
    """Stores the memories, with a bar on a terminal, and waits until their importances stand: what is shown next is not
    to move by itself. Failure if one is refused."""
    from rich.progress import track

    console = screen.bars()
    starts = range(0, len(store.memories), BATCH)
    for start in track(starts, "Storing", console=console, transient=True, disable=not console.is_terminal):
        for result in client.upsert(NAMESPACE, store.memories[start : start + BATCH], timeout=60.0).results:
            if result.status.code:
                raise Failure(f"the demo's memory {result.memory_id} was refused: {result.status.message}")
    while client.status(NAMESPACE).namespace.unscored_count:
        time.sleep(0.02)


def _show_tasks(client: Client, store: DemoStore, as_json: bool) -> dict[str, Any]:
    """Ranks every task, and goes once around the loop with the first."""
    document: dict[str, Any] = {"packets": []}
    for number, task in enumerate((store.tasks[name] for name in TASKS), 1):
        # The first goes around the loop, which happens now: a report of today is not known on an earlier day.
        packet = _rank(client, task, f"demo-{number}", None if number == 1 else AS_OF)
        document["packets"].append({"task": task.text, "relevant": sorted(task.relevant), **packets.as_json(packet)})
        if not as_json:
            click.echo()
            click.secho(f"{number}. {task.text}", bold=True)
            click.echo("   (✓: judged relevant)\n" if number == 1 else "")
            packets.show(packet, relevant=task.relevant)
        if number == 1:
            document |= _go_around(client, task, packet, as_json)
    return document


def _go_around(client: Client, task: Task, before: Any, as_json: bool) -> dict[str, Any]:
    """Asks for the trap, reports what was used of the packet, and ranks its task again."""
    miss = client.explain_miss(NAMESPACE, TRAP, packet_id=before.packet_id)
    if not as_json:
        click.echo(f"\nWhy is {TRAP} not there, which answers the task word for word?")
        click.echo(f"  memory-ranker why {before.packet_id} {TRAP}\n")
        show_miss(TRAP, miss)
    used = [item.memory.id for item in before.items if item.memory.id in task.relevant]
    report = client.report_use(before.packet_id, used=used)
    _say(as_json, f"\nThe agent used {' and '.join(used)}, and says so:")
    _say(as_json, f"  memory-ranker report-use {before.packet_id} {' '.join(used)}\n")
    _say(as_json, f"{report.used_count} used, {report.unused_count} not used. The same task again, and what moved:\n")
    after = _rank(client, task, "demo-again")
    moved = moves(before, after)
    if not as_json:
        show_moves(moved)
    return {
        "miss": plain(miss) | {"memory_id": TRAP},
        "report": plain(report),
        "packet_after_report": packets.as_json(after),
        "moves": [dataclasses.asdict(each) for each in moved],
    }


def _rank(client: Client, task: Task, session: str, as_of: datetime.datetime | None = None) -> Any:
    return client.rank(NAMESPACE, task.text, session_id=session, agent_id="demo", as_of_time=as_of)


def _measure(client: Client, store: DemoStore, as_json: bool) -> list[Quality]:
    from sidecar.cli.demo_quality import measure

    presets = sorted(client.status().presets, key=lambda name: (name != "default", name))
    quality = measure(client, NAMESPACE, store, presets)
    if not as_json:
        screen.table(
            (Column("weights"), Column("nDCG@10", is_number=True), Column("recall@10", is_number=True)),
            [[each.weights, f"{each.ndcg_at_10:.2f}", f"{each.recall_at_10:.2f}"] for each in quality],
        )
    return quality


def _next_steps(kept: Path | None, seconds: float) -> str:
    serve = f"memory-ranker serve --data {shlex.quote(str(kept / 'store'))}" if kept else "memory-ranker serve"
    lines = [
        "",
        f"That took {seconds:.0f} s. Now with your own memories:",
        "",
        f"  {serve}{'   # this demo, in namespace demo' if kept else ''}",
        '  memory-ranker put "Deploys need a green canary for 30 minutes" --kind decision',
        '  memory-ranker put --jsonl memories.jsonl     # {"id": "m1", "content": "..."} a line',
        '  memory-ranker rank "deploy the payment service"',
        "  memory-ranker report-use PACKET_ID MEMORY_ID ...",
    ]
    return "\n".join(lines)


def _say(as_json: bool, text: str) -> None:
    if not as_json:
        click.echo(text)
