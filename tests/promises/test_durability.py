"""What is answered is kept, what is deleted is gone, and files that cannot be trusted are refused with a way out."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Generator
from pathlib import Path
from typing import Any

import pytest
from grpc_health.v1 import health_pb2, health_pb2_grpc
from grpc_reflection.v1alpha import reflection_pb2, reflection_pb2_grpc
from memoryranker.client import Client, RankerRpcError

from sidecar.domain import Micros
from sidecar.errors import StoreUnavailableError
from sidecar.lifecycle import Sidecar
from sidecar.store import files
from sidecar.store.store import Store
from tests.promises.parts import NOW, Held, with_parts
from tests.serving import WITHOUT_PRIVILEGES, channel_to, finished, process, running, settings_for
from tests.soaking import at_length

TAKEN = 7
"""Exit code of a server that cannot have its store or address."""


def start(folder: Path, listen: str = "", *through: str) -> subprocess.CompletedProcess[str]:
    """Starts a server that is expected to refuse; `through` a program that starts it."""
    environ = {key: value for key, value in os.environ.items() if not key.startswith("MEMORY_RANKER_")}
    command = ["-m", "sidecar.cli", "serve", "--data", str(folder), "--embedder", "none"]
    return subprocess.run(
        [sys.executable, *through, *command, "--listen", listen or f"unix:{folder.parent}/other"],
        env=environ,
        capture_output=True,
        text=True,
        timeout=60,
    )


@pytest.fixture(scope="module")
def stopped(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The data folder of a server that was stopped in order, with 300 memories in it."""
    folder = tmp_path_factory.mktemp("stopped")
    with running(folder, embedder="none") as server:
        server.client.upsert("n", [{"id": f"m{i}", "content": f"memory {i} " * 50} for i in range(300)])
    return folder / "data"


def overwrite(path: Path, offset: int, data: bytes) -> None:
    with path.open("r+b") as file:
        file.seek(offset)
        file.write(data)


DAMAGES: dict[str, Callable[[Path], None]] = {
    "cut to nothing": lambda path: os.truncate(path, 0),
    "cut within the first page": lambda path: os.truncate(path, 1_000),
    "cut to one page": lambda path: os.truncate(path, 4_096),
    "cut in half": lambda path: os.truncate(path, path.stat().st_size // 8_192 * 4_096),
    "header overwritten": lambda path: overwrite(path, 0, b"\xff" * 100),
    "page overwritten": lambda path: overwrite(
        path, path.read_bytes().index(b"memory 150 ") // 4_096 * 4_096, b"\xff" * 4_096
    ),
    "missing": lambda path: path.unlink(),
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_database_is_refused_with_a_way_out(stopped: Path, tmp_path: Path, damage: str) -> None:
    """The server does not start on it, says in one line what is wrong and what to do, and changes nothing: with the
    file put back it starts."""
    data = tmp_path / "data"
    shutil.copytree(stopped, data)
    path = data / "memories.db"
    whole = path.read_bytes()
    DAMAGES[damage](path)
    damaged = path.read_bytes() if path.exists() else None
    refused = start(data)
    assert refused.returncode == TAKEN
    (line,) = refused.stderr.strip().splitlines()
    assert "STORE_DAMAGED" in line
    assert "memories.db" in line
    assert "restore a backup" in line
    assert (path.read_bytes() if path.exists() else None) == damaged
    path.write_bytes(whole)
    with running(tmp_path, embedder="none") as server:
        assert server.client.status().memory_count == 300


def test_an_empty_store_may_be_begun_where_one_was_lost(stopped: Path, tmp_path: Path) -> None:
    """What the refusal says works: without its note of the lost store the folder begins anew."""
    data = tmp_path / "data"
    shutil.copytree(stopped, data)
    (data / "memories.db").unlink()
    assert f"remove {data}/lock to begin with an empty store" in start(data).stderr
    (data / "lock").unlink()
    with running(tmp_path, embedder="none") as server:
        assert server.client.status().memory_count == 0


def test_a_network_file_system_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A data folder on one is named with its type, and nothing is served."""
    mountinfo = Path("/proc/self/mountinfo")
    if not mountinfo.exists():
        pytest.skip("only Linux tells on which file system a folder lies")
    kind = files.file_system(tmp_path, mountinfo.read_text(encoding="utf-8", errors="surrogateescape"))
    monkeypatch.setattr(files, "NETWORK_FILE_SYSTEMS", frozenset({kind}))
    settings = settings_for(f"unix:{tmp_path}/socket", data=tmp_path / "data", embedder="none")
    with pytest.raises(StoreUnavailableError, match=rf"{tmp_path}/data lies on a network file system \({kind}\)"):
        Sidecar(settings).open()
    assert not (tmp_path / "socket").exists()


def test_a_second_server_is_refused_and_the_first_stays(tmp_path: Path) -> None:
    """On the same store or on the same socket the second one ends with one line, and the first is still reached."""
    with running(tmp_path, embedder="none") as server:
        server.client.upsert("n", [{"id": "m", "content": "text"}])
        for listen, words in ((f"unix:{tmp_path}/elsewhere", f"{tmp_path}/data"), (server.listen, server.listen)):
            second = start(tmp_path / "data", listen)
            assert second.returncode == TAKEN
            (line,) = second.stderr.strip().splitlines()
            assert "STORE_LOCKED" in line
            assert words in line
            assert server.client.rank("n", "text").items[0].memory.id == "m"
            with Client(server.listen) as fresh:
                assert fresh.get("n", "m").content == "text"


@pytest.mark.skipif(os.geteuid() == 0 and sys.platform != "linux", reason="root may write anywhere")
def test_a_folder_that_may_not_be_written_to_is_named(tmp_path: Path) -> None:
    """A read-only data folder, a read-only folder for the socket and a read-only database are refused by path."""
    shut, free = tmp_path / "shut", tmp_path / "free"
    with Store.open(shut / "there"):
        pass
    (shut / "there" / "memories.db").chmod(0o400)
    free.mkdir()
    shut.chmod(0o555)
    for data, listen in (
        (shut / "data", f"unix:{free}/socket"),
        (shut / "there", f"unix:{free}/socket"),
        (free / "data", f"unix:{shut}/socket"),
    ):
        refused = start(data, listen, "-c", WITHOUT_PRIVILEGES)
        assert refused.returncode == TAKEN, refused.stderr
        (line,) = refused.stderr.strip().splitlines()
        assert str(shut) in line
        assert "Permission denied" in line
    shut.chmod(0o755)


def watch(listen: str) -> Generator[int]:
    """Every state of health that the server tells, from before it is there."""
    with channel_to(listen) as channel:
        stub: Any = health_pb2_grpc.HealthStub(channel)
        for each in stub.Watch(health_pb2.HealthCheckRequest(), wait_for_ready=True, timeout=120):
            yield int(each.status)


def test_the_first_ranking_after_ready_knows_every_memory(tmp_path: Path) -> None:
    """A server that starts on a large store says SERVING when all of it is in memory, and not before."""
    count = at_length(100_000, 5_000)
    with Store.open(tmp_path / "data") as store:
        for first in range(0, count, 1_000):
            patches = [(f"m{i}", {"content": f"memory number {i}", "tokens": 3}) for i in range(first, first + 1_000)]
            store.upsert("n", patches, NOW)
    with process(tmp_path, MEMORY_RANKER_EMBEDDER="none") as (_, client):
        seen = []
        for state in watch(client.address):
            seen.append(state)
            if state == health_pb2.HealthCheckResponse.SERVING:
                break
        packet = client.rank("n", f"memory number {count - 1}", max_items=10, reserved_slots=0)
        assert packet.items[0].memory.id == f"m{count - 1}"
        assert len(packet.items) + sum(each.count for each in packet.left_out) == count
        assert set(seen[:-1]) <= {health_pb2.HealthCheckResponse.NOT_SERVING}


def test_it_is_not_ready_while_it_loads(tmp_path: Path) -> None:
    """While something that ranking needs is being loaded, health says NOT_SERVING and calls may be tried again."""
    loading, go_on = threading.Event(), threading.Event()

    class Slow(Held):
        """Takes its time to say who it is."""

        @property
        def fingerprint(self) -> str:  # type: ignore[override]
            loading.set()
            assert go_on.wait(60)
            return "slow"

    settings = settings_for(f"unix:{tmp_path}/socket", data=tmp_path / "data", embedder="none")
    sidecar = with_parts(embedder=Slow())(settings)
    opening = threading.Thread(target=sidecar.open)
    opening.start()
    try:
        assert loading.wait(20)
        with contextlib.closing(watch(f"unix:{tmp_path}/socket")) as states:
            assert next(states) == health_pb2.HealthCheckResponse.NOT_SERVING
            with Client(f"unix:{tmp_path}/socket", timeout=1) as client, pytest.raises(RankerRpcError) as caught:
                client.rank("n", "text")
            assert (caught.value.code.name, caught.value.reason) == ("UNAVAILABLE", "NOT_READY")
            go_on.set()
            assert next(states) == health_pb2.HealthCheckResponse.SERVING
    finally:
        go_on.set()
        opening.join()
        sidecar.close()


def test_a_restart_under_load_fails_no_call(tmp_path: Path) -> None:
    """SIGTERM while eight clients write, rank and report: every call that runs is answered, those that come later reach
    the next server, and all that was acknowledged is there."""
    over = threading.Event()
    failed: list[RankerRpcError] = []
    written: dict[str, str] = {}
    packets: list[str] = []

    def load(number: int) -> None:
        with Client(f"unix:{tmp_path}/socket", timeout=60, wait_for_ready=True) as client:
            step = 0
            while not over.is_set():
                step += 1
                try:
                    content = f"memory {number} {step}"
                    client.upsert("n", [{"id": f"m{number}-{step}", "content": content}])
                    written[f"m{number}-{step}"] = content
                    packet = client.rank("n", content)
                    packets.append(packet.packet_id)
                    client.report_use(packet.packet_id, [packet.items[0].memory.id])
                except RankerRpcError as error:
                    failed.append(error)

    threads = [threading.Thread(target=load, args=(number,)) for number in range(8)]
    for round_ in range(2):
        with process(tmp_path, MEMORY_RANKER_EMBEDDER="none") as (server, client):
            client.status()
            if not round_:
                for thread in threads:
                    thread.start()
            enough = len(packets) + 100
            while len(packets) < enough and not failed:
                client.status()
            server.send_signal(signal.SIGTERM)
            assert finished(server).returncode == 0
    with process(tmp_path, MEMORY_RANKER_EMBEDDER="none") as (_, client):
        client.status()
        over.set()
        for thread in threads:
            thread.join()
        assert failed == []
        assert {memory.id: memory.content for memory in client.list("n", page_size=1_000)} == written
        status = client.status("n").namespace
        assert (status.packet_count, status.reported_packet_count) == (len(packets), len(packets))


def test_idle_streams_do_not_hold_up_a_stop(tmp_path: Path) -> None:
    """Whoever watches health, or keeps a reflection stream, is told and cut off: the server does not wait for them as
    it waits for calls."""
    over = threading.Event()

    def ask_and_idle() -> Generator[reflection_pb2.ServerReflectionRequest]:
        yield reflection_pb2.ServerReflectionRequest(list_services="")
        over.wait()

    with process(tmp_path, MEMORY_RANKER_EMBEDDER="none", MEMORY_RANKER_DRAIN_SECONDS="100") as (server, client):
        client.status()
        with channel_to(client.address) as channel, contextlib.closing(watch(client.address)) as states:
            reflect: Any = reflection_pb2_grpc.ServerReflectionStub(channel)
            stream = reflect.ServerReflectionInfo(ask_and_idle())
            next(stream)
            assert next(states) == health_pb2.HealthCheckResponse.SERVING
            server.send_signal(signal.SIGTERM)
            assert next(states) == health_pb2.HealthCheckResponse.NOT_SERVING
            assert finished(server).returncode == 0
            over.set()


ASK = """
import json, sys
from memoryranker.client import Client
with Client(sys.argv[1], timeout=10) as client:
    client.upsert("n", [{"id": "m", "content": "text"}])
    print(json.dumps([client.rank("n", "text").items[0].memory.id, client.status().listen]))
"""


def test_a_proxy_for_the_web_is_not_asked(tmp_path: Path) -> None:
    """With http_proxy and the like set to something dead, and no no_proxy, client and commands reach 127.0.0.1."""
    settings = settings_for("127.0.0.1:0", data=tmp_path / "data", embedder="none")
    names = ("http_proxy", "https_proxy", "HTTP_PROXY", "HTTPS_PROXY", "all_proxy", "grpc_proxy")
    environ = {key: value for key, value in os.environ.items() if key.lower() not in ("no_proxy", "no_grpc_proxy")}
    environ |= dict.fromkeys(names, "http://127.0.0.1:9")
    with Sidecar(settings) as sidecar:
        asked = subprocess.run(
            [sys.executable, "-c", ASK, sidecar.listen], env=environ, capture_output=True, text=True, timeout=60
        )
        assert asked.returncode == 0, asked.stderr
        assert json.loads(asked.stdout) == ["m", sidecar.listen]
        environ["MEMORY_RANKER_LISTEN"] = sidecar.listen
        command = subprocess.run(
            [sys.executable, "-m", "sidecar.cli", "status", "--json"],
            env=environ,
            capture_output=True,
            text=True,
            timeout=60,
        )
        assert command.returncode == 0, command.stderr
        assert json.loads(command.stdout)


def test_two_hosts_clocks_agree_on_ages(tmp_path: Path) -> None:
    """Times are UTC wherever the server runs: what was written under one time zone has the same age under another."""
    times: dict[str, Micros] = {}
    for zone in ("Asia/Tokyo", "UTC", "America/New_York"):
        with process(tmp_path, MEMORY_RANKER_EMBEDDER="none", TZ=zone) as (_, client):
            client.upsert("n", [{"id": zone, "content": "text"}])
            times[zone] = client.get("n", zone).create_time.ToMicroseconds()
            assert abs(times[zone] / 1e6 - time.time()) < 60
