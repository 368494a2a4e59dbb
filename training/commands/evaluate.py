"""`evaluate`: what a model, a preset or a shadow would have done with logged packets."""

from __future__ import annotations

import datetime
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import numpy as np

from sidecar.cli import screen
from sidecar.cli.failures import ExitCode, Failure, exit_with
from sidecar.cli.screen import Column
from sidecar.plurals import counted
from sidecar.store.log_reading import read_stored_model
from training.commands.progress import steps
from training.commands.reading import finite, log_errors, log_options, read_model
from training.dataset import Cutoffs, Dataset, build_dataset
from training.gates import GateSettings, one_schema, sound
from training.sources import UnreadableLogError, database_of, read_source

if TYPE_CHECKING:
    from training.evaluate import Evaluation
    from training.model import Model

LOGGED, SHADOW = "logged", "shadow"
"""The scores that packets were served with, and those that a shadow logged beside them."""


@click.command(
    short_help="Try a model, a preset or a shadow on logged packets.",
    epilog="""\b
Examples:
  memory-ranker evaluate engine
  memory-ranker evaluate model --from 2026-10-01T00:00:00Z
  memory-ranker evaluate shadow --json
  memory-ranker evaluate model log.parquet --against default

Ends with 0 if it was evaluated, 9 if the log tells too little (INSUFFICIENT), and another code if it failed.""",
)
@click.argument("model")
@log_options
@click.option(
    "--against",
    default=LOGGED,
    metavar="WEIGHTS",
    help="Compare with these: a name, a version, a model's folder, or logged.  [default: logged, as it was served]",
)
@click.option("--top-k", type=click.IntRange(1, 1_000), default=10, metavar="K", help="Of nDCG.  [default: 10]")
@click.option(
    "--rounds", type=click.IntRange(100, 100_000), default=2_000, metavar="N", help="Of the bootstrap.  [default: 2000]"
)
@click.option("--seed", type=click.IntRange(0, 2**31 - 1), default=0, metavar="N", help="Of every draw.  [default: 0]")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def evaluate(
    model: str,
    source: Path,
    namespace: str,
    cutoffs: Cutoffs,
    against: str,
    top_k: int,
    rounds: int,
    seed: int,
    as_json: bool,
) -> None:
    """Compares MODEL with what served, on the packets of a log that were reported on: a store's folder, also one in
    use, an export, or Parquet.

    MODEL is a preset, a model's folder or archive, a version in the store's registry, or `shadow`: what the last shadow
    logged. nDCG@K comes with a bootstrap over sessions; what would have been used of reserved slots is estimated five
    ways, with intervals clustered by session. Nothing is written.
    """
    from training.evaluate import Shadows, as_scored_by
    from training.evaluate import evaluate as evaluated
    from training.variants import ways_of

    given = None if model == SHADOW else read_model(model, source, "MODEL")
    other = None if against == LOGGED else read_model(against, source, "--against")
    shadows = Shadows()
    with steps() as advance, log_errors():
        rows = shadows.passing(read_source(source, namespace, cutoffs, partial(advance, "log")))
        dataset = build_dataset(rows, cutoffs, ways=ways_of(each for each in (given, other) if each is not None))
        _check(dataset, source)
        packets = np.ones(len(dataset.packets), bool)
        draws_of = given
        if given is None:
            new_scores, packets = shadows.scores(dataset)
            if not packets.any():
                raise Failure(
                    "no packet in this window was scored by a shadow; make a model one: promote MODEL --role shadow",
                    ExitCode.NOT_FOUND,
                )
            draws_of = _registered(shadows.version, source)
        aged, known = (dataset, packets) if draws_of is None else as_scored_by(dataset, draws_of)
        if given is not None:
            new_scores = given.served_scores(aged)
        old_scores = dataset.score
        if other is not None:
            as_other, known_of_other = as_scored_by(dataset, other)
            old_scores = other.served_scores(as_other)
            known = known & known_of_other
        unmeasured = int((packets & ~known).sum())
        packets = packets & known
        if unmeasured and not packets[dataset.packet].any():  # an empty packet lacks nothing, and says nothing
            raise Failure(_no_measures(unmeasured, given, other), ExitCode.GATED)
        advance("comparison", 0, 1)
        settings = GateSettings(top_k=top_k, bootstrap_rounds=rounds)
        found = evaluated(aged, new_scores, old_scores, packets, draws_of, settings, seed)
        advance("comparison", 1, 1)
    name = shadows.version if given is None else given.common.version
    on = Basis(dataset, packets, unmeasured, _known_before(model, dataset, packets))
    if as_json:
        screen.document(finite(_document(found, name, against, on, top_k)))
    else:
        _show(found, name, against, on, top_k)
    if not found.sufficient:
        exit_with(ExitCode.GATED)


def _check(dataset: Dataset, source: Path) -> None:
    """What is wrong with the log's numbers, as `train` says it. Raises UnreadableLogError and Failure."""
    numbers = sound(dataset)
    if not numbers.passed:
        raise UnreadableLogError(f"{source}: {numbers.words}")
    if dataset.other_schemas and not len(dataset.packets):
        raise Failure(one_schema(dataset).words, ExitCode.GATED)


@dataclass(frozen=True, slots=True)
class Basis:
    """What an evaluation stands on: `packets` (p,) marks what it went by, `unmeasured` counts the packets that it could
    not, `before_the_model` the sessions that the model may have been fitted on."""

    dataset: Dataset
    packets: np.ndarray
    unmeasured: int
    before_the_model: int


def _no_measures(count: int, *models: Model | None) -> str:
    names = " and ".join(repr(each.common.version) for each in models if each is not None and each.common.variants)
    return (
        f"none of the {counted(count, 'packet')} of this window has what {names} measures in ways of its own: a "
        "version from before that was logged served or exported them. Export the log of a store anew, and take a "
        "window of packets that this version served (--from TIME); or have it score requests (`rank --weights`)"
    )


def _registered(version: str, source: Path) -> Model | None:
    """The model of a store's registry that scored as shadow; None where the source has none."""
    database = database_of(source)
    if database is None or read_stored_model(database, version) is None:
        return None
    return read_model(version, source, "MODEL")


def _known_before(model: str, dataset: Dataset, packets: np.ndarray) -> int:
    """How many of these sessions began before the data of an artifact ended: it may have been fitted on them."""
    from sidecar.errors import ModelRefusedError
    from sidecar.weights.artifact import read_artifact

    path = Path(model)
    if not path.exists():
        return 0
    try:
        until = read_artifact(path).provenance.window.get("event_cutoff_time", "")
        end = datetime.datetime.fromisoformat(until).timestamp() * 1e6
    except (ModelRefusedError, ValueError):
        return 0
    of_packets = dataset.packets
    starts = of_packets.session_start[packets][np.unique(of_packets.session[packets], return_index=True)[1]]
    return int((starts < end).sum())


def _document(found: Evaluation, name: str, against: str, on: Basis, top_k: int) -> dict[str, Any]:
    apart = found.ndcg.difference
    off_policy = found.off_policy
    return {
        "model": name,
        "against": against,
        "packets": int(on.packets.sum()),
        "reported_packets": int(on.dataset.packets.reported[on.packets].sum()),
        "packets_without_measures": on.unmeasured,
        "packets_of_other_schemas": sum(on.dataset.other_schemas.values()),
        "packets_of_own_measures": sum(on.dataset.own_measures.values()),
        "sessions_before_the_model": on.before_the_model,
        "verdict": found.verdict,
        "words": found.words,
        "ndcg": {
            "k": top_k,
            "sessions": apart.sessions,
            "before": found.ndcg.old,
            "after": found.ndcg.new,
            "difference": apart.mean,
            "lower_bound": apart.lower_bound,
            "low": apart.low,
            "high": apart.high,
            "deviation": apart.deviation,
        },
        "off_policy": {
            "verdict": "judged" if off_policy is not None and off_policy.sufficient else "INSUFFICIENT",
            "words": found.why_not if off_policy is None else off_policy.words,
            "draws": 0 if off_policy is None else off_policy.draw_count,
            "sessions": 0 if off_policy is None else off_policy.session_count,
            "effective_draws": 0.0 if off_policy is None else off_policy.effective_draws,
            "estimates": {}
            if off_policy is None
            else {
                estimator: {"value": each.value, "difference": each.difference, "low": each.low, "high": each.high}
                for estimator, each in off_policy.estimates.items()
            },
        },
    }


def _show(found: Evaluation, name: str, against: str, on: Basis, top_k: int) -> None:
    apart = found.ndcg.difference
    click.echo(
        f"{screen.visible(name)} against {screen.visible(against)}, {counted(apart.sessions, 'session')}: nDCG@{top_k} "
        f"{found.ndcg.new:.4f} against {found.ndcg.old:.4f}, {apart.mean:+.4f} [{apart.low:+.4f}, {apart.high:+.4f}]"
    )
    click.echo(f"{found.words}.")
    if on.unmeasured:
        click.echo(
            f"{counted(on.unmeasured, 'packet')} left out: a version served or exported them that did not log "
            "what is measured here."
        )
    if others := on.dataset.other_schemas:
        click.echo(
            f"{counted(sum(others.values()), 'packet')} left out: scored by other features ({', '.join(others)})."
        )
    if left_out := on.dataset.own_measures:
        click.echo(
            f"{counted(sum(left_out.values()), 'packet')} left out: {' and '.join(left_out)} served, and an "
            "earlier version, which logged its measures alone."
        )
    if on.before_the_model:
        click.echo(
            f"{on.before_the_model} of the sessions began before this model's data ended: --from leaves them out."
        )
    click.echo()
    off_policy = found.off_policy
    if off_policy is None:
        click.echo(f"Reserved slots: {found.why_not}.")
        return
    click.echo(
        f"Use of reserved memories, against what was logged: {counted(off_policy.draw_count, 'draw')} in "
        f"{counted(off_policy.session_count, 'session')}, worth {off_policy.effective_draws:.0f} even ones"
    )
    rows = [
        [estimator, f"{each.value:.4f}", f"{each.difference:+.4f}", f"{each.low:+.4f} to {each.high:+.4f}"]
        for estimator, each in off_policy.estimates.items()
    ]
    titles = ("use rate", "difference", "95 %")
    screen.table([Column("estimator"), *(Column(title, is_number=True) for title in titles)], rows)
    if not off_policy.sufficient:
        click.echo(f"{off_policy.words}.")
