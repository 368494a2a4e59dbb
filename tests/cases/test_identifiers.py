"""Faults of identifiers that were seen elsewhere, tried here."""

from __future__ import annotations

from pathlib import Path

import grpc
import pytest
from memoryranker.client import Client, RankerRpcError
from memoryranker.v1 import memory_pb2

from tests.promises.frozen import frozen, ids, text


@pytest.mark.parametrize(
    "name", [r"C:\notes\todo", "a/b/../c", "x%2Fy", "メモ/一", "a b", "'; --", "\u00e9", "e\u0301"]
)
def test_id_02_any_id_is_one_row_and_comes_back_as_it_was(client: Client, namespace: str, name: str) -> None:
    """Written twice it is one memory; it is read, ranked, listed and deleted under the very same name."""
    for number, outcome in ((1, memory_pb2.WRITE_OUTCOME_CREATED), (2, memory_pb2.WRITE_OUTCOME_UPDATED)):
        (result,) = client.upsert(namespace, [{"id": name, "content": text(number)}]).results
        assert (result.memory_id, result.outcome) == (name, outcome)
    assert [memory.id for memory in client.list(namespace)] == [name]
    assert client.get(namespace, name).content == text(2)
    packet = client.rank(namespace, filter={"ids": [name]})
    assert ids(packet) == [name]
    assert client.report_use(packet.packet_id, [name]).used_count == 1
    assert client.delete(namespace, [name]).deleted_count == 1
    assert list(client.list(namespace)) == []


def test_id_04_names_that_differ_by_case_are_two(tmp_path: Path) -> None:
    """Namespaces Kim and kim, ids Plan and plan: four memories, also after a restart."""
    contents = {
        (where, name): text(hash((where, name)) % 1000) for where in ("Kim", "kim") for name in ("Plan", "plan")
    }
    with frozen(tmp_path) as server:
        for (where, name), content in contents.items():
            server.client.upsert(where, [{"id": name, "content": content}])
    with frozen(tmp_path, "again") as server:
        for (where, name), content in contents.items():
            assert server.client.get(where, name).content == content
        assert {each.namespace: each.memory_count for each in server.client.namespaces()} == {"Kim": 2, "kim": 2}
        assert set(ids(server.client.rank("Kim"))) == {"Plan", "plan"}


def test_id_06_a_shortened_id_is_told_from_a_real_one(client: Client, namespace: str) -> None:
    """Delete and ReportUse with the first characters of an id say that there is no such memory, and do nothing."""
    whole = "8f3a9c1e-5b7d-4e2a"
    client.upsert(namespace, [{"id": whole, "content": text(1)}])
    deleted = client.delete(namespace, [whole[:8]])
    assert deleted.deleted_count == 0
    assert deleted.results[0].status.code == grpc.StatusCode.NOT_FOUND.value[0]
    packet = client.rank(namespace)
    reported = client.report_use(packet.packet_id, [whole[:8]])
    assert reported.used_count == 0
    assert reported.results[0].status.code != 0
    assert ids(client.rank(namespace)) == [whole]
    with pytest.raises(RankerRpcError) as caught:
        client.report_use(f"{packet.packet_id}x", [whole])
    assert caught.value.reason == "PACKET_NOT_FOUND"
