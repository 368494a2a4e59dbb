from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from memoryranker.client import Client, RankerRpcError

from tests.serving import wait_until_scored

TOPICS = ("ferry", "lasagne", "login bug", "invoice", "tide table", "garden", "violin", "passport")


@pytest.fixture
def refused(client: Client) -> Callable[..., RankerRpcError]:
    """Calls a method by its name, and gives the error that it raises."""

    def call(method: str, *args: Any, **more: Any) -> RankerRpcError:
        with pytest.raises(RankerRpcError) as caught:
            getattr(client, method)(*args, **more)
        return caught.value

    return call


@pytest.fixture
def filled(client: Client, namespace: str) -> str:
    """A namespace with 40 memories on eight topics."""
    client.upsert(
        namespace,
        [
            {
                "id": f"m{i:02d}",
                "content": f"note {i} on the {TOPICS[i % 8]}: " + "some more words " * (i % 5),
                "kind": ["fact", "decision", "attempt"][i % 3],
                "tags": [TOPICS[i % 8]],
                "metadata": {"number": i},
            }
            for i in range(40)
        ],
    )
    wait_until_scored(client, namespace)
    return namespace
