"""Faults of filters and tenancy that were seen elsewhere, tried here."""

from __future__ import annotations

import grpc
import pytest
from memoryranker.client import Client, RankerRpcError

from tests.promises.frozen import ids, text


@pytest.mark.parametrize(
    ("one", "other"), [("crew", "crew2"), ("proj/1", "proj/10"), ("a", "a/b"), ("a%", "ab"), ("a_", "ab")]
)
def test_tn_02_a_namespace_is_no_prefix(client: Client, namespace: str, one: str, other: str) -> None:
    """A namespace reads, ranks, reports and deletes its own, whatever another's name begins with."""
    one, other = f"{namespace} {one}", f"{namespace} {other}"
    client.upsert(one, [{"id": "m", "content": text(1)}])
    client.upsert(other, [{"id": "m", "content": text(2)}, {"id": "n", "content": text(3)}])
    assert ids(client.rank(one)) == ["m"]
    assert client.rank(one).items[0].memory.content == text(1)
    assert [memory.content for memory in client.list(one)] == [text(1)]
    assert client.delete(one, ["m", "n"]).deleted_count == 1
    assert set(ids(client.rank(other))) == {"m", "n"}


def test_tn_04_an_empty_namespace_is_refused(client: Client, namespace: str) -> None:
    """Never all namespaces, never a silent nothing."""
    client.upsert(namespace, [{"id": "m", "content": text(1)}])
    packet = client.rank(namespace)
    for call in (
        lambda: client.rank(""),
        lambda: client.delete("", ["m"]),
        lambda: client.delete("", filter={"kinds": ["fact"]}),
        lambda: client.report_use(packet.packet_id, ["m"], namespace=""),
        lambda: client.upsert("", [{"id": "m", "content": text(1)}]),
        lambda: client.get("", "m"),
        lambda: list(client.list("")),
        lambda: client.get_packet("", packet.packet_id),
        lambda: client.explain_miss("", "m", packet_id=packet.packet_id),
        lambda: client.rate("", "m", "helpful"),
        lambda: client.update("", "m", pinned=True),
    ):
        with pytest.raises(RankerRpcError) as caught:
            call()
        assert caught.value.code is grpc.StatusCode.INVALID_ARGUMENT
        assert caught.value.violations[0].field == "namespace"
    assert ids(client.rank(namespace)) == ["m"]


def test_tn_06_a_small_tenant_gets_all_that_it_has(client: Client, namespace: str) -> None:
    """Five thousand memories of another namespace, and of this one behind a filter, that are nearer to the task, take
    nothing from three."""
    big, small = f"{namespace} big", f"{namespace} small"
    for start in range(0, 5000, 1000):
        client.upsert(
            big,
            [{"id": f"b{i}", "content": f"ferry timetable {i}"} for i in range(start, start + 1000)],
            timeout=60,
        )
    few = [{"id": f"s{i}", "content": text(i), "tags": ["few"]} for i in range(3)]
    client.upsert(small, few)
    client.upsert(big, few)
    assert set(ids(client.rank(small, "ferry timetable", max_items=3))) == {"s0", "s1", "s2"}
    packet = client.rank(big, "ferry timetable", max_items=3, filter={"any_tags": ["few"]})
    assert set(ids(packet)) == {"s0", "s1", "s2"}
