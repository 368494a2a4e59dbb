"""Artifacts to try things on: small, complete, made by the code that training uses."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from sidecar.domain import Micros
from sidecar.store.models import ModelRow
from sidecar.store.store import Store
from sidecar.weights.artifact import Artifact, Provenance, write_artifact
from sidecar.weights.roles import Action, Role, RoleEvent

PROVENANCE = Provenance(
    create_time="2026-05-01T00:00:00Z",
    base_version="default",
    preview=False,
    window={"from_time": "2026-01-01T00:00:00Z", "event_cutoff_time": "2026-05-01T00:00:00Z"},
    counts={"sessions": 400},
    seed=7,
    library_versions={"numpy": "2"},
    gates={"train": "passed", "promote": "automatic"},
)

LINEAR: dict[str, Any] = {
    "features": {"lexical": 0.5, "semantic": 0.3, "use_rate": 0.1, "importance": 0.1},
    "use_family_cap": 0.15,
    "half_life_days": {"fact": 60.0},
    "standard_errors": {"lexical": 0.01},
    "namespaces": {"ops": {"features": {"lexical": 0.9, "recency": 0.1}}},
}
CURVES: dict[str, Any] = {
    "curves": {
        "lexical": {"thresholds": [0.1, 0.4], "values": [0.0, 0.3, 0.7]},
        "importance": {"thresholds": [0.5], "values": [0.0, 0.2]},
        "use_rate": {"thresholds": [0.25, 0.75], "values": [0.0, 0.05, 0.1]},
    },
    "use_family_cap": 0.2,
    "half_life_days": {},
}


def make_artifact(folder: Path, table: Mapping[str, Any] = LINEAR, **provenance: Any) -> Artifact:
    """An artifact in `folder`, of the form that its table is; anything of its provenance may be said otherwise."""
    form = "curves" if "curves" in table else "linear"
    return write_artifact(folder, form, table, replace(PROVENANCE, **provenance), {"model_card.md": b"# A model\n"})


def place(store: Store, folder: Path, now: Micros) -> Artifact:
    """Makes an artifact in `folder`, and the active model of a store of it, without a server."""
    model = make_artifact(folder)
    row = ModelRow(model.version, model.form, now, now, "default", preview=False, gate="automatic")
    event = RoleEvent(now, Role.ACTIVE, model.version, Action.PROMOTED)
    store.place_model((row, model.archive), [event], b"", lambda: None)
    return model


def numbered(folder: Path, number: int, **provenance: Any) -> Artifact:
    """One of many different models."""
    share = 0.1 + 0.01 * number
    return make_artifact(folder, {"features": {"lexical": share, "semantic": 1.0 - share}}, **provenance)
