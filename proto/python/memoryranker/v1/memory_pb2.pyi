import datetime

from google.protobuf import field_mask_pb2 as _field_mask_pb2
from google.protobuf import timestamp_pb2 as _timestamp_pb2
from google.rpc import status_pb2 as _status_pb2
from memoryranker.v1 import types_pb2 as _types_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class WriteOutcome(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    WRITE_OUTCOME_UNSPECIFIED: _ClassVar[WriteOutcome]
    WRITE_OUTCOME_CREATED: _ClassVar[WriteOutcome]
    WRITE_OUTCOME_UPDATED: _ClassVar[WriteOutcome]
    WRITE_OUTCOME_UNCHANGED: _ClassVar[WriteOutcome]
    WRITE_OUTCOME_DELETED: _ClassVar[WriteOutcome]
WRITE_OUTCOME_UNSPECIFIED: WriteOutcome
WRITE_OUTCOME_CREATED: WriteOutcome
WRITE_OUTCOME_UPDATED: WriteOutcome
WRITE_OUTCOME_UNCHANGED: WriteOutcome
WRITE_OUTCOME_DELETED: WriteOutcome

class WriteResult(_message.Message):
    __slots__ = ("memory_id", "status", "outcome")
    MEMORY_ID_FIELD_NUMBER: _ClassVar[int]
    STATUS_FIELD_NUMBER: _ClassVar[int]
    OUTCOME_FIELD_NUMBER: _ClassVar[int]
    memory_id: str
    status: _status_pb2.Status
    outcome: WriteOutcome
    def __init__(self, memory_id: _Optional[str] = ..., status: _Optional[_Union[_status_pb2.Status, _Mapping]] = ..., outcome: _Optional[_Union[WriteOutcome, str]] = ...) -> None: ...

class UpsertMemoriesRequest(_message.Message):
    __slots__ = ("namespace", "memories", "request_id")
    NAMESPACE_FIELD_NUMBER: _ClassVar[int]
    MEMORIES_FIELD_NUMBER: _ClassVar[int]
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    namespace: str
    memories: _containers.RepeatedCompositeFieldContainer[_types_pb2.Memory]
    request_id: str
    def __init__(self, namespace: _Optional[str] = ..., memories: _Optional[_Iterable[_Union[_types_pb2.Memory, _Mapping]]] = ..., request_id: _Optional[str] = ...) -> None: ...

class UpsertMemoriesResponse(_message.Message):
    __slots__ = ("results", "score_version")
    RESULTS_FIELD_NUMBER: _ClassVar[int]
    SCORE_VERSION_FIELD_NUMBER: _ClassVar[int]
    results: _containers.RepeatedCompositeFieldContainer[WriteResult]
    score_version: int
    def __init__(self, results: _Optional[_Iterable[_Union[WriteResult, _Mapping]]] = ..., score_version: _Optional[int] = ...) -> None: ...

class IngestMemoriesRequest(_message.Message):
    __slots__ = ("namespace", "stream_id", "sequence", "memories")
    NAMESPACE_FIELD_NUMBER: _ClassVar[int]
    STREAM_ID_FIELD_NUMBER: _ClassVar[int]
    SEQUENCE_FIELD_NUMBER: _ClassVar[int]
    MEMORIES_FIELD_NUMBER: _ClassVar[int]
    namespace: str
    stream_id: str
    sequence: int
    memories: _containers.RepeatedCompositeFieldContainer[_types_pb2.Memory]
    def __init__(self, namespace: _Optional[str] = ..., stream_id: _Optional[str] = ..., sequence: _Optional[int] = ..., memories: _Optional[_Iterable[_Union[_types_pb2.Memory, _Mapping]]] = ...) -> None: ...

class IngestMemoriesResponse(_message.Message):
    __slots__ = ("acknowledged_sequence", "window", "rejections", "sequence", "created_count", "updated_count", "unchanged_count", "score_version")
    ACKNOWLEDGED_SEQUENCE_FIELD_NUMBER: _ClassVar[int]
    WINDOW_FIELD_NUMBER: _ClassVar[int]
    REJECTIONS_FIELD_NUMBER: _ClassVar[int]
    SEQUENCE_FIELD_NUMBER: _ClassVar[int]
    CREATED_COUNT_FIELD_NUMBER: _ClassVar[int]
    UPDATED_COUNT_FIELD_NUMBER: _ClassVar[int]
    UNCHANGED_COUNT_FIELD_NUMBER: _ClassVar[int]
    SCORE_VERSION_FIELD_NUMBER: _ClassVar[int]
    acknowledged_sequence: int
    window: int
    rejections: _containers.RepeatedCompositeFieldContainer[IngestRejection]
    sequence: int
    created_count: int
    updated_count: int
    unchanged_count: int
    score_version: int
    def __init__(self, acknowledged_sequence: _Optional[int] = ..., window: _Optional[int] = ..., rejections: _Optional[_Iterable[_Union[IngestRejection, _Mapping]]] = ..., sequence: _Optional[int] = ..., created_count: _Optional[int] = ..., updated_count: _Optional[int] = ..., unchanged_count: _Optional[int] = ..., score_version: _Optional[int] = ...) -> None: ...

class IngestRejection(_message.Message):
    __slots__ = ("sequence", "index", "result")
    SEQUENCE_FIELD_NUMBER: _ClassVar[int]
    INDEX_FIELD_NUMBER: _ClassVar[int]
    RESULT_FIELD_NUMBER: _ClassVar[int]
    sequence: int
    index: int
    result: WriteResult
    def __init__(self, sequence: _Optional[int] = ..., index: _Optional[int] = ..., result: _Optional[_Union[WriteResult, _Mapping]] = ...) -> None: ...

class GetMemoryRequest(_message.Message):
    __slots__ = ("namespace", "memory_id", "include_embedding")
    NAMESPACE_FIELD_NUMBER: _ClassVar[int]
    MEMORY_ID_FIELD_NUMBER: _ClassVar[int]
    INCLUDE_EMBEDDING_FIELD_NUMBER: _ClassVar[int]
    namespace: str
    memory_id: str
    include_embedding: bool
    def __init__(self, namespace: _Optional[str] = ..., memory_id: _Optional[str] = ..., include_embedding: bool = ...) -> None: ...

class GetMemoryResponse(_message.Message):
    __slots__ = ("memory", "importance_parts")
    MEMORY_FIELD_NUMBER: _ClassVar[int]
    IMPORTANCE_PARTS_FIELD_NUMBER: _ClassVar[int]
    memory: _types_pb2.Memory
    importance_parts: _containers.RepeatedCompositeFieldContainer[ImportancePart]
    def __init__(self, memory: _Optional[_Union[_types_pb2.Memory, _Mapping]] = ..., importance_parts: _Optional[_Iterable[_Union[ImportancePart, _Mapping]]] = ...) -> None: ...

class ListMemoriesRequest(_message.Message):
    __slots__ = ("namespace", "filter", "page_size", "page_token", "include_embedding")
    NAMESPACE_FIELD_NUMBER: _ClassVar[int]
    FILTER_FIELD_NUMBER: _ClassVar[int]
    PAGE_SIZE_FIELD_NUMBER: _ClassVar[int]
    PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    INCLUDE_EMBEDDING_FIELD_NUMBER: _ClassVar[int]
    namespace: str
    filter: _types_pb2.Filter
    page_size: int
    page_token: str
    include_embedding: bool
    def __init__(self, namespace: _Optional[str] = ..., filter: _Optional[_Union[_types_pb2.Filter, _Mapping]] = ..., page_size: _Optional[int] = ..., page_token: _Optional[str] = ..., include_embedding: bool = ...) -> None: ...

class ListMemoriesResponse(_message.Message):
    __slots__ = ("memories", "next_page_token")
    MEMORIES_FIELD_NUMBER: _ClassVar[int]
    NEXT_PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    memories: _containers.RepeatedCompositeFieldContainer[_types_pb2.Memory]
    next_page_token: str
    def __init__(self, memories: _Optional[_Iterable[_Union[_types_pb2.Memory, _Mapping]]] = ..., next_page_token: _Optional[str] = ...) -> None: ...

class UpdateMemoryRequest(_message.Message):
    __slots__ = ("namespace", "memory", "update_mask", "request_id")
    NAMESPACE_FIELD_NUMBER: _ClassVar[int]
    MEMORY_FIELD_NUMBER: _ClassVar[int]
    UPDATE_MASK_FIELD_NUMBER: _ClassVar[int]
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    namespace: str
    memory: _types_pb2.Memory
    update_mask: _field_mask_pb2.FieldMask
    request_id: str
    def __init__(self, namespace: _Optional[str] = ..., memory: _Optional[_Union[_types_pb2.Memory, _Mapping]] = ..., update_mask: _Optional[_Union[_field_mask_pb2.FieldMask, _Mapping]] = ..., request_id: _Optional[str] = ...) -> None: ...

class UpdateMemoryResponse(_message.Message):
    __slots__ = ("memory", "score_version")
    MEMORY_FIELD_NUMBER: _ClassVar[int]
    SCORE_VERSION_FIELD_NUMBER: _ClassVar[int]
    memory: _types_pb2.Memory
    score_version: int
    def __init__(self, memory: _Optional[_Union[_types_pb2.Memory, _Mapping]] = ..., score_version: _Optional[int] = ...) -> None: ...

class DeleteMemoriesRequest(_message.Message):
    __slots__ = ("namespace", "memory_ids", "filter", "request_id")
    NAMESPACE_FIELD_NUMBER: _ClassVar[int]
    MEMORY_IDS_FIELD_NUMBER: _ClassVar[int]
    FILTER_FIELD_NUMBER: _ClassVar[int]
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    namespace: str
    memory_ids: _containers.RepeatedScalarFieldContainer[str]
    filter: _types_pb2.Filter
    request_id: str
    def __init__(self, namespace: _Optional[str] = ..., memory_ids: _Optional[_Iterable[str]] = ..., filter: _Optional[_Union[_types_pb2.Filter, _Mapping]] = ..., request_id: _Optional[str] = ...) -> None: ...

class DeleteMemoriesResponse(_message.Message):
    __slots__ = ("deleted_count", "results", "score_version")
    DELETED_COUNT_FIELD_NUMBER: _ClassVar[int]
    RESULTS_FIELD_NUMBER: _ClassVar[int]
    SCORE_VERSION_FIELD_NUMBER: _ClassVar[int]
    deleted_count: int
    results: _containers.RepeatedCompositeFieldContainer[WriteResult]
    score_version: int
    def __init__(self, deleted_count: _Optional[int] = ..., results: _Optional[_Iterable[_Union[WriteResult, _Mapping]]] = ..., score_version: _Optional[int] = ...) -> None: ...

class ListNamespacesRequest(_message.Message):
    __slots__ = ("page_size", "page_token")
    PAGE_SIZE_FIELD_NUMBER: _ClassVar[int]
    PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    page_size: int
    page_token: str
    def __init__(self, page_size: _Optional[int] = ..., page_token: _Optional[str] = ...) -> None: ...

class ListNamespacesResponse(_message.Message):
    __slots__ = ("namespaces", "next_page_token")
    NAMESPACES_FIELD_NUMBER: _ClassVar[int]
    NEXT_PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    namespaces: _containers.RepeatedCompositeFieldContainer[NamespaceSummary]
    next_page_token: str
    def __init__(self, namespaces: _Optional[_Iterable[_Union[NamespaceSummary, _Mapping]]] = ..., next_page_token: _Optional[str] = ...) -> None: ...

class NamespaceSummary(_message.Message):
    __slots__ = ("namespace", "memory_count", "score_version", "update_time")
    NAMESPACE_FIELD_NUMBER: _ClassVar[int]
    MEMORY_COUNT_FIELD_NUMBER: _ClassVar[int]
    SCORE_VERSION_FIELD_NUMBER: _ClassVar[int]
    UPDATE_TIME_FIELD_NUMBER: _ClassVar[int]
    namespace: str
    memory_count: int
    score_version: int
    update_time: _timestamp_pb2.Timestamp
    def __init__(self, namespace: _Optional[str] = ..., memory_count: _Optional[int] = ..., score_version: _Optional[int] = ..., update_time: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ...) -> None: ...

class ScoreImportanceRequest(_message.Message):
    __slots__ = ("namespace", "subjects", "context", "domain")
    NAMESPACE_FIELD_NUMBER: _ClassVar[int]
    SUBJECTS_FIELD_NUMBER: _ClassVar[int]
    CONTEXT_FIELD_NUMBER: _ClassVar[int]
    DOMAIN_FIELD_NUMBER: _ClassVar[int]
    namespace: str
    subjects: _containers.RepeatedCompositeFieldContainer[ImportanceSubject]
    context: _types_pb2.Context
    domain: str
    def __init__(self, namespace: _Optional[str] = ..., subjects: _Optional[_Iterable[_Union[ImportanceSubject, _Mapping]]] = ..., context: _Optional[_Union[_types_pb2.Context, _Mapping]] = ..., domain: _Optional[str] = ...) -> None: ...

class ImportanceSubject(_message.Message):
    __slots__ = ("memory", "user_rating", "use_sessions", "recency", "emotion", "contextual_relevance", "agent_scores")
    MEMORY_FIELD_NUMBER: _ClassVar[int]
    USER_RATING_FIELD_NUMBER: _ClassVar[int]
    USE_SESSIONS_FIELD_NUMBER: _ClassVar[int]
    RECENCY_FIELD_NUMBER: _ClassVar[int]
    EMOTION_FIELD_NUMBER: _ClassVar[int]
    CONTEXTUAL_RELEVANCE_FIELD_NUMBER: _ClassVar[int]
    AGENT_SCORES_FIELD_NUMBER: _ClassVar[int]
    memory: _types_pb2.Memory
    user_rating: float
    use_sessions: int
    recency: float
    emotion: float
    contextual_relevance: float
    agent_scores: _containers.RepeatedCompositeFieldContainer[AgentScore]
    def __init__(self, memory: _Optional[_Union[_types_pb2.Memory, _Mapping]] = ..., user_rating: _Optional[float] = ..., use_sessions: _Optional[int] = ..., recency: _Optional[float] = ..., emotion: _Optional[float] = ..., contextual_relevance: _Optional[float] = ..., agent_scores: _Optional[_Iterable[_Union[AgentScore, _Mapping]]] = ...) -> None: ...

class AgentScore(_message.Message):
    __slots__ = ("agent_id", "score", "confidence")
    AGENT_ID_FIELD_NUMBER: _ClassVar[int]
    SCORE_FIELD_NUMBER: _ClassVar[int]
    CONFIDENCE_FIELD_NUMBER: _ClassVar[int]
    agent_id: str
    score: float
    confidence: float
    def __init__(self, agent_id: _Optional[str] = ..., score: _Optional[float] = ..., confidence: _Optional[float] = ...) -> None: ...

class AgentConsensus(_message.Message):
    __slots__ = ("score", "spread", "agents")
    SCORE_FIELD_NUMBER: _ClassVar[int]
    SPREAD_FIELD_NUMBER: _ClassVar[int]
    AGENTS_FIELD_NUMBER: _ClassVar[int]
    score: float
    spread: float
    agents: int
    def __init__(self, score: _Optional[float] = ..., spread: _Optional[float] = ..., agents: _Optional[int] = ...) -> None: ...

class ImportanceLine(_message.Message):
    __slots__ = ("factor", "value", "weight", "contribution")
    FACTOR_FIELD_NUMBER: _ClassVar[int]
    VALUE_FIELD_NUMBER: _ClassVar[int]
    WEIGHT_FIELD_NUMBER: _ClassVar[int]
    CONTRIBUTION_FIELD_NUMBER: _ClassVar[int]
    factor: str
    value: float
    weight: float
    contribution: float
    def __init__(self, factor: _Optional[str] = ..., value: _Optional[float] = ..., weight: _Optional[float] = ..., contribution: _Optional[float] = ...) -> None: ...

class ImportanceResult(_message.Message):
    __slots__ = ("importance", "lines", "status", "weighted_score", "confidence_tier", "half_life_days", "retention", "decayed_score", "promotion_candidate", "consensus", "language")
    IMPORTANCE_FIELD_NUMBER: _ClassVar[int]
    LINES_FIELD_NUMBER: _ClassVar[int]
    STATUS_FIELD_NUMBER: _ClassVar[int]
    WEIGHTED_SCORE_FIELD_NUMBER: _ClassVar[int]
    CONFIDENCE_TIER_FIELD_NUMBER: _ClassVar[int]
    HALF_LIFE_DAYS_FIELD_NUMBER: _ClassVar[int]
    RETENTION_FIELD_NUMBER: _ClassVar[int]
    DECAYED_SCORE_FIELD_NUMBER: _ClassVar[int]
    PROMOTION_CANDIDATE_FIELD_NUMBER: _ClassVar[int]
    CONSENSUS_FIELD_NUMBER: _ClassVar[int]
    LANGUAGE_FIELD_NUMBER: _ClassVar[int]
    importance: _types_pb2.Importance
    lines: _containers.RepeatedCompositeFieldContainer[ImportanceLine]
    status: _status_pb2.Status
    weighted_score: float
    confidence_tier: str
    half_life_days: float
    retention: float
    decayed_score: float
    promotion_candidate: bool
    consensus: AgentConsensus
    language: str
    def __init__(self, importance: _Optional[_Union[_types_pb2.Importance, _Mapping]] = ..., lines: _Optional[_Iterable[_Union[ImportanceLine, _Mapping]]] = ..., status: _Optional[_Union[_status_pb2.Status, _Mapping]] = ..., weighted_score: _Optional[float] = ..., confidence_tier: _Optional[str] = ..., half_life_days: _Optional[float] = ..., retention: _Optional[float] = ..., decayed_score: _Optional[float] = ..., promotion_candidate: bool = ..., consensus: _Optional[_Union[AgentConsensus, _Mapping]] = ..., language: _Optional[str] = ...) -> None: ...

class ImportancePart(_message.Message):
    __slots__ = ("part", "score", "confidence", "time", "factors", "lines")
    PART_FIELD_NUMBER: _ClassVar[int]
    SCORE_FIELD_NUMBER: _ClassVar[int]
    CONFIDENCE_FIELD_NUMBER: _ClassVar[int]
    TIME_FIELD_NUMBER: _ClassVar[int]
    FACTORS_FIELD_NUMBER: _ClassVar[int]
    LINES_FIELD_NUMBER: _ClassVar[int]
    part: str
    score: float
    confidence: float
    time: _timestamp_pb2.Timestamp
    factors: _containers.RepeatedScalarFieldContainer[str]
    lines: _containers.RepeatedCompositeFieldContainer[ImportanceLine]
    def __init__(self, part: _Optional[str] = ..., score: _Optional[float] = ..., confidence: _Optional[float] = ..., time: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., factors: _Optional[_Iterable[str]] = ..., lines: _Optional[_Iterable[_Union[ImportanceLine, _Mapping]]] = ...) -> None: ...

class ScoreImportanceResponse(_message.Message):
    __slots__ = ("results",)
    RESULTS_FIELD_NUMBER: _ClassVar[int]
    results: _containers.RepeatedCompositeFieldContainer[ImportanceResult]
    def __init__(self, results: _Optional[_Iterable[_Union[ImportanceResult, _Mapping]]] = ...) -> None: ...

class ListPromotionCandidatesRequest(_message.Message):
    __slots__ = ("namespace", "min_score", "min_confidence", "context", "domain", "page_size", "page_token")
    NAMESPACE_FIELD_NUMBER: _ClassVar[int]
    MIN_SCORE_FIELD_NUMBER: _ClassVar[int]
    MIN_CONFIDENCE_FIELD_NUMBER: _ClassVar[int]
    CONTEXT_FIELD_NUMBER: _ClassVar[int]
    DOMAIN_FIELD_NUMBER: _ClassVar[int]
    PAGE_SIZE_FIELD_NUMBER: _ClassVar[int]
    PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    namespace: str
    min_score: float
    min_confidence: float
    context: _types_pb2.Context
    domain: str
    page_size: int
    page_token: str
    def __init__(self, namespace: _Optional[str] = ..., min_score: _Optional[float] = ..., min_confidence: _Optional[float] = ..., context: _Optional[_Union[_types_pb2.Context, _Mapping]] = ..., domain: _Optional[str] = ..., page_size: _Optional[int] = ..., page_token: _Optional[str] = ...) -> None: ...

class ListPromotionCandidatesResponse(_message.Message):
    __slots__ = ("candidates", "next_page_token")
    CANDIDATES_FIELD_NUMBER: _ClassVar[int]
    NEXT_PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    candidates: _containers.RepeatedCompositeFieldContainer[PromotionCandidate]
    next_page_token: str
    def __init__(self, candidates: _Optional[_Iterable[_Union[PromotionCandidate, _Mapping]]] = ..., next_page_token: _Optional[str] = ...) -> None: ...

class PromotionCandidate(_message.Message):
    __slots__ = ("memory", "result")
    MEMORY_FIELD_NUMBER: _ClassVar[int]
    RESULT_FIELD_NUMBER: _ClassVar[int]
    memory: _types_pb2.Memory
    result: ImportanceResult
    def __init__(self, memory: _Optional[_Union[_types_pb2.Memory, _Mapping]] = ..., result: _Optional[_Union[ImportanceResult, _Mapping]] = ...) -> None: ...
