"""What a server does that has no room: at its quota, and where the system refuses to let a file grow."""

from __future__ import annotations

import resource
from collections.abc import Callable
from pathlib import Path

import pytest
from memoryranker.client import Client, RankerRpcError
from memoryranker.v1 import ranker_pb2, types_pb2

from tests.serving import finished, process, running, wait_until_scored

QUOTA = 3_000_000


def until_refused(write: Callable[[int], object]) -> RankerRpcError:
    """Writes until the server refuses, and returns the refusal."""
    for number in range(5_000):
        try:
            write(number)
        except RankerRpcError as error:
            return error
    raise AssertionError("the store never got full")


def fill(client: Client, start: int = 0) -> RankerRpcError:
    """Stores memories of some size until there is no room for one more."""
    return until_refused(
        lambda number: client.upsert("n", [{"id": f"big{start + number}", "content": f"{number} filler " * 2_000}])
    )


def rank_until_unlogged(client: Client) -> ranker_pb2.RankResponse:
    """Ranks until there is no room for the log either."""
    for _ in range(3_000):
        packet = client.rank("n", "deploy the payment service")
        if not packet.packet_id:
            return packet
    raise AssertionError("every packet was logged")


def segments(packet: ranker_pb2.RankResponse) -> list[int]:
    return [item.segment for item in packet.items]


def check_unlogged(packet: ranker_pb2.RankResponse, logged: ranker_pb2.RankResponse) -> None:
    """An answer without its log: no id, nothing drawn, a degradation in words, and ranked as before."""
    assert packet.packet_id == ""
    assert types_pb2.SEGMENT_RESERVED in segments(logged)
    assert types_pb2.SEGMENT_RESERVED not in segments(packet)
    assert packet.reserved_slots == 0
    (degradation,) = packet.degradations
    assert degradation.reason == ranker_pb2.DEGRADATION_REASON_LOG_UNAVAILABLE
    for words in ("cannot grow", "delete or prune", ". This packet cannot be reported on"):
        assert words in degradation.message
    ranked = [item.memory.id for item in logged.items if item.segment == types_pb2.SEGMENT_RANKED]
    assert [item.memory.id for item in packet.items][: len(ranked)] == ranked


def store_deploys(client: Client) -> ranker_pb2.RankResponse:
    """Memories about deploys, and a packet of them."""
    texts = [f"Deploy number {number} of the payment service went through step {number * 7}" for number in range(40)]
    client.upsert("n", [{"id": f"d{number:02}", "content": text} for number, text in enumerate(texts)])
    wait_until_scored(client, "n")
    return client.rank("n", "deploy the payment service")


def test_at_its_quota_a_server_refuses_writes_and_ranks_on(tmp_path: Path) -> None:
    """Memories, reports and ratings are refused in words; ranking goes on, first with its log, then without; reads and
    deletes go on, and after a delete everything is taken again. The quota is kept."""
    with running(tmp_path, quota_bytes=QUOTA) as server:
        client = server.client
        logged = store_deploys(client)
        refusal = fill(client)
        assert (refusal.code.name, refusal.reason) == ("RESOURCE_EXHAUSTED", "STORE_FULL")
        assert "quota" in refusal.message
        assert "delete or prune" in refusal.message
        check_unlogged(rank_until_unlogged(client), logged)
        for write in (
            lambda number: client.rate("n", "d01", "helpful", agent_id=f"rater {number} " * 8),
            lambda number: client.report_use(logged.packet_id, used=["d01"], sequence=number),
        ):
            assert until_refused(write).reason == "STORE_FULL"
        assert client.get("n", "d01").content.startswith("Deploy")
        assert client.get_packet("n", logged.packet_id).packet.items
        status = client.status()
        assert status.store_bytes <= QUOTA
        assert any("quota" in problem for problem in status.problems)
        client.delete("n", [f"big{number}" for number in range(40)])
        assert client.rank("n", "deploy the payment service").packet_id
        client.report_use(logged.packet_id, used=["d02"])
        client.upsert("n", [{"id": "again", "content": "there is room again"}])
        assert client.status().problems == []


def test_on_a_full_disk_a_server_refuses_writes_and_ranks_on(tmp_path: Path) -> None:
    """Where the system refuses to let a file grow it is the same; with room again the same process writes again, and
    nothing that was acknowledged is lost."""
    with process(tmp_path) as (server, client):
        logged = store_deploys(client)
        size = max(path.stat().st_size for path in (tmp_path / "data").iterdir())
        unlimited = resource.RLIM_INFINITY
        resource.prlimit(server.pid, resource.RLIMIT_FSIZE, (size + 100_000, unlimited))
        refusal = fill(client)
        assert (refusal.code.name, refusal.reason) == ("RESOURCE_EXHAUSTED", "STORE_FULL")
        check_unlogged(rank_until_unlogged(client), logged)
        stored = client.status().memory_count
        resource.prlimit(server.pid, resource.RLIMIT_FSIZE, (unlimited, unlimited))
        again = client.rank("n", "deploy the payment service")
        assert again.packet_id
        client.report_use(again.packet_id, used=["d01"])
        client.upsert("n", [{"id": "again", "content": "there is room again"}])
        server.terminate()
        assert finished(server).returncode == 0
    with process(tmp_path) as (_, client):
        assert client.status().memory_count == stored + 1
        assert client.get_packet("n", again.packet_id).report_state == types_pb2.REPORT_STATE_REPORTED


def test_a_server_starts_on_a_store_at_its_quota(tmp_path: Path) -> None:
    """A full store opens, ranks, and is emptied again."""
    with running(tmp_path) as server:
        store_deploys(server.client)
    with running(tmp_path, quota_bytes=100_000) as server:
        packet = rank_until_unlogged(server.client)
        assert len(packet.items) > 5
        with pytest.raises(RankerRpcError, match="STORE_FULL"):
            server.client.upsert("n", [{"id": "x", "content": "y" * 50_000}])
        server.client.delete("n", ["d01"])
