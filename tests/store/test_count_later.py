"""Reports that are counted a moment after they were taken: nobody who asks can tell."""

from __future__ import annotations

import contextlib
import sqlite3
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from random import Random

import pytest

from sidecar.domain import DAY, Change, Channel, Packet, UseReport
from sidecar.errors import StoreUnavailableError
from sidecar.retrieval.namespaces import Namespaces
from sidecar.store.audit_sql import Scope
from sidecar.store.check import check
from sidecar.store.rebuild import DERIVED
from sidecar.store.repair import repair
from sidecar.store.store import Store

NOW = 1_790_000_000_000_000
MakePacket = Callable[..., Packet]


@pytest.fixture
def later(store: Store) -> Store:
    """A store that counts when somebody asks."""
    store.count_later(lambda: None)
    return store


def write(store: Store, count: int = 6) -> dict[str, int]:
    """Memories m0, m1 and so on, by key."""
    written = store.upsert("n", [(f"m{i}", {"content": f"text {i}", "tokens": 1}) for i in range(count)], NOW)
    return {memory.id: memory.key for _, memory in written[0]}  # type: ignore[index]


def reported(store: Store, make_packet: MakePacket) -> dict[str, int]:
    """A packet of all memories on which m0 was said to be used."""
    keys = write(store)
    store.log_packet(make_packet("p", keys))
    store.report(UseReport("p", used_memory_ids=("m0",)), NOW)
    return keys


def derived(folder: Path) -> dict[str, list[tuple[object, ...]]]:
    """The derived tables and what is yet to be counted, as they lie in the file."""
    with contextlib.closing(sqlite3.connect(folder / "memories.db")) as connection:
        return {
            table: connection.execute(f"SELECT * FROM {table} ORDER BY 1").fetchall()
            for table in (*DERIVED, "uncounted_packets")
        }


READERS: dict[str, Callable[[Store], bool]] = {
    "load": lambda store: store.load("n").uses != {},
    "get_packet": lambda store: len(store.get_packet("n", "p").uses) == 6,
    "namespace": lambda store: store.namespace("n").score_version == 2,
    "list_namespaces": lambda store: store.list_namespaces("", 9)[0].score_version == 2,
    "namespace_numbers": lambda store: store.namespace_numbers("n").score_version == 2,
    "numbers": lambda store: store.numbers().score_version == 2,
    "feedback": lambda store: any(memory.counts.seen for memory in store.feedback("n").memories),
    "audit": lambda store: store.audit(Scope("n"), 1).reported_memories == 6,
    "audit_importance": lambda store: any(each.counts.seen for each in store.audit_importance("n", str)[1]),
    "prune": lambda store: store.prune("n", NOW + DAY, None, NOW + DAY, lambda: None).packets == 1,
}


@pytest.mark.parametrize("reader", READERS)
def test_who_reads_finds_it_counted(later: Store, make_packet: MakePacket, reader: str) -> None:
    """A report changes nothing derived by itself, and whoever reads what follows from it finds all of it."""
    reported(later, make_packet)
    before = derived(later.folder)
    assert before["packet_uses"] == []
    assert len(before["uncounted_packets"]) == 1
    assert READERS[reader](later)
    after = derived(later.folder)
    assert after["uncounted_packets"] == []
    assert len(after["agent_uses"]) == 6


def test_an_index_file_is_caught_up_with_it(later: Store, make_packet: MakePacket) -> None:
    """What was written since an index file was made holds what the reports came to."""
    keys = write(later)
    later.begin_index("n")
    later.keep_index("n", "index-n", 1)
    later.log_packet(make_packet("p", keys))
    later.report(UseReport("p", used_memory_ids=("m0",)), NOW)
    state = later.indexed("n")
    assert state is not None
    assert state.change.uses[keys["m0"]].used == 1.0


def test_who_ranks_has_it_counted(later: Store, make_packet: MakePacket) -> None:
    """A namespace in memory is moved on before it is given out; reports that came together move it once."""
    namespaces = Namespaces(later.load, settle=later.settle_counts)
    later.subscribe(namespaces.apply)
    keys = write(later)
    assert namespaces.get("n").score_version == 1
    for number in range(3):
        later.log_packet(make_packet(f"p{number}", keys))
        later.report(UseReport(f"p{number}", used_memory_ids=("m0",)), NOW)
    snapshot = namespaces.get("n")
    assert snapshot.score_version == 2
    assert snapshot.columns.used.tolist() == [3.0, 0.0, 0.0, 0.0, 0.0, 0.0]
    assert snapshot.columns.seen.tolist() == [3.0] * 6


def everything(store: Store, make_packet: MakePacket, seed: int) -> Iterator[None]:
    """Packets of two namespaces and of some sessions, reports of all channels, some of which take others back, and
    memories that are deleted and written again between. A pause after each step."""
    random = Random(seed)
    for namespace in ("n", "other"):
        store.upsert(namespace, [(f"m{i}", {"content": f"text {i}", "tokens": 1}) for i in range(6)], NOW)
    for number in range(40):
        namespace = random.choice(["n", "other"])
        keys = {memory.id: memory.key for memory in store.list_memories(namespace, "", 9)}
        chosen = random.sample(sorted(keys), 3)
        session, agent = random.choice(["", "s1", "s2"]), random.choice("ab")
        packet = make_packet(
            f"p{number}", {name: keys[name] for name in chosen}, namespace=namespace, session_id=session, agent_id=agent
        )
        store.log_packet(packet)
        for _ in range(2):
            words = UseReport(
                f"p{random.randint(max(0, number - 4), number)}",
                used_memory_ids=tuple(f"m{random.randrange(6)}" for _ in range(2)),
                unused_memory_ids=(f"m{random.randrange(6)}",),
                channel=random.choice(list(Channel)),
                complete=random.random() < 0.5,
                confidence=random.random(),
            )
            store.report(words, NOW + number)
        if number % 9 == 8:
            store.delete(namespace, [chosen[0]], NOW)
            store.upsert(namespace, [(chosen[0], {"content": "anew", "tokens": 1})], NOW)
        yield


@pytest.mark.parametrize("seed", range(5))
def test_it_comes_to_the_same(tmp_path: Path, make_packet: MakePacket, seed: int) -> None:
    """Counted one by one or many together, whatever else is written between: the same rows to the last, which are those
    that follow from the log."""
    random = Random(seed)
    with Store.open(tmp_path / "at once") as store:
        for _ in everything(store, make_packet, seed):
            pass
    changes: list[Change] = []
    with Store.open(tmp_path / "later") as store:
        store.count_later(lambda: None)
        store.subscribe(changes.append)
        for _ in everything(store, make_packet, seed):
            assert check(store.folder).findings == ()
            if random.random() < 0.2:
                store.count_reports()
        assert store.load("n").uses == store.use_counts_as_of("n", NOW + DAY)
    assert derived(tmp_path / "later") == derived(tmp_path / "at once")
    assert check(tmp_path / "later").findings == ()
    for namespace in ("n", "other"):  # who hears of them misses none
        versions = [change.score_version for change in changes if change.namespace == namespace]
        assert versions == list(range(1, len(versions) + 1))


KILLED = """
import os, sys
from pathlib import Path
from sidecar.domain import UseReport
from sidecar.store.store import Store
store = Store.open(Path(sys.argv[1]))
store.count_later(lambda: None)
store.report(UseReport("p", used_memory_ids=("m0",)), int(sys.argv[2]))
os._exit(9)
"""


def test_a_kill_before_it_is_counted_loses_nothing(tmp_path: Path, make_packet: MakePacket) -> None:
    """The next process counts what the last one took; a check finds the store sound before it did."""
    with Store.open(tmp_path / "data") as store:
        store.log_packet(make_packet("p", write(store)))
    assert subprocess.run([sys.executable, "-c", KILLED, str(tmp_path / "data"), str(NOW)], check=False).returncode == 9
    assert check(tmp_path / "data").findings == ()
    with Store.open(tmp_path / "data") as store:
        assert sum(counts.used for counts in store.load("n").uses.values()) == 1.0
    assert len(derived(tmp_path / "data")["agent_uses"]) == 6


def test_a_repair_counts_it(tmp_path: Path, make_packet: MakePacket) -> None:
    """A store that is put right has nothing left to count."""
    with Store.open(tmp_path / "data") as store:
        store.count_later(lambda: None)
        reported(store, make_packet)
    with contextlib.closing(sqlite3.connect(tmp_path / "data" / "memories.db")) as connection, connection:
        connection.execute("UPDATE namespaces SET memory_count = 9")
    assert repair(tmp_path / "data", NOW).findings == ()
    after = derived(tmp_path / "data")
    assert after["uncounted_packets"] == []
    assert len(after["agent_uses"]) == 6


def test_a_purge_leaves_nothing_to_count(later: Store, make_packet: MakePacket) -> None:
    """What was reported of a namespace goes with it, counted or not."""
    reported(later, make_packet)
    later.purge_namespace("n")
    assert all(not rows for rows in derived(later.folder).values())
    later.count_reports()
    assert check(later.folder).findings == ()


def test_a_store_that_cannot_be_written_to_is_read_as_it_stands(tmp_path: Path, make_packet: MakePacket) -> None:
    """A disk that fails after a report was taken stops the counting, not those who read."""
    failing = False

    def sync(file: int) -> None:
        if failing:
            raise OSError("no disk")

    with Store.open(tmp_path / "data", sync=sync) as store:
        store.count_later(lambda: None)
        reported(store, make_packet)
        failing = True
        with pytest.raises(StoreUnavailableError):
            write(store)
        assert store.load("n").uses == {}
        with pytest.raises(StoreUnavailableError):
            store.count_reports()
    with Store.open(tmp_path / "data") as store:
        assert len(store.load("n").uses) == 6
