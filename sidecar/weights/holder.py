"""Which weights serve, and by which names others may be asked for."""

from __future__ import annotations

import difflib
from collections.abc import Mapping

from sidecar.errors import UnknownWeightsError
from sidecar.weights.linear import Weights
from sidecar.weights.presets import PRESETS


class WeightsHolder:
    """The weights by name, and the active ones. A swap is one assignment, so a Rank sees either the old or the new."""

    def __init__(self, active: str = "default", own: Mapping[str, Weights] | None = None) -> None:
        self._by_name = {**PRESETS, **(own or {})}
        self._active = self.named(active)

    @property
    def active(self) -> Weights:
        """The weights that serve when a request names none."""
        return self._active

    @property
    def names(self) -> tuple[str, ...]:
        """The names that a request may ask for, sorted."""
        return tuple(sorted(self._by_name))

    def named(self, name: str) -> Weights:
        """The weights of that name. Raises UnknownWeightsError with the nearest name and the list."""
        found = self._by_name.get(name)
        if found is None:
            near = difflib.get_close_matches(name, self._by_name, n=1)
            hint = f" Did you mean {near[0]!r}?" if near else ""
            raise UnknownWeightsError(
                f"weights: there are none named {name!r}.{hint} Known: {', '.join(self.names)}.", weights=name
            )
        return found

    def swap(self, weights: Weights) -> None:
        """Puts checked weights to work."""
        self._by_name = {**self._by_name, weights.version: weights}
        self._active = weights
