"""Says over grpc.health.v1 whether the server can be used: not before it is ready, and not while it drains."""

from __future__ import annotations

import grpc
from grpc_health.v1 import health, health_pb2, health_pb2_grpc

SERVICES = ("memoryranker.v1.RankerService", "memoryranker.v1.MemoryService", "memoryranker.v1.AdminService")


class Health:
    """The health of the server as a whole (the name "") and of each service: they are well or not together."""

    def __init__(self, server: grpc.Server) -> None:
        self._servicer = health.HealthServicer(experimental_non_blocking=True)
        for name in ("", *SERVICES):
            self._servicer.set(name, health_pb2.HealthCheckResponse.NOT_SERVING)
        health_pb2_grpc.add_HealthServicer_to_server(self._servicer, server)

    def set_serving(self) -> None:
        """Everything is loaded."""
        for name in ("", *SERVICES):
            self._servicer.set(name, health_pb2.HealthCheckResponse.SERVING)

    def set_draining(self) -> None:
        """Send nothing more. Watchers are told; it is final."""
        self._servicer.enter_graceful_shutdown()
