"""The numbers of the report that are not in the run itself: what is used where, and who moves. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sidecar.domain import Floats, Segment
from sidecar.features import FEATURE_NAMES, PARTLY_FED_BY_USE
from sidecar.plurals import counted
from sidecar.weights import Weights, contributions
from training.dataset import SEGMENTS, Dataset, Ints
from training.held_out import ndcg_by_packet
from training.model import Model
from training.movement import Candidates

BINS = 5
"""Stretches of [0, 1] by which use is shown for each feature."""
MOST_MOVED = 20
MOST_PACKETS = 10


@dataclass(frozen=True, slots=True)
class Share:
    """How often something was used: of `seen` labelled exposures `used`, both weighted by how sure the word is."""

    name: str
    used: float
    seen: float

    @property
    def rate(self) -> float:
        """used / seen; 0 where nothing was seen."""
        return self.used / self.seen if self.seen else 0.0


def _shares(dataset: Dataset, group: NDArray[np.int64], names: Sequence[str]) -> list[Share]:
    used = np.bincount(group, dataset.used, len(names))
    seen = np.bincount(group, dataset.used + dataset.unused, len(names))
    return [Share(name, u, s) for name, u, s in zip(names, used.tolist(), seen.tolist(), strict=True)]


def use_by_place(dataset: Dataset) -> list[Share]:
    """By place in the packet, from 1; reserved memories on their own at the end."""
    most = int(dataset.place.max(initial=0))
    reserved = dataset.segment == SEGMENTS.index(Segment.RESERVED)
    group = np.where(reserved, most, dataset.place - 1).astype(np.int64)
    return _shares(dataset, group, [*(str(place) for place in range(1, most + 1)), "reserved"])


def use_by_kind(dataset: Dataset) -> list[Share]:
    """By the memory's kind."""
    return _shares(dataset, dataset.kind.astype(np.int64), [kind or "not logged" for kind in dataset.kinds])


def use_by_value(dataset: Dataset) -> dict[str, list[Share]]:
    """For each feature that varies, by fifths of [0, 1]; 0 itself stands apart, for most memories have it."""
    found = {}
    names = ["0", *(f"to {(each + 1) / BINS:g}" for each in range(BINS))]
    for column, feature in enumerate(FEATURE_NAMES):
        values = dataset.features[:, column]
        if len(values) and values.max() > values.min():
            group = np.where(values == 0.0, 0, np.clip(np.ceil(values * BINS), 1, BINS)).astype(np.int64)
            found[feature] = _shares(dataset, group, names)
    return found


@dataclass(frozen=True, slots=True)
class Slice:
    """nDCG@K of held-out sessions before and after, for one agent, namespace or kind."""

    name: str
    sessions: int
    before: float
    after: float


def slices(
    dataset: Dataset, scores: tuple[Floats, Floats], held_out: NDArray[np.bool_], names: Sequence[str], k: int
) -> list[Slice]:
    """By a name of each packet (its agent, its namespace), those that have held-out sessions; the mean over the
    sessions of each."""
    (packet, before), (_, after) = (ndcg_by_packet(dataset, each, held_out[dataset.packet], k) for each in scores)
    known, of_packet = np.unique(np.array(names, dtype=object).astype(str)[packet], return_inverse=True)
    return _by_session(dataset, packet, of_packet, (before, after), known.tolist())


def slices_by_kind(dataset: Dataset, scores: tuple[Floats, Floats], held_out: NDArray[np.bool_], k: int) -> list[Slice]:
    """By kind, among the memories of that kind alone."""
    found = []
    for code, kind in enumerate(dataset.kinds):
        chosen = held_out[dataset.packet] & (dataset.kind == code)
        (packet, before), (_, after) = (ndcg_by_packet(dataset, each, chosen, k) for each in scores)
        of_packet = np.zeros(len(packet), np.int64)
        found += _by_session(dataset, packet, of_packet, (before, after), [kind or "not logged"])
    return found


def _by_session(
    dataset: Dataset,
    packet: Ints,
    group: NDArray[np.int64],
    values: tuple[Floats, Floats],
    names: Sequence[str],
) -> list[Slice]:
    if not len(packet):
        return []
    pairs, of_packet = np.unique(np.stack([group, dataset.packets.session[packet]]), axis=1, return_inverse=True)
    of_packet = of_packet.ravel()
    packets = np.bincount(of_packet)
    sessions = np.bincount(pairs[0], minlength=len(names))
    before, after = (
        np.bincount(pairs[0], np.bincount(of_packet, each) / packets, len(names)) / sessions for each in values
    )
    return [Slice(*each) for each in zip(names, sessions.tolist(), before.tolist(), after.tolist(), strict=True)]


def contribution_shares(dataset: Dataset, weights: Weights) -> dict[str, float]:
    """Of all that was added up for served memories, the share of each feature."""
    own = {name: dataset.without_use[:, k] for k, name in enumerate(PARTLY_FED_BY_USE)}
    sums = contributions(dataset.features, own, weights).matrix.sum(axis=0)
    total = float(sums.sum()) or 1.0
    return dict(zip(FEATURE_NAMES, (sums / total).tolist(), strict=True))


@dataclass(frozen=True, slots=True)
class Propensities:
    """Over packets whose slots were filled: the mean of the sum of 1/pi over what was drawn, which is the pool's size
    in the mean if the logged propensities are right. `error` is the standard error of the difference."""

    packets: int
    summed: float
    pool: float
    error: float

    @property
    def words(self) -> str:
        """What it comes to."""
        if not self.packets:
            return "No packet drew from a reserve pool."
        away = abs(self.summed - self.pool) / self.error if self.error else 0.0
        verdict = (
            "as it should be" if away < 4 else "which is too far: the logged propensities are not those of the draw"
        )
        return (
            f"In {counted(self.packets, 'packet')} the sum of 1/pi over the drawn is {self.summed:.2f} in the mean, "
            f"and pools hold {self.pool:.2f} memories: {away:.1f} standard errors apart, {verdict}."
        )


def propensities(dataset: Dataset) -> Propensities:
    """The identity of pool sizes, over one-slot draws and full two-slot ones."""
    drawn = dataset.segment == SEGMENTS.index(Segment.RESERVED)
    packet = dataset.packet[drawn]
    count = np.bincount(packet, minlength=len(dataset.packets))
    summed = np.bincount(packet, 1.0 / dataset.inclusion_propensity[drawn], len(dataset.packets))
    full = (count > 0) & (count == np.minimum(dataset.packets.reserved_slots, dataset.packets.pool_size))
    apart = (summed - dataset.packets.pool_size)[full]
    n = len(apart)
    error = float(apart.std(ddof=1) / np.sqrt(n)) if n > 1 else 0.0
    pool = dataset.packets.pool_size[full]
    return Propensities(n, float(summed[full].mean()) if n else 0.0, float(pool.mean()) if n else 0.0, error)


@dataclass(frozen=True, slots=True)
class Mover:
    """A memory whose place among the candidates moves: the mean over its packets, places from 1, and the feature that
    moves it most."""

    memory_id: str
    packets: int
    before: float
    after: float
    because: str


@dataclass(frozen=True, slots=True)
class Exchange:
    """A packet that would hold other memories."""

    packet_id: str
    gone: tuple[str, ...]
    come: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Moves:
    """What the new weights change: the memories that move most, the packets that change most, and how many change."""

    movers: list[Mover]
    exchanges: list[Exchange]
    changed: int
    packets: int


def moves(dataset: Dataset, aged: Dataset, old: Model, new: Model, k: int) -> Moves:
    """Over the logged candidates of every packet, served and undrawn. Means over a memory's packets; one packet alone
    moves nothing that is worth a line where others have more."""
    before, after = Candidates.of(dataset), Candidates.of(aged)
    namespaces = dataset.packets.namespace
    scores = old.candidate_scores(before, namespaces), new.candidate_scores(after, namespaces)
    places = [_places(before, each) for each in scores]
    n = len(dataset.memory_id)
    count = np.bincount(before.memory_key, minlength=n)
    mean = [np.bincount(before.memory_key, each, n) / np.maximum(count, 1) for each in places]
    difference = _parts(after, new.common) - _parts(before, old.common)
    per_memory = np.stack(
        [np.bincount(before.memory_key, difference[:, j], n) for j in range(difference.shape[1])], axis=1
    )
    # A lone packet is weighed down: a memory that moves in many of them tells more.
    weight = np.abs(mean[0] - mean[1]) * np.sqrt(count)
    movers = []
    for key in np.lexsort((np.arange(n), -weight))[:MOST_MOVED].tolist():
        if weight[key] == 0.0:
            break
        up = mean[1][key] < mean[0][key]
        centred = per_memory[key] / count[key] - difference.mean(axis=0)
        feature = FEATURE_NAMES[int(centred.argmax() if up else centred.argmin())]
        movers.append(Mover(dataset.memory_id[key], int(count[key]), float(mean[0][key]), float(mean[1][key]), feature))
    tops = [set(before.top(each, k).tolist()) for each in scores]
    gone, come = tops[0] - tops[1], tops[1] - tops[0]
    by_packet: dict[int, tuple[list[str], list[str]]] = {}
    for side, rows in enumerate((gone, come)):
        for row in sorted(rows):
            pair = by_packet.setdefault(int(before.packet[row]), ([], []))
            pair[side].append(dataset.memory_id[int(before.memory_key[row])])
    most = sorted(by_packet, key=lambda packet: (-len(by_packet[packet][1]), packet))[:MOST_PACKETS]
    exchanges = [
        Exchange(dataset.packets.packet_id[packet], tuple(by_packet[packet][0]), tuple(by_packet[packet][1]))
        for packet in most
    ]
    return Moves(movers, exchanges, len(by_packet), len(dataset.packets))


def _places(candidates: Candidates, scores: Floats) -> Floats:
    """The place of each candidate in its packet, from 1."""
    order = np.lexsort((candidates.memory_key, -scores, candidates.packet))
    packet = candidates.packet[order]
    places = np.empty(len(order))
    places[order] = np.arange(len(order)) - np.searchsorted(packet, packet) + 1
    return places


def _parts(candidates: Candidates, weights: Weights) -> Floats:
    own = {name: candidates.without_use[:, k] for k, name in enumerate(PARTLY_FED_BY_USE)}
    return contributions(candidates.features, own, weights).matrix
