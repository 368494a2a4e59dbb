"""`audit`: is the ranker starving or broken? Answers in words, in figures, and by the exit code."""

from __future__ import annotations

import datetime
from collections import defaultdict
from collections.abc import Sequence
from typing import Any

import click

from sidecar.cli import screen
from sidecar.cli.connection import Connection, check_namespace, server_options
from sidecar.cli.failures import ExitCode, exit_with
from sidecar.cli.parsing import length_value
from sidecar.cli.plain import plain, word
from sidecar.cli.screen import Column
from sidecar.plurals import counted

CODES = {
    "starving": ExitCode.STARVING,
    "position_bias": ExitCode.POSITION_BIAS,
    "flat_formula": ExitCode.FLAT_FORMULA,
    "stale_cache": ExitCode.STALE_CACHE,
}
COLOURS = {"healthy": "green", "too_little": "yellow"}
MOST_SHOWN = 10
BY = ("namespace", "agent", "surface", "model")


@click.command(
    short_help="Tell a starved ranker from a broken one.",
    epilog="""\b
Examples:
  memory-ranker audit || echo "see what it says"
  memory-ranker audit --namespace default --window 7d --json || true
  memory-ranker audit --importance || true
  memory-ranker audit --sql
  memory-ranker audit --sql --postgresql""",
)
@click.option(
    "--window", callback=length_value, metavar="LENGTH", help="How far back: 36h, 7d, 2w.  [default: the whole log]"
)
@click.option("--sql", is_flag=True, help="Print the queries as plain SQL for any client, and ask no server.")
@click.option("--postgresql", is_flag=True, help="With --sql: PostgreSQL's form.  [default: SQLite's]")
@click.option(
    "--importance",
    is_flag=True,
    help="Also how importances moved over rescores, and whether a kind, an author or a language scores lower for equal "
    "use.",
)
@click.option("--strict", is_flag=True, help="End with code 24 on a warning beside a verdict whose code is 0.")
@server_options(unnamed="all")
def audit(
    connection: Connection,
    window: datetime.timedelta | None,
    sql: bool,
    postgresql: bool,
    importance: bool,
    strict: bool,
) -> None:
    """Looks at what was served and what came back, of all namespaces unless --namespace names one.

    The verdict is the first that holds of: starving (too few reports: feed it, the formula is innocent), position
    bias (the same few are always served and seldom used), flat formula (reports are healthy and scores do not follow:
    now look at it), stale cache (rescored, and old packets are still served), healthy. Fewer than 20 packets are too
    little to tell. The exit code says which.
    """
    namespace = connection.namespace if connection.namespace_given else ""
    if postgresql and not sql:
        raise click.UsageError("--postgresql belongs to --sql")
    if sql:
        _show_sql(namespace, window, postgresql)
        return
    with connection.client() as client:
        if namespace:
            check_namespace(client, namespace)
        response = client.audit(namespace, window=window, importance=importance)
    if connection.as_json:
        screen.document(plain(response))
    else:
        _show(response)
        if importance:
            _show_trends(response.importance_trends)
            _show_gaps(response.importance_gaps)
    verdict = word(response, "verdict")
    if verdict in CODES:
        exit_with(CODES[verdict])
    if strict and len(response.findings) > 1:
        exit_with(ExitCode.WARNED)


def _show_sql(namespace: str, window: datetime.timedelta | None, postgresql: bool) -> None:
    from sidecar.store.audit_sql import Scope, queries

    since = None if window is None else int((datetime.datetime.now(datetime.UTC) - window).timestamp() * 1e6)
    for query in queries(Scope(namespace, since)):
        click.echo(f"-- {query.name}: {query.question}")
        click.echo(f"{query.postgresql if postgresql else query.sqlite};\n")


def _show(response: Any) -> None:
    verdict = word(response, "verdict")
    click.secho(verdict.replace("_", " "), bold=True, fg=COLOURS.get(verdict, "red"))
    for finding in response.findings:
        click.echo(f"- {screen.visible(finding)}")
    click.echo()
    whole = [(figure.name, _number(figure.value)) for figure in response.figures if not figure.about]
    screen.fields((name, value) for name, value in whole if not name.endswith(tuple(f"_by_{kind}" for kind in BY)))
    figures: dict[str, dict[str, float]] = defaultdict(dict)
    for figure in response.figures:
        figures[figure.name][figure.about] = figure.value
    _show_memories(figures)
    for kind in BY:
        packets, heard = figures[f"packets_by_{kind}"], figures[f"packets_with_feedback_by_{kind}"]
        if packets:
            click.echo()
            used = figures.get(f"used_by_{kind}")
            titles = ["packets", "with feedback", *(["used"] if used else [])]
            rows = [
                [
                    about or "(none)",
                    _number(count),
                    _number(heard[about]),
                    *([_number(used.get(about))] if used else []),
                ]
                for about, count in list(packets.items())[:MOST_SHOWN]
            ]
            screen.table([Column(kind), *(Column(title, is_number=True) for title in titles)], rows)


def _show_memories(figures: dict[str, dict[str, float]]) -> None:
    served = list(figures["serves"].items())[:MOST_SHOWN]
    if not served:
        return
    click.echo()
    titles = ("serves", "uses", "use_rate", "importance")
    rows = [
        [_number(serves), *(_number(figures[title].get(about)) for title in titles[1:]), about]
        for about, serves in served
    ]
    screen.table([*(Column(title, is_number=True) for title in titles), Column("memory", is_text=True)], rows)


def _show_trends(trends: Sequence[Any]) -> None:
    click.echo()
    if not trends:
        click.echo("trend of importances: INSUFFICIENT: no rescore has moved a memory (rescore --apply)")
        return
    rows = []
    for trend in trends:
        for run in trend.runs:
            moved = [f"{run.moved_count:,}", f"{run.before:.3f}", f"{run.after:.3f}", f"{run.after - run.before:+.3f}"]
            rows.append([run.time.ToJsonString()[:16], *moved, trend.namespace])
    titles = ("moved", "before", "after", "by")
    screen.table([Column("rescored"), *(Column(title, is_number=True) for title in titles), Column("namespace")], rows)
    for trend in trends:
        what = {"lower": "sinks", "higher": "rises", "none": "is steady"}.get(word(trend, "evidence"), "INSUFFICIENT")
        interval = f" [{trend.low:+.3f}, {trend.high:+.3f}]" if trend.HasField("low") else ""
        click.echo(
            f"trend of importances in {screen.visible(trend.namespace)}: {what}: {trend.move:+.3f}{interval} over "
            f"{counted(len(trend.runs), 'rescore')} of {counted(trend.memory_count, 'memory')}"
        )


def _show_gaps(gaps: Sequence[Any]) -> None:
    click.echo()
    if not gaps:
        click.echo("fairness of importances: INSUFFICIENT: no two groups of memories were reported on")
        return
    rows = []
    for gap in gaps:
        evidence = word(gap, "evidence")
        told = ["", "", "INSUFFICIENT"]
        if evidence != "insufficient":
            told = [f"{gap.gap:+.3f}", f"{gap.low:+.3f} to {gap.high:+.3f}", evidence if evidence != "none" else ""]
        rows.append([gap.dimension, gap.group, f"{gap.memory_count:,}", *told])
    columns = (Column("dimension"), Column("group"), Column("memories", is_number=True))
    screen.table([*columns, Column("gap", is_number=True), Column("interval"), Column("for equal use")], rows)


def _number(value: float | None) -> str:
    if value is None:
        return ""
    return f"{value:,.0f}" if float(value).is_integer() else f"{value:,.3f}"
