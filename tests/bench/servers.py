"""The servers of the bench: our own as a process, and one that only echoes what a Rank answers."""

from __future__ import annotations

import contextlib
import os
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from concurrent import futures
from pathlib import Path
from typing import Any

import grpc
from grpc_health.v1.health_pb2 import HealthCheckRequest, HealthCheckResponse
from grpc_health.v1.health_pb2_grpc import HealthStub
from memoryranker.client import Client
from memoryranker.v1 import ranker_pb2

ECHO = "/bench.Echo/Rank"


@contextlib.contextmanager
def short_folder() -> Iterator[Path]:
    """A folder whose sockets have short paths."""
    with tempfile.TemporaryDirectory(prefix="mrb-") as name:
        yield Path(name)


@contextlib.contextmanager
def server(folder: Path, *flags: str) -> Iterator[tuple[str, subprocess.Popen[bytes]]]:
    """`memory-ranker serve` over `folder`; yields its address once it is ready."""
    listen = f"unix:{folder}/s.sock"
    environment = {**_as_installed(), "HOME": str(folder)}
    command = [sys.executable, "-m", "sidecar.cli", "serve", "--listen", listen, "--data", str(folder / "data"), *flags]
    process = subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        _wait_until_serving(listen, process)
        yield listen, process
    finally:
        process.terminate()
        process.wait(timeout=60)


def _as_installed() -> dict[str, str]:
    """The environment, in which Python keeps what it compiled: an installed program was compiled when it came."""
    return {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}


def _wait_until_serving(listen: str, process: subprocess.Popen[bytes], seconds: float = 120) -> None:
    """Looks every few milliseconds: what a client pauses between two tries would be most of a short start."""
    end = time.monotonic() + seconds
    path = listen.removeprefix("unix:")
    while time.monotonic() < end and process.poll() is None:
        with socket.socket(socket.AF_UNIX) as probe, contextlib.suppress(OSError):
            probe.connect(path)
            break
        time.sleep(0.005)
    with grpc.insecure_channel(listen, options=[("grpc.enable_http_proxy", 0)]) as channel:
        health: Any = HealthStub(channel)
        for answer in health.Watch(HealthCheckRequest(), timeout=max(0.0, end - time.monotonic())):
            if answer.status == HealthCheckResponse.SERVING:
                return


class Started:
    """Servers with folders and clients of their own, which end together."""

    def __init__(self, open_: contextlib.ExitStack) -> None:
        self._open = open_

    def folder(self) -> Path:
        """A folder of its own."""
        return self._open.enter_context(short_folder())

    def server(self, folder: Path, *flags: str) -> tuple[str, subprocess.Popen[bytes]]:
        """As `server`."""
        return self._open.enter_context(server(folder, *flags))

    def client(self, listen: str) -> Client:
        """A client of a server."""
        return self._open.enter_context(Client(listen, timeout=60))


@contextlib.contextmanager
def many() -> Iterator[Started]:
    """Several servers at once."""
    with contextlib.ExitStack() as stack:
        yield Started(stack)


def serve_echo(listen: str, answer: bytes) -> None:
    """Answers every call with the same bytes, on as many threads as our own server has. Runs until killed."""

    class Handler(grpc.GenericRpcHandler):
        def service(self, details: grpc.HandlerCallDetails) -> grpc.RpcMethodHandler[Any, Any]:
            parsed = ranker_pb2.RankResponse.FromString(answer)
            return grpc.unary_unary_rpc_method_handler(
                lambda request, context: parsed,
                request_deserializer=ranker_pb2.RankRequest.FromString,
                response_serializer=ranker_pb2.RankResponse.SerializeToString,
            )

    echo = grpc.server(futures.ThreadPoolExecutor(4), handlers=[Handler()])
    echo.add_insecure_port(listen)
    echo.start()
    echo.wait_for_termination()


@contextlib.contextmanager
def echo_server(folder: Path, answer: bytes) -> Iterator[str]:
    """A process that echoes `answer`; yields its address once it is ready."""
    listen, file = f"unix:{folder}/e.sock", folder / "answer.bin"
    file.write_bytes(answer)
    code = (
        "import sys; from pathlib import Path; from tests.bench.servers import serve_echo; "
        "serve_echo(sys.argv[1], Path(sys.argv[2]).read_bytes())"
    )
    with serving(listen, "-c", code, listen, str(file)):
        yield listen


@contextlib.contextmanager
def serving(listen: str, *arguments: str) -> Iterator[None]:
    """A Python process with these arguments that serves at `listen`, from when it is ready on."""
    process = subprocess.Popen([sys.executable, *arguments], cwd=Path(__file__).parents[2])
    try:
        with grpc.insecure_channel(listen, options=[("grpc.enable_http_proxy", 0)]) as channel:
            grpc.channel_ready_future(channel).result(timeout=60)
        yield
    finally:
        process.terminate()
        process.wait(timeout=30)


def resident_bytes(process: subprocess.Popen[bytes]) -> int:
    """Resident memory of a process, in bytes (Linux)."""
    for line in Path(f"/proc/{process.pid}/status").read_text().splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1]) * 1024
    raise ValueError("the kernel tells no VmRSS")


def seconds_to_serving(folder: Path, *flags: str) -> tuple[float, int]:
    """Starts over a store that is there: seconds until the first answer, and the resident bytes then."""
    start = time.perf_counter()
    with server(folder, *flags) as (_, process):
        return time.perf_counter() - start, resident_bytes(process)


def seconds_of_bare_imports() -> float:
    """How long a process takes that only imports what the server needs."""
    code = "import numpy, grpc, simsimd, google.protobuf, grpc_health.v1.health, Stemmer, click"
    start = time.perf_counter()
    subprocess.run([sys.executable, "-c", code], check=True, env={**_as_installed(), "OMP_NUM_THREADS": "1"})
    return time.perf_counter() - start
