"""Claims the address to serve on: one server an address, and a socket that only its owner, or its group, may use.

gRPC itself unlinks whatever lies at a socket's path, also the socket of a server that is alive. So a lock file beside
the socket is taken first, and held for life; only its holder removes a socket, and only one that nobody answers on.
"""

from __future__ import annotations

import fcntl
import os
import socket
import stat
from collections.abc import Callable
from pathlib import Path
from urllib.parse import quote

from sidecar.errors import ListenError, StoreLockedError


class Address:
    """A claimed address. `listen` is what clients use: unix:PATH or HOST:PORT, with the port that was really bound."""

    def __init__(self, listen: str, bind: Callable[[str], int], *, for_group: bool = False) -> None:
        """Claims the address and binds it with `bind`, which takes gRPC's name of it and returns the port. A socket is
        its owner's alone, or also the group's of its folder.

        Raises StoreLockedError if another server holds it, ListenError if it cannot be had.
        """
        self._lock: int | None = None
        self._path: Path | None = None
        if not listen.startswith("unix:"):
            port = _bound(bind, listen, listen)
            self.listen = f"{listen.rpartition(':')[0]}:{port}"
            return
        path = Path(listen.removeprefix("unix:"))
        self.listen = listen
        self._lock = _take_lock(path)
        try:
            _remove_stale(path)
            before = os.umask(0o117 if for_group else 0o177)
            try:
                _bound(bind, f"unix:{quote(str(path))}", listen)
            finally:
                os.umask(before)
        except BaseException:
            os.close(self._lock)
            raise
        self._path = path

    def close(self) -> None:
        """Removes the socket and lets the address go. The lock file stays: removing it would let two servers in."""
        if self._path is not None:
            self._path.unlink(missing_ok=True)
            self._path = None
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None


def _bound(bind: Callable[[str], int], name: str, listen: str) -> int:
    try:
        return bind(name)
    except RuntimeError as error:
        raise ListenError(
            f"listen is {listen}: it cannot be bound; is something else serving there? Choose another with --listen"
        ) from error


def _take_lock(path: Path) -> int:
    lock = path.with_name(path.name + ".lock")
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        handle = os.open(lock, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    except OSError as error:
        raise ListenError(
            f"listen is unix:{path}: nothing can be made in its folder ({error.strerror}), which must be writable; "
            "name another address with --listen, or another folder with --data where the address follows from that"
        ) from error
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        os.close(handle)
        raise StoreLockedError(
            f"listen is unix:{path}: another server is serving there (it holds {lock}); stop it, or choose another "
            "address with --listen"
        ) from error
    return handle


def _remove_stale(path: Path) -> None:
    """Removes a socket that a killed server left behind; refuses anything else that lies there."""
    try:
        mode = path.lstat().st_mode
    except FileNotFoundError:
        return
    if not stat.S_ISSOCK(mode):
        raise ListenError(f"listen is unix:{path}: what is there is no socket; remove it, or choose another address")
    with socket.socket(socket.AF_UNIX) as probe:
        try:
            probe.connect(str(path))
        except OSError:
            path.unlink()
            return
    raise StoreLockedError(
        f"listen is unix:{path}: another program is serving there; stop it, or choose another address with --listen"
    )
