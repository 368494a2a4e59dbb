"""The audit over a real store: the case that it is made for, its SQL, and a running server."""

from __future__ import annotations

import datetime
import random
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from memoryranker.client import Client, RankerRpcError
from memoryranker.v1 import admin_pb2

from sidecar.audit.verdict import Audit, Verdict, judge
from sidecar.domain import SECOND, Packet, PacketItem, Segment, UseReport
from sidecar.features.importance import BASELINE, combine
from sidecar.feedback.rescore import Rescorer
from sidecar.store.audit_sql import Scope, queries
from sidecar.store.jobs import Done
from sidecar.store.packets import insert, to_rows
from sidecar.store.store import Store

NOW = 1_790_000_000 * SECOND
MEMORIES, PACKETS, SESSIONS = 1_782, 20_900, 376


def packet(number: int, keys: list[int]) -> Packet:
    items = tuple(
        PacketItem(f"m{key}", key, Segment.RANKED, 0.5, np.zeros(1), np.zeros(1), np.zeros(1), 1) for key in keys
    )
    fields: dict[str, Any] = {"left_out": {}, "degradations": (), "empty_reason": None, "valid_until_time": None}
    return Packet(
        packet_id=f"p{number}",
        namespace="n",
        items=items,
        undrawn=(),
        model_version="default",
        feature_schema_hash="h",
        exploration_policy="none",
        score_version=1,
        as_of_time=NOW,
        create_time=NOW + number,
        reserve_pool_size=0,
        pool_sizes=(0, 0),
        reserved_slots=0,
        token_budget=None,
        ranked_budget=None,
        slot_budget=None,
        agent_id=f"agent-{number % 4}",
        session_id=f"s{number % SESSIONS}",
        surface="cli",
        **fields,
    )


@pytest.fixture(scope="module")
def starved(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Store]:
    """The case of the note: 20,900 packets of ten of 1,782 memories to 376 sessions, three reports on two memories, and
    a rescore."""
    with Store.open(tmp_path_factory.mktemp("starved") / "data") as store:
        ids = [f"m{n}" for n in range(1, MEMORIES + 1)]
        store.upsert("n", [(each, {"content": each, "tokens": 1}) for each in ids], NOW)
        draw = random.Random(7)
        reported = {0: 1, SESSIONS: 1, 5: 2}
        keys = {n: [*draw.sample(range(3, MEMORIES + 1), 9), reported.get(n, 3 + n % 1_700)] for n in range(PACKETS)}
        rows = [to_rows(packet(n, list(dict.fromkeys(keys[n])))) for n in range(PACKETS)]

        def work(db: sqlite3.Connection) -> Done[None]:
            for each in rows:
                insert(db, each)
            return Done(None)

        store._writer.submit(work, durable=True)
        for number, key in reported.items():
            store.report(UseReport(f"p{number}", used_memory_ids=(f"m{key}",)), NOW + PACKETS)
        Rescorer(store, lambda: NOW + PACKETS + 1).run("", apply=True)
        yield store


@pytest.fixture(scope="module")
def found(starved: Store) -> Audit:
    return judge(starved.audit(Scope(), 5), 5)


def test_a_starved_ranker_is_told_from_a_broken_one(found: Audit, starved: Store) -> None:
    """Nearly all memories at the floor, many packets, hardly a report: starving, and the formula is innocent."""
    value = {figure.name: figure.value for figure in found.figures if not figure.about}
    assert found.verdict is Verdict.STARVING
    assert (value["memories"], value["packets"], value["sessions"], value["reports"]) == (1_782, 20_900, 376, 3)
    assert (value["memories_at_floor"], value["used_memories"]) == (1_780, 2)
    assert "1,780 of 1,782 memories are at the floor" in found.findings[0]
    assert "20,900 packets went to 376 sessions, and 3 reports" in found.findings[0]
    assert "The formula is innocent" in found.findings[0]


def test_all_clients_are_seen_to_be_mute(found: Audit) -> None:
    """Each of the four agents is a dead counter, though three packets were reported on."""
    assert sum(words.startswith("dead counter") for words in found.findings) == 4
    by = {figure.about: figure.value for figure in found.figures if figure.name == "packets_with_feedback_by_agent"}
    assert set(by) == {f"agent-{n}" for n in range(4)}
    assert max(by.values()) < 0.001


def rows(store: Store, name: str, scope: Scope | None = None) -> list[tuple[Any, ...]]:
    """A query's rows, by any SQL client: a connection of its own that can only read."""
    (query,) = (query for query in queries(scope or Scope()) if query.name == name)
    connection = sqlite3.connect(f"file:{store.folder / 'memories.db'}?mode=ro", uri=True)
    try:
        return connection.execute(query.sqlite).fetchall()
    finally:
        connection.close()


def test_the_plain_sql_says_what_the_audit_says(starved: Store, found: Audit) -> None:
    """Each query of --sql runs as it is printed, and has the audit's own figures."""
    value = {(figure.name, figure.about): figure.value for figure in found.figures}
    ((at_floor, heard),) = rows(starved, "starvation")
    assert at_floor == pytest.approx(value["share_at_floor", ""])
    assert heard == pytest.approx(value["packets_with_feedback", ""])
    served = rows(starved, "serves")
    assert len(served) == 20
    for namespace, memory_id, importance, serves in served:
        assert value["serves", f"{namespace}/{memory_id}"] == serves
        assert value["importance", f"{namespace}/{memory_id}"] == pytest.approx(importance)
    assert [row[3] for row in served] == sorted((row[3] for row in served), reverse=True)
    used = rows(starved, "uses")
    assert len(used) == 50
    assert all(use_rate == uses / serves for _, _, serves, uses, use_rate in used)
    clients = rows(starved, "clients")
    assert sum(row[3] for row in clients) == PACKETS
    assert sum(row[5] for row in clients) == 3


def test_a_scope_bounds_every_query(starved: Store) -> None:
    """Another namespace has nothing, whatever its name holds; a window leaves older packets out."""
    for name in ("it's; DROP TABLE memories", "other"):
        assert rows(starved, "serves", Scope(name)) == []
        assert rows(starved, "starvation", Scope(name)) == [(None, None)]
        assert judge(starved.audit(Scope(name), 5), 5).findings[0].startswith("too little to tell")
    late = starved.audit(Scope("n", NOW + PACKETS - 100), 5)
    assert (late.packets, late.reported_packets) == (100, 0)
    assert sum(row[3] for row in rows(starved, "clients", Scope("n", NOW + PACKETS - 100))) == 100


def test_the_sql_scores_as_the_ranking_does(tmp_path: Path) -> None:
    """An importance in SQL is that of the one function that combines its parts, for every kind and missing part."""
    draw = random.Random(3)

    def part() -> float | None:
        return draw.choice([None, draw.random()])

    kinds = [*BASELINE, "another kind"]
    patches = [
        (
            f"m{n}",
            {
                "content": "x",
                "tokens": 1,
                "kind": kinds[n % len(kinds)],
                "importance_content": part(),
                "importance_use": part(),
                "importance_override": part(),
            },
        )
        for n in range(200)
    ]
    with Store.open(tmp_path / "data") as store:
        store.upsert("n", patches, NOW)
        ids = [f"m{n}" for n in range(200)]
        keys = {memory.id: memory.key for memory in store.load("n").memories}
        items = [keys[each] for each in ids]
        numbers = [packet(n, items[10 * n : 10 * n + 10]) for n in range(20)]
        for each in numbers:
            store.log_packet(each)
        shown = {memory.memory_id: memory.importance for memory in store.audit(Scope(), 5).served}

    def column(name: str) -> np.ndarray:
        return np.array([np.nan if fields[name] is None else fields[name] for _, fields in patches], np.float64)

    baseline = np.array([BASELINE.get(str(fields["kind"]), BASELINE["default"]) for _, fields in patches])
    scores = combine(column("importance_content"), column("importance_use"), column("importance_override"), baseline)
    assert [shown[each] for each in ids] == pytest.approx(scores.tolist())


def test_both_forms_of_the_sql_are_alike() -> None:
    """PostgreSQL's form differs in the name of a type alone, and uses nothing that only SQLite has."""
    for query in queries(Scope("n", 5)):
        assert query.sqlite == query.postgresql.replace(" AS DOUBLE PRECISION)", " AS REAL)")
        for own in ("GLOB", "IFNULL", "rowid", "json_each", "strftime"):
            assert own not in query.sqlite


def test_a_running_server_answers(client: Client, namespace: str) -> None:
    """Verdict, words and figures come over the socket; a window must be above 0; a namespace that is
    not there is not called healthy."""
    client.upsert(namespace, [{"id": f"m{n}", "content": f"deploy note number {n}"} for n in range(8)])
    for n in range(25):
        packet = client.rank(namespace, "deploy", session_id=f"s{n}", agent_id="a", surface="ide", max_items=3)
        if n % 2:
            client.report_use(packet.packet_id, [packet.items[0].memory.id])
    answer = client.audit(namespace)
    assert answer.findings
    figures = {(figure.name, figure.about): figure.value for figure in answer.figures}
    assert figures["packets", ""] == 25
    assert figures["packets_with_feedback_by_surface", "ide"] == pytest.approx(12 / 25)
    assert client.audit(namespace, window=datetime.timedelta(days=1)).verdict == answer.verdict
    unknown = client.audit("no-such-namespace")
    assert unknown.verdict == admin_pb2.AUDIT_VERDICT_TOO_LITTLE
    assert unknown.findings[0].startswith("too little to tell: 0 packets")
    with pytest.raises(RankerRpcError) as refused:
        client.audit(namespace, window=datetime.timedelta(0))
    assert [each.field for each in refused.value.violations] == ["window"]
