"""Data sets with a known truth, made directly as arrays: many at once, where rows of a log would take long."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from sidecar.domain import SECOND, ReportState, Segment
from sidecar.features import FEATURE_NAMES, PARTLY_FED_BY_USE, RAW_NAMES, SCHEMA_HASH
from tests.training.logs import START
from training.dataset import SEGMENTS, STATES, Cutoffs, Dataset, Packets
from training.labels import Trust


@dataclass(frozen=True, slots=True)
class Agent:
    """An agent, the share of its packets that it reports on, and its share of all sessions."""

    name: str
    report_rate: float = 1.0
    share: float = 1.0


@dataclass(frozen=True, slots=True)
class Truth:
    """A memory is used with the odds exp(slope * (weights . features) - b), b such that about `used` of 12 are.

    `informative`: an agent reports the more often the more its packet has of the last feature, and the fewer it used.
    """

    weights: Mapping[str, float]
    slope: float = 6.0
    items: int = 12
    used: float = 2.0
    pool: int = 0
    packets_a_session: int = 1
    agents: tuple[Agent, ...] = (Agent("agent"),)
    informative: bool = False
    memories: int = 400
    namespace: str = "n"


def make_dataset(truth: Truth, *, sessions: int, seed: int) -> Dataset:
    """A data set of that many sessions, with features uniform in [0, 1] where the truth names them."""
    dice = np.random.default_rng(seed)
    p, k = sessions * truth.packets_a_session, truth.items
    d = len(FEATURE_NAMES)
    columns = [FEATURE_NAMES.index(name) for name in truth.weights]
    values = np.array(list(truth.weights.values()))
    features = np.zeros((p, k, d))
    features[:, :, columns] = dice.random((p, k, len(columns)))
    if truth.informative:  # packets differ as a whole, too
        features[:, :, columns[-1]] *= 0.5 + dice.random((p, 1)) / 2
    odds = truth.slope * (features[:, :, columns] @ values)
    low, high = -50.0, 50.0
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if (1 / (1 + np.exp(middle - odds))).mean() * k > truth.used else (low, middle)
    used = dice.random((p, k)) < 1 / (1 + np.exp(low - odds))
    shares = np.array([agent.share for agent in truth.agents])
    agent = np.repeat(dice.choice(len(shares), sessions, p=shares / shares.sum()), truth.packets_a_session)
    rate = np.array([each.report_rate for each in truth.agents])[agent]
    if truth.informative:
        rate = (
            rate * (0.4 + 0.6 * features[:, :, columns[-1]].mean(axis=1) * 2) * np.where(used.sum(axis=1) > 2, 0.5, 1)
        )
    reported = dice.random(p) < rate
    without = np.zeros((p, k, len(PARTLY_FED_BY_USE)))
    for column, name in enumerate(PARTLY_FED_BY_USE):
        without[:, :, column] = features[:, :, FEATURE_NAMES.index(name)] * dice.random((p, k))
    n, m = p * k, p * truth.pool
    pool = np.zeros((m, d))
    pool[:, columns] = dice.random((m, len(columns)))
    labelled = np.repeat(reported, k)
    session = np.repeat(np.arange(sessions), truth.packets_a_session)
    time = START + np.arange(p) * 60 * SECOND
    return Dataset(
        feature_names=FEATURE_NAMES,
        features=features.reshape(n, d),
        without_use=without.reshape(n, -1),
        raw=np.zeros((n, len(RAW_NAMES))),
        packet=np.repeat(np.arange(p), k),
        memory_key=np.concatenate([dice.permutation(truth.memories)[:k] for _ in range(p)]),
        memory_id=tuple(f"m{i:05}" for i in range(truth.memories)),
        kinds=("fact",),
        kind=np.zeros(n, np.int32),
        place=np.tile(np.arange(1, k + 1, dtype=np.int32), p),
        segment=np.full(n, SEGMENTS.index(Segment.RANKED), np.int32),
        score=np.zeros(n),
        task_fit=np.zeros(n),
        inclusion_propensity=np.ones(n),
        position_probability=np.ones(n),
        swapped=np.zeros(n, bool),
        used=(used.reshape(n) & labelled).astype(float),
        unused=(~used.reshape(n) & labelled).astype(float),
        channel=labelled.astype(np.int32),
        pool_features=pool,
        pool_without_use=np.zeros((m, len(PARTLY_FED_BY_USE))),
        pool_raw=np.zeros((m, len(RAW_NAMES))),
        pool_packet=np.repeat(np.arange(p), truth.pool),
        pool_memory_key=dice.integers(0, truth.memories, m),
        pool_kind=np.zeros(m, np.int32),
        pool_score=np.zeros(m),
        pool_task_fit=np.zeros(m),
        pool_propensity=np.full(m, 0.5),
        packets=Packets(
            packet_id=tuple(f"p{i}" for i in range(p)),
            namespace=(truth.namespace,) * p,
            agent=tuple(truth.agents[i].name for i in agent),
            surface=("cli",) * p,
            model_version=("default",) * p,
            exploration_policy=("policy",) * p,
            feature_schema_hash=(SCHEMA_HASH,) * p,
            create_time=time,
            session=session,
            session_start=time[session * truth.packets_a_session],
            state=np.where(reported, STATES.index(ReportState.REPORTED), STATES.index(ReportState.UNREPORTED)).astype(
                np.int32
            ),
            reported=reported,
            outcome=np.zeros(p),
            pool_size=np.full(p, truth.pool),
            reserved_slots=np.zeros(p, np.int64),
            token_budget=np.full(p, np.nan),
            ranked_budget=np.full(p, np.nan),
            slot_budget=np.full(p, np.nan),
        ),
        trust=Trust(),
        cutoffs=Cutoffs(event=int(time[-1]) + 1 if p else 1, ingest=int(time[-1]) if p else 0),
    )
