from __future__ import annotations

import contextlib
import sqlite3
from collections.abc import Callable, Iterator
from pathlib import Path
from random import Random

import numpy as np
import pytest

from sidecar.domain import Channel, Packet, Rating, UseReport
from sidecar.errors import SchemaTooNewError, StoreDamagedError, StoreLockedError, StoreNotFoundError
from sidecar.store.check import Fault, WayOut, check
from sidecar.store.repair import repair
from sidecar.store.requests import Replayed
from sidecar.store.store import Store
from tests.weights.making import place

NOW = 1_700_000_000_000_000

MakePacket = Callable[..., Packet]


@pytest.fixture
def folder(tmp_path: Path, make_packet: MakePacket) -> Path:
    """A closed store with everything in it: memories with vectors in two namespaces, sessions of several agents,
    reports of several channels, one taken back, ratings, a deleted memory and a purged namespace."""
    random = Random(1)
    with Store.open(tmp_path / "data") as store:
        store.set_meta({"embedder": b"wordllama@1:4"})
        keys: dict[str, dict[str, int]] = {}
        for namespace in ("n", "other", "gone"):
            vector = np.ones(4, np.float32)
            patches = [
                (f"m{i}", {"content": f"text {i} é", "tokens": 1, "embedding": vector, "tags": ("a", "b")})
                for i in range(8)
            ]
            result = store.upsert(namespace, patches, NOW)
            assert not isinstance(result, Replayed)
            keys[namespace] = {memory.id: memory.key for _, memory in result[0]}
        for number in range(40):
            namespace = random.choice(["n", "other"])
            chosen = random.sample(sorted(keys[namespace]), 4)
            packet = make_packet(
                f"p{number}",
                {name: keys[namespace][name] for name in chosen},
                namespace=namespace,
                session_id=random.choice(["", "s1", "s2"]),
                agent_id=random.choice("ab"),
            )
            store.log_packet(packet)
            for channel in random.sample(list(Channel), 2):
                store.report(
                    UseReport(
                        f"p{number}", used_memory_ids=(chosen[0],), unused_memory_ids=(chosen[1],), channel=channel
                    ),
                    NOW + number,
                )
        store.report(UseReport("p0", unused_memory_ids=tuple(keys["n"]) + tuple(keys["other"]), sequence=9), NOW + 50)
        store.rate("n", "m1", "ann", Rating.HELPFUL, "", NOW)
        store.rate("n", "m1", "bob", Rating.UNHELPFUL, "", NOW)
        store.delete("n", ["m7"], NOW)
        store.purge_namespace("gone")
        place(store, tmp_path / "model", NOW)
    return tmp_path / "data"


@contextlib.contextmanager
def damaging(folder: Path) -> Iterator[sqlite3.Connection]:
    """Another program's hands in the database."""
    with contextlib.closing(sqlite3.connect(folder / "memories.db", isolation_level=None)) as connection:
        yield connection


DAMAGE = {
    "UPDATE session_uses SET used_millionths = used_millionths + 1 WHERE session_key = 's:s1'": "uses session_uses",
    "DELETE FROM session_uses WHERE session_key = 's:s2'": "uses session_uses",
    "UPDATE session_uses SET agent_id = 'z'": "uses session_uses",
    "UPDATE agent_uses SET seen_millionths = 7 WHERE agent_id = 'a'": "uses agent_uses",
    "DELETE FROM agent_uses": "uses agent_uses",
    "DELETE FROM packet_uses WHERE channel = 'explicit'": "uses packet_uses",
    "UPDATE packet_uses SET last_use_time = 1": "uses packet_uses",
    "UPDATE namespaces SET memory_count = 99 WHERE namespace = 'n'": "counts namespaces",
    "DELETE FROM namespaces WHERE namespace = 'n'": "counts namespaces",
    "UPDATE memories SET helpful = 5 WHERE memory_id = 'm1' AND namespace = 'n'": "counts memories",
    "DELETE FROM ratings": "counts memories",
    "DELETE FROM sqlite_sequence": "keys sqlite_sequence",
    "UPDATE memories SET embedding = x'00000000' WHERE memory_id = 'm2'": "vectors memories",
    "UPDATE memories SET embedding = x'0000c07f0000c07f0000c07f0000c07f' WHERE memory_id = 'm2'": "vectors memories",
    "UPDATE memories SET tags = '[', metadata = 'x' WHERE memory_id = 'm3'": "unreadable memories",
    "UPDATE memories SET content = CAST(x'74ff78' AS TEXT) WHERE memory_id = 'm3'": "unreadable memories",
    "UPDATE memories SET content = CAST(x'740078' AS TEXT) WHERE memory_id = 'm3'": "unreadable memories",
    "UPDATE memories SET memory_id = CAST(x'ff' AS TEXT) WHERE memory_id = 'm3' AND namespace = 'n'": (
        "unreadable memories"
    ),
    "UPDATE packets SET features = x'00' WHERE packet_id IN ('p1', 'p2')": "unreadable packets",
    "UPDATE packets SET left_out = '{\"nonsense\": 1}' WHERE packet_id = 'p3'": "unreadable packets",
    "UPDATE exposures SET segment = 'nowhere' WHERE place = 1": "unreadable packets",
    "UPDATE reports SET channel = 'telepathy' WHERE report_key < 5": "unreadable reports",
    "UPDATE report_memories SET word = 'maybe' WHERE word = 'used'": "unreadable report_memories",
    "DELETE FROM packets WHERE packet_id = 'p4'": "orphans exposures",
    "DELETE FROM exposures WHERE packet_key = 3": "orphans report_memories",
    "DELETE FROM reports WHERE packet_key = 3": "orphans report_memories",
    "UPDATE reports SET namespace = 'x' WHERE packet_key = 3": "orphans reports",
    "UPDATE ratings SET memory_key = 9999": "orphans ratings",
    "INSERT INTO pruned_uses VALUES (9999, 's:old', 5, 5, NULL)": "orphans pruned_uses",
    "INSERT INTO pruned_uses VALUES (1, 's:old', 5, 5, NULL)": "orphans pruned_sessions",
    "DELETE FROM meta WHERE key = 'salt'": "facts meta",
    "DELETE FROM meta WHERE key = 'embedder'": "facts meta",
    "UPDATE models SET archive = CAST(replace(CAST(archive AS TEXT), '0.5', '0.6') AS BLOB)": "models models",
    "UPDATE models SET archive = x'00'": "models models",
    "UPDATE models SET version = 'linear-000000000000'": "models models",
    "UPDATE model_roles SET role = 'king'": "unreadable model_roles",
    "UPDATE model_roles SET action = 'crowned'": "unreadable model_roles",
}


def test_a_sound_store_has_no_findings(folder: Path) -> None:
    """After any mix of writes, deletes and purges a check finds nothing, says what it looked at, and changes no byte;
    nor does a repair."""
    before = (folder / "memories.db").read_bytes()
    found = check(folder)
    assert (found.findings, found.rows["memories"], found.rows["packets"]) == ((), 15, 40)
    assert repair(folder, NOW) == found
    assert (folder / "memories.db").read_bytes() == before


@pytest.mark.parametrize(("sql", "named"), DAMAGE.items())
def test_damage_is_named_and_repaired(folder: Path, sql: str, named: str) -> None:
    """Whatever rows are changed behind the store's back: a check names fault and table, a repair leaves nothing to
    find, the sums of use follow from the reports, and all memories are there with fresh score versions."""
    with Store.open(folder) as store:
        contents = {name: {m.content for m in store.load(name).memories} for name in ("n", "other")}
        version = store.namespace("n").score_version
    with damaging(folder) as connection:
        changed = connection.execute(sql).rowcount
    assert changed
    found = check(folder)
    assert named in [f"{each.fault} {each.table}" for each in found.findings]
    assert {each.way_out for each in found.findings} == {WayOut.REPAIR}
    assert repair(folder, NOW).findings == ()
    with Store.open(folder) as store:
        for name in ("n", "other"):
            state = store.load(name)
            assert {m.content for m in state.memories} == contents[name] or "content" in sql
            assert len(state.memories) == len(contents[name])
            kept = {key: uses for key, uses in state.uses.items() if uses.seen or uses.use_sessions}
            logged = store.use_counts_as_of(name, 2**60)
            assert kept == {key: uses for key, uses in logged.items() if uses.seen or uses.use_sessions}
        assert store.namespace("n").score_version > version + 1_000_000
    assert check(folder).findings == ()


def test_a_check_reads_a_store_that_serves(tmp_path: Path, make_packet: MakePacket) -> None:
    """A running store can be checked, also what is still in its log; a repair of one is refused."""
    with Store.open(tmp_path / "data") as store:
        store.upsert("n", [("a", {"content": "x", "tokens": 1})], NOW)
        assert check(tmp_path / "data").rows["memories"] == 1
        with damaging(tmp_path / "data") as connection:
            connection.execute("UPDATE namespaces SET memory_count = 5")
        assert [each.fault for each in check(tmp_path / "data").findings] == [Fault.COUNTS]
        with pytest.raises(StoreLockedError):
            repair(tmp_path / "data", NOW)


@pytest.mark.parametrize("damage", ["page", "cut", "empty", "header", "text", "missing", "table", "foreign"])
def test_damaged_files_are_named(folder: Path, damage: str) -> None:
    """An overwritten page, a file cut short or emptied, another program's file, a table that is gone: each is found,
    and the way out is a salvage or a backup, for a repair in place is refused."""
    database = folder / "memories.db"
    data = bytearray(database.read_bytes())
    if damage == "page":
        data[4096 * 6 : 4096 * 7] = bytes(range(256)) * 16
    elif damage == "cut":
        del data[len(data) // 2 :]
    elif damage == "empty":
        data.clear()
    elif damage == "header":
        data[:100] = bytes(100)
    elif damage == "text":
        data[:] = b"not a database" * 1000
    database.write_bytes(data)
    if damage == "missing":
        database.unlink()
    elif damage in ("table", "foreign"):
        with damaging(folder) as connection:
            connection.execute("DROP TABLE ratings" if damage == "table" else "PRAGMA application_id = 5")
    (found,) = check(folder).findings[:1]
    wanted = {"missing": Fault.MISSING, "empty": Fault.MISSING, "table": Fault.SCHEMA}
    assert found.fault is wanted.get(damage, Fault.PAGES)
    assert found.way_out is (WayOut.RESTORE if damage in ("missing", "empty") else WayOut.SALVAGE)
    with pytest.raises(StoreDamagedError, match=r"check --repair --into|restore a backup"):
        repair(folder, NOW)


def test_a_newer_store_is_left_alone(folder: Path) -> None:
    """What a newer program wrote is not judged by an older one."""
    with damaging(folder) as connection:
        connection.execute("PRAGMA user_version = 99")
    with pytest.raises(SchemaTooNewError, match="99"):
        check(folder)


def test_a_folder_that_is_not_there_is_said_to_be(tmp_path: Path) -> None:
    """A wrong --data is no finding about a store."""
    with pytest.raises(StoreNotFoundError, match="no folder"):
        check(tmp_path / "nowhere")
