"""Maintained linters and schemas find nothing in deploy/, and would find something if it were there."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.deploy import files
from tests.deploy.tools import CHECKED, need, path

pytestmark = CHECKED
PINNED = "`make deploy-check` installs it"
SYSTEMD = "on Debian and Ubuntu: apt install systemd"
MOST_EXPOSED = 1.5
"""Of 10, by `systemd-analyze security`, which calls anything up to 2 OK."""


def said(*command: str | Path) -> str:
    """What a linter says, on both streams, or that it refused without a word."""
    ran = subprocess.run(
        command,
        env={**os.environ, "PATH": path(), "LC_ALL": "C.UTF-8"},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    return ran.stdout if ran.returncode == 0 else f"{ran.stdout}\nended with {ran.returncode}"


@dataclass(frozen=True, slots=True)
class Linter:
    """A file, what is said of it, and a fault that must not pass: a text in it, and what takes its place."""

    file: Path
    check: Callable[[Path], str]
    right: str
    wrong: str

    @property
    def name(self) -> str:
        return f"{self.file.name}-{self.wrong.split()[-1]}"


def hadolint(file: Path) -> str:
    need(PINNED, "hadolint")
    return said("hadolint", "--no-color", file)


def kubernetes(file: Path) -> str:
    need(PINNED, "kubernetes-validate")
    return said("kubernetes-validate", "--strict", "--quiet", file)


def compose(file: Path) -> str:
    need(PINNED, "check-jsonschema")
    return said("check-jsonschema", "--quiet", "--builtin-schema", "vendor.compose-spec", file)


def verified(unit: Path) -> str:
    """What systemd says of a unit among the system's own, with stand-ins for the programs that it starts."""
    need(SYSTEMD, "systemd-analyze")
    root = unit.parent / "root"
    for program in ("opt/memory-ranker/bin/memory-ranker", "bin/sh"):
        (root / program).parent.mkdir(parents=True)
        (root / program).touch(0o755)
    shutil.copytree("/usr/lib/systemd/system", root / "usr/lib/systemd/system", symlinks=True)
    for source in files.UNITS:
        (root / "etc/systemd/system").mkdir(parents=True, exist_ok=True)
        shutil.copy(source, root / "etc/systemd/system")
    shutil.copy(unit, root / "etc/systemd/system")
    return said("systemd-analyze", "verify", "--man=no", f"--root={root}", unit.name)


def exposed(unit: Path) -> str:
    need(SYSTEMD, "systemd-analyze")
    said_of_it = said("systemd-analyze", "security", "--offline=true", f"--threshold={MOST_EXPOSED * 10:.0f}", unit)
    return said_of_it if "ended with" in said_of_it else ""


LINTERS = [
    Linter(files.DOCKERFILE, hadolint, 'ENTRYPOINT ["memory-ranker"]', "ENTRYPOINT memory-ranker"),
    Linter(files.DOCKERFILE, hadolint, "WORKDIR /data", "WORKDIR data"),
    Linter(files.KUBERNETES, kubernetes, "restartPolicy: Always", "restartPolice: Always"),
    Linter(files.KUBERNETES, kubernetes, "periodSeconds: 2", "periodSeconds: two"),
    Linter(files.COMPOSE, compose, "read_only: true", "readonly: true"),
    *[
        Linter(each, verified, "[Unit]", "[Unit]\nRequire=memory-ranker.service")
        for each in files.UNITS
        if each.name != "memory-ranker.service"
    ],
    Linter(files.DEPLOY / "systemd" / "memory-ranker.service", verified, "ProtectHome", "ProtectHom"),
    Linter(files.DEPLOY / "systemd" / "memory-ranker-train.timer", verified, "Sun *-*-*", "Some *-*-*"),
    *[
        Linter(each, exposed, "CapabilityBoundingSet=\n", "SystemCallArchitectures=\n")
        for each in files.UNITS
        if each.suffix == ".service"
    ],
]


@pytest.mark.parametrize("linter", LINTERS, ids=lambda linter: linter.name)
def test_linters_find_nothing_and_can_find(linter: Linter, tmp_path: Path) -> None:
    """A linter is silent on a file, and is not once the file has a fault that one makes."""
    text = linter.file.read_text(encoding="utf-8")
    assert linter.right in text
    for name, content in (("right", text), ("wrong", text.replace(linter.right, linter.wrong, 1))):
        (tmp_path / name).mkdir()
        file = tmp_path / name / linter.file.name
        file.write_text(content, encoding="utf-8")
        found = linter.check(file)
        assert (found == "") == (name == "right"), found
