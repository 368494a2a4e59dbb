"""ScoreImportance and ListPromotionCandidates: read what to score and write what it comes to. Nothing is stored."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from google.rpc import status_pb2
from memoryranker.v1 import memory_pb2, types_pb2

from sidecar.domain import Filter, ImportanceLine, ImportancePart, Memory, PartName
from sidecar.errors import ImportanceOffError, InvalidRequestError, Violations
from sidecar.importance.consensus import AgentScore
from sidecar.importance.factors import PROMOTABLE, PROMOTION_CONFIDENCE, PROMOTION_SCORE, is_promotion_candidate
from sidecar.importance.scorer import ImportanceScorer, Scored, Subject
from sidecar.importance.scoring import confidence_words
from sidecar.importance.settings import COMMON
from sidecar.retrieval.namespaces import Namespaces
from sidecar.rpc.batch import MAX_BATCH
from sidecar.rpc.incoming import read_context
from sidecar.rpc.incoming_memories import read_fields, read_namespace
from sidecar.rpc.outgoing import OK, fill_memories, set_time
from sidecar.rpc.paging import list_of, make_token, read_page_size, read_token
from sidecar.rpc.status import ITEM_BYTES, status_of
from sidecar.rpc.validation import ID_BYTES, check_count, check_range, check_text, shown
from sidecar.store.store import Store

MOST_SESSIONS = 1_000_000_000
MOST_AGENTS = 64
AGENT_BYTES = 256
_GIVEN = ("user_rating", "recency", "emotion", "contextual_relevance")


def score_importance(
    request: memory_pb2.ScoreImportanceRequest, scorer: ImportanceScorer, namespaces: Namespaces, dimension: int
) -> memory_pb2.ScoreImportanceResponse:
    """The importance of each subject; a bad one is refused alone."""
    _check_enabled(scorer)
    bad = Violations()
    namespace = read_namespace(bad, request.namespace)
    check_count(bad, "subjects", len(request.subjects), 1, MAX_BATCH)
    context = read_context(bad, request.context)
    _check_domain(bad, request.domain, scorer)
    bad.raise_if_any()
    snapshot = namespaces.get(namespace)
    rows = {row for each in request.subjects if (row := snapshot.row_of_id.get(each.memory.id)) is not None}
    stored = {memory.id: memory for memory in snapshot.memories.at(sorted(rows))}
    refused: dict[int, status_pb2.Status] = {}
    subjects: dict[int, Subject] = {}
    for place, message in enumerate(request.subjects):
        wrong = Violations()
        path = f"subjects[{place}]"
        subject = _read(wrong, path, message, dimension, stored.get(message.memory.id))
        if wrong.found:
            refused[place] = status_of(InvalidRequestError(wrong.found), ITEM_BYTES)
        else:
            subjects[place] = subject
    found = scorer.score(namespace, list(subjects.values()), context, request.domain)
    scored = dict(zip(subjects, found, strict=True))
    return memory_pb2.ScoreImportanceResponse(
        results=[
            memory_pb2.ImportanceResult(status=refused[place]) if place in refused else _write(scored[place])
            for place in range(len(request.subjects))
        ]
    )


def list_candidates(
    request: memory_pb2.ListPromotionCandidatesRequest,
    scorer: ImportanceScorer,
    store: Store,
    namespaces: Namespaces,
    page_bytes: int,
) -> memory_pb2.ListPromotionCandidatesResponse:
    """The memories of a page that are worth promoting, which one that is replaced or suppressed is not. A page ends
    early where it would not fit into a message."""
    _check_enabled(scorer)
    bad = Violations()
    namespace = read_namespace(bad, request.namespace)
    least = {"min_score": PROMOTION_SCORE, "min_confidence": PROMOTION_CONFIDENCE}
    for name in least:
        if request.HasField(name):
            least[name] = getattr(request, name)
            check_range(bad, name, least[name], 0, 1)
    context = read_context(bad, request.context)
    _check_domain(bad, request.domain, scorer)
    size = read_page_size(bad, request, MAX_BATCH)
    of = list_of(request)
    after = read_token(bad, of, request.page_token)
    bad.raise_if_any()
    snapshot = namespaces.get(namespace)
    mask = snapshot.filter_mask(Filter(kinds=frozenset(PROMOTABLE)))
    mask &= ~(snapshot.columns.superseded | snapshot.columns.suppressed)
    ids = sorted(name for row in np.flatnonzero(mask).tolist() if (name := snapshot.columns.ids[row]) > after)
    looked_at = store.get_many(namespace, ids[:size])
    end = ids[size - 1] if len(ids) > size else ""
    response = memory_pb2.ListPromotionCandidatesResponse()
    scored = scorer.score(namespace, [Subject(memory) for memory in looked_at.values()], context, request.domain)
    for each in scored:
        score, sure = each.breakdown.score, each.confidence
        if not is_promotion_candidate(each.memory.kind, score, sure, least["min_score"], least["min_confidence"]):
            continue
        candidate = response.candidates.add(result=_write(each))
        fill_memories([candidate.memory], [looked_at[each.memory.id]])
        page_bytes -= candidate.ByteSize()
        if page_bytes < 0 and len(response.candidates) > 1:
            del response.candidates[-1]
            end = response.candidates[-1].memory.id
            break
    if end:
        response.next_page_token = make_token(of, end)
    return response


def _check_enabled(scorer: ImportanceScorer) -> None:
    if not scorer.settings.enabled:
        raise ImportanceOffError(
            "importances are not scored here: importance_scorer_enabled is false; start the server with "
            "--importance-scorer-enabled true"
        )


def _check_domain(bad: Violations, domain: str, scorer: ImportanceScorer) -> None:
    known = (COMMON, *sorted(scorer.settings.domains))
    if domain and domain not in known:
        bad.add("domain", f"is {shown(domain)}; must be unset or one of {', '.join(known)}")


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
    if message.agent_scores:
        given["agent_scores"] = _read_agents(bad, f"{path}.agent_scores", message.agent_scores)
    base = stored or Memory(id=message.memory.id, content="")
    if stored is not None and fields.get("content", stored.content) != stored.content:
        base = replace(base, embedding=None)
    return Subject(replace(base, **fields), **given)


def _read_agents(bad: Violations, path: str, messages: Sequence[memory_pb2.AgentScore]) -> tuple[AgentScore, ...]:
    check_count(bad, path, len(messages), 0, MOST_AGENTS)
    found: dict[str, AgentScore] = {}
    for place, message in enumerate(messages[:MOST_AGENTS]):
        of = f"{path}[{place}]"
        check_text(bad, f"{of}.agent_id", message.agent_id, 1, AGENT_BYTES)
        check_range(bad, f"{of}.score", message.score, 0, 1)
        sure = message.confidence if message.HasField("confidence") else 1.0
        check_range(bad, f"{of}.confidence", sure, 0, 1)
        if message.agent_id in found:
            bad.add(f"{of}.agent_id", f"is {shown(message.agent_id)} again; send each agent once")
        found[message.agent_id] = AgentScore(message.agent_id, message.score, sure)
    return tuple(found.values())


def _write(scored: Scored) -> memory_pb2.ImportanceResult:
    memory, agents = scored.memory, scored.consensus
    override = scored.breakdown.value("override")
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
        weighted_score=scored.breakdown.weighted,
        confidence_tier=confidence_words(scored.confidence),
        half_life_days=scored.half_life_days,
        retention=scored.retention,
        decayed_score=scored.decayed,
        promotion_candidate=scored.is_promotion_candidate,
        consensus=agents and memory_pb2.AgentConsensus(score=agents.score, spread=agents.spread, agents=agents.agents),
        language=scored.content.language,
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
