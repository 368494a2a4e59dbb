"""Faults of deletes, re-adds and updates that were seen elsewhere, tried here."""

from __future__ import annotations

from pathlib import Path

import grpc
from memoryranker.client import Client

from tests.promises.frozen import frozen, ids, text


def test_dl_02_an_id_that_is_used_again_inherits_nothing(tmp_path: Path) -> None:
    """A deleted memory's vector and uses do not come back with its id, also over a restart."""
    with frozen(tmp_path, embedder="wordllama") as server:
        client = server.client
        client.upsert("n", [{"id": "r1", "content": "ferry timetable"}])
        client.report_use(client.rank("n", "ferry").packet_id, ["r1"])
        assert client.delete("n", ["r1"]).deleted_count == 1
    with frozen(tmp_path, "again", embedder="wordllama") as server:
        client = server.client
        client.upsert("n", [{"id": "r1", "content": "lasagne recipe"}, {"id": "r2", "content": "ferry prices"}])
        client.upsert("control", [{"id": "r1", "content": "lasagne recipe"}, {"id": "r2", "content": "ferry prices"}])
        for preset in ("default", "smartctx", "engine", "importance"):
            packet = client.rank("n", "ferry timetable", weights=preset, reserved_slots=0)
            never = client.rank("control", "ferry timetable", weights=preset, reserved_slots=0)
            if preset != "importance":  # which does not ask for the task
                assert ids(packet) == ["r2", "r1"]
            assert [list(item.contributions) for item in packet.items] == [
                list(item.contributions) for item in never.items
            ]


def test_dl_04_a_scoped_delete_stays_in_its_scope(tmp_path: Path) -> None:
    """All of one namespace, by id and by filter, and nothing of another, before and after a restart."""
    with frozen(tmp_path) as server:
        client = server.client
        for where in ("u1", "u2", "u3"):
            client.upsert(where, [{"id": f"m{i}", "content": text(i), "tags": ["mine"]} for i in range(3)])
        assert client.delete("u1", ["m0", "m1", "m2"]).deleted_count == 3
        assert client.delete("u3", filter={"any_tags": ["mine"]}).deleted_count == 3
        assert (ids(client.rank("u1")), ids(client.rank("u3"))) == ([], [])
        assert len(client.rank("u2").items) == 3
    with frozen(tmp_path, "again") as server:
        client = server.client
        assert (ids(client.rank("u1")), ids(client.rank("u3"))) == ([], [])
        assert len(client.rank("u2").items) == 3


def test_dl_06_an_updated_memory_is_always_found(client: Client, namespace: str) -> None:
    """Rewritten three times in a row, it is found each time by its new text, and there is one of it."""
    client.upsert(namespace, [{"id": "other", "content": text(1)}])
    for number, content in enumerate(("the ferry leaves at noon", "the museum shuts at six", "roses want sunshine")):
        if number % 2:
            client.update(namespace, "m", content=content)
        else:
            client.upsert(namespace, [{"id": "m", "content": content}])
        packet = client.rank(namespace, content)
        assert ids(packet) == ["m", "other"]
        assert packet.items[0].memory.content == content
        assert client.status(namespace).memory_count == 2
        assert len(list(client.list(namespace))) == 2


def test_dl_07_deleting_what_is_not_there_is_said(client: Client, namespace: str) -> None:
    """Of two names, one of which is a slip: one deleted, one not found."""
    client.upsert(namespace, [{"id": "x1", "content": text(1)}])
    answer = client.delete(namespace, ["x1", "typo-x2"])
    assert answer.deleted_count == 1
    assert [(result.memory_id, result.status.code) for result in answer.results] == [
        ("x1", 0),
        ("typo-x2", grpc.StatusCode.NOT_FOUND.value[0]),
    ]
