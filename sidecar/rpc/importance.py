"""ScoreImportance: reads subjects, each on its own, and writes what they score. Nothing is stored."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from google.rpc import status_pb2
from memoryranker.v1 import memory_pb2, types_pb2

from sidecar.domain import ImportanceLine, ImportancePart, Memory, PartName
from sidecar.errors import ImportanceOffError, InvalidRequestError, Violations
from sidecar.importance.scorer import ImportanceScorer, Scored, Subject
from sidecar.retrieval.namespaces import Namespaces
from sidecar.rpc.batch import MAX_BATCH
from sidecar.rpc.incoming import read_context, read_fields, read_namespace
from sidecar.rpc.outgoing import OK, set_time
from sidecar.rpc.status import ITEM_BYTES, status_of
from sidecar.rpc.validation import ID_BYTES, check_count, check_range, check_text

MOST_SESSIONS = 1_000_000_000
_GIVEN = ("user_rating", "recency", "emotion", "contextual_relevance")


def score_importance(
    request: memory_pb2.ScoreImportanceRequest, scorer: ImportanceScorer, namespaces: Namespaces, dimension: int
) -> memory_pb2.ScoreImportanceResponse:
    """The importance of each subject; a bad one is refused alone."""
    if not scorer.settings.enabled:
        raise ImportanceOffError(
            "importances are not scored here: importance_scorer_enabled is false; start the server with "
            "--importance-scorer-enabled true"
        )
    bad = Violations()
    namespace = read_namespace(bad, request.namespace)
    check_count(bad, "subjects", len(request.subjects), 1, MAX_BATCH)
    context = read_context(bad, request.context)
    bad.raise_if_any()
    snapshot = namespaces.get(namespace)
    refused: dict[int, status_pb2.Status] = {}
    subjects: dict[int, Subject] = {}
    for place, message in enumerate(request.subjects):
        wrong = Violations()
        path = f"subjects[{place}]"
        known = message.memory.id and message.memory.id in snapshot.row_of_id
        stored = snapshot.memories[snapshot.row_of_id[message.memory.id]] if known else None
        subject = _read(wrong, path, message, dimension, stored)
        if wrong.found:
            refused[place] = status_of(InvalidRequestError(wrong.found), ITEM_BYTES)
        else:
            subjects[place] = subject
    scored = dict(zip(subjects, scorer.score(namespace, list(subjects.values()), context), strict=True))
    return memory_pb2.ScoreImportanceResponse(
        results=[
            memory_pb2.ImportanceResult(status=refused[place]) if place in refused else _write(scored[place])
            for place in range(len(request.subjects))
        ]
    )


def _read(
    bad: Violations, path: str, message: memory_pb2.ImportanceSubject, dimension: int, stored: Memory | None
) -> Subject:
    """A subject; what it leaves unset of a stored memory is as stored."""
    check_text(bad, f"{path}.memory.id", message.memory.id, 0, ID_BYTES)
    fields = read_fields(bad, f"{path}.memory", message.memory, dimension)
    if stored is None and "content" not in fields:
        bad.add(f"{path}.memory.content", "is empty, and the namespace has no memory of that id; send a content")
    given: dict[str, Any] = {}
    for name in _GIVEN:
        if message.HasField(name):
            given[name] = getattr(message, name)
            check_range(bad, f"{path}.{name}", given[name], 0, 1)
    if message.HasField("use_sessions"):
        given["use_sessions"] = message.use_sessions
        check_range(bad, f"{path}.use_sessions", message.use_sessions, 0, MOST_SESSIONS)
    base = stored or Memory(id=message.memory.id, content="")
    if stored is not None and fields.get("content", stored.content) != stored.content:
        base = replace(base, embedding=None)
    return Subject(replace(base, **fields), **given)


def _write(scored: Scored) -> memory_pb2.ImportanceResult:
    memory = scored.memory
    override = next((line.value for line in scored.breakdown.lines if line.factor == "override"), None)
    return memory_pb2.ImportanceResult(
        importance=types_pb2.Importance(
            score=scored.breakdown.score,
            content=scored.content.breakdown.score,
            use=memory.importance_use,
            user=override,
            confidence=scored.confidence,
            factors=scored.factors,
        ),
        lines=[_line(line) for line in scored.breakdown.lines],
        status=OK,
    )


def fill_parts(response: memory_pb2.GetMemoryResponse, parts: Mapping[PartName, ImportancePart]) -> None:
    """Writes the stored parts of a memory's importance beside it, and what they come to together."""
    for name, part in parts.items():
        message = response.importance_parts.add(
            part=name.value,
            score=part.score,
            confidence=part.confidence,
            factors=part.factors,
            lines=[_line(line) for line in part.lines],
        )
        set_time(message.time, part.time)


def _line(line: ImportanceLine) -> memory_pb2.ImportanceLine:
    return memory_pb2.ImportanceLine(
        factor=line.factor, value=line.value, weight=line.weight, contribution=line.contribution
    )
