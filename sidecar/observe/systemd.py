"""Tells systemd, or whoever else supervises the process by its protocol, how the server stands (see sd_notify(3))."""

from __future__ import annotations

import logging
import socket
from collections.abc import Mapping

logger = logging.getLogger(__name__)

READY = "READY=1"
STOPPING = "STOPPING=1"
SECONDS = 5.0
"""How long a supervisor that does not read may hold the server up."""


def tell(state: str, environ: Mapping[str, str]) -> None:
    """Sends READY or STOPPING to the socket that NOTIFY_SOCKET names; without one nobody asked. A supervisor that
    cannot be told is a warning: it decides for itself what follows from hearing nothing."""
    name = environ.get("NOTIFY_SOCKET", "")
    if not name:
        return
    try:
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as supervisor:
            supervisor.settimeout(SECONDS)
            # A name that begins with @ lies in no folder: that is its first byte's way of being 0.
            supervisor.connect("\0" + name[1:] if name.startswith("@") else name)
            supervisor.sendall(state.encode())
    except OSError as error:
        logger.warning("NOTIFY_SOCKET is %s, which cannot be told %s (%s)", name, state, error)
