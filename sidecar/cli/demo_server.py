"""A server of the demo's own: a real process in a folder of its own, which is gone when the demo ends."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from sidecar.cli.connection import Connection
from sidecar.cli.failures import ExitCode, Failure
from sidecar.config import ENVIRONMENT_PREFIX, SOCKET_PATH_BYTES

START_SECONDS = 60.0
STOP_SECONDS = 15.0
SOCKET = "s.sock"


@contextmanager
def temporary_folder(*, keep: bool) -> Iterator[Path]:
    """A folder whose path is short enough for a socket in it. It is removed unless `keep`."""
    folder = Path(tempfile.mkdtemp(prefix="memory-ranker-"))
    if len(os.fsencode(folder / SOCKET)) > SOCKET_PATH_BYTES:
        folder.rmdir()
        folder = Path(tempfile.mkdtemp(prefix="memory-ranker-", dir="/tmp"))
    try:
        yield folder
    finally:
        if not keep:
            shutil.rmtree(folder)


@contextmanager
def running_server(folder: Path) -> Iterator[Connection]:
    """A server with its store and its socket in `folder`. Failure, with what it said, if it does not get ready."""
    address = f"unix:{folder / SOCKET}"
    log = folder / "server.log"
    command = [sys.executable, "-m", "sidecar.cli", "serve", "--data", str(folder / "store"), "--listen", address]
    # The user's own settings have no part in it.
    environ = {name: value for name, value in os.environ.items() if not name.startswith(ENVIRONMENT_PREFIX)}
    environ["XDG_CONFIG_HOME"] = str(folder)
    with log.open("wb") as output:
        # In a session of its own, so that Ctrl-C reaches the demo alone and the server is stopped in order.
        process = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=output, stderr=output, env=environ, start_new_session=True
        )
    try:
        connection = Connection(address, "demo", 10.0, as_json=False)
        _wait(process, connection, log)
        yield connection
    finally:
        process.terminate()
        try:
            process.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def _wait(process: subprocess.Popen[bytes], connection: Connection, log: Path) -> None:
    """Returns when the server takes calls."""
    from memoryranker.client import Client, RankerRpcError

    deadline = time.monotonic() + START_SECONDS
    # The client waits for the socket; the short deadline is there to notice a server that has ended.
    with Client(connection.address, timeout=0.5, wait_for_ready=True) as client:
        while process.poll() is None and time.monotonic() < deadline:
            with suppress(RankerRpcError):
                client.status()
                return
    ended = f"ended with code {process.returncode}" if process.returncode is not None else "is not ready"
    said = log.read_text(encoding="utf-8", errors="replace").strip()[-2000:]
    raise Failure(f"the demo's server {ended}. It said:\n{said}", ExitCode.ERROR)
