import datetime

from google.protobuf import struct_pb2 as _struct_pb2
from google.protobuf import timestamp_pb2 as _timestamp_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class Segment(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    SEGMENT_UNSPECIFIED: _ClassVar[Segment]
    SEGMENT_RANKED: _ClassVar[Segment]
    SEGMENT_RESERVED: _ClassVar[Segment]
    SEGMENT_PINNED: _ClassVar[Segment]

class Channel(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    CHANNEL_UNSPECIFIED: _ClassVar[Channel]
    CHANNEL_EXPLICIT: _ClassVar[Channel]
    CHANNEL_INFERRED: _ClassVar[Channel]
    CHANNEL_PACKET: _ClassVar[Channel]
    CHANNEL_ECHO: _ClassVar[Channel]

class ReportState(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    REPORT_STATE_UNSPECIFIED: _ClassVar[ReportState]
    REPORT_STATE_OPEN: _ClassVar[ReportState]
    REPORT_STATE_REPORTED: _ClassVar[ReportState]
    REPORT_STATE_UNREPORTED: _ClassVar[ReportState]
    REPORT_STATE_LATE: _ClassVar[ReportState]

class Rating(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    RATING_UNSPECIFIED: _ClassVar[Rating]
    RATING_HELPFUL: _ClassVar[Rating]
    RATING_UNHELPFUL: _ClassVar[Rating]
    RATING_WITHDRAWN: _ClassVar[Rating]
SEGMENT_UNSPECIFIED: Segment
SEGMENT_RANKED: Segment
SEGMENT_RESERVED: Segment
SEGMENT_PINNED: Segment
CHANNEL_UNSPECIFIED: Channel
CHANNEL_EXPLICIT: Channel
CHANNEL_INFERRED: Channel
CHANNEL_PACKET: Channel
CHANNEL_ECHO: Channel
REPORT_STATE_UNSPECIFIED: ReportState
REPORT_STATE_OPEN: ReportState
REPORT_STATE_REPORTED: ReportState
REPORT_STATE_UNREPORTED: ReportState
REPORT_STATE_LATE: ReportState
RATING_UNSPECIFIED: Rating
RATING_HELPFUL: Rating
RATING_UNHELPFUL: Rating
RATING_WITHDRAWN: Rating

class Memory(_message.Message):
    __slots__ = ("id", "content", "kind", "create_time", "update_time", "valid_from_time", "valid_until_time", "superseded_by", "source_thread", "source_sequence", "subject", "tags", "metadata", "relevance", "importance_override", "emotion", "pinned", "suppressed", "token_count", "embedding", "importance", "ratings")
    ID_FIELD_NUMBER: _ClassVar[int]
    CONTENT_FIELD_NUMBER: _ClassVar[int]
    KIND_FIELD_NUMBER: _ClassVar[int]
    CREATE_TIME_FIELD_NUMBER: _ClassVar[int]
    UPDATE_TIME_FIELD_NUMBER: _ClassVar[int]
    VALID_FROM_TIME_FIELD_NUMBER: _ClassVar[int]
    VALID_UNTIL_TIME_FIELD_NUMBER: _ClassVar[int]
    SUPERSEDED_BY_FIELD_NUMBER: _ClassVar[int]
    SOURCE_THREAD_FIELD_NUMBER: _ClassVar[int]
    SOURCE_SEQUENCE_FIELD_NUMBER: _ClassVar[int]
    SUBJECT_FIELD_NUMBER: _ClassVar[int]
    TAGS_FIELD_NUMBER: _ClassVar[int]
    METADATA_FIELD_NUMBER: _ClassVar[int]
    RELEVANCE_FIELD_NUMBER: _ClassVar[int]
    IMPORTANCE_OVERRIDE_FIELD_NUMBER: _ClassVar[int]
    EMOTION_FIELD_NUMBER: _ClassVar[int]
    PINNED_FIELD_NUMBER: _ClassVar[int]
    SUPPRESSED_FIELD_NUMBER: _ClassVar[int]
    TOKEN_COUNT_FIELD_NUMBER: _ClassVar[int]
    EMBEDDING_FIELD_NUMBER: _ClassVar[int]
    IMPORTANCE_FIELD_NUMBER: _ClassVar[int]
    RATINGS_FIELD_NUMBER: _ClassVar[int]
    id: str
    content: str
    kind: str
    create_time: _timestamp_pb2.Timestamp
    update_time: _timestamp_pb2.Timestamp
    valid_from_time: _timestamp_pb2.Timestamp
    valid_until_time: _timestamp_pb2.Timestamp
    superseded_by: str
    source_thread: str
    source_sequence: int
    subject: str
    tags: _containers.RepeatedScalarFieldContainer[str]
    metadata: _struct_pb2.Struct
    relevance: float
    importance_override: float
    emotion: float
    pinned: bool
    suppressed: bool
    token_count: int
    embedding: bytes
    importance: Importance
    ratings: RatingSummary
    def __init__(self, id: _Optional[str] = ..., content: _Optional[str] = ..., kind: _Optional[str] = ..., create_time: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., update_time: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., valid_from_time: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., valid_until_time: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., superseded_by: _Optional[str] = ..., source_thread: _Optional[str] = ..., source_sequence: _Optional[int] = ..., subject: _Optional[str] = ..., tags: _Optional[_Iterable[str]] = ..., metadata: _Optional[_Union[_struct_pb2.Struct, _Mapping]] = ..., relevance: _Optional[float] = ..., importance_override: _Optional[float] = ..., emotion: _Optional[float] = ..., pinned: bool = ..., suppressed: bool = ..., token_count: _Optional[int] = ..., embedding: _Optional[bytes] = ..., importance: _Optional[_Union[Importance, _Mapping]] = ..., ratings: _Optional[_Union[RatingSummary, _Mapping]] = ...) -> None: ...

class Importance(_message.Message):
    __slots__ = ("score", "content", "use", "user", "confidence", "factors")
    SCORE_FIELD_NUMBER: _ClassVar[int]
    CONTENT_FIELD_NUMBER: _ClassVar[int]
    USE_FIELD_NUMBER: _ClassVar[int]
    USER_FIELD_NUMBER: _ClassVar[int]
    CONFIDENCE_FIELD_NUMBER: _ClassVar[int]
    FACTORS_FIELD_NUMBER: _ClassVar[int]
    score: float
    content: float
    use: float
    user: float
    confidence: float
    factors: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, score: _Optional[float] = ..., content: _Optional[float] = ..., use: _Optional[float] = ..., user: _Optional[float] = ..., confidence: _Optional[float] = ..., factors: _Optional[_Iterable[str]] = ...) -> None: ...

class RatingSummary(_message.Message):
    __slots__ = ("helpful", "unhelpful")
    HELPFUL_FIELD_NUMBER: _ClassVar[int]
    UNHELPFUL_FIELD_NUMBER: _ClassVar[int]
    helpful: int
    unhelpful: int
    def __init__(self, helpful: _Optional[int] = ..., unhelpful: _Optional[int] = ...) -> None: ...

class Filter(_message.Message):
    __slots__ = ("kinds", "any_tags", "all_tags", "metadata_equals", "create_time_from", "create_time_until", "update_time_from", "update_time_until", "ids", "exclude_ids", "source_threads", "subjects")
    KINDS_FIELD_NUMBER: _ClassVar[int]
    ANY_TAGS_FIELD_NUMBER: _ClassVar[int]
    ALL_TAGS_FIELD_NUMBER: _ClassVar[int]
    METADATA_EQUALS_FIELD_NUMBER: _ClassVar[int]
    CREATE_TIME_FROM_FIELD_NUMBER: _ClassVar[int]
    CREATE_TIME_UNTIL_FIELD_NUMBER: _ClassVar[int]
    UPDATE_TIME_FROM_FIELD_NUMBER: _ClassVar[int]
    UPDATE_TIME_UNTIL_FIELD_NUMBER: _ClassVar[int]
    IDS_FIELD_NUMBER: _ClassVar[int]
    EXCLUDE_IDS_FIELD_NUMBER: _ClassVar[int]
    SOURCE_THREADS_FIELD_NUMBER: _ClassVar[int]
    SUBJECTS_FIELD_NUMBER: _ClassVar[int]
    kinds: _containers.RepeatedScalarFieldContainer[str]
    any_tags: _containers.RepeatedScalarFieldContainer[str]
    all_tags: _containers.RepeatedScalarFieldContainer[str]
    metadata_equals: _struct_pb2.Struct
    create_time_from: _timestamp_pb2.Timestamp
    create_time_until: _timestamp_pb2.Timestamp
    update_time_from: _timestamp_pb2.Timestamp
    update_time_until: _timestamp_pb2.Timestamp
    ids: _containers.RepeatedScalarFieldContainer[str]
    exclude_ids: _containers.RepeatedScalarFieldContainer[str]
    source_threads: _containers.RepeatedScalarFieldContainer[str]
    subjects: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, kinds: _Optional[_Iterable[str]] = ..., any_tags: _Optional[_Iterable[str]] = ..., all_tags: _Optional[_Iterable[str]] = ..., metadata_equals: _Optional[_Union[_struct_pb2.Struct, _Mapping]] = ..., create_time_from: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., create_time_until: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., update_time_from: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., update_time_until: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., ids: _Optional[_Iterable[str]] = ..., exclude_ids: _Optional[_Iterable[str]] = ..., source_threads: _Optional[_Iterable[str]] = ..., subjects: _Optional[_Iterable[str]] = ...) -> None: ...

class Weights(_message.Message):
    __slots__ = ("features", "caps", "use_family_cap", "half_life_days")
    class FeaturesEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: float
        def __init__(self, key: _Optional[str] = ..., value: _Optional[float] = ...) -> None: ...
    class CapsEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: float
        def __init__(self, key: _Optional[str] = ..., value: _Optional[float] = ...) -> None: ...
    class HalfLifeDaysEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: float
        def __init__(self, key: _Optional[str] = ..., value: _Optional[float] = ...) -> None: ...
    FEATURES_FIELD_NUMBER: _ClassVar[int]
    CAPS_FIELD_NUMBER: _ClassVar[int]
    USE_FAMILY_CAP_FIELD_NUMBER: _ClassVar[int]
    HALF_LIFE_DAYS_FIELD_NUMBER: _ClassVar[int]
    features: _containers.ScalarMap[str, float]
    caps: _containers.ScalarMap[str, float]
    use_family_cap: float
    half_life_days: _containers.ScalarMap[str, float]
    def __init__(self, features: _Optional[_Mapping[str, float]] = ..., caps: _Optional[_Mapping[str, float]] = ..., use_family_cap: _Optional[float] = ..., half_life_days: _Optional[_Mapping[str, float]] = ...) -> None: ...

class WeightsChoice(_message.Message):
    __slots__ = ("preset", "model", "values")
    PRESET_FIELD_NUMBER: _ClassVar[int]
    MODEL_FIELD_NUMBER: _ClassVar[int]
    VALUES_FIELD_NUMBER: _ClassVar[int]
    preset: str
    model: str
    values: Weights
    def __init__(self, preset: _Optional[str] = ..., model: _Optional[str] = ..., values: _Optional[_Union[Weights, _Mapping]] = ...) -> None: ...

class Context(_message.Message):
    __slots__ = ("goals", "projects", "files")
    GOALS_FIELD_NUMBER: _ClassVar[int]
    PROJECTS_FIELD_NUMBER: _ClassVar[int]
    FILES_FIELD_NUMBER: _ClassVar[int]
    goals: _containers.RepeatedScalarFieldContainer[str]
    projects: _containers.RepeatedScalarFieldContainer[str]
    files: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, goals: _Optional[_Iterable[str]] = ..., projects: _Optional[_Iterable[str]] = ..., files: _Optional[_Iterable[str]] = ...) -> None: ...
