"""A write-ahead log with damage inside is told from one whose end a crash tore off, and is kept before it is lost."""

from __future__ import annotations

import contextlib
import shutil
import sqlite3
from pathlib import Path

import pytest
from click.testing import CliRunner
from hypothesis import given, settings
from hypothesis import strategies as st

from sidecar.cli.failures import ExitCode
from sidecar.cli.group import cli
from sidecar.errors import StoreUnavailableError
from sidecar.plurals import counted
from sidecar.store.check import Fault, check
from sidecar.store.kept_logs import NAME
from sidecar.store.store import Store
from sidecar.store.wal import Break, find_break

NOW = 1_700_000_000_000_000
LOG = "memories.db-wal"
FRAME = 24 + 4_096
WRITES = 30


@pytest.fixture(scope="module")
def killed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The files of a store as a killed server leaves them: the last commit in the log is of several frames."""
    folder = tmp_path_factory.mktemp("killed")
    with Store.open(folder / "first") as store:
        for number in range(WRITES):
            store.upsert("n", [(f"m{number}", {"content": f"memory {number}", "tokens": 1})], NOW)
        store.upsert("n", [("long", {"content": "long " * 2_000, "tokens": 1})], NOW)
        shutil.copytree(folder / "first", folder / "killed")
    (folder / "killed" / "memories.db-shm").unlink()
    return folder / "killed"


@pytest.fixture
def data(killed: Path, tmp_path: Path) -> Path:
    """A copy of the killed store's folder."""
    return shutil.copytree(killed, tmp_path / "data")


def commits(log: bytes) -> list[int]:
    """Frames, from 1, that end a commit."""
    heads = range(32, len(log) - FRAME + 1, FRAME)
    return [place for place, at in enumerate(heads, 1) if int.from_bytes(log[at + 4 : at + 8], "big")]


def flipped(path: Path, byte: int, bit: int) -> None:
    with path.open("r+b") as file:
        file.seek(byte)
        (value,) = file.read(1)
        file.seek(byte)
        file.write(bytes([value ^ 1 << bit]))


def ids(folder: Path) -> set[str]:
    """What SQLite finds of the log: the ids of the memories that it still reads."""
    with contextlib.closing(sqlite3.connect(folder / "memories.db")) as connection:
        return {row[0] for row in connection.execute("SELECT memory_id FROM memories")}


def test_a_killed_servers_log_raises_no_alarm(data: Path) -> None:
    """As it is, the log is whole, nothing is found, and nothing is kept at the next start."""
    assert find_break(data / LOG) is None
    assert check(data).findings == ()
    with Store.open(data) as store:
        assert store.problems() == []
        assert store.namespace("n").memory_count == WRITES + 1
    assert not list(data.glob(f"{NAME}*"))


@settings(max_examples=200, deadline=None)
@given(part=st.floats(0, 1))
def test_a_log_torn_at_any_byte_raises_no_alarm(
    killed: Path, tmp_path_factory: pytest.TempPathFactory, part: float
) -> None:
    """A crash tears the end off wherever it likes: that is no damage."""
    log = (killed / LOG).read_bytes()
    torn = tmp_path_factory.mktemp("torn") / LOG
    torn.write_bytes(log[: int(part * len(log))])
    assert find_break(torn) is None


@settings(max_examples=300, deadline=None)
@given(part=st.floats(0, 1, exclude_max=True), bit=st.integers(0, 7))
def test_any_flipped_bit_before_the_last_commit_is_told(
    killed: Path, tmp_path_factory: pytest.TempPathFactory, part: float, bit: int
) -> None:
    """Wherever a bit flips, the frame is named, and how many frames and commits stand behind; but for the last frame,
    which looks as if a crash had torn it off."""
    log = (killed / LOG).read_bytes()
    damaged = tmp_path_factory.mktemp("flipped") / LOG
    damaged.write_bytes(log)
    byte = int(part * len(log))
    flipped(damaged, byte, bit)
    frame = 0 if byte < 32 else (byte - 32) // FRAME + 1
    last, ends = len(log) // FRAME, commits(log)
    assert ends[-1] == last
    behind = Break(frame, last - frame, sum(end > frame for end in ends))
    assert find_break(damaged) == (behind if frame < last else None)


def test_frames_of_before_a_checkpoint_are_none_of_the_log(tmp_path: Path) -> None:
    """SQLite writes the log from its beginning again after a checkpoint, and what is left of before stands behind."""
    path = tmp_path / "x.db"
    with contextlib.closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("PRAGMA journal_mode = WAL").fetchall()
        connection.execute("CREATE TABLE t (x)")
        for number in range(20):
            connection.execute("INSERT INTO t VALUES (?)", (number,))
        size = (tmp_path / "x.db-wal").stat().st_size
        connection.execute("PRAGMA wal_checkpoint(RESTART)").fetchall()
        connection.execute("INSERT INTO t VALUES (99)")
        assert (tmp_path / "x.db-wal").stat().st_size == size
        assert find_break(tmp_path / "x.db-wal") is None


def test_what_was_spilled_and_rolled_back_is_no_damage(tmp_path: Path) -> None:
    """A transaction that was too large for memory leaves frames in the log even where it was taken back; a shorter
    commit is written over their beginning."""
    path = tmp_path / "x.db"
    with contextlib.closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("PRAGMA journal_mode = WAL").fetchall()
        connection.execute("PRAGMA wal_autocheckpoint = 0").fetchall()
        connection.execute("PRAGMA cache_size = 10")
        connection.execute("CREATE TABLE t (x)")
        size = (tmp_path / "x.db-wal").stat().st_size
        connection.execute("BEGIN")
        for number in range(200):
            connection.execute("INSERT INTO t VALUES (?)", (str(number) * 2_000,))
        connection.execute("ROLLBACK")
        assert (tmp_path / "x.db-wal").stat().st_size > size + 100 * FRAME
        assert find_break(tmp_path / "x.db-wal") is None
        connection.execute("INSERT INTO t VALUES (99)")
        assert find_break(tmp_path / "x.db-wal") is None


@pytest.fixture(params=["a frame", "the header"])
def damaged(data: Path, request: pytest.FixtureRequest) -> tuple[Path, Break, bytes]:
    """A killed store with one bit flipped in its log, what that is, and the log's bytes."""
    log = data / LOG
    frame = 0 if request.param == "the header" else commits(log.read_bytes())[-10]
    flipped(log, 20 if not frame else 32 + (frame - 1) * FRAME + 1_000, 3)
    found = find_break(log)
    assert found is not None
    assert found.frame == frame
    return data, found, log.read_bytes()


def test_a_check_names_a_damaged_log(damaged: tuple[Path, Break, bytes]) -> None:
    """It says where, and how much stands behind, ends with the code of damage, and changes nothing."""
    folder, found, log = damaged
    result = CliRunner().invoke(cli, ["check", "--data", str(folder)])
    assert result.exit_code == ExitCode.DAMAGED, result.output
    finding = next(each for each in check(folder).findings if each.fault is Fault.LOG)
    assert finding.count == found.commits
    assert counted(found.commits, "commit") in finding.message
    assert (f"frame {found.frame} " if found.frame else "its header") in finding.message
    assert (folder / LOG).read_bytes() == log


def test_a_start_keeps_a_damaged_log_and_says_so(
    damaged: tuple[Path, Break, bytes], caplog: pytest.LogCaptureFixture
) -> None:
    """Writes are lost, and what holds them is kept as it was, once, for the owner alone: the server's log and its
    problems name it until it is removed, also after another start; and a check does."""
    folder, found, log = damaged
    with Store.open(folder) as store:
        (kept,) = folder.glob(f"{NAME}*")
        assert kept.read_bytes() == log
        assert kept.stat().st_mode & 0o777 == 0o600
        assert len(ids(folder)) < WRITES + 1
        (problem,) = store.problems()
        assert str(kept) in problem
        assert counted(found.commits, "commit") in problem
        assert problem in caplog.text
        store.upsert("n", [("later", {"content": "text", "tokens": 1})], NOW)
    with Store.open(folder) as store:
        assert store.problems() == [problem]
        (finding,) = check(folder).findings
        assert (finding.fault, finding.message) == (Fault.LOG, problem)
        kept.unlink()
        assert store.problems() == []
    assert check(folder).findings == ()
    assert "later" in ids(folder)


def test_a_repair_keeps_a_damaged_log(damaged: tuple[Path, Break, bytes]) -> None:
    """A repair opens the database for writing as a server does, so it keeps the log first, and still ends with the
    code of damage: the writes are lost."""
    folder, _, log = damaged
    result = CliRunner().invoke(cli, ["check", "--data", str(folder), "--repair"])
    (kept,) = folder.glob(f"{NAME}*")
    assert kept.read_bytes() == log
    assert result.exit_code == ExitCode.DAMAGED, result.output


def test_a_start_refuses_where_a_damaged_log_cannot_be_kept(damaged: tuple[Path, Break, bytes]) -> None:
    """If there is no place for the copy, the store is not opened, and the log stays as it is."""
    folder, _, log = damaged
    in_the_way = folder / f".{NAME}{log[16:24].hex()}.partial"
    in_the_way.mkdir()
    with pytest.raises(StoreUnavailableError, match="cannot be opened"):
        Store.open(folder)
    assert (folder / LOG).read_bytes() == log
    in_the_way.rmdir()
    with Store.open(folder) as store:
        assert len(store.problems()) == 1
