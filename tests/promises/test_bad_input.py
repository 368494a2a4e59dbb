"""Bad requests are refused in words, each where it is wrong; strange but possible ones are taken."""

from __future__ import annotations

import datetime
import struct
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import grpc
import pytest
from google.protobuf.struct_pb2 import Struct
from memoryranker.client import Client, RankerRpcError
from memoryranker.v1 import memory_pb2, memory_pb2_grpc, ranker_pb2, ranker_pb2_grpc, types_pb2

from sidecar.domain import DAY, SECOND
from tests.promises.frozen import days_ago
from tests.promises.parts import DIMENSION, NOW, Clock, Held, with_parts
from tests.serving import Running, channel_to, running


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    """A server whose store has vectors of eight numbers."""
    with running(tmp_path_factory.mktemp("server"), with_parts(embedder=Held()), embedder="none") as server:
        yield server


@pytest.fixture
def client(server: Running) -> Client:
    return server.client


def refusal(call: Any, *arguments: Any, **named: Any) -> RankerRpcError:
    """The error that a call ends with."""
    with pytest.raises(RankerRpcError) as caught:
        call(*arguments, **named)
    return caught.value


@pytest.mark.parametrize("memory_id", ["メモ🧠", "Zoë's note", "a\u202eb", "x" * 255])
def test_an_id_in_any_script_is_readable_in_an_error(client: Client, namespace: str, memory_id: str) -> None:
    """A refusal that names it has the right status and shows it as it was sent, or its beginning."""
    missing = refusal(client.get, namespace, memory_id)
    assert missing.code is grpc.StatusCode.NOT_FOUND
    assert memory_id[:20].replace("\u202e", "\\u202e") in missing.message.replace('"', "'")
    bad = refusal(client.rate, namespace, memory_id + "\0", "helpful")
    assert bad.code is grpc.StatusCode.INVALID_ARGUMENT
    assert memory_id[:20].replace("\u202e", "\\u202e") in bad.violations[0].description


def test_every_violation_names_field_value_and_limit(client: Client, namespace: str) -> None:
    """One answer lists all that is wrong with a request, with what was sent and what is allowed."""
    error = refusal(
        client.rank,
        namespace,
        max_items=201,
        token_budget=-1,
        min_score=float("nan"),
        reserved_slots=3,
        session_id="s" * 257,
        task_embedding=b"\0" * 12,
        weights=types_pb2.Weights(features={"lexical": 1.5}, half_life_days={"fact": 0.0, "decision": -3.0}),
    )
    assert error.code is grpc.StatusCode.INVALID_ARGUMENT
    said = {each.field: each.description for each in error.violations}
    assert said["max_items"] == "is 201; must be in [1, 200]"
    assert said["token_budget"] == "is -1; must be in [0, 10,000,000]"
    assert said["min_score"] == "is nan; must be in [0, 1]"
    assert said["reserved_slots"] == "is 3; must be in [0, 2]"
    assert said["session_id"] == "has 257 bytes; must have at most 256"
    assert said["task_embedding"].startswith("has 12 bytes; must have 32")
    assert said["weights.values.features.lexical"] == "is 1.5; must be in [0, 1]"
    for kind, value in (("fact", "0.0"), ("decision", "-3.0")):
        assert said[f"weights.values.half_life_days.{kind}"] == f"is {value}; must be above 0 and at most 36500 days"
    assert error.metadata["violations_total"] == str(len(said))


@pytest.mark.parametrize(
    ("vector", "words"),
    [
        ([float("nan")] + [0.0] * 7, "is nan at number 0; must be finite"),
        ([0.0] * 7 + [float("inf")], "is inf at number 7; must be finite"),
        ([0.0] * 8, "is all zero"),
        ([1.0] * 7, "has 28 bytes; must have 32"),
        ([1.0] * 9, "has 36 bytes; must have 32"),
    ],
)
def test_a_vector_that_is_none_is_refused(client: Client, namespace: str, vector: list[float], words: str) -> None:
    """On a memory, on a task and on a candidate; the memory's neighbours in the batch are saved."""
    data = struct.pack(f"<{len(vector)}f", *vector)
    batch: list[dict[str, Any]] = [
        {"id": "bad", "content": "text", "embedding": data},
        {"id": "good", "content": "text"},
    ]
    bad, good = client.upsert(namespace, batch).results
    assert words in bad.status.message
    assert good.outcome == memory_pb2.WRITE_OUTCOME_CREATED
    assert words in refusal(client.rank, namespace, task_embedding=data).violations[0].description
    assert words in refusal(client.rank, namespace, candidates=batch[:1]).violations[0].description


def test_vectors_of_any_length_are_taken(client: Client, namespace: str) -> None:
    """From the smallest numbers to the largest only the direction counts: nothing overflows or vanishes."""
    sizes = {"huge": 3e38, "tiny": 1e-45, "usual": 1.0}
    opposite = struct.pack("<8f", *[-1.0] * DIMENSION)
    client.upsert(
        namespace,
        [
            *(
                {"id": f"m{name}", "content": name, "embedding": struct.pack("<8f", *[size] * 8)}
                for name, size in sizes.items()
            ),
            {"id": "opposite", "content": "opposite", "embedding": opposite},
        ],
    )
    for size in sizes.values():
        packet = client.rank(namespace, task_embedding=struct.pack("<8f", *[size] * 8), explain="full")
        column = list(packet.feature_names).index("semantic")
        semantic = {item.memory.id: item.features[column] for item in packet.items}
        assert semantic.pop("opposite") == 0.0
        assert set(semantic.values()) == {1.0}


def test_a_batch_tells_each_memory_what_is_wrong_with_it(client: Client, namespace: str) -> None:
    """The good ones are saved, whatever stands beside them."""
    wrong: dict[str, dict[str, Any]] = {
        "nul": {"content": "log\0tail"},
        "blank": {"content": "\u200b \t\n"},
        "long": {"content": "é" * 32_769},
        "importance": {"content": "x", "importance_override": float("inf")},
        "relevance": {"content": "x", "relevance": -0.1},
        "tokens": {"content": "x", "token_count": 0},
        "tags": {"content": "x", "tags": [""] * 3},
        "i" * 257: {"content": "x"},
        "": {"content": "x"},
    }
    batch = [{"id": key, **fields} for key, fields in wrong.items()] + [{"id": "é" * 128, "content": "é" * 32_768}]
    results = client.upsert(namespace, batch).results
    assert [each.memory_id for each in results] == [each["id"] for each in batch]
    assert [each.status.code for each in results] == [3] * len(wrong) + [0]
    assert all(f"memories[{i}]." in each.status.message for i, each in enumerate(results[:-1]))
    assert [memory.id for memory in client.list(namespace)] == ["é" * 128]


@pytest.mark.parametrize("data", [b"\xc3\x28", b"\xed\xa0\x80", b"\xff\xfe", b"\xf8\x88\x80\x80\x80"])
@pytest.mark.parametrize("before", [b"", b"fine "])
def test_bytes_that_are_no_text_are_refused(server: Running, namespace: str, before: bytes, data: bytes) -> None:
    """Bytes in a text field of a handmade request that are not UTF-8 are the caller's fault, and nothing is written."""
    text = before + data
    memory = b"\x0a\x01m\x12" + bytes([len(text)]) + text
    request = memory_pb2.UpsertMemoriesRequest(namespace=namespace).SerializeToString()
    request += b"\x12" + bytes([len(memory)]) + memory
    with channel_to(server.listen) as channel:
        raw: Any = channel.unary_unary("/memoryranker.v1.MemoryService/UpsertMemories")
        with pytest.raises(grpc.RpcError) as caught:
            raw(request, timeout=10)
    assert caught.value.code() is grpc.StatusCode.INVALID_ARGUMENT
    assert "UTF-8" in str(caught.value.details())
    assert list(server.client.list(namespace)) == []


def oversized() -> dict[str, Any]:
    """Requests of three megabytes in which everything is wrong."""
    deep = Struct()
    inside = deep.fields["k" * 1_000_000].struct_value
    for number in range(100_000):
        inside.fields[str(number)].number_value = float("nan")
    memory = types_pb2.Memory(id="m", content="x", tags=[""] * 1_000_000)
    return {
        "tags": memory_pb2.UpsertMemoriesRequest(namespace="n", memories=[memory]),
        "metadata": memory_pb2.UpsertMemoriesRequest(
            namespace="n", memories=[types_pb2.Memory(id="m", content="x", metadata=deep)]
        ),
        "mask": memory_pb2.UpdateMemoryRequest(namespace="n", memory=memory),
        "candidates": ranker_pb2.RankRequest(namespace="n", candidates=[types_pb2.Memory()] * 1_000_000),
        "filter": ranker_pb2.RankRequest(namespace="n", filter=types_pb2.Filter(kinds=[""] * 1_000_000)),
        "files": ranker_pb2.RankRequest(namespace="n", context=types_pb2.Context(files=["\0"] * 1_000_000)),
        "weights": ranker_pb2.RankRequest(
            namespace="n",
            weights=types_pb2.WeightsChoice(values=types_pb2.Weights(features={str(i): 2.0 for i in range(100_000)})),
        ),
    }


@pytest.mark.parametrize("name", ["tags", "metadata", "mask", "candidates", "filter", "files", "weights"])
def test_a_message_full_of_wrong_things_is_refused_soon(server: Running, name: str) -> None:
    """Millions of wrong values in one request cost neither minutes nor the server's memory."""
    request = oversized()[name]
    if name == "mask":
        request.memory.ClearField("tags")
        request.update_mask.paths.extend(str(number) for number in range(300_000))
    started = time.monotonic()
    with channel_to(server.listen) as channel:
        ranker, memory = ranker_pb2_grpc.RankerServiceStub(channel), memory_pb2_grpc.MemoryServiceStub(channel)
        if isinstance(request, memory_pb2.UpsertMemoriesRequest):
            assert memory.UpsertMemories(request, timeout=60).results[0].status.code == 3
        else:
            method: Any = ranker.Rank if isinstance(request, ranker_pb2.RankRequest) else memory.UpdateMemory
            with pytest.raises(grpc.RpcError) as caught:
                method(request, timeout=60)
            assert caught.value.code() is grpc.StatusCode.INVALID_ARGUMENT
    assert time.monotonic() - started < 30


def test_a_message_that_is_too_large_is_refused_and_the_next_call_works(client: Client, namespace: str) -> None:
    """The transport's own limit ends the call, not the connection."""
    batch = [{"id": f"m{i}", "content": "x" * 65_000} for i in range(70)]
    assert refusal(client.upsert, namespace, batch).code is grpc.StatusCode.RESOURCE_EXHAUSTED
    assert len(client.upsert(namespace, batch[:60]).results) == 60


@pytest.mark.parametrize("year", [1900, 1969, 2200])
def test_ancient_and_future_memories_rank(server: Running, namespace: str, year: int) -> None:
    """Whenever a memory was learned and whenever it is ranked for, values stay in their ranges; what is learned later
    is left out."""
    created = types_pb2.Memory(id="m", content="harbour ferry")
    created.create_time.FromJsonString(f"{year}-06-01T00:00:00Z")
    server.client.upsert(namespace, [created, {"id": "now", "content": "ferry"}])
    for at in (1900, 1999, 2200):
        asked = ranker_pb2.RankRequest(namespace=namespace, task="ferry", explain=ranker_pb2.EXPLAIN_LEVEL_FULL)
        asked.as_of_time.FromJsonString(f"{at}-12-31T23:59:59Z")
        with channel_to(server.listen) as channel:
            packet = ranker_pb2_grpc.RankerServiceStub(channel).Rank(asked, timeout=10)
        learned = {"m": year, "now": datetime.datetime.now(datetime.UTC).year}
        assert {item.memory.id for item in packet.items} == {name for name in learned if learned[name] <= at}
        for item in packet.items:
            assert all(0.0 <= value <= 1.0 for value in (item.score, *item.features))


def test_a_clock_that_steps_back_breaks_nothing(tmp_path: Path) -> None:
    """An hour, a day or years back: memories are served, uses count, values stay in their ranges, and what was written
    after the step is found; after the clock is right again too."""
    clock = Clock()
    with running(tmp_path, with_parts(clock), embedder="none") as server:
        client = server.client
        client.upsert("n", [{"id": f"m{i}", "content": f"harbour ferry {i}"} for i in range(8)])
        for step, back in enumerate((3_600 * SECOND, DAY, 3_650 * DAY, 0)):
            packet = client.rank("n", "ferry", session_id=f"before {step}")
            client.report_use(packet.packet_id, ["m1"])
            client.rate("n", "m2", "helpful", agent_id=f"rater {step}")
            clock.time = NOW - back
            client.upsert("n", [{"id": f"later{step}", "content": f"harbour ferry later {step}"}])
            again = client.report_use(packet.packet_id, ["m3"])
            assert again.used_count == 1
            after = client.rank("n", "ferry", session_id=f"after {step}", explain="full", max_items=50)
            assert {f"later{step}", "m1", "m2", "m3"} <= {item.memory.id for item in after.items}
            assert all(0.0 <= v <= 1.0 for item in after.items for v in (item.score, *item.features))
            ranked = [item.score for item in after.items if item.segment == types_pb2.SEGMENT_RANKED]
            assert ranked == sorted(ranked, reverse=True)
            assert client.get_packet("n", packet.packet_id).uses


def test_a_window_turned_round_by_a_second_write_is_refused(client: Client, namespace: str) -> None:
    """A memory that would never be served is not made by two writes either: update, upsert and stream refuse the second
    by name, and the rest of a batch goes in. Both ends at once may move to anywhere."""
    early, middle, late = (days_ago(days) for days in (30, 20, 10))
    client.upsert(namespace, [{"id": "m", "content": "text", "valid_from_time": middle}])
    client.upsert(namespace, [{"id": "n", "content": "text too", "valid_until_time": middle}])
    for memory_id, field, value in (
        ("m", "valid_until_time", early),
        ("m", "valid_until_time", middle),
        ("n", "valid_from_time", middle),
        ("n", "valid_from_time", late),
    ):
        with pytest.raises(RankerRpcError) as caught:
            client.update(namespace, memory_id, **{field: value})  # type: ignore[arg-type]
        assert (caught.value.reason, caught.value.violations[0].field) == ("INVALID_REQUEST", f"memory.{field}")
        assert middle.isoformat() in caught.value.violations[0].description
        given: list[dict[str, Any]] = [{"id": "new", "content": "new text"}, {"id": memory_id, "content": "other"}]
        given[1][field] = value
        good, refused = client.upsert(namespace, given).results
        assert (good.status.code, refused.status.code) == (0, grpc.StatusCode.INVALID_ARGUMENT.value[0])
        assert f"memories[1].{field}" in refused.status.message
        for _ in range(2):  # a stream that is resumed says the same again
            streamed = client.ingest(namespace, given, stream_id=f"{memory_id} {field} {value}")
            assert [each.memory_id for each in streamed.rejections] == [memory_id]
    assert client.get(namespace, "m").content == "text"
    for start, end in ((early, middle), (late, days_ago(5)), (early, early + datetime.timedelta(microseconds=1))):
        assert client.update(namespace, "m", valid_from_time=start, valid_until_time=end).memory.id == "m"
    assert client.update(namespace, "m", subject="anything else").memory.subject == "anything else"
