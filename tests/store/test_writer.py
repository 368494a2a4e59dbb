import sqlite3
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import count
from pathlib import Path

import pytest

from sidecar.domain import Change
from sidecar.errors import StoreUnavailableError
from sidecar.store.checkpoints import Checkpoints, Limits
from sidecar.store.jobs import Done, Work
from sidecar.store.opening import Opened, open_files
from sidecar.store.writer import Writer


class Gate:
    """Holds the writer in a job, so that what follows comes as one group."""

    def __init__(self, writer: Writer, then: Work[None] = lambda _: Done(None)) -> None:
        """`then` is what the job does at its end."""
        self._writer = writer
        self._then = then
        self._inside = threading.Event()
        self._open = threading.Event()

    def __enter__(self) -> None:
        self._thread = threading.Thread(target=lambda: self._writer.submit(self._hold, durable=False))
        self._thread.start()
        self._inside.wait()

    def __exit__(self, *_: object) -> None:
        self._open.set()
        self._thread.join()

    def _hold(self, connection: sqlite3.Connection) -> Done[None]:
        self._inside.set()
        self._open.wait()
        return self._then(connection)


class Bench:
    """A writer on a store of its own, and the moments at which files were put on the disk."""

    def __init__(self, folder: Path) -> None:
        self.synced = 0
        self.sync_error: OSError | None = None
        self.may_sync = threading.Event()
        self.may_sync.set()
        self.opened: Opened = open_files(folder, None, Limits(), lambda _: None)
        self.writer = Writer(self.opened.connection, self.opened.checkpoints, self._sync, self.opened.max_pages)

    def _sync(self) -> None:
        self.may_sync.wait()
        if self.sync_error is not None:
            raise self.sync_error
        self.synced += 1

    def together(self, *works: tuple[Work[str], bool]) -> list[str | Exception]:
        """Submits jobs (work, durable) so that they form one group; results or errors in their order."""
        with ThreadPoolExecutor(len(works)) as pool:
            with Gate(self.writer):
                futures = []
                for number, (work, durable) in enumerate(works, start=1):
                    futures.append(pool.submit(self.writer.submit, work, durable=durable))
                    while self.writer.waiting < number:
                        pass
            results: list[str | Exception] = []
            for future in futures:
                error = future.exception()
                results.append(future.result() if error is None else error)  # type: ignore[arg-type]
        return results

    def rows(self) -> set[str]:
        """The keys in the meta table, but for the salt."""
        connection = sqlite3.connect(self.opened.files.database)
        try:
            return {key for (key,) in connection.execute("SELECT key FROM meta")} - {"salt"}
        finally:
            connection.close()


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[Bench]:
    """An open writer."""
    made = Bench(tmp_path / "data")
    yield made
    made.may_sync.set()
    made.writer.close()
    made.opened.close_files()


def put(key: str, then: Callable[[sqlite3.Connection], object] = lambda _: None) -> Work[str]:
    """A job that writes a key, does something else, and returns the key."""

    def work(connection: sqlite3.Connection) -> Done[str]:
        connection.execute("INSERT INTO meta (key, value) VALUES (?, x'')", (key,))
        then(connection)
        return Done(key, Change("n", int(key[1:])))

    return work


def fail(_: sqlite3.Connection) -> None:
    """Fails as a bug would."""
    raise KeyError("mine alone")


def test_a_failing_job_is_rolled_back_alone(bench: Bench) -> None:
    """Of a group, the job that fails leaves nothing behind and alone hears of its error; the others are committed."""
    results = bench.together((put("k1"), False), (put("k2", fail), True), (put("k3"), True), (put("k1"), False))
    assert results[0] == "k1"
    assert isinstance(results[1], KeyError)
    assert results[2] == "k3"
    assert isinstance(results[3], sqlite3.IntegrityError)
    assert bench.rows() == {"k1", "k3"}


def test_a_group_that_is_lost_as_a_whole_is_run_job_by_job(bench: Bench) -> None:
    """If SQLite gives the whole transaction up, only the job at fault fails; the others run again."""
    lose = put("k2", lambda connection: connection.execute("ROLLBACK"))
    results = bench.together((put("k1"), True), (lose, True), (put("k3"), False))
    assert (results[0], results[2]) == ("k1", "k3")
    assert isinstance(results[1], sqlite3.Error)
    assert bench.rows() == {"k1", "k3"}


def test_subscribers_hear_before_the_caller_and_in_order(bench: Bench) -> None:
    """A change is published after its commit, before its caller goes on, and never for a job that failed."""
    heard: list[tuple[int, set[str]]] = []
    bench.writer.subscribe(lambda change: heard.append((change.score_version, bench.rows())))
    bench.together((put("k1"), False), (put("k2", fail), False), (put("k3"), False))
    assert heard == [(1, {"k1", "k3"}), (3, {"k1", "k3"})]


def test_a_subscriber_that_fails_harms_nobody(bench: Bench, caplog: pytest.LogCaptureFixture) -> None:
    """An error in a subscriber is logged; the write stands and the other subscribers hear of it."""
    heard: list[Change] = []

    def broken(_: Change) -> None:
        raise RuntimeError("broken subscriber")

    bench.writer.subscribe(broken)
    bench.writer.subscribe(heard.append)
    assert bench.writer.submit(put("k1"), durable=True) == "k1"
    assert [change.score_version for change in heard] == [1]
    assert "broken subscriber" in caplog.text


def test_a_packet_never_waits_for_the_disk(bench: Bench) -> None:
    """While an fsync hangs, volatile jobs are answered and durable ones wait."""
    bench.may_sync.clear()
    with ThreadPoolExecutor(1) as pool:
        durable = pool.submit(bench.writer.submit, put("k1"), durable=True)
        while "k1" not in bench.rows():
            pass
        assert bench.writer.submit(put("k2"), durable=False) == "k2"
        assert not durable.done()
        bench.may_sync.set()
        assert durable.result() == "k1"


def test_durable_jobs_share_an_fsync(bench: Bench) -> None:
    """All durable jobs of a group are answered by one fsync, and packets need none."""
    bench.together(*[(put(f"k{number}"), True) for number in range(8)])
    assert bench.synced == 1
    bench.writer.submit(put("k99"), durable=False)
    assert bench.synced == 1


def test_an_fsync_that_fails_ends_all_writing(bench: Bench) -> None:
    """If the disk does not confirm a write, its caller and all later ones are told, and it is never tried again."""
    bench.sync_error = OSError(5, "Input/output error")
    with pytest.raises(StoreUnavailableError, match=r"did not confirm.*Input/output error"):
        bench.writer.submit(put("k1"), durable=True)
    bench.sync_error = None
    for durable in (True, False):
        with pytest.raises(StoreUnavailableError, match="did not confirm"):
            bench.writer.submit(put("k2"), durable=durable)
    assert bench.synced == 0
    assert not bench.writer.settle()


def test_close_finishes_what_waits(bench: Bench) -> None:
    """Jobs that were submitted before close are done and answered; later ones are refused."""
    with ThreadPoolExecutor(9) as pool:
        with Gate(bench.writer):
            futures = [pool.submit(bench.writer.submit, put(f"k{number}"), durable=True) for number in range(8)]
            while bench.writer.waiting < 8:
                pass
            closing = pool.submit(bench.writer.close)
        assert sorted(future.result() for future in futures) == [f"k{number}" for number in range(8)]
        closing.result()
    with pytest.raises(StoreUnavailableError, match="closed"):
        bench.writer.submit(put("k9"), durable=True)
    assert len(bench.rows()) == 8


class Disk:
    """Syncs of a checkpoint in stages, each let through by hand."""

    def __init__(self) -> None:
        self.asked = threading.Semaphore(0)
        self.allowed = threading.Semaphore(0)

    def sync(self, _: int) -> None:
        """Waits until it is let through."""
        self.asked.release()
        self.allowed.acquire()


def fill(number: int) -> Work[None]:
    """A job that writes 40 KB."""

    def work(connection: sqlite3.Connection) -> Done[None]:
        connection.execute("INSERT INTO meta (key, value) VALUES (?, ?)", (f"fill{number}", bytes(40_000)))
        return Done(None)

    return work


def test_commits_go_on_while_a_checkpoint_waits_for_the_disk(tmp_path: Path) -> None:
    """While a long log is synced and copied and while the database is synced, packets are still committed and answered,
    the log grows and is not restarted; afterwards everything is in the database and the log is short."""
    disk = Disk()
    opened = open_files(tmp_path / "data", None, Limits(), lambda _: None)
    pin = sqlite3.connect(opened.files.database, isolation_level=None, check_same_thread=False)
    copier = sqlite3.connect(opened.files.database, isolation_level=None, check_same_thread=False)
    limits = Limits(wal_bytes=100_000, retry=0.0, poll=0.001)
    checkpoints = Checkpoints(opened.connection, pin, copier, opened.database, opened.wal, disk.sync, limits)
    writer = Writer(opened.connection, checkpoints, lambda: None, opened.max_pages)
    written = 0

    def write_some() -> int:
        nonlocal written
        for _ in range(5):
            writer.submit(fill(written), durable=False)
            written += 1
        return opened.files.sizes()[1]

    try:
        write_some()
        disk.asked.acquire()  # the log is being synced
        during_log = write_some()
        disk.allowed.release()
        disk.asked.acquire()  # the database is being synced
        during_database = write_some()
        assert during_database > during_log + 5 * 40_000
        disk.allowed.release(100)
        while opened.files.sizes()[1] > limits.wal_bytes:
            write_some()
    finally:
        disk.allowed.release(100)
        writer.close()
    connection = sqlite3.connect(opened.files.database)
    assert connection.execute("SELECT COUNT(*) FROM meta WHERE key LIKE 'fill%'").fetchone() == (written,)
    assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)
    connection.close()
    opened.close_files()


def test_a_long_log_is_moved_though_word_of_it_came_behind_other_jobs(tmp_path: Path) -> None:
    """Whoever writes alone does so on its own thread and tells the writer's that the log is long, also after such word
    had come to it together with jobs."""
    limits = Limits(wal_bytes=100_000, retry=0.0, poll=0.001)
    opened = open_files(tmp_path / "data", None, limits, lambda _: None)
    writer = Writer(opened.connection, opened.checkpoints, lambda: None, opened.max_pages)

    def write(number: int) -> None:
        writer.submit(fill(number), durable=False)

    try:
        with ThreadPoolExecutor(3) as pool:
            numbers = count()
            for _ in range(8):  # the word comes in time to stand behind them more often than not
                with Gate(writer, lambda connection: [fill(next(numbers))(connection) for _ in range(5)][-1]):
                    others = [pool.submit(write, next(numbers)) for _ in range(2)]
                    while writer.waiting < len(others):
                        pass
                for other in others:
                    other.result()
            for _ in range(50):
                pool.submit(write, next(numbers)).result()
        end = time.monotonic() + 10
        while (size := opened.files.sizes()[1]) > limits.wal_bytes:
            assert time.monotonic() < end, f"the log stays at {size} bytes, and its limit is {limits.wal_bytes}"
    finally:
        writer.close()
        opened.close_files()
