"""Turns errors into gRPC statuses with google.rpc details, small enough for every client's trailers.

A status with its details stays under 4 KiB, and 6 KiB on the wire: clients break at 8.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Never

import grpc
from google.protobuf.any_pb2 import Any as AnyMessage
from google.protobuf.duration_pb2 import Duration
from google.protobuf.message import Message
from google.rpc import error_details_pb2, status_pb2

from sidecar import errors

DOMAIN = "memoryranker"
DETAILS_BYTES = 4_096
ITEM_BYTES = 1_024
"""For the status of one memory in a batch of a thousand, all of which go into one message."""
MESSAGE_BYTES = 512
"""Every byte that is not ASCII takes three in the header, so a message in Chinese is 1.5 KiB there."""

Code = grpc.StatusCode

_CODES: tuple[tuple[type[errors.RankerError], grpc.StatusCode], ...] = (
    (errors.InvalidRequestError, Code.INVALID_ARGUMENT),
    (errors.NotFoundError, Code.NOT_FOUND),
    (errors.UnknownWeightsError, Code.NOT_FOUND),
    (errors.RequestIdReusedError, Code.ALREADY_EXISTS),
    (errors.StoreFullError, Code.RESOURCE_EXHAUSTED),
    (errors.OverloadedError, Code.RESOURCE_EXHAUSTED),
    (errors.AnswerTooLargeError, Code.RESOURCE_EXHAUSTED),
    (errors.DeadlineExceededError, Code.DEADLINE_EXCEEDED),
    (errors.ModelRefusedError, Code.FAILED_PRECONDITION),
    (errors.ModelGatedError, Code.FAILED_PRECONDITION),
    (errors.BackupFailedError, Code.FAILED_PRECONDITION),
    (errors.ImportanceOffError, Code.FAILED_PRECONDITION),
    (errors.StoreDamagedError, Code.DATA_LOSS),
    (errors.SchemaTooNewError, Code.FAILED_PRECONDITION),
    (errors.EmbedderMismatchError, Code.FAILED_PRECONDITION),
    (errors.StoreUnavailableError, Code.UNAVAILABLE),
)


def status_of(error: errors.RankerError, room: int = DETAILS_BYTES) -> status_pb2.Status:
    """The status of an error that a caller may see, with as many violations as fit into `room` bytes."""
    code = next((code for kind, code in _CODES if isinstance(error, kind)), Code.INTERNAL)
    metadata = dict(error.metadata)
    details: list[Message] = []
    if isinstance(error, errors.OverloadedError):
        seconds = int(error.retry_after)
        delay = Duration(seconds=seconds, nanos=int((error.retry_after - seconds) * 1e9))
        details.append(error_details_pb2.RetryInfo(retry_delay=delay))
    violations: Sequence[errors.FieldViolation] = ()
    if isinstance(error, errors.InvalidRequestError):
        violations = error.violations
        metadata["violations_total"] = str(len(violations))
    return make_status(code, error.message, error.reason, metadata, details, violations, room)


def make_status(
    code: grpc.StatusCode,
    message: str,
    reason: str,
    metadata: Mapping[str, str] | None = None,
    details: Sequence[Message] = (),
    violations: Sequence[errors.FieldViolation] = (),
    room: int = DETAILS_BYTES,
) -> status_pb2.Status:
    """A status with ErrorInfo, the given details, and as many violations as fit into `room` bytes."""
    info = error_details_pb2.ErrorInfo(
        reason=reason, domain=DOMAIN, metadata={key: cut(value, 256) for key, value in (metadata or {}).items()}
    )
    status = status_pb2.Status(code=code.value[0], message=cut(message, MESSAGE_BYTES))
    for detail in (info, *details):
        status.details.append(_packed(detail))
    if violations:
        bad = error_details_pb2.BadRequest()
        for each in violations:
            bad.field_violations.add(field=cut(each.field, 256), description=cut(each.description, 512))
            # The Any around it names its type: some 60 bytes.
            if status.ByteSize() + bad.ByteSize() + 80 > room:
                del bad.field_violations[-1]
                break
        status.details.append(_packed(bad))
    return status


def abort(context: grpc.ServicerContext, status: status_pb2.Status) -> Never:
    """Ends a call with a status, by raising what grpc raises for that."""
    context.set_trailing_metadata((("grpc-status-details-bin", status.SerializeToString()),))
    context.abort(_BY_NUMBER[status.code], status.message)


def code_name(status: status_pb2.Status) -> str:
    """The name of its code, as UNAVAILABLE."""
    return _BY_NUMBER[status.code].name


def reason_of(status: status_pb2.Status) -> str:
    """The reason in its ErrorInfo, which every status of ours begins with."""
    info = error_details_pb2.ErrorInfo()
    status.details[0].Unpack(info)
    return info.reason


def cut(text: str, most: int) -> str:
    """`text` in at most `most` bytes of UTF-8, between characters, with an ellipsis where something is gone."""
    data = text.encode()
    return text if len(data) <= most else data[: most - 3].decode(errors="ignore") + "…"


_BY_NUMBER = {code.value[0]: code for code in grpc.StatusCode}


def _packed(message: Message) -> AnyMessage:
    packed = AnyMessage()
    packed.Pack(message)
    return packed
