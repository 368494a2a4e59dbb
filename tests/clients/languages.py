"""The languages that a client is tried in: what each needs, and how its part of the README is built and run.

They are built in build/clients, beside a copy of proto/, with the very commands and the very program of the README.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
TREE = ROOT / "build" / "clients"
MADE = {".venv", "gen", "memoryranker", "node_modules", "out", "target", "__pycache__"}
"""Folders that a build makes."""


@dataclass(frozen=True, slots=True)
class Language:
    """One client. `page` has its section, under `heading`; `agent` is the file that the section shows."""

    name: str
    heading: str
    folder: str
    agent: str
    tools: tuple[str, ...]
    runner: tuple[str, ...]
    page: str = "README.md"

    @property
    def place(self) -> Path:
        """Where it is built."""
        return TREE / "tests" / "clients" / self.folder

    def command(self, *arguments: str) -> list[str]:
        """Runs the scenario's runner with these arguments."""
        if "{arguments}" in self.runner[-1]:
            return [*self.runner[:-1], self.runner[-1].format(arguments=" ".join(arguments))]
        return [*self.runner, *arguments]

    def section(self) -> tuple[str, str]:
        """The commands and the program of its section."""
        text = (ROOT / self.page).read_text(encoding="utf-8")
        found = re.search(rf"^#+ {self.heading}\n(.*?)(?=^#+ |\Z)", text, re.MULTILINE | re.DOTALL)
        assert found, f"{self.page} has no section {self.heading}"
        blocks = re.findall(r"^```(\w+)\n(.*?)^```", found[1], re.MULTILINE | re.DOTALL)
        (commands,) = [text for kind, text in blocks if kind == "sh"]
        (program,) = [text for kind, text in blocks if kind != "sh"]
        return commands, program

    def lay_out(self) -> None:
        """Copies its sources and the API into the tree. What is the same is left alone, so that builds stay warm."""
        program = self.section()[1]
        for folder in ("proto", f"tests/clients/{self.folder}"):
            for source in sorted((ROOT / folder).rglob("*")):
                inside = source.relative_to(ROOT / folder)
                if source.is_file() and not (MADE & set(inside.parts[:1]) and folder != "proto"):
                    _write(TREE / folder / inside, source.read_bytes())
        _write(self.place / self.agent, program.encode())

    def run_agent(self, listen: str) -> subprocess.CompletedProcess[str]:
        """Runs the commands of its section, which build it and run its agent."""
        return subprocess.run(
            ["bash", "-euo", "pipefail", "-c", self.section()[0]],
            cwd=TREE,
            env=environment(listen),
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            encoding="utf-8",
            check=False,
        )

    def missing(self) -> list[str]:
        """The tools that are not on the path."""
        return [tool for tool in self.tools if shutil.which(tool, path=environment("")["PATH"]) is None]


def environment(listen: str) -> dict[str, str]:
    """What an agent is run with: nothing of ours but the address."""
    ours = {name: value for name, value in os.environ.items() if not name.startswith("MEMORY_RANKER_")}
    path = f"{Path(sys.executable).parent}{os.pathsep}{ours['PATH']}"
    return {**ours, "PATH": path, "MEMORY_RANKER_LISTEN": listen, "LANG": "C.UTF-8", "LC_ALL": "C.UTF-8"}


def proxied(listen: str) -> dict[str, str]:
    """The same, with a web proxy at which nobody answers."""
    proxy = dict.fromkeys(
        ("http_proxy", "https_proxy", "grpc_proxy", "HTTP_PROXY", "HTTPS_PROXY"), "http://127.0.0.1:9"
    )
    bypassed = {"no_proxy", "NO_PROXY", "no_grpc_proxy"}
    return {name: value for name, value in environment(listen).items() if name not in bypassed} | proxy


def _write(path: Path, content: bytes) -> None:
    if not path.exists() or path.read_bytes() != content:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)


LANGUAGES = [
    Language("python", "From Python", "python", "agent.py", ("memory-ranker",), ("python", "thin_calls.py")),
    Language(
        "bare-python",
        "Python without our client",
        "python",
        "bare_agent.py",
        ("python3",),
        (".venv/bin/python", "bare_calls.py"),
        "docs/clients.md",
    ),
    Language("go", "From Go", "go", "agent/main.go", ("go", "buf"), ("go", "run", "./conformance")),
    Language(
        "typescript",
        "From TypeScript",
        "typescript",
        "src/agent.ts",
        ("node", "npm"),
        ("node", "out/src/conformance.js"),
    ),
    Language(
        "rust",
        "From Rust",
        "rust",
        "src/main.rs",
        ("cargo",),
        ("cargo", "run", "--quiet", "--bin", "conformance", "--"),
    ),
    Language(
        "java",
        "From Java",
        "java",
        "src/main/java/agent/Agent.java",
        ("java", "mvn"),
        ("mvn", "-B", "-q", "-o", "exec:java", "-Dexec.mainClass=agent.Conformance", "-Dexec.args={arguments}"),
    ),
]
