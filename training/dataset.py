"""The data set that everything statistical takes: what was served, as it was scored, and what is known of its use.

`build_dataset` is pure over rows of the log. Two cut-offs fix its result, bit for bit: packets made from the event
cut-off on, and reports received after the ingest cut-off, do not exist for it. The rows may come in any order and more
than once. Merging is the store's own (`sidecar.store.merge`); what a channel is worth is `training.labels`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain

import numpy as np
from numpy.typing import NDArray

from sidecar.domain import Floats, Micros, Packet, ReportState
from sidecar.features import FEATURE_NAMES, SCHEMA_HASH
from sidecar.store.log import LoggedReport, LogRow
from sidecar.weights import PRESETS
from training import gathering
from training.gathering import Held, Numbers, hold
from training.labels import PacketWords, Trust, WordsOfPackets
from training.use_free import values_without_use

Ints = NDArray[np.int64]
Codes = NDArray[np.int32]

SEGMENTS = gathering.SEGMENTS
"""What `segment` indexes."""
STATES = (ReportState.OPEN, ReportState.REPORTED, ReportState.UNREPORTED, ReportState.LATE)
"""What `state` indexes."""
OWN_MEASURES = frozenset(name for name, preset in PRESETS.items() if preset.variants)
"""Presets that repeat a note with its own transforms: under the same names, their packets log other numbers, and older
ones do not log the default's beside them."""


@dataclass(frozen=True, slots=True)
class Cutoffs:
    """Which part of the log counts: packets made in [from_time, event), reports received until `ingest`, inclusive.

    None means no bound; the data set's own cut-offs then name the log's last moment, never the clock's.
    """

    event: Micros | None = None
    ingest: Micros | None = None
    from_time: Micros | None = None

    def has(self, create_time: Micros) -> bool:
        """True for a packet that was made in the window."""
        if self.event is not None and create_time >= self.event:
            return False
        return self.from_time is None or create_time >= self.from_time

    def hears(self, receive_time: Micros) -> bool:
        """True for a report that had arrived."""
        return self.ingest is None or receive_time <= self.ingest


EVERYTHING = Cutoffs()


@dataclass(frozen=True, slots=True)
class Packets:
    """The p packets, ascending by (create_time, packet_id). Texts are tuples, numbers arrays, all of length p.

    `session` numbers the sessions, by when they start; `session_start` is that of the first packet of the session in
    the window. `state` indexes STATES; `reported` is True where an EXPLICIT or INFERRED report came, in time or late.
    `outcome` is the g of the PACKET channel in [0, 1], 0 where none was said. Budgets are in tokens, NaN where there
    was none. `pool_size` counts the whole reserve pool, drawn and undrawn.
    """

    packet_id: tuple[str, ...]
    namespace: tuple[str, ...]
    agent: tuple[str, ...]
    surface: tuple[str, ...]
    model_version: tuple[str, ...]
    exploration_policy: tuple[str, ...]
    feature_schema_hash: tuple[str, ...]
    create_time: Ints
    session: Ints
    session_start: Ints
    state: Codes
    reported: NDArray[np.bool_]
    outcome: Floats
    pool_size: Ints
    reserved_slots: Ints
    token_budget: Floats
    ranked_budget: Floats
    slot_budget: Floats

    def __len__(self) -> int:
        return len(self.packet_id)


@dataclass(frozen=True, slots=True)
class Dataset:
    """n served memories, m undrawn members of reserve pools (`pool_...`), p packets. Floats are float64 as logged.

    Rows ascend by packet, then by place; pool rows by packet, then by id. `packet` and `pool_packet` index `packets`,
    `memory_key` and `pool_memory_key` index `memory_id` (one entry for each namespace and id), `kind` and `pool_kind`
    index `kinds` ("" where none was logged). `raw` has the columns of RAW_NAMES, `without_use` those of
    PARTLY_FED_BY_USE. `place` counts from 1, `segment` indexes SEGMENTS.

    `used` is a_i and `unused` b_j, each in [0, 1] and never both above 0; both 0 means that nothing is known. `channel`
    indexes `training.labels.CHANNELS` and says whose word that is.
    """

    feature_names: tuple[str, ...]
    features: Floats
    without_use: Floats
    raw: Floats
    packet: Ints
    memory_key: Ints
    memory_id: tuple[str, ...]
    kinds: tuple[str, ...]
    kind: Codes
    place: Codes
    segment: Codes
    score: Floats
    task_fit: Floats
    inclusion_propensity: Floats
    position_probability: Floats
    swapped: NDArray[np.bool_]
    used: Floats
    unused: Floats
    channel: Codes
    pool_features: Floats
    pool_without_use: Floats
    pool_raw: Floats
    pool_packet: Ints
    pool_memory_key: Ints
    pool_kind: Codes
    pool_score: Floats
    pool_task_fit: Floats
    pool_propensity: Floats
    packets: Packets
    trust: Trust
    cutoffs: Cutoffs
    """As given, or as the log's last moment where no bound was given."""
    other_schemas: Mapping[str, int] = field(default_factory=dict)
    """Packets of the window whose features are of another schema, and which are left out, by its hash."""
    own_measures: Mapping[str, int] = field(default_factory=dict)
    """Packets of the window that a preset with measures of its own served, from before the default's were logged beside
    them, and which are left out, by its name."""
    ways: Mapping[str, tuple[Floats, Floats]] = field(default_factory=dict)
    """Features in other ways than those that weights are fitted to, by feature:variant: of the rows, (n,), and of the
    pool rows, (m,). NaN where the log does not have them."""

    def __len__(self) -> int:
        return len(self.packet)


def build_dataset(
    rows: Iterable[LogRow], cutoffs: Cutoffs = EVERYTHING, schema: str = SCHEMA_HASH, ways: Sequence[str] = ()
) -> Dataset:
    """The data set of the log's rows; rows other than packets and reports are passed over. `ways` are those of
    `sidecar.features.WAYS` that are wanted beside the default ones.

    Reads each row once and keeps arrays, so that `rows` may be a stream. Packets of another feature schema than
    `schema`, and older ones that a preset of OWN_MEASURES served, are counted and left out: their numbers mean
    something else.
    """
    held: dict[str, Held] = {}
    numbers, pool_numbers = Numbers(6, ways), Numbers(3, ways)
    others: dict[str, str] = {}
    own_measures: dict[str, str] = {}
    reports: dict[str, dict[str, LoggedReport]] = {}
    names: dict[str, str] = {}
    for row in rows:
        if isinstance(row, Packet):
            if not cutoffs.has(row.create_time):
                continue
            if row.feature_schema_hash != schema:
                others[row.packet_id] = row.feature_schema_hash
            elif row.other_ways is None and row.model_version in OWN_MEASURES:
                own_measures[row.packet_id] = row.model_version
            elif row.packet_id not in held:
                held[row.packet_id] = hold(row, names, numbers, pool_numbers)
        elif isinstance(row, LoggedReport) and cutoffs.hears(row.report.receive_time):
            reports.setdefault(row.packet_id, {})[row.report.report_id] = row
    last = max(
        (
            *(each.create_time for each in held.values()),
            *(each.report.receive_time for of_packet in reports.values() for each in of_packet.values()),
        ),
        default=0,
    )
    ingest = last if cutoffs.ingest is None else cutoffs.ingest
    within = Cutoffs(ingest + 1 if cutoffs.event is None else cutoffs.event, ingest, cutoffs.from_time)
    packets = sorted(held.values(), key=lambda each: (each.create_time, each.packet_id))
    words = WordsOfPackets(
        [
            PacketWords(
                each.namespace, each.create_time, each.memory_ids, tuple(reports.get(each.packet_id, {}).values())
            )
            for each in packets
        ],
        ingest,
    )
    found = _assemble(packets, numbers, pool_numbers, tuple(ways), words, schema, within)
    left_out = [dict(sorted(Counter(each.values()).items())) for each in (others, own_measures)]
    return replace(found, other_schemas=left_out[0], own_measures=left_out[1])


def _assemble(
    packets: Sequence[Held],
    numbers: Numbers,
    pool_numbers: Numbers,
    ways: tuple[str, ...],
    words: WordsOfPackets,
    schema: str,
    cutoffs: Cutoffs,
) -> Dataset:
    sizes = [len(each.memory_ids) for each in packets]
    pool_sizes = [len(each.pool_ids) for each in packets]
    ids: dict[str, set[str]] = {}
    for each in packets:
        ids.setdefault(each.namespace, set()).update(each.memory_ids, each.pool_ids)
    names = [(namespace, memory_id) for namespace in sorted(ids) for memory_id in sorted(ids[namespace])]
    keys: dict[str, dict[str, int]] = {namespace: {} for namespace in ids}
    for number, (namespace, memory_id) in enumerate(names):
        keys[namespace][memory_id] = number
    kinds = tuple(sorted({kind for each in packets for kind in (*each.kinds, *each.pool_kinds)}))
    number_of = {kind: number for number, kind in enumerate(kinds)}
    kind = _numbered((number_of, each.kinds) for each in packets).astype(np.int32)
    pool_kind = _numbered((number_of, each.pool_kinds) for each in packets).astype(np.int32)
    memory_key = _numbered((keys[each.namespace], each.memory_ids) for each in packets)
    pool_key = _numbered((keys[each.namespace], each.pool_ids) for each in packets)
    order = _order([each.start for each in packets], sizes)
    pool_order = _order([each.pool_start for each in packets], pool_sizes)
    own, pool_own = numbers.own.taken(order), pool_numbers.own.taken(pool_order)
    features, pool_features = numbers.features.taken(order), pool_numbers.features.taken(pool_order)
    raw, pool_raw = numbers.raw.taken(order), pool_numbers.raw.taken(pool_order)
    of_ways = zip(numbers.ways.taken(order).T, pool_numbers.ways.taken(pool_order).T, strict=True)
    used, unused = words.labels()
    return Dataset(
        feature_names=FEATURE_NAMES,
        features=features,
        without_use=values_without_use(features, raw, kinds, kind),
        raw=raw,
        packet=np.repeat(np.arange(len(packets), dtype=np.int64), sizes),
        memory_key=memory_key,
        memory_id=tuple(memory_id for _, memory_id in names),
        kinds=kinds,
        kind=kind,
        place=np.concatenate([np.zeros(0, np.int32), *(np.arange(1, size + 1, dtype=np.int32) for size in sizes)]),
        segment=own[:, 0].astype(np.int32),
        score=own[:, 1].copy(),
        task_fit=own[:, 2].copy(),
        inclusion_propensity=own[:, 3].copy(),
        position_probability=own[:, 4].copy(),
        swapped=own[:, 5] > 0,
        used=used,
        unused=unused,
        channel=words.channel,
        pool_features=pool_features,
        pool_without_use=values_without_use(pool_features, pool_raw, kinds, pool_kind),
        pool_raw=pool_raw,
        pool_packet=np.repeat(np.arange(len(packets), dtype=np.int64), pool_sizes),
        pool_memory_key=pool_key,
        pool_kind=pool_kind,
        pool_score=pool_own[:, 0].copy(),
        pool_task_fit=pool_own[:, 1].copy(),
        pool_propensity=pool_own[:, 2].copy(),
        packets=_packets(packets, words, schema),
        trust=words.trust,
        cutoffs=cutoffs,
        ways=dict(zip(ways, of_ways, strict=True)),
    )


def _packets(packets: Sequence[Held], words: WordsOfPackets, schema: str) -> Packets:
    start: dict[tuple[str, str], Micros] = {}
    for each in packets:  # ascending by time
        start.setdefault(each.session, each.create_time)
    number_of = {session: number for number, session in enumerate(start)}
    budgets = np.array([each.budgets for each in packets], np.float64).reshape(len(packets), 3)
    state = np.array([STATES.index(each) for each in words.states()], np.int32)
    return Packets(
        packet_id=tuple(each.packet_id for each in packets),
        namespace=tuple(each.namespace for each in packets),
        agent=tuple(each.agent for each in packets),
        surface=tuple(each.surface for each in packets),
        model_version=tuple(each.model_version for each in packets),
        exploration_policy=tuple(each.exploration_policy for each in packets),
        feature_schema_hash=(schema,) * len(packets),
        create_time=np.array([each.create_time for each in packets], np.int64),
        session=np.array([number_of[each.session] for each in packets], np.int64),
        session_start=np.array([start[each.session] for each in packets], np.int64),
        state=state,
        reported=np.isin(state, [STATES.index(ReportState.REPORTED), STATES.index(ReportState.LATE)]),
        outcome=np.array(words.outcomes(), np.float64),
        pool_size=np.array([each.pool_size for each in packets], np.int64),
        reserved_slots=np.array([each.reserved_slots for each in packets], np.int64),
        token_budget=budgets[:, 0].copy(),
        ranked_budget=budgets[:, 1].copy(),
        slot_budget=budgets[:, 2].copy(),
    )


def _numbered(texts: Iterable[tuple[Mapping[str, int], Sequence[str]]]) -> Ints:
    """The numbers of texts, one mapping for each run of them."""
    return np.fromiter(chain.from_iterable(map(number_of.__getitem__, run) for number_of, run in texts), np.int64)


def _order(starts: Sequence[int], sizes: Sequence[int]) -> Ints:
    """Indices of runs of rows, one run after the other."""
    lengths = np.array(sizes, np.int64)
    before = np.cumsum(lengths) - lengths
    return np.repeat(np.array(starts, np.int64) - before, lengths) + np.arange(lengths.sum())
