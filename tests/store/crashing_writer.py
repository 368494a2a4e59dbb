"""Writes to a store from several threads until it is killed; says what was answered, a JSON line each."""

import json
import os
import sys
from pathlib import Path
from threading import Thread

import numpy as np

from sidecar.domain import Packet, PacketItem, Rating, Segment, UseReport
from sidecar.store.checkpoints import Limits
from sidecar.store.requests import Replayed
from sidecar.store.store import Store

folder, cycle = Path(sys.argv[1]), sys.argv[2]
# Checkpoints and scrubs as often as possible, so that kills meet them too.
store = Store.open(folder, limits=Limits(wal_bytes=100_000, scrub_idle=0.01, scrub_within=0.02, retry=0.0))


def say(*words: str) -> None:
    """One line, in one write."""
    os.write(1, (json.dumps(words) + "\n").encode())


def packet(packet_id: str, keys: dict[str, int]) -> Packet:
    """A packet of two memories."""
    numbers = np.arange(14.0)
    items = tuple(
        PacketItem(memory_id, key, Segment.RANKED, 1.0, numbers, numbers, numbers, 1) for memory_id, key in keys.items()
    )
    return Packet(
        packet_id=packet_id,
        namespace="n",
        items=items,
        undrawn=(),
        model_version="default",
        feature_schema_hash="hash",
        exploration_policy="policy-1",
        score_version=1,
        as_of_time=1,
        create_time=1,
        valid_until_time=None,
        left_out={},
        degradations=(),
        empty_reason=None,
        reserve_pool_size=0,
        pool_sizes=(0, 0),
        reserved_slots=0,
        token_budget=None,
        ranked_budget=None,
        slot_budget=None,
        session_id=packet_id[-1],
    )


def work(thread: int) -> None:
    """Writes for ever."""
    number = 0
    while True:
        number += 1
        name = f"{cycle}-{thread}-{number}"
        text = f"{name} " * 40
        result = store.upsert("n", [(name, {"content": text, "tokens": 1}), (name + "b", {"content": "x"})], 1)
        assert not isinstance(result, Replayed)
        say("memory", name, text)
        keys = {memory.id: memory.key for _, memory in result[0]}
        store.log_packet(packet(name, keys))
        say("packet", name)
        store.report(UseReport(name, used_memory_ids=(name,)), 2)
        say("report", name)
        store.rate("n", name, "ann", Rating.HELPFUL, "", 3)
        say("rated", name)
        if number % 3 == 0:
            gone = f"{cycle}-{thread}-{number - 1}"
            say("deleting", gone)
            store.delete("n", [gone], 4)
            say("deleted", gone)


for thread in range(8):
    Thread(target=work, args=(thread,)).start()
