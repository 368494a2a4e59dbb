"""The gRPC server: its threads, its address, and its three states, which are loading, serving and draining.

NumPy and FAISS must not start threads of their own: OMP_NUM_THREADS=1 is set where the process starts, before either
is imported.
"""

from __future__ import annotations

import logging
import math
import threading
from typing import Any, cast

import grpc
from grpc_reflection.v1alpha import reflection
from memoryranker.v1 import admin_pb2_grpc, memory_pb2_grpc, ranker_pb2_grpc

from sidecar.config import Settings
from sidecar.observe.observer import Observer
from sidecar.rpc.address import Address
from sidecar.rpc.health import SERVICES, Health
from sidecar.rpc.interceptors import Calls
from sidecar.rpc.pools import Pool
from sidecar.rpc.stopping import Stopping

logger = logging.getLogger(__name__)

MAX_WAITING = 1_000
"""Calls that may wait for a thread: what a few threads get done within a usual deadline. More are refused."""

WATCHES = 100
"""Watches of health at a time, each of which has a thread. More are refused."""

GIVEN_WAY = 0.02
"""Seconds that a piece of work in the background leaves to calls: about as long as a few of them take."""

CUT_OFF_SECONDS = 2.0
"""How long calls that are cut off may take to end."""


class Server:
    """A gRPC server. Made, it is loading: it answers health and reflection and refuses everything else for now."""

    def __init__(self, settings: Settings, observer: Observer | None = None) -> None:
        """Claims the address and starts. Raises StoreLockedError or ListenError if the address cannot be had."""
        self._pools = (
            Pool("calls", settings.threads, MAX_WAITING),
            Pool("short calls", settings.threads, MAX_WAITING),
            Pool("outputs", 1, MAX_WAITING),
            Pool("long streams", settings.streams, 0),
            Pool("watches", WATCHES, 0),
            Pool("moments", 2, math.inf),
        )
        observer = observer or Observer()
        for pool in self._pools:
            observer.working(pool.what, lambda pool=pool: pool.count)  # type: ignore[misc]
        self._calls = Calls(*self._pools, observer)
        self.stopping = Stopping()
        """For the services: set as soon as the server drains."""
        self._server = grpc.server(
            self._pools[0],
            interceptors=[self._calls],
            options=(
                # Otherwise a second server on the port takes every other call away, and nobody is told.
                ("grpc.so_reuseport", 0),
                ("grpc.max_receive_message_length", settings.max_message_bytes),
                ("grpc.max_send_message_length", settings.max_message_bytes),
            ),
        )
        self._health = Health(self._server)
        names = (*SERVICES, "grpc.health.v1.Health", reflection.SERVICE_NAME)
        reflection.enable_server_reflection(names, self._server)
        self._address = Address(
            settings.listen, self._server.add_insecure_port, for_group=settings.socket_access == "group"
        )
        self._server.start()

    @property
    def listen(self) -> str:
        """The address for clients: unix:PATH or HOST:PORT."""
        return self._address.listen

    def serve(
        self,
        ranker: ranker_pb2_grpc.RankerServiceServicer,
        memory: memory_pb2_grpc.MemoryServiceServicer,
        admin: admin_pb2_grpc.AdminServiceServicer,
    ) -> None:
        """Takes calls from now on, and says so."""
        late = cast("grpc.Server", _Late(self._server))
        ranker_pb2_grpc.add_RankerServiceServicer_to_server(ranker, late)
        memory_pb2_grpc.add_MemoryServiceServicer_to_server(memory, late)
        admin_pb2_grpc.add_AdminServiceServicer_to_server(admin, late)
        self._calls.set_ready()
        self._health.set_serving()

    def give_way(self) -> None:
        """For work that nobody waits for: returns once no call is at work, and after GIVEN_WAY seconds at the latest,
        so that such work goes on beside calls that never cease. Streams are none."""
        for pool in self._pools[:2]:
            pool.wait_until_idle(GIVEN_WAY)

    def drain(self, seconds: float) -> threading.Event:
        """Tells watchers, takes no more calls, and gives those that run up to `seconds` to finish. The event is set
        once none runs any more."""
        self._health.set_draining()
        self.stopping.set()
        stopped = self._server.stop(seconds)
        self._calls.end_idle()
        return stopped

    def close(self) -> None:
        """Ends what still runs and lets the address go. A call whose caller is frozen and takes in nothing more cannot
        be ended: its thread waits in grpcio, and is left behind."""
        is_over = self._server.stop(0).wait(CUT_OFF_SECONDS)
        if not is_over:
            logger.warning("calls of a caller that takes in nothing more were left behind")
        for pool in self._pools:
            pool.shutdown(wait=is_over)
        self._address.close()


class _Late:
    """Takes services after the start, which grpcio allows for generic handlers alone."""

    def __init__(self, server: grpc.Server) -> None:
        self.add_generic_rpc_handlers = server.add_generic_rpc_handlers

    def add_registered_method_handlers(self, *_: Any) -> None:
        """The generated code offers every method a second time, for a look-up that must be made before the start."""
