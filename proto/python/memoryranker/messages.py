"""Builds the API's messages from Python's own values: datetimes, dicts, lists of floats. Pure."""

from __future__ import annotations

import datetime
import struct
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal, TypedDict, Unpack, cast

from google.protobuf.struct_pb2 import Struct
from google.protobuf.timestamp_pb2 import Timestamp

from memoryranker.v1 import admin_pb2, memory_pb2, ranker_pb2, types_pb2

EXACT_UP_TO = 2**53
"""Beyond it a double skips whole numbers."""

Vector = Sequence[float] | bytes
"""Numbers, or the bytes of little-endian float32."""


class MemoryFields(TypedDict, total=False):
    """The fields of `memoryranker.v1.Memory` that a caller writes, besides the id."""

    content: str
    kind: str
    create_time: datetime.datetime | None
    valid_from_time: datetime.datetime | None
    valid_until_time: datetime.datetime | None
    superseded_by: str
    source_thread: str
    source_sequence: int | None
    subject: str
    tags: Sequence[str]
    metadata: Mapping[str, Any] | None
    relevance: float | None
    importance_override: float | None
    emotion: float | None
    pinned: bool | None
    suppressed: bool | None
    token_count: int | None
    embedding: Vector | None


class FilterParts(TypedDict, total=False):
    """The parts of `memoryranker.v1.Filter`."""

    kinds: Sequence[str]
    any_tags: Sequence[str]
    all_tags: Sequence[str]
    metadata_equals: Mapping[str, Any]
    create_time_from: datetime.datetime
    create_time_until: datetime.datetime
    update_time_from: datetime.datetime
    update_time_until: datetime.datetime
    ids: Sequence[str]
    exclude_ids: Sequence[str]
    source_threads: Sequence[str]
    subjects: Sequence[str]


class RankOptions(TypedDict, total=False):
    """What `memoryranker.v1.RankRequest` takes besides namespace and task.

    `weights` is a preset's name or a mapping from feature to weight; `model` names a learned model instead.
    """

    session_id: str
    agent_id: str
    surface: str
    task_embedding: Vector
    goals: Sequence[str]
    projects: Sequence[str]
    files: Sequence[str]
    candidates: Iterable[types_pb2.Memory | Mapping[str, Any]] | None
    max_items: int | None
    token_budget: int | None
    filter: types_pb2.Filter | FilterParts | None
    reserved_slots: int | None
    min_score: float | None
    weights: str | Mapping[str, float] | types_pb2.Weights | None
    model: str
    explain: Literal["none", "contributions", "full"]
    as_of_time: datetime.datetime | None
    dry_run: bool
    request_id: str
    item_wrapper: str


def memory(id: str, **fields: Unpack[MemoryFields]) -> types_pb2.Memory:
    """A memory. TypeError for a field that a caller does not write, or a value that is none of its kind; ValueError for
    a number that is out of range, and for a time without a time zone. Both name the field."""
    given = {"id": id, **dict(_known(fields, MemoryFields))}
    try:
        return types_pb2.Memory(**{name: _value(name, value) for name, value in given.items()})
    except _WRONG_VALUE:
        for name, value in given.items():
            _check_alone(name, value)
        raise


def as_memory(given: types_pb2.Memory | Mapping[str, Any]) -> types_pb2.Memory:
    """A memory from a message or from a mapping with the id and the fields of MemoryFields."""
    return given if isinstance(given, types_pb2.Memory) else memory(**cast("Any", given))


def importance_subject(given: memory_pb2.ImportanceSubject | Mapping[str, Any]) -> memory_pb2.ImportanceSubject:
    """A memory to score, from a message or from a mapping with `memory` and the fields of ImportanceSubject;
    `agent_scores` may be a mapping from agent to score."""
    if isinstance(given, memory_pb2.ImportanceSubject):
        return given
    told = given["memory"]
    fields = {**given, "memory": as_memory(told if isinstance(told, types_pb2.Memory) else {"id": "", **told})}
    if isinstance(scores := fields.get("agent_scores"), Mapping):
        fields["agent_scores"] = [memory_pb2.AgentScore(agent_id=agent, score=score) for agent, score in scores.items()]
    return memory_pb2.ImportanceSubject(**fields)


def as_filter(given: types_pb2.Filter | FilterParts | None) -> types_pb2.Filter | None:
    """A filter from a message or from a mapping; None stays None."""
    if given is None or isinstance(given, types_pb2.Filter):
        return given
    return types_pb2.Filter(**{name: _value(name, value) for name, value in _known(given, FilterParts)})


def rank_request(namespace: str, task: str = "", **options: Unpack[RankOptions]) -> ranker_pb2.RankRequest:
    """A request to rank; see RankOptions. ValueError for empty candidates, which would mean the stored ones."""
    given = dict(_known(options, RankOptions))
    context = {name: names(given.pop(name)) for name in ("goals", "projects", "files") if name in given}
    if context:
        given["context"] = types_pb2.Context(**context)
    choice = _weights(given.pop("weights", None), given.pop("model", ""))
    if choice is not None:
        given["weights"] = choice
    if "candidates" in given:
        given["candidates"] = [as_memory(each) for each in given["candidates"]]
        if not given["candidates"]:
            raise ValueError(
                "candidates is empty: there is nothing to rank. To rank the stored memories, leave candidates away or "
                "give None"
            )
    if "explain" in given:
        given["explain"] = f"EXPLAIN_LEVEL_{given['explain'].upper()}"
    if "filter" in given:
        given["filter"] = as_filter(given["filter"])
    return ranker_pb2.RankRequest(
        namespace=namespace, task=task, **{name: _value(name, value) for name, value in given.items()}
    )


def names(given: Iterable[str]) -> list[str]:
    """A list of texts. TypeError for a single text, which would otherwise be taken letter by letter."""
    if isinstance(given, str):
        raise TypeError(f"a list of texts is needed, not the text {given!r}")
    return list(given)


def timestamp(value: datetime.datetime) -> Timestamp:
    """A point in time. ValueError without a time zone, as what the local one is differs between machines, and for one
    that is out of range in UTC."""
    if value.tzinfo is None:
        raise ValueError(f"{value!r} has no time zone; add one, as in datetime.now(datetime.UTC)")
    stamp = Timestamp()
    try:
        stamp.FromDatetime(value)
    except (ValueError, OverflowError) as error:
        raise ValueError(f"{value.isoformat()} is out of range; must be {_TIMES}") from error
    return stamp


def vector(value: Vector) -> bytes:
    """Little-endian float32."""
    return value if isinstance(value, bytes) else struct.pack(f"<{len(value)}f", *value)


def _check_alone(name: str, value: Any) -> None:
    """Tries one field, for a message's own error says neither which one was wrong nor what it takes."""
    if name == "metadata":
        _check_whole_numbers(name, value)  # what it says is said already
    try:
        types_pb2.Memory(**{name: _value(name, value)})
    except _WRONG_VALUE as error:
        kind = ValueError if isinstance(error, ValueError) else TypeError
        if isinstance(value, datetime.datetime) and value.tzinfo is not None:
            raise kind(f"{name} is {value.isoformat()}; must be {_TIMES}") from error
        raise kind(f"{name} is {value!r:.60}; must be {_KINDS.get(name, 'a text of UTF-8')}") from error


def _check_whole_numbers(path: str, value: Any) -> None:
    """Refuses what a Struct, whose numbers are doubles, would change in silence: ValueError names it and its path."""
    if isinstance(value, Mapping):
        for key, each in value.items():
            _check_whole_numbers(f"{path}.{key}", each)
    elif isinstance(value, list | tuple):
        for i, each in enumerate(value):
            _check_whole_numbers(f"{path}[{i}]", each)
    elif isinstance(value, int) and not _is_exact(value):
        raise ValueError(
            f"{path} is {_brief(value)}; numbers are doubles, in which whole ones are exact up to {EXACT_UP_TO:,}: "
            "write it as a string"
        )


def _is_exact(number: int) -> bool:
    try:
        return int(float(number)) == number
    except OverflowError:
        return False


def _brief(number: int) -> str:
    size = number.bit_length() * 0.30103
    return str(number) if size < 40 else f"a number of some {size:,.0f} digits"


def _weights(
    weights: str | Mapping[str, float] | types_pb2.Weights | None, model: str
) -> types_pb2.WeightsChoice | None:
    if model:
        if weights is not None:
            raise TypeError("weights and model exclude each other")
        return types_pb2.WeightsChoice(model=model)
    if weights is None:
        return None
    if isinstance(weights, str):
        return types_pb2.WeightsChoice(preset=weights)
    if not isinstance(weights, types_pb2.Weights):
        weights = types_pb2.Weights(features=weights)
    return types_pb2.WeightsChoice(values=weights)


def _known(given: Mapping[str, Any], fields: type) -> Iterable[tuple[str, Any]]:
    """The fields that are not None. A message's own TypeError does not say which field was wrong."""
    for name, value in given.items():
        if name not in fields.__annotations__:
            raise TypeError(f"unknown field {name!r}; known are {', '.join(fields.__annotations__)}")
        if value is not None:
            yield name, value


def _value(name: str, value: Any) -> Any:
    """One field's value as its message takes it."""
    if isinstance(value, datetime.datetime):
        return timestamp(value)
    if name in ("embedding", "task_embedding"):
        return vector(value)
    if isinstance(value, Mapping):
        _check_whole_numbers(name, value)
        data = Struct()
        data.update(value)
        return data
    if name in _LISTS:
        return names(value)
    return value


_WRONG_VALUE = (TypeError, ValueError, AttributeError, OverflowError, struct.error)
"""What protobuf and struct raise for a value that does not fit."""
_TIMES = "a time in the years 1900 to 2200, in UTC"
"""The API's own bounds, which are narrower than those of a message."""
_KINDS = {
    **dict.fromkeys(("create_time", "valid_from_time", "valid_until_time"), "a datetime with a time zone"),
    "source_sequence": "a whole number of 64 bits",
    "token_count": "a whole number from 1 to 1,000,000",
    **dict.fromkeys(("relevance", "importance_override", "emotion"), "a number"),
    **dict.fromkeys(("pinned", "suppressed"), "true or false"),
    "tags": "a list of texts",
    "metadata": "an object of what JSON has: texts, numbers, true, false, null, lists and objects",
    "embedding": "a list of numbers that float32 holds",
}
"""What each field of a memory takes, in words; the others take a text."""
_LISTS = frozenset({"tags", "kinds", "any_tags", "all_tags", "ids", "exclude_ids", "source_threads", "subjects"})


class LoadOptions(TypedDict, total=False):
    """What a model is loaded for; see `memoryranker.v1.LoadModelRequest`. A role is active, shadow, canary or
    retired."""

    archive: bytes
    version: str
    role: Literal["active", "shadow", "canary", "retired"]
    canary_share: float
    validate_only: bool
    force_reason: str
    by_person: bool


def load_model_request(path: str = "", **options: Unpack[LoadOptions]) -> admin_pb2.LoadModelRequest:
    """A LoadModelRequest, of which exactly one of path, archive and version is set."""
    given: dict[str, Any] = {"path": path, **options}
    given["role"] = f"MODEL_ROLE_{given.get('role', 'active').upper()}"
    return admin_pb2.LoadModelRequest(**given)


def rollback_model_request(version: str = "", reason: str = "") -> admin_pb2.RollbackModelRequest:
    """A RollbackModelRequest; without a version, to the model before."""
    return admin_pb2.RollbackModelRequest(version=version, reason=reason)
