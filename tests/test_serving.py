"""What starts and ends processes for tests: one that hangs is ended, and tells where it stood."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.serving import TELLING, finished, process

HANGS = """
import threading
def waits_for_ever():
    threading.Lock().acquire()
    print("here", flush=True)
    threading.Event().wait()
waits_for_ever()
"""


@pytest.mark.parametrize("own_session", [False, True])
def test_a_process_that_hangs_is_aborted_and_shows_its_stacks(own_session: bool) -> None:
    """Within its limit; the function that it stood in is in what is shown."""
    hanging = subprocess.Popen(
        [sys.executable, "-c", HANGS],
        env={**os.environ, **TELLING},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=own_session,
    )
    assert hanging.stdout is not None
    hanging.stdout.readline()
    with pytest.raises(AssertionError, match="waits_for_ever"):
        finished(hanging, within=0.1)
    assert hanging.returncode == -signal.SIGABRT


def test_a_test_that_fails_shows_where_its_server_stood(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Whatever ended the test, also pytest's own limit."""
    servers = []

    def fail() -> None:
        with process(tmp_path, MEMORY_RANKER_EMBEDDER="none") as (server, client):
            servers.append(server)
            client.status()
            raise KeyError

    with pytest.raises(KeyError):
        fail()
    assert servers[0].returncode == -signal.SIGABRT
    assert 'lifecycle.py", line' in capsys.readouterr().out
