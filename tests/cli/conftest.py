from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from sidecar.cli.connection import Connection
from sidecar.cli.demo_server import running_server, temporary_folder
from sidecar.cli.group import cli

Run = Callable[..., Result]

_namespaces = (f"namespace-{number}" for number in itertools.count())


@pytest.fixture(scope="session")
def folder() -> Iterator[Path]:
    """A folder short enough for sockets."""
    with temporary_folder(keep=False) as path:
        yield path


@pytest.fixture(scope="session")
def server(folder: Path) -> Iterator[Connection]:
    """A real server in a process of its own."""
    with running_server(folder) as connection:
        yield connection


@pytest.fixture
def run(server: Connection, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    """Runs the command line against the server, in a namespace and a folder of the test's own."""
    monkeypatch.setenv("MEMORY_RANKER_LISTEN", server.address)
    monkeypatch.setenv("MEMORY_RANKER_NAMESPACE", next(_namespaces))
    monkeypatch.chdir(tmp_path)

    def call(*arguments: str, stdin: str | bytes | None = None) -> Result:
        return CliRunner().invoke(cli, arguments, input=stdin, prog_name="memory-ranker")

    return call
