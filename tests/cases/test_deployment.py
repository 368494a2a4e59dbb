"""Faults of the surroundings that a server is put into."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from memoryranker.client import Client

from tests.serving import TELLING, finished

# In mounts of its own: nothing can be written but the folder named first, and root has no privileges any more.
READ_ONLY_ROOT = """
set -e
mount --make-rprivate /
mount --bind "$1" "$1"
for place in /tmp /var/tmp /dev/shm /run; do
    if mountpoint -q "$place"; then mount -o remount,bind,ro "$place"; fi
done
mount -o remount,bind,ro /
mount -o remount,bind,rw "$1"
shift
if touch /tmp/probe 2>/dev/null; then echo "the root is not read-only" >&2; exit 99; fi
exec setpriv --inh-caps=-all --bounding-set=-all "$@"
"""


def may_mount() -> bool:
    tools = all(map(shutil.which, ("unshare", "setpriv", "mountpoint")))
    return tools and subprocess.run(["unshare", "-m", "true"], capture_output=True, check=False).returncode == 0


@pytest.mark.skipif(not may_mount(), reason="needs the right to make mounts of its own")
def test_dp_04_a_read_only_root_is_enough(tmp_path: Path) -> None:
    """Without a home, a temporary folder or any place to write to but the data folder, a server starts, stores, ranks,
    takes a report, makes a backup there and stops in order."""
    data, at = tmp_path / "data", f"unix:{tmp_path}/data/memory-ranker.sock"
    data.mkdir(mode=0o700)
    command = [sys.executable, "-m", "sidecar.cli", "serve", "--data", str(data)]
    with (tmp_path / "log").open("w+") as log:
        server = subprocess.Popen(
            ["unshare", "-m", "sh", "-c", READ_ONLY_ROOT, "sh", str(data), *command],
            env={"PATH": os.environ["PATH"], "LANG": "C.UTF-8", **TELLING},
            stderr=log,
            text=True,
        )
        try:
            with Client(at, timeout=60, wait_for_ready=True) as client:
                client.upsert("kim", [{"id": "m", "content": "the ferry leaves at nine"}])
                packet = client.rank("kim", "when does the ferry leave?")
                assert [item.memory.id for item in packet.items] == ["m"]
                assert [degradation.reason for degradation in packet.degradations] == []
                client.report_use(packet.packet_id, ["m"])
                client.backup(str(data / "backup"))
                assert (data / "backup" / "backup.json").is_file()
            server.send_signal(signal.SIGTERM)
            assert finished(server).returncode == 0
        finally:
            server.kill()
            server.wait()
            log.seek(0)
            print(log.read())
