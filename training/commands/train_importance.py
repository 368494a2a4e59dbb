"""`train-importance`: weights of importance from what agents used, as tables of the settings file."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import click

from sidecar.cli import screen
from sidecar.cli.connection import settings_environ
from sidecar.cli.failures import ExitCode, Failure, exit_with, unwritable
from sidecar.cli.parsing import PATH
from sidecar.cli.screen import Column
from sidecar.cli.store_folder import store_errors
from sidecar.config import resolve
from sidecar.errors import SettingsError
from sidecar.importance.settings import COMMON, SIGNALS, ImportanceSettings, SignalWeights
from sidecar.importance.settled import settled_importance
from sidecar.plurals import counted
from sidecar.store.log_reading import read_signals
from training.commands.progress import steps
from training.commands.reading import log_options, read_dataset
from training.dataset import Cutoffs
from training.importance_fit import LEAST_SESSIONS, Fit, fit_domain, signals
from training.sources import database_of

DIGITS = 4


@click.command(
    "train-importance",
    short_help="Fit the weights of importance to what agents used.",
    epilog="""\b
Examples:
  memory-ranker train-importance
  memory-ranker train-importance --namespace agent-7 --domain code
  memory-ranker train-importance --domain kitchen --out importance.toml --json || true

Ends with 0 if the new weights are better, and with 9 if held-out sessions do not say so, or are too few; then nothing
is written. What is printed, or written to --out, goes into the settings file, and counts from the next start.""",
)
@log_options
@click.option(
    "--domain",
    default="learned",
    show_default=True,
    metavar="NAME",
    help="The [importance.NAME] table to write. Starts from the one that is there, else from what counts without it.",
)
@click.option("--out", type=PATH, metavar="FILE", help="Write the tables here, too.")
@click.option("--seed", type=click.IntRange(0, 2**31 - 1), default=0, metavar="N", help="Of every draw.  [default: 0]")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def train_importance(
    source: Path, namespace: str, cutoffs: Cutoffs, domain: str, out: Path | None, seed: int, as_json: bool
) -> None:
    """Fits the weights of the signals of importance to a store's packets and reports, also beside a running server.

    Memories of one packet that fitted its task about as well are compared: what was used against what was not. The
    weights are shrunk to those that they start from, and judged by the last quarter of the sessions. With --namespace
    they are of that namespace, and a second table says that it takes them. The user's signal keeps its weight: a user's
    ratings shift the weights of their namespace in the server, at once.
    """
    database = database_of(source)
    if database is None:
        raise click.UsageError(f"{source} is no store: name the folder of --data, for importances are kept there alone")
    if domain == COMMON:
        raise click.UsageError("the common weights are set by content_weight and others; choose another --domain")
    settings = _settings()
    common = settings.domains.get(domain) or settings.of_domain(namespace=namespace)
    with steps() as advance:
        dataset = read_dataset(source, namespace, cutoffs, advance)
        with store_errors():
            contents = read_signals(database, namespace)
        fit = fit_domain(dataset, signals(dataset, contents, settings.access_form), common, seed)
    tables = _tables(fit.weights, domain, namespace) if fit.is_better else ""
    if tables and out is not None:
        try:
            out.write_text(tables, "utf-8")
        except OSError as error:
            raise unwritable(str(out), error) from error
    if as_json:
        screen.document(_as_json(fit, common, domain, tables))
    else:
        _show(fit, common, domain, tables)
    if not tables:
        exit_with(ExitCode.GATED)


def _settings() -> ImportanceSettings:
    try:
        return settled_importance(resolve({}, settings_environ(os.environ)).settings)
    except SettingsError as error:
        raise Failure(error.message, ExitCode.USAGE, reason=error.reason) from error


def _tables(weights: SignalWeights, domain: str, namespace: str) -> str:
    lines = [f"[importance.{json.dumps(domain, ensure_ascii=False)}]"]
    lines += [f"{name} = {value}" for name, value in _rounded(weights).items()]
    if namespace:
        quoted = [json.dumps(each, ensure_ascii=False) for each in (namespace, domain)]
        lines += ["[importance_namespaces]", " = ".join(quoted)]
    return "\n".join(lines) + "\n"


def _rounded(weights: SignalWeights) -> dict[str, float]:
    """In whole units of the last digit that sum to 1: what rounding leaves over goes to the largest."""
    whole = 10**DIGITS
    units = {name: round(value * whole) for name, value in weights.by_name().items()}
    units[max(units, key=lambda name: units[name])] += whole - sum(units.values())
    return {name: value / whole for name, value in units.items()}


def _as_json(fit: Fit, common: SignalWeights, domain: str, tables: str) -> dict[str, Any]:
    gain = fit.gain
    return {
        "domain": domain,
        "sessions": fit.sessions,
        "pairs": fit.pairs,
        "before": common.by_name(),
        "after": _rounded(fit.weights),
        "agreement_before": fit.before if gain else None,
        "gain": {"mean": gain.mean, "low": gain.low, "high": gain.high, "sessions": gain.sessions} if gain else None,
        "better": fit.is_better,
        "settings": tables,
    }


def _show(fit: Fit, common: SignalWeights, domain: str, tables: str) -> None:
    old, new = common.by_name(), fit.weights.by_name()
    rows = [[name, f"{old[name]:.3f}", f"{new[name]:.3f}", f"{new[name] - old[name]:+.3f}"] for name in SIGNALS]
    screen.table([Column("signal"), *(Column(title, is_number=True) for title in ("before", "after", "by"))], rows)
    click.echo(f"\n{counted(fit.pairs, 'pair')} of {counted(fit.sessions, 'session')}")
    if fit.gain is None:
        click.echo(
            f"INSUFFICIENT: {counted(fit.sessions, 'session has', 'sessions have')} pairs of like fit of which one "
            f"was used; {LEAST_SESSIONS} are needed. Have agents report what they used (report-use)."
        )
        return
    click.echo(
        f"On {counted(fit.gain.sessions, 'held-out session')} the old weights agree with use on {fit.before:.1%}, the "
        f"new ones on {fit.before + fit.gain.mean:.1%}: {fit.gain.mean:+.1%} [{fit.gain.low:+.1%}, "
        f"{fit.gain.high:+.1%}]"
    )
    if not tables:
        click.echo(
            f"The weights of {screen.visible(domain)} stay: held-out use does not surely say that others are better."
        )
        return
    click.echo(f"\nFor the settings file:\n\n{tables}", nl=False)
