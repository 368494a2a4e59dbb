import re
import sqlite3
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

import pytest

from sidecar.domain import Packet, Rating, UseReport
from sidecar.store.checkpoints import Limits
from sidecar.store.scrub import Place, gap, generation, wal_pages
from sidecar.store.store import Store

NOW = 1_700_000_000_000_000


def on_disk(store: Store) -> bytes:
    """All bytes of all files of the store. Read by another process: to close the database here would drop its locks."""
    files = sorted(str(path) for path in store.folder.iterdir())
    return subprocess.run(["cat", *files], capture_output=True, check=True).stdout


def write(store: Store, memories: dict[str, str], **fields: Any) -> None:
    """Writes memories with these texts."""
    store.upsert("n", [(key, {"content": text, "tokens": 1, **fields}) for key, text in memories.items()], NOW)


def test_deleted_text_is_in_no_file(store: Store, make_packet: Callable[..., Packet]) -> None:
    """After a delete and a settle, no trace of the memory's words is found in any file: not of its text, its metadata
    or a rater's reason; its packets and reports are still there."""
    secret = "SECRETWORD"
    write(store, {"m": f"text {secret}"}, metadata={"note": f"meta {secret}"}, subject=f"subject {secret}")
    write(store, {"other": "harmless"})
    key = store.get("n", "m").key
    store.rate("n", "m", "ann", Rating.HELPFUL, f"reason {secret}", NOW)
    store.update("n", "m", {"content": f"more {secret}"}, NOW)
    store.log_packet(make_packet("p", {"m": key}))
    store.report(UseReport("p", used_memory_ids=("m",)), NOW)
    assert secret.encode() in on_disk(store)
    store.delete("n", ["m"], NOW)
    store.settle()
    assert secret.encode() not in on_disk(store)
    assert [use.memory_id for use in store.get_packet("n", "p").uses] == ["m"]


def test_replaced_and_purged_text_is_in_no_file(store: Store) -> None:
    """Text that an update, an upsert or a purge removed is gone like deleted text."""
    write(store, {"a": "FIRSTTEXT", "b": "SECONDTEXT"})
    write(store, {"a": "new"})
    store.update("n", "b", {"content": "new"}, NOW)
    store.upsert("nPURGED", [("c", {"content": "THIRDTEXT", "tokens": 1})], NOW)
    store.purge_namespace("nPURGED")
    store.settle()
    found = on_disk(store)
    for text in (b"FIRSTTEXT", b"SECONDTEXT", b"THIRDTEXT", b"nPURGED"):
        assert text not in found


def test_deleted_text_leaves_by_itself(tmp_path: Path) -> None:
    """Nobody has to ask: within the stated time deleted text is gone, also while others go on writing."""
    with Store.open(tmp_path / "data", limits=Limits(scrub_idle=0.2, scrub_within=0.4, retry=0.0)) as store:
        for round_, busy in enumerate((False, True)):
            secret = f"SECRET{round_}WORD"
            write(store, {"m": secret})
            store.delete("n", ["m"], NOW)
            assert secret.encode() in on_disk(store)
            deadline = time.monotonic() + 20
            while secret.encode() in on_disk(store):
                assert time.monotonic() < deadline
                if busy:
                    for number in range(3):
                        write(store, {f"busy{number}": f"{time.monotonic()}"})


MARK = re.compile(rb"MARK\d{6}X")


@pytest.mark.parametrize("seed", range(2))
def test_no_stale_copy_survives_in_the_pages(tmp_path: Path, seed: int) -> None:
    """However pages were rebalanced: no deleted or replaced text is in any file after a settle, nor comes back with
    later writes, every living text is there, and the database is whole."""
    random = Random(seed)
    living: dict[str, str] = {}
    number = 0

    def text() -> str:
        nonlocal number
        number += 1
        return f"MARK{number:06}X" + "z" * random.randint(40, 600)

    with Store.open(tmp_path / "data", sync=lambda _: None) as store:
        for _ in range(120):
            new = {f"id{random.random():.12f}": text() for _ in range(random.randint(1, 24))}
            for name in random.sample(sorted(living), min(len(living), random.randint(0, 8))):
                new[name] = text()
            write(store, new)
            living |= new
            gone = random.sample(sorted(living), random.randint(0, len(living) // 12))
            store.delete("n", gone, NOW)
            for name in gone:
                del living[name]
        store.settle()
        alive = {text[:11].encode() for text in living.values()}
        assert set(MARK.findall(on_disk(store))) == alive
        for name in random.sample(sorted(living), 30):
            store.update("n", name, {"kind": "decision"}, NOW)
        assert set(MARK.findall(on_disk(store))) == alive
        assert len(store.load("n").memories) == len(living)
    connection = sqlite3.connect(tmp_path / "data" / "memories.db")
    assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)
    connection.close()


def test_settle_waits_for_readers(store: Store) -> None:
    """A settle succeeds once a long read is over, and deleted text is gone then."""
    write(store, {"m": "SECRETWORD"})
    reader = sqlite3.connect(store.folder / "memories.db", isolation_level=None, check_same_thread=False)
    reader.execute("BEGIN")
    assert reader.execute("SELECT COUNT(*) FROM memories").fetchone() == (1,)
    store.delete("n", ["m"], NOW)
    assert not store._writer.settle()
    reader.execute("COMMIT")
    store.settle()
    assert b"SECRETWORD" not in on_disk(store)
    reader.close()


def test_gaps_are_found_only_in_tree_pages() -> None:
    """The gap of a page is what lies between its cell pointers and its cells; other pages have none."""
    leaf = bytearray(4096)
    leaf[0:8] = b"\x0d\x00\x00\x00\x03\x0f\x00\x00"
    assert gap(bytes(leaf), 0) == (8 + 6, 0x0F00)
    interior = bytearray(leaf)
    interior[0] = 5
    assert gap(bytes(interior), 0) == (12 + 6, 0x0F00)
    assert gap(bytes(100) + bytes(leaf)[:-100], 100) == (100 + 8 + 6, 0x0F00)
    for first in (0, 1, 3, 255):  # overflow and free-list pages begin with a page number
        leaf[0] = first
        assert gap(bytes(leaf), 0) == (0, 0)
    leaf[0] = 13
    leaf[5:7] = b"\x00\x09"  # content before the end of the pointers: not a page to touch
    assert gap(bytes(leaf), 0) == (0, 0)


def test_the_pages_of_the_log_are_those_of_its_present_generation(tmp_path: Path) -> None:
    """Frames that a restarted log has not overwritten yet are not its pages any more, and how far somebody had come in
    what it held before says nothing of it."""
    path = tmp_path / "x.db"
    connection = sqlite3.connect(path, isolation_level=None)
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute("PRAGMA wal_autocheckpoint = 0")
    connection.execute("CREATE TABLE t (x)")
    connection.executemany("INSERT INTO t VALUES (zeroblob(3000))", [()] * 9)
    with (tmp_path / "x.db-wal").open("rb") as wal:
        assert wal_pages(wal.fileno(), 4096) == list(range(1, 12))
        frames = ((tmp_path / "x.db-wal").stat().st_size - 32) // (24 + 4096)
        begun, whole = (Place(generation(wal.fileno()), number) for number in (4, frames))
        ahead = wal_pages(wal.fileno(), 4096, until=4)
        assert len(ahead) <= 4
        assert {*ahead, *wal_pages(wal.fileno(), 4096, begun)} == {*range(1, 12)}
        assert wal_pages(wal.fileno(), 4096, whole) == []
        connection.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchall()
        connection.execute("UPDATE t SET x = randomblob(3000) WHERE rowid = 1")
        assert wal_pages(wal.fileno(), 4096) == [3]
        assert wal_pages(wal.fileno(), 4096, whole) == [3]
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
        assert wal_pages(wal.fileno(), 4096) == []
    connection.close()
