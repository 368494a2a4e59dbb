import datetime

from google.protobuf import timestamp_pb2 as _timestamp_pb2
from memoryranker.v1 import feedback_pb2 as _feedback_pb2
from memoryranker.v1 import types_pb2 as _types_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class ExplainLevel(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    EXPLAIN_LEVEL_UNSPECIFIED: _ClassVar[ExplainLevel]
    EXPLAIN_LEVEL_NONE: _ClassVar[ExplainLevel]
    EXPLAIN_LEVEL_CONTRIBUTIONS: _ClassVar[ExplainLevel]
    EXPLAIN_LEVEL_FULL: _ClassVar[ExplainLevel]

class LeftOutReason(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    LEFT_OUT_REASON_UNSPECIFIED: _ClassVar[LeftOutReason]
    LEFT_OUT_REASON_FILTERED: _ClassVar[LeftOutReason]
    LEFT_OUT_REASON_SUPPRESSED: _ClassVar[LeftOutReason]
    LEFT_OUT_REASON_RATED_UNHELPFUL: _ClassVar[LeftOutReason]
    LEFT_OUT_REASON_EXPIRED: _ClassVar[LeftOutReason]
    LEFT_OUT_REASON_NOT_YET_VALID: _ClassVar[LeftOutReason]
    LEFT_OUT_REASON_SUPERSEDED: _ClassVar[LeftOutReason]
    LEFT_OUT_REASON_BELOW_MIN_SCORE: _ClassVar[LeftOutReason]
    LEFT_OUT_REASON_NEAR_DUPLICATE: _ClassVar[LeftOutReason]
    LEFT_OUT_REASON_OVERSIZED: _ClassVar[LeftOutReason]
    LEFT_OUT_REASON_BUDGET: _ClassVar[LeftOutReason]
    LEFT_OUT_REASON_OUTRANKED: _ClassVar[LeftOutReason]
    LEFT_OUT_REASON_NOT_A_CANDIDATE: _ClassVar[LeftOutReason]

class EmptyReason(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    EMPTY_REASON_UNSPECIFIED: _ClassVar[EmptyReason]
    EMPTY_REASON_NO_MEMORIES: _ClassVar[EmptyReason]
    EMPTY_REASON_FILTERED: _ClassVar[EmptyReason]
    EMPTY_REASON_BELOW_MIN_SCORE: _ClassVar[EmptyReason]
    EMPTY_REASON_BUDGET: _ClassVar[EmptyReason]

class DegradationReason(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    DEGRADATION_REASON_UNSPECIFIED: _ClassVar[DegradationReason]
    DEGRADATION_REASON_LOG_UNAVAILABLE: _ClassVar[DegradationReason]
    DEGRADATION_REASON_NO_EMBEDDING: _ClassVar[DegradationReason]
    DEGRADATION_REASON_TASK_SHORTENED: _ClassVar[DegradationReason]
    DEGRADATION_REASON_MODEL_FALLBACK: _ClassVar[DegradationReason]
EXPLAIN_LEVEL_UNSPECIFIED: ExplainLevel
EXPLAIN_LEVEL_NONE: ExplainLevel
EXPLAIN_LEVEL_CONTRIBUTIONS: ExplainLevel
EXPLAIN_LEVEL_FULL: ExplainLevel
LEFT_OUT_REASON_UNSPECIFIED: LeftOutReason
LEFT_OUT_REASON_FILTERED: LeftOutReason
LEFT_OUT_REASON_SUPPRESSED: LeftOutReason
LEFT_OUT_REASON_RATED_UNHELPFUL: LeftOutReason
LEFT_OUT_REASON_EXPIRED: LeftOutReason
LEFT_OUT_REASON_NOT_YET_VALID: LeftOutReason
LEFT_OUT_REASON_SUPERSEDED: LeftOutReason
LEFT_OUT_REASON_BELOW_MIN_SCORE: LeftOutReason
LEFT_OUT_REASON_NEAR_DUPLICATE: LeftOutReason
LEFT_OUT_REASON_OVERSIZED: LeftOutReason
LEFT_OUT_REASON_BUDGET: LeftOutReason
LEFT_OUT_REASON_OUTRANKED: LeftOutReason
LEFT_OUT_REASON_NOT_A_CANDIDATE: LeftOutReason
EMPTY_REASON_UNSPECIFIED: EmptyReason
EMPTY_REASON_NO_MEMORIES: EmptyReason
EMPTY_REASON_FILTERED: EmptyReason
EMPTY_REASON_BELOW_MIN_SCORE: EmptyReason
EMPTY_REASON_BUDGET: EmptyReason
DEGRADATION_REASON_UNSPECIFIED: DegradationReason
DEGRADATION_REASON_LOG_UNAVAILABLE: DegradationReason
DEGRADATION_REASON_NO_EMBEDDING: DegradationReason
DEGRADATION_REASON_TASK_SHORTENED: DegradationReason
DEGRADATION_REASON_MODEL_FALLBACK: DegradationReason

class RankRequest(_message.Message):
    __slots__ = ("namespace", "session_id", "agent_id", "surface", "task", "task_embedding", "context", "candidates", "max_items", "token_budget", "filter", "reserved_slots", "min_score", "weights", "explain", "as_of_time", "dry_run", "request_id", "item_wrapper")
    NAMESPACE_FIELD_NUMBER: _ClassVar[int]
    SESSION_ID_FIELD_NUMBER: _ClassVar[int]
    AGENT_ID_FIELD_NUMBER: _ClassVar[int]
    SURFACE_FIELD_NUMBER: _ClassVar[int]
    TASK_FIELD_NUMBER: _ClassVar[int]
    TASK_EMBEDDING_FIELD_NUMBER: _ClassVar[int]
    CONTEXT_FIELD_NUMBER: _ClassVar[int]
    CANDIDATES_FIELD_NUMBER: _ClassVar[int]
    MAX_ITEMS_FIELD_NUMBER: _ClassVar[int]
    TOKEN_BUDGET_FIELD_NUMBER: _ClassVar[int]
    FILTER_FIELD_NUMBER: _ClassVar[int]
    RESERVED_SLOTS_FIELD_NUMBER: _ClassVar[int]
    MIN_SCORE_FIELD_NUMBER: _ClassVar[int]
    WEIGHTS_FIELD_NUMBER: _ClassVar[int]
    EXPLAIN_FIELD_NUMBER: _ClassVar[int]
    AS_OF_TIME_FIELD_NUMBER: _ClassVar[int]
    DRY_RUN_FIELD_NUMBER: _ClassVar[int]
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    ITEM_WRAPPER_FIELD_NUMBER: _ClassVar[int]
    namespace: str
    session_id: str
    agent_id: str
    surface: str
    task: str
    task_embedding: bytes
    context: _types_pb2.Context
    candidates: _containers.RepeatedCompositeFieldContainer[_types_pb2.Memory]
    max_items: int
    token_budget: int
    filter: _types_pb2.Filter
    reserved_slots: int
    min_score: float
    weights: _types_pb2.WeightsChoice
    explain: ExplainLevel
    as_of_time: _timestamp_pb2.Timestamp
    dry_run: bool
    request_id: str
    item_wrapper: str
    def __init__(self, namespace: _Optional[str] = ..., session_id: _Optional[str] = ..., agent_id: _Optional[str] = ..., surface: _Optional[str] = ..., task: _Optional[str] = ..., task_embedding: _Optional[bytes] = ..., context: _Optional[_Union[_types_pb2.Context, _Mapping]] = ..., candidates: _Optional[_Iterable[_Union[_types_pb2.Memory, _Mapping]]] = ..., max_items: _Optional[int] = ..., token_budget: _Optional[int] = ..., filter: _Optional[_Union[_types_pb2.Filter, _Mapping]] = ..., reserved_slots: _Optional[int] = ..., min_score: _Optional[float] = ..., weights: _Optional[_Union[_types_pb2.WeightsChoice, _Mapping]] = ..., explain: _Optional[_Union[ExplainLevel, str]] = ..., as_of_time: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., dry_run: bool = ..., request_id: _Optional[str] = ..., item_wrapper: _Optional[str] = ...) -> None: ...

class RankedItem(_message.Message):
    __slots__ = ("place", "memory", "score", "contributions", "features", "segment", "inclusion_propensity", "position_probability", "tokens", "swapped")
    PLACE_FIELD_NUMBER: _ClassVar[int]
    MEMORY_FIELD_NUMBER: _ClassVar[int]
    SCORE_FIELD_NUMBER: _ClassVar[int]
    CONTRIBUTIONS_FIELD_NUMBER: _ClassVar[int]
    FEATURES_FIELD_NUMBER: _ClassVar[int]
    SEGMENT_FIELD_NUMBER: _ClassVar[int]
    INCLUSION_PROPENSITY_FIELD_NUMBER: _ClassVar[int]
    POSITION_PROBABILITY_FIELD_NUMBER: _ClassVar[int]
    TOKENS_FIELD_NUMBER: _ClassVar[int]
    SWAPPED_FIELD_NUMBER: _ClassVar[int]
    place: int
    memory: _types_pb2.Memory
    score: float
    contributions: _containers.RepeatedScalarFieldContainer[float]
    features: _containers.RepeatedScalarFieldContainer[float]
    segment: _types_pb2.Segment
    inclusion_propensity: float
    position_probability: float
    tokens: int
    swapped: bool
    def __init__(self, place: _Optional[int] = ..., memory: _Optional[_Union[_types_pb2.Memory, _Mapping]] = ..., score: _Optional[float] = ..., contributions: _Optional[_Iterable[float]] = ..., features: _Optional[_Iterable[float]] = ..., segment: _Optional[_Union[_types_pb2.Segment, str]] = ..., inclusion_propensity: _Optional[float] = ..., position_probability: _Optional[float] = ..., tokens: _Optional[int] = ..., swapped: bool = ...) -> None: ...

class LeftOut(_message.Message):
    __slots__ = ("reason", "count")
    REASON_FIELD_NUMBER: _ClassVar[int]
    COUNT_FIELD_NUMBER: _ClassVar[int]
    reason: LeftOutReason
    count: int
    def __init__(self, reason: _Optional[_Union[LeftOutReason, str]] = ..., count: _Optional[int] = ...) -> None: ...

class Degradation(_message.Message):
    __slots__ = ("reason", "message")
    REASON_FIELD_NUMBER: _ClassVar[int]
    MESSAGE_FIELD_NUMBER: _ClassVar[int]
    reason: DegradationReason
    message: str
    def __init__(self, reason: _Optional[_Union[DegradationReason, str]] = ..., message: _Optional[str] = ...) -> None: ...

class RankResponse(_message.Message):
    __slots__ = ("packet_id", "items", "model_version", "feature_names", "feature_schema_hash", "score_version", "valid_until_time", "tokens_used", "left_out", "degradations", "empty_reason", "reserve_pool_size", "reserved_slots", "as_of_time", "weights", "replayed")
    PACKET_ID_FIELD_NUMBER: _ClassVar[int]
    ITEMS_FIELD_NUMBER: _ClassVar[int]
    MODEL_VERSION_FIELD_NUMBER: _ClassVar[int]
    FEATURE_NAMES_FIELD_NUMBER: _ClassVar[int]
    FEATURE_SCHEMA_HASH_FIELD_NUMBER: _ClassVar[int]
    SCORE_VERSION_FIELD_NUMBER: _ClassVar[int]
    VALID_UNTIL_TIME_FIELD_NUMBER: _ClassVar[int]
    TOKENS_USED_FIELD_NUMBER: _ClassVar[int]
    LEFT_OUT_FIELD_NUMBER: _ClassVar[int]
    DEGRADATIONS_FIELD_NUMBER: _ClassVar[int]
    EMPTY_REASON_FIELD_NUMBER: _ClassVar[int]
    RESERVE_POOL_SIZE_FIELD_NUMBER: _ClassVar[int]
    RESERVED_SLOTS_FIELD_NUMBER: _ClassVar[int]
    AS_OF_TIME_FIELD_NUMBER: _ClassVar[int]
    WEIGHTS_FIELD_NUMBER: _ClassVar[int]
    REPLAYED_FIELD_NUMBER: _ClassVar[int]
    packet_id: str
    items: _containers.RepeatedCompositeFieldContainer[RankedItem]
    model_version: str
    feature_names: _containers.RepeatedScalarFieldContainer[str]
    feature_schema_hash: str
    score_version: int
    valid_until_time: _timestamp_pb2.Timestamp
    tokens_used: int
    left_out: _containers.RepeatedCompositeFieldContainer[LeftOut]
    degradations: _containers.RepeatedCompositeFieldContainer[Degradation]
    empty_reason: EmptyReason
    reserve_pool_size: int
    reserved_slots: int
    as_of_time: _timestamp_pb2.Timestamp
    weights: _types_pb2.Weights
    replayed: bool
    def __init__(self, packet_id: _Optional[str] = ..., items: _Optional[_Iterable[_Union[RankedItem, _Mapping]]] = ..., model_version: _Optional[str] = ..., feature_names: _Optional[_Iterable[str]] = ..., feature_schema_hash: _Optional[str] = ..., score_version: _Optional[int] = ..., valid_until_time: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., tokens_used: _Optional[int] = ..., left_out: _Optional[_Iterable[_Union[LeftOut, _Mapping]]] = ..., degradations: _Optional[_Iterable[_Union[Degradation, _Mapping]]] = ..., empty_reason: _Optional[_Union[EmptyReason, str]] = ..., reserve_pool_size: _Optional[int] = ..., reserved_slots: _Optional[int] = ..., as_of_time: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., weights: _Optional[_Union[_types_pb2.Weights, _Mapping]] = ..., replayed: bool = ...) -> None: ...

class GetPacketRequest(_message.Message):
    __slots__ = ("namespace", "packet_id")
    NAMESPACE_FIELD_NUMBER: _ClassVar[int]
    PACKET_ID_FIELD_NUMBER: _ClassVar[int]
    namespace: str
    packet_id: str
    def __init__(self, namespace: _Optional[str] = ..., packet_id: _Optional[str] = ...) -> None: ...

class GetPacketResponse(_message.Message):
    __slots__ = ("packet", "create_time", "agent_id", "session_id", "surface", "report_state", "uses", "undrawn", "shadow_version", "shadow_scores")
    PACKET_FIELD_NUMBER: _ClassVar[int]
    CREATE_TIME_FIELD_NUMBER: _ClassVar[int]
    AGENT_ID_FIELD_NUMBER: _ClassVar[int]
    SESSION_ID_FIELD_NUMBER: _ClassVar[int]
    SURFACE_FIELD_NUMBER: _ClassVar[int]
    REPORT_STATE_FIELD_NUMBER: _ClassVar[int]
    USES_FIELD_NUMBER: _ClassVar[int]
    UNDRAWN_FIELD_NUMBER: _ClassVar[int]
    SHADOW_VERSION_FIELD_NUMBER: _ClassVar[int]
    SHADOW_SCORES_FIELD_NUMBER: _ClassVar[int]
    packet: RankResponse
    create_time: _timestamp_pb2.Timestamp
    agent_id: str
    session_id: str
    surface: str
    report_state: _types_pb2.ReportState
    uses: _containers.RepeatedCompositeFieldContainer[_feedback_pb2.MemoryUse]
    undrawn: _containers.RepeatedCompositeFieldContainer[PoolMember]
    shadow_version: str
    shadow_scores: _containers.RepeatedScalarFieldContainer[float]
    def __init__(self, packet: _Optional[_Union[RankResponse, _Mapping]] = ..., create_time: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., agent_id: _Optional[str] = ..., session_id: _Optional[str] = ..., surface: _Optional[str] = ..., report_state: _Optional[_Union[_types_pb2.ReportState, str]] = ..., uses: _Optional[_Iterable[_Union[_feedback_pb2.MemoryUse, _Mapping]]] = ..., undrawn: _Optional[_Iterable[_Union[PoolMember, _Mapping]]] = ..., shadow_version: _Optional[str] = ..., shadow_scores: _Optional[_Iterable[float]] = ...) -> None: ...

class PoolMember(_message.Message):
    __slots__ = ("memory_id", "inclusion_propensity", "score")
    MEMORY_ID_FIELD_NUMBER: _ClassVar[int]
    INCLUSION_PROPENSITY_FIELD_NUMBER: _ClassVar[int]
    SCORE_FIELD_NUMBER: _ClassVar[int]
    memory_id: str
    inclusion_propensity: float
    score: float
    def __init__(self, memory_id: _Optional[str] = ..., inclusion_propensity: _Optional[float] = ..., score: _Optional[float] = ...) -> None: ...

class ExplainMissRequest(_message.Message):
    __slots__ = ("namespace", "memory_id", "packet_id", "request")
    NAMESPACE_FIELD_NUMBER: _ClassVar[int]
    MEMORY_ID_FIELD_NUMBER: _ClassVar[int]
    PACKET_ID_FIELD_NUMBER: _ClassVar[int]
    REQUEST_FIELD_NUMBER: _ClassVar[int]
    namespace: str
    memory_id: str
    packet_id: str
    request: RankRequest
    def __init__(self, namespace: _Optional[str] = ..., memory_id: _Optional[str] = ..., packet_id: _Optional[str] = ..., request: _Optional[_Union[RankRequest, _Mapping]] = ...) -> None: ...

class FeatureGap(_message.Message):
    __slots__ = ("feature", "value", "admitted_value", "contribution", "admitted_contribution")
    FEATURE_FIELD_NUMBER: _ClassVar[int]
    VALUE_FIELD_NUMBER: _ClassVar[int]
    ADMITTED_VALUE_FIELD_NUMBER: _ClassVar[int]
    CONTRIBUTION_FIELD_NUMBER: _ClassVar[int]
    ADMITTED_CONTRIBUTION_FIELD_NUMBER: _ClassVar[int]
    feature: str
    value: float
    admitted_value: float
    contribution: float
    admitted_contribution: float
    def __init__(self, feature: _Optional[str] = ..., value: _Optional[float] = ..., admitted_value: _Optional[float] = ..., contribution: _Optional[float] = ..., admitted_contribution: _Optional[float] = ...) -> None: ...

class SmallestChange(_message.Message):
    __slots__ = ("field", "from_json", "to_json", "message")
    FIELD_FIELD_NUMBER: _ClassVar[int]
    FROM_JSON_FIELD_NUMBER: _ClassVar[int]
    TO_JSON_FIELD_NUMBER: _ClassVar[int]
    MESSAGE_FIELD_NUMBER: _ClassVar[int]
    field: str
    from_json: str
    to_json: str
    message: str
    def __init__(self, field: _Optional[str] = ..., from_json: _Optional[str] = ..., to_json: _Optional[str] = ..., message: _Optional[str] = ...) -> None: ...

class ExplainMissResponse(_message.Message):
    __slots__ = ("served", "place", "reason", "message", "score", "rank", "admitted_score", "gaps", "smallest_change", "store_moved_on", "other_memory_id")
    SERVED_FIELD_NUMBER: _ClassVar[int]
    PLACE_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    MESSAGE_FIELD_NUMBER: _ClassVar[int]
    SCORE_FIELD_NUMBER: _ClassVar[int]
    RANK_FIELD_NUMBER: _ClassVar[int]
    ADMITTED_SCORE_FIELD_NUMBER: _ClassVar[int]
    GAPS_FIELD_NUMBER: _ClassVar[int]
    SMALLEST_CHANGE_FIELD_NUMBER: _ClassVar[int]
    STORE_MOVED_ON_FIELD_NUMBER: _ClassVar[int]
    OTHER_MEMORY_ID_FIELD_NUMBER: _ClassVar[int]
    served: bool
    place: int
    reason: LeftOutReason
    message: str
    score: float
    rank: int
    admitted_score: float
    gaps: _containers.RepeatedCompositeFieldContainer[FeatureGap]
    smallest_change: SmallestChange
    store_moved_on: bool
    other_memory_id: str
    def __init__(self, served: bool = ..., place: _Optional[int] = ..., reason: _Optional[_Union[LeftOutReason, str]] = ..., message: _Optional[str] = ..., score: _Optional[float] = ..., rank: _Optional[int] = ..., admitted_score: _Optional[float] = ..., gaps: _Optional[_Iterable[_Union[FeatureGap, _Mapping]]] = ..., smallest_change: _Optional[_Union[SmallestChange, _Mapping]] = ..., store_moved_on: bool = ..., other_memory_id: _Optional[str] = ...) -> None: ...
