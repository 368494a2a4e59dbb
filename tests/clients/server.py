"""Runs a server that the scenario freezes, kills and starts again, beside the client's process that asks for it."""

from __future__ import annotations

import contextlib
import os
import re
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from memoryranker.client import Client


def address(transport: str, folder: Path) -> str:
    """Where to serve: unix or tcp."""
    if transport == "unix":
        return f"unix:{folder}/s.sock"
    with socket.create_server(("127.0.0.1", 0)) as free:
        return f"127.0.0.1:{free.getsockname()[1]}"


class Controlled:
    """A server in a process of its own, that does as it is told."""

    def __init__(self, listen: str, folder: Path) -> None:
        self.listen = listen
        self._folder = folder
        self._process: subprocess.Popen[bytes] | None = None

    def control(self, word: str) -> None:
        """freeze, thaw, kill (as kill -9 does), or start, without waiting until it is ready."""
        match word:
            case "start":
                assert self._process is None
                environ = {name: value for name, value in os.environ.items() if not name.startswith("MEMORY_RANKER_")}
                command = [sys.executable, "-m", "sidecar.cli", "serve", "--listen", self.listen, "--data"]
                with (self._folder / "server.log").open("ab") as log:
                    self._process = subprocess.Popen([*command, str(self._folder / "data")], env=environ, stderr=log)
            case "freeze":
                assert self._process is not None
                self._process.send_signal(signal.SIGSTOP)
                os.waitid(os.P_PID, self._process.pid, os.WSTOPPED)
            case "thaw":
                assert self._process is not None
                self._process.send_signal(signal.SIGCONT)
            case "kill":
                if self._process is not None:
                    self._process.kill()
                    self._process.wait()
                self._process = None
            case _:
                raise ValueError(f"nobody knows how to {word}")


@contextlib.contextmanager
def controlled(transport: str, folder: Path) -> Iterator[Controlled]:
    """A ready server with its data in `folder`, killed at the end."""
    server = Controlled(address(transport, folder), folder)
    server.control("start")
    try:
        with Client(server.listen, timeout=60, wait_for_ready=True) as client:
            client.status()
        yield server
    finally:
        server.control("kill")


def converse(command: Sequence[str], folder: Path, environ: Mapping[str, str], server: Controlled) -> list[str]:
    """Runs a client to its end, does what it asks for, and returns its other lines."""
    lines = []
    with subprocess.Popen(
        command,
        cwd=folder,
        env=environ,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        encoding="utf-8",
    ) as client:
        assert client.stdin is not None
        assert client.stdout is not None
        try:
            for line in client.stdout:
                if line.startswith("control "):
                    server.control(line.split()[1])
                    client.stdin.write("done\n")
                    client.stdin.flush()
                elif text := re.sub("\x1b\\[[0-9;]*m", "", line).strip():  # Maven prints colours, even if told not to.
                    lines.append(text)
        finally:
            client.kill()
    return lines
