"""The README: every command in it is run, its Python too, and its links lead somewhere."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from memoryranker.client import Client

from tests.serving import TELLING, ended, finished

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"^```(\w+)\n(.*?)^```", README, re.MULTILINE | re.DOTALL)
_AGENTS = re.search(r"^### From .*?^## ", README, re.MULTILINE | re.DOTALL)
# The commands of the agents in several languages are run in tests/clients.
SHELL = [text for language, text in BLOCKS if language == "sh" and not (_AGENTS and text in _AGENTS[0])]
SERVE = "memory-ranker serve\n"
RUN_BY_CI = ["make demo\n", "make test\n"]


@pytest.fixture
def home() -> Iterator[dict[str, str]]:
    """The environment of a stranger: an empty home, and our commands on the path."""
    with tempfile.TemporaryDirectory(prefix="mr-") as folder:  # short: a socket's path is limited
        yield {
            "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
            "HOME": folder,
            "XDG_RUNTIME_DIR": folder,
            "LANG": "C.UTF-8",
        }


@pytest.fixture
def served(home: dict[str, str]) -> Iterator[dict[str, str]]:
    """The same, with the README's server running and ready."""
    with serving(home):
        yield home


@contextmanager
def serving(home: dict[str, str]) -> Iterator[Client]:
    """The README's server, and a client of it."""
    environ = {**home, **TELLING}
    server = subprocess.Popen(SERVE, shell=True, env=environ, cwd=home["HOME"], start_new_session=True, text=True)
    try:
        with Client(f"unix:{home['HOME']}/memory-ranker.sock", timeout=60, wait_for_ready=True) as client:
            client.status()
            yield client
    finally:
        os.killpg(server.pid, 15)
        finished(server)


def test_the_commands_of_the_first_section_are_what_ci_runs() -> None:
    """`make demo` and `make test` are run from a clean clone."""
    ci = (ROOT / ".ci" / "run").read_text(encoding="utf-8")
    for command in RUN_BY_CI:
        assert command in SHELL
        assert command.strip() in ci


def test_every_other_command_works(served: dict[str, str]) -> None:
    """The remaining blocks run as one script, in their order, against the server of the README."""
    assert SERVE in SHELL
    script = "".join(text for text in SHELL if text not in [SERVE, *RUN_BY_CI])
    ran = ended(["bash", "-euo", "pipefail", "-c", script], env=served, cwd=served["HOME"])
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert "canary" in ran.stdout


def test_the_python_works(served: dict[str, str]) -> None:
    """The Python block prints the memory that it stored."""
    (code,) = [text for language, text in BLOCKS if language == "python"]
    ran = ended([sys.executable, "-c", code], env=served)
    assert ran.returncode == 0, ran.stderr
    assert "green canary" in ran.stdout


def test_the_weights_of_the_settings_file_serve(home: dict[str, str]) -> None:
    """The TOML block is a settings file that the command line takes, and its weights rank on the server."""
    (toml,) = [text for language, text in BLOCKS if language == "toml"]
    file = Path(home["HOME"]) / "config.toml"
    file.write_text(toml, encoding="utf-8")
    command = ["memory-ranker", "config", "--json"]
    shown = ended(command, env={**home, "MEMORY_RANKER_CONFIG": str(file)})
    assert shown.returncode == 0, shown.stderr
    assert '"mine"' in shown.stdout
    with serving({**home, "MEMORY_RANKER_CONFIG": str(file)}) as client:
        client.upsert("trial", [{"id": "m1", "content": "the ferry leaves at nine"}])
        packet = client.rank("trial", "when does the ferry leave", weights="mine", explain="full")
        assert [item.memory.id for item in packet.items] == ["m1"]
        assert packet.model_version == "mine"
        for kind, days in tomllib.loads(toml)["weights"]["mine"]["half_life_days"].items():
            assert packet.weights.half_life_days[kind] == days


def test_links_lead_somewhere() -> None:
    """Every relative link of the README and the docs names a file that is there."""
    for page in [ROOT / "README.md", ROOT / "CHANGELOG.md", *sorted((ROOT / "docs").glob("*.md"))]:
        for target in re.findall(r"\]\((?!https?:|#)([^)#\s]+)", page.read_text(encoding="utf-8")):
            assert (page.parent / target).exists(), f"{page.name}: {target}"
