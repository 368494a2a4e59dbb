from __future__ import annotations

import contextlib
import json
import os
import re
import resource
import sqlite3
import stat
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from sidecar.domain import Packet, Rating, UseReport
from sidecar.errors import (
    BackupFailedError,
    DeadlineExceededError,
    InvalidRequestError,
    OverloadedError,
    SchemaTooNewError,
    StoreDamagedError,
    StoreLockedError,
)
from sidecar.store.backup import DATABASE, MANIFEST, read
from sidecar.store.check import Fault, check
from sidecar.store.checkpoints import Limits
from sidecar.store.repair import repair
from sidecar.store.requests import Replayed
from sidecar.store.restore import restore
from sidecar.store.store import Store

NOW = 1_700_000_000_000_000

MakePacket = Callable[..., Packet]


def fill(store: Store, make_packet: MakePacket, count: int = 40) -> None:
    """Memories, a packet, a report and a rating in namespace n."""
    result = store.upsert("n", [(f"m{i}", {"content": f"text {i} " * 40, "tokens": 1}) for i in range(count)], NOW)
    assert not isinstance(result, Replayed)
    keys = {memory.id: memory.key for _, memory in result[0]}
    store.log_packet(make_packet("p", {name: keys[name] for name in ("m0", "m1")}, session_id="s", agent_id="a"))
    store.report(UseReport("p", used_memory_ids=("m0",)), NOW)
    store.rate("n", "m2", "ann", Rating.HELPFUL, "good", NOW)


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_a_backup_restores_what_was_there(store: Store, make_packet: MakePacket, tmp_path: Path) -> None:
    """Memories, sums of use, ratings, packets and the secret of the draws come back; what was written after the backup
    does not; and a check finds nothing."""
    fill(store, make_packet)
    before, salt = store.load("n"), store.salt
    made = store.backup(tmp_path / "backup", NOW + 5)
    assert (made.memory_count, made.packet_count, made.report_count) == (40, 1, 1)
    assert read(tmp_path / "backup") == made
    store.upsert("n", [("later", {"content": "x", "tokens": 1})], NOW)
    assert restore(tmp_path / "backup", tmp_path / "new", NOW + 9) == made
    assert check(tmp_path / "new").findings == ()
    with Store.open(tmp_path / "new") as restored:
        after = restored.load("n")
        assert (after.memories, after.uses, restored.salt) == (before.memories, before.uses, salt)
        assert [use.used for use in restored.get_packet("n", "p").uses] == [True, False]


def test_a_restore_makes_cached_packets_stale(store: Store, make_packet: MakePacket, tmp_path: Path) -> None:
    """No score version that was given out before a restore is given out again, also not in a namespace that the backup
    does not know."""
    fill(store, make_packet)
    store.backup(tmp_path / "backup", NOW)
    given_out = set()
    for namespace in ("n", "unknown"):
        for number in range(5):
            store.upsert(namespace, [("x", {"content": f"{number}", "tokens": 1})], NOW)
            given_out.add(store.namespace(namespace).score_version)
    restore(tmp_path / "backup", tmp_path / "new", NOW)
    with Store.open(tmp_path / "new") as restored:
        for namespace in ("n", "unknown"):
            for number in range(7):
                assert restored.namespace(namespace).score_version not in given_out
                restored.upsert(namespace, [("y", {"content": f"{number}", "tokens": 1})], NOW)


def test_a_backup_is_one_moment_while_others_write(store: Store, make_packet: MakePacket, tmp_path: Path) -> None:
    """Writers go on during a backup, and what it holds hangs together."""
    fill(store, make_packet, 500)
    stop = threading.Event()
    errors: list[BaseException] = []

    def write() -> None:
        number = 0
        try:
            while not stop.is_set():
                number += 1
                store.upsert("n", [(f"w{number}", {"content": "x" * 300, "tokens": 1})], NOW)
                store.log_packet(make_packet(f"w{number}", {"m0": 1, "m1": 2}, session_id=f"{number % 7}"))
                store.report(UseReport(f"w{number}", used_memory_ids=("m1",)), NOW)
        except BaseException as error:
            errors.append(error)
            raise

    writers = [threading.Thread(target=write) for _ in range(1)]
    for writer in writers:
        writer.start()
    try:
        for number in range(5):
            acknowledged = store.namespace("n").memory_count
            made = store.backup(tmp_path / f"b{number}", NOW)
            assert made.memory_count >= acknowledged
    finally:
        stop.set()
        for writer in writers:
            writer.join()
    assert not errors
    for number in range(5):
        assert check(tmp_path / f"b{number}").findings == ()


def test_deleted_text_is_in_no_backup_nor_stays_in_a_restored_store(tmp_path: Path) -> None:
    """A backup holds no byte of what was deleted before it, and text that is deleted after a restore leaves the
    restored files as it leaves any store's."""
    with Store.open(tmp_path / "data", limits=Limits(scrub_idle=60, scrub_within=60)) as store:
        for round_ in range(6):
            texts = [(f"id{i * 7919 % 400}", {"content": f"MARK{round_}{i}X" * 20, "tokens": 1}) for i in range(400)]
            store.upsert("n", texts, NOW)
        store.upsert("n", [("gone", {"content": "SECRETWORD", "tokens": 1})], NOW)
        store.delete("n", ["gone"], NOW)
        store.backup(tmp_path / "backup", NOW)
    copied = (tmp_path / "backup" / DATABASE).read_bytes()
    assert b"SECRETWORD" not in copied
    assert b"MARK4" not in copied
    assert b"MARK5" in copied
    restore(tmp_path / "backup", tmp_path / "new", NOW)
    with Store.open(tmp_path / "new") as store:
        store.delete("n", [f"id{i}" for i in range(400)], NOW)
        store.settle()
        files = subprocess.run(["cat", *map(str, store.folder.iterdir())], capture_output=True, check=True).stdout
    assert b"MARK5" not in files


def test_only_the_owner_reads_a_backup(store: Store, tmp_path: Path) -> None:
    """Folder and files are closed to others, and the lock file is not copied."""
    store.backup(tmp_path / "deep" / "backup", NOW)
    folder = tmp_path / "deep" / "backup"
    assert names(folder) == [MANIFEST, DATABASE]
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert {stat.S_IMODE(path.stat().st_mode) for path in folder.iterdir()} == {0o600}


def test_nothing_is_overwritten(store: Store, tmp_path: Path) -> None:
    """A folder that holds anything, or a file, is refused by name; an empty folder is taken."""
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "mine.txt").write_text("mine")
    with pytest.raises(InvalidRequestError, match=r"path: .*not empty \(mine.txt\)"):
        store.backup(tmp_path / "full", NOW)
    assert names(tmp_path / "full") == ["mine.txt"]
    with pytest.raises(InvalidRequestError, match="is a file"):
        store.backup(tmp_path / "full" / "mine.txt", NOW)
    (tmp_path / "empty").mkdir()
    store.backup(tmp_path / "empty", NOW)
    with pytest.raises(InvalidRequestError, match="not empty"):
        store.backup(tmp_path / "empty", NOW)
    with pytest.raises(InvalidRequestError, match=r"data: .*not empty"):
        restore(tmp_path / "empty", tmp_path / "full", NOW)
    with pytest.raises(StoreLockedError):
        restore(tmp_path / "empty", store.folder, NOW)


def test_a_backup_that_nobody_waits_for_is_given_up(store: Store, make_packet: MakePacket, tmp_path: Path) -> None:
    """Once the caller is gone the copy ends, and leaves nothing behind."""
    fill(store, make_packet, 3000)
    with pytest.raises(DeadlineExceededError):
        store.backup(tmp_path / "backup", NOW, lambda: True)
    assert not (tmp_path / "backup").exists()
    store.backup(tmp_path / "backup", NOW)


def test_two_backups_do_not_run_at_once(store: Store, make_packet: MakePacket, tmp_path: Path) -> None:
    """While one is being made, another is refused and may be tried again."""
    fill(store, make_packet, 3000)
    refused = []

    def is_cancelled() -> bool:
        with pytest.raises(OverloadedError) as error:
            store.backup(tmp_path / "other", NOW)
        refused.append(error.value.reason)
        return False

    store.backup(tmp_path / "backup", NOW, is_cancelled)
    assert set(refused) == {"OVERLOADED"}
    assert not (tmp_path / "other").exists()


HALFWAY = """
import os, signal, sys
from pathlib import Path
from sidecar.store.store import Store
with Store.open(Path(sys.argv[1])) as store:
    looks = iter(range(int(sys.argv[3])))
    store.backup(Path(sys.argv[2]), 1, lambda: next(looks, None) is None and os.kill(os.getpid(), signal.SIGKILL))
"""


@pytest.mark.parametrize("looks", [0, 10])
def test_a_kill_halfway_leaves_no_backup(tmp_path: Path, make_packet: MakePacket, looks: int) -> None:
    """What a killed process leaves is refused as a backup, and the store is whole."""
    with Store.open(tmp_path / "data") as store:
        fill(store, make_packet, 3000)
    arguments = [str(tmp_path / "data"), str(tmp_path / "backup"), str(looks)]
    ran = subprocess.run([sys.executable, "-c", HALFWAY, *arguments], capture_output=True)
    assert ran.returncode == -9, ran.stderr
    assert MANIFEST not in names(tmp_path / "backup")
    assert DATABASE not in names(tmp_path / "backup")
    with pytest.raises(StoreDamagedError, match="no whole backup"):
        restore(tmp_path / "backup", tmp_path / "new", NOW)
    assert check(tmp_path / "data").findings == ()


FULL = """
import resource, sys
from pathlib import Path
from sidecar.errors import BackupFailedError
from sidecar.store.store import Store
with Store.open(Path(sys.argv[1])) as store:
    resource.setrlimit(resource.RLIMIT_FSIZE, (200_000, resource.RLIM_INFINITY))
    try:
        store.backup(Path(sys.argv[2]), 1)
    except BackupFailedError as error:
        print(error)
    resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
    store.upsert("n", [("after", {"content": "x", "tokens": 1})], 1)
"""


def test_a_backup_without_room_says_so(tmp_path: Path, make_packet: MakePacket) -> None:
    """A copy that does not fit is refused in words and removed, and the store goes on."""
    assert resource.RLIM_INFINITY in resource.getrlimit(resource.RLIMIT_FSIZE)
    with Store.open(tmp_path / "data") as store:
        fill(store, make_packet, 3000)
    ran = subprocess.run(
        [sys.executable, "-c", FULL, str(tmp_path / "data"), str(tmp_path / "backup")], capture_output=True, text=True
    )
    assert ran.returncode == 0, ran.stderr
    assert "room" in ran.stdout
    assert not (tmp_path / "backup").exists()
    assert check(tmp_path / "data").findings == ()


def test_a_damaged_backup_is_not_restored(store: Store, make_packet: MakePacket, tmp_path: Path) -> None:
    """One changed byte, a missing end, a missing or broken manifest: each is refused, and no store is made."""
    fill(store, make_packet)
    folder = tmp_path / "backup"
    store.backup(folder, NOW)
    whole, manifest = (folder / DATABASE).read_bytes(), (folder / MANIFEST).read_text()
    for damaged in (whole[:20_000] + b"?" + whole[20_001:], whole[: len(whole) // 2]):
        (folder / DATABASE).write_bytes(damaged)
        with pytest.raises(StoreDamagedError, match="SHA-256"):
            restore(folder, tmp_path / "new", NOW)
    (folder / DATABASE).write_bytes(whole)
    (folder / MANIFEST).write_text(manifest[:40])
    with pytest.raises(StoreDamagedError, match="cannot be read"):
        restore(folder, tmp_path / "new", NOW)
    (folder / MANIFEST).unlink()
    with pytest.raises(StoreDamagedError, match="missing"):
        restore(folder, tmp_path / "new", NOW)
    assert not (tmp_path / "new").exists()
    (folder / MANIFEST).write_text(manifest)
    restore(folder, tmp_path / "new", NOW)


@pytest.mark.parametrize(
    ("manifest", "words"),
    [
        ("[]", "it holds no JSON object"),
        ("nonsense", "it is no JSON"),
        ("[" * 100_000, "it is no JSON"),
        ('{"snapshot_time": "now"}', "snapshot_time is 'now'; must be a whole number"),
        (None, "its SHA-256 differs from the one in backup.json"),
    ],
)
def test_a_check_and_a_restore_tell_alike_what_is_wrong_with_a_backup(
    tmp_path: Path, manifest: str | None, words: str
) -> None:
    """A manifest that is none, in words; and a changed text, which every page that holds it hides."""
    with Store.open(tmp_path / "data") as store:
        store.upsert("n", [("a", {"content": "deploy on Tuesdays", "tokens": 1})], NOW)
        store.backup(tmp_path / "backup", NOW)
    assert check(tmp_path / "backup").findings == ()
    if manifest is None:
        database = tmp_path / "backup" / DATABASE
        database.write_bytes(database.read_bytes().replace(b"on Tuesdays", b"on Thursday"))
    else:
        (tmp_path / "backup" / MANIFEST).write_text(manifest)
    (finding,) = check(tmp_path / "backup").findings
    assert finding.fault is Fault.BACKUP
    assert words in finding.message
    with pytest.raises(StoreDamagedError, match=re.escape(words)):
        restore(tmp_path / "backup", tmp_path / "new" / "folder", NOW)
    assert not (tmp_path / "new").exists()
    with pytest.raises(InvalidRequestError, match="is a backup"):
        repair(tmp_path / "backup", NOW)


def test_a_backup_of_a_newer_version_is_refused(store: Store, tmp_path: Path) -> None:
    """A schema that this program does not know is named, also where the digest is right."""
    folder = tmp_path / "backup"
    store.backup(folder, NOW)
    with contextlib.closing(sqlite3.connect(folder / DATABASE)) as connection:
        connection.execute("PRAGMA user_version = 99")
    digest = subprocess.run(["sha256sum", folder / DATABASE], capture_output=True, text=True).stdout.split()[0]
    facts = json.loads((folder / MANIFEST).read_text())
    (folder / MANIFEST).write_text(json.dumps({**facts, "sha256": digest}))
    with pytest.raises(SchemaTooNewError, match="99"):
        restore(folder, tmp_path / "new", NOW)


def test_a_damaged_store_makes_no_backup(tmp_path: Path, make_packet: MakePacket) -> None:
    """Damage that a start did not meet ends a backup, in words that say what to do."""
    with Store.open(tmp_path / "data") as store:
        fill(store, make_packet, 2000)
    with (tmp_path / "data" / DATABASE).open("r+b") as file:
        file.seek(200_000)
        file.write(os.urandom(8_192))
    from sidecar.store.backup import write

    with pytest.raises((StoreDamagedError, BackupFailedError), match=r"damaged|does not hold together"):
        write(tmp_path / "data" / DATABASE, tmp_path / "backup", NOW)
    assert not (tmp_path / "backup").exists()
