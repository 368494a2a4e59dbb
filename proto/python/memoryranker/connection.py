"""One channel to one server: deadlines, what is tried again, and errors with everything that the server said."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Mapping
from typing import Any, Self, TypeVar
from urllib.parse import quote

import grpc

from memoryranker.errors import RankerRpcError, from_rpc_error
from memoryranker.v1 import admin_pb2_grpc, memory_pb2_grpc, ranker_pb2_grpc

Response = TypeVar("Response")

_LOADING_PAUSE = 0.1
"""Seconds between two looks whether a server that is up has loaded its memories."""

# Safe to send twice: reads, and what carries a request_id.
_RETRIED = {
    "RankerService": ("Rank", "ReportUse", "ReportOutput", "RateMemory", "GetPacket", "ExplainMiss"),
    "MemoryService": (
        "UpsertMemories",
        "GetMemory",
        "ListMemories",
        "UpdateMemory",
        "DeleteMemories",
        "ListNamespaces",
        "ScoreImportance",
    ),
    "AdminService": ("GetStatus", "Audit", "ListModels"),
}
_SERVICE_CONFIG = {
    "methodConfig": [
        {
            "name": [
                {"service": f"memoryranker.v1.{service}", "method": method}
                for service, methods in _RETRIED.items()
                for method in methods
            ],
            "retryPolicy": {
                "maxAttempts": 5,
                "initialBackoff": "0.05s",
                "maxBackoff": "1s",
                "backoffMultiplier": 2,
                # CANCELLED: what grpc makes of a call that crosses a stopping server's goodbye.
                "retryableStatusCodes": ["UNAVAILABLE", "CANCELLED"],
            },
        }
    ]
}


def default_address(environ: Mapping[str, str]) -> str:
    """Where a server listens that was told nothing else, as the server itself works it out from its environment."""
    if address := environ.get("MEMORY_RANKER_LISTEN"):
        return address
    folder = environ.get("XDG_RUNTIME_DIR") or environ.get("MEMORY_RANKER_DATA")
    if not folder:
        home = environ.get("XDG_DATA_HOME") or f"{environ.get('HOME') or os.path.expanduser('~')}/.local/share"
        folder = f"{home}/memory-ranker"
    return f"unix:{folder}/memory-ranker.sock"


class Connection:
    """What every call goes through; `Client` says what may be set."""

    def __init__(
        self,
        address: str | None = None,
        *,
        timeout: float = 5.0,
        wait_for_ready: bool = False,
        max_message_bytes: int = 4_194_304,
    ) -> None:
        self.address = address or default_address(os.environ)
        self._timeout = timeout
        self._wait_for_ready = wait_for_ready
        self._max_message_bytes = max_message_bytes
        self._channel = grpc.insecure_channel(
            _target(self.address),
            options=[
                # A proxy for the web has no business between two processes of one machine.
                ("grpc.enable_http_proxy", 0),
                ("grpc.enable_retries", 1),
                ("grpc.service_config", json.dumps(_SERVICE_CONFIG)),
                ("grpc.max_receive_message_length", max_message_bytes),
                # A server of this machine that was restarted is back soon; the library's own pauses grow to minutes.
                # The least pause is also how long a server may take to greet, and so is not set: a busy one takes its
                # time, and would seem not to be there.
                ("grpc.initial_reconnect_backoff_ms", 50),
                ("grpc.max_reconnect_backoff_ms", 1000),
            ],
        )
        self._ranker = ranker_pb2_grpc.RankerServiceStub(self._channel)
        self._memory = memory_pb2_grpc.MemoryServiceStub(self._channel)
        self._admin = admin_pb2_grpc.AdminServiceStub(self._channel)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Closes the channel; calls under way are cancelled."""
        self._channel.close()

    def _call(
        self,
        method: grpc.UnaryUnaryMultiCallable[Any, Response] | grpc.StreamUnaryMultiCallable[Any, Response],
        request: Any,
        timeout: float | None,
    ) -> Response:
        end = time.monotonic() + (self._timeout if timeout is None else timeout)
        loading: RankerRpcError | None = None
        while True:
            try:
                return method(request, timeout=end - time.monotonic(), wait_for_ready=self._wait_for_ready or None)
            except grpc.RpcError as error:
                refusal = from_rpc_error(error, self.address)
                if refusal.reason == "NOT_READY":
                    loading = refusal
                elif loading is None or refusal.code is not grpc.StatusCode.DEADLINE_EXCEEDED:
                    raise refusal from error
                if time.monotonic() + _LOADING_PAUSE > end:
                    raise loading from error  # it says more than that the deadline passed
            time.sleep(_LOADING_PAUSE)


def _target(address: str) -> str:
    """gRPC's own name for the address: a socket's path is part of a URI there."""
    if not address.startswith("unix:"):
        return address
    path = os.path.abspath(os.path.expanduser(address.removeprefix("unix:").removeprefix("//")))
    return f"unix:{quote(path)}"
