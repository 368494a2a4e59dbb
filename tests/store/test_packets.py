import dataclasses
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from sidecar.domain import (
    DegradationReason,
    EmptyReason,
    LeftOutReason,
    OtherWays,
    Packet,
    PacketItem,
    PoolItem,
    Segment,
)
from sidecar.errors import PacketNotFoundError
from sidecar.store.requests import Once, Replayed
from sidecar.store.store import Store

NOW = 1_700_000_000_000_000


def packet(packet_id: str, items: int = 3, undrawn: int = 2, width: int = 5, **fields: Any) -> Packet:
    """A packet whose numbers all differ, down to the last bit."""
    random = np.random.default_rng(len(packet_id) + items)
    segments = list(Segment)
    given: dict[str, Any] = {
        "packet_id": packet_id,
        "namespace": "n",
        "items": tuple(
            PacketItem(
                memory_id=f"m{i}",
                memory_key=i + 1,
                segment=segments[i % 3],
                score=float(random.random()),
                contributions=random.random(width),
                features=random.random(width),
                raw=random.normal(size=width + 2) * 1e9,
                tokens=i + 10,
                task_fit=float(random.random()),
                inclusion_propensity=float(random.random()),
                position_probability=float(random.random()),
                swapped=i == 1,
                kind=f"kind-{i}",
            )
            for i in range(items)
        ),
        "undrawn": tuple(
            PoolItem(
                memory_id=f"u{i}",
                memory_key=2**53 + 1 + i,
                features=random.random(width),
                raw=random.random(width + 2),
                tokens=i + 100,
                score=float(random.random()),
                task_fit=float(random.random()),
                inclusion_propensity=float(random.random()),
                kind="fact",
            )
            for i in range(undrawn)
        ),
        "model_version": "default",
        "feature_schema_hash": "hash",
        "exploration_policy": "policy-1",
        "score_version": 7,
        "as_of_time": NOW - 5,
        "create_time": NOW,
        "valid_until_time": NOW + 9,
        "left_out": {LeftOutReason.FILTERED: 3, LeftOutReason.OUTRANKED: 1000},
        "degradations": ((DegradationReason.NO_EMBEDDING, "説明"),),
        "empty_reason": EmptyReason.BUDGET,
        "reserve_pool_size": 24,
        "pool_sizes": (20, 4),
        "reserved_slots": 2,
        "token_budget": 4000,
        "ranked_budget": 3000,
        "slot_budget": 500,
        "agent_id": "agent",
        "session_id": "session",
        "surface": "cli",
        "request_id": "request",
        "payload": b"\x00\xffpayload",
        "other_ways": OtherWays(("lexical:smartctx", "frequency:importance"), random.random((items + undrawn, 2))),
        **fields,
    }
    return Packet(**given)


def plain(value: Any) -> Any:
    """The value with arrays as bytes, so that packets can be compared bit for bit."""
    if isinstance(value, Sequence) and not isinstance(value, str | bytes):
        return tuple(plain(one) for one in value)
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {field.name: plain(getattr(value, field.name)) for field in dataclasses.fields(value)}
    return value.tobytes() if isinstance(value, np.ndarray) else value


EMPTY: dict[str, Any] = {
    "valid_until_time": None,
    "left_out": {},
    "degradations": (),
    "empty_reason": None,
    "token_budget": None,
    "ranked_budget": None,
    "slot_budget": None,
    "agent_id": "",
    "session_id": "",
    "surface": "",
    "request_id": "",
    "payload": b"",
    "other_ways": None,
}


@pytest.mark.parametrize("fields", [{}, EMPTY])
@pytest.mark.parametrize(("items", "undrawn"), [(0, 0), (1, 0), (0, 3), (20, 24)])
def test_a_packet_comes_back_bit_for_bit(store: Store, items: int, undrawn: int, fields: dict[str, Any]) -> None:
    """Everything that was logged with a packet is read back bit for bit, after a restart too."""
    logged = packet("p", items, undrawn, **fields)
    store.log_packet(logged)
    store.close()
    with Store.open(store.folder) as again:
        assert plain(again.get_packet("n", "p").packet) == plain(logged)
        assert plain(again.get_packet(None, "p").packet) == plain(logged)


def test_another_namespaces_packet_is_unknown(store: Store) -> None:
    """A packet is found by its id only in its own namespace."""
    store.log_packet(packet("p"))
    for namespace, packet_id in (("n2", "p"), ("", "p"), ("n", "p2"), (None, "")):
        with pytest.raises(PacketNotFoundError, match="packet_id"):
            store.get_packet(namespace, packet_id)


def test_a_retried_rank_keeps_its_first_packet(store: Store) -> None:
    """A second packet for the same request id is not logged; the answer is the first packet's id."""
    once = Once("Rank", "r1", b"hash", str.encode)
    assert store.answered("n", once, NOW) is None
    assert store.log_packet(packet("first"), once) is None
    assert store.log_packet(packet("second"), once) == Replayed(b"first")
    assert store.answered("n", once, NOW) == Replayed(b"first")
    with pytest.raises(PacketNotFoundError):
        store.get_packet("n", "second")


def test_recent_reserved_looks_at_the_last_packets_of_the_session(store: Store) -> None:
    """Only memories in reserved slots of the session's last packets are named, and none without a session."""

    def log(packet_id: str, key: int, **fields: Any) -> None:
        item = packet("x", 1).items[0]
        reserved = dataclasses.replace(item, memory_key=key, segment=Segment.RESERVED)
        ranked = dataclasses.replace(item, memory_id="other", memory_key=key + 1000, segment=Segment.RANKED)
        store.log_packet(dataclasses.replace(packet(packet_id, **fields), items=(ranked, reserved)))

    for number in range(5):
        log(f"p{number}", number)
    log("elsewhere", 77, namespace="n2")
    log("other session", 88, session_id="session2")
    log("alone", 99, session_id="")
    log("alone too", 100, session_id="")
    assert store.recent_reserved("n", "session") == {2, 3, 4}
    assert store.recent_reserved("n", "session", 1) == {4}
    assert store.recent_reserved("n", "") == set()
    assert store.recent_reserved("n", "p:alone") == set()


def test_numbers_count_what_is_there(store: Store) -> None:
    """The store's numbers count memories, namespaces and packets, in all and by namespace."""
    store.upsert("n", [("a", {"content": "x", "tokens": 1}), ("b", {"content": "y", "tokens": 1})], NOW)
    store.upsert("n2", [("a", {"content": "x", "tokens": 1})], NOW)
    store.log_packet(packet("p1"))
    store.log_packet(packet("p2", namespace="n3"))
    numbers = store.numbers()
    assert (numbers.memory_count, numbers.namespace_count, numbers.packet_count) == (3, 2, 2)
    assert numbers.reported_packet_count == 0
    assert numbers.byte_count > 10_000
    of_n = store.namespace_numbers("n")
    assert (of_n.score_version, of_n.memory_count, of_n.packet_count) == (1, 2, 1)
    assert store.namespace_numbers("n3").packet_count == 1
    assert store.namespace_numbers("none").memory_count == 0


def test_a_purge_takes_the_packets_too(store: Store) -> None:
    """A purged namespace leaves no packet behind, and another's stay."""
    store.log_packet(packet("p1"))
    store.log_packet(packet("p2", namespace="n2"))
    assert store.purge_namespace("n") == (0, 1)
    with pytest.raises(PacketNotFoundError):
        store.get_packet("n", "p1")
    assert store.get_packet("n2", "p2").packet.packet_id == "p2"
