"""`train`: weights from what agents used, into a folder that a server can be given."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from sidecar.cli import screen
from sidecar.cli.connection import NumberRange
from sidecar.cli.failures import ExitCode, Failure, exit_with, unwritable
from sidecar.cli.parsing import PATH
from sidecar.cli.screen import Column
from sidecar.plurals import counted
from training.commands.progress import Advance, steps
from training.commands.reading import finite, gate_settings, log_options, movement_caps, read_dataset, read_model
from training.dataset import Cutoffs
from training.gates import Gate, GateSettings

if TYPE_CHECKING:
    from training.model import Model
    from training.run import Run, Trained

_MARKS = {True: "passed", False: "REFUSED", None: "-"}


@click.command(
    short_help="Fit weights to what agents used.",
    epilog="""\b
Examples:
  memory-ranker train --dry-run
  memory-ranker train --out model
  memory-ranker train log.parquet --until 2026-10-01T00:00:00Z --preview --out preview

Ends with 0 if it was trained, 9 if a gate refused, and another code if it failed. Who may promote what was trained is
in the model's manifest; docs/training.md has every gate and its setting.""",
)
@log_options
@click.option(
    "--form",
    type=click.Choice(["linear", "curves"]),
    default="linear",
    help="Of the model: weights, or a rising curve by feature.  [default: linear]",
)
@click.option(
    "--base",
    default="",
    metavar="WEIGHTS",
    help="Start from these: a name, a version, or a model's folder.  [default: what serves]",
)
@click.option(
    "--out",
    type=PATH,
    metavar="FOLDER",
    help="Write here.  [default: a new folder named by version]",
)
@click.option("--preview", is_flag=True, help="Without gates and movement caps; the model cannot be promoted.")
@click.option("--dry-run", is_flag=True, help="Do everything, and write nothing.")
@click.option("--seed", type=click.IntRange(0, 2**31 - 1), default=0, metavar="N", help="Of every draw.  [default: 0]")
@click.option(
    "--gate",
    "gates",
    multiple=True,
    metavar="NAME=VALUE",
    callback=gate_settings,
    help="Set a gate's threshold; repeat for more.",
)
@click.option("--max-l1", type=NumberRange(0, 2), metavar="X", help="Sum of moves at most.  [default: 0.2]")
@click.option("--max-step", type=NumberRange(0, 1), metavar="X", help="One move at most.  [default: 0.05]")
@click.option("--no-prior", is_flag=True, help="Fit without holding on to the old weights.")
@click.option("--no-half-lives", is_flag=True, help="Leave half-lives as they are.")
@click.option("--no-namespaces", is_flag=True, help="One set of weights for all namespaces.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def train(
    source: Path,
    namespace: str,
    cutoffs: Cutoffs,
    form: str,
    base: str,
    out: Path | None,
    preview: bool,
    dry_run: bool,
    seed: int,
    gates: GateSettings,
    max_l1: float | None,
    max_step: float | None,
    no_prior: bool,
    no_half_lives: bool,
    no_namespaces: bool,
    as_json: bool,
) -> None:
    """Fits weights to the packets and reports of a log: a store's folder, also one in use, an export, or Parquet.

    Only packets with a report are learned from, and only what was shown in one packet is compared. A run that lacks
    data is refused, and says what is missing, how much, and how to get it; the weights that serve stay. The same log,
    bounds and seed give the same files to the last bit.
    """
    from training.run import TrainSettings
    from training.run import train as run_training

    caps = movement_caps(gates, max_l1, max_step)
    settings = TrainSettings(
        form=form,
        seed=seed,
        preview=preview,
        namespace=namespace,
        gates=gates,
        movement=caps,
        half_lives=not no_half_lives,
        own_namespaces=not no_namespaces,
    )
    settings = replace(settings, lambdas=(0.0,)) if no_prior else settings
    _check_out(out, dry_run=dry_run)
    model = read_model(base, source, "--base")
    _check_base(model, form, namespace)
    with steps() as advance:
        dataset = read_dataset(source, namespace, cutoffs, advance)
        run = run_training(dataset, model, settings, advance)
        version, folder = _written(run, out, advance, dry_run=dry_run)
    _show(run, version, folder, as_json=as_json)
    if run.trained is None:
        exit_with(ExitCode.GATED)


def _check_base(model: Model, form: str, namespace: str) -> None:
    name = model.common.version
    if form == "curves" and namespace:
        raise click.UsageError(f"--namespace {namespace}: curves serve all namespaces alike; leave it out")
    if model.common.variants or (model.common.form == "curves" and form == "linear"):
        what = "curves" if model.common.form == "curves" else "a note's own transforms"
        raise Failure(
            f"base: the weights {name!r} cannot be started from: they have {what}. Name others with --base",
            ExitCode.USAGE,
        )


def _check_out(out: Path | None, *, dry_run: bool) -> None:
    """Before a long run, not after it."""
    if out is not None and not dry_run and out.exists() and (not out.is_dir() or any(out.iterdir())):
        raise click.UsageError(f"--out {out} is there already; a model is never written over: name a new folder")


def _written(run: Run, out: Path | None, advance: Advance, *, dry_run: bool) -> tuple[str, str]:
    """Version and folder of what was written, "" for what was not."""
    from sidecar.errors import ModelRefusedError
    from sidecar.weights.artifact import json_bytes, version_of, write_artifact
    from training.artifact_files import others_of, provenance_of, table_of

    trained = run.trained
    if trained is None:
        return "", ""
    table, provenance = table_of(trained), provenance_of(run, trained)
    form = run.settings.form
    version = version_of(form, json_bytes(table), provenance)
    if dry_run:
        return version, ""
    folder = Path(version) if out is None else out
    advance("files", 0, 1)
    try:
        write_artifact(folder, form, table, provenance, others_of(run, trained, version))
    except FileExistsError as error:
        raise click.UsageError(
            f"{folder} is there already; a model is never written over: name a new folder"
        ) from error
    except OSError as error:
        raise unwritable(str(folder), error) from error
    except ModelRefusedError as error:
        raise Failure(error.message, ExitCode.ERROR, reason=error.reason) from error
    advance("files", 1, 1)
    return version, str(folder)


def _show(run: Run, version: str, folder: str, *, as_json: bool) -> None:
    from training.artifact_files import summary

    if as_json:
        screen.document(finite(summary(run, version, folder)))
        return
    if run.trained is None:
        click.echo("Refused; the weights that serve stay as they are.")
        for gate in run.refusals:
            click.echo(f"\n{gate.gate}: {gate.words}")
        return
    _show_weights(run.trained)
    click.echo()
    _show_gates((*run.train_gates, *run.promote_gates))
    click.echo()
    click.echo(f"Promotion: {run.trained.promotion.value}.")
    click.echo(
        f"Model {version} written to {screen.visible(folder)}." if folder else "Nothing was written (--dry-run)."
    )


def _show_weights(trained: Trained) -> None:
    from training.artifact_files import weight_rows

    rows = [
        [name, f"{before:.4f}", f"{after:.4f}", f"{after - before:+.4f}", error]
        for name, before, after, error in weight_rows(trained)
    ]
    titles = ("before", "after", "by", "standard error")
    screen.table([Column("feature"), *(Column(title, is_number=True) for title in titles)], rows)
    for each in trained.half_lives:
        if each.new != each.old:
            click.echo(f"half-life of {screen.visible(each.kind)}: {each.old:g} to {counted(each.new, 'day')}")
    for own in trained.namespaces.found:
        if own.differs:
            click.echo(f"own weights: {screen.visible(own.namespace)}, {own.difference:.3f} apart")


def _show_gates(gates: tuple[Gate, ...]) -> None:
    rows = [[gate.gate, _MARKS[gate.passed], gate.words] for gate in gates]
    screen.table([Column("gate"), Column("outcome"), Column("", is_text=True)], rows)
