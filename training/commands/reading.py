"""What commands over a log have in common: where it is, which part of it counts, which weights to start from."""

from __future__ import annotations

import datetime
import math
import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from functools import partial, wraps
from pathlib import Path
from typing import Any, TypeVar

import click

from sidecar.cli.connection import settings_environ
from sidecar.cli.failures import ExitCode, Failure
from sidecar.cli.parsing import PATH, time_value
from sidecar.cli.store_folder import data_folder, store_errors
from sidecar.config import resolve
from sidecar.domain import Micros
from sidecar.errors import ModelRefusedError, SettingsError, UnknownWeightsError
from sidecar.store.log_reading import read_stored_model
from sidecar.weights import PRESETS
from sidecar.weights.archive import files_of
from sidecar.weights.artifact import read_artifact, verify
from sidecar.weights.settled import settled_weights
from training.commands.progress import Advance
from training.dataset import Cutoffs, Dataset, build_dataset
from training.gates import GateSettings, changed
from training.model import Model
from training.movement import MovementCaps
from training.sources import UnreadableLogError, database_of, read_source

Command = TypeVar("Command", bound=Callable[..., Any])
_EPOCH = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)


def check_extra() -> None:
    """What only training needs is installed with it. Raises Failure."""
    try:
        import scipy  # noqa: F401
    except ImportError as error:
        raise Failure("training needs more: pip install 'memory-ranker[train]'") from error


def gate_settings(_: click.Context, __: click.Parameter, given: tuple[str, ...]) -> GateSettings:
    """What --gate comes to, given any number of times."""
    pairs = [text.partition("=") for text in given]
    if any(not equals for _, equals, _ in pairs):
        raise click.BadParameter("must be NAME=VALUE")
    try:
        return changed(GateSettings(), {name: value for name, _, value in pairs})
    except ValueError as error:
        raise click.BadParameter(str(error)) from error


def movement_caps(gates: GateSettings, max_l1: float | None, max_step: float | None) -> MovementCaps:
    """How far a run may go, where None leaves a cap as it is."""
    caps = MovementCaps(top_k=gates.top_k)
    caps = replace(caps, max_l1=caps.max_l1 if max_l1 is None else max_l1)
    return replace(caps, max_step=caps.max_step if max_step is None else max_step)


def finite(found: Any) -> Any:
    """The same for JSON, which has neither infinities nor NaN: None in their place."""
    if isinstance(found, Mapping):
        return {name: finite(value) for name, value in found.items()}
    if isinstance(found, list):
        return [finite(value) for value in found]
    return None if isinstance(found, float) and not math.isfinite(found) else found


def log_options(command: Command) -> Command:
    """Adds the source, --namespace, --from, --until and --reports-until; the command gets `source`, `namespace` and
    `cutoffs`, once it is sure that what training needs is installed."""

    @click.argument("source", required=False, type=PATH)
    @click.option("--namespace", default="", metavar="NAME", help="Of this namespace alone.  [default: of all]")
    @click.option("--from", "start", metavar="TIME", callback=time_value, help="Packets from then on.")
    @click.option("--until", metavar="TIME", callback=time_value, help="Packets before then.  [default: all]")
    @click.option(
        "--reports-until",
        metavar="TIME",
        callback=time_value,
        help="Reports that had arrived by then.  [default: all; the same bounds give the same bytes]",
    )
    @wraps(command)
    def run(
        source: Path | None,
        start: datetime.datetime | None,
        until: datetime.datetime | None,
        reports_until: datetime.datetime | None,
        **others: Any,
    ) -> Any:
        check_extra()
        if start is not None and until is not None and start >= until:
            raise click.UsageError(f"--from {start} is not before --until {until}: no packet lies between them")
        cutoffs = Cutoffs(_micros(until), _micros(reports_until), _micros(start))
        return command(source=source if source is not None else data_folder(), cutoffs=cutoffs, **others)

    return run  # type: ignore[return-value]


def _micros(time: datetime.datetime | None) -> Micros | None:
    return None if time is None else (time - _EPOCH) // datetime.timedelta(microseconds=1)


@contextmanager
def log_errors() -> Iterator[None]:
    """Turns what is wrong with a log into a Failure; a file that is no log is the command line's fault."""
    with store_errors():
        try:
            yield
        except UnreadableLogError as error:
            raise Failure(error.message, ExitCode.USAGE, reason=error.reason) from error


def read_dataset(source: Path, namespace: str, cutoffs: Cutoffs, advance: Advance) -> Dataset:
    """The data set of a log. Raises Failure."""
    with log_errors():
        rows = read_source(source, namespace, cutoffs, partial(advance, "log"))
        return build_dataset(rows, cutoffs)


def read_model(base: str, source: Path, option: str) -> Model:
    """Weights by their name, or a model by its folder, its archive or its version in the registry of the store that
    `source` is. "" means what serves: the store's active model, else the settings' weights. Raises Failure, which names
    the command line's `option` that has no such weights."""
    path = Path(base)
    with store_errors():
        database = database_of(source)
        is_there = database is not None and database.is_file()
    try:
        if base and path.exists():
            artifact = read_artifact(path)
            return Model(artifact.weights, artifact.namespaces)
        if database is not None and is_there and base not in PRESETS:
            with store_errors():
                stored = read_stored_model(database, base)
            if stored is not None:
                artifact = verify(files_of(stored[1]))
                return Model(artifact.weights, artifact.namespaces)
    except ModelRefusedError as error:
        raise Failure(error.message, ExitCode.REFUSED, reason=error.reason) from error
    try:
        holder = settled_weights(resolve({}, settings_environ(os.environ)).settings)
        weights = holder.named(base) if base else holder.active
    except SettingsError as error:
        raise Failure(error.message, ExitCode.USAGE, reason=error.reason) from error
    except UnknownWeightsError as error:
        words = (
            f"{option}: {error.message} A model's folder or archive may be given too, and a model's version, where the "
            "log is a store that has it in its registry."
        )
        raise Failure(words, ExitCode.NOT_FOUND, reason=error.reason) from error
    return Model(weights)
