"""Faults of embeddings and indexes that were seen elsewhere, tried here."""

from __future__ import annotations

from pathlib import Path

import pytest
from memoryranker.client import Client

from sidecar.errors import EmbedderMismatchError, StoreUnavailableError
from tests.promises.frozen import frozen, ids, text


def test_ix_02_no_two_memories_share_a_number(client: Client, namespace: str) -> None:
    """Of fifty the first five are deleted, five new ones come, one of the new ones goes: only that one is gone."""
    client.upsert(namespace, [{"id": f"m{i:02}", "content": text(i)} for i in range(50)])
    client.delete(namespace, [f"m{i:02}" for i in range(5)])
    client.upsert(namespace, [{"id": f"new{i}", "content": text(100 + i)} for i in range(5)])
    client.delete(namespace, ["new2"])
    expected = {f"m{i:02}": text(i) for i in range(5, 50)} | {f"new{i}": text(100 + i) for i in (0, 1, 3, 4)}
    packet = client.rank(namespace, text(102), max_items=200, reserved_slots=0)
    assert {item.memory.id: item.memory.content for item in packet.items} == expected
    for name, content in expected.items():
        assert ids(client.rank(namespace, content, max_items=1, reserved_slots=0)) == [name]


def test_ix_04_there_is_no_index_file_to_fall_out_of_step(tmp_path: Path) -> None:
    """Nothing but the database is on the disk, so no id is ever looked up in another file; a database that was cut in
    half is refused, never served."""
    contents = {f"m{i}": text(i) * 40 for i in range(300)}
    with frozen(tmp_path, embedder="wordllama") as server:
        server.client.upsert("n", [{"id": name, "content": content} for name, content in contents.items()])
    files = {path.name for path in (tmp_path / "data").rglob("*") if path.is_file()}
    assert not {name for name in files if name.endswith((".faiss", ".index", ".ids", ".npy", ".pkl"))}
    database = tmp_path / "data" / "memories.db"
    whole = database.read_bytes()
    database.write_bytes(whole[: len(whole) // 2])
    with pytest.raises(StoreUnavailableError, match="is damaged"), frozen(tmp_path):
        pass
    database.write_bytes(whole)
    with frozen(tmp_path, "third", embedder="wordllama") as server:
        server.client.upsert("n", [{"id": "one more", "content": text(1000)}])
        assert ids(server.client.rank("n", contents["m7"], max_items=1, reserved_slots=0)) == ["m7"]


def test_ix_06_another_embedder_is_refused_at_the_start(tmp_path: Path) -> None:
    """A store made with one dimension does not open with another: no call fails later, nothing is lost."""
    with frozen(tmp_path, embedder="wordllama") as server:
        server.client.upsert("n", [{"id": "m", "content": text(1)}])
    with pytest.raises(EmbedderMismatchError, match="--embedder wordllama"), frozen(tmp_path, embedder="none"):
        pass
    with frozen(tmp_path, "again", embedder="wordllama") as server:
        server.client.upsert("n", [{"id": "n", "content": text(2)}])
        assert set(ids(server.client.rank("n", text(1)))) == {"m", "n"}


def test_ix_08_after_many_deletions_a_packet_is_still_full(client: Client, namespace: str) -> None:
    """Of 500 memories the 250 nearest to the task go: twenty that live are served."""
    client.upsert(
        namespace,
        [{"id": f"m{i:03}", "content": f"{'ferry timetable ' if i < 250 else ''}{text(i)}"} for i in range(500)],
        timeout=60,
    )
    near = ids(client.rank(namespace, "ferry timetable", max_items=200, reserved_slots=0))
    assert all(name < "m250" for name in near)
    client.delete(namespace, [f"m{i:03}" for i in range(250)])
    packet = client.rank(namespace, "ferry timetable", max_items=20)
    assert len(packet.items) == 20
    assert all(name >= "m250" for name in ids(packet))
