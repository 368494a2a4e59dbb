"""Boots a machine with a real systemd on which memory-ranker is installed as docs/deploy.md says."""

from __future__ import annotations

import contextlib
import os
import re
import socket
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.deploy import files
from tests.deploy.image import LENT, LIMITS, Podman

TOOLS = ("systemd-nspawn", "nsenter")
IN_DEBIAN = "on Debian and Ubuntu: apt install systemd-container"
STEPS = """
FROM trainer
USER root
RUN apt-get update && apt-get install -y --no-install-recommends dbus systemd-sysv
COPY . /etc/systemd/system/
RUN systemctl enable {units}
"""
"""The trainer's image has the program in the units' place already, and their user."""


class Machine:
    """A machine that has started. `leader` is its first process."""

    def __init__(self, leader: int) -> None:
        self._leader = leader
        self.listen = f"unix:/proc/{leader}/root/run/memory-ranker/memory-ranker.sock"

    def run(self, *command: str) -> str:
        """What a command prints on it."""
        entered = ["nsenter", f"--target={self._leader}", "--all", "--", *command]
        ran = subprocess.run(entered, capture_output=True, encoding="utf-8", check=False)
        assert ran.returncode == 0, ran.stdout + ran.stderr + self.journal()
        return ran.stdout.strip()

    def shows(self, unit: str, *names: str) -> list[str]:
        """What systemd says of a unit, by the names of its properties."""
        return [self.run("systemctl", "show", f"--property={name}", "--value", unit) for name in names]

    def journal(self) -> str:
        """What was logged since it started."""
        command = ["nsenter", f"--target={self._leader}", "--all", "journalctl", "--boot", "--no-pager"]
        return subprocess.run(command, capture_output=True, encoding="utf-8", check=False).stdout[-10000:]


@contextlib.contextmanager
def booted(podman: Podman) -> Iterator[Machine]:
    """A machine with all units enabled, that has reached its default target, without a network."""
    units = [path.name for path in files.UNITS if "WantedBy" in files.unit(path)]
    steps = podman.folder / "Machine"
    steps.write_text(STEPS.format(units=" ".join(units)), encoding="utf-8")
    lent = [f"--volume={path}:{path}:ro" for path in LENT if path.exists()]
    how = ["--pull=never", "--network=host", *LIMITS, *lent]
    podman.run("build", *how, "--tag=machine", f"--file={steps}", files.DEPLOY / "systemd")
    podman.run("create", "--name=machine", "machine")
    root = podman.run("mount", "machine").stdout.strip()
    command = ["systemd-nspawn", f"--directory={root}", "--register=no", "--keep-unit", "--private-network"]
    tried = subprocess.run([*command, "--quiet", "true"], capture_output=True, encoding="utf-8", check=False)
    if tried.returncode:
        pytest.skip(f"this machine starts no other under systemd-nspawn: {tried.stderr.strip()[-500:]}")
    with (
        tempfile.TemporaryDirectory(prefix="mr-") as folder,
        socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as told,
        Path(folder, "console").open("wb") as console,
    ):
        told.bind(f"{folder}/notify")
        told.settimeout(100)
        machine = subprocess.Popen(
            [*command, "--notify-ready=yes", "--console=pipe", "--boot"],
            env={**os.environ, "NOTIFY_SOCKET": f"{folder}/notify", "SYSTEMD_NSPAWN_UNIFIED_HIERARCHY": "1"},
            stdin=subprocess.DEVNULL,
            stdout=console,
            stderr=console,
        )
        try:
            leader = _leader(told)
            # Whoever tells more would wait for a reader.
            told.close()
            yield Machine(leader)
        finally:
            machine.terminate()
            machine.wait(timeout=60)
            podman.run("unmount", "machine")


def _leader(told: socket.socket) -> int:
    """Waits until the machine has started, and returns the number of its first process."""
    heard = ""
    while "READY=1" not in heard.split("\n"):
        heard += told.recv(4096).decode() + "\n"
    (leader,) = re.findall(r"^X_NSPAWN_LEADER_PID=(\d+)$", heard, re.MULTILINE)
    return int(leader)
