"""What a failed call raises, with everything that the server said about it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import grpc
from google.rpc import error_details_pb2, status_pb2

_DETAILS_KEY = "grpc-status-details-bin"


@dataclass(frozen=True, slots=True)
class Violation:
    """One bad field: its path in the request, and what is wrong with it."""

    field: str
    description: str


class RankerRpcError(Exception):
    """A call that failed.

    `code` is the gRPC status code and `reason` the server's stable name for what went wrong, such as PACKET_NOT_FOUND;
    a failure on the way, without the server's word, has the code's name as its reason. `violations` lists the bad
    fields that fitted into the answer; `metadata["violations_total"]` counts them all. `retry_after` is in seconds, or
    None.
    """

    def __init__(
        self,
        code: grpc.StatusCode,
        message: str,
        *,
        reason: str = "",
        violations: tuple[Violation, ...] = (),
        metadata: Mapping[str, str] | None = None,
        retry_after: float | None = None,
    ) -> None:
        more = [f"{each.field}: {each.description}" for each in violations] if len(violations) > 1 else []
        super().__init__("\n  ".join([f"{reason or code.name}: {message}", *more]))
        self.code = code
        self.reason = reason or code.name
        self.message = message
        self.violations = violations
        self.metadata: Mapping[str, str] = metadata or {}
        self.retry_after = retry_after


def from_rpc_error(error: grpc.RpcError, address: str) -> RankerRpcError:
    """Reads the status and its google.rpc details. `address` is named where nothing answered."""
    code: grpc.StatusCode = error.code()
    message: str = error.details() or ""
    reason = ""
    violations: list[Violation] = []
    metadata: dict[str, str] = {}
    retry_after: float | None = None
    for detail in _details(error):
        if detail.Is(error_details_pb2.ErrorInfo.DESCRIPTOR):
            info = error_details_pb2.ErrorInfo()
            detail.Unpack(info)
            reason, metadata = info.reason, dict(info.metadata)
        elif detail.Is(error_details_pb2.BadRequest.DESCRIPTOR):
            bad = error_details_pb2.BadRequest()
            detail.Unpack(bad)
            violations = [Violation(each.field, each.description) for each in bad.field_violations]
        elif detail.Is(error_details_pb2.RetryInfo.DESCRIPTOR):
            retry = error_details_pb2.RetryInfo()
            detail.Unpack(retry)
            retry_after = retry.retry_delay.seconds + retry.retry_delay.nanos / 1e9
    if code is grpc.StatusCode.UNAVAILABLE and not reason:
        # gRPC names the address once for each layer, and last of all what is wrong.
        message = f"no answer from {address}: is `memory-ranker serve` running there? ({message.rpartition(': ')[2]})"
    return RankerRpcError(
        code, message, reason=reason, violations=tuple(violations), metadata=metadata, retry_after=retry_after
    )


def _details(error: grpc.RpcError) -> list[Any]:
    for entry in error.trailing_metadata() or ():
        if entry.key == _DETAILS_KEY:
            return list(status_pb2.Status.FromString(entry.value).details)
    return []
