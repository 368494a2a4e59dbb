import json
import os
import signal
import sqlite3
import subprocess
import sys
from pathlib import Path
from random import Random

from sidecar.domain import UseCounts
from sidecar.store.store import Store

WRITER = Path(__file__).with_name("crashing_writer.py")
CYCLES = 6


def test_what_was_answered_survives_kill_9(tmp_path: Path) -> None:
    """However a server is killed, again and again on one store: every memory, delete, packet, report and rating that
    it had answered is there, the sums of use agree with the reports, and the database is whole."""
    folder = tmp_path / "data"
    random = Random(1)
    memories: dict[str, str | None] = {}
    packets: set[str] = set()
    reported: set[str] = set()
    rated: set[str] = set()
    for cycle in range(CYCLES):
        with subprocess.Popen(
            [sys.executable, str(WRITER), str(folder), str(cycle)], stdout=subprocess.PIPE, text=True
        ) as process:
            assert process.stdout is not None
            lines = random.randint(1, 120)
            for number, line in enumerate(process.stdout):
                if number == lines:
                    os.kill(process.pid, signal.SIGKILL)
                if not line.endswith("\n"):
                    break
                word, name, *text = json.loads(line)
                if word == "memory":
                    memories[name] = text[0]
                elif word == "deleting":
                    del memories[name]  # until it is answered, both are right
                elif word == "deleted":
                    memories[name] = None
                else:
                    {"packet": packets, "report": reported, "rated": rated}[word].add(name)
        assert process.returncode == -signal.SIGKILL
        with Store.open(folder) as store:
            found = {memory.id: memory for memory in store.load("n").memories}
            for name, content in memories.items():
                assert (found[name].content if name in found else None) == content
            for packet_id in packets:
                logged = store.get_packet("n", packet_id)
                assert len(logged.packet.items) == 2
                assert [use.used for use in logged.uses] == [True, False] or packet_id not in reported
            assert all(found[name].helpful == 1 for name in rated if name in found)
            kept = {key: counts for key, counts in store.load("n").uses.items() if counts != UseCounts()}
            assert kept == store.use_counts_as_of("n", 2**60)
            version = store.namespace("n").score_version
        with Store.open(folder) as store:
            assert store.namespace("n").score_version == version
        connection = sqlite3.connect(folder / "memories.db")
        assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)
        connection.close()
    assert min(len(memories), len(packets), len(reported), len(rated)) > 3
