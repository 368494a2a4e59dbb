"""What the tables of settings come to: the weights, and how importance is scored. Pure."""

from __future__ import annotations

from sidecar.config import Settings
from sidecar.errors import Faults
from sidecar.importance.settings import ImportanceSettings
from sidecar.importance.settled import settled_importance
from sidecar.weights import WeightsHolder
from sidecar.weights.settled import settled_weights


def settled(settings: Settings) -> tuple[WeightsHolder, ImportanceSettings]:
    """Both. Raises SettingsError with the faults of both."""
    faults = Faults()
    with faults.noted():
        weights = settled_weights(settings)
    with faults.noted():
        importance = settled_importance(settings)
    faults.raise_if_any()
    return weights, importance
