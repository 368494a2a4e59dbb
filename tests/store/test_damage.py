"""A look for damage that is over when the store is opened."""

import os
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from sidecar.errors import StoreDamagedError
from sidecar.store.damage import LookAhead
from sidecar.store.store import Store

NOW = 1_700_000_000_000_000


@pytest.fixture
def stopped(tmp_path: Path) -> Path:
    """The folder of a store of 200 memories that was closed."""
    with Store.open(tmp_path / "data") as store:
        store.upsert("n", [(f"m{i}", {"content": f"memory {i} " * 50, "tokens": 1}) for i in range(200)], NOW)
    return tmp_path / "data"


def test_a_whole_store_is_vouched_for_and_opens(stopped: Path) -> None:
    """It is looked at without the lock, nothing is written to it, and it opens as ever."""
    before = (stopped / "memories.db").read_bytes()
    ahead = LookAhead(stopped)
    assert ahead.vouches()
    assert (stopped / "memories.db").read_bytes() == before
    with Store.open(stopped, ahead=ahead) as store:
        assert store.get("n", "m7").content.startswith("memory 7 ")


def test_a_store_in_use_goes_on(store: Store) -> None:
    """A second start looks at what is in the log, too, and who has the store writes on."""
    store.upsert("n", [("m", {"content": "text", "tokens": 1})], NOW)
    assert LookAhead(store.folder).vouches()
    store.upsert("n", [("m", {"content": "another", "tokens": 1})], NOW)
    store.settle()
    assert store.get("n", "m").content == "another"


def test_a_damaged_store_is_not_vouched_for_and_refused(stopped: Path) -> None:
    """What is wrong is said by who opens it."""
    path = stopped / "memories.db"
    at = path.read_bytes().index(b"memory 150 ") // 4_096 * 4_096
    with path.open("r+b") as file:
        file.seek(at)
        file.write(b"\xff" * 4_096)
    ahead = LookAhead(stopped)
    assert not ahead.vouches()
    with pytest.raises(StoreDamagedError, match="restore a backup"):
        Store.open(stopped, ahead=ahead)


def test_where_no_store_is_nothing_is_vouched_for_nor_made(tmp_path: Path) -> None:
    """A look makes no folder and no file."""
    assert not LookAhead(tmp_path / "data").vouches()
    assert list(tmp_path.iterdir()) == []


def test_what_was_written_since_is_looked_at_again(stopped: Path) -> None:
    """Damage that comes between the look and the opening is found: the file is not the one that was looked at."""
    ahead = LookAhead(stopped)
    assert ahead.vouches()
    path = stopped / "memories.db"
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        (root,) = connection.execute("SELECT rootpage FROM sqlite_schema WHERE name = 'memories'").fetchone()
    with path.open("r+b") as file:
        os.pwrite(file.fileno(), b"\xff" * 4_096, (root - 1) * 4_096)
    with pytest.raises(StoreDamagedError):
        Store.open(stopped, ahead=ahead)
