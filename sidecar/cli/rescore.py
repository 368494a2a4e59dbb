"""`rescore`: importances from what was used, shown first and written only when told to."""

from __future__ import annotations

import click

from sidecar.cli import screen
from sidecar.cli.connection import Connection, server_options
from sidecar.cli.plain import plain
from sidecar.cli.screen import Column
from sidecar.plurals import counted

MOST_SHOWN = 20
SCHEDULE = """\
# Rescore every night. As a user's systemd timer:
#   ~/.config/systemd/user/memory-ranker-rescore.service
[Unit]
Description=Rescore memories from what was used
[Service]
Type=oneshot
ExecStart={command} rescore --apply

#   ~/.config/systemd/user/memory-ranker-rescore.timer
[Unit]
Description=Rescore memories every night
[Timer]
OnCalendar=*-*-* 03:30
Persistent=true
[Install]
WantedBy=timers.target

# Then: systemctl --user enable --now memory-ranker-rescore.timer
# As a line of a crontab:
30 3 * * *  {command} rescore --apply
# And the audit once a week, which says by its exit code what is wrong:
0 4 * * 1  {command} audit
"""


@click.command(
    short_help="Recompute importances from what was used.",
    epilog="""\b
Examples:
  memory-ranker rescore
  memory-ranker rescore --namespace default --apply
  memory-ranker rescore --schedule""",
)
@click.option("--apply", is_flag=True, help="Write the new scores.  [default: only show what would change]")
@click.option("--restore", "run_id", metavar="RUN", help="Bring back the scores from before this run instead.")
@click.option("--schedule", is_flag=True, help="Print timers that rescore every night, and change nothing.")
@server_options(unnamed="all")
def rescore(connection: Connection, apply: bool, run_id: str | None, schedule: bool) -> None:
    """Recomputes the use part of importances from the feedback, in all namespaces unless --namespace names one.

    By default nothing is written: the answer is who would move, by how much and why. With --apply the scores from
    before are kept, and --restore brings them back. A run over all namespaces also refits what a new memory's use
    rate starts from. No score moves further than rescore_max_move in one run; what is left follows in the next.
    """
    if sum((apply, run_id is not None, schedule)) > 1:
        raise click.UsageError("--apply, --restore and --schedule exclude each other")
    if schedule:
        click.echo(SCHEDULE.format(command="memory-ranker"), nl=False)
        return
    with connection.client() as client:
        if run_id is not None:
            restored = client.restore_scores(run_id)
            if connection.as_json:
                screen.document(plain(restored))
            else:
                click.echo(
                    f"{counted(restored.restored_count, 'score is as it was', 'scores are as they were')} before "
                    f"{screen.visible(run_id)}."
                )
            return
        response = client.rescore(connection.namespace if connection.namespace_given else "", apply=apply)
    if connection.as_json:
        screen.document(plain(response))
        return
    rows = [
        [
            move.namespace,
            move.memory_id,
            f"{move.from_score:.3f}",
            f"{move.to_score:.3f}",
            f"{move.to_score - move.from_score:+.3f}",
            move.reason,
        ]
        for move in response.moves[:MOST_SHOWN]
    ]
    if rows:
        numbers = [Column(title, is_number=True) for title in ("from", "to", "by")]
        screen.table([Column("namespace"), Column("id"), *numbers, Column("why", is_text=True)], rows)
    if response.moved_count > len(rows):
        click.echo(f"... and {response.moved_count - len(rows)} more, largest first; --json has up to 1,000.")
    click.echo(
        f"{response.moved_count} of {counted(response.memory_count, 'memory')} {'moved' if apply else 'would move'}."
    )
    if response.run_id:
        click.echo(f"run {response.run_id}; undo it with --restore {response.run_id}")
    elif response.moved_count:
        click.echo("Nothing was written; do it with --apply.")
