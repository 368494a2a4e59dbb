"""`simulate`: agents with known habits over a judged data set, in rounds of serving, training and serving."""

from __future__ import annotations

import os
from dataclasses import fields, replace
from functools import partial
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from sidecar.cli import screen
from sidecar.cli.connection import NumberRange
from sidecar.cli.evaluation import read_judged
from sidecar.cli.failures import ExitCode, Failure, unwritable
from sidecar.cli.parsing import PATH
from sidecar.cli.screen import Column
from sidecar.features import FEATURE_NAMES
from sidecar.plurals import counted
from sidecar.retrieval.embedders import DEFAULT_EMBEDDER
from training.commands.progress import steps
from training.commands.reading import check_extra, gate_settings, movement_caps, read_model

if TYPE_CHECKING:
    from training.gates import GateSettings
    from training.rounds import Round
    from training.worlds import Habits, World

DEMO = Path(str(resources.files("sidecar") / "demo" / "store.json"))


@click.command(
    short_help="Try learning with agents of known habits.",
    epilog="""\b
Examples:
  memory-ranker simulate
  memory-ranker simulate judged.json --rounds 10 --weights engine
  memory-ranker simulate --agent careful:report=0.7 --agent sloppy:report=0.4,use=0.6,slip=0.05,patience=0.9
  memory-ranker simulate --at-first 0.3 --drift 4 --window 2 --preview --json
  memory-ranker simulate --rounds 1 --sessions 400 --out log.parquet""",
)
@click.argument("dataset", required=False, type=PATH, metavar="[DATASET]")
@click.option("--rounds", type=click.IntRange(1, 1_000), default=5, metavar="N", help="How many.  [default: 5]")
@click.option("--sessions", type=click.IntRange(1, 100_000), default=300, metavar="N", help="A round.  [default: 300]")
@click.option(
    "--weights", default="engine", metavar="WEIGHTS", help="Serve first: a name or a model.  [default: engine]"
)
@click.option(
    "--agent",
    "agents",
    multiple=True,
    metavar="NAME:HABIT=X,...",
    help="Its habits, each in [0, 1]: use (0.9) of what is relevant, slip (0.02) of the rest, report (1) of packets, "
    "patience (1): how often the next place is looked at too, share (1) of sessions; repeat.",
)
@click.option(
    "--at-first",
    type=NumberRange(0.01, 1),
    default=1.0,
    metavar="X",
    help="Share of memories there in round 1; the others come evenly.  [default: 1]",
)
@click.option(
    "--drift", type=click.IntRange(2), metavar="ROUND", help="From then on only the newest memories are used."
)
@click.option("--window", type=click.IntRange(1), metavar="N", help="Train on the last N rounds.  [default: all]")
@click.option("--preview", is_flag=True, help="Serve what each round learned, without gates and movement caps.")
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
@click.option("--embedder", default=DEFAULT_EMBEDDER, metavar="SPEC", help="As in `eval`.  [default: wordllama]")
@click.option("--seed", type=click.IntRange(0, 2**31 - 1), default=0, metavar="N", help="Of every draw.  [default: 0]")
@click.option("--out", type=PATH, metavar="FILE", help="Write the log of all rounds as Parquet.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def simulate(
    dataset: Path | None,
    rounds: int,
    sessions: int,
    weights: str,
    agents: tuple[str, ...],
    at_first: float,
    drift: int | None,
    window: int | None,
    preview: bool,
    gates: GateSettings,
    max_l1: float | None,
    max_step: float | None,
    embedder: str,
    seed: int,
    out: Path | None,
    as_json: bool,
) -> None:
    """Plays agents whose needs are known over a judged DATASET (the demo's memories, if none is named; the format is
    that of `eval`), and learns from them, round by round, as `train` does from a log.

    Half of the tasks are played. On the others, which no agent is given, nDCG@10 shows what serving and learning come
    to. Nothing is stored, no server is needed, and the same seed gives the same figures.
    """
    check_extra()
    from training.rounds import Course, play_rounds
    from training.run import TrainSettings

    habits = tuple(_habits(text) for text in agents)
    if repeated := {each.name for each in habits if [other.name for other in habits].count(each.name) > 1}:
        raise click.UsageError(f"--agent {min(repeated)} is named twice; name each agent once")
    if out is not None and out.suffix != ".parquet":
        raise click.UsageError(f"--out {out} must end in .parquet, by which `train` knows it")
    model = read_model(weights, Path(os.devnull), "--weights")
    if model.common.variants or model.common.curves:
        raise click.UsageError(f"--weights {weights} cannot be trained from: name weights without ways of their own")
    settings = TrainSettings(
        seed=seed,
        preview=preview,
        # Nothing is held out of a preview: the tasks that tell are none that agents were given.
        gates=replace(gates, held_out_share=0.0) if preview else gates,
        movement=movement_caps(gates, max_l1, max_step),
        own_namespaces=False,
    )
    course = Course(rounds, sessions, habits or Course().habits, at_first, drift, window, seed, settings)
    found: list[Round] = []
    with steps() as advance:
        world = _world(DEMO if dataset is None else dataset, embedder)
        try:
            found += play_rounds(world, model.common, course, partial(advance, "rounds"))
        except ValueError as error:
            raise Failure(str(error), ExitCode.USAGE) from error
    if out is not None:
        _write(out, found)
    if as_json:
        screen.document({"dataset": world.name, "seed": seed, "rounds": [_as_json(each) for each in found]})
        return
    columns = [Column(title, is_number=True) for title in ("round", "memories", "packets", "reported", "served")]
    rows = [
        [
            str(each.number),
            str(each.memories),
            str(each.packets),
            str(each.reported),
            f"{each.served:.4f}",
            *_said(each),
        ]
        for each in found
    ]
    screen.table([*columns, Column("learned", is_number=True), Column("", is_text=True)], rows)
    click.echo("nDCG@10 on tasks that no agent was given: of what served in the round, and of what it taught.")


def _habits(text: str) -> Habits:
    from training.worlds import Habits

    name, _, given = text.partition(":")
    known = [each.name for each in fields(Habits) if each.name != "name"]
    values: dict[str, float] = {}
    for pair in filter(None, given.split(",")):
        habit, _, value = pair.partition("=")
        if habit not in known:
            raise click.UsageError(f"--agent {text}: {habit!r} is no habit; the habits are {', '.join(known)}")
        try:
            values[habit] = float(value)
        except ValueError:
            raise click.UsageError(f"--agent {text}: {habit} is {value!r}; it must be a number in [0, 1]") from None
        if not 0.0 <= values[habit] <= 1.0 or (habit == "share" and not values[habit]):
            raise click.UsageError(f"--agent {text}: {habit} is {value}; it must be in [0, 1], a share above 0")
    if not name:
        raise click.UsageError(f"--agent {text}: it needs a name, as in careful:report=0.7")
    return Habits(name, **values)


def _world(path: Path, embedder: str) -> World:
    from sidecar.errors import SettingsError
    from sidecar.retrieval.embedders import make_embedder
    from training.worlds import world_of

    judged = read_judged(path)
    try:
        found = world_of(judged, make_embedder(embedder))
    except SettingsError as error:
        raise Failure(error.message, ExitCode.USAGE, reason=error.reason) from error
    if len(found.tasks) < 2:
        raise Failure(
            f"{path} has {counted(len(found.tasks), 'task')} with a relevant memory; two at least are needed",
            ExitCode.USAGE,
        )
    return found


def _write(out: Path, found: list[Round]) -> None:
    from training.parquet import write_parquet

    try:
        write_parquet(out, [row for each in found for row in each.rows])
    except OSError as error:
        raise unwritable(str(out), error) from error


def _said(each: Round) -> tuple[str, str]:
    """nDCG of what was learned, and what became of it."""
    trained = each.run.trained
    if each.learned is None or trained is None:
        return "", f"refused: {', '.join(gate.gate for gate in each.run.refusals)}"
    return f"{each.learned:.4f}", "serves next" if each.serves else f"promotion: {trained.promotion.value}"


def _as_json(each: Round) -> dict[str, Any]:
    trained = each.run.trained
    values = [] if trained is None else trained.new.common.values.tolist()
    return {
        "round": each.number,
        "memories": each.memories,
        "packets": each.packets,
        "reported_packets": each.reported,
        "ndcg_served": each.served,
        "ndcg_learned": each.learned,
        "serves_next": each.serves,
        "promotion": "" if trained is None else trained.promotion.value,
        "refused_by": [gate.gate for gate in each.run.refusals],
        "weights": {feature: value for feature, value in zip(FEATURE_NAMES, values, strict=False) if value},
    }
