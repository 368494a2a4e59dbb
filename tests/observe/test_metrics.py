"""The metrics of real servers against what their callers did, and the pages and dashboards that speak of them."""

from __future__ import annotations

import itertools
import re
from pathlib import Path
from typing import Any

import grpc
import pytest
from memoryranker.client import RankerRpcError
from memoryranker.v1 import admin_pb2, memory_pb2, ranker_pb2

from sidecar.domain import Channel, DegradationReason, EmptyReason, Segment
from sidecar.errors import RankerError
from sidecar.ranking.stages import STAGES
from tests.observe.asking import ask, samples
from tests.serving import Running, channel_to, running


def metrics(server: Running) -> dict[str, float]:
    return samples(ask(server.sidecar.http, "/metrics").text)


def use(server: Running) -> None:
    """One of everything that is counted: 40 memories, three packets of which one is reported, and refusals."""
    client = server.client
    client.upsert("kim", [{"id": f"m{i}", "content": f"note {i}: the ferry leaves at {i}"} for i in range(40)])
    packet = client.rank("kim", "when does the ferry leave?", session_id="s", max_items=12, request_id="r")
    client.rank("kim", "when does the ferry leave?", session_id="s", max_items=12, request_id="r")
    client.rank("kim", "ferry", dry_run=True)
    client.rank("nobody", "ferry")
    ids = [item.memory.id for item in packet.items]
    client.report_use(packet.packet_id, ids[:2], unused=ids[2:5], request_id="r")
    client.report_use(packet.packet_id, ids[:2], unused=ids[2:5], request_id="r")
    client.report_output(packet.packet_id, f"note {ids[5][1:]}: the ferry leaves at {ids[5][1:]}")
    for call in (lambda: client.get("kim", "absent"), lambda: client.rank("kim", "", max_items=100_000)):
        with pytest.raises(RankerRpcError):
            call()


def test_every_call_and_what_came_of_it_is_counted(tmp_path: Path) -> None:
    """Requests by method and code, latencies, refusals by reason, packets, exposures by segment, reports and uses by
    channel, coverage and versions are what the callers did; a retry counts as a request and as nothing else."""
    with running(tmp_path, http="0") as server:
        use(server)
        found = metrics(server)
        name = "memory_ranker"
        assert found[f'{name}_requests_total{{code="OK",method="Rank"}}'] == 4
        assert found[f'{name}_requests_total{{code="INVALID_ARGUMENT",method="Rank"}}'] == 1
        assert found[f'{name}_requests_total{{code="NOT_FOUND",method="GetMemory"}}'] == 1
        assert found[f'{name}_requests_total{{code="OK",method="ReportUse"}}'] == 2
        assert found[f'{name}_request_seconds_count{{method="Rank"}}'] == 5
        assert 0 < found[f'{name}_request_seconds_sum{{method="Rank"}}'] < 60
        assert found[f'{name}_refusals_total{{reason="MEMORY_NOT_FOUND"}}'] == 1
        assert found[f'{name}_refusals_total{{reason="INVALID_REQUEST"}}'] == 1
        assert found[f'{name}_packets_total{{logged="yes"}}'] == 2
        assert found[f'{name}_packets_total{{logged="no"}}'] == 1
        assert found[f'{name}_empty_packets_total{{reason="no_memories"}}'] == 1
        exposed = {segment: found.get(f'{name}_exposures_total{{segment="{segment}"}}', 0) for segment in Segment}
        assert sum(exposed.values()) == 12
        assert exposed[Segment.RESERVED] > 0
        assert found[f'{name}_reports_total{{channel="explicit"}}'] == 1
        assert found[f'{name}_uses_total{{channel="explicit",used="yes"}}'] == 2
        assert (
            found[f'{name}_uses_total{{channel="explicit",used="no"}}'] == 10
        )  # a complete report says so of all others
        assert found[f"{name}_packets_in_log"] == 2
        assert found[f"{name}_reported_packets_in_log"] == 1
        assert found[f"{name}_report_coverage"] == 0.5
        assert found[f"{name}_memories"] == 40
        assert found[f"{name}_store_problems"] == 0
        assert found[f"{name}_score_version"] >= 1
        (info,) = [key for key in found if key.startswith(f"{name}_info{{")]
        status = server.client.status()
        assert f'model_version="{status.model_version}"' in info
        assert f'server_version="{status.server_version}"' in info
        assert f'feature_schema_hash="{status.feature_schema_hash}"' in info
        timed = {stage: found[f'{name}_stage_seconds_count{{stage="{stage}"}}'] for stage in STAGES}
        assert timed == {"read": 4, "embed": 3, "match": 3, "score": 3, "pack": 3, "log": 2, "write": 4}


def test_streams_are_counted_when_they_end(tmp_path: Path) -> None:
    """An ingest that is finished and one that is given up are two requests, with their codes."""
    with running(tmp_path, embedder="none", http="0") as server, channel_to(server.listen) as channel:
        server.client.ingest("kim", [{"id": "m", "content": "the ferry"}])
        begin = memory_pb2.IngestMemoriesRequest()
        call = channel.stream_stream(
            "/memoryranker.v1.MemoryService/IngestMemories",
            request_serializer=memory_pb2.IngestMemoriesRequest.SerializeToString,
            response_deserializer=memory_pb2.IngestMemoriesResponse.FromString,
        )(itertools.chain([begin]), timeout=10)
        with pytest.raises(grpc.RpcError):
            list(call)
        counted: dict[str, float] = {}
        while sum(counted.values()) < 2:  # the server notes the end after the caller has seen it
            counted = {
                key: value
                for key, value in metrics(server).items()
                if "requests_total" in key and 'method="IngestMemories"' in key
            }
        refused = 'memory_ranker_requests_total{code="INVALID_ARGUMENT",method="IngestMemories"}'
        assert counted.pop(refused) == 1
        # A caller who has every acknowledgement may hang up, or wait for the end.
        (finished,) = counted
        assert re.search('code="(OK|CANCELLED)"', finished)


def test_labels_are_bounded_whatever_callers_send(tmp_path: Path) -> None:
    """Namespaces, ids, texts and made-up methods never become labels: after calls with 200 of each, the labels are
    those of the code, and the page is no longer."""
    allowed = {
        "method": {
            method.name
            for file in (ranker_pb2, memory_pb2, admin_pb2)
            for service in file.DESCRIPTOR.services_by_name.values()
            for method in service.methods
        }
        | {"other"},
        "code": {code.name for code in grpc.StatusCode},
        "segment": {each.value for each in Segment},
        "channel": {each.value for each in Channel},
        "reason": {
            *(each.value for each in (*EmptyReason, *DegradationReason)),
            *(each.reason for each in RankerError.__subclasses__()),
            *("INTERNAL", "MEMORY_NOT_FOUND", "STORE_DAMAGED"),
            "NOT_BUILT",
        },
        "logged": {"yes", "no"},
        "used": {"yes", "no"},
    }
    with running(tmp_path, embedder="none", http="0") as server, channel_to(server.listen) as channel:
        use(server)
        before = set(metrics(server))
        for i in range(200):
            server.client.upsert(f"ns{i}", [{"id": f"id{i}", "content": f"text {i}"}])
            server.client.rank(f"ns{i}", f"text {i}", session_id=f"s{i}", agent_id=f"a{i}", surface=f"u{i}")
            made_up: Any = channel.unary_unary(f"/memoryranker.v1.RankerService/Made{i}")
            with pytest.raises(grpc.RpcError):
                made_up(b"", timeout=5)
        after = metrics(server)
        for key in after:
            for label, value in re.findall(r'(\w+)="(.*?)"', key):
                assert value in allowed.get(label, {value}), key
        new = set(after) - before
        assert len(new) <= 10, new


def test_two_servers_in_one_process_count_apart(tmp_path: Path) -> None:
    """What one is asked does not show on the other."""
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
    with (
        running(tmp_path / "one", embedder="none", http="0") as one,
        running(tmp_path / "two", embedder="none", http="0") as two,
    ):
        one.client.status()
        assert metrics(one)['memory_ranker_requests_total{code="OK",method="GetStatus"}'] == 1
        assert 'memory_ranker_requests_total{code="OK",method="GetStatus"}' not in metrics(two)
