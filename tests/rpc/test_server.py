"""The server's address, states and threads, over real sockets and without any service's parts."""

from __future__ import annotations

import os
import socket
import stat
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import grpc
import pytest
from grpc_health.v1 import health_pb2, health_pb2_grpc
from grpc_reflection.v1alpha import reflection_pb2, reflection_pb2_grpc
from memoryranker.v1 import admin_pb2, admin_pb2_grpc, ranker_pb2, ranker_pb2_grpc

from sidecar.errors import ListenError, StoreLockedError
from sidecar.rpc.health import SERVICES
from sidecar.rpc.server import Server
from tests.serving import channel_to, serve, settings_for, started

SERVING = health_pb2.HealthCheckResponse.SERVING
NOT_SERVING = health_pb2.HealthCheckResponse.NOT_SERVING


class Status(admin_pb2_grpc.AdminServiceServicer):
    """Answers GetStatus, once `gate` is open."""

    def __init__(self) -> None:
        self.gate = threading.Event()
        self.gate.set()
        self.entered = threading.Semaphore(0)

    def GetStatus(
        self, request: admin_pb2.GetStatusRequest, context: grpc.ServicerContext
    ) -> admin_pb2.GetStatusResponse:
        self.entered.release()
        self.gate.wait(30)
        return admin_pb2.GetStatusResponse(server_version=request.namespace)


def health_of(channel: grpc.Channel, service: str = "") -> int:
    stub: Any = health_pb2_grpc.HealthStub(channel)
    return int(stub.Check(health_pb2.HealthCheckRequest(service=service), timeout=5).status)


def ask_status(channel: grpc.Channel) -> admin_pb2.GetStatusResponse:
    return admin_pb2_grpc.AdminServiceStub(channel).GetStatus(admin_pb2.GetStatusRequest(namespace="x"), timeout=10)


def test_it_is_not_serving_until_it_is_ready(tmp_path: Path) -> None:
    """While it loads, health says so for every name, and calls are refused as UNAVAILABLE, to be tried again."""
    with started(f"unix:{tmp_path}/s") as server, channel_to(server.listen) as channel:
        assert {health_of(channel, name) for name in ("", *SERVICES)} == {NOT_SERVING}
        with pytest.raises(grpc.RpcError) as caught:
            ask_status(channel)
        assert caught.value.code() is grpc.StatusCode.UNAVAILABLE
        serve(server, Status())
        assert {health_of(channel, name) for name in ("", *SERVICES)} == {SERVING}
        assert ask_status(channel).server_version == "x"
        with pytest.raises(grpc.RpcError) as caught:
            health_of(channel, "memoryranker.v1.Nothing")
        assert caught.value.code() is grpc.StatusCode.NOT_FOUND


def test_what_is_not_built_says_so(tmp_path: Path) -> None:
    """A method of the API that this version lacks answers UNIMPLEMENTED and names itself."""
    with started(f"unix:{tmp_path}/s") as server, channel_to(server.listen) as channel:
        serve(server, Status())
        with pytest.raises(grpc.RpcError) as caught:
            ranker_pb2_grpc.RankerServiceStub(channel).Rank(ranker_pb2.RankRequest(), timeout=5)
        assert caught.value.code() is grpc.StatusCode.UNIMPLEMENTED
        assert "memoryranker.v1.RankerService/Rank is not built yet" in str(caught.value.details())
        stream = admin_pb2_grpc.AdminServiceStub(channel).ExportLog(admin_pb2.ExportLogRequest(), timeout=5)
        with pytest.raises(grpc.RpcError) as caught:
            next(stream)
        assert caught.value.code() is grpc.StatusCode.UNIMPLEMENTED


def test_reflection_lists_the_services(tmp_path: Path) -> None:
    """Tools that know nothing of the API find its services and messages."""
    with started(f"unix:{tmp_path}/s") as server, channel_to(server.listen) as channel:
        stub: Any = reflection_pb2_grpc.ServerReflectionStub(channel)
        asked = [
            reflection_pb2.ServerReflectionRequest(list_services=""),
            reflection_pb2.ServerReflectionRequest(file_containing_symbol="memoryranker.v1.RankRequest"),
        ]
        listed, file = stub.ServerReflectionInfo(iter(asked), timeout=5)
        assert set(SERVICES) < {each.name for each in listed.list_services_response.service}
        assert file.file_descriptor_response.file_descriptor_proto


def test_idle_streams_do_not_hold_up_calls(tmp_path: Path) -> None:
    """With 64 health watches and 64 reflection streams open and idle, two threads still answer calls at once."""
    with started(f"unix:{tmp_path}/s", threads=2) as server, channel_to(server.listen) as channel:
        serve(server, Status())
        over = threading.Event()

        def ask_and_idle() -> Iterator[reflection_pb2.ServerReflectionRequest]:
            yield reflection_pb2.ServerReflectionRequest(list_services="")
            over.wait()

        health: Any = health_pb2_grpc.HealthStub(channel)
        reflect: Any = reflection_pb2_grpc.ServerReflectionStub(channel)
        watches = [health.Watch(health_pb2.HealthCheckRequest()) for _ in range(64)]
        reflections = [reflect.ServerReflectionInfo(ask_and_idle()) for _ in range(64)]
        assert {next(watch).status for watch in watches} == {SERVING}
        assert all(next(stream).list_services_response.service for stream in reflections)
        for _ in range(20):
            assert ask_status(channel).server_version == "x"
        server.drain(0)
        assert {next(watch).status for watch in watches} == {NOT_SERVING}
        over.set()


def test_streams_beyond_the_limit_are_refused(tmp_path: Path) -> None:
    """One stream too many is told so at once, instead of waiting for another to end."""
    with started(f"unix:{tmp_path}/s", streams=2) as server, channel_to(server.listen) as channel:
        over = threading.Event()

        def ask_and_idle() -> Iterator[reflection_pb2.ServerReflectionRequest]:
            yield reflection_pb2.ServerReflectionRequest(list_services="")
            over.wait()

        reflect: Any = reflection_pb2_grpc.ServerReflectionStub(channel)
        streams = [reflect.ServerReflectionInfo(ask_and_idle()) for _ in range(2)]
        for stream in streams:
            next(stream)
        with pytest.raises(grpc.RpcError) as caught:
            next(reflect.ServerReflectionInfo(ask_and_idle(), timeout=5))
        assert caught.value.code() is grpc.StatusCode.RESOURCE_EXHAUSTED
        over.set()
        for stream in streams:
            assert list(stream) == []


def test_draining_finishes_what_runs_and_takes_no_more(tmp_path: Path) -> None:
    """A call that runs when the server drains gets its answer; one that comes later is refused."""
    with started(f"unix:{tmp_path}/s") as server, channel_to(server.listen) as channel:
        admin = Status()
        serve(server, admin)
        admin.gate.clear()
        running = admin_pb2_grpc.AdminServiceStub(channel).GetStatus.future(
            admin_pb2.GetStatusRequest(namespace="x"), timeout=10
        )
        assert admin.entered.acquire(timeout=5)
        over = server.drain(10)
        with channel_to(server.listen) as another, pytest.raises(grpc.RpcError) as caught:
            ask_status(another)
        # CANCELLED is what grpc makes of a call that crosses the server's goodbye on a connection that is open.
        assert caught.value.code() in (grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.CANCELLED)
        assert not over.is_set()
        admin.gate.set()
        assert running.result().server_version == "x"
        assert over.wait(5)


def test_cancelled_calls_give_their_threads_back(tmp_path: Path) -> None:
    """Fifty calls that gave up while they waited for a thread are not worked on later."""
    with started(f"unix:{tmp_path}/s", threads=2) as server, channel_to(server.listen) as channel:
        admin = Status()
        serve(server, admin)
        admin.gate.clear()
        stub: Any = admin_pb2_grpc.AdminServiceStub(channel)
        given_up = [stub.GetStatus.future(admin_pb2.GetStatusRequest(), timeout=0.01) for _ in range(50)]
        codes = {call.exception().code() for call in given_up}
        assert codes == {grpc.StatusCode.DEADLINE_EXCEEDED}
        admin.gate.set()
        assert ask_status(channel).server_version == "x"
        worked_on = 0
        while admin.entered.acquire(blocking=False):
            worked_on += 1
        assert worked_on <= 3


def test_a_second_server_is_refused_and_the_first_lives_on(tmp_path: Path) -> None:
    """Whoever comes second to a socket learns that it is taken; the first is still reached afterwards."""
    listen = f"unix:{tmp_path}/s"
    with started(listen) as server, channel_to(server.listen) as channel:
        serve(server, Status())
        code = (
            "from sidecar.config import resolve\n"
            "from sidecar.rpc.server import Server\n"
            f"Server(resolve({{'listen': {listen!r}}}, {{'HOME': '/nowhere'}}).settings)\n"
        )
        second = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
        assert second.returncode != 0
        assert "StoreLockedError: listen is unix:" in second.stderr
        with pytest.raises(StoreLockedError):
            Server(settings_for(listen))
        with channel_to(server.listen) as another:
            assert ask_status(another).server_version == "x"
        assert ask_status(channel).server_version == "x"


def test_the_socket_is_for_its_owner_alone_and_goes_with_the_server(tmp_path: Path) -> None:
    """Nobody else can connect, whatever the umask, and a stopped server leaves no socket behind."""
    path = tmp_path / "new folder%41" / "メモ s"
    before = os.umask(0)
    try:
        with started(f"unix:{path}") as server, channel_to(server.listen) as channel:
            assert stat.S_IMODE(path.stat().st_mode) == 0o600
            assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
            assert health_of(channel) == NOT_SERVING
        assert not path.exists()
    finally:
        os.umask(before)


def test_a_socket_may_be_for_the_group_of_its_folder_too(tmp_path: Path) -> None:
    """With socket_access = group, the folder's group may connect and nobody else; only that is another mode."""
    with started(f"unix:{tmp_path}/s", socket_access="group") as server, channel_to(server.listen) as channel:
        assert stat.S_IMODE((tmp_path / "s").stat().st_mode) == 0o660
        assert health_of(channel) == NOT_SERVING


def test_a_stale_socket_is_replaced(tmp_path: Path) -> None:
    """A socket that a killed server left behind does not keep the next one out."""
    path = tmp_path / "s"
    with socket.socket(socket.AF_UNIX) as dead:
        dead.bind(str(path))
    with started(f"unix:{path}") as server, channel_to(server.listen) as channel:
        assert health_of(channel) == NOT_SERVING


def test_another_programs_socket_or_file_is_left_alone(tmp_path: Path) -> None:
    """What lies at the path and is alive, or is no socket, is not touched."""
    path = tmp_path / "s"
    with socket.socket(socket.AF_UNIX) as other:
        other.bind(str(path))
        other.listen()
        with pytest.raises(StoreLockedError, match="another program"):
            Server(settings_for(f"unix:{path}"))
        assert path.is_socket()
    file = tmp_path / "file"
    file.write_text("mine")
    with pytest.raises(ListenError, match="no socket"):
        Server(settings_for(f"unix:{file}"))
    assert file.read_text() == "mine"


def test_a_taken_port_is_refused(tmp_path: Path) -> None:
    """Two servers never share a port, where every other call would go to the wrong one."""
    with started("127.0.0.1:0") as server, channel_to(server.listen) as channel:
        assert not server.listen.endswith(":0")
        assert health_of(channel) == NOT_SERVING
        with pytest.raises(ListenError, match="cannot be bound"):
            Server(settings_for(server.listen))


@pytest.mark.parametrize("data", [b"\x0a\x02\xff\xfe", b"\x0a\x05ab", b"\xff"])
def test_a_request_that_cannot_be_read_is_the_callers_fault(tmp_path: Path, data: bytes) -> None:
    """Bytes that are no request, or hold a text that is not UTF-8, are refused as invalid, and do not look like a
    failure of the server."""
    with started(f"unix:{tmp_path}/s") as server, channel_to(server.listen) as channel:
        serve(server, Status())
        call: Any = channel.unary_unary("/memoryranker.v1.AdminService/GetStatus")
        with pytest.raises(grpc.RpcError) as caught:
            call(data, timeout=5)
        assert caught.value.code() is grpc.StatusCode.INVALID_ARGUMENT
        assert "cannot be read" in str(caught.value.details())
