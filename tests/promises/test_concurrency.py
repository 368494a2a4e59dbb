"""Many callers at once: nothing is lost, mixed up or held up."""

from __future__ import annotations

import statistics
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import grpc
import pytest
from grpc_health.v1 import health_pb2, health_pb2_grpc
from grpc_reflection.v1alpha import reflection_pb2, reflection_pb2_grpc
from memoryranker.client import Client, RankerRpcError

from tests.promises.parts import Held, with_parts
from tests.serving import Running, channel_to, running, wait_until_scored
from tests.soaking import at_length

THREADS = 4
"""The server's threads for calls, as many as it has by default."""


@pytest.fixture
def held() -> Iterator[Held]:
    embedder = Held()
    yield embedder
    embedder.release()


@pytest.fixture
def server(tmp_path: Path, held: Held) -> Iterator[Running]:
    """A server with an embedder that can be held, and thirty memories."""
    with running(tmp_path, with_parts(embedder=held), embedder="none", threads=THREADS) as server:
        server.client.upsert("n", [{"id": f"m{i}", "content": f"memory {i} of many"} for i in range(30)])
        wait_until_scored(server.client, "n")
        yield server
        held.release()


class Ledger:
    """What writers have been told, for rankers to compare with."""

    def __init__(self) -> None:
        self.begun: dict[str, float] = {}
        self.deleted: dict[str, float] = {}
        self.contents: dict[str, str] = {}

    def check(self, packet: Any, asked: float, answered: float) -> None:
        """Every text belongs to its id, and every id was alive at some moment of the call."""
        for item in packet.items:
            memory_id = item.memory.id
            assert item.memory.content.startswith(f"memory {memory_id} "), (memory_id, item.memory.content)
            assert self.begun[memory_id] <= answered
            assert self.deleted.get(memory_id, answered) >= asked


OWN_FIELDS: tuple[tuple[str, Callable[[int], Any]], ...] = (
    ("content", lambda i: f"memory shared number {i}"),
    ("subject", lambda i: f"subject {i}"),
    ("source_thread", lambda i: f"thread {i}"),
    ("relevance", lambda i: i % 100 / 100),
    ("tags", lambda i: [f"tag {i}"]),
    ("source_sequence", lambda i: i),
    ("metadata", lambda i: {"number": float(i)}),
    ("kind", lambda i: f"kind {i}"),
)
"""The field of the shared memory that each writer alone writes, and its values."""


def write(number: int, client: Client, ledger: Ledger, over: threading.Event) -> tuple[str, Any]:
    """Writes, rewrites and deletes memories of its own, and one field of a memory that all writers share. Returns that
    field and its last value."""
    name, value = OWN_FIELDS[number]
    last: Any = None
    step = 0
    while not over.is_set():
        step += 1
        memory_id = f"w{number}-{step}"
        text = f"memory {memory_id} of writer {number} says the ferry leaves at {step}"
        ledger.begun[memory_id] = time.monotonic()
        client.upsert("n", [{"id": memory_id, "content": text}])
        ledger.contents[memory_id] = text
        last = value(step)
        if name == "content":
            client.upsert("n", [{"id": "shared", "content": last}])
        else:
            client.update("n", "shared", **{name: last})
        if step % 3 == 0:
            ledger.contents[memory_id] = f"{text}, no: at {step + 1}"
            client.update("n", memory_id, content=ledger.contents[memory_id])
        if step > 20:
            gone = f"w{number}-{step - 20}"
            assert client.delete("n", [gone]).deleted_count == 1
            ledger.deleted[gone] = time.monotonic()
            del ledger.contents[gone]
    return name, last


def rank(number: int, client: Client, ledger: Ledger, over: threading.Event) -> int:
    """Ranks and reports. Returns how often."""
    count = 0
    while not over.is_set():
        asked = time.monotonic()
        packet = client.rank("n", f"when does the ferry of writer {count % 8} leave", session_id=f"s{number}-{count}")
        ledger.check(packet, asked, time.monotonic())
        used = [item.memory.id for item in packet.items[:2]]
        report = client.report_use(packet.packet_id, used)
        assert report.used_count == len(used)
        count += 1
    return count


def test_eight_writers_and_eight_rankers_disturb_nothing(tmp_path: Path) -> None:
    """No error, no lost update, no text beside the wrong id, no memory that was gone before the call; and in the end
    what is served is what a start from the store alone would serve."""
    over, ledger = threading.Event(), Ledger()
    with running(tmp_path, embedder="none") as server, ThreadPoolExecutor(16) as threads:
        client = server.client
        ledger.begun["shared"] = time.monotonic()
        client.upsert("n", [{"id": "shared", "content": "memory shared number 0"}])
        writers = [threads.submit(write, number, client, ledger, over) for number in range(8)]
        rankers = [threads.submit(rank, number, client, ledger, over) for number in range(8)]
        stop = threading.Timer(at_length(60.0, 12.0), over.set)
        stop.start()
        try:
            ranked = [each.result() for each in rankers]
            written = dict(each.result() for each in writers)
        finally:
            stop.cancel()
            over.set()
        assert min(ranked) > 0
        found = {memory.id: memory for memory in client.list("n", page_size=1_000)}
        shared = found.pop("shared")
        for name, value in written.items():
            kept = getattr(shared, name)
            assert (list(kept) if name == "tags" else dict(kept) if name == "metadata" else kept) == value
        assert {memory_id: memory.content for memory_id, memory in found.items()} == ledger.contents
        asked: dict[str, Any] = {"max_items": 200, "dry_run": True, "explain": "full"}
        wait_until_scored(client, "n")
        served = client.rank("n", "when does the ferry leave", **asked)
        status = client.status("n").namespace
        assert status.packet_count == sum(ranked)
        assert status.reported_packet_count == sum(ranked)
    with running(tmp_path, embedder="none") as server:
        again = server.client.rank("n", "when does the ferry leave", **asked)
        assert again.score_version == served.score_version
        rebuilt = {item.memory.id: list(item.features) for item in again.items}
        recency = list(again.feature_names).index("recency")
        assert [item.memory.id for item in again.items] == [item.memory.id for item in served.items]
        for item in served.items:  # time went on between the two
            features = list(item.features)
            assert features.pop(recency) == pytest.approx(rebuilt[item.memory.id].pop(recency), abs=1e-3)
            assert features == rebuilt[item.memory.id]


def test_a_stuck_embedder_holds_up_no_report(server: Running, held: Held) -> None:
    """While writes and rankings wait for the embedder, on more threads than there are for them, reports, ratings, reads
    and deletes are answered, and health is."""
    packet = server.client.rank("n", "memory")
    with ThreadPoolExecutor(4 * THREADS) as threads:
        stuck: list[Any] = [threads.submit(server.client.rank, "n", f"HOLD {i}") for i in range(2 * THREADS)]
        stuck += [
            threads.submit(server.client.upsert, "n", [{"id": f"s{i}", "content": f"HOLD {i}"}])
            for i in range(2 * THREADS)
        ]
        for _ in range(THREADS):
            assert held.entered.acquire(timeout=20)
        assert server.client.report_use(packet.packet_id, ["m1"], timeout=5).used_count == 1
        assert server.client.rate("n", "m2", "helpful", timeout=5).ratings.helpful == 1
        assert server.client.get("n", "m3", timeout=5).id == "m3"
        assert server.client.get_packet("n", packet.packet_id, timeout=5).uses
        assert server.client.delete("n", ["m4"], timeout=5).deleted_count == 1
        assert server.client.status("n", timeout=5).namespace.memory_count == 29
        with channel_to(server.listen) as channel:
            health: Any = health_pb2_grpc.HealthStub(channel)
            assert health.Check(health_pb2.HealthCheckRequest(), timeout=5).status == 1
        assert not any(call.done() for call in stuck)
        held.release()
        assert all(call.result(timeout=30) for call in stuck)


def test_calls_that_gave_up_give_their_threads_back(server: Running, held: Held) -> None:
    """Fifty rankings give up after 10 ms while the embedder is slow. Those that waited for a thread are not worked on,
    none is logged, and as many rankings as there are threads run side by side again."""
    before = server.client.status("n").namespace.packet_count

    def give_up(number: int) -> grpc.StatusCode:
        with pytest.raises(RankerRpcError) as caught:
            server.client.rank("n", f"HOLD and give up {number}", timeout=0.01)
        return caught.value.code

    with ThreadPoolExecutor(50) as threads:
        assert set(threads.map(give_up, range(50))) == {grpc.StatusCode.DEADLINE_EXCEEDED}
        held.release()
        assert server.client.rank("n", "memory", timeout=20).items
        held.hold()
        while held.entered.acquire(blocking=False):
            pass
        calls = [threads.submit(server.client.rank, "n", f"HOLD {i}") for i in range(THREADS)]
        for _ in range(THREADS):
            assert held.entered.acquire(timeout=20)
        held.release()
        assert all(call.result(timeout=20).items for call in calls)
    assert sum("give up" in text for text in held.embedded) <= THREADS
    assert server.client.status("n").namespace.packet_count == before + 1 + THREADS


def test_a_deadline_that_passes_in_one_stage_stops_the_next(server: Running, held: Held) -> None:
    """What waits for the embedder until nobody waits for it writes nothing: no packet, no memory, no change."""
    client = server.client
    before = client.status("n").namespace
    calls: tuple[Callable[[], Any], ...] = (
        lambda: client.rank("n", "HOLD", timeout=1),
        lambda: client.upsert("n", [{"id": "late", "content": "HOLD"}], timeout=1),
        lambda: client.update("n", "m1", content="HOLD", timeout=1),
    )
    for call in calls:
        with pytest.raises(RankerRpcError) as caught:
            call()
        assert caught.value.code is grpc.StatusCode.DEADLINE_EXCEEDED
        assert held.entered.acquire(timeout=20)
    held.release()
    with ThreadPoolExecutor(THREADS) as threads:  # they have passed every thread that those were on
        held.hold()
        passing = [threads.submit(client.rank, "n", f"HOLD {i}", dry_run=True) for i in range(THREADS)]
        for _ in range(THREADS):
            assert held.entered.acquire(timeout=20)
        held.release()
        assert all(call.result(timeout=20).items for call in passing)
    assert client.status("n").namespace == before


def test_two_writers_never_mix_what_belongs_to_two_contents(server: Running, held: Held) -> None:
    """While one writer waits for a vector, another rewrites the memory: what the slow one did not mean to change stays
    as the other wrote it."""
    client = server.client
    client.upsert("n", [{"id": "m", "content": "HOLD first", "token_count": 5, "embedding": b"\0\0\x80\x3f" * 8}])
    with ThreadPoolExecutor(1) as threads:
        # Clearing the vector needs a new one of the content that stands, and that is held.
        slow = threads.submit(client.update, "n", "m", embedding=b"", subject="slow")
        assert held.entered.acquire(timeout=20)
        client.upsert("n", [{"id": "m", "content": "second"}])
        client.update("n", "m", token_count=7)
        held.release()
        slow.result(timeout=20)
    now = client.get("n", "m", include_embedding=True)
    assert (now.content, now.token_count, now.subject) == ("second", 7, "slow")
    client.upsert("n", [{"id": "fresh", "content": "second"}])
    assert now.embedding == client.get("n", "fresh", include_embedding=True).embedding


def test_idle_streams_do_not_slow_ranking(server: Running) -> None:
    """With 64 health watches and 64 reflection streams open and idle, a ranking takes about as long as without them."""
    over = threading.Event()

    def ask_and_idle() -> Iterator[reflection_pb2.ServerReflectionRequest]:
        yield reflection_pb2.ServerReflectionRequest(list_services="")
        over.wait()

    def median() -> float:
        times = []
        for _ in range(60):
            started = time.perf_counter()
            server.client.rank("n", "memory of many", dry_run=True)
            times.append(time.perf_counter() - started)
        return statistics.median(times)

    median()
    alone = median()
    with channel_to(server.listen) as channel:
        health: Any = health_pb2_grpc.HealthStub(channel)
        reflect: Any = reflection_pb2_grpc.ServerReflectionStub(channel)
        watches = [health.Watch(health_pb2.HealthCheckRequest()) for _ in range(64)]
        reflections = [reflect.ServerReflectionInfo(ask_and_idle()) for _ in range(64)]
        for stream in (*watches, *reflections):
            next(stream)
        beside = median()
        over.set()
        for stream in (*watches, *reflections):
            stream.cancel()
    assert beside < 3 * alone + 0.01, (alone, beside)


def test_reading_long_outputs_holds_up_no_report(tmp_path: Path) -> None:
    """Four agents send a megabyte of output each, on a server with one thread for calls: reports of use and rankings
    are answered while those are read."""
    output = " ".join(f"src/module{i}.py" for i in range(60_000))[:1_000_000]
    with running(tmp_path, embedder="none", threads=1) as server, ThreadPoolExecutor(4) as threads:
        client = server.client
        client.upsert("n", [{"id": f"m{i}", "content": f"see src/module{i}.py line {i}"} for i in range(50)])
        packets = [client.rank("n", "module", max_items=50).packet_id for _ in range(4)]
        reading = [threads.submit(client.report_output, each, output, namespace="n", timeout=60) for each in packets]
        assert client.report_use(packets[0], ["m1"], namespace="n").report_id
        assert client.rank("n", "module").items
        assert not all(each.done() for each in reading)
        for each in reading:
            each.result()
