"""Writes answers: makes the API's messages of the domain's words. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import grpc
import numpy as np
from google.protobuf.timestamp_pb2 import Timestamp
from google.rpc import status_pb2
from memoryranker.v1 import feedback_pb2, memory_pb2, ranker_pb2, types_pb2

from sidecar.domain import (
    SECOND,
    Channel,
    DegradationReason,
    EmptyReason,
    LeftOutReason,
    Memory,
    MemoryUse,
    Micros,
    PacketItems,
    PoolItem,
    ReportState,
    Segment,
    WriteOutcome,
)
from sidecar.features import FEATURE_NAMES
from sidecar.features.importance import BASELINE, combine
from sidecar.ranking.explain import Miss
from sidecar.ranking.ranker import RankAnswer
from sidecar.rpc.status import make_status
from sidecar.store.reports import CONTRADICTORY, NOT_IN_PACKET, ReportOutcome
from sidecar.weights import Weights

_SEGMENTS = {each: getattr(types_pb2, f"SEGMENT_{each.name}") for each in Segment}
_LEFT_OUT = {each: getattr(ranker_pb2, f"LEFT_OUT_REASON_{each.name}") for each in LeftOutReason}
_DEGRADATIONS = {each: getattr(ranker_pb2, f"DEGRADATION_REASON_{each.name}") for each in DegradationReason}
_EMPTY = {each: getattr(ranker_pb2, f"EMPTY_REASON_{each.name}") for each in EmptyReason}
CHANNELS = {each: getattr(types_pb2, f"CHANNEL_{each.name}") for each in Channel}
REPORT_STATES = {each: getattr(types_pb2, f"REPORT_STATE_{each.name}") for each in ReportState}
_OUTCOMES = {each: getattr(memory_pb2, f"WRITE_OUTCOME_{each.name}") for each in WriteOutcome}

_TEXTS = ("id", "content", "kind", "superseded_by", "source_thread", "subject")
_OPTIONAL = ("source_sequence", "relevance", "importance_override", "emotion", "token_count")
MOST_MESSAGES = 16_384
"""Memories of a namespace that are kept as messages."""
OK = status_pb2.Status()
_ITEM_STATUSES: dict[str | None, status_pb2.Status] = {
    NOT_IN_PACKET: make_status(
        grpc.StatusCode.NOT_FOUND, "the packet holds no memory of that id; it counts for nothing", NOT_IN_PACKET
    ),
    CONTRADICTORY: make_status(
        grpc.StatusCode.INVALID_ARGUMENT, "it is also among used_memory_ids, and counts as used", CONTRADICTORY
    ),
}


def set_time(stamp: Timestamp, time: Micros) -> None:
    """Writes a time into a message's field."""
    stamp.seconds, rest = divmod(time, SECOND)
    stamp.nanos = rest * 1000


def fill_memories(
    targets: Sequence[types_pb2.Memory], memories: Sequence[Memory], *, with_embedding: bool = False
) -> None:
    """Writes each memory into its message. Of one without content, which was deleted since, only the id is known."""
    for target, memory, importance in zip(targets, memories, _importances(memories), strict=True):
        if not memory.content:
            target.id = memory.id
            continue
        _fill_memory(target, memory, importance)
        if with_embedding and memory.embedding is not None:
            target.embedding = memory.embedding.astype("<f4").tobytes()


def _fill_memory(target: types_pb2.Memory, memory: Memory, importance: float) -> None:
    for name in _TEXTS:
        if value := getattr(memory, name):
            setattr(target, name, value)
    for name in _OPTIONAL:
        value = getattr(memory, name)
        if value is not None:
            setattr(target, name, value)
    set_time(target.create_time, memory.create_time)
    if memory.update_time:
        set_time(target.update_time, memory.update_time)
    if memory.valid_from_time is not None:
        set_time(target.valid_from_time, memory.valid_from_time)
    if memory.valid_until_time is not None:
        set_time(target.valid_until_time, memory.valid_until_time)
    target.tags.extend(memory.tags)
    if memory.metadata:
        target.metadata.update(memory.metadata)
    target.pinned, target.suppressed = memory.pinned, memory.suppressed
    target.importance.score = importance
    if memory.importance_content is not None:
        target.importance.content = memory.importance_content
    if memory.importance_use is not None:
        target.importance.use = memory.importance_use
    if memory.importance_override is not None:
        target.importance.user = memory.importance_override
    if memory.helpful or memory.unhelpful:
        target.ratings.helpful, target.ratings.unhelpful = memory.helpful, memory.unhelpful


def _importances(memories: Sequence[Memory]) -> list[float]:
    """What counts in ranking, for each memory."""
    parts = np.array(
        [[m.importance_content, m.importance_use, m.importance_override] for m in memories], dtype=np.float64
    ).reshape(-1, 3)
    baseline = np.array([BASELINE.get(memory.kind, BASELINE["default"]) for memory in memories])
    scores: list[float] = combine(parts[:, 0], parts[:, 1], parts[:, 2], baseline).tolist()
    return scores


def write_memories(answer: RankAnswer) -> list[bytes]:
    """The memories of an answer as serialised messages, in the order of its items."""
    known: dict[int, bytes] = {} if answer.kept is None else answer.kept.once("messages", dict)
    if len(known) > MOST_MESSAGES:
        known.clear()
    keys = PacketItems.of(answer.packet.items).memory_keys
    written = list(map(known.get, keys))
    if None in written:
        missing = [key for key, message in zip(keys, written, strict=True) if message is None]
        messages = [types_pb2.Memory() for _ in missing]
        fill_memories(messages, [answer.memories[key] for key in missing])
        fresh = dict(zip(missing, (message.SerializeToString() for message in messages), strict=True))
        known.update(fresh)
        written = [fresh[key] if message is None else message for key, message in zip(keys, written, strict=True)]
    return [message for message in written if message is not None]


def write_rank(answer: RankAnswer, explain: int, memories: Sequence[bytes] | None = None) -> ranker_pb2.RankResponse:
    """The answer to a Rank at one of the ExplainLevels; `memories` as write_memories gives them, if at hand."""
    packet = answer.packet
    response = ranker_pb2.RankResponse(
        packet_id=packet.packet_id,
        model_version=packet.model_version,
        feature_schema_hash=packet.feature_schema_hash,
        score_version=packet.score_version,
        tokens_used=packet.tokens_used,
        reserve_pool_size=packet.reserve_pool_size,
        reserved_slots=packet.reserved_slots,
        replayed=answer.replayed,
    )
    if packet.empty_reason is not None:
        response.empty_reason = _EMPTY[packet.empty_reason]
    set_time(response.as_of_time, packet.as_of_time)
    if packet.valid_until_time is not None:
        set_time(response.valid_until_time, packet.valid_until_time)
    for reason, count in sorted(packet.left_out.items(), key=lambda each: _LEFT_OUT[each[0]]):
        response.left_out.add(reason=_LEFT_OUT[reason], count=count)
    for degradation, words in packet.degradations:
        response.degradations.add(reason=_DEGRADATIONS[degradation], message=words)
    full = explain == ranker_pb2.EXPLAIN_LEVEL_FULL
    if explain != ranker_pb2.EXPLAIN_LEVEL_NONE:
        response.feature_names.extend(FEATURE_NAMES)
    # A packet that is read again may have been scored by weights that serve no more.
    if full and answer.weights.version == packet.model_version:
        _fill_weights(response.weights, answer.weights)
    items = PacketItems.of(packet.items)
    written = write_memories(answer) if memories is None else memories
    shown = () if explain == ranker_pb2.EXPLAIN_LEVEL_NONE else items.contributions.tolist()
    add = response.items.add
    for place, (memory, score, segment, chance, q, tokens, swapped) in enumerate(
        zip(
            written,
            items.scores,
            items.segments,
            items.inclusion_propensities,
            items.position_probabilities,
            items.tokens,
            items.swapped,
            strict=True,
        ),
        start=1,
    ):
        ranked = add(
            place=place,
            score=score,
            segment=_SEGMENTS[segment],
            inclusion_propensity=chance,
            position_probability=q,
            tokens=tokens,
            swapped=swapped,
        )
        if shown:
            ranked.contributions.extend(shown[place - 1])
        ranked.memory.MergeFromString(memory)
    if full:
        for ranked, values in zip(response.items, items.features.tolist(), strict=True):
            ranked.features.extend(values)
    return response


def _fill_weights(target: types_pb2.Weights, weights: Weights) -> None:
    target.features.update(zip(FEATURE_NAMES, weights.values.tolist(), strict=True))
    target.caps.update(zip(FEATURE_NAMES, weights.caps.tolist(), strict=True))
    target.use_family_cap = weights.use_family_cap
    target.half_life_days.update(weights.half_life_days)


def write_pool(undrawn: Iterable[PoolItem]) -> list[ranker_pb2.PoolMember]:
    """The members of a reserve pool that were not drawn."""
    return [
        ranker_pb2.PoolMember(
            memory_id=each.memory_id, inclusion_propensity=each.inclusion_propensity, score=each.score
        )
        for each in undrawn
    ]


def write_report(outcome: ReportOutcome) -> feedback_pb2.ReportUseResponse:
    """What became of a report."""
    return feedback_pb2.ReportUseResponse(
        report_id=outcome.report_id,
        report_state=REPORT_STATES[outcome.state],
        results=[
            feedback_pb2.ReportItemResult(memory_id=item.memory_id, status=_ITEM_STATUSES.get(item.reason, OK))
            for item in outcome.results
        ],
        used_count=outcome.used_count,
        unused_count=outcome.unused_count,
        replayed=outcome.replayed,
    )


def write_uses(uses: Iterable[MemoryUse]) -> list[feedback_pb2.MemoryUse]:
    """What is known of each memory's use in a packet."""
    written = []
    for use in uses:
        message = feedback_pb2.MemoryUse(
            memory_id=use.memory_id, channel=CHANNELS[use.channel], used=use.used, confidence=use.confidence
        )
        set_time(message.receive_time, use.receive_time)
        written.append(message)
    return written


def write_result(memory_id: str, outcome: WriteOutcome) -> memory_pb2.WriteResult:
    """What a write did to one memory."""
    return memory_pb2.WriteResult(memory_id=memory_id, status=OK, outcome=_OUTCOMES[outcome])


def write_refusal(memory_id: str, status: status_pb2.Status) -> memory_pb2.WriteResult:
    """Why one memory was not written."""
    return memory_pb2.WriteResult(memory_id=memory_id, status=status)


def write_miss(miss: Miss) -> ranker_pb2.ExplainMissResponse:
    """Why a memory was missed."""
    response = ranker_pb2.ExplainMissResponse(
        served=miss.place is not None,
        place=miss.place,
        reason=None if miss.reason is None else _LEFT_OUT[miss.reason],
        message=miss.message,
        score=miss.score,
        rank=miss.rank,
        admitted_score=miss.admitted_score,
        store_moved_on=miss.store_moved_on,
        other_memory_id=miss.other_memory_id,
    )
    for gap in miss.gaps:
        response.gaps.add(
            feature=gap.feature,
            value=gap.value,
            admitted_value=gap.admitted_value,
            contribution=gap.contribution,
            admitted_contribution=gap.admitted_contribution,
        )
    change = miss.smallest_change
    if change is not None:
        response.smallest_change.field = change.field
        response.smallest_change.from_json = change.from_json
        response.smallest_change.to_json = change.to_json
        response.smallest_change.message = change.message
    return response
