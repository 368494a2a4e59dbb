"""Makes a retry of a request be answered as the request itself was, byte for byte."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from typing import Any, TypeVar

from sidecar.store.requests import Once, Replayed

Response = TypeVar("Response")


def payload_hash(request: Any) -> bytes:
    """SHA-256 of a request without its request_id. The request is left as it was."""
    request_id = request.request_id
    request.ClearField("request_id")
    data: bytes = request.SerializeToString(deterministic=True)
    request.request_id = request_id
    return hashlib.sha256(data).digest()


def once_of(method: str, request: Any, write: Callable[[Any], Any]) -> Once | None:
    """How the store tells a retry, and keeps what `write` makes of a result; None for a request without an id."""
    if not request.request_id:
        return None
    return Once(method, request.request_id, payload_hash(request), lambda done: write(done).SerializeToString())


def answer_of(kind: type[Response], done: Any, write: Callable[[Any], Response]) -> Response:
    """The answer, written now or read back."""
    if isinstance(done, Replayed):
        return kind.FromString(done.response)  # type: ignore[attr-defined, no-any-return]
    return write(done)
