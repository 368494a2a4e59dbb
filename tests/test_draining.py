"""What callers see of a server that is told to stop, or is given another model, in a process of its own."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path

import grpc
import pytest
from memoryranker.client import Client, IngestResult, RankerRpcError
from memoryranker.v1 import memory_pb2, memory_pb2_grpc, ranker_pb2, ranker_pb2_grpc, types_pb2

from tests.observe.asking import ask
from tests.serving import channel_to, finished, process
from tests.weights.making import make_artifact, numbered

AFTER = {"UNAVAILABLE", "CANCELLED"}
"""Codes of a call that a stopping server did not take. gRPC's own: CANCELLED is one that crossed its goodbye on the
way. The retry policy of every client tries both again."""


def batch(name: str, count: int) -> memory_pb2.UpsertMemoriesRequest:
    memories = [types_pb2.Memory(id=f"{name}-{i}", content=f"note {i} of {name} on the ferry") for i in range(count)]
    return memory_pb2.UpsertMemoriesRequest(namespace="kim", memories=memories, request_id=name)


def test_every_call_that_was_taken_is_answered(tmp_path: Path) -> None:
    """SIGTERM while callers without any retry write, rank and stream: whatever has an effect was answered OK, and a
    call that was not answered had none and failed as one to be tried again. Of a stream, whatever was acknowledged is
    there. The process ends with 0."""
    answered: set[str] = set()
    cut: set[str] = set()  # of the stream that broke off: its acknowledgement may have been lost on the way
    packets: set[str] = set()
    codes: list[str] = []
    flowing = threading.Barrier(8)

    def caller(number: int, call: Callable[[grpc.Channel, str], None]) -> None:
        with channel_to(f"unix:{tmp_path}/socket") as channel:
            for step in range(1_000_000):
                if step == 3:
                    flowing.wait()
                try:
                    call(channel, f"c{number}-{step}")
                except grpc.RpcError as error:
                    codes.append(error.code().name)
                    return

    def write(count: int) -> Callable[[grpc.Channel, str], None]:
        def call(channel: grpc.Channel, name: str) -> None:
            found = memory_pb2_grpc.MemoryServiceStub(channel).UpsertMemories(batch(name, count), timeout=60)
            assert all(not each.status.code for each in found.results)
            answered.update(each.memory_id for each in found.results)

        return call

    def rank(channel: grpc.Channel, name: str) -> None:
        request = ranker_pb2.RankRequest(namespace="kim", task="the ferry", request_id=name)
        packets.add(ranker_pb2_grpc.RankerServiceStub(channel).Rank(request, timeout=60).packet_id)

    def stream(channel: grpc.Channel, name: str) -> None:
        opening = memory_pb2.IngestMemoriesRequest(namespace="kim", stream_id=name)
        chunk = memory_pb2.IngestMemoriesRequest(sequence=1, memories=batch(name, 20).memories)
        cut.update(each.id for each in chunk.memories)
        stub = memory_pb2_grpc.MemoryServiceStub(channel)
        for answer in stub.IngestMemories(iter([opening, chunk]), timeout=60):
            if answer.acknowledged_sequence:
                answered.update(each.id for each in chunk.memories)
        cut.clear()

    calls = [write(1), write(1), write(300), write(300), rank, rank, stream]
    with process(tmp_path, MEMORY_RANKER_DRAIN_SECONDS="60") as (server, client):
        client.status()
        threads = [threading.Thread(target=caller, args=each) for each in enumerate(calls)]
        for thread in threads:
            thread.start()
        flowing.wait()
        server.send_signal(signal.SIGTERM)
        for thread in threads:
            thread.join()
        assert finished(server).returncode == 0
    assert len(codes) == len(calls)
    assert set(codes) <= AFTER
    with process(tmp_path) as (_, client):
        stored = {each.id for each in client.list("kim", page_size=1_000)}
        assert stored - cut == answered - cut
        assert answered <= stored
        assert client.status("kim").namespace.packet_count == len(packets)
        for packet_id in packets:
            client.get_packet("kim", packet_id)


def test_a_long_stream_outlives_restarts(tmp_path: Path) -> None:
    """Two SIGTERMs in the middle of one ingest by the thin client: it goes on at the next server each time, and what
    was acknowledged is there once."""
    count, stops = 2_000, [500, 1_200]
    reached = [threading.Event() for _ in stops]
    results: list[IngestResult] = []

    def progress(result: IngestResult) -> None:
        for stop, event in zip(stops, reached, strict=True):
            if result.acknowledged >= stop:
                event.set()

    def send() -> None:
        memories = ({"id": f"m{i}", "content": f"note {i} on the ferry"} for i in range(count))
        with Client(f"unix:{tmp_path}/socket", timeout=60) as sender:
            results.append(sender.ingest("kim", memories, chunk_size=20, on_progress=progress))

    sending = threading.Thread(target=send)
    for event in reached:
        with process(tmp_path, MEMORY_RANKER_EMBEDDER="none") as (server, client):
            client.status()
            if not sending.is_alive():
                sending.start()
            assert event.wait(60)
            server.send_signal(signal.SIGTERM)
            assert finished(server).returncode == 0
    with process(tmp_path, MEMORY_RANKER_EMBEDDER="none") as (_, client):
        sending.join()
        (result,) = results
        assert (result.acknowledged, result.created, result.unchanged, result.rejections) == (count, count, 0, [])
        assert client.status("kim").namespace.memory_count == count


@pytest.fixture
def http() -> str:
    """An address that was free a moment ago."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        return f"127.0.0.1:{free.getsockname()[1]}"


def test_ready_is_said_with_index_and_model_and_kept_through_a_reload(tmp_path: Path, http: str) -> None:
    """/readyz is not ready before the promoted model serves over all memories, and from then on stays ready while
    models are loaded, refused and rolled back, and ranking goes on."""
    model, bad = make_artifact(tmp_path / "m"), tmp_path / "bad"
    make_artifact(bad)
    (bad / "weights.json").write_text("{}", encoding="utf-8")
    others = [numbered(tmp_path / f"m{i}", i) for i in range(1, 4)]
    with process(tmp_path, MEMORY_RANKER_EMBEDDER="none") as (server, client):
        for start in range(0, 5_000, 1_000):
            client.upsert("kim", [{"id": f"m{i}", "content": f"ferry {i}"} for i in range(start, start + 1_000)])
        client.load_model(str(tmp_path / "m"))
        server.terminate()
        assert finished(server).returncode == 0
    for file in (tmp_path / "data").glob("index-*"):
        file.unlink()  # so that there is something to load
    with process(tmp_path, MEMORY_RANKER_EMBEDDER="none", MEMORY_RANKER_HTTP=http) as (server, client):
        before: set[int] = set()
        while 200 not in before:
            try:
                before.add(ask(http, "/readyz").status)
            except ConnectionRefusedError:
                assert server.poll() is None
        assert before <= {503, 200}
        with channel_to(client.address) as channel:  # a call that neither waits nor is tried again
            request = ranker_pb2.RankRequest(namespace="kim", task="ferry 4999")
            packet = ranker_pb2_grpc.RankerServiceStub(channel).Rank(request, timeout=10)
        assert packet.items[0].memory.id == "m4999"
        assert packet.model_version == model.version
        over, statuses = threading.Event(), set[int]()

        def poll() -> None:
            while not over.is_set():
                statuses.add(ask(http, "/readyz").status)

        poller = threading.Thread(target=poll)
        poller.start()
        for i, other in enumerate(others, 1):
            client.load_model(str(tmp_path / f"m{i}"))
            assert client.rank("kim", "ferry 17").model_version == other.version
            with pytest.raises(RankerRpcError, match="MODEL_REFUSED"):
                client.load_model(str(bad))
        for _ in others:
            client.rollback_model()
        assert client.rank("kim", "ferry 17").model_version == model.version
        over.set()
        poller.join()
        assert statuses == {200}


FROZEN = """
import os, signal, sys
import grpc
from grpc_health.v1 import health_pb2, health_pb2_grpc
from memoryranker.v1 import admin_pb2, admin_pb2_grpc

with grpc.insecure_channel(sys.argv[1]) as channel:
    watch = health_pb2_grpc.HealthStub(channel).Watch(health_pb2.HealthCheckRequest())
    next(watch)
    logs = [admin_pb2_grpc.AdminServiceStub(channel).ExportLog(admin_pb2.ExportLogRequest()) for _ in range(4)]
    for log in logs:
        next(log)
    os.kill(os.getpid(), signal.SIGSTOP)
"""


def test_a_frozen_client_does_not_keep_the_server_from_stopping(tmp_path: Path) -> None:
    """It watches health and has a log on its way to it, of which it takes in nothing more. What the server had
    acknowledged is there at the next start."""
    long = "word " * 1_500
    with process(tmp_path, MEMORY_RANKER_EMBEDDER="none", MEMORY_RANKER_DRAIN_SECONDS="1") as (server, client):
        client.upsert("kim", [{"id": f"m{i}", "content": "ferry " * 300} for i in range(20)])
        for i in range(200):
            client.rank("kim", f"ferry {i} {long}", session_id=f"s{i}")
        with subprocess.Popen([sys.executable, "-c", FROZEN, client.address]) as frozen:
            try:
                os.waitid(os.P_PID, frozen.pid, os.WSTOPPED)
                server.terminate()
                done = finished(server)
                assert done.returncode == 0
                assert "Traceback" not in done.stderr
            finally:
                frozen.kill()
    with process(tmp_path, MEMORY_RANKER_EMBEDDER="none") as (_, client):
        assert client.status("kim").namespace.packet_count == 200
