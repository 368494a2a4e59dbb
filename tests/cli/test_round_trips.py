"""What comes back of an export: the same rankings, packets and reports, in another store."""

from __future__ import annotations

import datetime
import json
import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from memoryranker.client import Client

from sidecar.cli import demo_store
from sidecar.cli.connection import Connection
from sidecar.cli.failures import ExitCode
from tests.cli.conftest import Run
from tests.cli.test_import import call, document
from tests.serving import Running, running, wait_until_scored

UTC = datetime.UTC


@pytest.fixture
def other(tmp_path: Path) -> Iterator[Running]:
    """A server with an empty store."""
    folder = tmp_path / "other"
    folder.mkdir()
    with running(folder) as found:
        yield found


@pytest.fixture
def namespace(run: Run) -> str:
    """The namespace that `run` works in."""
    return os.environ["MEMORY_RANKER_NAMESPACE"]


@pytest.fixture
def client(server: Connection) -> Iterator[Client]:
    with server.client() as found:
        yield found


def packets(client: Client, namespace: str, tasks: Sequence[str], as_of: datetime.datetime) -> list[Any]:
    """What each task is answered with: ids, scores and contributions to the last bit."""
    found = []
    for task in tasks:
        packet = client.rank(namespace, task, as_of_time=as_of, max_items=200, dry_run=True, explain="full")
        found.append(
            [
                (item.memory.id, item.score, list(item.contributions), list(item.features), item.segment)
                for item in packet.items
            ]
        )
    return found


def used_store(client: Client, namespace: str) -> None:
    """The demo's memories with all that can be known of them: use, ratings, validity, vectors of their own, packets
    with a deleted memory, a rewritten one, and a caller's own list."""
    store = demo_store.load()
    client.ingest(namespace, store.memories)
    wait_until_scored(client, namespace)
    for number, task in enumerate(list(store.tasks.values())[:12]):
        packet = client.rank(namespace, task.text, session_id=f"s{number % 5}", agent_id=f"a{number % 2}")
        ids = [item.memory.id for item in packet.items]
        if number % 4 != 3:
            client.report_use(packet.packet_id, used=[each for each in ids if each in task.relevant] or ids[:1])
        if number % 3 == 0:
            client.report_use(packet.packet_id, used=ids[1:2], channel="inferred", confidence=0.7, agent_id="a2")
    last = [item.memory.id for item in packet.items]
    client.rate(namespace, last[0], "helpful", agent_id="a1", reason="spared me an hour")
    client.rate(namespace, last[1], "unhelpful", agent_id="a1")
    client.delete(namespace, [last[2], last[3]])
    client.upsert(namespace, [{"id": last[3], "content": "written again under an id that had been used"}])
    client.update(namespace, last[4], pinned=True, importance_override=0.25, emotion=0.5)
    client.update(namespace, last[5], suppressed=True, metadata={"n": 1, "deep": {"x": [True, None, -0.5]}})
    client.update(namespace, last[6], valid_until_time=datetime.datetime(2026, 10, 5, 1, 2, 3, 4567, tzinfo=UTC))
    client.update(namespace, last[7], embedding=[0.5] + [0.25] * 255)
    client.rank(namespace, "own", candidates=[{"id": "own", "content": "a caller's own"}], agent_id="a1")
    wait_until_scored(client, namespace)


@pytest.mark.parametrize("meanwhile", ["nothing", "rescore", "prune"])
def test_a_round_trip_changes_no_ranking(
    run: Run, tmp_path: Path, other: Running, monkeypatch: pytest.MonkeyPatch, meanwhile: str
) -> None:
    """Export, import into an empty store, and rank: the same scores bit for bit, now and as of an earlier time."""
    with running(tmp_path, prune_keep_days=0) as source:
        client, namespace = source.client, "old name"
        monkeypatch.setenv("MEMORY_RANKER_LISTEN", source.listen)
        monkeypatch.setenv("MEMORY_RANKER_NAMESPACE", namespace)
        used_store(client, namespace)
        if meanwhile == "rescore":
            assert client.rescore(apply=True).moved_count > 0
        if meanwhile == "prune":
            assert client.prune(namespace, max_bytes=0).report_count > 0
        middle = datetime.datetime.now(UTC)
        # The session goes on, and counts for the agent that began it.
        packet = client.rank(namespace, "deploy the billing service", session_id="s0", agent_id="later")
        client.report_use(packet.packet_id, used=[packet.items[0].memory.id])
        end = datetime.datetime.now(UTC) + datetime.timedelta(seconds=1)
        tasks = [task.text for task in list(demo_store.load().tasks.values())[:5]]
        before = [packets(client, namespace, tasks, as_of) for as_of in (middle, end)]
        exported = document(run("export", "--output", "store.jsonl", "--json"))
        assert exported["memories"] == client.status(namespace).namespace.memory_count
    found = document(call("import", "store.jsonl", "--json", "--address", other.listen, "--namespace", "new name"))
    assert found["refused"] == found["notes"] == []
    assert found["created"] == exported["memories"]
    assert found["log"] == {"imported": exported["log_rows"], "known": 0}
    wait_until_scored(other.client, "new name")
    after = [packets(other.client, "new name", tasks, as_of) for as_of in (middle, end)]
    assert after == before
    assert before[0] != before[1]

    again = document(call("import", "store.jsonl", "--json", "--address", other.listen, "--namespace", "new name"))
    assert (again["created"], again["updated"], again["unchanged"]) == (0, 0, exported["memories"])
    assert again["log"] == {"imported": 0, "known": exported["log_rows"]}
    assert again["score_version"] == other.client.status("new name").namespace.score_version

    monkeypatch.setenv("MEMORY_RANKER_LISTEN", other.listen)
    monkeypatch.setenv("MEMORY_RANKER_NAMESPACE", "new name")
    assert run("export", "--output", "again.jsonl").exit_code == 0
    first, second = (Path(name).read_bytes().replace(b"new name", namespace.encode()).splitlines()[1:]
                     for name in ("store.jsonl", "again.jsonl"))  # fmt: skip
    assert sorted(map(without_request, second)) == sorted(map(without_request, first))


def without_request(row: bytes) -> str:
    """A row without the namespace inside a packet's request."""
    given = json.loads(row)
    given.pop("request", None)
    return json.dumps(given, sort_keys=True)


def test_what_is_known_of_packets_comes_along(run: Run, client: Client, namespace: str, other: Running) -> None:
    """A packet of the old store is shown and explained by the new one, and takes reports."""
    used_store(client, namespace)
    packet = client.rank(namespace, "deploy the billing service", session_id="s", agent_id="a")
    client.report_use(packet.packet_id, used=[packet.items[0].memory.id])
    assert run("export", "--output", "store.jsonl").exit_code == 0
    assert call("import", "store.jsonl", "--address", other.listen, "--namespace", "copy").exit_code == 0
    wait_until_scored(other.client, "copy")
    here, there = client.get_packet(namespace, packet.packet_id), other.client.get_packet("copy", packet.packet_id)
    assert [each.memory.id for each in there.packet.items] == [each.memory.id for each in here.packet.items]
    assert list(there.uses) == list(here.uses)
    assert list(there.undrawn) == list(here.undrawn)
    assert there.create_time == here.create_time
    missed = next(each.id for each in client.list(namespace) if each.id not in {x.memory.id for x in packet.items})
    one = client.explain_miss(namespace, missed, packet_id=packet.packet_id)
    two = other.client.explain_miss("copy", missed, packet_id=packet.packet_id)
    assert (one.reason, one.score, list(one.gaps)) == (two.reason, two.score, list(two.gaps))
    assert other.client.report_use(packet.packet_id, used=[packet.items[1].memory.id]).used_count == 1


def test_conversations_keep_their_ranking(
    run: Run, client: Client, namespace: str, other: Running, shared: Path
) -> None:
    """A conversation of hundreds of turns, in another order of arrival: the same scores bit for bit."""
    source = shared / "locomo" / "conv-30.json"
    if not source.is_file():
        pytest.skip("../shared/locomo is not here")
    assert run("import", str(source)).exit_code == 0
    wait_until_scored(client, namespace)
    assert run("export", "--output", "store.jsonl").exit_code == 0
    assert call("import", "store.jsonl", "--address", other.listen, "--namespace", "copy").exit_code == 0
    wait_until_scored(other.client, "copy")
    tasks = [each["query"] for each in json.loads(source.read_text())["queries"][:5]]
    end = datetime.datetime(2026, 1, 1, tzinfo=UTC)
    assert packets(other.client, "copy", tasks, end) == packets(client, namespace, tasks, end)


def test_vectors_of_another_embedder_stay_behind(run: Run, tmp_path: Path) -> None:
    """A store without an embedder takes the memories all the same, and says so."""
    assert run("put", "some text", "--id", "m1").exit_code == 0
    assert run("export", "--output", "store.jsonl").exit_code == 0
    folder = tmp_path / "plain"
    folder.mkdir()
    with running(folder, embedder="none") as plain:
        found = document(call("import", "store.jsonl", "--json", "--address", plain.listen))
    assert found["created"] == 1
    assert any("wordllama" in note for note in found["notes"])


def test_a_log_of_one_namespace_does_not_enter_another_beside_it(run: Run, namespace: str, client: Client) -> None:
    """Packet ids are a store's: the rows are told by number, the memories go in."""
    assert run("put", "some text", "--id", "m1").exit_code == 0
    client.report_use(client.rank(namespace, "text").packet_id, used=["m1"])
    assert run("export", "--output", "store.jsonl").exit_code == 0
    found = document(run("import", "store.jsonl", "--namespace", f"{namespace}-2", "--json"), ExitCode.PARTLY)
    assert found["created"] == 1
    assert [each["line"] for each in found["refused"]] == [4, 5]
    assert "another namespace" in found["refused"][0]["message"]
