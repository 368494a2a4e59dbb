"""The server is killed with SIGKILL, again and again, while callers write, rank, report, rate and delete."""

from __future__ import annotations

import os
import shutil
import signal
import sqlite3
import subprocess
import sys
import threading
from pathlib import Path
from random import Random
from typing import Any

import pytest
from memoryranker.client import Client
from memoryranker.v1 import ranker_pb2, ranker_pb2_grpc

from sidecar.ranking.ranker import Ranker
from sidecar.retrieval.embedders import NoEmbedder
from sidecar.retrieval.namespaces import Namespaces
from sidecar.rpc.incoming import read_rank
from sidecar.store.store import Store
from sidecar.weights import WeightsHolder
from tests.crash.load import NAMESPACE, Caller, Told
from tests.promises.parts import Clock
from tests.serving import channel_to, process, wait_until_scored
from tests.soaking import at_length

CYCLES = at_length(100, 25)
"""For each of the two parts."""
CALLERS = 5
LATER = "2100-01-01T00:00:00Z"


def code_of(caller: Caller) -> str | None:
    """The code that a caller's last call failed with."""
    ended: Any = caller.ended
    return None if ended is None else str(ended.code().name)


def served(packet: Any) -> list[tuple[str, str, float, list[float]]]:
    """What a packet shows, for comparison to the last bit."""
    return [(each.memory.id, each.memory.content, each.score, list(each.contributions)) for each in packet.items]


def rank_as_of_later(client: Client) -> Any:
    """A packet that time does not change."""
    request = ranker_pb2.RankRequest(namespace=NAMESPACE, task="word1 word2 word3", max_items=200, dry_run=True)
    request.as_of_time.FromJsonString(LATER)
    with channel_to(client.address) as channel:
        return request, ranker_pb2_grpc.RankerServiceStub(channel).Rank(request, timeout=30)


def check_against_store(copy: Path, request: Any, packet: Any) -> None:
    """What the server served from the snapshot that it had moved on, change by change, is what a snapshot says that is
    built from the store alone; and the database is whole."""
    with Store.open(copy) as store:
        clock = Clock()
        ranker = Ranker(store, Namespaces(store.load), NoEmbedder(), WeightsHolder("default"), clock)
        answer = ranker.rank(read_rank(request, 0, clock()), lambda: None)
        assert served(packet) == [
            (each.memory_id, answer.memories[each.memory_key].content, each.score, list(each.contributions))
            for each in answer.packet.items
        ]
        assert packet.score_version == answer.packet.score_version
        kept = {key: counts for key, counts in store.load(NAMESPACE).uses.items() if counts.seen or counts.used}
        assert kept == {
            key: counts
            for key, counts in store.use_counts_as_of(NAMESPACE, 2**60).items()
            if counts.seen or counts.used
        }
    connection = sqlite3.connect(copy / "memories.db")
    assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)
    connection.close()


def check_told(client: Client, told: list[Told], random: Random) -> None:
    """Everything that a caller was told is so; a write that was not answered happened as a whole or not at all."""
    found = {memory.id: memory for memory in client.list(NAMESPACE, page_size=1_000)}
    for each in told:
        now = {memory_id: found[memory_id].content for memory_id in each.in_doubt if memory_id in found}
        then = {memory_id: each.contents[memory_id] for memory_id in each.in_doubt if memory_id in each.contents}
        wanted = {memory_id: content for memory_id, content in each.in_doubt.items() if content is not None}
        assert now in (then, wanted)
        for memory_id in each.in_doubt:
            each.contents.pop(memory_id, None)
        each.contents |= now
        each.in_doubt = {}
    assert {memory.id: memory.content for memory in found.values()} == {
        memory_id: content for each in told for memory_id, content in each.contents.items()
    }
    for each in told:
        assert all(found[memory_id].ratings.helpful == 1 for memory_id in each.helpful if memory_id in each.contents)
        newest = list(each.packets)[-4:]
        for packet_id in {*newest, *random.sample(list(each.packets), min(2, len(each.packets)))}:
            logged = client.get_packet(NAMESPACE, packet_id)
            assert [item.memory.id for item in logged.packet.items] == each.packets[packet_id]
            used = {use.memory_id for use in logged.uses if use.used}
            assert packet_id not in each.uses or each.uses[packet_id] in used
    status = client.status(NAMESPACE).namespace
    assert status.packet_count >= sum(len(each.packets) for each in told)
    assert status.reported_packet_count >= sum(len(each.uses) for each in told)


@pytest.mark.timeout(at_length(1_800, 300))
@pytest.mark.parametrize("part", [0, 1])
def test_what_was_acknowledged_survives_kill_9(tmp_path: Path, part: int) -> None:
    """After each kill all acknowledged memories, changes, deletes, ratings and reports are there and nothing else is,
    returned packet ids are known, retries are recognised, and the index is as one built from the store."""
    random = Random(part)
    told = [Told() for _ in range(CALLERS)]
    answers = 0
    for cycle in range(CYCLES):
        heard, over = threading.Semaphore(0), threading.Event()
        callers = [Caller(i, cycle, each, heard) for i, each in enumerate(told)]
        with (
            process(tmp_path, MEMORY_RANKER_EMBEDDER="none") as (server, client),
            channel_to(client.address) as channel,
        ):
            check_told(client, told, random)
            threads = [threading.Thread(target=caller.run, args=(channel, over)) for caller in callers]
            for thread in threads:
                thread.start()
            for _ in range(wanted := random.randint(1, 60)):
                assert heard.acquire(timeout=60), "the callers are stuck"
            answers += wanted
            if cycle % 5 == 4:  # in between at rest, to compare what was served with what was stored
                over.set()
                for thread in threads:
                    thread.join()
                wait_until_scored(client, NAMESPACE)
                request, packet = rank_as_of_later(client)
            server.send_signal(signal.SIGKILL)
            assert server.wait(30) == -signal.SIGKILL
            for thread in threads:
                thread.join()
            assert {code_of(caller) for caller in callers} <= {None, "UNAVAILABLE", "CANCELLED"}
        if cycle % 5 == 4:
            shutil.copytree(tmp_path / "data", tmp_path / f"copy{cycle}")
            check_against_store(tmp_path / f"copy{cycle}", request, packet)
    with process(tmp_path, MEMORY_RANKER_EMBEDDER="none") as (_, client):
        check_told(client, told, random)
    assert answers > 10 * CYCLES


def test_a_first_start_may_be_killed_at_any_moment(tmp_path: Path) -> None:
    """Wherever in making the folder, the database and its schema the kill falls, the next start serves."""
    random = Random(3)
    environ = {key: value for key, value in os.environ.items() if not key.startswith("MEMORY_RANKER_")}
    for number in range(at_length(40, 6)):
        folder = tmp_path / str(number)
        command = ["-m", "sidecar.cli", "serve", "--data", str(folder / "data"), "--embedder", "none"]
        server = subprocess.Popen(
            [sys.executable, *command, "--listen", f"unix:{folder}/socket"],
            env=environ,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        try:
            server.wait(random.uniform(0.2, 1.2))
        except subprocess.TimeoutExpired:
            server.kill()
        assert server.wait(10) == -signal.SIGKILL
        with process(folder, MEMORY_RANKER_EMBEDDER="none") as (_, client):
            client.upsert(NAMESPACE, [{"id": "m", "content": "text"}])
            assert client.rank(NAMESPACE, "text").items[0].memory.id == "m"
