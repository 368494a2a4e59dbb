"""ExportLog and ImportLog: the log and what memories have besides a caller's fields, as JSON Lines in and out."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

from google.protobuf.message import DecodeError
from memoryranker.v1 import admin_pb2, ranker_pb2

from sidecar.domain import Packet
from sidecar.errors import Violations
from sidecar.rpc.status import MESSAGE_BYTES, cut
from sidecar.rpc.validation import NAMESPACE_BYTES, check_text, read_time
from sidecar.store.log import LogRow
from sidecar.store.log_rows import read_row, write_row
from sidecar.store.store import Store

CHUNK_BYTES = 1 << 20
MOST_REJECTIONS = 1_000
NAMESPACES_AT_ONCE = 1_000


def export_log(store: Store, request: admin_pb2.ExportLogRequest) -> Iterator[admin_pb2.ExportLogResponse]:
    """The rows that were asked for, in pieces of about a megabyte. Raises InvalidRequestError."""
    bad = Violations()
    check_text(bad, "namespace", request.namespace, 0, NAMESPACE_BYTES)
    times = {
        name: read_time(bad, name, getattr(request, name))
        for name in ("from_time", "until_time")
        if request.HasField(name)
    }
    bad.raise_if_any()
    for namespace in [request.namespace] if request.namespace else _all(store):
        lines: list[bytes] = []
        size = 0
        for page in store.log_rows(namespace, **times):
            for row in page:
                line = write_row(namespace, row)
                if lines and size + len(line) > CHUNK_BYTES:
                    yield admin_pb2.ExportLogResponse(chunk=b"".join(lines), row_count=len(lines))
                    lines, size = [], 0
                lines.append(line)
                size += len(line)
        if lines:
            yield admin_pb2.ExportLogResponse(chunk=b"".join(lines), row_count=len(lines))


def import_log(store: Store, requests: Iterable[admin_pb2.ImportLogRequest]) -> admin_pb2.ImportLogResponse:
    """Takes rows in, message by message; a bad one is refused alone. Raises InvalidRequestError."""
    response = admin_pb2.ImportLogResponse()
    namespace: str | None = None
    line_number = 0
    for request in requests:
        if namespace is None:
            bad = Violations()
            check_text(bad, "namespace", request.namespace, 0, NAMESPACE_BYTES)
            bad.raise_if_any()
            namespace = request.namespace
        rows: dict[str, list[tuple[int, LogRow]]] = {}
        rejected: list[tuple[int, str]] = []
        for line in request.chunk.split(b"\n"):
            line_number += 1
            if not line.strip():
                continue
            try:
                owner, row = read_line(line, namespace)
            except ValueError as error:
                rejected.append((line_number, str(error)))
            else:
                rows.setdefault(owner, []).append((line_number, row))
        if request.chunk.endswith(b"\n"):
            line_number -= 1  # what follows the last line's end is no line
        for owner, of_owner in rows.items():
            outcome = store.take_log_rows(owner, of_owner)
            response.imported_count += outcome.imported
            response.known_count += outcome.known
            rejected += outcome.rejected
        response.rejected_count += len(rejected)
        for number, words in sorted(rejected)[: MOST_REJECTIONS - len(response.rejections)]:
            response.rejections.add(line=number, message=cut(words, MESSAGE_BYTES))
    return response


def read_line(line: bytes, namespace: str = "") -> tuple[str, LogRow]:
    """The namespace and the row of a line, as `read_row`; the request of a packet becomes one about its namespace."""
    owner, row = read_row(line, namespace)
    if isinstance(row, Packet):
        row = replace(row, payload=_of_namespace(row.payload, owner))
    return owner, row


def _of_namespace(payload: bytes, namespace: str) -> bytes:
    """The request that a packet answered, as one about the namespace that the packet now is in."""
    if not payload:
        return payload
    try:
        request = ranker_pb2.RankRequest.FromString(payload)
    except DecodeError as error:
        raise ValueError("request is no RankRequest") from error
    if request.namespace == namespace:
        return payload
    request.namespace = namespace
    return request.SerializeToString()


def _all(store: Store) -> Iterator[str]:
    after = ""
    while page := store.list_namespaces(after, NAMESPACES_AT_ONCE):
        yield from (each.namespace for each in page)
        after = page[-1].namespace
