from __future__ import annotations

import contextlib
import json
import os
import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from random import Random

import pytest
from click.testing import CliRunner
from hypothesis import given, settings
from hypothesis import strategies as st

from sidecar.cli.failures import ExitCode
from sidecar.cli.group import cli
from sidecar.domain import Packet, Rating, UseReport
from sidecar.errors import InvalidRequestError, StoreDamagedError, StoreLockedError
from sidecar.store.check import check
from sidecar.store.ingested import Chunk
from sidecar.store.pages import Pages
from sidecar.store.rebuild import DERIVED
from sidecar.store.repair import repair
from sidecar.store.requests import Once, Replayed
from sidecar.store.salvage import salvage, tables
from sidecar.store.schema import migrate
from sidecar.store.store import Store
from tests.weights.making import place

NOW = 1_700_000_000_000_000
PAGE = 4096

MakePacket = Callable[..., Packet]


def build(folder: Path, make_packet: MakePacket, count: int = 300) -> None:
    """A store with rows in every table, some of them longer than a page."""
    random = Random(3)
    with Store.open(folder) as store:
        once = Once("UpsertMemories", "r", b"hash", lambda _: b"answer")
        texts = [(f"m{i}", {"content": f"text {i} " * random.choice([3, 30, 2000]), "tokens": 1}) for i in range(count)]
        result = store.upsert("n", texts, NOW, once)
        assert not isinstance(result, Replayed)
        keys = {memory.id: memory.key for _, memory in result[0]}
        for number in range(count):
            chosen = random.sample(sorted(keys), 6)
            store.log_packet(make_packet(f"p{number}", {name: keys[name] for name in chosen}, session_id=f"{number}"))
            store.report(UseReport(f"p{number}", used_memory_ids=(chosen[0],)), NOW + number)
            store.rate("n", chosen[1], f"rater{number}", Rating.HELPFUL, "", NOW)
        store.log_packet(make_packet("old", {"m0": keys["m0"]}, session_id="old", create_time=NOW - 1))
        store.report(UseReport("old", used_memory_ids=("m0",)), NOW)
        assert store.prune("n", NOW, None, NOW, lambda: None).packets == 1
        store.upsert("purged", [("x", {"content": "y", "tokens": 1})], NOW)
        store.purge_namespace("purged")
        store.ingest("n", Chunk("stream", 1, b"digest"), [("in", {"content": "z", "tokens": 1})], NOW, {})
        store.set_use_priors("run", {"fact": (0.2, 10.0), "decision": (1.0, 10.0)})
        place(store, folder.parent / "model", NOW)
    # Tables that nothing above writes to get rows of their declared types.
    with contextlib.closing(sqlite3.connect(folder / "memories.db")) as connection:
        for (table,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall():
            if connection.execute(f"SELECT COUNT(*) FROM {table}").fetchone() == (0,):
                types = [column[2] for column in connection.execute(f"PRAGMA table_info({table})")]
                for number in range(1, 4):
                    made = {"INTEGER": number, "REAL": number + 0.5, "TEXT": f"text {number}", "BLOB": bytes(number)}
                    values = [made[kind] for kind in types]
                    connection.execute(f"INSERT INTO {table} VALUES ({', '.join('?' * len(values))})", values)
        connection.commit()
    repair(folder, NOW)


def rows(folder: Path) -> dict[str, list[tuple[object, ...]]]:
    """All rows of all tables, but for the score versions, which a salvage moves on, the word for index files, which it
    takes back, and for packets to be counted, all of which it counts."""
    with contextlib.closing(sqlite3.connect(folder / "memories.db")) as connection:
        names = {row[0] for row in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
        names -= {"index_files", "changed_memories", "uncounted_packets"}
        found = {name: connection.execute(f"SELECT * FROM {name} ORDER BY 1, 2").fetchall() for name in names}
    for name in ("namespaces", "purged_namespaces"):
        found[name] = [row[:1] for row in found[name]]
    found["meta"] = [row for row in found["meta"] if row[0] != "first_score_version"]
    return found


def test_every_row_of_a_whole_file_is_read(tmp_path: Path, make_packet: MakePacket) -> None:
    """Read page by page, a sound store comes out as it went in: every table, every value, long rows too."""
    build(tmp_path / "data", make_packet)
    before = rows(tmp_path / "data")
    assert all(before[name] for name in before)
    salvage(tmp_path / "data", tmp_path / "new", NOW)
    assert rows(tmp_path / "new") == before
    assert check(tmp_path / "new").findings == ()
    assert check(tmp_path / "data").findings == ()


@pytest.mark.parametrize("seed", range(4))
def test_what_lies_on_whole_pages_is_saved(tmp_path: Path, make_packet: MakePacket, seed: int) -> None:
    """Overwrite some pages, whichever they are: the new store is sound, every row in it is one of the old ones, and
    no more is lost than those pages can have held. It can be written to, and old keys are not given out again."""
    random = Random(seed)
    build(tmp_path / "data", make_packet)
    before = rows(tmp_path / "data")
    database = tmp_path / "data" / "memories.db"
    data = bytearray(database.read_bytes())
    pages = random.sample(range(len(data) // PAGE), 5)
    for page in pages:
        data[page * PAGE : (page + 1) * PAGE] = random.choice([bytes(PAGE), random.randbytes(PAGE)])
    database.write_bytes(data)
    saved = salvage(tmp_path / "data", tmp_path / "new", NOW).rows
    assert database.read_bytes() == data
    assert check(tmp_path / "new").findings == ()
    after = rows(tmp_path / "new")
    for name in ("packets", "exposures", "reports", "report_memories", "ratings"):
        assert set(after[name]) <= set(before[name])
    contents = {row[2]: row[25] for row in before["memories"]}
    assert all(contents[row[2]] == row[25] for row in after["memories"])
    assert saved["memories"] >= len(before["memories"]) - 5 * 30
    assert saved["packets"] >= len(before["packets"]) - 5 * 30
    with Store.open(tmp_path / "new") as store:
        result = store.upsert("n", [("fresh", {"content": "x", "tokens": 1})], NOW)
        assert not isinstance(result, Replayed)
        assert result[0][0][1].key > max(int(str(row[2])) for row in after["exposures"])
    assert check(tmp_path / "new").findings == ()


@pytest.mark.parametrize("damage", ["cut", "no header", "no first page", "roots"])
def test_a_file_that_sqlite_refuses_is_read(tmp_path: Path, make_packet: MakePacket, damage: str) -> None:
    """A file cut to three quarters, without its header, or whose tables have lost their roots, still gives most of its
    memories."""
    build(tmp_path / "data", make_packet)
    database = tmp_path / "data" / "memories.db"
    with contextlib.closing(sqlite3.connect(database)) as connection:
        roots = [row[0] for row in connection.execute("SELECT rootpage FROM sqlite_master WHERE rootpage > 0")]
    data = bytearray(database.read_bytes())
    if damage == "cut":
        del data[len(data) * 3 // 4 :]
    elif damage == "no header":
        data[:100] = bytes(100)
    elif damage == "no first page":
        data[:PAGE] = bytes(PAGE)
    else:
        for root in roots:
            data[(root - 1) * PAGE : root * PAGE] = bytes(PAGE)
    database.write_bytes(data)
    assert check(tmp_path / "data").findings
    saved = salvage(tmp_path / "data", tmp_path / "new", NOW).rows
    assert saved["memories"] >= 200
    assert check(tmp_path / "new").findings == ()


def test_what_is_lost_is_told(tmp_path: Path, make_packet: MakePacket) -> None:
    """Of a sound file nothing is lost. Where a page of memories is, or one of packets, the ids that the indexes still
    name are told: just those that are not in the new store; and the command ends with the code of damage."""
    build(tmp_path / "data", make_packet)
    assert salvage(tmp_path / "data", tmp_path / "whole", NOW).lost == ()
    database = tmp_path / "data" / "memories.db"
    data = bytearray(database.read_bytes())
    pages = Pages.of(bytes(data))
    for table in ("memories", "packets"):
        leaf = next(n for n, name in reversed(pages.owners().items()) if name == table and pages.page(n)[0] == 13)
        data[(leaf - 1) * PAGE : leaf * PAGE] = bytes(PAGE)
    database.write_bytes(data)
    ran = CliRunner().invoke(
        cli, ["check", "--repair", "--into", str(tmp_path / "new"), "--data", str(tmp_path / "data"), "--json"]
    )
    assert ran.exit_code == ExitCode.DAMAGED, ran.output
    told = {each["table"]: set(each["ids"]) for each in json.loads(ran.stdout)["lost"]}
    before, after = rows(tmp_path / "whole"), rows(tmp_path / "new")
    lost = {(row[1], row[2]) for row in before["memories"]} - {(row[1], row[2]) for row in after["memories"]}
    assert lost
    assert told["memories"] == {f"{namespace}/{memory_id}" for namespace, memory_id in lost}
    assert len(told["packets"]) == len(before["packets"]) - len(after["packets"]) > 0
    assert check(tmp_path / "new").findings == ()


KILLED = """
import os, signal, sys
from pathlib import Path
from sidecar.store.store import Store
store = Store.open(Path(sys.argv[1]))
store.upsert("n", [("late", {"content": "written late", "tokens": 1})], 1)
os.kill(os.getpid(), signal.SIGKILL)
"""


def test_what_is_still_in_the_log_is_saved(tmp_path: Path, make_packet: MakePacket) -> None:
    """What a killed server had answered and not yet moved into the database is saved too."""
    build(tmp_path / "data", make_packet, 20)
    subprocess.run([sys.executable, "-c", KILLED, str(tmp_path / "data")], check=False)
    assert (tmp_path / "data" / "memories.db-wal").stat().st_size
    with (tmp_path / "data" / "memories.db").open("r+b") as file:
        file.seek(PAGE * 12)
        file.write(os.urandom(PAGE))
    salvage(tmp_path / "data", tmp_path / "new", NOW)
    with Store.open(tmp_path / "new") as store:
        assert store.get("n", "late").content == "written late"


def test_a_salvage_overwrites_nothing(tmp_path: Path, make_packet: MakePacket) -> None:
    """The target must be empty, the source must be there and without a server; nothing is left of a failed attempt."""
    build(tmp_path / "data", make_packet, 8)
    shutil.copytree(tmp_path / "data", tmp_path / "full")
    with pytest.raises(InvalidRequestError, match="not empty"):
        salvage(tmp_path / "data", tmp_path / "full", NOW)
    with pytest.raises(StoreDamagedError, match=r"no memories\.db"):
        salvage(tmp_path / "nowhere", tmp_path / "new", NOW)
    with Store.open(tmp_path / "data"), pytest.raises(StoreLockedError):
        salvage(tmp_path / "data", tmp_path / "new", NOW)
    assert not (tmp_path / "new").exists()


def test_no_two_tables_look_alike(tmp_path: Path) -> None:
    """Rows without their tree are told apart by number and types of their values. Those that an index's entries look
    like are known by their tree alone, and hold nothing that a packet or a memory needs."""
    with contextlib.closing(sqlite3.connect(tmp_path / "x.db", isolation_level=None)) as connection:
        migrate(connection)
        known = tables(connection)
        shapes = {(table.page, table.types, table.rowid) for table in known}
        assert len(shapes) == len(known)
        assert {table.name for table in known if not table.is_unique} == {"rescore_versions"}
        names = {row[0] for row in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
    assert names - {table.name for table in known} == set(DERIVED)


VALUES = st.one_of(
    st.none(), st.integers(-(2**63), 2**63 - 1), st.floats(allow_nan=False), st.text(max_size=9000), st.binary()
)


@settings(max_examples=40, deadline=None)
@given(st.lists(st.tuples(st.integers(-(2**63), 2**63 - 1), VALUES, VALUES), unique_by=lambda row: row[0], max_size=40))
def test_any_row_is_read_as_sqlite_wrote_it(written: list[tuple[int, object, object]]) -> None:
    """Numbers of every size, reals, texts and blobs over several pages come back as they are."""
    with contextlib.closing(sqlite3.connect(":memory:", isolation_level=None)) as connection:
        connection.execute("CREATE TABLE t (k INTEGER PRIMARY KEY, x, y)")
        connection.executemany("INSERT INTO t VALUES (?, ?, ?)", written)
        data = connection.serialize()
    found = {r.rowid: r.values[1:] for _, r in Pages.of(data).records() if len(r.values) == 3 and r.values[0] is None}
    assert found == {key: (x, y) for key, x, y in written}


@settings(max_examples=60, deadline=None)
@given(st.binary(max_size=3 * 512), st.integers(0, 2**32))
def test_no_bytes_make_it_fail(noise: bytes, seed: int) -> None:
    """Whatever stands in a file, reading ends without an error."""
    random = Random(seed)
    data = bytearray(random.randbytes(3 * 512))
    data[: len(noise)] = noise
    for page in range(3):
        data[page * 512] = random.choice([2, 5, 10, 13])
    pages = Pages.of(bytes(data), 512)
    assert pages.owners()
    for number, record in pages.records():
        assert 1 <= number <= 3
        assert record.values is not None
