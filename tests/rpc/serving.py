"""Starts servers for tests, over real sockets."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from urllib.parse import quote

import grpc
from memoryranker.v1 import admin_pb2_grpc, memory_pb2_grpc, ranker_pb2_grpc

from sidecar.config import Settings, resolve
from sidecar.rpc.server import Server


def settings_for(listen: str, **flags: object) -> Settings:
    return resolve({"listen": listen, **flags}, {"HOME": "/nowhere"}).settings


@contextlib.contextmanager
def started(listen: str, **flags: object) -> Iterator[Server]:
    """A server that is loading."""
    server = Server(settings_for(listen, **flags))
    try:
        yield server
    finally:
        server.close()


def serve(server: Server, admin: admin_pb2_grpc.AdminServiceServicer) -> None:
    """Makes the server ready, with nothing behind it but `admin`."""
    server.serve(ranker_pb2_grpc.RankerServiceServicer(), memory_pb2_grpc.MemoryServiceServicer(), admin)


@contextlib.contextmanager
def channel_to(server: Server) -> Iterator[grpc.Channel]:
    """A channel without anything of our client."""
    listen = server.listen
    target = f"unix:{quote(listen.removeprefix('unix:'))}" if listen.startswith("unix:") else listen
    with grpc.insecure_channel(target, options=[("grpc.enable_http_proxy", 0)]) as channel:
        yield channel
