"""`eval`: how well weights, embedders and single features rank judged tasks, by the path that serves. No server."""

from __future__ import annotations

from collections import Counter
from itertools import combinations
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from sidecar.cli import screen
from sidecar.cli.connection import json_option, no_color_option
from sidecar.cli.failures import ExitCode, Failure, unreadable
from sidecar.cli.parsing import PATH
from sidecar.cli.parsing import weights as weights_of
from sidecar.cli.screen import Column

if TYPE_CHECKING:
    from sidecar.audit.datasets import Dataset
    from sidecar.audit.evaluation import Outcome, System
    from sidecar.weights import Weights

DIGITS = 3
FAULTS = 5
"""Faults of a data set that are named; more are only counted."""


@click.command(
    "eval",
    short_help="Measure ranking on judged tasks.",
    epilog="""\b
Examples:
  memory-ranker eval judged/*.json
  memory-ranker eval judged/ops.json --weights default --weights engine --weights weights.toml
  memory-ranker eval judged/ops.json --feature lexical --feature semantic --weights default
  memory-ranker eval judged/ops.json --embedder wordllama --embedder none --json

A data set is {"id", "memories": [{"id", "content", "created_at", "session"}, ...],
"queries": [{"qid", "query", "relevant": [ids], "category"}, ...]}; docs/ranking.md says more.""",
)
@click.argument("datasets", nargs=-1, required=True, metavar="DATASET...", type=PATH)
@click.option("--weights", multiple=True, metavar="NAME|FILE|JSON", help="A preset or weights of your own; repeat.")
@click.option("--feature", "features", multiple=True, metavar="NAME", help="A single feature as all there is; repeat.")
@click.option(
    "--embedder",
    "embedders",
    multiple=True,
    metavar="SPEC",
    help="wordllama, onnx:DIR, model2vec:DIR or none; repeat to compare.  [default: wordllama]",
)
@json_option
@no_color_option
def evaluate_command(
    datasets: tuple[Path, ...],
    weights: tuple[str, ...],
    features: tuple[str, ...],
    embedders: tuple[str, ...],
    as_json: bool,
) -> None:
    """Ranks the tasks of each DATASET as of just after its last memory, and compares with what was judged relevant.

    Everything runs in this process, by the ranking path that serves, with reserved slots off and pins left aside. The
    differences between systems come with 95 % intervals, from resampling tasks.
    """
    from rich.progress import Progress

    from sidecar.audit.evaluation import evaluate

    systems = _systems(weights or (() if features else ("default",)), features, embedders or ("wordllama",))
    read = [read_judged(path) for path in datasets]
    if repeated := [name for name, count in Counter(dataset.id for dataset in read).items() if count > 1]:
        raise Failure(f"two data sets have the id {repeated[0]!r}; each is a namespace and counts once", ExitCode.USAGE)
    total = len(systems) * sum(len(dataset.tasks) for dataset in read)
    if not total:
        raise Failure("no task has a relevant memory, so there is nothing to measure", ExitCode.USAGE)
    console = screen.bars()
    with Progress(console=console, transient=True, disable=not console.is_terminal) as progress:
        bar = progress.add_task("Ranking", total=total)
        outcomes = evaluate(read, systems, lambda: progress.advance(bar))
    if as_json:
        screen.document({"systems": [_as_json(outcome, outcomes) for outcome in outcomes]})
    else:
        _show(outcomes)


def read_judged(path: Path) -> Dataset:
    """A judged data set. Failure that names what in it is wrong."""
    from sidecar.audit.datasets import read_dataset
    from sidecar.errors import InvalidRequestError

    try:
        return read_dataset(path)
    except OSError as error:
        raise unreadable(str(path), error) from error
    except InvalidRequestError as error:
        faults = [f"{each.field} {each.description}" for each in error.violations]
        more = [f"and {len(faults) - FAULTS} more"] if len(faults) > FAULTS else []
        raise Failure("; ".join([*faults[:FAULTS], *more]), ExitCode.USAGE, reason=error.reason) from error


def _systems(weights: tuple[str, ...], features: tuple[str, ...], embedders: tuple[str, ...]) -> list[System]:
    """Every weighting with every embedder. Failure for what is not known."""
    from sidecar.audit.evaluation import System
    from sidecar.errors import InvalidRequestError, SettingsError, UnknownWeightsError
    from sidecar.retrieval.embedders import make_embedder
    from sidecar.weights import WeightsHolder, make_weights

    try:
        found: list[tuple[str, Weights]] = []
        for text in weights:
            given = weights_of(text)
            if isinstance(given, str):
                found.append((given, WeightsHolder().named(given)))
            else:
                features_of = given.pop("features")
                found.append((text, make_weights("request", features_of, **given)))
        found += [(name, make_weights("request", {name: 1.0})) for name in features]
        made = [(spec, make_embedder(spec)) for spec in embedders]
    except UnknownWeightsError as error:
        raise Failure(error.message, ExitCode.NOT_FOUND, reason=error.reason) from error
    except (InvalidRequestError, SettingsError) as error:
        raise Failure(error.message, ExitCode.USAGE, reason=error.reason) from error
    systems = [
        System(name if len(made) == 1 else f"{name} with {spec}", each, embedder)
        for spec, embedder in made
        for name, each in found
    ]
    names = [system.name for system in systems]
    if len(set(names)) < len(names):
        raise Failure(f"a system is named twice: {', '.join(names)}", ExitCode.USAGE)
    return systems


def _as_json(outcome: Outcome, outcomes: list[Outcome]) -> dict[str, Any]:
    from sidecar.audit.evaluation import differences

    return {
        "name": outcome.name,
        "queries": len(outcome.values),
        **outcome.means(),
        "categories": [
            {"name": name, "queries": count, **means} for name, (count, means) in outcome.by_category().items()
        ],
        "differences": [
            {
                "to": other.name,
                **{
                    name: {"mean": found.mean, "low": found.low, "high": found.high}
                    for name, found in differences(outcome, other).items()
                },
            }
            for other in outcomes
            if other is not outcome
        ],
    }


def _show(outcomes: list[Outcome]) -> None:
    from sidecar.audit.evaluation import MEASURES, differences

    numbers = [Column(name, is_number=True) for name in MEASURES]
    screen.table(
        (Column("system"), Column("tasks", is_number=True), *numbers),
        [[each.name, str(len(each.values)), *_cells(each.means())] for each in outcomes],
    )
    if any(outcome.categories[0] != category for outcome in outcomes for category in outcome.categories):
        click.echo()
        screen.table(
            (Column("system"), Column("category"), Column("tasks", is_number=True), *numbers),
            [
                [each.name, category, str(count), *_cells(means)]
                for each in outcomes
                for category, (count, means) in each.by_category().items()
            ],
        )
    if len(outcomes) > 1:
        click.echo("\nDifferences, with 95 % intervals over the same tasks:")
        rows = []
        for one, other in combinations(outcomes, 2):
            found = differences(one, other)
            cells = [f"{d.mean:+.{DIGITS}f} [{d.low:+.{DIGITS}f}, {d.high:+.{DIGITS}f}]" for d in found.values()]
            rows.append([f"{one.name} - {other.name}", *cells])
        screen.table((Column("systems"), *numbers), rows)


def _cells(means: dict[str, float]) -> list[str]:
    return [f"{mean:.{DIGITS}f}" for mean in means.values()]
