"""A write, or a Rank, that is sent again under its request_id has happened once."""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Barrier
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from memoryranker.client import Client, RankerRpcError
from memoryranker.v1 import types_pb2

from sidecar.domain import DAY, SECOND
from sidecar.ranking.tokens import count_tokens
from tests.promises.frozen import frozen, text, write
from tests.promises.parts import NOW, Clock, with_parts
from tests.serving import running, wait_until_scored

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
    wait_until_scored(client, namespace)
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


@pytest.fixture(scope="module")
def still(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Client]:
    """A client of a server that stands still."""
    with frozen(tmp_path_factory.mktemp("still")) as server:
        yield server.client


rounds = itertools.count()
LONGER, SHORTER = "grown far beyond what it was charged for: " + text(900) * 3, "short"
MEANWHILE: dict[str, Callable[[Client, str, str, str], object]] = {
    "other": lambda c, n, p, m: c.upsert(n, [{"id": "other", "content": text(901), "relevance": 1.0, "pinned": True}]),
    "rank": lambda c, n, p, m: c.rank(n, "harbour", max_items=12),
    "use": lambda c, n, p, m: c.report_use(p, [m], namespace=n),
    "subject": lambda c, n, p, m: c.update(n, m, subject="someone"),
    "suppress": lambda c, n, p, m: c.update(n, m, suppressed=True),
    "rate": lambda c, n, p, m: c.rate(n, m, "unhelpful"),
    "shorten": lambda c, n, p, m: c.update(n, m, content=SHORTER),
    "lengthen": lambda c, n, p, m: c.update(n, m, content=LONGER),
    "delete": lambda c, n, p, m: c.delete(n, [m]),
    "reuse": lambda c, n, p, m: (c.delete(n, [m]), c.upsert(n, [{"id": m, "content": SHORTER}])),
}
"""What may happen between a Rank and its retry, each to one memory of the packet or to none."""
LEAVE_IT = frozenset({"other", "rank", "use"})
"""Those that write no memory of the packet."""


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    steps=st.lists(st.tuples(st.sampled_from(sorted(MEANWHILE)), st.integers(0, 11)), max_size=5),
    budget=st.none() | st.integers(30, 300),
    explain=st.sampled_from(["none", "contributions", "full"]),
    slots=st.integers(0, 2),
)
def test_a_retried_rank_is_identical_but_for_memories_that_were_written_since(
    still: Client, steps: list[tuple[str, int]], budget: int | None, explain: Any, slots: int
) -> None:
    """Whatever happens meanwhile, ids, order, scores, contributions, propensities and tokens are those of the first
    answer; each memory is as it is now, so one that nobody wrote is the same to the byte, and of one that is gone or
    has outgrown its tokens the id alone is left: no answer exceeds its budget."""
    namespace = f"retry{next(rounds)}"
    names = {f"m{i:02}": 0.5 + i / 100 for i in range(16)}
    write(still, namespace, names, token_count=None)

    def ask() -> Any:
        wait_until_scored(still, namespace)
        return still.rank(
            *(namespace, "harbour"),
            max_items=12,
            reserved_slots=slots,
            token_budget=budget,
            explain=explain,
            request_id="r",
        )

    first = ask()
    shown = [item.memory.id for item in first.items]
    written: set[str] = set()
    for what, which in steps if shown else []:
        name = shown[which % len(shown)]
        with contextlib.suppress(RankerRpcError):  # what is gone already can be written no more
            MEANWHILE[what](still, namespace, first.packet_id, name)
        if what not in LEAVE_IT:
            written.add(name)
    again = ask()
    assert (first.replayed, again.replayed) == (False, True)
    if not written:
        assert plain(again) == plain(first)
    for before, after in zip(first.items, again.items, strict=True):
        assert after.memory.id == before.memory.id
        if before.memory.id not in written:
            assert after.memory == before.memory
        elif after.memory.content:
            assert after.memory == still.get(namespace, after.memory.id)
            assert count_tokens(after.memory.content) <= after.tokens
        else:
            assert after.memory == types_pb2.Memory(id=before.memory.id)
        after.memory.CopyFrom(before.memory)
    assert plain(again) == plain(first)
