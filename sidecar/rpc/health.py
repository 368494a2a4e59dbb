"""Says over grpc.health.v1 whether the server can be used: not before it is ready, and not while it drains.

Every watcher has a thread, which sends to it and to nobody else, without a lock. grpcio waits in a send until its one
serving thread reports it sent. Where watchers share threads, grpcio-health-checking holds a lock meanwhile that the end
of another watch needs on that serving thread: then nothing is ever served again.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator

import grpc
from grpc_health.v1 import health_pb2, health_pb2_grpc

SERVICES = ("memoryranker.v1.RankerService", "memoryranker.v1.MemoryService", "memoryranker.v1.AdminService")
TELLING_SECONDS = 1.0
"""How long a drain waits for watchers to be told. One that takes nothing in is cut off."""

_Response = health_pb2.HealthCheckResponse


class Health(health_pb2_grpc.HealthServicer):
    """The health of the server as a whole (the name "") and of each service: they are well or not together."""

    def __init__(self, server: grpc.Server) -> None:
        self._changed = threading.Condition()
        self._status: int = _Response.NOT_SERVING
        self._is_final = False
        self._watchers = 0
        health_pb2_grpc.add_HealthServicer_to_server(self, server)

    def set_serving(self) -> None:
        """Everything is loaded."""
        with self._changed:
            self._status = _Response.SERVING
            self._changed.notify_all()

    def set_draining(self) -> None:
        """Send nothing more. Returns when all watchers are told, and their streams over, or TELLING_SECONDS have
        passed; it is final."""
        with self._changed:
            self._status = _Response.NOT_SERVING
            self._is_final = True
            self._changed.notify_all()
            self._changed.wait_for(lambda: self._watchers == 0, TELLING_SECONDS)

    def Check(
        self, request: health_pb2.HealthCheckRequest, context: grpc.ServicerContext
    ) -> health_pb2.HealthCheckResponse:
        """The status of one name."""
        status = self._status_of(request.service)
        if status == _Response.SERVICE_UNKNOWN:
            context.abort(grpc.StatusCode.NOT_FOUND, f"there is no service {request.service!r} here")
        return _Response(status=status)

    def Watch(
        self, request: health_pb2.HealthCheckRequest, context: grpc.ServicerContext
    ) -> Iterator[health_pb2.HealthCheckResponse]:
        """The status of one name now and whenever it changes, until the server drains."""
        is_gone = threading.Event()

        def hang_up() -> None:
            is_gone.set()
            with self._changed:
                self._watchers -= 1
                self._changed.notify_all()

        with self._changed:
            self._watchers += 1
        # Called once the watcher has what was sent last, the end itself included; or is gone.
        if not context.add_callback(hang_up):
            hang_up()
        told = -1
        while not is_gone.is_set():
            status, is_final = self._status_of(request.service), self._is_final
            if status != told:
                yield _Response(status=status)
                told = status
            elif is_final:
                return
            else:
                self._wait(is_gone, request.service, told)

    def _wait(self, is_gone: threading.Event, service: str, told: int) -> None:
        with self._changed:
            self._changed.wait_for(lambda: is_gone.is_set() or self._is_final or self._status_of(service) != told)

    def _status_of(self, service: str) -> int:
        return self._status if service in ("", *SERVICES) else _Response.SERVICE_UNKNOWN
