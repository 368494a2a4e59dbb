"""Builds deploy/Dockerfile without a Docker engine, and runs what comes of it in containers.

podman reads the Dockerfile itself. The base image is stood in for by a bare Debian of the same release, with Debian's
Python of the same version. Images and containers are in a folder of their own, which goes in the end.
"""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.clients.server import Controlled
from tests.deploy import files

TOOLS = ("podman", "runc", "mmdebstrap")
IN_DEBIAN = (
    "as root, on Debian and Ubuntu: apt install --no-install-recommends debian-archive-keyring mmdebstrap podman runc"
)
BASES = files.ROOT / "build" / "deploy"
LENT = [Path("/etc/ssl/certs"), Path("/etc/pip.conf")]
"""What a machine has to reach its package registries through, lent to the build."""
LIMITS = ("--ulimit=nofile=4096:4096", "--ulimit=nproc=4096:4096")
"""podman's own are above what some machines allow."""
IDENTITY = 10001
TARGETS = ("server", "trainer")


class Podman:
    """Images and containers in a folder of their own."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._command = ["podman", f"--root={folder}/images", f"--runroot={folder}/run", "--runtime=runc"]

    def run(self, *arguments: str | Path, check: bool = True) -> subprocess.CompletedProcess[str]:
        """Runs `podman` to its end."""
        ran = subprocess.run(
            [*self._command, *arguments],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            encoding="utf-8",
            check=False,
        )
        assert ran.returncode == 0 or not check, ran.stdout[-5000:] + ran.stderr[-5000:]
        return ran

    def once(self, image: str, *options: str, command: list[str], check: bool = True) -> Any:
        """Runs a command in a container of its own, without a network."""
        entry = f"--entrypoint={command[0]}"
        return self.run(
            "run",
            "--rm",
            "--no-healthcheck",
            *LIMITS,
            "--network=none",
            *options,
            entry,
            image,
            *command[1:],
            check=check,
        )

    def build(self, target: str) -> str:
        """Builds a target of the Dockerfile, and returns its name."""
        lent = [f"--volume={path}:{path}:ro" for path in LENT if path.exists()]
        how = ["--pull=never", "--network=host", "--format=docker", *LIMITS, *lent]
        self.run("build", *how, f"--target={target}", f"--tag={target}", f"--file={files.DOCKERFILE}", files.ROOT)
        return target


def base() -> tuple[str, Path]:
    """The name of the Dockerfile's base image, and a bare Debian to stand in for it, which is kept."""
    (version,) = re.findall(r"PYTHON=(\S+)", files.last("ARG"))
    (suite,) = set(re.findall(r"^python:\S+-slim-(\w+)", files.all_of("FROM"), re.MULTILINE))
    archive = BASES / f"{suite}.tar"
    if not archive.exists():
        BASES.mkdir(parents=True, exist_ok=True)
        made = BASES / f"{suite}.part.tar"
        packages = "--include=ca-certificates,python-is-python3,python3,python3-venv"
        command = ["mmdebstrap", "--variant=minbase", packages, suite, str(made)]
        ran = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
        assert ran.returncode == 0, ran.stdout
        made.rename(archive)
    return f"localhost/python:{version}-slim-{suite}", archive


@contextlib.contextmanager
def images() -> Iterator[Podman]:
    """podman with both targets built."""
    folder = Path(tempfile.mkdtemp(prefix="mr-"))
    podman = Podman(folder)
    try:
        name, archive = base()
        podman.run("import", archive, name)
        _try(podman, name)
        for target in TARGETS:
            podman.build(target)
        yield podman
    finally:
        podman.run("rm", "--all", "--force", "--time=0")
        shutil.rmtree(folder)


def _try(podman: Podman, image: str) -> None:
    """Skips where no container can be started: a sandbox may withhold namespaces or control groups even from root."""
    tried = podman.once(image, *confined(), command=["true"], check=False)
    if tried.returncode:
        pytest.skip(f"this machine starts no containers: {tried.stderr.strip()[-500:]}")


class Contained(Controlled):
    """A server in a container with the rights and limits that the compose file gives it, that does as it is told."""

    def __init__(self, podman: Podman, folder: Path, environ: Mapping[str, str], *, image: str = "server") -> None:
        super().__init__(f"unix:{folder}/socket/memory-ranker.sock", folder)
        self.podman = podman
        self.name = folder.name
        self.data = folder / "data"
        for name, mode in (("data", 0o700), ("socket", 0o2770)):
            (folder / name).mkdir(exist_ok=True)
            for path in (folder / name, *(folder / name).rglob("*")):
                os.chown(path, IDENTITY, IDENTITY)
            (folder / name).chmod(mode)
        variables = [f"--env={name}={value}" for name, value in environ.items()]
        options = [f"--name={self.name}", "--network=none", *LIMITS, *confined()]
        podman.run("create", *options, *self.mounts(), *variables, image)

    def mounts(self) -> list[str]:
        """Its folders, as options for another container."""
        return [f"--volume={self._folder}/data:/data", f"--volume={self._folder}/socket:/run/memory-ranker"]

    def control(self, word: str) -> None:
        verbs = {"start": "start", "freeze": "pause", "thaw": "unpause", "kill": "kill"}
        self.podman.run(verbs[word], self.name)
        if word == "kill":
            self.podman.run("wait", self.name)

    def inside(self, *command: str) -> str:
        """What a command prints that is run in the container."""
        return self.podman.run("exec", self.name, *command).stdout


def confined(name: str = "memory-ranker") -> list[str]:
    """What a service of the compose file may do, as options: it has no rights, a root that is not written to, and
    limits."""
    service = files.composed()[name]
    return [
        f"--user={service['user']}",
        f"--read-only={str(service['read_only']).lower()}",
        "--read-only-tmpfs=false",
        *[f"--tmpfs={each}" for each in service.get("tmpfs", [])],
        *[f"--cap-drop={each}" for each in service["cap_drop"]],
        *[f"--security-opt={each.partition(':')[0]}" for each in service["security_opt"]],
        f"--memory={service['mem_limit']}",
        f"--pids-limit={service['pids_limit']}",
    ]
