"""Fixtures that every test may ask for."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import settings

if TYPE_CHECKING:
    from memoryranker.client import Client

    from tests.serving import Running

ROOT = Path(__file__).resolve().parent.parent

# How long an example takes says more of the machine than of the code; pytest's own limit catches what hangs.
settings.register_profile("memory-ranker", deadline=None)
settings.load_profile("memory-ranker")


@pytest.fixture(scope="session")
def shared() -> Path:
    """The data folder beside the repository; SHARED names another. A test that needs it skips without."""
    folder = Path(os.environ.get("SHARED", ROOT.parent / "shared"))
    if not folder.is_dir():
        pytest.skip("../shared is not here")
    return folder


@pytest.fixture(scope="session")
def shared_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    """One whole server for all tests that need no store of their own: use `namespace` beside it."""
    from tests.serving import running

    with running(tmp_path_factory.mktemp("server")) as server:
        yield server


@pytest.fixture
def client(shared_server: Running) -> Client:
    """A client of `shared_server`."""
    return shared_server.client


@pytest.fixture
def namespace(request: pytest.FixtureRequest) -> str:
    """A namespace that no other test uses."""
    return hashlib.sha256(request.node.nodeid.encode()).hexdigest()[:16]


@pytest.fixture
def running_server(tmp_path: Path) -> Iterator[Running]:
    """A whole server in this process with a store of its own."""
    from tests.serving import running

    with running(tmp_path) as server:
        yield server
