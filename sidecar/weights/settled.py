"""The weights that settings come to: the shipped ones, those of the settings file, and which are active. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sidecar.config import Settings
from sidecar.errors import Faults, InvalidRequestError, SettingsError, UnknownWeightsError
from sidecar.weights.holder import WeightsHolder
from sidecar.weights.linear import Weights, make_weights
from sidecar.weights.presets import PRESETS

OF_REQUEST = "request"
"""The version of weights that came with a request."""


def settled_weights(settings: Settings) -> WeightsHolder:
    """The shipped weights and those of the settings file, with the active ones chosen. Raises SettingsError."""
    faults = Faults()
    own = {}
    for name, table in settings.presets.items():
        with faults.noted():
            own[name] = _own(name, table)
    if settings.weights in settings.presets:
        faults.raise_if_any()  # those that are meant to serve are there
    try:
        holder = WeightsHolder(settings.weights, own)
    except UnknownWeightsError as error:
        raise SettingsError(*faults.found, error.message) from error
    faults.raise_if_any()
    return holder


def _own(name: str, table: Mapping[str, Any]) -> Weights:
    if not name.strip():
        raise SettingsError(f"weights.{name!r}: a name must not be empty; as [weights.mine.features]")
    if name in PRESETS or name == OF_REQUEST:
        raise SettingsError(f"weights.{name}: the name is taken by weights that are shipped; choose another")
    try:
        return make_weights(
            name,
            table.get("features", {}),
            caps=table.get("caps"),
            use_family_cap=table.get("use_family_cap"),
            half_life_days=table.get("half_life_days"),
            path=f"weights.{name}",
        )
    except InvalidRequestError as error:
        raise SettingsError(*(f"{each.field} {each.description}" for each in error.violations)) from error
