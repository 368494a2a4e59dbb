"""A write, or a Rank, that is sent again under its request_id has happened once."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Barrier
from typing import Any

import pytest
from memoryranker.client import Client, RankerRpcError

from sidecar.domain import DAY, SECOND
from tests.promises.parts import NOW, Clock, with_parts
from tests.serving import running

Call = Callable[[Client, str, str, str, int], Any]
"""Client, namespace, packet id, request id, which of two payloads."""

CALLS: dict[str, Call] = {
    "Rank": lambda c, n, _, rid, i: c.rank(n, f"task {i}", request_id=rid, max_items=12, session_id="s"),
    "UpsertMemories": lambda c, n, _, rid, i: c.upsert(n, [{"id": "new", "content": f"text {i}"}], request_id=rid),
    "UpdateMemory": lambda c, n, _, rid, i: c.update(n, "m1", subject=f"subject {i}", request_id=rid),
    "DeleteMemories": lambda c, n, _, rid, i: c.delete(n, [f"m{i}"], request_id=rid),
    "ReportUse": lambda c, n, p, rid, i: c.report_use(p, [f"m{i}"], namespace=n, request_id=rid),
    "RateMemory": lambda c, n, _, rid, i: c.rate(n, f"m{i}", "helpful", request_id=rid),
}


def fill(client: Client, namespace: str) -> str:
    """Thirty memories and a packet. Returns the packet's id."""
    client.upsert(namespace, [{"id": f"m{i}", "content": f"task {i} of many"} for i in range(30)])
    return client.rank(namespace, "task", max_items=20).packet_id


def effects(client: Client, namespace: str) -> tuple[int, int, int]:
    """What calls leave behind: score version, memories, packets."""
    own = client.status(namespace).namespace
    return own.score_version, own.memory_count, own.packet_count


def expected(method: str, before: tuple[int, int, int]) -> tuple[int, int, int]:
    """What is there after one call of the method."""
    version, memories, packets = before
    if method == "Rank":
        return version, memories, packets + 1
    return version + 1, memories + {"UpsertMemories": 1, "DeleteMemories": -1}.get(method, 0), packets


def plain(response: Any) -> Any:
    """A response without the sign that it is one of a retry, which is all that may differ."""
    same = type(response)()
    same.CopyFrom(response)
    if "replayed" in same.DESCRIPTOR.fields_by_name:
        same.ClearField("replayed")
    return same


@pytest.mark.parametrize("method", CALLS)
def test_a_retry_counts_once_and_is_answered_alike_after_a_restart_too(tmp_path: Path, method: str) -> None:
    """For a day the same request is answered as the first time and changes nothing; with another payload it is refused;
    another method or namespace is another matter; after a day the id is free again."""
    call, clock = CALLS[method], Clock()
    with running(tmp_path, with_parts(clock), embedder="none") as server:
        packet_id = fill(server.client, "a")
        first = plain(call(server.client, "a", packet_id, "r", 1))
        after = effects(server.client, "a")
        assert plain(call(server.client, "a", packet_id, "r", 1)) == first
        assert effects(server.client, "a") == after
    clock.time += DAY - SECOND
    with running(tmp_path, with_parts(clock), embedder="none") as server:
        assert plain(call(server.client, "a", packet_id, "r", 1)) == first
        with pytest.raises(RankerRpcError, match="'r'") as caught:
            call(server.client, "a", packet_id, "r", 2)
        assert (caught.value.code.name, caught.value.reason) == ("ALREADY_EXISTS", "REQUEST_ID_REUSED")
        clock.time = NOW - 365 * DAY  # a clock that steps back forgets nothing
        assert plain(call(server.client, "a", packet_id, "r", 1)) == first
        assert effects(server.client, "a") == after
        other = fill(server.client, "b")
        call(server.client, "b", other, "r", 2)
        for another in set(CALLS) - {method, "DeleteMemories"}:
            CALLS[another](server.client, "b", other, "r", 3)
        clock.time = NOW + DAY
        call(server.client, "a", packet_id, "r", 2)
        assert effects(server.client, "a") != after


@pytest.mark.parametrize("method", CALLS)
def test_the_same_call_from_eight_threads_happens_once(tmp_path: Path, method: str) -> None:
    """Of concurrent duplicates one works, and all get its answer."""
    call = CALLS[method]
    with running(tmp_path, embedder="none", threads=8) as server, ThreadPoolExecutor(8) as threads:
        for round_ in range(5):
            namespace = f"n{round_}"
            packet_id = fill(server.client, namespace)
            before = effects(server.client, namespace)
            together = Barrier(8)

            def send(_: int, namespace: str = namespace, packet_id: str = packet_id, all_: Barrier = together) -> Any:
                all_.wait()
                return plain(call(server.client, namespace, packet_id, "r", 1))

            answers = list(threads.map(send, range(8)))
            assert all(answer == answers[0] for answer in answers)
            assert effects(server.client, namespace) == expected(method, before)


@pytest.mark.parametrize("method", CALLS)
def test_of_two_payloads_under_one_id_one_wins(tmp_path: Path, method: str) -> None:
    """Eight threads send two different requests with the same id at once: one is done, the other is refused as
    another."""
    call = CALLS[method]
    with running(tmp_path, embedder="none", threads=8) as server, ThreadPoolExecutor(8) as threads:
        packet_id = fill(server.client, "n")
        before = effects(server.client, "n")
        together = Barrier(8)

        def send(number: int) -> tuple[int, str]:
            together.wait()
            try:
                call(server.client, "n", packet_id, "r", number % 2)
            except RankerRpcError as error:
                return number % 2, error.reason
            return number % 2, "done"

        answers = set(threads.map(send, range(8)))
        (winner,) = {which for which, became in answers if became == "done"}
        assert answers == {(winner, "done"), (1 - winner, "REQUEST_ID_REUSED")}
        assert effects(server.client, "n") == expected(method, before)


def test_a_call_that_failed_may_be_sent_again(tmp_path: Path) -> None:
    """A refused request leaves its id free: what was wrong can be put right."""
    with running(tmp_path, embedder="none") as server:
        with pytest.raises(RankerRpcError) as caught:
            server.client.update("n", "m", subject="s", request_id="r")
        assert caught.value.code.name == "NOT_FOUND"
        server.client.upsert("n", [{"id": "m", "content": "text"}])
        assert server.client.update("n", "m", subject="s", request_id="r").memory.subject == "s"
        with pytest.raises(RankerRpcError):
            server.client.rank("n", "task", max_items=0, request_id="q")
        assert server.client.rank("n", "task", max_items=1, request_id="q").items[0].memory.id == "m"


def test_a_dry_run_is_not_remembered(tmp_path: Path) -> None:
    """Ranking without logging takes no request_id away, and is never answered with a packet that was logged."""
    with running(tmp_path, embedder="none") as server:
        server.client.upsert("n", [{"id": "m", "content": "text"}])
        assert server.client.rank("n", "text", dry_run=True, request_id="r").packet_id == ""
        logged = server.client.rank("n", "text", request_id="r")
        assert (bool(logged.packet_id), logged.replayed) == (True, False)
        assert server.client.rank("n", "text", dry_run=True, request_id="r").packet_id == ""


def test_text_does_not_outlive_its_memory_in_what_is_kept_for_retries(tmp_path: Path) -> None:
    """A retry of an update shows the memory as it is now, so that replaced and deleted text is not shown again."""
    with running(tmp_path, embedder="none") as server:
        server.client.upsert("n", [{"id": "m", "content": "first"}])
        first = server.client.update("n", "m", content="SECRET", request_id="r")
        assert server.client.update("n", "m", content="SECRET", request_id="r") == first
        server.client.update("n", "m", content="harmless")
        again = server.client.update("n", "m", content="SECRET", request_id="r")
        assert (again.memory.content, again.score_version) == ("harmless", first.score_version)
        server.client.delete("n", ["m"])
        with pytest.raises(RankerRpcError) as caught:
            server.client.update("n", "m", content="SECRET", request_id="r")
        assert caught.value.reason == "MEMORY_NOT_FOUND"
