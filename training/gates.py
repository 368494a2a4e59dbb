"""The gates that a training run has to pass (LEARNING section 9), each in words: what is missing, and how to get it.

`train_gates` stand before and after the fit; those of `training.promotion` before the weights may serve. A gate that
cannot be judged has `passed` None: it neither passes nor blocks.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from sidecar.domain import Floats, ReportState
from sidecar.features import FEATURE_NAMES, PARTLY_FED_BY_USE, RAW_NAMES, SCHEMA_HASH
from sidecar.plurals import counted
from training.curves import PROOF_TOLERANCE, CurvesFit
from training.dataset import STATES, Dataset
from training.held_out import RELEVANT
from training.linear import LinearFit
from training.pairs import Pairs

MANY = 1_000_000_000
_MOST, _LEAST = float(np.finfo(np.float64).max), float(np.finfo(np.float64).smallest_subnormal)
"""The largest number that is one, and the smallest above 0."""
Number = TypeVar("Number", int, float)


def _within(low: Number, high: Number, default: Number) -> Number:
    """A setting of GateSettings that may be from `low` to `high`, both included."""
    return dataclasses.field(default=default, metadata={"low": low, "high": high})


@dataclass(frozen=True, slots=True)
class GateSettings:
    """Every threshold, by the name that `--gate NAME=VALUE` takes."""

    least_fit_sessions: int = _within(1, MANY, 200)
    """Sessions with a used and an unused memory, to fit on."""
    least_held_out_sessions: int = _within(0, MANY, 50)
    held_out_share: float = _within(0.0, 0.9, 0.2)
    """The larger of the two is held out."""
    least_used_memories: int = _within(0, MANY, 50)
    most_of_one_memory: float = _within(0.0, 1.0, 0.2)
    """Of all that was used, what one memory may make up."""
    least_report_share: float = _within(0.0, 1.0, 0.2)
    least_agent_report_share: float = _within(0.0, 1.0, 0.05)
    """An agent that reports less is left out, and does not block."""
    least_effective_sessions: float = _within(0.0, 1e9, 100.0)
    most_standard_error: float = _within(0.001, 100.0, 0.05)
    top_k: int = _within(1, 1_000, 10)
    bootstrap_rounds: int = _within(100, 100_000, 2_000)
    confidence: float = _within(0.5, 0.999, 0.95)
    non_inferiority: float = _within(0.0, 1.0, 0.01)
    """By how much nDCG may fall, by its lower bound, where a person decides."""
    most_starvation: float = _within(0.0, 1.0, 0.02)
    """By how much a starvation figure may rise: what one sample differs from another by."""
    least_curve_sessions: int = _within(0, MANY, 2_000)
    """Sessions with a used and an unused memory, for curves to take the place of linear weights."""
    least_curve_folds: int = _within(0, 100, 3)
    """Time folds in a row that curves have to win for it."""


@dataclass(frozen=True, slots=True)
class Gate:
    """One gate as it was found. `passed` None: too little is known to judge."""

    gate: str
    value: float | None
    threshold: float | None
    passed: bool | None
    words: str

    def as_row(self) -> dict[str, object]:
        """For gates.json, which has no infinities."""
        row = dataclasses.asdict(self)
        for name in ("value", "threshold"):
            if row[name] is not None and not np.isfinite(row[name]):
                row[name] = None
        return row


def refused(gates: Sequence[Gate]) -> list[Gate]:
    """Those that block."""
    return [gate for gate in gates if gate.passed is False]


@dataclass(frozen=True, slots=True)
class Coverage:
    """Packets of one agent (or surface) whose window is over, and how many of them were reported on."""

    agent: str
    packets: int
    reported: int

    @property
    def share(self) -> float:
        """Of its packets."""
        return self.reported / self.packets if self.packets else 0.0


def coverage(dataset: Dataset, names: Sequence[str] | None = None) -> list[Coverage]:
    """Of every agent, by name; of others for `names` of the packets. Packets that are still OPEN count for nobody."""
    packets = dataset.packets
    names = packets.agent if names is None else names
    closed = packets.state != STATES.index(ReportState.OPEN)
    found: dict[str, list[int]] = {}
    for agent, counts, is_reported in zip(names, closed.tolist(), packets.reported.tolist(), strict=True):
        if counts:
            mine = found.setdefault(agent, [0, 0])
            mine[0] += 1
            mine[1] += is_reported
    return [Coverage(agent, *counts) for agent, counts in sorted(found.items())]


def silent_agents(agents: Sequence[Coverage], settings: GateSettings) -> list[str]:
    """Agents that report too little to be learned from."""
    return [each.agent for each in agents if each.share < settings.least_agent_report_share]


def of_agents(dataset: Dataset, left_out: Sequence[str]) -> NDArray[np.bool_]:
    """Marks the packets of the other agents, shape (p,)."""
    return np.array([agent not in left_out for agent in dataset.packets.agent], bool)


def sound(dataset: Dataset) -> Gate:
    """Whether every number of what was served and of the undrawn is one: a fit on NaN gives NaN, without a word."""
    served = (dataset.features, dataset.raw, dataset.without_use, dataset.inclusion_propensity)
    undrawn = (dataset.pool_features, dataset.pool_raw, dataset.pool_without_use, dataset.pool_propensity)
    labels = [("label used", dataset.used, 0.0, 1.0), ("label unused", dataset.unused, 0.0, 1.0)]
    of_served = [*_fields(*served, least_chance=_LEAST), *labels]
    count, first = 0, ""
    for fields, packet, memory_key in (
        (of_served, dataset.packet, dataset.memory_key),
        (_fields(*undrawn, least_chance=0.0), dataset.pool_packet, dataset.pool_memory_key),
    ):
        bad = np.zeros(len(packet), bool)
        for _, values, low, high in fields:
            bad |= ~((values >= low) & (values <= high))
        count += int(bad.sum())
        if first or not bad.any():
            continue
        row = int(bad.argmax())
        what, value = next((name, v[row]) for name, v, low, high in fields if not low <= v[row] <= high)
        memory, of = dataset.memory_id[memory_key[row]], dataset.packets.packet_id[packet[row]]
        first = f"{what} of memory {memory!r} in packet {of!r} is {value:g}"
    if not count:
        return Gate("sound_numbers", 0.0, 0.0, True, "Every feature and label is a number in [0, 1].")
    words = (
        f"{counted(count, 'logged memory has', 'logged memories have')} a number that is none or out of its bounds "
        f"(features, labels and chances: [0, 1]): first {first}. Find out who wrote that log, and leave the packets "
        "out (--from, --until) or prune them."
    )
    return Gate("sound_numbers", float(count), 0.0, False, words)


def _fields(
    features: Floats, raw: Floats, without_use: Floats, propensity: Floats, *, least_chance: float
) -> list[tuple[str, Floats, float, float]]:
    """Name, values (n,), least and most of each number of n memories."""
    return [
        *((f"feature {name}", values, 0.0, 1.0) for name, values in zip(FEATURE_NAMES, features.T, strict=True)),
        *((f"raw {name}", values, -_MOST, _MOST) for name, values in zip(RAW_NAMES, raw.T, strict=True)),
        *(
            (f"feature {name} without use", values, -_MOST, _MOST)
            for name, values in zip(PARTLY_FED_BY_USE, without_use.T, strict=True)
        ),
        ("inclusion_propensity", propensity, least_chance, 1.0),
    ]


def one_schema(dataset: Dataset) -> Gate:
    """Whether all packets were scored by today's features."""
    others = sum(dataset.other_schemas.values())
    known = len(dataset.packets)
    if not others:
        words = f"All packets have feature schema {SCHEMA_HASH}."
        if dataset.own_measures:
            listed = ", ".join(f"{count} of {name}" for name, count in dataset.own_measures.items())
            words += (
                f" {counted(sum(dataset.own_measures.values()), 'more is', 'more are')} left out: the preset that "
                f"served them ({listed}) measures features in ways of its own, and an earlier version logged those "
                "alone."
            )
        return Gate("feature_schemas", float(bool(known)), 1.0, True, words)
    listed = ", ".join(f"{count} of {name}" for name, count in dataset.other_schemas.items())
    words = (
        f"Of {counted(known + others, 'packet')} {counted(others, 'was', 'were')} scored by other features ({listed}) "
        f"than this version's, {SCHEMA_HASH}. Their numbers mean something else: start the window after the upgrade "
        "(--from TIME), or train with the version that wrote them."
    )
    return Gate("feature_schemas", float(len(dataset.other_schemas) + bool(known)), 1.0, False, words)


def data_gates(dataset: Dataset, pairs: Pairs, agents: Sequence[Coverage], settings: GateSettings) -> list[Gate]:
    """The gates that need no fit. `pairs` are of all agents that are not left out."""
    gates = [
        sound(dataset),
        one_schema(dataset),
        _sessions(dataset, pairs, settings),
        _reports(dataset, agents, settings),
    ]
    return [*gates, *_memories(dataset, pairs, settings)]


def _sessions(dataset: Dataset, pairs: Pairs, settings: GateSettings) -> Gate:
    count = len(pairs.sessions)
    held_out = max(settings.least_held_out_sessions, int(np.ceil(settings.held_out_share * count)))
    least = settings.least_fit_sessions + settings.least_held_out_sessions
    passed = count - held_out >= settings.least_fit_sessions
    if passed:
        words = (
            f"{counted(count, 'session has', 'sessions have')} a used and an unused memory: {count - held_out} to fit, "
            f"{held_out} held out."
        )
        return Gate("sessions", float(count), float(least), True, words)
    reports = int(dataset.packets.reported.sum())
    if not len(dataset.packets) and dataset.other_schemas:
        why = "No packet of this window was scored by this version's features"
    elif not len(dataset.packets):
        why = "The log has no packet in this window: have agents call Rank, without dry_run, and report what they used"
    elif not reports:
        why = (
            f"The log has {counted(len(dataset.packets), 'packet')} in this window and no report of use on any: call "
            "ReportUse after each turn, or ReportOutput with what the agent said"
        )
    elif not (dataset.used >= RELEVANT).any():
        heard = counted(reports, "reported packet, and none of its", "reported packets, and none of their")
        why = f"{heard} memories was used: look at `memory-ranker audit`"
    else:
        why = (
            f"{counted(count, 'session has', 'sessions have')} both a used and an unused memory in one packet; "
            f"{counted(max(1, least - count), 'more is', 'more are')} needed ({settings.least_fit_sessions} to fit, "
            f"{settings.least_held_out_sessions} held out). Report completely, also the turns in which nothing was "
            "used, and give packets a session_id"
        )
    return Gate("sessions", float(count), float(least), False, f"Not enough data. {why}.")


def _reports(dataset: Dataset, agents: Sequence[Coverage], settings: GateSettings) -> Gate:
    silent = silent_agents(agents, settings)
    heard = [each for each in agents if each.agent not in silent]
    packets = sum(each.packets for each in heard)
    share = sum(each.reported for each in heard) / packets if packets else 0.0
    is_open = int((dataset.packets.state == STATES.index(ReportState.OPEN)).sum())
    waiting = (
        f" {counted(is_open, 'more has', 'more have')} no report yet: still OPEN, and not counted." if is_open else ""
    )
    without = ""
    if silent:
        named = ", ".join(repr(name) for name in silent[:10])
        without = f" Left out, as they report on fewer than {settings.least_agent_report_share:.0%}: {named}."
    if share >= settings.least_report_share:
        words = f"Of {counted(packets, 'packet')} {share:.0%} were reported on.{waiting}{without}"
        return Gate("report_share", share, settings.least_report_share, True, words)
    words = (
        f"Of {counted(packets, 'packet')} {share:.1%} were reported on; {settings.least_report_share:.0%} are needed, "
        f"or what is silent decides.{waiting}{without} Have every client call ReportUse after each turn; "
        "`memory-ranker audit` shows the share by client."
    )
    return Gate("report_share", share, settings.least_report_share, False, words)


def _memories(dataset: Dataset, pairs: Pairs, settings: GateSettings) -> list[Gate]:
    rows = pairs.row[np.unique(pairs.better)]
    amount = np.bincount(dataset.memory_key[rows], dataset.used[rows], len(dataset.memory_id))
    distinct = int((amount > 0).sum())
    enough = distinct >= settings.least_used_memories
    missing = counted(settings.least_used_memories - distinct, "more is", "more are")
    words = counted(distinct, "different memory was used.", "different memories were used.") + (
        "" if enough else f" {missing} needed, or the fit learns these by heart: widen the window (--from)."
    )
    first = Gate("used_memories", float(distinct), float(settings.least_used_memories), enough, words)
    share = float(amount.max() / amount.sum()) if amount.sum() > 0 else 0.0
    few = share <= settings.most_of_one_memory
    words = f"The most used memory makes up {share:.0%} of all uses."
    if not few:
        name = dataset.memory_id[int(amount.argmax())]
        words = (
            f"The memory {name!r} makes up {share:.0%} of all uses; at most {settings.most_of_one_memory:.0%} may be. "
            "If it belongs in every packet, pin it, and it is compared with nothing; otherwise look at who reports it."
        )
    return [first, Gate("one_memory", share, settings.most_of_one_memory, few, words)]


def curves_gate(fit: CurvesFit) -> Gate:
    """Whether the curves are the booster, number for number."""
    if not fit.trees:
        words = "The ranker found no step that lifts nDCG: there is nothing to serve. Wait for more sessions."
        return Gate("curves_are_the_booster", None, PROOF_TOLERANCE, False, words)
    words = (
        f"Over {fit.proof_rows:,} rows (a grid, every threshold and the numbers beside it, random ones) the curves "
        f"differ from LightGBM's own scores of {counted(fit.trees, 'tree')} by {fit.difference:.1e} at most."
    )
    passed = fit.difference <= PROOF_TOLERANCE
    if not passed:
        words += " That is more than rounding: the curves are not this booster. Report it with the version of LightGBM."
    return Gate("curves_are_the_booster", fit.difference, PROOF_TOLERANCE, passed, words)


def fit_gates(fit: LinearFit | CurvesFit, settings: GateSettings) -> list[Gate]:
    """The gates that a fit has to pass. What a curve reaches is its feature's weight."""
    enough = fit.effective_sessions >= settings.least_effective_sessions
    words = f"The weighted sessions are worth {fit.effective_sessions:.0f} even ones."
    if not enough:
        words += (
            f" {settings.least_effective_sessions:.0f} are needed: one agent outweighs the others. Have more agents "
            "report, or wait for more sessions."
        )
    effective = Gate("effective_sessions", fit.effective_sessions, settings.least_effective_sessions, enough, words)
    known = np.where(fit.fitted, fit.standard_errors, np.nan)
    if not fit.fitted.any() or np.isnan(known[fit.fitted]).all():
        words = "No feature differs within packets of enough sessions: there is nothing to fit. Wait for more sessions."
        return [effective, Gate("standard_errors", None, settings.most_standard_error, False, words)]
    worst = int(np.nanargmax(known))
    error = float(known[worst])
    sure = error <= settings.most_standard_error and not np.isnan(known[fit.fitted]).any()
    words = f"The least sure weight, {FEATURE_NAMES[worst]}, has a standard error of {error:.3f}."
    if not sure:
        times = (error / settings.most_standard_error) ** 2
        words += f" At most {settings.most_standard_error:g} is allowed: about {times:.1f} times the sessions would do."
    return [effective, Gate("standard_errors", error, settings.most_standard_error, sure, words)]


def changed(settings: GateSettings, given: Mapping[str, str]) -> GateSettings:
    """The settings with values by name, as texts. ValueError names the one that is unknown, no such number, or out of
    its bounds."""
    known = {each.name: each for each in dataclasses.fields(GateSettings)}
    values: dict[str, float | int] = {}
    for name, text in given.items():
        if name not in known:
            raise ValueError(f"there is no gate setting {name!r}; there are {', '.join(known)}")
        kind = type(getattr(settings, name))
        try:
            value = kind(text)
        except ValueError as error:
            raise ValueError(f"{name} is {text!r}; must be a number like {getattr(settings, name)}") from error
        low, high = known[name].metadata["low"], known[name].metadata["high"]
        if not low <= value <= high:  # NaN is within nothing
            raise ValueError(f"{name} is {text!r}; must be from {low:,} to {high:,}")
        values[name] = value
    return dataclasses.replace(settings, **values)  # type: ignore[arg-type]
