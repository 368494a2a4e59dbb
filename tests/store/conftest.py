from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from sidecar.domain import Micros, Packet, PacketItem, Segment
from sidecar.store.store import Store


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    """An open, empty store."""
    with Store.open(tmp_path / "data") as opened:
        yield opened


NOW: Micros = 1_700_000_000_000_000


def _packet(packet_id: str, memories: dict[str, int], **fields: Any) -> Packet:
    items = tuple(
        PacketItem(
            memory_id=memory_id,
            memory_key=key,
            segment=Segment.RANKED,
            score=1.0 / place,
            contributions=np.zeros(2),
            features=np.zeros(2),
            raw=np.zeros(2),
            tokens=1,
        )
        for place, (memory_id, key) in enumerate(memories.items(), start=1)
    )
    given: dict[str, Any] = {
        "packet_id": packet_id,
        "namespace": "n",
        "items": items,
        "undrawn": (),
        "model_version": "default",
        "feature_schema_hash": "hash",
        "exploration_policy": "policy-1",
        "score_version": 1,
        "as_of_time": NOW,
        "create_time": NOW,
        "valid_until_time": None,
        "left_out": {},
        "degradations": (),
        "empty_reason": None,
        "reserve_pool_size": 0,
        "pool_sizes": (0, 0),
        "reserved_slots": 0,
        "token_budget": None,
        "ranked_budget": None,
        "slot_budget": None,
        **fields,
    }
    return Packet(**given)


@pytest.fixture(scope="session")
def make_packet() -> Callable[..., Packet]:
    """Makes a packet of the namespace n from its id and its memories, id to key, in their order."""
    return _packet
