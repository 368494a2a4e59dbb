"""What can go wrong, as exceptions with a stable reason. One interceptor in `sidecar.rpc` turns them into statuses.

A message names the field, the value, the limit and the way out. `reason` is upper-snake-case, part of the API and
listed in docs/errors.md.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class FieldViolation:
    """One bad field: its path as in the proto, and what is wrong, with value and limit."""

    field: str
    description: str


class RankerError(Exception):
    """The root of all errors that a caller may see."""

    reason = "INTERNAL"

    def __init__(self, message: str, **metadata: str) -> None:
        super().__init__(message)
        self.message = message
        self.metadata: Mapping[str, str] = metadata


class InvalidRequestError(RankerError):
    """The request breaks the API's bounds. Carries every violation that was found."""

    reason = "INVALID_REQUEST"

    def __init__(self, violations: Sequence[FieldViolation]) -> None:
        first = violations[0]
        more = f" (and {len(violations) - 1} more)" if len(violations) > 1 else ""
        super().__init__(f"{first.field}: {first.description}{more}")
        self.violations = tuple(violations)


class NotFoundError(RankerError):
    """What was named is not there; also what another namespace owns."""

    reason = "NOT_FOUND"


class MemoryNotFoundError(NotFoundError):
    """No memory of that id in the namespace."""

    reason = "MEMORY_NOT_FOUND"


class PacketNotFoundError(NotFoundError):
    """No packet of that id, or it was pruned, or it is another namespace's."""

    reason = "PACKET_NOT_FOUND"


class RequestIdReusedError(RankerError):
    """The request_id was used within 24 hours for another request."""

    reason = "REQUEST_ID_REUSED"


class StreamIdReusedError(RequestIdReusedError):
    """The stream_id was used within 24 hours for other memories."""

    reason = "STREAM_ID_REUSED"


class UnknownWeightsError(RankerError):
    """The request names a preset or model that is not there."""

    reason = "UNKNOWN_WEIGHTS"


class ModelNotFoundError(NotFoundError):
    """No model of that version in the registry."""

    reason = "MODEL_NOT_FOUND"


class ModelRefusedError(RankerError):
    """A model that must not serve: damaged, made for other features, out of bounds, or scored otherwise here."""

    reason = "MODEL_REFUSED"

    def __init__(self, faults: Sequence[str]) -> None:
        super().__init__(f"the model is refused, and nothing has changed: {'; '.join(faults)}")
        self.faults = tuple(faults)


class ModelGatedError(RankerError):
    """The model is sound, and its gates keep it from serving, or leave it to a person."""

    reason = "MODEL_GATED"


class ImportanceOffError(RankerError):
    """Importances are not scored on this server."""

    reason = "IMPORTANCE_OFF"


class StoreNotFoundError(NotFoundError):
    """No store, backup or log at the path that was named."""

    reason = "STORE_NOT_FOUND"


class StoreFullError(RankerError):
    """The disk or the quota is full: writes are refused, ranking goes on."""

    reason = "STORE_FULL"


class StoreUnavailableError(RankerError):
    """The store cannot be opened or is closing. `str(error)` says which path and what to do."""

    reason = "STORE_UNAVAILABLE"


class StoreLockedError(StoreUnavailableError):
    """Another server owns the store or the socket."""

    reason = "STORE_LOCKED"


class SchemaTooNewError(StoreUnavailableError):
    """The store was written by a newer version of this program."""

    reason = "SCHEMA_TOO_NEW"


class StoreDamagedError(StoreUnavailableError):
    """The store's files are damaged."""

    reason = "STORE_DAMAGED"


class EmbedderMismatchError(StoreUnavailableError):
    """The store holds vectors of another embedder or dimension."""

    reason = "EMBEDDER_MISMATCH"


class NotReadyError(StoreUnavailableError):
    """The server is up and still loads what it needs."""

    reason = "NOT_READY"


class ListenError(RankerError):
    """The address to serve on cannot be had."""

    reason = "CANNOT_LISTEN"


class OverloadedError(RankerError):
    """Too much is waiting; try again after `retry_after` seconds."""

    reason = "OVERLOADED"

    def __init__(self, message: str, retry_after: float = 1.0) -> None:
        super().__init__(message)
        self.retry_after = retry_after


class BackupFailedError(RankerError):
    """The copy of a store could not be written."""

    reason = "BACKUP_FAILED"


class AnswerTooLargeError(RankerError):
    """The answer does not fit into a message."""

    reason = "ANSWER_TOO_LARGE"


class DeadlineExceededError(RankerError):
    """The caller's deadline passed between two stages; nothing more was done."""

    reason = "DEADLINE_EXCEEDED"


class SettingsError(RankerError):
    """A flag, an environment variable or the settings file is wrong. Carries every fault that was found, in words."""

    reason = "BAD_SETTINGS"

    def __init__(self, *faults: str) -> None:
        several = f"{len(faults)} faults:\n  " if len(faults) > 1 else ""
        super().__init__(several + "\n  ".join(faults))
        self.faults = faults


@dataclass(frozen=True, slots=True)
class Faults:
    """Collects what is wrong with settings while they are read, so that one error tells it all."""

    found: list[str] = field(default_factory=list)

    @contextmanager
    def noted(self) -> Iterator[None]:
        """Notes the faults of a SettingsError and goes on behind the block."""
        try:
            yield
        except SettingsError as error:
            self.found.extend(error.faults)

    def raise_if_any(self) -> None:
        """Raises SettingsError if anything was noted."""
        if self.found:
            raise SettingsError(*self.found)


@dataclass(frozen=True, slots=True)
class Violations:
    """Collects violations while a request is read, so that one answer lists them all."""

    found: list[FieldViolation] = field(default_factory=list)

    def add(self, path: str, description: str) -> None:
        """Notes that the field at `path` is wrong."""
        self.found.append(FieldViolation(path, description))

    def raise_if_any(self) -> None:
        """Raises InvalidRequestError if anything was noted."""
        if self.found:
            raise InvalidRequestError(self.found)
