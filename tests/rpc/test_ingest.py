"""Streams of memories over a real socket: acknowledgements, refusals, breaks on both sides, and Rank meanwhile."""

from __future__ import annotations

import gc
import queue
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import grpc
import pytest
from memoryranker.client import Client, IngestResult, RankerRpcError, memory
from memoryranker.v1 import memory_pb2, memory_pb2_grpc

from tests.serving import Running, channel_to, process, running

Request = memory_pb2.IngestMemoriesRequest


class Stream:
    """A stream by hand: what is sent goes out at once, answers are waited for one by one."""

    def __init__(self, channel: grpc.Channel, namespace: str, stream_id: str) -> None:
        self._sending: queue.SimpleQueue[Request | None] = queue.SimpleQueue()
        self.call: Any = memory_pb2_grpc.MemoryServiceStub(channel).IngestMemories(
            iter(self._sending.get, None), timeout=30
        )
        self.send(Request(namespace=namespace, stream_id=stream_id))
        self.opened: memory_pb2.IngestMemoriesResponse = next(self.call)

    def send(self, request: Request) -> None:
        self._sending.put(request)

    def chunk(self, sequence: int, *ids: str) -> memory_pb2.IngestMemoriesResponse:
        """Sends a chunk and waits for its answer."""
        self.send(chunk(sequence, *ids))
        answer: memory_pb2.IngestMemoriesResponse = next(self.call)
        return answer

    def end(self) -> None:
        self._sending.put(None)
        assert list(self.call) == []


def chunk(sequence: int, *ids: str) -> Request:
    return Request(sequence=sequence, memories=[memory(each, content=f"content of {each}") for each in ids])


def numbered(count: int, start: int = 0) -> list[dict[str, str]]:
    return [{"id": f"m{number}", "content": f"memory number {number}"} for number in range(start, count)]


@pytest.fixture
def channel(shared_server: Running) -> Iterator[grpc.Channel]:
    with channel_to(shared_server.listen) as found:
        yield found


def test_what_is_acknowledged_can_be_ranked(tmp_path: Path) -> None:
    """When the acknowledgement of a chunk is there, Rank finds its memories, while the stream is still open. With
    importances off: else the score version may have moved on by then."""
    with running(tmp_path, importance_scorer_enabled="false") as server, channel_to(server.listen) as channel:
        stream = Stream(channel, "n", "s")
        assert (stream.opened.acknowledged_sequence, stream.opened.sequence) == (0, 0)
        assert stream.opened.window >= 1
        for sequence in (1, 2, 3):
            answer = stream.chunk(sequence, f"m{sequence}")
            assert (answer.acknowledged_sequence, answer.sequence, answer.created_count) == (sequence, sequence, 1)
            packet = server.client.rank("n", f"content of m{sequence}", max_items=200, dry_run=True)
            assert f"m{sequence}" in {item.memory.id for item in packet.items}
            assert packet.score_version == answer.score_version
        stream.end()


def test_a_bad_memory_is_refused_alone_with_its_place(channel: grpc.Channel, client: Client, namespace: str) -> None:
    """The others of its chunk go in; the refusal names chunk, place, field, value and limit."""
    stream = Stream(channel, namespace, "s")
    request = chunk(1, "good", "bad", "good", "fine")
    request.memories[1].relevance = 7
    stream.send(request)
    answer = next(stream.call)
    assert [(each.sequence, each.index, each.result.memory_id) for each in answer.rejections] == [
        (1, 1, "bad"),
        (1, 2, "good"),
    ]
    assert "relevance" in answer.rejections[0].result.status.message
    assert "memories[0].id" in answer.rejections[1].result.status.message
    assert (answer.created_count, {each.id for each in client.list(namespace)}) == (2, {"good", "fine"})
    stream.end()


def test_a_chunk_that_is_sent_again_is_recognised(channel: grpc.Channel, client: Client, namespace: str) -> None:
    """It is answered with what became of it at first, refusals too, and does not undo what was written since."""
    stream = Stream(channel, namespace, "s")
    request = chunk(1, "m1", "m2", "m1")
    stream.send(request)
    first = next(stream.call)
    stream.chunk(2, "m3")
    client.update(namespace, "m1", content="changed since")
    broken = Stream(channel, namespace, "s")
    assert broken.opened.acknowledged_sequence == 2
    broken.send(request)
    again = next(broken.call)
    assert again.acknowledged_sequence == 2
    first.acknowledged_sequence = 2
    assert again == first
    assert client.get(namespace, "m1").content == "changed since"
    assert broken.chunk(3, "m4").created_count == 1
    stream.end()
    broken.end()


def test_a_chunk_that_is_sent_ahead_finds_what_the_one_before_it_wrote(
    channel: grpc.Channel, client: Client, namespace: str
) -> None:
    """All are sent before the first is answered, and write one memory: each goes by how the last one left it."""
    stream = Stream(channel, namespace, "s")
    requests = [chunk(sequence, "m") for sequence in (1, 2, 3)]
    requests[0].memories[0].valid_from_time.FromSeconds(2_000)
    requests[1].memories[0].valid_until_time.FromSeconds(1_000)
    requests[2].memories[0].content = "says something else"
    for request in requests:
        stream.send(request)
    first, second, third = next(stream.call), next(stream.call), next(stream.call)
    assert (first.created_count, second.updated_count, third.updated_count) == (1, 0, 1)
    assert [each.index for each in second.rejections] == [0]
    assert "valid_from_time" in second.rejections[0].result.status.message
    kept = client.get(namespace, "m")
    assert (kept.content, kept.valid_from_time.seconds) == ("says something else", 2_000)
    stream.end()


@pytest.mark.parametrize(
    ("request_", "code", "says"),
    [
        (chunk(4, "m1"), grpc.StatusCode.INVALID_ARGUMENT, "must be 3"),
        (chunk(0, "m1"), grpc.StatusCode.INVALID_ARGUMENT, "sequence"),
        (chunk(-1, "m1"), grpc.StatusCode.INVALID_ARGUMENT, "sequence"),
        (chunk(3), grpc.StatusCode.INVALID_ARGUMENT, "memories"),
        (chunk(3, *map(str, range(1001))), grpc.StatusCode.INVALID_ARGUMENT, "1,001"),
        (chunk(2, "others"), grpc.StatusCode.ALREADY_EXISTS, "other memories"),
        (Request(namespace="another", sequence=3), grpc.StatusCode.INVALID_ARGUMENT, "namespace"),
        (Request(stream_id="another", sequence=3), grpc.StatusCode.INVALID_ARGUMENT, "stream_id"),
    ],
)
def test_a_chunk_out_of_place_ends_the_stream_and_writes_nothing(
    request_: Request, code: grpc.StatusCode, says: str, channel: grpc.Channel, client: Client, namespace: str
) -> None:
    """A gap, a number that other memories had, another namespace: the error says what must come next."""
    stream = Stream(channel, namespace, "s")
    stream.chunk(1, "a")
    stream.chunk(2, "b")
    stream.send(request_)
    with pytest.raises(grpc.RpcError) as error:
        next(stream.call)
    assert error.value.code() is code
    assert says in (error.value.details() or "")
    assert [each.id for each in client.list(namespace)] == ["a", "b"]


@pytest.mark.parametrize("opening", [Request(stream_id="s"), Request(namespace="n"), Request(namespace="n" * 129)])
def test_a_stream_says_whose_memories_come_and_its_name(opening: Request, channel: grpc.Channel) -> None:
    """Without them nothing could be resumed."""
    call = memory_pb2_grpc.MemoryServiceStub(channel).IngestMemories(iter([opening]), timeout=30)
    with pytest.raises(grpc.RpcError) as error:
        next(call)
    assert error.value.code() is grpc.StatusCode.INVALID_ARGUMENT


def test_streams_of_one_name_in_two_namespaces_are_two(channel: grpc.Channel, namespace: str) -> None:
    """A name is scoped to its namespace."""
    one, other = Stream(channel, namespace, "s"), Stream(channel, f"{namespace}-2", "s")
    one.chunk(1, "m1")
    assert other.chunk(1, "m2").created_count == 1
    one.end()
    other.end()


def test_the_client_reports_what_is_acknowledged_and_where_memories_were_refused(
    client: Client, namespace: str
) -> None:
    """Progress never runs ahead of the server; refusals have the position in the whole stream."""
    memories = numbered(25)
    memories[13] = {"id": "bad", "content": " "}
    seen: list[tuple[int, int]] = []

    def look(result: IngestResult) -> None:
        seen.append((result.acknowledged, sum(1 for _ in client.list(namespace, page_size=1000))))

    result = client.ingest(namespace, memories, chunk_size=10, on_progress=look)
    assert [acknowledged for acknowledged, _ in seen] == [10, 20, 25]
    assert all(stored >= acknowledged - 1 for acknowledged, stored in seen)
    assert [(each.position, each.memory_id) for each in result.rejections] == [(13, "bad")]
    assert (result.created, result.updated, result.unchanged) == (24, 0, 0)
    again = client.ingest(namespace, memories, chunk_size=7)
    assert (again.created, again.updated, again.unchanged, len(again.rejections)) == (0, 0, 24, 1)


def test_memories_are_read_no_further_than_the_window(client: Client, namespace: str) -> None:
    """A stream of any length needs little room: what is read ahead is bounded."""
    read = acknowledged = 0

    def reading() -> Iterator[dict[str, str]]:
        nonlocal read
        for each in numbered(200):
            read += 1
            assert read - acknowledged <= 10 * 5 + 1
            yield each

    def note(result: IngestResult) -> None:
        nonlocal acknowledged
        acknowledged = result.acknowledged

    assert client.ingest(namespace, reading(), chunk_size=10, on_progress=note).created == 200


def test_an_error_of_the_one_who_gives_memories_ends_the_stream(client: Client, namespace: str) -> None:
    """It reaches the caller as it was raised."""

    def failing() -> Iterator[dict[str, str]]:
        yield from numbered(5)
        raise OSError("the disk is gone")

    with pytest.raises(OSError, match="the disk is gone"):
        client.ingest(namespace, failing(), chunk_size=2)


def test_long_memories_go_in_smaller_chunks(client: Client, namespace: str) -> None:
    """A hundred memories of the largest size fit, though they do not fit into one message."""
    memories = [{"id": f"m{number:03}", "content": f"{number:03} " + "x" * 65_000} for number in range(100)]
    assert client.ingest(namespace, memories, chunk_size=1000).created == 100


def test_a_memory_larger_than_a_message_is_refused_alone(client: Client, namespace: str) -> None:
    """Wherever it stands in its chunk, with place, id, size and limit; sent, it would have ended the stream."""
    memories = numbered(12)
    for place in (0, 3, 4, 11):
        memories[place]["content"] = "x" * (5 << 20)
    memories[6]["content"] = "y" * (2 << 20)  # fits into a message, and is refused by the server
    for size in (1, 4, 1000):
        result = client.ingest(namespace, memories, chunk_size=size)
        assert result.created + result.unchanged == 7
        refused = {each.position: each for each in result.rejections}
        assert list(refused) == [0, 3, 4, 6, 11]
        assert [each.memory_id for each in refused.values()] == ["m0", "m3", "m4", "m6", "m11"]
        assert refused[3].message.startswith("has 5,242,8")
        assert "at most 4,194,240" in refused[3].message
        assert "1 to 65,536" in refused[6].message
    assert {each.id for each in client.list(namespace)} == {f"m{each}" for each in (1, 2, 5, 7, 8, 9, 10)}


def test_what_fits_into_a_message_by_a_hair_is_sent(client: Client, namespace: str) -> None:
    """The largest that is not refused here reaches the server, which refuses it for its content."""
    memories = [{"id": "m", "content": ""}]
    around = memory("m", content="x" * (4 << 20)).ByteSize() - (4 << 20)
    memories[0]["content"] = "x" * ((4 << 20) - 64 - around)
    assert "1 to 65,536" in client.ingest(namespace, memories).rejections[0].message
    memories[0]["content"] += "x"
    assert "at most 4,194,240" in client.ingest(namespace, memories).rejections[0].message


def test_nothing_of_a_stream_is_left_to_the_garbage_collector(client: Client, namespace: str) -> None:
    """At Python's end a call that is left could wait for ever for a thread of gRPC's that has stopped."""

    def calls() -> set[int]:
        return {id(found) for found in gc.get_objects() if isinstance(found, grpc.Call)}

    gc.collect()
    gc.disable()
    try:
        before = calls()
        client.ingest(namespace, [{"id": "a", "content": "a note"}])
        assert calls() <= before
    finally:
        gc.enable()


def test_a_server_that_is_killed_loses_and_doubles_nothing(tmp_path: Path) -> None:
    """kill -9 in the middle; the client goes on with the next server, and everything was created exactly once."""
    with ExitStack() as stack:
        served, client = stack.enter_context(process(tmp_path))
        client.status()

        def kill(result: IngestResult) -> None:
            if result.acknowledged == 100 and served.poll() is None:
                served.kill()
                served.wait()
                stack.enter_context(process(tmp_path))

        result = client.ingest("n", numbered(400), chunk_size=10, on_progress=kill, timeout=60)
        assert (result.acknowledged, result.created, result.unchanged) == (400, 400, 0)
        assert {each.id for each in client.list("n", page_size=1000)} == {each["id"] for each in numbered(400)}


def test_a_client_that_is_killed_goes_on_in_another_process(tmp_path: Path) -> None:
    """kill -9 of the sender: with the same stream_id the next one ends it, and nothing is written twice."""
    with running(tmp_path) as server:
        command = [sys.executable, "-m", "tests.rpc.ingesting", server.listen, "file", "300"]
        sender = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        assert sender.stdin is not None
        assert sender.stdout is not None
        for expected in range(10, 60, 10):
            assert int(sender.stdout.readline()) == expected
            sender.stdin.write("\n")
            sender.stdin.flush()
        sender.kill()
        sender.communicate()
        result = server.client.ingest("n", numbered(300), stream_id="file", chunk_size=10)
        assert (result.created, result.unchanged) == (300, 0)
        assert server.client.status("n").namespace.memory_count == 300


def test_a_server_that_is_stopped_ends_streams_and_is_not_held_up(tmp_path: Path) -> None:
    """A stream that waits is cut off at once; the client resumes it at the next server."""
    with ExitStack() as stack:
        first = stack.enter_context(running(tmp_path, drain_seconds=60))

        def stop(result: IngestResult) -> None:
            if result.acknowledged == 50:
                started = time.monotonic()
                first.sidecar.close()
                assert time.monotonic() - started < 30
                stack.enter_context(running(tmp_path))

        result = first.client.ingest("n", numbered(100), chunk_size=10, on_progress=stop, timeout=30)
        assert (result.created, result.unchanged) == (100, 0)


def test_a_server_that_stays_away_is_an_error_after_the_timeout(tmp_path: Path) -> None:
    """The error is the one of the connection, and names the address."""
    with running(tmp_path) as server:

        def stop(_: IngestResult) -> None:
            server.sidecar.close()

        with pytest.raises(RankerRpcError, match="socket") as error:
            server.client.ingest("n", numbered(100), chunk_size=10, on_progress=stop, timeout=2)
        assert error.value.code is grpc.StatusCode.UNAVAILABLE


def test_a_store_that_was_put_back_is_noticed(tmp_path: Path) -> None:
    """A server that knows less than was acknowledged cannot go on without a hole; the client says so."""
    with ExitStack() as stack:
        first = stack.enter_context(running(tmp_path))

        def put_back(result: IngestResult) -> None:
            if result.acknowledged == 30:
                first.sidecar.close()
                shutil.rmtree(tmp_path / "data")
                stack.enter_context(running(tmp_path))

        with pytest.raises(RankerRpcError, match="ingest everything again") as error:
            first.client.ingest("n", numbered(100), chunk_size=10, on_progress=put_back)
        assert error.value.reason == "STREAM_LOST"


def test_idle_streams_never_hold_up_a_rank(running_server: Running) -> None:
    """64 open streams that say nothing: calls have threads of their own."""
    client = running_server.client
    client.upsert("n", numbered(50))
    with channel_to(running_server.listen) as channel:
        streams = [Stream(channel, "n", f"s{number}") for number in range(64)]
        for _ in range(20):
            client.rank("n", "memory number 7", timeout=5)
        for stream in streams:
            stream.end()


def test_a_rank_is_answered_while_memories_stream_in(running_server: Running) -> None:
    """Every Rank during an ingest is answered within its deadline, from a growing store."""
    client = running_server.client
    client.upsert("n", numbered(1))
    failures: list[Exception] = []
    counts: list[int] = []
    ended = threading.Event()

    def rank() -> None:
        while not ended.is_set():
            try:
                counts.append(client.rank("n", "memory number 7", timeout=5, max_items=200).items[0].place)
            except RankerRpcError as error:
                failures.append(error)

    ranking = threading.Thread(target=rank)
    ranking.start()
    try:
        client.ingest("n", numbered(3000, 1))
    finally:
        ended.set()
        ranking.join()
    assert not failures
    assert counts
