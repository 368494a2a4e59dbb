"""What an operator does about feedback, over a real socket."""

from __future__ import annotations

import pytest
from memoryranker.client import Client, RankerRpcError
from memoryranker.v1 import admin_pb2

from tests.serving import Running

SECRET = "the vault opens with QX-77120-ZULU"


def test_a_purged_namespace_is_gone_from_memory_and_disk(running_server: Running) -> None:
    """Nothing of it is ranked, listed, found by a handle, or left in any file of the store; another namespace stays."""
    client = running_server.client
    client.upsert("gone", [{"id": "m1", "content": SECRET}])
    client.upsert("stays", [{"id": "m1", "content": "another thing"}])
    packet = client.rank("gone", "QX-77120-ZULU", session_id="s1")
    client.report_use(packet.packet_id, ["m1"])
    client.rescore("gone", apply=True)
    client.rate("gone", "m1", "helpful", reason="opens with QX-77120-ZULU")
    done = client.purge_namespace("gone")
    assert (done.memory_count, done.packet_count) == (1, 1)
    assert not client.rank("gone", "QX-77120-ZULU", dry_run=True).items
    assert list(client.list("gone")) == []
    assert [each.namespace for each in client.namespaces()] == ["stays"]
    with pytest.raises(RankerRpcError):
        client.get_packet("gone", packet.packet_id)
    assert [item.memory.id for item in client.rank("stays", "thing", dry_run=True).items] == ["m1"]
    running_server.sidecar.close()
    for path in (running_server.folder / "data").rglob("*"):
        if path.is_file():
            assert b"QX-77120" not in path.read_bytes(), path
            assert b"gone" not in path.read_bytes(), path


def test_a_slip_purges_nothing(client: Client, namespace: str) -> None:
    """The name has to be said twice, and empty never means all."""
    client.upsert(namespace, [{"id": "m1", "content": "text"}])
    stub = client._admin
    for request in (
        admin_pb2.PurgeNamespaceRequest(namespace=namespace),
        admin_pb2.PurgeNamespaceRequest(namespace=namespace, confirm_namespace=namespace + "x"),
        admin_pb2.PurgeNamespaceRequest(),
    ):
        with pytest.raises(Exception, match="namespace"):
            stub.PurgeNamespace(request)
    assert len(list(client.list(namespace))) == 1


@pytest.mark.parametrize("seconds", [0, -1, 315_576_000_000, -(2**62), 2**62])
def test_a_length_of_time_has_bounds(client: Client, namespace: str, seconds: int) -> None:
    """Above 0, and no longer than a time that the store can hold."""
    stub = client._admin
    asked = admin_pb2.PruneRequest(namespace=namespace)
    asked.older_than.seconds = seconds
    with pytest.raises(Exception, match="older_than"):
        stub.Prune(asked)
    audit = admin_pb2.AuditRequest(namespace=namespace)
    audit.window.seconds = seconds
    with pytest.raises(Exception, match="window"):
        stub.Audit(audit)
