"""Starts servers for tests, over real sockets: bare ones, whole ones in this process, and whole ones in another."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote

import grpc
from memoryranker.client import Client
from memoryranker.v1 import admin_pb2_grpc, memory_pb2_grpc, ranker_pb2_grpc

from sidecar.config import Settings, resolve
from sidecar.lifecycle import Sidecar
from sidecar.rpc.server import Server

TELLING = {"PYTHONFAULTHANDLER": "1"}
"""In the environment of a Python process: it shows the stacks of its threads when it is aborted."""


def settings_for(listen: str, **flags: object) -> Settings:
    return resolve({"listen": listen, **flags}, {"HOME": "/nowhere"}).settings


@contextlib.contextmanager
def started(listen: str, **flags: object) -> Iterator[Server]:
    """A bare server, without store or services, that is loading."""
    server = Server(settings_for(listen, **flags))
    try:
        yield server
    finally:
        server.close()


def serve(server: Server, admin: admin_pb2_grpc.AdminServiceServicer) -> None:
    """Makes a bare server ready, with nothing behind it but `admin`."""
    server.serve(ranker_pb2_grpc.RankerServiceServicer(), memory_pb2_grpc.MemoryServiceServicer(), admin)


@contextlib.contextmanager
def channel_to(listen: str) -> Iterator[grpc.Channel]:
    """A channel without anything of our client."""
    target = f"unix:{quote(listen.removeprefix('unix:'))}" if listen.startswith("unix:") else listen
    with grpc.insecure_channel(target, options=[("grpc.enable_http_proxy", 0)]) as channel:
        yield channel


def wait_until_scored(client: Client, namespace: str) -> None:
    """Returns when the server has worked out the importance of all that was written: of many memories it does so after
    the write, and moves the score version with it."""
    while client.status(namespace).namespace.unscored_count:
        pass


@dataclass(frozen=True, slots=True)
class Running:
    """A whole server in this process, and a client of it."""

    sidecar: Sidecar
    client: Client
    listen: str
    folder: Path


@contextlib.contextmanager
def running(folder: Path, make: Callable[[Settings], Sidecar] = Sidecar, **flags: object) -> Iterator[Running]:
    """A whole server with its store and socket in `folder`, stopped at the end. Flags are settings; `make` may give the
    server another clock or embedder."""
    settings = settings_for(f"unix:{folder}/socket", data=folder / "data", **flags)
    with make(settings) as sidecar, Client(sidecar.listen, timeout=30) as client:
        yield Running(sidecar, client, sidecar.listen, folder)


@contextlib.contextmanager
def process(folder: Path, **environ: str) -> Iterator[tuple[subprocess.Popen[str], Client]]:
    """A whole server in a process of its own, killed at the end if it still runs. It may not be up yet: the client
    waits. `environ` comes on top of an environment without any setting of ours. What is told to stop is waited for
    with `finished`."""
    ours = {name: value for name, value in os.environ.items() if not name.startswith("MEMORY_RANKER_")}
    listen = f"unix:{folder}/socket"
    place = {"MEMORY_RANKER_DATA": str(folder / "data"), "MEMORY_RANKER_LISTEN": listen}
    started = subprocess.Popen(
        [sys.executable, "-m", "sidecar.cli", "serve"],
        env={**ours, **place, **TELLING, **environ},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        with Client(listen, timeout=30, wait_for_ready=True) as client:
            yield started, client
    except BaseException:
        # The test failed, or pytest ended its waiting: a server that hangs is the first to ask why.
        with contextlib.suppress(subprocess.TimeoutExpired):
            print(*_aborted(started), sep="\n")
        raise
    finally:
        if started.poll() is None:
            started.kill()
        started.communicate()


# Goes before Python's arguments: root may read and write anywhere until it gives up two capabilities, 1 and 2, for
# itself and what it starts (prctl 24).
WITHOUT_PRIVILEGES = """
import ctypes, os, sys
if os.geteuid() == 0:
    assert not any(ctypes.CDLL(None).prctl(24, capability, 0, 0, 0) for capability in (1, 2))
os.execv(sys.executable, [sys.executable, *sys.argv[1:]])
"""


def ended(command: Sequence[str | Path], *, within: float = 100, **options: Any) -> subprocess.CompletedProcess[str]:
    """Runs a command to its end, as `finished` waits for it."""
    environ = {**(options.pop("env", None) or os.environ), **TELLING}
    with subprocess.Popen(
        command,
        env=environ,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
        **options,
    ) as process:
        return finished(process, within=within)


def finished(process: subprocess.Popen[str], *, within: float = 60) -> subprocess.CompletedProcess[str]:
    """Waits for a process, and reads what it says meanwhile. One that hangs is aborted with its whole session, if it
    has one of its own; a Python process that was started with TELLING then tells where each thread stood."""
    try:
        out, err = process.communicate(timeout=within)
    except subprocess.TimeoutExpired:
        out, err = _aborted(process)
        raise AssertionError(f"{process.args!r} hung for {within:g} s\n{out}\n{err}") from None
    return subprocess.CompletedProcess(process.args, process.returncode, out, err)


def _aborted(process: subprocess.Popen[str]) -> tuple[str, str]:
    """What it said, at last of its threads, if it still ran."""
    if process.poll() is None:
        if os.getpgid(process.pid) == process.pid:
            os.killpg(process.pid, signal.SIGABRT)
        else:
            process.send_signal(signal.SIGABRT)
    return process.communicate(timeout=30)
