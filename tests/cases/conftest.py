"""A frozen server that all cases share."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from memoryranker.client import Client

from tests.promises.frozen import frozen
from tests.serving import Running


@pytest.fixture(scope="session")
def shared_frozen(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    """A server whose clock stands still, with the shipped embedder."""
    with frozen(tmp_path_factory.mktemp("cases"), embedder="wordllama") as server:
        yield server


@pytest.fixture
def client(shared_frozen: Running) -> Client:
    """A client of it."""
    return shared_frozen.client
