import os
import sqlite3
import subprocess
import sys
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

import pytest

from sidecar.errors import SchemaTooNewError, StoreDamagedError, StoreLockedError, StoreUnavailableError
from sidecar.store.files import file_system
from sidecar.store.schema import APPLICATION_ID, MIGRATIONS, migrate
from sidecar.store.store import Store

NOW = 1_700_000_000_000_000


def write_text(store: Store, memory_id: str = "m", text: str = "text") -> None:
    """Writes one memory."""
    store.upsert("n", [(memory_id, {"content": text, "tokens": 1})], NOW)


def old_store(folder: Path, version: int) -> sqlite3.Connection:
    """A database as a program of that schema version left it."""
    folder.mkdir()
    connection = sqlite3.connect(folder / "memories.db", isolation_level=None)
    migrate(connection, MIGRATIONS[:version])
    return connection


def test_a_folder_is_made_for_its_owner_alone(tmp_path: Path) -> None:
    """A missing folder is made, and nobody else may read it or the files in it."""
    folder = tmp_path / "a" / "b"
    with Store.open(folder) as store:
        write_text(store)
        assert folder.stat().st_mode & 0o777 == 0o700
        assert {path.name for path in folder.iterdir()} == {"lock", "memories.db", "memories.db-wal", "memories.db-shm"}
        assert all(path.stat().st_mode & 0o077 == 0 for path in folder.iterdir())


def test_a_second_opener_is_told_who_holds_the_store(store: Store) -> None:
    """A store is open once; the second opener learns the pid of the first and the folder, and breaks nothing."""
    program = (
        "import sys; from pathlib import Path; from sidecar.errors import StoreLockedError\n"
        "from sidecar.store.store import Store\n"
        "try: Store.open(Path(sys.argv[1]))\nexcept StoreLockedError as error: print(error)"
    )
    second = subprocess.run(
        [sys.executable, "-c", program, str(store.folder)], capture_output=True, text=True, check=True
    )
    assert f"pid {os.getpid()};" in second.stdout
    assert str(store.folder) in second.stdout
    with pytest.raises(StoreLockedError):
        Store.open(store.folder)
    write_text(store)
    assert store.get("n", "m").content == "text"


def test_a_closed_store_says_so(store: Store) -> None:
    """After close every call is refused, closing again does nothing, and the folder is free."""
    store.close()
    store.close()
    for call in (lambda: store.get("n", "m"), lambda: write_text(store), store.settle):
        with pytest.raises(StoreUnavailableError, match="closed"):
            call()
    with Store.open(store.folder) as again:
        write_text(again)


@pytest.mark.parametrize("version", range(len(MIGRATIONS)))
def test_an_older_store_is_brought_up_to_date(tmp_path: Path, version: int) -> None:
    """A store of each older schema version opens, keeps what it holds, and can be written to."""
    connection = old_store(tmp_path / "data", version)
    if version:
        connection.execute("INSERT INTO meta (key, value) VALUES ('fact', x'01')")
    connection.close()
    with Store.open(tmp_path / "data") as store:
        assert store.schema_version == len(MIGRATIONS)
        assert store.meta("fact") == (b"\x01" if version else None)
        write_text(store)


def test_a_newer_store_is_refused_and_left_alone(tmp_path: Path) -> None:
    """A store that a newer program wrote is refused by its version, and is not changed."""
    connection = old_store(tmp_path / "data", len(MIGRATIONS))
    connection.execute(f"PRAGMA user_version = {len(MIGRATIONS) + 1}")
    connection.close()
    before = (tmp_path / "data" / "memories.db").read_bytes()
    with pytest.raises(SchemaTooNewError, match=f"schema version {len(MIGRATIONS) + 1}, .* up to {len(MIGRATIONS)}"):
        Store.open(tmp_path / "data")
    connection = sqlite3.connect(tmp_path / "data" / "memories.db")
    assert connection.execute("PRAGMA user_version").fetchone() == (len(MIGRATIONS) + 1,)
    connection.close()
    assert len(before) == (tmp_path / "data" / "memories.db").stat().st_size


NEXT = ("CREATE TABLE later (x INTEGER)", "INSERT INTO later VALUES (1)")


@pytest.mark.parametrize("broken", [("CREATE TABLE later (x INTEGER)", "INSERT INTO later VALUES (1, 2)")])
def test_a_migration_that_breaks_leaves_the_older_version(tmp_path: Path, broken: Sequence[str]) -> None:
    """A migration is all or nothing, and the next attempt goes on from the older version."""
    connection = old_store(tmp_path / "data", len(MIGRATIONS))
    with pytest.raises(sqlite3.OperationalError):
        migrate(connection, (*MIGRATIONS, broken))
    assert connection.execute("PRAGMA user_version").fetchone() == (len(MIGRATIONS),)
    assert migrate(connection, (*MIGRATIONS, NEXT)) == len(MIGRATIONS) + 1
    assert connection.execute("SELECT x FROM later").fetchall() == [(1,)]
    connection.close()


MIGRATE_AND_DIE = """
import os, sqlite3, sys
from sidecar.store.schema import MIGRATIONS, migrate
connection = sqlite3.connect(sys.argv[1], isolation_level=None)
connection.execute("PRAGMA journal_mode = WAL")
left = int(sys.argv[2])
def count(statement):
    global left
    left -= 1
    if left < 0:
        os.kill(os.getpid(), 9)
connection.set_trace_callback(count)
migrate(connection, (*MIGRATIONS, ("CREATE TABLE later (x INTEGER)", "INSERT INTO later VALUES (1)")))
"""


def test_migrations_can_be_killed_at_any_point(tmp_path: Path) -> None:
    """After kill -9 at any statement of the migrations the store has a whole version, and goes on from there."""
    versions: set[int] = set()
    for statements in range(2, 300, 5):
        path = tmp_path / f"{statements}.db"
        killed = subprocess.run([sys.executable, "-c", MIGRATE_AND_DIE, str(path), str(statements)]).returncode == -9
        connection = sqlite3.connect(path, isolation_level=None)
        (version,) = connection.execute("PRAGMA user_version").fetchone()
        tables = {name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
        assert ("later" in tables, "meta" in tables) == (version == len(MIGRATIONS) + 1, version > 0)
        assert migrate(connection, (*MIGRATIONS, NEXT)) == len(MIGRATIONS) + 1
        connection.close()
        versions.add(version)
        if not killed:
            break
    assert versions == set(range(len(MIGRATIONS) + 2))


def test_another_programs_database_is_refused(tmp_path: Path) -> None:
    """A database that is not a store of ours is named as such and left alone."""
    (tmp_path / "data").mkdir()
    connection = sqlite3.connect(tmp_path / "data" / "memories.db")
    connection.execute("CREATE TABLE memories (x)")
    connection.close()
    with pytest.raises(StoreDamagedError, match="another program"):
        Store.open(tmp_path / "data")


@pytest.mark.parametrize("cut", [0.3, 0.8])
def test_a_file_that_was_cut_off_is_refused(tmp_path: Path, cut: float) -> None:
    """A database that lost its end is refused with a way out; a repaired one opens."""
    with Store.open(tmp_path / "data") as store:
        store.upsert("n", [(f"m{i}", {"content": "x" * 500, "tokens": 1}) for i in range(200)], NOW)
    path = tmp_path / "data" / "memories.db"
    whole = path.read_bytes()
    os.truncate(path, int(len(whole) * cut) // 4096 * 4096)
    with pytest.raises(StoreDamagedError, match="restore a backup"):
        Store.open(tmp_path / "data")
    path.write_bytes(whole)
    with Store.open(tmp_path / "data") as store:
        assert store.namespace("n").memory_count == 200


@pytest.mark.parametrize("junk", [b"not a database at all" * 500, b"SQLite format 3\x00" + b"\xff" * 4080])
def test_a_file_that_is_no_database_is_refused(tmp_path: Path, junk: bytes) -> None:
    """Anything else in the database's place is refused, with a way out."""
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "memories.db").write_bytes(junk)
    with pytest.raises(StoreDamagedError, match="restore a backup"):
        Store.open(tmp_path / "data")


def test_damage_inside_is_found_at_the_start(tmp_path: Path) -> None:
    """A page that was overwritten is found before the store serves."""
    with Store.open(tmp_path / "data") as store:
        store.upsert("n", [(f"m{i}", {"content": "x" * 500, "tokens": 1}) for i in range(200)], NOW)
    path = tmp_path / "data" / "memories.db"
    page = path.read_bytes().index(b"x" * 500) // 4096
    with path.open("r+b") as file:
        file.seek(page * 4096)
        file.write(b"\x0d" + b"\xff" * 4095)
    with pytest.raises(StoreDamagedError, match="damaged"):
        Store.open(tmp_path / "data")


def test_an_unusable_folder_is_named(tmp_path: Path) -> None:
    """A path that cannot be a folder is refused by name."""
    (tmp_path / "file").write_text("")
    with pytest.raises(StoreUnavailableError, match="file/data"):
        Store.open(tmp_path / "file" / "data")


MOUNTS = """\
22 27 0:21 / /proc rw,relatime - proc proc rw
27 1 254:0 / / rw,relatime - ext4 /dev/vda rw
40 27 0:50 / /mnt/team rw,relatime shared:1 - nfs4 server:/team rw
41 40 0:51 / /mnt/team/local rw,relatime - xfs /dev/sdb rw
42 27 0:52 / /mnt/with\\040space rw,relatime - fuse.sshfs host:/ rw
43 27 0:53 / /data rw,relatime - ext4 /dev/sdc rw
44 43 0:54 / /data rw,relatime - cifs //host/share rw
"""


@pytest.mark.parametrize(
    ("folder", "kind"),
    [
        ("/home/someone", "ext4"),
        ("/mnt/team", "nfs4"),
        ("/mnt/team/agents/data", "nfs4"),
        ("/mnt/teamwork", "ext4"),
        ("/mnt/team/local/data", "xfs"),
        ("/mnt/with space/data", "fuse.sshfs"),
        ("/data/x", "cifs"),
    ],
)
def test_the_file_system_of_a_folder_is_found(folder: str, kind: str) -> None:
    """The innermost, latest mount over a folder says what it lies on."""
    assert file_system(Path(folder), MOUNTS) == kind


def test_the_database_is_marked_as_ours(store: Store) -> None:
    """The file's header carries the application id, for `file` and for other programs."""
    store.settle()
    head = subprocess.run(["head", "-c", "72", str(store.folder / "memories.db")], capture_output=True, check=True)
    assert int.from_bytes(head.stdout[68:72], "big") == APPLICATION_ID


def test_tables_of_another_build_are_refused(tmp_path: Path) -> None:
    """A store that bears our version number with other tables is not opened, and says what to do."""
    with Store.open(tmp_path):
        pass
    with closing(sqlite3.connect(tmp_path / "memories.db", isolation_level=None)) as connection:
        connection.execute("ALTER TABLE packets ADD COLUMN of_another_build INTEGER")
    with pytest.raises(StoreDamagedError, match=r"packets in memories\.db is not as schema version"):
        Store.open(tmp_path)
