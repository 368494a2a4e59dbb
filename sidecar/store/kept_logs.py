"""Damaged write-ahead logs: kept beside the database before SQLite overwrites what stands behind the damage."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from sidecar.plurals import counted
from sidecar.store.files import StoreFiles, sync_folder
from sidecar.store.wal import HEADER_BYTES, Break, find_break

NAME = "memories.db-wal.damaged-"
"""What the names of kept logs begin with; the log's salt follows."""


@dataclass(frozen=True, slots=True)
class KeptLog:
    """A log that was kept, and in words what is the matter."""

    path: Path
    words: str


def keep(files: StoreFiles) -> None:
    """Copies the log aside if commits in it are cut off, once. To be called with the store's lock, before anything is
    written. Raises OSError: then the store must not be written to."""
    if find_break(files.wal) is None:
        return
    with files.wal.open("rb") as file:
        salt = file.read(HEADER_BYTES)[16:24]
    path = files.folder / f"{NAME}{salt.hex()}"
    if path.exists():
        return
    partial = path.with_name(f".{path.name}.partial")
    partial.unlink(missing_ok=True)
    with (
        files.wal.open("rb") as source,
        open(os.open(partial, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600), "wb") as target,
    ):
        shutil.copyfileobj(source, target)
        target.flush()
        os.fsync(target.fileno())
    partial.rename(path)
    sync_folder(files.folder)


def kept(folder: Path) -> Iterator[KeptLog]:
    """What was kept, whenever that was. Raises OSError."""
    for path in sorted(folder.glob(f"{NAME}*")):
        found = find_break(path)
        where = cut_off(found) if found else "it cannot be read"
        yield KeptLog(
            path,
            f"the write-ahead log was damaged when the store was opened ({where}), so writes that had been answered are"
            f" lost; the log is kept in {path}. Restore a backup or write them again, then remove that file",
        )


def cut_off(found: Break) -> str:
    """Where the log breaks off, and what is behind."""
    where = f"frame {found.frame}" if found.frame else "its header"
    behind = f"{counted(found.commits, 'commit')} in {counted(found.frames, 'frame')}"
    return f"{where} cannot be read, and {behind} behind it cannot be reached"
