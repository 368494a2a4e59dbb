"""What a run leaves behind: the tables of the weights, the gate report and the model card. Pure; no clock is read."""

from __future__ import annotations

import datetime
import platform
from collections.abc import Mapping
from importlib.metadata import version
from typing import Any

import numpy as np

from sidecar import __version__
from sidecar.domain import Micros
from sidecar.features import FEATURE_NAMES
from sidecar.plurals import counted
from sidecar.weights import Weights
from sidecar.weights.artifact import Provenance, json_bytes
from sidecar.weights.curves import table_of as curves_table
from training.dataset import Dataset
from training.gates import Gate
from training.html_report import report
from training.model import DECIMALS
from training.run import Run, Trained

_EPOCH = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)
NAMED = 50
"""Agents or namespaces that the model card names; more are counted."""
_MARKS = {True: "passed", False: "refused", None: "not judged"}


def rfc3339(time: Micros) -> str:
    """A time as the manifest has it."""
    return (_EPOCH + datetime.timedelta(microseconds=time)).isoformat().replace("+00:00", "Z")


def table_of(trained: Trained) -> dict[str, Any]:
    """weights.json or curves.json: the common weights or curves, and for each namespace with its own all of them."""
    common = trained.new.common
    shared = {
        "caps": {
            name: cap
            for name, cap, value in zip(FEATURE_NAMES, common.caps.tolist(), common.values.tolist(), strict=True)
            if cap != value
        },
        "use_family_cap": common.use_family_cap,
        "half_life_days": dict(sorted(common.half_life_days.items())),
        "standard_errors": {
            name: round(error, DECIMALS)
            for name, error in zip(FEATURE_NAMES, trained.fit.standard_errors.tolist(), strict=True)
            if np.isfinite(error)
        },
    }
    if common.curves:
        return {**shared, "curves": curves_table(common.curves)}
    own = {name: {"features": _by_name(each)} for name, each in sorted(trained.new.namespaces.items())}
    return {**shared, "features": _by_name(common), "namespaces": own}


def _by_name(weights: Weights) -> dict[str, float]:
    return {name: value for name, value in zip(FEATURE_NAMES, weights.values.tolist(), strict=True) if value > 0.0}


def provenance_of(run: Run, trained: Trained) -> Provenance:
    """Where the model comes from."""
    cutoffs = trained.logged.cutoffs
    first = cutoffs.from_time
    if first is None:
        first = int(trained.logged.packets.create_time[0])
    assert cutoffs.event is not None
    assert cutoffs.ingest is not None
    return Provenance(
        create_time=rfc3339(cutoffs.ingest),
        base_version=trained.old.common.version,
        preview=run.settings.preview,
        window={
            "from_time": rfc3339(first),
            "event_cutoff_time": rfc3339(cutoffs.event),
            "ingest_cutoff_time": rfc3339(cutoffs.ingest),
        },
        counts=counts_of(trained),
        seed=run.settings.seed,
        library_versions={
            "memory-ranker": __version__,
            "numpy": np.__version__,
            "python": platform.python_version(),
            "scipy": version("scipy"),
            **({"lightgbm": version("lightgbm")} if trained.new.common.curves else {}),
        },
        gates={
            "train": "skipped" if run.settings.preview else "passed",
            "promote": trained.promotion.value,
        },
    )


def counts_of(trained: Trained) -> dict[str, int]:
    """How much it was fitted on and judged by."""
    dataset: Dataset = trained.logged
    return {
        "packets": len(dataset.packets),
        "reported_packets": int(dataset.packets.reported.sum()),
        "served_memories": len(dataset),
        "distinct_memories": len(np.unique(dataset.memory_key)),
        "namespaces": len(set(dataset.packets.namespace)),
        "fitted_sessions": trained.fit.sessions,
        "fitted_pairs": trained.fit.pairs,
        "held_out_sessions": trained.held_out.difference.sessions,
    }


def gate_rows(run: Run) -> list[dict[str, object]]:
    """gates.json."""
    return [
        {"stage": stage, **gate.as_row()}
        for stage, gates in (("train", run.train_gates), ("promote", run.promote_gates))
        for gate in gates
    ]


def others_of(run: Run, trained: Trained, version: str) -> dict[str, bytes]:
    """The files that are for people."""
    return {
        "gates.json": json_bytes(gate_rows(run)),
        "model_card.md": model_card(run, trained).encode(),
        "report.html": report(run, trained, version, provenance_of(run, trained), weight_rows(trained)).encode(),
    }


def model_card(run: Run, trained: Trained) -> str:
    """What the model is, what it was made from, and what it must not be used for."""
    provenance = provenance_of(run, trained)
    window, counts = provenance.window, provenance.counts
    what = "Rising curves, one by feature" if trained.new.common.curves else "Linear weights"
    lines = [
        "# Model card",
        "",
        f"{what}, fitted on what agents used, by which memory-ranker orders an agent's memories for a task.",
        "",
        f"- Made from packets of {window['from_time']} until {window['event_cutoff_time']}, with the reports received "
        f"until {window['ingest_cutoff_time']}.",
        f"- Starts from: {provenance.base_version}. Seed: {provenance.seed}.",
        f"- {counts['reported_packets']} of {counted(counts['packets'], 'packet was', 'packets were')} reported on; "
        f"{counted(counts['fitted_sessions'], 'session was', 'sessions were')} fitted on, "
        f"{counts['held_out_sessions']} held out by time.",
        f"- Promotion: {provenance.gates['promote']}."
        + (" A preview: made without gates and movement caps, it cannot be promoted." if run.settings.preview else ""),
    ]
    if run.left_out_agents:
        named = ", ".join(map(repr, run.left_out_agents[:NAMED]))
        more = len(run.left_out_agents) - NAMED
        lines.append(f"- Left out, as they hardly report: {named}" + (f" and {more:,} more." if more > 0 else "."))
    lines += ["", "## Weights", "", "| feature | before | after | standard error |", "|---|---|---|---|"]
    for name, before, after, error in weight_rows(trained):
        lines.append(f"| {name} | {before:.4f} | {after:.4f} | {error} |")
    lines += ["", "## Half-lives that moved, in days", ""]
    moves = [each for each in trained.half_lives if each.new != each.old]
    lines += [f"- {each.kind}: {each.old:g} to {each.new:g} (likeliest {each.best:g})" for each in moves] or ["None."]
    lines += ["", "## Namespaces with weights of their own", ""]
    differing = [each for each in trained.namespaces.found if each.differs]
    lines += [
        f"- {each.namespace!r}: {each.difference:.3f} apart from the common ones, from "
        f"{counted(each.sessions, 'session')}"
        for each in differing[:NAMED]
    ] or ["None."]
    lines += [f"- And {len(differing) - NAMED:,} more."] if len(differing) > NAMED else []
    lines += ["", "## Gates", "", "| gate | outcome | |", "|---|---|---|"]
    lines += [_gate_line(gate) for gate in (*run.train_gates, *run.promote_gates)]
    lines += [
        "",
        "## Limits",
        "",
        "It was learned from what these agents used, of what they were shown: it says nothing of memories that were "
        "never served, of agents that do not report, or of needs that came later. Scores order one packet; they are no "
        "probabilities.",
    ]
    return "\n".join(lines) + "\n"


def weight_rows(trained: Trained) -> list[tuple[str, float, float, str]]:
    """(feature, before, after, standard error) of every feature with a weight."""
    base, new = trained.old.of(_subject(trained)), trained.new.of(_subject(trained))
    return [
        (name, before, after, f"{error:.4f}" if np.isfinite(error) else "")
        for name, before, after, error in zip(
            FEATURE_NAMES,
            base.values.tolist(),
            new.values.tolist(),
            trained.fit.standard_errors.tolist(),
            strict=True,
        )
        if before > 0.0 or after > 0.0
    ]


def _subject(trained: Trained) -> str:
    """The namespace that was fitted, "" for the common weights."""
    return next(iter(trained.movements), "") if "" not in trained.movements else ""


def _gate_line(gate: Gate) -> str:
    words = gate.words.replace("|", "\\|")
    return f"| {gate.gate} | {_MARKS[gate.passed]} | {words} |"


def summary(run: Run, version: str, folder: str) -> Mapping[str, Any]:
    """The outcome as one object, for --json."""
    found: dict[str, Any] = {
        "outcome": "refused" if run.trained is None else "trained",
        "preview": run.settings.preview,
        "gates": gate_rows(run),
        "left_out_agents": list(run.left_out_agents),
        "reports_by_agent": [
            {"agent": each.agent, "packets": each.packets, "reported": each.reported} for each in run.agents
        ],
    }
    trained = run.trained
    if trained is None:
        return found
    return {
        **found,
        "promotion": trained.promotion.value,
        "version": version,
        "folder": folder,
        "counts": counts_of(trained),
        "weights": [
            {
                "feature": name,
                "before": round(before, DECIMALS),
                "after": after,
                "standard_error": float(error) if error else None,
            }
            for name, before, after, error in weight_rows(trained)
        ],
        "half_lives": [
            {"kind": each.kind, "before": each.old, "after": each.new, "likeliest": each.best, "gain": each.gain}
            for each in trained.half_lives
        ],
        "namespaces": [
            {"namespace": each.namespace, "difference": each.difference, "sessions": each.sessions}
            for each in trained.namespaces.found
            if each.differs
        ],
        "ndcg": {"before": trained.held_out.old, "after": trained.held_out.new},
        "eta": {name: movement.eta for name, movement in trained.movements.items()},
    }
