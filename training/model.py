"""Weights with those of single namespaces beside them, and what they give rows of a data set. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from sidecar.domain import Floats
from sidecar.features import PARTLY_FED_BY_USE
from sidecar.weights import Weights, contributions
from training.dataset import Dataset, Ints
from training.movement import Candidates

DECIMALS = 6
"""Digits of a weight that are kept: below them is noise, and two machines would differ in it."""


@dataclass(frozen=True, slots=True)
class Model:
    """What scores: the common weights, and the namespaces' own, by name."""

    common: Weights
    namespaces: Mapping[str, Weights] = field(default_factory=dict)

    def of(self, namespace: str) -> Weights:
        """The weights that score in a namespace."""
        return self.namespaces.get(namespace, self.common)

    def scores(self, features: Floats, without_use: Floats, packet: Ints, namespaces: Sequence[str]) -> Floats:
        """Of rows, as served, (n,). `namespaces` are of the packets that `packet` (n,) indexes."""
        return self._of_rows(features, without_use, packet, namespaces, "score")

    def task_fits(self, features: Floats, without_use: Floats, packet: Ints, namespaces: Sequence[str]) -> Floats:
        """The same of rows' fit to their task, which use does not feed."""
        return self._of_rows(features, without_use, packet, namespaces, "task_fit")

    def served_scores(self, dataset: Dataset) -> Floats:
        """Of every served row, (n,)."""
        return self.scores(dataset.features, dataset.without_use, dataset.packet, dataset.packets.namespace)

    def candidate_scores(self, candidates: Candidates, namespaces: Sequence[str]) -> Floats:
        """Of every candidate."""
        return self.scores(candidates.features, candidates.without_use, candidates.packet, namespaces)

    def _of_rows(
        self, features: Floats, without_use: Floats, packet: Ints, namespaces: Sequence[str], what: str
    ) -> Floats:
        found = np.empty(len(features))
        for weights, rows in self._groups(packet, namespaces):
            own = {name: without_use[rows, k] for k, name in enumerate(PARTLY_FED_BY_USE)}
            found[rows] = getattr(contributions(features[rows], own, weights), what)
        return found

    def _groups(self, packet: Ints, namespaces: Sequence[str]) -> list[tuple[Weights, NDArray[np.bool_] | slice]]:
        if not self.namespaces:
            return [(self.common, slice(None))]
        names = np.array(namespaces, dtype=object)
        own = [name for name in self.namespaces if name in set(namespaces)]
        groups: list[tuple[Weights, NDArray[np.bool_] | slice]] = [
            (self.namespaces[name], (names == name)[packet]) for name in own
        ]
        return [*groups, (self.common, ~np.isin(names.astype(str), own)[packet])]


def rounded(values: Floats) -> Floats:
    """The weights to DECIMALS digits; what rounding puts above their sum comes off the largest."""
    found: Floats = np.round(values, DECIMALS)
    over = round(float(found.sum()) - min(float(values.sum()), 1.0), DECIMALS)
    if over > 0.0:
        largest = int(np.argmax(found))
        found[largest] = round(float(found[largest]) - over, DECIMALS)
    return found


def moved_weights(old: Weights, values: Floats, half_life_days: Mapping[str, float], version: str) -> Weights:
    """The same weights with other values and half-lives; a cap that followed its weight follows the new one."""
    values = rounded(values)
    caps = np.where(old.caps != old.values, old.caps, values)
    days = {**old.half_life_days, **half_life_days}
    return replace(old, version=version, values=values, caps=caps, half_life_days=days)
