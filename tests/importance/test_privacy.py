"""Importance keeps to itself: no word of a memory in the log at any level, and no socket but the one that was given."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from memoryranker.client import Client, RankerRpcError

from tests.serving import finished, process

SECRET = "Zanzibarquelle"
"""Stands in every text that is sent."""
TEXTS = (
    f"I love the password of {SECRET}: hunter2-{SECRET}",
    f"The port of {SECRET} is 5432",
    f"The port of {SECRET} is 6543",
    f"{SECRET}라는 서버를 반드시 재시작해야 한다",
)


def everything(client: Client) -> None:
    """Every call that scores importances: texts, stored memories, a contradiction, a rating, a bad subject."""
    client.upsert("ns", [{"id": f"m{n}", "content": text, "subject": SECRET} for n, text in enumerate(TEXTS)])
    client.upsert("ns", [{"id": "rated", "content": TEXTS[0], "importance_override": 0.9}])
    client.rate("ns", "m1", "helpful")
    subjects = [{"memory": {"id": "", "content": text}, "emotion": 0.5} for text in TEXTS]
    subjects += [{"memory": {"id": f"m{n}"}} for n in range(len(TEXTS))]
    subjects += [{"memory": {"id": "", "content": SECRET}, "user_rating": 7.0}]
    found = client.score_importance("ns", subjects, goals=[f"the port of {SECRET}"]).results
    assert [bool(each.status.code) for each in found] == [False] * 8 + [True]
    with pytest.raises(RankerRpcError):
        client.score_importance("", [{"memory": {"id": "", "content": SECRET}}])
    client.rescore(apply=True)
    client.audit(importance=True)


@pytest.mark.parametrize("form", ["text", "json"])
def test_no_word_of_a_memory_is_logged(tmp_path: Path, form: str) -> None:
    """Not even at the level debug, in either form, with emotion switched on."""
    environ = {
        "MEMORY_RANKER_LOG_LEVEL": "debug",
        "MEMORY_RANKER_LOG_FORMAT": form,
        "MEMORY_RANKER_EMOTION_NAMESPACES": "ns",
    }
    with process(tmp_path, **environ) as (server, client):
        everything(client)
        server.terminate()
        done = finished(server)
    logged = done.stdout + done.stderr
    assert logged.count("\n") >= 2
    for word in re.findall(r"\w{5,}", " ".join(TEXTS)):
        # Words that the log has of its own say nothing.
        if word not in ("server",):
            assert word not in logged


@pytest.mark.skipif(sys.platform != "linux", reason="sockets of a process are listed by Linux alone")
def test_no_socket_is_open_but_the_one_that_was_given(tmp_path: Path) -> None:
    """While and after importances are scored the server has Unix sockets alone, and none of its own on any network."""
    with process(tmp_path, MEMORY_RANKER_EMOTION_NAMESPACES="ns") as (server, client):
        everything(client)
        sockets = open_sockets(server)
        networks = {
            row.split()[9]
            for table in ("tcp", "tcp6", "udp", "udp6")
            for row in Path(f"/proc/{server.pid}/net/{table}").read_text().splitlines()[1:]
        }
        assert sockets
        assert not sockets & networks


def open_sockets(server: subprocess.Popen[str]) -> set[str]:
    """The inodes of all sockets that the process has open."""
    found = set()
    for each in Path(f"/proc/{server.pid}/fd").iterdir():
        try:
            target = os.readlink(each)
        except FileNotFoundError:  # closed meanwhile
            continue
        if match := re.fullmatch(r"socket:\[(\d+)\]", target):
            found.add(match[1])
    return found
