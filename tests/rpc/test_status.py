"""What a caller learns of an error, over a real socket, read by the client's own decoder and by grpcio's."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from pathlib import Path

import grpc
import pytest
from grpc_status import rpc_status
from memoryranker.client import Client, RankerRpcError
from memoryranker.v1 import admin_pb2, admin_pb2_grpc

from sidecar import errors
from sidecar.rpc.interceptors import deadline_check
from sidecar.rpc.status import DETAILS_BYTES, status_of
from tests.serving import channel_to, serve, started

Code = grpc.StatusCode


class Failing(admin_pb2_grpc.AdminServiceServicer):
    """Fails every GetStatus in the way it was told to."""

    def __init__(self) -> None:
        self.error: Exception | None = None

    def GetStatus(
        self, request: admin_pb2.GetStatusRequest, context: grpc.ServicerContext
    ) -> admin_pb2.GetStatusResponse:
        if self.error is not None:
            raise self.error
        check = deadline_check(context)
        while True:
            check()


@pytest.fixture
def failing(tmp_path: Path) -> Iterator[tuple[Failing, Client]]:
    with started(f"unix:{tmp_path}/s") as server:
        service = Failing()
        serve(server, service)
        with Client(server.listen) as client:
            yield service, client


def failed(service: Failing, client: Client, error: Exception) -> RankerRpcError:
    service.error = error
    with pytest.raises(RankerRpcError) as caught:
        client.status()
    return caught.value


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (errors.MemoryNotFoundError("memory_id: no memory 'm1' here", namespace="kim"), Code.NOT_FOUND),
        (errors.PacketNotFoundError("packet_id: no packet 'p1' here"), Code.NOT_FOUND),
        (errors.UnknownWeightsError("weights: none named 'x'"), Code.NOT_FOUND),
        (errors.RequestIdReusedError("request_id 'r' was used for another request"), Code.ALREADY_EXISTS),
        (errors.StoreFullError("the disk is full"), Code.RESOURCE_EXHAUSTED),
        (errors.DeadlineExceededError("too late"), Code.DEADLINE_EXCEEDED),
        (errors.StoreDamagedError("damaged"), Code.DATA_LOSS),
        (errors.EmbedderMismatchError("another embedder"), Code.FAILED_PRECONDITION),
    ],
)
def test_an_error_keeps_its_reason_and_words(
    failing: tuple[Failing, Client], error: errors.RankerError, code: grpc.StatusCode
) -> None:
    """Code, reason, message and metadata arrive as they were raised."""
    caught = failed(*failing, error)
    assert (caught.code, caught.reason, caught.message) == (code, error.reason, error.message)
    assert caught.metadata == error.metadata


def test_overload_says_when_to_try_again(failing: tuple[Failing, Client]) -> None:
    """An overloaded server tells the caller how long to wait."""
    caught = failed(*failing, errors.OverloadedError("too much", retry_after=1.25))
    assert (caught.code, caught.retry_after) == (Code.RESOURCE_EXHAUSTED, 1.25)


@pytest.mark.parametrize("text", ["メモ🧠", "a\nb\tc%41\x00d", "100 % sure", "é" * 2000])
def test_messages_arrive_whole_whatever_their_letters(failing: tuple[Failing, Client], text: str) -> None:
    """No letter garbles a message or breaks the call; only one that is far too long is cut, between letters."""
    caught = failed(*failing, errors.MemoryNotFoundError(f"memory_id: no memory {text} here"))
    assert caught.reason == "MEMORY_NOT_FOUND"
    whole = f"memory_id: no memory {text} here"
    assert caught.message == whole or (caught.message.endswith("…") and whole.startswith(caught.message[:-1]))
    assert len(caught.message.encode()) == min(len(whole.encode()), len(caught.message.encode()))
    assert len(caught.message.encode()) >= min(len(whole.encode()), 509)


@pytest.mark.parametrize("count", [1, 3, 5000])
def test_as_many_violations_as_fit_are_listed_and_all_are_counted(failing: tuple[Failing, Client], count: int) -> None:
    """Details stay below 4 KiB, however much is wrong, and the total is told."""
    violations = [errors.FieldViolation(f"memories[{i}].relevance", f"is {i}; must be in [0, 1]") for i in range(count)]
    error = errors.InvalidRequestError(violations)
    caught = failed(*failing, error)
    assert caught.code is Code.INVALID_ARGUMENT
    assert caught.metadata["violations_total"] == str(count)
    listed = [(each.field, each.description) for each in caught.violations]
    assert listed == [(each.field, each.description) for each in violations[: len(listed)]]
    assert len(listed) == min(count, len(listed))
    assert len(listed) >= min(count, 40)
    assert status_of(error).ByteSize() <= DETAILS_BYTES


def test_one_huge_violation_still_fits() -> None:
    """A single violation that is longer than all room is cut, and listed."""
    status = status_of(errors.InvalidRequestError([errors.FieldViolation("メ" * 5000, "モ" * 5000)]))
    assert status.ByteSize() <= DETAILS_BYTES
    assert len(status.details) == 2


def test_other_clients_read_the_details_too(failing: tuple[Failing, Client], tmp_path: Path) -> None:
    """grpcio-status, which insists that code and message agree, accepts what is sent, also for cut messages."""
    service, client = failing
    service.error = errors.PacketNotFoundError("メ" * 1000)
    with grpc.insecure_channel(client.address) as channel:
        with pytest.raises(grpc.RpcError) as caught:
            admin_pb2_grpc.AdminServiceStub(channel).GetStatus(admin_pb2.GetStatusRequest(), timeout=5)
        status = rpc_status.from_call(caught.value)  # type: ignore[arg-type]
        assert status is not None
        assert status.code == Code.NOT_FOUND.value[0]


def test_what_is_unexpected_is_logged_without_its_words(
    failing: tuple[Failing, Client], caplog: pytest.LogCaptureFixture
) -> None:
    """An unforeseen exception gives an error id that the log explains by file and line, without the memory's text."""
    with caplog.at_level(logging.INFO):
        caught = failed(*failing, ValueError("secret memory text"))
    assert (caught.code, caught.reason) == (Code.INTERNAL, "INTERNAL")
    assert caught.metadata["error_id"] in caught.message
    assert caught.metadata["error_id"] in caplog.text
    assert "ValueError" in caplog.text
    assert "test_status.py" in caplog.text
    assert "secret" not in caught.message + caplog.text


def test_a_handler_stops_once_nobody_waits(failing: tuple[Failing, Client]) -> None:
    """Between two stages a handler learns that the deadline has passed, so that it does not run on."""
    service, client = failing
    for _ in range(8):
        with pytest.raises(RankerRpcError) as caught:
            client.status(timeout=0.05)
        assert caught.value.code is Code.DEADLINE_EXCEEDED
    assert failed(service, client, errors.StoreFullError("full")).reason == "STORE_FULL"


def test_a_server_that_is_not_there_is_named(tmp_path: Path) -> None:
    """Where nothing listens, the error says where it was looked for and what to start."""
    with Client(f"unix:{tmp_path}/none") as client, pytest.raises(RankerRpcError) as caught:
        client.status(timeout=2)
    assert caught.value.reason == "UNAVAILABLE"
    assert f"unix:{tmp_path}/none" in caught.value.message
    assert "memory-ranker serve" in caught.value.message


def test_channel_target_needs_no_client(tmp_path: Path) -> None:
    """A plain channel to the socket's path works: nothing of the protocol is private to our client."""
    with started(f"unix:{tmp_path}/s") as server, channel_to(server.listen) as channel:
        grpc.channel_ready_future(channel).result(timeout=5)
