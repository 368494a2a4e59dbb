import datetime

from google.protobuf import duration_pb2 as _duration_pb2
from google.protobuf import timestamp_pb2 as _timestamp_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class AuditVerdict(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    AUDIT_VERDICT_UNSPECIFIED: _ClassVar[AuditVerdict]
    AUDIT_VERDICT_STARVING: _ClassVar[AuditVerdict]
    AUDIT_VERDICT_POSITION_BIAS: _ClassVar[AuditVerdict]
    AUDIT_VERDICT_FLAT_FORMULA: _ClassVar[AuditVerdict]
    AUDIT_VERDICT_STALE_CACHE: _ClassVar[AuditVerdict]
    AUDIT_VERDICT_HEALTHY: _ClassVar[AuditVerdict]
    AUDIT_VERDICT_TOO_LITTLE: _ClassVar[AuditVerdict]

class Evidence(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    EVIDENCE_UNSPECIFIED: _ClassVar[Evidence]
    EVIDENCE_INSUFFICIENT: _ClassVar[Evidence]
    EVIDENCE_NONE: _ClassVar[Evidence]
    EVIDENCE_LOWER: _ClassVar[Evidence]
    EVIDENCE_HIGHER: _ClassVar[Evidence]

class ModelRole(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    MODEL_ROLE_UNSPECIFIED: _ClassVar[ModelRole]
    MODEL_ROLE_ACTIVE: _ClassVar[ModelRole]
    MODEL_ROLE_SHADOW: _ClassVar[ModelRole]
    MODEL_ROLE_CANARY: _ClassVar[ModelRole]
    MODEL_ROLE_RETIRED: _ClassVar[ModelRole]

class ModelAction(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    MODEL_ACTION_UNSPECIFIED: _ClassVar[ModelAction]
    MODEL_ACTION_PROMOTED: _ClassVar[ModelAction]
    MODEL_ACTION_FORCED: _ClassVar[ModelAction]
    MODEL_ACTION_ROLLED_BACK: _ClassVar[ModelAction]
    MODEL_ACTION_STOPPED: _ClassVar[ModelAction]
AUDIT_VERDICT_UNSPECIFIED: AuditVerdict
AUDIT_VERDICT_STARVING: AuditVerdict
AUDIT_VERDICT_POSITION_BIAS: AuditVerdict
AUDIT_VERDICT_FLAT_FORMULA: AuditVerdict
AUDIT_VERDICT_STALE_CACHE: AuditVerdict
AUDIT_VERDICT_HEALTHY: AuditVerdict
AUDIT_VERDICT_TOO_LITTLE: AuditVerdict
EVIDENCE_UNSPECIFIED: Evidence
EVIDENCE_INSUFFICIENT: Evidence
EVIDENCE_NONE: Evidence
EVIDENCE_LOWER: Evidence
EVIDENCE_HIGHER: Evidence
MODEL_ROLE_UNSPECIFIED: ModelRole
MODEL_ROLE_ACTIVE: ModelRole
MODEL_ROLE_SHADOW: ModelRole
MODEL_ROLE_CANARY: ModelRole
MODEL_ROLE_RETIRED: ModelRole
MODEL_ACTION_UNSPECIFIED: ModelAction
MODEL_ACTION_PROMOTED: ModelAction
MODEL_ACTION_FORCED: ModelAction
MODEL_ACTION_ROLLED_BACK: ModelAction
MODEL_ACTION_STOPPED: ModelAction

class GetStatusRequest(_message.Message):
    __slots__ = ("namespace",)
    NAMESPACE_FIELD_NUMBER: _ClassVar[int]
    namespace: str
    def __init__(self, namespace: _Optional[str] = ...) -> None: ...

class GetStatusResponse(_message.Message):
    __slots__ = ("server_version", "start_time", "schema_version", "embedder", "dimension", "model_version", "feature_schema_hash", "feature_names", "memory_count", "namespace_count", "packet_count", "reported_packet_count", "store_bytes", "namespace", "problems", "presets", "log_bytes_per_day", "listen", "canary_version", "canary_share", "shadow_version")
    SERVER_VERSION_FIELD_NUMBER: _ClassVar[int]
    START_TIME_FIELD_NUMBER: _ClassVar[int]
    SCHEMA_VERSION_FIELD_NUMBER: _ClassVar[int]
    EMBEDDER_FIELD_NUMBER: _ClassVar[int]
    DIMENSION_FIELD_NUMBER: _ClassVar[int]
    MODEL_VERSION_FIELD_NUMBER: _ClassVar[int]
    FEATURE_SCHEMA_HASH_FIELD_NUMBER: _ClassVar[int]
    FEATURE_NAMES_FIELD_NUMBER: _ClassVar[int]
    MEMORY_COUNT_FIELD_NUMBER: _ClassVar[int]
    NAMESPACE_COUNT_FIELD_NUMBER: _ClassVar[int]
    PACKET_COUNT_FIELD_NUMBER: _ClassVar[int]
    REPORTED_PACKET_COUNT_FIELD_NUMBER: _ClassVar[int]
    STORE_BYTES_FIELD_NUMBER: _ClassVar[int]
    NAMESPACE_FIELD_NUMBER: _ClassVar[int]
    PROBLEMS_FIELD_NUMBER: _ClassVar[int]
    PRESETS_FIELD_NUMBER: _ClassVar[int]
    LOG_BYTES_PER_DAY_FIELD_NUMBER: _ClassVar[int]
    LISTEN_FIELD_NUMBER: _ClassVar[int]
    CANARY_VERSION_FIELD_NUMBER: _ClassVar[int]
    CANARY_SHARE_FIELD_NUMBER: _ClassVar[int]
    SHADOW_VERSION_FIELD_NUMBER: _ClassVar[int]
    server_version: str
    start_time: _timestamp_pb2.Timestamp
    schema_version: int
    embedder: str
    dimension: int
    model_version: str
    feature_schema_hash: str
    feature_names: _containers.RepeatedScalarFieldContainer[str]
    memory_count: int
    namespace_count: int
    packet_count: int
    reported_packet_count: int
    store_bytes: int
    namespace: NamespaceStatus
    problems: _containers.RepeatedScalarFieldContainer[str]
    presets: _containers.RepeatedScalarFieldContainer[str]
    log_bytes_per_day: int
    listen: str
    canary_version: str
    canary_share: float
    shadow_version: str
    def __init__(self, server_version: _Optional[str] = ..., start_time: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., schema_version: _Optional[int] = ..., embedder: _Optional[str] = ..., dimension: _Optional[int] = ..., model_version: _Optional[str] = ..., feature_schema_hash: _Optional[str] = ..., feature_names: _Optional[_Iterable[str]] = ..., memory_count: _Optional[int] = ..., namespace_count: _Optional[int] = ..., packet_count: _Optional[int] = ..., reported_packet_count: _Optional[int] = ..., store_bytes: _Optional[int] = ..., namespace: _Optional[_Union[NamespaceStatus, _Mapping]] = ..., problems: _Optional[_Iterable[str]] = ..., presets: _Optional[_Iterable[str]] = ..., log_bytes_per_day: _Optional[int] = ..., listen: _Optional[str] = ..., canary_version: _Optional[str] = ..., canary_share: _Optional[float] = ..., shadow_version: _Optional[str] = ...) -> None: ...

class NamespaceStatus(_message.Message):
    __slots__ = ("namespace", "memory_count", "score_version", "packet_count", "reported_packet_count", "unscored_count")
    NAMESPACE_FIELD_NUMBER: _ClassVar[int]
    MEMORY_COUNT_FIELD_NUMBER: _ClassVar[int]
    SCORE_VERSION_FIELD_NUMBER: _ClassVar[int]
    PACKET_COUNT_FIELD_NUMBER: _ClassVar[int]
    REPORTED_PACKET_COUNT_FIELD_NUMBER: _ClassVar[int]
    UNSCORED_COUNT_FIELD_NUMBER: _ClassVar[int]
    namespace: str
    memory_count: int
    score_version: int
    packet_count: int
    reported_packet_count: int
    unscored_count: int
    def __init__(self, namespace: _Optional[str] = ..., memory_count: _Optional[int] = ..., score_version: _Optional[int] = ..., packet_count: _Optional[int] = ..., reported_packet_count: _Optional[int] = ..., unscored_count: _Optional[int] = ...) -> None: ...

class AuditRequest(_message.Message):
    __slots__ = ("namespace", "window", "importance")
    NAMESPACE_FIELD_NUMBER: _ClassVar[int]
    WINDOW_FIELD_NUMBER: _ClassVar[int]
    IMPORTANCE_FIELD_NUMBER: _ClassVar[int]
    namespace: str
    window: _duration_pb2.Duration
    importance: bool
    def __init__(self, namespace: _Optional[str] = ..., window: _Optional[_Union[datetime.timedelta, _duration_pb2.Duration, _Mapping]] = ..., importance: bool = ...) -> None: ...

class ImportanceRun(_message.Message):
    __slots__ = ("run_id", "time", "moved_count", "before", "after")
    RUN_ID_FIELD_NUMBER: _ClassVar[int]
    TIME_FIELD_NUMBER: _ClassVar[int]
    MOVED_COUNT_FIELD_NUMBER: _ClassVar[int]
    BEFORE_FIELD_NUMBER: _ClassVar[int]
    AFTER_FIELD_NUMBER: _ClassVar[int]
    run_id: str
    time: _timestamp_pb2.Timestamp
    moved_count: int
    before: float
    after: float
    def __init__(self, run_id: _Optional[str] = ..., time: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., moved_count: _Optional[int] = ..., before: _Optional[float] = ..., after: _Optional[float] = ...) -> None: ...

class ImportanceTrend(_message.Message):
    __slots__ = ("namespace", "runs", "memory_count", "move", "low", "high", "evidence")
    NAMESPACE_FIELD_NUMBER: _ClassVar[int]
    RUNS_FIELD_NUMBER: _ClassVar[int]
    MEMORY_COUNT_FIELD_NUMBER: _ClassVar[int]
    MOVE_FIELD_NUMBER: _ClassVar[int]
    LOW_FIELD_NUMBER: _ClassVar[int]
    HIGH_FIELD_NUMBER: _ClassVar[int]
    EVIDENCE_FIELD_NUMBER: _ClassVar[int]
    namespace: str
    runs: _containers.RepeatedCompositeFieldContainer[ImportanceRun]
    memory_count: int
    move: float
    low: float
    high: float
    evidence: Evidence
    def __init__(self, namespace: _Optional[str] = ..., runs: _Optional[_Iterable[_Union[ImportanceRun, _Mapping]]] = ..., memory_count: _Optional[int] = ..., move: _Optional[float] = ..., low: _Optional[float] = ..., high: _Optional[float] = ..., evidence: _Optional[_Union[Evidence, str]] = ...) -> None: ...

class ImportanceGap(_message.Message):
    __slots__ = ("dimension", "group", "memory_count", "gap", "low", "high", "evidence")
    DIMENSION_FIELD_NUMBER: _ClassVar[int]
    GROUP_FIELD_NUMBER: _ClassVar[int]
    MEMORY_COUNT_FIELD_NUMBER: _ClassVar[int]
    GAP_FIELD_NUMBER: _ClassVar[int]
    LOW_FIELD_NUMBER: _ClassVar[int]
    HIGH_FIELD_NUMBER: _ClassVar[int]
    EVIDENCE_FIELD_NUMBER: _ClassVar[int]
    dimension: str
    group: str
    memory_count: int
    gap: float
    low: float
    high: float
    evidence: Evidence
    def __init__(self, dimension: _Optional[str] = ..., group: _Optional[str] = ..., memory_count: _Optional[int] = ..., gap: _Optional[float] = ..., low: _Optional[float] = ..., high: _Optional[float] = ..., evidence: _Optional[_Union[Evidence, str]] = ...) -> None: ...

class AuditFigure(_message.Message):
    __slots__ = ("name", "about", "value")
    NAME_FIELD_NUMBER: _ClassVar[int]
    ABOUT_FIELD_NUMBER: _ClassVar[int]
    VALUE_FIELD_NUMBER: _ClassVar[int]
    name: str
    about: str
    value: float
    def __init__(self, name: _Optional[str] = ..., about: _Optional[str] = ..., value: _Optional[float] = ...) -> None: ...

class AuditResponse(_message.Message):
    __slots__ = ("verdict", "findings", "figures", "importance_trends", "importance_gaps")
    VERDICT_FIELD_NUMBER: _ClassVar[int]
    FINDINGS_FIELD_NUMBER: _ClassVar[int]
    FIGURES_FIELD_NUMBER: _ClassVar[int]
    IMPORTANCE_TRENDS_FIELD_NUMBER: _ClassVar[int]
    IMPORTANCE_GAPS_FIELD_NUMBER: _ClassVar[int]
    verdict: AuditVerdict
    findings: _containers.RepeatedScalarFieldContainer[str]
    figures: _containers.RepeatedCompositeFieldContainer[AuditFigure]
    importance_trends: _containers.RepeatedCompositeFieldContainer[ImportanceTrend]
    importance_gaps: _containers.RepeatedCompositeFieldContainer[ImportanceGap]
    def __init__(self, verdict: _Optional[_Union[AuditVerdict, str]] = ..., findings: _Optional[_Iterable[str]] = ..., figures: _Optional[_Iterable[_Union[AuditFigure, _Mapping]]] = ..., importance_trends: _Optional[_Iterable[_Union[ImportanceTrend, _Mapping]]] = ..., importance_gaps: _Optional[_Iterable[_Union[ImportanceGap, _Mapping]]] = ...) -> None: ...

class Model(_message.Message):
    __slots__ = ("version", "role", "canary_share", "create_time", "role_time", "form", "force_reason", "load_time", "base_version", "preview", "promote_gate", "problem")
    VERSION_FIELD_NUMBER: _ClassVar[int]
    ROLE_FIELD_NUMBER: _ClassVar[int]
    CANARY_SHARE_FIELD_NUMBER: _ClassVar[int]
    CREATE_TIME_FIELD_NUMBER: _ClassVar[int]
    ROLE_TIME_FIELD_NUMBER: _ClassVar[int]
    FORM_FIELD_NUMBER: _ClassVar[int]
    FORCE_REASON_FIELD_NUMBER: _ClassVar[int]
    LOAD_TIME_FIELD_NUMBER: _ClassVar[int]
    BASE_VERSION_FIELD_NUMBER: _ClassVar[int]
    PREVIEW_FIELD_NUMBER: _ClassVar[int]
    PROMOTE_GATE_FIELD_NUMBER: _ClassVar[int]
    PROBLEM_FIELD_NUMBER: _ClassVar[int]
    version: str
    role: ModelRole
    canary_share: float
    create_time: _timestamp_pb2.Timestamp
    role_time: _timestamp_pb2.Timestamp
    form: str
    force_reason: str
    load_time: _timestamp_pb2.Timestamp
    base_version: str
    preview: bool
    promote_gate: str
    problem: str
    def __init__(self, version: _Optional[str] = ..., role: _Optional[_Union[ModelRole, str]] = ..., canary_share: _Optional[float] = ..., create_time: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., role_time: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., form: _Optional[str] = ..., force_reason: _Optional[str] = ..., load_time: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., base_version: _Optional[str] = ..., preview: bool = ..., promote_gate: _Optional[str] = ..., problem: _Optional[str] = ...) -> None: ...

class ModelEvent(_message.Message):
    __slots__ = ("time", "role", "version", "action", "canary_share", "reason")
    TIME_FIELD_NUMBER: _ClassVar[int]
    ROLE_FIELD_NUMBER: _ClassVar[int]
    VERSION_FIELD_NUMBER: _ClassVar[int]
    ACTION_FIELD_NUMBER: _ClassVar[int]
    CANARY_SHARE_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    time: _timestamp_pb2.Timestamp
    role: ModelRole
    version: str
    action: ModelAction
    canary_share: float
    reason: str
    def __init__(self, time: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., role: _Optional[_Union[ModelRole, str]] = ..., version: _Optional[str] = ..., action: _Optional[_Union[ModelAction, str]] = ..., canary_share: _Optional[float] = ..., reason: _Optional[str] = ...) -> None: ...

class ListModelsRequest(_message.Message):
    __slots__ = ("page_size", "page_token")
    PAGE_SIZE_FIELD_NUMBER: _ClassVar[int]
    PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    page_size: int
    page_token: str
    def __init__(self, page_size: _Optional[int] = ..., page_token: _Optional[str] = ...) -> None: ...

class ListModelsResponse(_message.Message):
    __slots__ = ("models", "next_page_token", "events")
    MODELS_FIELD_NUMBER: _ClassVar[int]
    NEXT_PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    EVENTS_FIELD_NUMBER: _ClassVar[int]
    models: _containers.RepeatedCompositeFieldContainer[Model]
    next_page_token: str
    events: _containers.RepeatedCompositeFieldContainer[ModelEvent]
    def __init__(self, models: _Optional[_Iterable[_Union[Model, _Mapping]]] = ..., next_page_token: _Optional[str] = ..., events: _Optional[_Iterable[_Union[ModelEvent, _Mapping]]] = ...) -> None: ...

class GetModelRequest(_message.Message):
    __slots__ = ("version",)
    VERSION_FIELD_NUMBER: _ClassVar[int]
    version: str
    def __init__(self, version: _Optional[str] = ...) -> None: ...

class GetModelResponse(_message.Message):
    __slots__ = ("model", "archive")
    MODEL_FIELD_NUMBER: _ClassVar[int]
    ARCHIVE_FIELD_NUMBER: _ClassVar[int]
    model: Model
    archive: bytes
    def __init__(self, model: _Optional[_Union[Model, _Mapping]] = ..., archive: _Optional[bytes] = ...) -> None: ...

class LoadModelRequest(_message.Message):
    __slots__ = ("path", "archive", "role", "canary_share", "validate_only", "force_reason", "version", "by_person")
    PATH_FIELD_NUMBER: _ClassVar[int]
    ARCHIVE_FIELD_NUMBER: _ClassVar[int]
    ROLE_FIELD_NUMBER: _ClassVar[int]
    CANARY_SHARE_FIELD_NUMBER: _ClassVar[int]
    VALIDATE_ONLY_FIELD_NUMBER: _ClassVar[int]
    FORCE_REASON_FIELD_NUMBER: _ClassVar[int]
    VERSION_FIELD_NUMBER: _ClassVar[int]
    BY_PERSON_FIELD_NUMBER: _ClassVar[int]
    path: str
    archive: bytes
    role: ModelRole
    canary_share: float
    validate_only: bool
    force_reason: str
    version: str
    by_person: bool
    def __init__(self, path: _Optional[str] = ..., archive: _Optional[bytes] = ..., role: _Optional[_Union[ModelRole, str]] = ..., canary_share: _Optional[float] = ..., validate_only: bool = ..., force_reason: _Optional[str] = ..., version: _Optional[str] = ..., by_person: bool = ...) -> None: ...

class LoadModelResponse(_message.Message):
    __slots__ = ("model", "checks")
    MODEL_FIELD_NUMBER: _ClassVar[int]
    CHECKS_FIELD_NUMBER: _ClassVar[int]
    model: Model
    checks: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, model: _Optional[_Union[Model, _Mapping]] = ..., checks: _Optional[_Iterable[str]] = ...) -> None: ...

class RollbackModelRequest(_message.Message):
    __slots__ = ("version", "reason")
    VERSION_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    version: str
    reason: str
    def __init__(self, version: _Optional[str] = ..., reason: _Optional[str] = ...) -> None: ...

class RollbackModelResponse(_message.Message):
    __slots__ = ("model",)
    MODEL_FIELD_NUMBER: _ClassVar[int]
    model: Model
    def __init__(self, model: _Optional[_Union[Model, _Mapping]] = ...) -> None: ...

class RescoreRequest(_message.Message):
    __slots__ = ("namespace", "apply")
    NAMESPACE_FIELD_NUMBER: _ClassVar[int]
    APPLY_FIELD_NUMBER: _ClassVar[int]
    namespace: str
    apply: bool
    def __init__(self, namespace: _Optional[str] = ..., apply: bool = ...) -> None: ...

class ScoreMove(_message.Message):
    __slots__ = ("namespace", "memory_id", "from_score", "to_score", "reason")
    NAMESPACE_FIELD_NUMBER: _ClassVar[int]
    MEMORY_ID_FIELD_NUMBER: _ClassVar[int]
    FROM_SCORE_FIELD_NUMBER: _ClassVar[int]
    TO_SCORE_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    namespace: str
    memory_id: str
    from_score: float
    to_score: float
    reason: str
    def __init__(self, namespace: _Optional[str] = ..., memory_id: _Optional[str] = ..., from_score: _Optional[float] = ..., to_score: _Optional[float] = ..., reason: _Optional[str] = ...) -> None: ...

class RescoreResponse(_message.Message):
    __slots__ = ("run_id", "memory_count", "moved_count", "moves")
    RUN_ID_FIELD_NUMBER: _ClassVar[int]
    MEMORY_COUNT_FIELD_NUMBER: _ClassVar[int]
    MOVED_COUNT_FIELD_NUMBER: _ClassVar[int]
    MOVES_FIELD_NUMBER: _ClassVar[int]
    run_id: str
    memory_count: int
    moved_count: int
    moves: _containers.RepeatedCompositeFieldContainer[ScoreMove]
    def __init__(self, run_id: _Optional[str] = ..., memory_count: _Optional[int] = ..., moved_count: _Optional[int] = ..., moves: _Optional[_Iterable[_Union[ScoreMove, _Mapping]]] = ...) -> None: ...

class RestoreScoresRequest(_message.Message):
    __slots__ = ("run_id",)
    RUN_ID_FIELD_NUMBER: _ClassVar[int]
    run_id: str
    def __init__(self, run_id: _Optional[str] = ...) -> None: ...

class RestoreScoresResponse(_message.Message):
    __slots__ = ("restored_count",)
    RESTORED_COUNT_FIELD_NUMBER: _ClassVar[int]
    restored_count: int
    def __init__(self, restored_count: _Optional[int] = ...) -> None: ...

class ReindexRequest(_message.Message):
    __slots__ = ("namespace", "embedder")
    NAMESPACE_FIELD_NUMBER: _ClassVar[int]
    EMBEDDER_FIELD_NUMBER: _ClassVar[int]
    namespace: str
    embedder: str
    def __init__(self, namespace: _Optional[str] = ..., embedder: _Optional[str] = ...) -> None: ...

class ReindexResponse(_message.Message):
    __slots__ = ("done_count", "total_count")
    DONE_COUNT_FIELD_NUMBER: _ClassVar[int]
    TOTAL_COUNT_FIELD_NUMBER: _ClassVar[int]
    done_count: int
    total_count: int
    def __init__(self, done_count: _Optional[int] = ..., total_count: _Optional[int] = ...) -> None: ...

class PruneRequest(_message.Message):
    __slots__ = ("namespace", "older_than", "max_bytes", "dry_run")
    NAMESPACE_FIELD_NUMBER: _ClassVar[int]
    OLDER_THAN_FIELD_NUMBER: _ClassVar[int]
    MAX_BYTES_FIELD_NUMBER: _ClassVar[int]
    DRY_RUN_FIELD_NUMBER: _ClassVar[int]
    namespace: str
    older_than: _duration_pb2.Duration
    max_bytes: int
    dry_run: bool
    def __init__(self, namespace: _Optional[str] = ..., older_than: _Optional[_Union[datetime.timedelta, _duration_pb2.Duration, _Mapping]] = ..., max_bytes: _Optional[int] = ..., dry_run: bool = ...) -> None: ...

class PruneResponse(_message.Message):
    __slots__ = ("packet_count", "report_count", "freed_bytes")
    PACKET_COUNT_FIELD_NUMBER: _ClassVar[int]
    REPORT_COUNT_FIELD_NUMBER: _ClassVar[int]
    FREED_BYTES_FIELD_NUMBER: _ClassVar[int]
    packet_count: int
    report_count: int
    freed_bytes: int
    def __init__(self, packet_count: _Optional[int] = ..., report_count: _Optional[int] = ..., freed_bytes: _Optional[int] = ...) -> None: ...

class ExportLogRequest(_message.Message):
    __slots__ = ("namespace", "from_time", "until_time")
    NAMESPACE_FIELD_NUMBER: _ClassVar[int]
    FROM_TIME_FIELD_NUMBER: _ClassVar[int]
    UNTIL_TIME_FIELD_NUMBER: _ClassVar[int]
    namespace: str
    from_time: _timestamp_pb2.Timestamp
    until_time: _timestamp_pb2.Timestamp
    def __init__(self, namespace: _Optional[str] = ..., from_time: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., until_time: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ...) -> None: ...

class ExportLogResponse(_message.Message):
    __slots__ = ("chunk", "row_count")
    CHUNK_FIELD_NUMBER: _ClassVar[int]
    ROW_COUNT_FIELD_NUMBER: _ClassVar[int]
    chunk: bytes
    row_count: int
    def __init__(self, chunk: _Optional[bytes] = ..., row_count: _Optional[int] = ...) -> None: ...

class ImportLogRequest(_message.Message):
    __slots__ = ("chunk", "namespace")
    CHUNK_FIELD_NUMBER: _ClassVar[int]
    NAMESPACE_FIELD_NUMBER: _ClassVar[int]
    chunk: bytes
    namespace: str
    def __init__(self, chunk: _Optional[bytes] = ..., namespace: _Optional[str] = ...) -> None: ...

class ImportLogResponse(_message.Message):
    __slots__ = ("imported_count", "known_count", "rejections", "rejected_count")
    IMPORTED_COUNT_FIELD_NUMBER: _ClassVar[int]
    KNOWN_COUNT_FIELD_NUMBER: _ClassVar[int]
    REJECTIONS_FIELD_NUMBER: _ClassVar[int]
    REJECTED_COUNT_FIELD_NUMBER: _ClassVar[int]
    imported_count: int
    known_count: int
    rejections: _containers.RepeatedCompositeFieldContainer[LogRejection]
    rejected_count: int
    def __init__(self, imported_count: _Optional[int] = ..., known_count: _Optional[int] = ..., rejections: _Optional[_Iterable[_Union[LogRejection, _Mapping]]] = ..., rejected_count: _Optional[int] = ...) -> None: ...

class LogRejection(_message.Message):
    __slots__ = ("line", "message")
    LINE_FIELD_NUMBER: _ClassVar[int]
    MESSAGE_FIELD_NUMBER: _ClassVar[int]
    line: int
    message: str
    def __init__(self, line: _Optional[int] = ..., message: _Optional[str] = ...) -> None: ...

class PurgeNamespaceRequest(_message.Message):
    __slots__ = ("namespace", "confirm_namespace")
    NAMESPACE_FIELD_NUMBER: _ClassVar[int]
    CONFIRM_NAMESPACE_FIELD_NUMBER: _ClassVar[int]
    namespace: str
    confirm_namespace: str
    def __init__(self, namespace: _Optional[str] = ..., confirm_namespace: _Optional[str] = ...) -> None: ...

class PurgeNamespaceResponse(_message.Message):
    __slots__ = ("memory_count", "packet_count")
    MEMORY_COUNT_FIELD_NUMBER: _ClassVar[int]
    PACKET_COUNT_FIELD_NUMBER: _ClassVar[int]
    memory_count: int
    packet_count: int
    def __init__(self, memory_count: _Optional[int] = ..., packet_count: _Optional[int] = ...) -> None: ...

class BackupRequest(_message.Message):
    __slots__ = ("path",)
    PATH_FIELD_NUMBER: _ClassVar[int]
    path: str
    def __init__(self, path: _Optional[str] = ...) -> None: ...

class BackupResponse(_message.Message):
    __slots__ = ("byte_count", "snapshot_time")
    BYTE_COUNT_FIELD_NUMBER: _ClassVar[int]
    SNAPSHOT_TIME_FIELD_NUMBER: _ClassVar[int]
    byte_count: int
    snapshot_time: _timestamp_pb2.Timestamp
    def __init__(self, byte_count: _Optional[int] = ..., snapshot_time: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ...) -> None: ...
