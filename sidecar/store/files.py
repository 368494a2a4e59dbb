"""The data folder: who may open it, where it may lie, and how its files reach the disk."""

from __future__ import annotations

import fcntl
import os
import re
import sys
from dataclasses import dataclass
from pathlib import Path

from sidecar.errors import StoreDamagedError, StoreLockedError, StoreUnavailableError

NETWORK_FILE_SYSTEMS = frozenset(
    {
        *("afs", "beegfs", "ceph", "cifs", "davfs", "glusterfs", "lustre", "ncpfs", "nfs", "nfs4", "smb3", "smbfs"),
        *("fuse.ceph", "fuse.davfs2", "fuse.gcsfuse", "fuse.glusterfs", "fuse.rclone", "fuse.s3fs", "fuse.sshfs"),
    }
)
"""File systems on which SQLite's write-ahead log is unsafe: its index is shared memory of one machine."""

DATABASE = "memories.db"
"""The SQLite database in the folder."""

LOCK = "lock"
"""The file in the folder on which the lock is held."""

_MADE = b"memories.db was made\n"
"""Second line of the lock file, below the holder's pid."""


@dataclass(frozen=True, slots=True)
class StoreFiles:
    """The paths of a store and the lock that is held on it. `was_made`: a database was made here before."""

    folder: Path
    lock: int
    was_made: bool

    @property
    def database(self) -> Path:
        """The SQLite database."""
        return self.folder / DATABASE

    @property
    def wal(self) -> Path:
        """Its write-ahead log."""
        return self.folder / "memories.db-wal"

    def sizes(self) -> tuple[int, int]:
        """Bytes of the database and of its write-ahead log."""
        return _size(self.database), _size(self.wal)

    def check_there(self) -> None:
        """Raises StoreDamagedError if there was a database and it is gone: SQLite would quietly begin a new one."""
        if self.was_made and not self.sizes()[0]:
            raise StoreDamagedError(
                f"{self.database} is {'empty' if self.database.exists() else 'missing'}, and there was a store in it;"
                f" put it back, restore a backup, or remove {self.folder / 'lock'} to begin with an empty store"
            )

    def note_made(self) -> None:
        """Remembers that there is a database from now on."""
        os.pwrite(self.lock, _lines(is_made=True), 0)
        sync_file(self.lock)

    def release(self) -> None:
        """Gives the lock back."""
        os.close(self.lock)


def make_folder(folder: Path) -> None:
    """Creates the folder of a store if it is missing, for its owner alone. Raises StoreUnavailableError."""
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        raise _unusable(folder, error) from error


def _unusable(folder: Path, error: OSError) -> StoreUnavailableError:
    if isinstance(error, FileExistsError):
        return StoreUnavailableError(f"the data folder {folder} is a file; name a folder with --data")
    return StoreUnavailableError(
        f"the data folder {folder} cannot be used: {error.strerror}; name a folder that this user may write to with"
        " --data"
    )


def claim(folder: Path) -> StoreFiles:
    """Creates the folder if it is missing (mode 0700) and takes its lock, which a killed process loses by itself.

    Raises StoreLockedError with the holder's pid, StoreUnavailableError if the folder cannot be used.
    """
    make_folder(folder)
    path = folder / LOCK
    try:
        lock = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
    except OSError as error:
        raise _unusable(folder, error) from error
    try:
        _refuse_network(folder)
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        was_made = os.pread(lock, 64, 0).endswith(_MADE)
        # Never shorter in between: who is killed here must not make the store forget that it was made.
        os.truncate(lock, os.pwrite(lock, _lines(is_made=was_made), 0))
    except BlockingIOError:
        holder = os.pread(lock, 64, 0).partition(b"\n")[0].decode("ascii", "replace").strip() or "unknown"
        os.close(lock)
        raise StoreLockedError(
            f"the store in {folder} is in use by the process with pid {holder}; talk to that server, stop it, or name"
            " another data folder with --data",
            pid=holder,
            path=str(folder),
        ) from None
    except BaseException:
        os.close(lock)
        raise
    if not _is_at(path, lock):
        # Who held it until now gave the folder up, and the file with it.
        os.close(lock)
        return claim(folder)
    return StoreFiles(folder, lock, was_made)


def _is_at(path: Path, descriptor: int) -> bool:
    try:
        return os.path.samestat(os.fstat(descriptor), path.stat())
    except FileNotFoundError:
        return False


def sync_file(descriptor: int) -> None:
    """Returns once everything written to the file is on the disk itself. OSError: it may not be."""
    if sys.platform == "darwin":
        fcntl.fcntl(descriptor, fcntl.F_FULLFSYNC)  # fsync alone leaves it in the drive's cache there
    else:
        os.fsync(descriptor)


def sync_folder(folder: Path) -> None:
    """Returns once the names of the files in the folder are on the disk."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        sync_file(descriptor)
    finally:
        os.close(descriptor)


def file_system(folder: Path, mountinfo: str) -> str:
    """The type of the file system that `folder` lies on, by the text of /proc/self/mountinfo; "" if none fits."""
    target = os.path.realpath(folder)
    best, found = -1, ""
    for line in mountinfo.splitlines():
        left, _, right = line.partition(" - ")
        fields, kinds = left.split(), right.split()
        if len(fields) < 5 or not kinds:
            continue
        mount = re.sub(r"\\([0-7]{3})", lambda octal: chr(int(octal[1], 8)), fields[4])
        # A later line hides an earlier one of the same mount point.
        if len(mount) >= best and (target == mount or target.startswith(mount.rstrip("/") + "/")):
            best, found = len(mount), kinds[0]
    return found


def _lines(*, is_made: bool) -> bytes:
    """What the lock file says: who holds it, padded so that one pid replaces another, and whether there is a store."""
    return f"{os.getpid():<10}\n".encode() + (_MADE if is_made else b"")


def _refuse_network(folder: Path) -> None:
    try:
        mountinfo = Path("/proc/self/mountinfo").read_text(encoding="utf-8", errors="surrogateescape")
    except FileNotFoundError:  # not Linux
        return
    kind = file_system(folder, mountinfo)
    if kind in NETWORK_FILE_SYSTEMS:
        raise StoreUnavailableError(
            f"the data folder {folder} lies on a network file system ({kind}), where the database is not safe; name a"
            " folder on a local disk"
        )


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except FileNotFoundError:
        return 0
