"""What other scores would have done with logged packets: nDCG by session, and the use of reserved slots. Pure.

Compared are scores of the same served memories: those of a model, of a preset, or what a shadow logged. nDCG says how
well they order what was shown; the reserved slots say what would have been used of what they would have drawn.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sidecar.domain import Floats, Packet, ShadowScores
from sidecar.plurals import counted
from sidecar.store.log import LogRow
from training.dataset import Dataset
from training.gates import GateSettings
from training.half_lives import with_half_lives
from training.model import Model
from training.off_policy import MIN_SESSIONS, OffPolicy, estimate
from training.promotion import HeldOut, compare
from training.reserved_draws import reserved_draws
from training.variants import as_measured_by


@dataclass(frozen=True, slots=True)
class Evaluation:
    """What was found. `off_policy` is None where there is nothing to go by, and `why_not` says why."""

    ndcg: HeldOut
    off_policy: OffPolicy | None
    why_not: str

    @property
    def sufficient(self) -> bool:
        """True if there are sessions enough for nDCG to say something."""
        return self.ndcg.difference.sessions >= MIN_SESSIONS

    @property
    def verdict(self) -> str:
        """Of nDCG, by its 95 % interval."""
        apart = self.ndcg.difference
        if not self.sufficient:
            return "INSUFFICIENT"
        return "better" if apart.low > 0.0 else "worse" if apart.high < 0.0 else "undecided"

    @property
    def words(self) -> str:
        """The verdict in a sentence, with what is missing."""
        sessions = self.ndcg.difference.sessions
        if not self.sufficient:
            return (
                f"INSUFFICIENT: {counted(sessions, 'session has', 'sessions have')} a used and an unused memory in "
                f"one packet; {MIN_SESSIONS} are needed. Widen the window, and have agents report completely"
            )
        return {
            "better": "It ranks what was used higher: the interval lies above 0",
            "worse": "It ranks what was used lower: the interval lies below 0",
            "undecided": "The interval holds 0: these sessions do not tell the two apart",
        }[self.verdict]


def evaluate(
    dataset: Dataset,
    new_scores: Floats,
    old_scores: Floats,
    packets: NDArray[np.bool_],
    draws_of: Model | None,
    settings: GateSettings,
    seed: int = 0,
) -> Evaluation:
    """New against old scores of the served rows, (n,) each, on the packets that `packets` (p,) marks. `draws_of` is
    the model whose draws are estimated, with the half-lives that `dataset` has; None where only scores are known."""
    ndcg = compare(dataset, old_scores, new_scores, packets, settings, seed)
    if draws_of is None:
        return Evaluation(
            ndcg,
            None,
            "INSUFFICIENT: this log has the shadow's scores and not its task fits, by which slots are drawn; evaluate "
            "the model itself on it (`models --get VERSION --out FOLDER`, then `evaluate FOLDER`)",
        )
    try:
        draws = reserved_draws(dataset, draws_of, packets)
    except ValueError as error:
        return Evaluation(ndcg, None, f"INSUFFICIENT: {error}")
    if draws is None:
        return Evaluation(
            ndcg,
            None,
            "INSUFFICIENT: no memory of a reserved slot was reported on; keep a slot and report more packets",
        )
    return Evaluation(ndcg, estimate(draws, confidence=settings.confidence), "")


def as_scored_by(dataset: Dataset, model: Model) -> tuple[Dataset, NDArray[np.bool_]]:
    """The data set with features as the model measures them, recencies as its half-lives make them of the logged ages;
    and which packets have all of it, (p,)."""
    days = model.common.half_life_days
    measured, known = as_measured_by(dataset, model)
    return with_half_lives(measured, {kind: days.get(kind, days["default"]) for kind in dataset.kinds if kind}), known


class Shadows:
    """Collects what shadows logged while rows pass through to the data set."""

    def __init__(self) -> None:
        self._of_packet: dict[str, ShadowScores] = {}
        self._last: tuple[int, str, str] = (0, "", "")

    def passing(self, rows: Iterable[LogRow]) -> Iterator[LogRow]:
        """The same rows."""
        for row in rows:
            if isinstance(row, Packet) and row.shadow is not None:
                self._of_packet[row.packet_id] = row.shadow
                self._last = max(self._last, (row.create_time, row.packet_id, row.shadow.version))
            yield row

    @property
    def version(self) -> str:
        """The last shadow's version; "" where none scored."""
        return self._last[2]

    def scores(self, dataset: Dataset) -> tuple[Floats, NDArray[np.bool_]]:
        """The last shadow's scores of the served rows, (n,), and which packets it scored, (p,)."""
        found = np.zeros(len(dataset))
        scored = np.zeros(len(dataset.packets), bool)
        ends = np.searchsorted(dataset.packet, np.arange(len(dataset.packets) + 1))
        for number, packet_id in enumerate(dataset.packets.packet_id):
            shadow = self._of_packet.get(packet_id)
            if shadow is not None and shadow.version == self.version:
                start, end = ends[number], ends[number + 1]
                found[start:end] = shadow.scores[: end - start]  # those of the undrawn come after
                scored[number] = True
        return found, scored
