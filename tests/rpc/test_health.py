"""Health as many watchers see it, over a real socket."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import grpc
import pytest
from grpc_health.v1 import health_pb2, health_pb2_grpc

from sidecar.rpc.health import SERVICES
from tests.serving import channel_to, started

UNKNOWN = health_pb2.HealthCheckResponse.SERVICE_UNKNOWN
NOT_SERVING = health_pb2.HealthCheckResponse.NOT_SERVING


def watch(channel: grpc.Channel, service: str = "") -> Any:
    stub: Any = health_pb2_grpc.HealthStub(channel)
    return stub.Watch(health_pb2.HealthCheckRequest(service=service), timeout=60)


def test_watchers_that_come_and_go_at_the_same_time_hold_nobody_up(tmp_path: Path) -> None:
    """Six clients begin and end watches beside each other, and all are answered; none leaves a thread behind."""
    failed: list[grpc.RpcError] = []

    def come_and_go(listen: str) -> None:
        try:
            with channel_to(listen) as channel:
                for _ in range(150):
                    watching = watch(channel)
                    next(watching)
                    watching.cancel()
        except grpc.RpcError as error:
            failed.append(error)

    with started(f"unix:{tmp_path}/s") as server:
        clients = [threading.Thread(target=come_and_go, args=(server.listen,)) for _ in range(6)]
        for client in clients:
            client.start()
        for client in clients:
            client.join()
        assert failed == []
        with channel_to(server.listen) as channel:
            last = [watch(channel) for _ in range(60)]
            assert {next(each).status for each in last} == {NOT_SERVING}


def test_a_name_that_is_not_known_is_said_to_be_so(tmp_path: Path) -> None:
    """To a check as an error, to a watch as a status; both know the server and its services."""
    with started(f"unix:{tmp_path}/s") as server, channel_to(server.listen) as channel:
        stub: Any = health_pb2_grpc.HealthStub(channel)
        for service in ("", *SERVICES):
            assert stub.Check(health_pb2.HealthCheckRequest(service=service), timeout=5).status == NOT_SERVING
            assert next(watch(channel, service)).status == NOT_SERVING
        with pytest.raises(grpc.RpcError) as caught:
            stub.Check(health_pb2.HealthCheckRequest(service="other"), timeout=5)
        assert caught.value.code() is grpc.StatusCode.NOT_FOUND
        assert next(watch(channel, "other")).status == UNKNOWN


def test_a_drain_tells_every_watcher_and_ends_its_watch(tmp_path: Path) -> None:
    """Those of names that are not known, too; nobody is cut off in the middle."""
    with started(f"unix:{tmp_path}/s") as server, channel_to(server.listen) as channel:
        watches = [watch(channel, service) for service in ("", *SERVICES, "other")]
        for each in watches:
            next(each)
        server.drain(0)
        assert [list(each) for each in watches] == [[]] * len(watches)
