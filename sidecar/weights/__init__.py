"""Weights: how features become a score. Named ones that are shipped, learned ones, and a request's own."""

from sidecar.weights.holder import WeightsHolder
from sidecar.weights.linear import (
    KNOWN,
    Contributions,
    Known,
    Weights,
    add_up,
    contributions,
    known_parts,
    make_curve_weights,
    make_weights,
)
from sidecar.weights.presets import PRESETS

__all__ = [
    "KNOWN",
    "PRESETS",
    "Contributions",
    "Known",
    "Weights",
    "WeightsHolder",
    "add_up",
    "contributions",
    "known_parts",
    "make_curve_weights",
    "make_weights",
]
