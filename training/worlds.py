"""Worlds with a known truth, without a server: what agents would use of any memories that weights serve them.

A world holds, for each task of an eval data set, the features of all its memories as the ranking path computes them,
and which are relevant. `play` serves packets from it by the product's own weights, reserve rule and places, has agents
use and report them, and gives the rows of a log, from which training builds its data set as from any other. It is what
`training.learning_bench` is made of; `training.simulate` drives a whole server instead, slower and closer to life.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from sidecar.audit import datasets
from sidecar.audit.evaluation import System, occasions
from sidecar.domain import SECOND, Channel, Floats, Micros, OtherWays, Packet, PacketItem, PoolItem, Segment
from sidecar.features import FEATURE_NAMES, PARTLY_FED_BY_USE, RAW_NAMES, SCHEMA_HASH
from sidecar.ranking.gates import PASSED
from sidecar.ranking.reserved import ReserveSettings, draw, least_fit, place
from sidecar.retrieval.embedding import Embedder
from sidecar.store.log import LoggedReport, LogRow
from sidecar.store.merge import Report
from sidecar.store.store import Store
from sidecar.weights import PRESETS, Contributions, Weights, contributions

START: Micros = 1_700_000_000_000_000
BETWEEN: Micros = 3_600 * SECOND
"""Time from one session to the next."""
RESERVE = ReserveSettings()
_RECENCY = FEATURE_NAMES.index("recency")
_WITHOUT_USE = RAW_NAMES.index("importance_without_use")


@dataclass(frozen=True, slots=True)
class Task:
    """One task over n memories: features (n, d), without_use (n, k), and how worth using each is in [0, 1], (n,); and
    what they measure in other ways, where a log is to say so."""

    features: Floats
    without_use: Floats
    worth: Floats
    ids: tuple[str, ...]
    other_ways: OtherWays | None = None

    def parts(self, weights: Weights) -> Contributions:
        """As they are served."""
        own = {name: self.without_use[:, k] for k, name in enumerate(PARTLY_FED_BY_USE)}
        return contributions(self.features, own, weights)

    def ways_at(self, rows: NDArray[np.intp] | NDArray[np.bool_]) -> OtherWays | None:
        """`other_ways` of some memories."""
        return self.other_ways and replace(self.other_ways, values=self.other_ways.values[rows])

    def raw_of(self, row: int) -> Floats:
        """The ages and counts behind a memory's features: it was never used, and is as recent as they say."""
        raw = np.zeros(len(RAW_NAMES))
        raw[_WITHOUT_USE] = self.without_use[row, PARTLY_FED_BY_USE.index("importance")]
        return raw

    def order(self, score: Floats) -> NDArray[np.intp]:
        """Rows, best first; ties by id, in whose order they stand."""
        return np.argsort(-score, kind="stable")


@dataclass(frozen=True, slots=True)
class World:
    """The tasks of one namespace."""

    name: str
    tasks: tuple[Task, ...]

    def ndcg(self, weights: Weights, k: int = 10, tasks: Sequence[int] | None = None) -> float:
        """Mean nDCG@k over the tasks, of all memories ranked; what is worth a half or more is relevant."""
        chosen = self.tasks if tasks is None else [self.tasks[each] for each in tasks]
        return float(np.mean([ndcg(each, each.parts(weights).score, k) for each in chosen]))

    def split(self, share: float, seed: int) -> tuple[World, World]:
        """Two worlds: a random share of the tasks, and the rest."""
        order = np.random.default_rng(seed).permutation(len(self.tasks))
        cut = round(share * len(order))
        first, rest = (tuple(self.tasks[i] for i in sorted(part.tolist())) for part in (order[:cut], order[cut:]))
        return replace(self, tasks=first), replace(self, tasks=rest)


def ndcg(task: Task, score: Floats, k: int = 10) -> float:
    """nDCG@k of one task: binary, linear gain, ties by id."""
    relevant = task.worth >= 0.5
    discount = 1.0 / np.log2(np.arange(2, k + 2))
    top = task.order(score)[:k]
    best = discount[: min(k, int(relevant.sum()))].sum()
    return float(discount[: len(top)] @ relevant[top] / best) if best else 0.0


def world_of(dataset: datasets.Dataset, embedder: Embedder, progress: Callable[[], None] = lambda: None) -> World:
    """The tasks of a judged data set that have a relevant memory left after the gates."""
    system = System("features", PRESETS["default"], embedder)
    tasks = []
    with tempfile.TemporaryDirectory(prefix="memory-ranker-world-") as folder, Store.open(Path(folder)) as store:
        prepare = occasions(dataset, system, store)
        for judged in dataset.tasks:
            occasion = prepare(judged)
            scored = occasion.scored
            ids = scored.columns.ids
            rows = np.flatnonzero(scored.gates.codes == PASSED).tolist()
            rows.sort(key=lambda row: ids[row])
            worth = np.array([float(ids[row] in judged.relevant) for row in rows])
            progress()
            if worth.any():
                known = scored.at(rows)
                features = known.features
                # Nothing of a data set was ever used: what use adds is nothing.
                own = features[:, [FEATURE_NAMES.index(name) for name in PARTLY_FED_BY_USE]]
                ways = occasion.other_ways(np.array(rows, np.intp), known)
                tasks.append(Task(features, own, worth, tuple(ids[row] for row in rows), ways))
    return World(dataset.id, tuple(tasks))


def only_recent(world: World, name: str) -> World:
    """The same tasks, of which only the newest hundredth of the memories is ever used. Memories come a day apart: those
    of one conversation are minutes old against each other, and no recency could tell them apart."""
    days = PRESETS["default"].half_life_days["default"]

    def worth(task: Task) -> Task:
        features = task.features.copy()
        newer = np.argsort(np.argsort(-features[:, _RECENCY], kind="stable"))
        features[:, _RECENCY] = np.exp2(-newer / days)
        own = features[:, [FEATURE_NAMES.index(each) for each in PARTLY_FED_BY_USE]]
        return replace(task, features=features, without_use=own, worth=(newer < len(newer) / 100).astype(float))

    return World(name, tuple(worth(task) for task in world.tasks))


def of_memories(world: World, ids: Collection[str]) -> World:
    """The tasks as they are where only these memories are there, but for those that nothing is left for."""

    def kept(task: Task) -> Task:
        rows = np.array([each in ids for each in task.ids])
        names = tuple(each for each in task.ids if each in ids)
        return Task(task.features[rows], task.without_use[rows], task.worth[rows], names, task.ways_at(rows))

    return replace(world, tasks=tuple(task for task in map(kept, world.tasks) if task.worth.any()))


@dataclass(frozen=True, slots=True)
class Habits:
    """How one agent uses and reports: of what is worth it and seen a share `use`, of the rest `slip`; `patience` is how
    often the place after one that was looked at is looked at too; `report` the share of packets reported on, completely
    and explicitly."""

    name: str = "agent"
    use: float = 0.9
    slip: float = 0.02
    patience: float = 1.0
    report: float = 1.0
    share: float = 1.0
    """Of all sessions."""


def play(
    world: World,
    weights: Weights,
    dice: np.random.Generator,
    *,
    sessions: int,
    habits: Sequence[Habits] = (Habits(),),
    tasks: Sequence[int] | None = None,
    slots: int = 2,
    max_items: int = 12,
    start: Micros = START,
    packets_a_session: int = 1,
    label: str = "",
) -> list[LogRow]:
    """The log of so many sessions over random tasks of the world (of `tasks`, if given)."""
    shares = np.array([each.share for each in habits])
    rows: list[LogRow] = []
    numbers = np.arange(len(world.tasks)) if tasks is None else np.array(tasks)
    known: dict[int, tuple[Contributions, NDArray[np.intp]]] = {}
    for session in range(sessions):
        agent = habits[int(dice.choice(len(habits), p=shares / shares.sum()))]
        for turn in range(packets_a_session):
            number = int(dice.choice(numbers))
            if number not in known:
                parts = world.tasks[number].parts(weights)
                known[number] = parts, world.tasks[number].order(parts.score)
            packet = serve(
                world.tasks[number],
                known[number],
                dice,
                slots=slots,
                max_items=max_items,
                packet_id=f"{label}{world.name}-{session:06}-{turn}",
                namespace=world.name,
                session_id=f"{label}s{session:06}",
                agent_id=agent.name,
                model_version=weights.version,
                create_time=start + session * BETWEEN + turn * 60 * SECOND,
            )
            rows.append(packet)
            if dice.random() < agent.report:
                rows.append(_report(packet, world.tasks[number], agent, dice))
    return rows


def serve(
    task: Task,
    scored: tuple[Contributions, NDArray[np.intp]],
    dice: np.random.Generator,
    *,
    slots: int,
    max_items: int,
    packet_id: str,
    namespace: str,
    session_id: str,
    agent_id: str,
    model_version: str,
    create_time: Micros,
) -> Packet:
    """One packet as the sidecar would log it: ranked ones, then a pool, a draw and places by the product's own rule."""
    parts, order = scored
    ranked = order[: max_items - slots].tolist()
    least = least_fit(RESERVE, float(parts.task_fit[ranked[-1]]) if ranked else None)
    others = order[max_items - slots :]
    fits = others[parts.task_fit[others] >= least]
    pool = fits[np.argsort(-parts.task_fit[fits], kind="stable")][: RESERVE.pool_size].tolist() if slots else []
    chance = _chances(dice)
    found = draw(parts.task_fit[pool], [0] * len(pool), min(slots, 2), chance, RESERVE)
    drawn = [pool[index] for index in found.drawn]
    places = place(len(ranked) + len(drawn), len(drawn), chance)
    served = iter(ranked)
    at = dict(zip(places.drawn, drawn, strict=True))
    in_order = [at[p] if p in at else next(served) for p in range(len(ranked) + len(drawn))]
    propensity = dict(zip(pool, found.inclusion_propensity.tolist(), strict=True))
    items = tuple(
        PacketItem(
            memory_id=task.ids[row],
            memory_key=row + 1,
            segment=Segment.RESERVED if row in drawn else Segment.RANKED,
            score=float(parts.score[row]),
            contributions=parts.matrix[row],
            features=task.features[row],
            raw=task.raw_of(row),
            tokens=20,
            task_fit=float(parts.task_fit[row]),
            inclusion_propensity=propensity[row] if row in drawn else 1.0,
            position_probability=float(places.probability[p]),
            kind="fact",
        )
        for p, row in enumerate(in_order)
    )
    rest = [row for row in pool if row not in drawn]
    undrawn = tuple(
        PoolItem(
            memory_id=task.ids[row],
            memory_key=row + 1,
            features=task.features[row],
            raw=task.raw_of(row),
            tokens=20,
            score=float(parts.score[row]),
            task_fit=float(parts.task_fit[row]),
            inclusion_propensity=propensity[row],
            kind="fact",
        )
        for row in rest
    )
    return Packet(
        packet_id=packet_id,
        namespace=namespace,
        items=items,
        undrawn=undrawn,
        model_version=model_version,
        feature_schema_hash=SCHEMA_HASH,
        exploration_policy=RESERVE.policy,
        score_version=1,
        as_of_time=create_time,
        create_time=create_time,
        valid_until_time=None,
        left_out={},
        degradations=(),
        empty_reason=None,
        reserve_pool_size=len(pool),
        pool_sizes=(len(pool), 0),
        reserved_slots=slots,
        token_budget=None,
        ranked_budget=None,
        slot_budget=None,
        agent_id=agent_id,
        session_id=session_id,
        other_ways=task.ways_at(np.array([*in_order, *rest], np.intp)),
    )


def _chances(dice: np.random.Generator) -> Callable[[str], float]:
    def chance(_: str) -> float:
        return float(dice.random())

    return chance


def _report(packet: Packet, task: Task, agent: Habits, dice: np.random.Generator) -> LoggedReport:
    used, looked = set(), 1.0
    for item in packet.items:
        worth = float(task.worth[item.memory_key - 1])
        if dice.random() < looked * (worth * agent.use + (1.0 - worth) * agent.slip):
            used.add(item.memory_id)
        looked *= agent.patience
    report = Report(
        report_id=f"r-{packet.packet_id}",
        channel=Channel.EXPLICIT,
        complete=True,
        confidence=1.0,
        sequence=None,
        report_time=None,
        receive_time=packet.create_time + 60 * SECOND,
        used=frozenset(used),
        unused=frozenset(),
        shown=None,
    )
    return LoggedReport(packet.packet_id, report, 0.0, agent.name, "", False)
