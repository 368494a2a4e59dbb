"""An index file is a cache: whatever was written since and whatever was damaged, what is loaded equals a rebuild."""

from __future__ import annotations

import shutil
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pytest

from sidecar.domain import Packet, Rating, UseReport
from sidecar.errors import OverloadedError
from sidecar.retrieval.hashing import Hasher
from sidecar.retrieval.kept_indexes import KeptIndexes
from sidecar.retrieval.namespaces import Namespaces
from sidecar.retrieval.snapshot import snapshot_from
from sidecar.retrieval.sources import Stored
from sidecar.store import indexes
from sidecar.store.checkpoints import Limits
from sidecar.store.indexes import PREFIX
from sidecar.store.store import Store
from tests.retrieval.pictures import picture

NOW = 1_700_000_000_000_000
WORDS = "Ann Bob deploy release rotateApiKey OPS-1234 notes the svc/auth-gw/rotate.py 猫が好き 1970 ferry Kim".split()
NAMES = [f"m{number}" for number in range(24)] + ["a,b", "c\nd", "é", "猫", "'", "\U0010ffff"]


@dataclass
class Serving:
    """What a server has of the index."""

    store: Store
    namespaces: Namespaces
    reads: list[str]
    """Namespaces that were read whole from the store."""

    def check(self, namespace: str = "n") -> None:
        """What is loaded equals a rebuild, bit for bit."""
        assert picture(self.namespaces.get(namespace)) == picture(snapshot_from(self.store.load(namespace)))


@contextmanager
def serving(folder: Path, of: tuple[object, ...] = ("embedder",), most_held: int = 4) -> Iterator[Serving]:
    """As a server has it, with few memories at hand, so that most are read from the store."""
    with Store.open(folder, limits=Limits(scrub_idle=0.05), sync=lambda _: None) as store:
        source = Stored(store.read, Hasher(store.salt), time.monotonic, most_held)
        store.forewarn(source.leave)
        store.sweep_indexes()
        reads: list[str] = []

        def load(namespace: str) -> Any:
            reads.append(namespace)
            return store.load(namespace)

        namespaces = Namespaces(load, source, KeptIndexes(store, source, PREFIX, of))
        store.subscribe(namespaces.apply)
        yield Serving(store, namespaces, reads)


def files(folder: Path) -> list[Path]:
    """The index files in a folder."""
    return sorted(folder.glob(f"{PREFIX}*"))


def write(store: Store, dice: Random, names: list[str], namespace: str = "n") -> None:
    """Writes memories with made-up fields."""
    patches = []
    for name in names:
        fields: dict[str, Any] = {
            "content": " ".join(dice.choices(WORDS, k=dice.randint(1, 9))),
            "kind": dice.choice(("fact", "decision", "own")),
            "subject": dice.choice(("", "Ann", "Bob Smith")),
            "tags": dice.choice(((), ("x",), ("x", "y"))),
            "metadata": dice.choice(({}, {"n": 1.0}, {"deep": {"er": True}})),
            "source_thread": dice.choice(("", "t1", "t2")),
            "source_sequence": dice.choice((None, 1, 2)),
            "superseded_by": dice.choice(("", "", "", *NAMES[:5])),
            "create_time": NOW + dice.randint(0, 5),
            "relevance": dice.choice((None, 0.0, 0.5)),
            "tokens": dice.randint(1, 9),
            "embedding": dice.choice((None, np.array(dice.choices((-1.0, 0.5, 2.0), k=3), np.float32))),
        }
        patches.append((name, fields))
    store.upsert(namespace, patches, NOW + dice.randint(0, 5))


def change(store: Store, dice: Random, make_packet: Callable[..., Packet]) -> None:
    """One write of any sort."""
    there = [memory.id for memory in store.list_memories("n", "", 100)]
    sort = dice.choice(("write", "write", "update", "delete", "rate", "use"))
    if sort == "write" or not there:
        write(store, dice, dice.sample(NAMES, dice.randint(1, 6)))
    elif sort == "update":
        fields = dice.choice(({"pinned": True}, {"suppressed": True}, {"importance_override": 0.3}, {"content": "Kim"}))
        store.update("n", dice.choice(there), fields, NOW + dice.randint(0, 9))
    elif sort == "delete":
        store.delete("n", dice.sample(there, min(len(there), dice.randint(1, 3))), NOW)
    elif sort == "rate":
        store.rate("n", dice.choice(there), "ann", dice.choice(list(Rating)), "", NOW)
    else:
        used = dice.choice(there)
        packet_id = f"p{dice.random()}"
        store.log_packet(make_packet(packet_id, {used: store.get("n", used).key}))
        store.report(UseReport(packet_id, used_memory_ids=(used,)), NOW)


@pytest.mark.parametrize("seed", range(6))
def test_a_file_and_what_was_written_since_equal_a_rebuild(
    tmp_path: Path, seed: int, make_packet: Callable[..., Packet], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever is written before a file is made, while it is open and between two starts: what is loaded from it equals
    a rebuild from the store, and the store is not read whole again. So it is where ids are read some at a time."""
    monkeypatch.setattr(indexes, "IDS_AT_ONCE", 7)
    dice = Random(seed)
    for start in range(4):
        with serving(tmp_path) as server:
            if start == 0:
                write(server.store, dice, NAMES[:20])
            server.check()
            assert server.reads == []
            for _ in range(12):
                change(server.store, dice, make_packet)
            server.check()
            assert server.namespaces.keep("n")
            server.check()
            for _ in range(dice.randint(0, 12)):
                change(server.store, dice, make_packet)
            server.check()


def test_writes_go_on_while_a_file_is_made(tmp_path: Path) -> None:
    """Nothing that is written while a file is made is lost, in memory or for the next start."""
    dice = Random(1)
    with serving(tmp_path, most_held=1_000) as server:
        write(server.store, dice, NAMES)
        server.namespaces.get("n")
        done = threading.Event()
        faults: list[BaseException] = []

        def keep() -> None:
            try:
                while not done.is_set():
                    assert server.namespaces.keep("n")
            except BaseException as fault:
                faults.append(fault)
                raise

        keeping = threading.Thread(target=keep)
        keeping.start()
        for step in range(150):
            write(server.store, dice, [f"w{step}", *dice.sample(NAMES, 2)])
        done.set()
        keeping.join()
        assert not faults
        server.check()
        assert len(files(tmp_path)) == 1
    with serving(tmp_path, most_held=1_000) as server:
        server.check()
        assert server.reads == []


@pytest.fixture
def kept(tmp_path: Path) -> Path:
    """A store with an index file."""
    folder = tmp_path / "data"
    with serving(folder) as server:
        write(server.store, Random(3), NAMES)
        server.namespaces.get("n")
        assert server.namespaces.keep("n")
    return folder


def test_a_damaged_file_is_never_trusted(kept: Path) -> None:
    """A flipped bit anywhere in what is read, a file cut off, and one that is gone: all lead to a rebuild, and the file
    is dropped."""
    (path,) = files(kept)
    whole = path.read_bytes()
    dice = Random(4)
    used = [at for at in range(len(whole)) if whole[at]]
    for damage in range(14):
        if damage == 0:
            path.unlink()
        elif damage == 1:
            path.write_bytes(whole[: len(whole) // 2])
        elif damage == 2:
            path.write_bytes(b"")
        else:
            at = dice.choice(used)
            path.write_bytes(whole[:at] + bytes([whole[at] ^ 1 << dice.randrange(8)]) + whole[at + 1 :])
        with serving(kept) as server:
            server.check()
            assert server.reads == ["n"]
            assert files(kept) == []
            assert server.namespaces.keep("n")
            (path,) = files(kept)
            whole = path.read_bytes()
            used = [at for at in range(len(whole)) if whole[at]]


def test_a_file_of_another_embedder_or_program_is_not_used(kept: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What a file was made by and of must be what serves now."""
    with serving(kept, of=("another embedder",)) as server:
        server.check()
        assert server.reads == ["n"]
        assert server.namespaces.keep("n")
    monkeypatch.setattr("sidecar.retrieval.index_file.made_by", lambda: "another program")
    with serving(kept, of=("another embedder",)) as server:
        server.check()
        assert server.reads == ["n"]


def test_an_older_database_does_not_take_a_newer_file(kept: Path, tmp_path: Path) -> None:
    """A database that was put back by hand names another file, or none: the one that is there is swept away."""
    older = tmp_path / "memories.db"
    shutil.copy(kept / "memories.db", older)
    with serving(kept) as server:
        write(server.store, Random(5), [f"later{number}" for number in range(9)])
        server.namespaces.get("n")
        assert server.namespaces.keep("n")
    shutil.copy(older, kept / "memories.db")
    with serving(kept) as server:
        server.check()
        assert server.reads == ["n"]
        assert files(kept) == []


def test_a_backup_holds_no_index_and_builds_its_own(kept: Path, tmp_path: Path) -> None:
    """Backups are the database alone; a restored store reads its memories anew."""
    with serving(kept) as server:
        server.store.backup(tmp_path / "backup", NOW)
    assert files(tmp_path / "backup") == []
    shutil.copytree(tmp_path / "backup", tmp_path / "restored")
    with serving(tmp_path / "restored") as server:
        server.check()
        assert server.reads == ["n"]


def test_no_word_of_a_memory_is_in_an_index_file(tmp_path: Path) -> None:
    """A file holds hashes and numbers: no text, subject, tag, metadata, thread, id or name of a namespace."""
    secret = "SECRETWORD"
    fields = {
        "content": f"{secret}: text of {secret} in {secret}/{secret}.py",
        "subject": secret,
        "tags": (secret,),
        "metadata": {secret: secret},
        "source_thread": secret,
        "superseded_by": f"other{secret}",
    }
    with serving(tmp_path) as server:
        server.store.upsert(f"n{secret}", [(f"id{secret}", fields)], NOW)
        server.namespaces.get(f"n{secret}")
        assert server.namespaces.keep(f"n{secret}")
        (path,) = files(tmp_path)
        data = path.read_bytes().lower()
        assert secret.lower().encode() not in data
        assert secret.lower().encode("utf-16-le") not in data


def test_a_purged_namespace_leaves_no_file(kept: Path) -> None:
    """Its file goes with it, and what is written under its name again is new."""
    with serving(kept) as server:
        server.namespaces.get("n")
        server.store.purge_namespace("n")
        assert files(kept) == []
        assert not server.namespaces.keep("n")
        assert files(kept) == []
        write(server.store, Random(6), NAMES[:3])
        server.check()
    with serving(kept) as server:
        server.check()
        assert server.namespaces.get("n").live_count == 3


def test_text_that_was_rewritten_or_deleted_stays_with_snapshots_in_use(tmp_path: Path) -> None:
    """A snapshot in use shows the texts that it ranked, whatever is committed meanwhile; a later one shows none."""
    with serving(tmp_path, most_held=1) as server:
        write(server.store, Random(7), NAMES)
        before = server.namespaces.get("n")
        seen = picture(before)
        write(server.store, Random(8), NAMES[:10])
        server.store.delete("n", NAMES[10:20], NOW)
        assert picture(before) == seen
        server.check()
        server.store.purge_namespace("n")
        with pytest.raises(OverloadedError):
            before.memories.at(range(len(before)))


def test_a_folder_in_the_place_of_an_index_file_ends_no_start(kept: Path, caplog: pytest.LogCaptureFixture) -> None:
    """Be it litter or where the database's file should be: it is left and told, and the index is built anew."""
    (path,) = files(kept)
    path.unlink()
    path.mkdir()
    (kept / f"{PREFIX}litter").mkdir()
    with serving(kept) as server:
        server.check()
        assert server.reads == ["n"]
        assert server.namespaces.keep("n")
    assert f"{PREFIX}litter is no index file in use" in caplog.text
    assert f"{path.name} is no index file in use" in caplog.text
    with serving(kept) as server:
        server.check()
        assert server.reads == []
    assert path.is_dir()
