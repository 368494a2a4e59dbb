"""The files of an artifact in a folder and in a tar archive. Knows sizes and names, not what the files say."""

from __future__ import annotations

import io
import os
import re
import shutil
import stat
import tarfile
import tempfile
from collections.abc import Mapping
from pathlib import Path

from sidecar.errors import ModelRefusedError

MAX_ARCHIVE_BYTES = 4 * 1024 * 1024
MAX_FILES = 32
MAX_BYTES = MAX_ARCHIVE_BYTES - 64 * 1024
"""Of all files together; what is left is the archive's own."""

_NAME = re.compile(r"[a-zA-Z0-9_][a-zA-Z0-9._-]{0,63}")


def read_files(path: Path) -> dict[str, bytes]:
    """The files of an artifact by name, from a folder or a tar archive. Raises ModelRefusedError."""
    try:
        if path.is_dir():
            return _of_folder(path)
        if path.stat().st_size > MAX_ARCHIVE_BYTES:
            raise _too_large(path.stat().st_size)
        return files_of(path.read_bytes())
    except OSError as error:
        raise ModelRefusedError([f"{path} cannot be read: {error.strerror}"]) from error


def files_of(archive: bytes) -> dict[str, bytes]:
    """The files of a tar archive by name. Nothing is written anywhere. Raises ModelRefusedError."""
    if len(archive) > MAX_ARCHIVE_BYTES:
        raise _too_large(len(archive))
    files: dict[str, bytes] = {}
    try:
        # Without compression, so that what comes in is no larger than what was sent.
        with tarfile.open(fileobj=io.BytesIO(archive), mode="r:") as tar:
            for member in tar:
                name = member.name.removeprefix("./")
                if member.isdir() and name in ("", "."):
                    continue
                if not member.isfile():
                    raise ModelRefusedError([f"the archive holds {member.name!r}, which is not a plain file"])
                content = tar.extractfile(member)
                assert content is not None
                _take(files, name, content.read())
    except (tarfile.TarError, EOFError, ValueError) as error:
        raise ModelRefusedError([f"the archive is no uncompressed tar archive, or is cut off ({error})"]) from error
    return files


def archive_of(files: Mapping[str, bytes]) -> bytes:
    """The files as a tar archive, the same bytes for the same files."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w", format=tarfile.USTAR_FORMAT) as tar:
        for name in sorted(files):
            entry = tarfile.TarInfo(name)
            entry.size, entry.mode = len(files[name]), 0o644
            tar.addfile(entry, io.BytesIO(files[name]))
    return buffer.getvalue()


def write_files(files: Mapping[str, bytes], folder: Path) -> None:
    """Writes the files into a new folder, which is there with all of them or not at all.

    Raises FileExistsError if `folder` exists and is not empty, and OSError.
    """
    folder.parent.mkdir(parents=True, exist_ok=True)
    made = Path(tempfile.mkdtemp(prefix=f".{folder.name}.", dir=folder.parent))
    try:
        made.chmod(0o755)
        for name, content in files.items():
            with (made / name).open("xb") as file:
                file.write(content)
                file.flush()
                os.fsync(file.fileno())
        os.rename(made, folder)  # refused if a folder is there that holds anything
    except BaseException:
        shutil.rmtree(made)
        raise
    for each in (folder, folder.parent):
        descriptor = os.open(each, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def _of_folder(folder: Path) -> dict[str, bytes]:
    files: dict[str, bytes] = {}
    total = 0
    for entry in sorted(folder.iterdir()):
        about = entry.lstat()
        if not stat.S_ISREG(about.st_mode):
            raise ModelRefusedError([f"{entry.name!r} is not a plain file"])
        total += about.st_size
        if total > MAX_BYTES:
            raise _too_large(total)
        _take(files, entry.name, entry.read_bytes())
    return files


def _take(files: dict[str, bytes], name: str, content: bytes) -> None:
    if not _NAME.fullmatch(name):
        raise ModelRefusedError([f"{name!r} is no file name that an artifact may have"])
    if name in files:
        raise ModelRefusedError([f"{name!r} is there twice"])
    files[name] = content
    if len(files) > MAX_FILES:
        raise ModelRefusedError([f"there are more than {MAX_FILES} files"])
    if sum(map(len, files.values())) > MAX_BYTES:
        raise _too_large(sum(map(len, files.values())))


def _too_large(size: int) -> ModelRefusedError:
    return ModelRefusedError([f"it holds {size:,} bytes; at most {MAX_BYTES:,} in its files"])
