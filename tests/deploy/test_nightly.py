"""The nightly script as a process, with commands that never end by themselves."""

from __future__ import annotations

import os
import signal
import subprocess
from pathlib import Path

import pytest

from tests.deploy import files

ENDLESS = """#!/bin/sh
echo $$ "$1" > "$STARTED"
if [ "$1" = "$ENDLESS" ]; then exec tail -f /dev/null; fi
"""


@pytest.mark.parametrize("command", ["rescore", "train", "promote"])
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_stop_ends_the_script_and_what_it_runs(tmp_path: Path, command: str, number: signal.Signals) -> None:
    """At once and with 0, whichever command is at work; that command is ended too."""
    started = tmp_path / "started"
    os.mkfifo(started)
    for name, text in (("memory-ranker", ENDLESS), ("sleep", "#!/bin/sh\n")):
        (tmp_path / name).write_text(text, encoding="utf-8")
        (tmp_path / name).chmod(0o755)
    environ = {
        "PATH": f"{tmp_path}:{os.environ['PATH']}",
        "MEMORY_RANKER_DATA": str(tmp_path),
        "STARTED": str(started),
        "ENDLESS": command,
    }
    # Tests that run in the background of a shell ignore SIGINT, and a shell cannot trap what it was told to ignore.
    shell = ["env", "--default-signal=INT", "/bin/sh", str(files.NIGHTLY)]
    # Open for writing too, or what a command writes between two readings would be lost.
    with started.open("r+b", buffering=0) as lines, subprocess.Popen(shell, env=environ) as script:
        try:
            at_work = ""
            while at_work != command:
                child, at_work = lines.readline().decode().split()
            script.send_signal(number)
            assert script.wait(30) == 0
        finally:
            script.kill()
    with pytest.raises(ProcessLookupError):
        os.kill(int(child), 0)
