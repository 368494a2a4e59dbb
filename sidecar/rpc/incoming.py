"""Reads requests: checks every bound of the API and makes the domain's words of what passes.

Pure. A request that is wrong raises InvalidRequestError with all that is wrong with it; in a batch each memory is read
on its own, so that a bad one is refused alone.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from typing import Any

from memoryranker.v1 import feedback_pb2, ranker_pb2, types_pb2

from sidecar.domain import (
    MOST_IN_FILTER,
    NO_CONTEXT,
    NO_FILTER,
    Channel,
    Context,
    Filter,
    Memory,
    Micros,
    RankRequest,
    Rating,
    UseReport,
)
from sidecar.errors import InvalidRequestError, Violations
from sidecar.ranking.tokens import count_tokens
from sidecar.rpc.incoming_memories import MAX_NAMED, read_id, read_memory, read_namespace, read_request_id
from sidecar.rpc.replay import payload_hash
from sidecar.rpc.validation import (
    ID_BYTES,
    check_choice,
    check_count,
    check_range,
    check_text,
    check_texts,
    read_struct,
    read_time,
    read_vector,
    shown,
)
from sidecar.weights import Weights, make_weights

TASK_BYTES = 262_144
MAX_CANDIDATES = 2_000


def read_filter(bad: Violations, message: types_pb2.Filter, path: str = "filter") -> Filter:
    """A filter."""
    for name, size in (
        ("kinds", 64),
        ("any_tags", 128),
        ("all_tags", 128),
        ("ids", ID_BYTES),
        ("exclude_ids", ID_BYTES),
        ("source_threads", 256),
        ("subjects", 256),
    ):
        check_texts(bad, f"{path}.{name}", getattr(message, name), MOST_IN_FILTER[name], 1, size)
    times = {
        name: read_time(bad, f"{path}.{name}", getattr(message, name))
        for name in ("create_time_from", "create_time_until", "update_time_from", "update_time_until")
        if message.HasField(name)
    }
    return Filter(
        kinds=frozenset(message.kinds),
        any_tags=frozenset(message.any_tags),
        all_tags=frozenset(message.all_tags),
        metadata_equals=read_struct(bad, f"{path}.metadata_equals", message.metadata_equals),
        ids=frozenset(message.ids),
        exclude_ids=frozenset(message.exclude_ids),
        source_threads=frozenset(message.source_threads),
        subjects=frozenset(message.subjects),
        **times,
    )


def read_rank(request: ranker_pb2.RankRequest, dimension: int, now: Micros) -> RankRequest:
    """A request to rank. `dimension` is the store's, 0 where it keeps no vectors. Raises InvalidRequestError."""
    bad = Violations()
    read_namespace(bad, request.namespace)
    for name, most in (("session_id", 256), ("agent_id", 256), ("surface", 64), ("item_wrapper", 4_096)):
        if value := getattr(request, name):
            check_text(bad, name, value, 0, most)
    if request.request_id:
        read_request_id(bad, request.request_id)
    task = request.task
    if len(task.encode()) > TASK_BYTES:
        bad.add("task", f"has {len(task.encode()):,} bytes; must have at most {TASK_BYTES:,}")
    max_items = request.max_items if request.HasField("max_items") else 10
    check_range(bad, "max_items", max_items, 1, 200)
    token_budget = request.token_budget if request.HasField("token_budget") else None
    if token_budget is not None:
        check_range(bad, "token_budget", token_budget, 0, 10_000_000)
    reserved_slots = request.reserved_slots if request.HasField("reserved_slots") else None
    if reserved_slots is not None:
        check_range(bad, "reserved_slots", reserved_slots, 0, 2)
        if 0 < reserved_slots >= max_items:
            bad.add("reserved_slots", f"is {reserved_slots}; must be fewer than max_items, which is {max_items}")
    min_score = request.min_score if request.HasField("min_score") else None
    if min_score is not None:
        check_range(bad, "min_score", min_score, 0, 1)
    if request.explain:
        check_choice(bad, "explain", request.explain, ranker_pb2.ExplainLevel.keys(), ranker_pb2.ExplainLevel.values())
    context = read_context(bad, request.context) if request.HasField("context") else NO_CONTEXT
    wanted = read_filter(bad, request.filter) if request.HasField("filter") else NO_FILTER
    name, explicit = _weights(bad, request.weights) if request.HasField("weights") else ("", None)
    vector = None
    if request.task_embedding:
        vector = read_vector(bad, "task_embedding", request.task_embedding, dimension)
    as_of = read_time(bad, "as_of_time", request.as_of_time) if request.HasField("as_of_time") else None
    candidates = None
    if request.candidates:
        candidates = _candidates(bad, request.candidates, dimension, now if as_of is None else as_of)
    bad.raise_if_any()
    payload, payload_hash = _payload(request)
    return RankRequest(
        namespace=request.namespace,
        task=task,
        session_id=request.session_id,
        agent_id=request.agent_id,
        surface=request.surface,
        task_embedding=vector,
        context=context,
        candidates=candidates,
        max_items=max_items,
        token_budget=token_budget,
        filter=wanted,
        reserved_slots=reserved_slots,
        min_score=min_score,
        weights=name,
        explicit_weights=explicit,
        as_of_time=as_of,
        dry_run=request.dry_run,
        request_id=request.request_id,
        item_wrapper=request.item_wrapper,
        payload=payload,
        payload_hash=payload_hash,
    )


def read_report(request: feedback_pb2.ReportUseRequest, now: Micros) -> UseReport:
    """A use report. A report time later than `now` counts as now. Raises InvalidRequestError."""
    bad = Violations()
    namespace = read_namespace(bad, request.namespace) if request.HasField("namespace") else None
    check_text(bad, "packet_id", request.packet_id, 1, ID_BYTES)
    if request.agent_id:
        check_text(bad, "agent_id", request.agent_id, 0, 256)
    if request.request_id:
        read_request_id(bad, request.request_id)
    channel = _CHANNELS.get(request.channel)
    if channel is None:
        check_choice(bad, "channel", request.channel, types_pb2.Channel.keys(), _CHANNELS)
    values: dict[str, Any] = {}
    for name in ("used_memory_ids", "unused_memory_ids", "shown_memory_ids"):
        values[name] = ids = tuple(getattr(request, name))
        if ids:
            # An id that is not in the packet is told beside the others; one that could be in none is refused here.
            check_texts(bad, name, ids, MAX_NAMED, 0, ID_BYTES)
            if channel is Channel.PACKET and name != "shown_memory_ids":
                bad.add(name, "is set; CHANNEL_PACKET speaks of the whole packet and names no memory")
    for name, only in (("outcome", Channel.PACKET), ("confidence", Channel.INFERRED)):
        if request.HasField(name):
            values[name] = getattr(request, name)
            check_range(bad, name, values[name], 0, 1)
            if channel is not only:
                bad.add(name, f"is set; it belongs to CHANNEL_{only.name} alone")
    if request.HasField("report_time"):
        values["report_time"] = min(read_time(bad, "report_time", request.report_time), now)
    bad.raise_if_any()
    assert channel is not None
    return UseReport(
        packet_id=request.packet_id,
        namespace=namespace,
        channel=channel,
        complete=request.complete if request.HasField("complete") else channel is Channel.EXPLICIT,
        sequence=request.sequence if request.HasField("sequence") else None,
        agent_id=request.agent_id,
        request_id=request.request_id,
        **values,
    )


def read_rating(request: feedback_pb2.RateMemoryRequest) -> Rating:
    """A rating. Raises InvalidRequestError."""
    bad = Violations()
    read_namespace(bad, request.namespace)
    read_id(bad, "memory_id", request.memory_id)
    check_text(bad, "agent_id", request.agent_id, 0, 256)
    check_text(bad, "reason", request.reason, 0, 1_024)
    read_request_id(bad, request.request_id)
    ratings = types_pb2.Rating
    check_choice(bad, "rating", request.rating, ratings.keys()[1:], ratings.values()[1:])
    bad.raise_if_any()
    return _RATINGS[request.rating]


_CHANNELS = {getattr(types_pb2, f"CHANNEL_{channel.name}"): channel for channel in Channel}
_CHANNELS[types_pb2.CHANNEL_UNSPECIFIED] = Channel.EXPLICIT
_RATINGS = {getattr(types_pb2, f"RATING_{rating.name}"): rating for rating in Rating}


def read_context(bad: Violations, message: types_pb2.Context) -> Context:
    """What an agent works on beyond its task, checked."""
    for name, count, size in (("goals", 32, 1_024), ("projects", 32, 256), ("files", 256, 1_024)):
        check_texts(bad, f"context.{name}", getattr(message, name), count, 0, size)
    return Context(tuple(message.goals), tuple(message.projects), tuple(message.files))


def _weights(bad: Violations, choice: types_pb2.WeightsChoice) -> tuple[str, Weights | None]:
    """The name of the wanted weights ("" for the active ones), or explicit ones."""
    match choice.WhichOneof("choice"):
        case "preset" | "model" as name:
            check_text(bad, f"weights.{name}", getattr(choice, name), 1, 256)
            return getattr(choice, name), None
        case "values":
            values = choice.values
            try:
                return "", make_weights(
                    "request",
                    dict(values.features),
                    caps=dict(values.caps),
                    use_family_cap=values.use_family_cap if values.HasField("use_family_cap") else None,
                    half_life_days=dict(values.half_life_days),
                    path="weights.values",
                )
            except InvalidRequestError as error:
                bad.found.extend(error.violations)
    return "", None


def _candidates(
    bad: Violations, messages: Sequence[types_pb2.Memory], dimension: int, now: Micros
) -> tuple[Memory, ...]:
    """A caller's own list. Keys are negative, so that none is ever taken for a stored memory's, and go by the id, so
    that a session's next packet knows what stood in a reserved slot, wherever it stands in the list. What has no
    create_time is learned `now`: at the time that is ranked for."""
    candidates: list[Memory] = []
    places: dict[str, int] = {}
    check_count(bad, "candidates", len(messages), 0, MAX_CANDIDATES)
    for i, message in enumerate(messages[:MAX_CANDIDATES]):
        path = f"candidates[{i}]"
        given = read_memory(bad, path, message, dimension)
        if places.setdefault(message.id, i) != i:
            bad.add(f"{path}.id", f"is {shown(message.id)}, as is candidates[{places[message.id]}].id; must differ")
        defaults: Mapping[str, Any] = {
            "content": "",
            "create_time": now,
            "tokens": given.get("token_count") or count_tokens(message.content),
        }
        candidates.append(Memory(id=message.id, key=_own_key(message.id), **{**defaults, **given}))
    return tuple(candidates)


def _own_key(memory_id: str) -> int:
    digest = hashlib.blake2b(memory_id.encode(), digest_size=8).digest()
    return -1 - (int.from_bytes(digest) >> 1)


def _payload(request: ranker_pb2.RankRequest) -> tuple[bytes, bytes]:
    """What the packet log keeps of a request, and the hash that tells one request from another.

    Of a caller's own list one candidate without anything in it stays, as a sign that there was one.
    """
    digest = payload_hash(request) if request.request_id else b""
    if request.candidates:
        kept = ranker_pb2.RankRequest()
        kept.CopyFrom(request)
        kept.ClearField("candidates")
        kept.candidates.add()
        return kept.SerializeToString(), digest
    return request.SerializeToString(), digest
