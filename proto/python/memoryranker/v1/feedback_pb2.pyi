import datetime

from google.protobuf import timestamp_pb2 as _timestamp_pb2
from google.rpc import status_pb2 as _status_pb2
from memoryranker.v1 import types_pb2 as _types_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class ReportUseRequest(_message.Message):
    __slots__ = ("namespace", "packet_id", "channel", "used_memory_ids", "unused_memory_ids", "shown_memory_ids", "complete", "outcome", "confidence", "sequence", "report_time", "agent_id", "request_id")
    NAMESPACE_FIELD_NUMBER: _ClassVar[int]
    PACKET_ID_FIELD_NUMBER: _ClassVar[int]
    CHANNEL_FIELD_NUMBER: _ClassVar[int]
    USED_MEMORY_IDS_FIELD_NUMBER: _ClassVar[int]
    UNUSED_MEMORY_IDS_FIELD_NUMBER: _ClassVar[int]
    SHOWN_MEMORY_IDS_FIELD_NUMBER: _ClassVar[int]
    COMPLETE_FIELD_NUMBER: _ClassVar[int]
    OUTCOME_FIELD_NUMBER: _ClassVar[int]
    CONFIDENCE_FIELD_NUMBER: _ClassVar[int]
    SEQUENCE_FIELD_NUMBER: _ClassVar[int]
    REPORT_TIME_FIELD_NUMBER: _ClassVar[int]
    AGENT_ID_FIELD_NUMBER: _ClassVar[int]
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    namespace: str
    packet_id: str
    channel: _types_pb2.Channel
    used_memory_ids: _containers.RepeatedScalarFieldContainer[str]
    unused_memory_ids: _containers.RepeatedScalarFieldContainer[str]
    shown_memory_ids: _containers.RepeatedScalarFieldContainer[str]
    complete: bool
    outcome: float
    confidence: float
    sequence: int
    report_time: _timestamp_pb2.Timestamp
    agent_id: str
    request_id: str
    def __init__(self, namespace: _Optional[str] = ..., packet_id: _Optional[str] = ..., channel: _Optional[_Union[_types_pb2.Channel, str]] = ..., used_memory_ids: _Optional[_Iterable[str]] = ..., unused_memory_ids: _Optional[_Iterable[str]] = ..., shown_memory_ids: _Optional[_Iterable[str]] = ..., complete: bool = ..., outcome: _Optional[float] = ..., confidence: _Optional[float] = ..., sequence: _Optional[int] = ..., report_time: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., agent_id: _Optional[str] = ..., request_id: _Optional[str] = ...) -> None: ...

class ReportItemResult(_message.Message):
    __slots__ = ("memory_id", "status")
    MEMORY_ID_FIELD_NUMBER: _ClassVar[int]
    STATUS_FIELD_NUMBER: _ClassVar[int]
    memory_id: str
    status: _status_pb2.Status
    def __init__(self, memory_id: _Optional[str] = ..., status: _Optional[_Union[_status_pb2.Status, _Mapping]] = ...) -> None: ...

class ReportUseResponse(_message.Message):
    __slots__ = ("report_id", "report_state", "results", "used_count", "unused_count", "replayed")
    REPORT_ID_FIELD_NUMBER: _ClassVar[int]
    REPORT_STATE_FIELD_NUMBER: _ClassVar[int]
    RESULTS_FIELD_NUMBER: _ClassVar[int]
    USED_COUNT_FIELD_NUMBER: _ClassVar[int]
    UNUSED_COUNT_FIELD_NUMBER: _ClassVar[int]
    REPLAYED_FIELD_NUMBER: _ClassVar[int]
    report_id: str
    report_state: _types_pb2.ReportState
    results: _containers.RepeatedCompositeFieldContainer[ReportItemResult]
    used_count: int
    unused_count: int
    replayed: bool
    def __init__(self, report_id: _Optional[str] = ..., report_state: _Optional[_Union[_types_pb2.ReportState, str]] = ..., results: _Optional[_Iterable[_Union[ReportItemResult, _Mapping]]] = ..., used_count: _Optional[int] = ..., unused_count: _Optional[int] = ..., replayed: bool = ...) -> None: ...

class MemoryUse(_message.Message):
    __slots__ = ("memory_id", "channel", "used", "confidence", "receive_time")
    MEMORY_ID_FIELD_NUMBER: _ClassVar[int]
    CHANNEL_FIELD_NUMBER: _ClassVar[int]
    USED_FIELD_NUMBER: _ClassVar[int]
    CONFIDENCE_FIELD_NUMBER: _ClassVar[int]
    RECEIVE_TIME_FIELD_NUMBER: _ClassVar[int]
    memory_id: str
    channel: _types_pb2.Channel
    used: bool
    confidence: float
    receive_time: _timestamp_pb2.Timestamp
    def __init__(self, memory_id: _Optional[str] = ..., channel: _Optional[_Union[_types_pb2.Channel, str]] = ..., used: bool = ..., confidence: _Optional[float] = ..., receive_time: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ...) -> None: ...

class ToolCall(_message.Message):
    __slots__ = ("name", "arguments")
    NAME_FIELD_NUMBER: _ClassVar[int]
    ARGUMENTS_FIELD_NUMBER: _ClassVar[int]
    name: str
    arguments: str
    def __init__(self, name: _Optional[str] = ..., arguments: _Optional[str] = ...) -> None: ...

class ReportOutputRequest(_message.Message):
    __slots__ = ("namespace", "packet_id", "output", "tool_calls", "shown_memory_ids", "agent_id", "request_id")
    NAMESPACE_FIELD_NUMBER: _ClassVar[int]
    PACKET_ID_FIELD_NUMBER: _ClassVar[int]
    OUTPUT_FIELD_NUMBER: _ClassVar[int]
    TOOL_CALLS_FIELD_NUMBER: _ClassVar[int]
    SHOWN_MEMORY_IDS_FIELD_NUMBER: _ClassVar[int]
    AGENT_ID_FIELD_NUMBER: _ClassVar[int]
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    namespace: str
    packet_id: str
    output: str
    tool_calls: _containers.RepeatedCompositeFieldContainer[ToolCall]
    shown_memory_ids: _containers.RepeatedScalarFieldContainer[str]
    agent_id: str
    request_id: str
    def __init__(self, namespace: _Optional[str] = ..., packet_id: _Optional[str] = ..., output: _Optional[str] = ..., tool_calls: _Optional[_Iterable[_Union[ToolCall, _Mapping]]] = ..., shown_memory_ids: _Optional[_Iterable[str]] = ..., agent_id: _Optional[str] = ..., request_id: _Optional[str] = ...) -> None: ...

class HandleMatch(_message.Message):
    __slots__ = ("memory_id", "handle", "handle_kind", "confidence")
    MEMORY_ID_FIELD_NUMBER: _ClassVar[int]
    HANDLE_FIELD_NUMBER: _ClassVar[int]
    HANDLE_KIND_FIELD_NUMBER: _ClassVar[int]
    CONFIDENCE_FIELD_NUMBER: _ClassVar[int]
    memory_id: str
    handle: str
    handle_kind: str
    confidence: float
    def __init__(self, memory_id: _Optional[str] = ..., handle: _Optional[str] = ..., handle_kind: _Optional[str] = ..., confidence: _Optional[float] = ...) -> None: ...

class ReportOutputResponse(_message.Message):
    __slots__ = ("report_id", "matches", "echoed_memory_ids", "report_state")
    REPORT_ID_FIELD_NUMBER: _ClassVar[int]
    MATCHES_FIELD_NUMBER: _ClassVar[int]
    ECHOED_MEMORY_IDS_FIELD_NUMBER: _ClassVar[int]
    REPORT_STATE_FIELD_NUMBER: _ClassVar[int]
    report_id: str
    matches: _containers.RepeatedCompositeFieldContainer[HandleMatch]
    echoed_memory_ids: _containers.RepeatedScalarFieldContainer[str]
    report_state: _types_pb2.ReportState
    def __init__(self, report_id: _Optional[str] = ..., matches: _Optional[_Iterable[_Union[HandleMatch, _Mapping]]] = ..., echoed_memory_ids: _Optional[_Iterable[str]] = ..., report_state: _Optional[_Union[_types_pb2.ReportState, str]] = ...) -> None: ...

class RateMemoryRequest(_message.Message):
    __slots__ = ("namespace", "memory_id", "rating", "agent_id", "reason", "request_id")
    NAMESPACE_FIELD_NUMBER: _ClassVar[int]
    MEMORY_ID_FIELD_NUMBER: _ClassVar[int]
    RATING_FIELD_NUMBER: _ClassVar[int]
    AGENT_ID_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    namespace: str
    memory_id: str
    rating: _types_pb2.Rating
    agent_id: str
    reason: str
    request_id: str
    def __init__(self, namespace: _Optional[str] = ..., memory_id: _Optional[str] = ..., rating: _Optional[_Union[_types_pb2.Rating, str]] = ..., agent_id: _Optional[str] = ..., reason: _Optional[str] = ..., request_id: _Optional[str] = ...) -> None: ...

class RateMemoryResponse(_message.Message):
    __slots__ = ("ratings", "left_out", "score_version")
    RATINGS_FIELD_NUMBER: _ClassVar[int]
    LEFT_OUT_FIELD_NUMBER: _ClassVar[int]
    SCORE_VERSION_FIELD_NUMBER: _ClassVar[int]
    ratings: _types_pb2.RatingSummary
    left_out: bool
    score_version: int
    def __init__(self, ratings: _Optional[_Union[_types_pb2.RatingSummary, _Mapping]] = ..., left_out: bool = ..., score_version: _Optional[int] = ...) -> None: ...
