"""Backups through the API."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from memoryranker.client import RankerRpcError

from sidecar.store.check import check
from tests.serving import Running, running


@pytest.mark.parametrize("path", ["", "backup", "./backup", "/" + "x" * 4_096, "/tmp/a\0b"])
def test_a_path_that_could_mean_anything_is_refused(running_server: Running, path: str) -> None:
    """The server writes, so the path is absolute; the field is named."""
    with pytest.raises(RankerRpcError) as refused:
        running_server.client.backup(path)
    assert refused.value.reason == "INVALID_REQUEST"
    assert [violation.field for violation in refused.value.violations] == ["path"]


def test_calls_go_on_while_backups_are_made(tmp_path: Path) -> None:
    """With one thread for calls, ranking and reports are answered between the start and the end of backups, and each
    backup is sound."""
    with running(tmp_path, threads=1) as server, ThreadPoolExecutor(1) as beside:
        client = server.client
        client.upsert("n", [{"id": f"m{n}", "content": f"memory {n} of deploys"} for n in range(200)])
        for number in range(3):
            backup = beside.submit(client.backup, str(tmp_path / f"backup{number}"))
            while not backup.done():
                packet = client.rank("n", "deploys")
                client.report_use(packet.packet_id, used=[packet.items[0].memory.id])
            assert backup.result().byte_count > 10_000
            assert check(tmp_path / f"backup{number}").findings == ()
