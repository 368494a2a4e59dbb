import resource
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from sidecar.domain import Packet
from sidecar.errors import StoreFullError
from sidecar.store.checkpoints import Limits
from sidecar.store.readers import connect_for_reading
from sidecar.store.requests import Once, Replayed
from sidecar.store.store import Store

NOW = 1_700_000_000_000_000
QUOTA = 600_000


def until_full(write: Callable[[int], object]) -> int:
    """Writes until the store is full. Returns how often there was room."""
    for number in range(10_000):
        try:
            write(number)
        except StoreFullError:
            return number
    raise AssertionError("the store never got full")


def fill(store: Store) -> int:
    """Writes memories of a page each until the store is full. Returns how many there was room for."""
    return until_full(
        lambda number: store.upsert("n", [(f"m{number}", {"content": f"{number:04}" * 1000, "tokens": 1})], NOW)
    )


def test_a_full_store_refuses_writes_and_serves_on(tmp_path: Path, make_packet: Callable[..., Packet]) -> None:
    """At its quota a store refuses memories and packets by name, keeps and reads what it holds, and takes deletes,
    after which it can be written to again."""
    folder = tmp_path / "data"
    with Store.open(folder, quota_bytes=QUOTA) as store:
        count = fill(store)
        assert count > 20
        memories = {f"m{i}": i + 1 for i in range(50)}
        packets = until_full(lambda number: store.log_packet(make_packet(f"p{number}", memories)))
        assert packets < 20
        with pytest.raises(StoreFullError, match="quota"):
            store.log_packet(make_packet(f"p{packets}", memories))
        assert store.namespace("n").memory_count == count
        assert store.get("n", "m0").content == "0000" * 1000
        assert store.namespace("n").score_version == count
        once = Once("DeleteMemories", "r", b"hash", lambda result: bytes(5000))
        deleted = store.delete("n", [f"m{number}" for number in range(count)], NOW, once)
        assert not isinstance(deleted, Replayed)
        assert all(deleted[0].values())
        store.settle()
        assert fill(store) >= count - 5
        store.settle()
        assert store.numbers().byte_count <= QUOTA
    with Store.open(folder, quota_bytes=QUOTA) as store:
        assert store.namespace("n").memory_count >= count - 5


def test_one_too_large_write_does_not_fail_its_neighbours(tmp_path: Path) -> None:
    """A write that does not fit is refused alone; smaller ones are taken before and after it."""
    with Store.open(tmp_path / "data", quota_bytes=QUOTA) as store:
        store.upsert("n", [("a", {"content": "x", "tokens": 1})], NOW)
        with pytest.raises(StoreFullError):
            store.upsert("n", [(f"b{i}", {"content": "x" * 60_000, "tokens": 1}) for i in range(20)], NOW)
        store.upsert("n", [("c", {"content": "x", "tokens": 1})], NOW)
        assert [memory.id for memory in store.load("n").memories] == ["a", "c"]


LIMITED = """
import resource, sys
from pathlib import Path
from sidecar.errors import StoreFullError
from sidecar.store.store import Store
store = Store.open(Path(sys.argv[1]))
resource.setrlimit(resource.RLIMIT_FSIZE, (300_000, resource.RLIM_INFINITY))
written = 0
try:
    while written < 1000:
        store.upsert("n", [(f"m{written}", {"content": "x" * 4000, "tokens": 1})], 1)
        written += 1
except StoreFullError as error:
    print(error)
assert 5 < written < 1000, written
assert len(store.load("n").memories) == written
resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
store.upsert("n", [("after", {"content": "x" * 4000, "tokens": 1})], 1)
store.close()
print(written + 1)
"""


def test_a_write_that_the_system_refuses_leaves_the_store_usable(tmp_path: Path) -> None:
    """When the system has no room for a file, the write is refused as full, and once there is room writing goes on."""
    assert resource.RLIM_INFINITY in resource.getrlimit(resource.RLIMIT_FSIZE)
    ran = subprocess.run(
        [sys.executable, "-c", LIMITED, str(tmp_path / "data")], capture_output=True, text=True, timeout=60
    )
    assert ran.returncode == 0, ran.stderr
    message, count = ran.stdout.splitlines()
    assert "cannot grow" in message
    with Store.open(tmp_path / "data") as store:
        assert store.namespace("n").memory_count == int(count)


def test_a_log_that_cannot_be_moved_stays_within_the_quota(tmp_path: Path) -> None:
    """While a long read keeps the log from the database, growing writes are refused once the log has its share of the
    quota, deletes are taken, and once the read is over writing goes on."""
    with Store.open(tmp_path / "data", quota_bytes=QUOTA) as store:
        store.upsert("n", [("a", {"content": "x", "tokens": 1})], NOW)
        reader = connect_for_reading(store.folder / "memories.db")
        reader.execute("BEGIN")
        reader.execute("SELECT COUNT(*) FROM memories").fetchone()
        number = until_full(
            lambda number: store.upsert("n", [("m", {"content": f"{number:04}" * 1000, "tokens": 1})], NOW)
        )
        assert number > 3
        assert store.numbers().byte_count <= QUOTA
        assert ["a long read" in problem for problem in store.problems()] == [True]
        store.delete("n", ["a"], NOW)
        reader.close()
        store.upsert("n", [("b", {"content": "x", "tokens": 1})], NOW)
        assert store.problems() == []


def test_a_disk_that_is_nearly_full_keeps_room_for_deletes_and_for_the_log(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Growing writes are refused while the disk still has what the log may take and what moving it may; deletes go on
    beyond, and pages that they free in the database count as room. The problem is told until a write finds room."""
    free = sys.maxsize
    monkeypatch.setattr("sidecar.store.checkpoints.free_bytes", lambda descriptor: free)
    with Store.open(tmp_path / "data") as store:
        for number in range(5):
            store.upsert("n", [(f"m{number}", {"content": "x" * 900_000, "tokens": 1})], NOW)
        store.settle()
        needed = 2 * Limits().wal_bytes
        free = needed - 1_000_000
        with pytest.raises(
            StoreFullError, match="its disk has 1,000,000 bytes less than its log needs; delete or prune"
        ):
            store.upsert("n", [("more", {"content": "x", "tokens": 1})], NOW)
        assert store.namespace("n").memory_count == 5
        store.delete("n", ["m0", "m1"], NOW)
        assert "its disk" in store.problems()[0]
        store.settle()
        store.upsert("n", [("more", {"content": "x", "tokens": 1})], NOW)
        assert store.problems() == []
        free = 0
        with pytest.raises(StoreFullError, match="its disk"):
            store.upsert("n", [("less", {"content": "x", "tokens": 1})], NOW)
        assert store.purge_namespace("n") == (4, 0)
