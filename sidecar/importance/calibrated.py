"""The weights of a namespace as its user's ratings shift them, kept until the ratings change."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from sidecar.importance.calibration import FEWEST_RATED, calibrate
from sidecar.importance.content import PARTS
from sidecar.importance.settings import SIGNALS, SignalWeights
from sidecar.retrieval.snapshot import Snapshot

MOST_RATED = 200
"""Ratings that are gone by, the newest."""
MOST_HELD = 1_000
ROUGHLY = 0.1

Values = Sequence[Mapping[str, float | None]]


@dataclass(frozen=True, slots=True)
class OwnWeights:
    """Weights of the five signals, and shares of the parts of the content; `rated` memories had their say."""

    signals: SignalWeights
    parts: Mapping[str, float]
    rated: int = 0


class Calibrations:
    """Namespace -> its weights. Safe to use from many threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._held: dict[tuple[str, SignalWeights], tuple[bytes, int, OwnWeights]] = {}

    def of(
        self,
        namespace: str,
        snapshot: Snapshot,
        common: SignalWeights,
        values: Callable[[Sequence[int]], Values],
        *,
        is_rough: bool = False,
    ) -> OwnWeights:
        """The weights that hold in a namespace, `common` shifted by its user's ratings. `values` gives signals and
        parts by name for rated rows. With `is_rough` those from before are good while ratings grow by less than
        ROUGHLY, for memories that are written one after the other and rated."""
        override = snapshot.columns.importance_override
        all_rated = np.flatnonzero(snapshot.columns.live & ~np.isnan(override))
        # The newest, in an order that does not tell in which they were written: sums would differ in the last bit.
        rated = np.array(sorted(all_rated[-MOST_RATED:].tolist(), key=snapshot.columns.ids.__getitem__), dtype=np.intp)
        if len(rated) < FEWEST_RATED:
            return OwnWeights(common, PARTS)
        # The texts are named by the memories' keys and times of change: the weights hold for them alone.
        parts = (snapshot.columns.key[rated], snapshot.columns.update_time[rated], override[rated])
        sign = b"".join(part.tobytes() for part in parts)
        with self._lock:
            known = self._held.get((namespace, common))
        if known is not None and (
            known[0] == sign or (is_rough and abs(len(all_rated) - known[1]) < ROUGHLY * known[1])
        ):
            return known[2]
        made = _calibrated(common, override[rated].tolist(), values(rated.tolist()))
        with self._lock:
            while len(self._held) >= MOST_HELD:
                self._held.pop(next(iter(self._held)))
            self._held[namespace, common] = (sign, len(all_rated), made)
        return made


def _calibrated(common: SignalWeights, ratings: Sequence[float], values: Values) -> OwnWeights:
    parts = calibrate(PARTS, list(zip(ratings, values, strict=True)))
    whole = []
    for rating, each in zip(ratings, values, strict=True):
        known = {name: value for name in PARTS if (value := each[name]) is not None}
        shares = sum(parts[name] for name in known)
        content = sum(parts[name] * value for name, value in known.items()) / shares if shares else None
        whole.append((rating, {"content": content, "access": each["access"], "emotion": each["emotion"]}))
    signals = calibrate(common.by_name(), whole)
    return OwnWeights(SignalWeights(**{name: signals[name] for name in SIGNALS}), parts, len(ratings))
