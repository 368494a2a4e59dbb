"""What a Rank and a report cost, counted instead of timed: the count is the same on a busy machine."""

from __future__ import annotations

import cProfile
import pstats
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import pytest

from sidecar.domain import Packet, RankRequest, UseReport
from sidecar.observe.metrics import Metrics
from sidecar.ranking.ranker import Ranker
from sidecar.retrieval.embedders import make_embedder
from sidecar.retrieval.namespaces import Namespaces
from sidecar.store.reports import ReportOutcome
from sidecar.store.requests import Once
from sidecar.store.store import Store
from sidecar.weights import WeightsHolder
from tests.bench import workload
from tests.promises.frozen import NOW

MOST_CALLS = 1_420
"""Python and C functions that one Rank of 20 items calls, its packet's commit and its metrics included. Newer Pythons
call fewer."""
MOST_CALLS_OF_A_REPORT = 120
"""The same of a first report on a packet of 20 with a request id, its commit included. It was 104 when this was set,
817 when a report was counted before its caller went on, 2,000 before its rows were read and written together."""
MOST_STATEMENTS = 7
"""SQL statements of such a report, begin and commit included. 17 and 83 before. Of eight, one has another, which
removes old requests."""
MOST_CALLS_OF_COUNTING = 880
"""The same of counting it alone, what the index does included: 770 when this was set."""
MOST_STATEMENTS_OF_COUNTING = 16
"""SQL statements of it."""
TASKS = workload.tasks(60)


@contextmanager
def ranking(folder: Path, count: int) -> Iterator[tuple[Store, Ranker]]:
    """A ranker over `count` memories."""
    with Store.open(folder) as store:
        namespaces = Namespaces(store.load)
        store.subscribe(namespaces.apply)
        embedder = make_embedder("wordllama")
        made = list(workload.memories(count))
        vectors = embedder.embed([str(memory["content"]) for memory in made])
        patches: list[tuple[str, dict[str, object]]] = []
        for memory, vector in zip(made, vectors, strict=True):
            fields = {name: value for name, value in memory.items() if name != "id"}
            patches.append((str(memory["id"]), {**fields, "token_count": 50, "embedding": vector}))
        for start in range(0, count, 500):
            store.upsert("n", patches[start : start + 500], NOW)
        yield store, Ranker(store, namespaces, embedder, WeightsHolder(), lambda: NOW)


def calls(folder: Path, count: int) -> float:
    """Function calls of one Rank over `count` memories, the mean over tasks that were asked before."""
    metrics = Metrics()
    with ranking(folder, count) as (store, ranker):
        requests = [RankRequest("n", task, max_items=20) for task in TASKS]
        for request in requests:
            ranker.rank(request, lambda: None)
        store.settle()  # while the log is moved, packets are handed to the thread that does it
        with cProfile.Profile() as profile:
            for request in requests:
                packet = ranker.rank(request, lambda: None).packet
                metrics.packet(packet)
                assert len(packet.items) == 20
        total: int = pstats.Stats(profile).total_calls  # type: ignore[attr-defined]
        return total / len(requests)


@pytest.mark.timeout(120)
def test_a_rank_calls_few_functions_and_no_more_for_more_memories(tmp_path: Path) -> None:
    """All memories are scored by array operations: five times as many are no more calls, and there are few of them."""
    few, many = calls(tmp_path / "few", 600), calls(tmp_path / "many", 3_000)
    assert many < 1.1 * few
    assert many < MOST_CALLS


def test_a_report_calls_few_functions_and_statements(tmp_path: Path) -> None:
    """A report is written down and no more; what it touches is counted after it, read at once and written at once, and
    the index hears of it by columns."""
    statements: list[str] = []
    counting: list[str] = []
    with ranking(tmp_path, 600) as (store, ranker), ThreadPoolExecutor(1) as another:  # the main one hands writes over
        packets = [ranker.rank(RankRequest("n", task, max_items=20), lambda: None).packet for task in TASKS]
        store.count_later(lambda: None)

        def report(packet: Packet) -> None:
            words = UseReport(packet.packet_id, used_memory_ids=(packet.items[0].memory_id,))
            done = store.report(words, NOW, Once("ReportUse", packet.packet_id, b"", lambda _: b""))
            assert isinstance(done, ReportOutcome)
            assert done.unused_count == 19

        def profiled() -> tuple[float, float]:
            reporting, counting = cProfile.Profile(), cProfile.Profile()
            for packet in packets[20:]:
                reporting.runcall(report, packet)
                counting.runcall(store.count_reports)
            found = [pstats.Stats(each).total_calls for each in (reporting, counting)]  # type: ignore[attr-defined]
            return found[0] / len(packets[20:]), found[1] / len(packets[20:])

        for packet in packets[:19]:
            another.submit(report, packet).result()
        another.submit(store.count_reports).result()
        store._writer._connection.set_trace_callback(statements.append)
        another.submit(report, packets[19]).result()
        store._writer._connection.set_trace_callback(counting.append)
        another.submit(store.count_reports).result()
        store._writer._connection.set_trace_callback(None)
        of_report, of_counting = another.submit(profiled).result()
    assert len(statements) <= MOST_STATEMENTS
    assert of_report < MOST_CALLS_OF_A_REPORT
    assert len(counting) <= MOST_STATEMENTS_OF_COUNTING
    assert of_counting < MOST_CALLS_OF_COUNTING
