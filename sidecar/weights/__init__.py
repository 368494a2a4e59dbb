"""Weights: how features become a score. Named ones that are shipped, learned ones, and a request's own."""

from sidecar.weights.holder import WeightsHolder
from sidecar.weights.linear import Contributions, Weights, contributions, make_curve_weights, make_weights
from sidecar.weights.presets import PRESETS

__all__ = [
    "PRESETS",
    "Contributions",
    "Weights",
    "WeightsHolder",
    "contributions",
    "make_curve_weights",
    "make_weights",
]
