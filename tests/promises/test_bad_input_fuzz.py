"""Whatever a request holds, on every method: the answer is a status that blames the right side, and nothing is lost."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain
from random import Random
from typing import Any

import grpc
import pytest
from google.protobuf.descriptor import MethodDescriptor
from google.rpc import error_details_pb2, status_pb2
from hypothesis import given, settings
from hypothesis import strategies as st
from memoryranker.v1 import admin_pb2, memory_pb2, ranker_pb2

from sidecar.config import Settings
from sidecar.lifecycle import Sidecar
from sidecar.ranking.ranker import random_packet_id
from tests.promises.hostile import NAMESPACE, PACKET_ID, wire
from tests.promises.parts import Held
from tests.serving import Running, channel_to, running
from tests.soaking import at_length

METHODS: dict[str, MethodDescriptor] = {
    method.full_name: method
    for module in (ranker_pb2, memory_pb2, admin_pb2)
    for service in module.DESCRIPTOR.services_by_name.values()
    for method in service.methods
}
EXPECTED = {
    *(grpc.StatusCode.OK, grpc.StatusCode.INVALID_ARGUMENT, grpc.StatusCode.NOT_FOUND, grpc.StatusCode.ALREADY_EXISTS),
    *(grpc.StatusCode.UNIMPLEMENTED, grpc.StatusCode.FAILED_PRECONDITION, grpc.StatusCode.RESOURCE_EXHAUSTED),
}
GUARD = "guard"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    """A server with memories in two namespaces: one that hostile requests hit, and one that none of them names."""
    folder = tmp_path_factory.mktemp("fuzzed")
    ids = chain([PACKET_ID], iter(random_packet_id, ""))

    def make(settings: Settings) -> Sidecar:
        return Sidecar(settings, new_packet_id=lambda: next(ids), make_embedder=lambda _: Held())

    with running(folder, make, embedder="none") as server:
        server.client.upsert(NAMESPACE, [{"id": f"m{i}", "content": f"hostile memory {i}"} for i in range(5)])
        assert server.client.rank(NAMESPACE, "memory").packet_id == PACKET_ID
        server.client.upsert(GUARD, [{"id": f"g{i}", "content": f"guarded memory {i}"} for i in range(5)])
        yield server


@pytest.fixture(scope="module")
def channel(server: Running) -> Iterator[grpc.Channel]:
    with channel_to(server.listen) as channel:
        yield channel


def trailers(error: Any) -> dict[str, bytes]:
    """The trailing metadata of a failed call."""
    return dict(error.trailing_metadata() or ())


def send(channel: Any, method: MethodDescriptor, data: bytes) -> tuple[Any, Any]:
    """Sends bytes as the request. Returns the code and the details that came with it."""
    path = f"/{method.containing_service.full_name}/{method.name}"
    try:
        if method.client_streaming and method.server_streaming:
            list(channel.stream_stream(path)(iter([data]), timeout=10))
        elif method.client_streaming:
            channel.stream_unary(path)(iter([data]), timeout=10)
        elif method.server_streaming:
            list(channel.unary_stream(path)(data, timeout=10))
        else:
            channel.unary_unary(path)(data, timeout=10)
    except grpc.RpcError as error:
        return error.code(), trailers(error)
    return grpc.StatusCode.OK, {}


@pytest.mark.parametrize("name", METHODS)
@settings(max_examples=at_length(2_000, 60), deadline=None)
@given(seed=st.integers(0, 2**32))
def test_no_request_breaks_the_server(server: Running, channel: grpc.Channel, name: str, seed: int) -> None:
    """Never INTERNAL or UNKNOWN; a refusal names fields and says what is wrong with them; the next call works, and the
    memories of others are there."""
    method = METHODS[name]
    code, trailers = send(channel, method, wire(method.input_type, Random(seed)))
    assert code in EXPECTED
    if code is grpc.StatusCode.INVALID_ARGUMENT:
        status = status_pb2.Status.FromString(trailers["grpc-status-details-bin"])
        bad = error_details_pb2.BadRequest()
        assert any(detail.Unpack(bad) for detail in status.details)
        assert bad.field_violations
        assert all(each.field and each.description for each in bad.field_violations)
    packet = server.client.rank(GUARD, "guarded memory", explain="full", dry_run=True)
    assert {item.memory.id for item in packet.items} == {f"g{i}" for i in range(5)}
    assert all(0.0 <= value <= 1.0 for item in packet.items for value in (item.score, *item.features))
