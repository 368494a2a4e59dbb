"""How a server's process runs while it serves."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

LOOKS = """
import gc, os, signal, sys, threading
from pathlib import Path
import sidecar.cli
from sidecar import lifecycle
from sidecar.cli.settings import resolved
from sidecar.observe import systemd

def tell(what, environment):
    if what == systemd.READY:
        print(sys.getswitchinterval() <= 0.001, gc.isenabled(), gc.get_freeze_count() > 10_000)
        os.kill(os.getpid(), signal.SIGTERM)

systemd.tell = tell
gc.disable()
folder = sys.argv[1]
lifecycle.run(resolved(None, {"listen": f"unix:{folder}/s", "data": Path(folder) / "data"}).settings)
"""


def test_a_server_hands_pythons_lock_over_soon_and_collects_garbage_that_came_after_its_start(tmp_path: Path) -> None:
    """By the time it says that it is ready: threads wait a millisecond at most for one that computes, garbage in cycles
    is collected, and what the start has made is not gone through for it."""
    done = subprocess.run(
        [sys.executable, "-c", LOOKS, str(tmp_path)], capture_output=True, text=True, timeout=60, check=True
    )
    assert done.stdout.split() == ["True", "True", "True"]
