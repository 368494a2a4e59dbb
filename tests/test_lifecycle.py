"""The server's life, in processes of its own: start, readiness, stop, kill, and what keeps a start from happening."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest
from grpc_health.v1 import health_pb2, health_pb2_grpc
from memoryranker.client import Client, RankerRpcError

from sidecar.config import Settings, resolve
from sidecar.errors import EmbedderMismatchError, SettingsError, StoreLockedError, StoreUnavailableError
from sidecar.lifecycle import Sidecar
from tests.serving import channel_to, finished, process, running, settings_for
from tests.serving import ended as run_to_end


def own(tmp_path: Path, text: str) -> Settings:
    file = tmp_path / "config.toml"
    file.write_text(text, encoding="utf-8")
    flags = {"data": tmp_path / "data", "listen": f"unix:{tmp_path}/socket", "embedder": "none"}
    return resolve(flags, {}, file).settings


def ended(server: subprocess.Popen[str]) -> tuple[int, str]:
    done = finished(server)
    return done.returncode, done.stderr


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_stops_it_in_order(tmp_path: Path, number: signal.Signals) -> None:
    """SIGTERM and Ctrl-C end the process with code 0 and leave no socket; the next server has all that was there."""
    with process(tmp_path) as (server, client):
        client.upsert("kim", [{"id": "m", "content": "the ferry leaves at nine"}])
        server.send_signal(number)
        code, said = ended(server)
        assert (code, "Traceback" in said) == (0, False), said
        assert not (tmp_path / "socket").exists()
    with running(tmp_path) as again:
        assert again.client.get("kim", "m").content == "the ferry leaves at nine"


@pytest.mark.parametrize("abstract", [False, True])
def test_whoever_supervises_it_is_told(tmp_path: Path, abstract: bool) -> None:
    """READY=1 comes once calls are answered and not before, STOPPING=1 as it begins to drain, over the socket that
    NOTIFY_SOCKET names, in a folder or in none."""
    name = f"@{tmp_path}/notify" if abstract else f"{tmp_path}/notify"
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as told:
        told.bind(name.replace("@", "\0"))
        told.settimeout(60)
        with process(tmp_path, NOTIFY_SOCKET=name, MEMORY_RANKER_EMBEDDER="none") as (server, client):
            assert told.recv(100) == b"READY=1"
            with Client(client.address, timeout=5) as hasty:
                hasty.upsert("kim", [{"id": "m", "content": "x"}])
            server.terminate()
            assert told.recv(100) == b"STOPPING=1"
            assert ended(server)[0] == 0


def test_a_supervisor_that_is_gone_is_a_warning(tmp_path: Path) -> None:
    """The server serves on, and its log names the socket."""
    with process(tmp_path, NOTIFY_SOCKET=f"{tmp_path}/gone", MEMORY_RANKER_EMBEDDER="none") as (server, client):
        client.status()
        server.terminate()
        code, said = ended(server)
    assert code == 0
    assert f"NOTIFY_SOCKET is {tmp_path}/gone, which cannot be told READY=1" in said


SIGNALLED = """
import contextlib, signal, sys
from sidecar import lifecycle
from sidecar.config import resolve

SETTINGS = resolve({}, {"HOME": "/nowhere"}).settings
lifecycle.Sidecar = lambda settings, **_: contextlib.nullcontext()

def stopped_at(moment):
    "Sends the signal before the line of code that comes as number `moment`; false if no such line is left."
    passed = 0
    def trace(frame, event, argument):
        nonlocal passed
        ours = frame.f_code.co_filename == __file__ or not callable(signal.getsignal(signal.SIGTERM))
        if event == "line" and not ours and passed <= moment:
            passed += 1
            if passed > moment:
                signal.raise_signal(signal.SIGTERM)
        return trace
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    sys.settrace(trace)
    signal.setitimer(signal.ITIMER_REAL, 0.1)
    lifecycle.run(SETTINGS)
    signal.setitimer(signal.ITIMER_REAL, 0)
    sys.settrace(None)
    return passed > moment

signal.signal(signal.SIGALRM, lambda *_: signal.raise_signal(signal.SIGTERM))
moment = 0
while stopped_at(moment):
    moment += 1
print(moment)
"""


def test_a_signal_stops_it_whenever_it_comes(tmp_path: Path) -> None:
    """Also on the way into waiting for one. Before the last moment the process would wait for ever: it is sent late."""
    script = tmp_path / "script.py"
    script.write_text(SIGNALLED, encoding="utf-8")
    came = run_to_end([sys.executable, script])
    assert came.returncode == 0, came.stderr
    assert int(came.stdout) > 2


ELSEWHERE = """
import contextlib, os, signal, threading
from sidecar import lifecycle
from sidecar.config import resolve

def sent():
    waits.wait()
    os.kill(os.getpid(), signal.SIGTERM)

waits = threading.Event()
lifecycle.Sidecar = lambda settings, **_: contextlib.nullcontext()
lifecycle.systemd.tell = lambda *_: waits.set()
threading.Thread(target=sent, daemon=True).start()
signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGTERM])
lifecycle.run(resolve({}, {"HOME": "/nowhere"}).settings)
"""


def test_a_signal_that_another_thread_gets_stops_it(tmp_path: Path) -> None:
    """Nothing then interrupts the main thread, which waits already; as little does a signal just before it waits."""
    script = tmp_path / "script.py"
    script.write_text(ELSEWHERE, encoding="utf-8")
    came = run_to_end([sys.executable, script])
    assert came.returncode == 0, came.stderr


def test_a_kill_loses_nothing_that_was_answered(tmp_path: Path) -> None:
    """After kill -9 the next server takes the address over and knows each memory, packet and report."""
    with process(tmp_path) as (server, client):
        client.upsert("kim", [{"id": f"m{i}", "content": f"note {i} on the ferry"} for i in range(20)])
        packets = [client.rank("kim", "ferry", session_id=f"s{i}") for i in range(20)]
        client.report_use(packets[0].packet_id, [packets[0].items[0].memory.id])
        server.kill()
        server.wait()
    with process(tmp_path) as (_, client):
        assert len(list(client.list("kim"))) == 20
        for packet in packets:
            logged = client.get_packet("kim", packet.packet_id)
            assert [each.memory.id for each in logged.packet.items] == [each.memory.id for each in packet.items]
        assert client.get_packet("kim", packets[0].packet_id).uses
        assert client.status("kim").namespace.reported_packet_count == 1


def test_a_client_outlives_a_restart(tmp_path: Path) -> None:
    """The same client object goes on with the next server, and a call in between is tried again until then."""
    with process(tmp_path) as (server, client):
        client.upsert("kim", [{"id": "m", "content": "x"}])
        server.terminate()
        finished(server)
        with pytest.raises(RankerRpcError), Client(client.address, timeout=5) as hasty:
            hasty.get("kim", "m")
        with process(tmp_path):
            assert client.get("kim", "m").content == "x"


def test_ready_means_that_everything_is_there(tmp_path: Path) -> None:
    """At the first SERVING a Rank sees all memories, at the usual speed."""
    with running(tmp_path) as server:
        for start in range(0, 3000, 1000):
            batch = [{"id": f"m{i}", "content": f"note {i} on the ferry"} for i in range(start, start + 1000)]
            server.client.upsert("kim", batch)
    with process(tmp_path) as (_, client), channel_to(client.address) as channel:
        watch: Any = health_pb2_grpc.HealthStub(channel)
        for answer in watch.Watch(health_pb2.HealthCheckRequest(), timeout=30, wait_for_ready=True):
            if answer.status == health_pb2.HealthCheckResponse.SERVING:
                break
        packet = client.rank("kim", "ferry 2999")
        assert len(packet.items) + sum(each.count for each in packet.left_out) == 3000
        assert packet.items[0].memory.id == "m2999"


def test_a_second_server_on_the_address_or_the_store_is_refused(tmp_path: Path) -> None:
    """It says what is taken and by which setting to go elsewhere; the first is still reached afterwards."""
    with running(tmp_path) as first:
        with process(tmp_path) as (second, _):
            code, said = ended(second)
            assert code != 0
            assert "another server" in said
            assert "--listen" in said
            assert "Traceback" not in said
        with pytest.raises(StoreLockedError), Sidecar(settings_for("127.0.0.1:0", data=tmp_path / "data")):
            pass
        assert first.client.status().server_version
        with Client(first.listen) as another:
            assert another.status().server_version


def test_a_folder_that_cannot_be_made_is_the_datas_fault(tmp_path: Path) -> None:
    """Where the socket is in the data folder because nothing else was said, it is --data that the error names."""
    (tmp_path / "file").write_text("in the way")
    settings = resolve({"data": tmp_path / "file" / "data", "embedder": "none"}, {"HOME": "/nowhere"}).settings
    with pytest.raises(StoreUnavailableError, match=r"data folder .*file/data cannot be used.*--data"):
        Sidecar(settings).open()


def test_a_start_that_fails_lets_everything_go(tmp_path: Path) -> None:
    """After a failed start the address and the store can be had by the next one."""
    with running(tmp_path, embedder="none"):
        pass
    with pytest.raises(EmbedderMismatchError), running(tmp_path, embedder="wordllama"):
        pass
    with running(tmp_path, embedder="none") as server:
        assert server.client.status().dimension == 0


def test_another_embedder_is_refused_with_the_way_out(tmp_path: Path) -> None:
    """A store's vectors are those of one embedder, and a start with another says which one it was."""
    with running(tmp_path) as server:
        server.client.upsert("kim", [{"id": "m", "content": "x"}])
    with pytest.raises(EmbedderMismatchError, match=r"wordllama@.*--embedder wordllama.*--data"):
        Sidecar(settings_for(f"unix:{tmp_path}/socket", data=tmp_path / "data", embedder="none")).open()


def test_without_an_embedder_ranking_goes_by_words(tmp_path: Path) -> None:
    """No vectors are made or taken, and the packet says what that means."""
    with running(tmp_path, embedder="none") as server:
        client = server.client
        client.upsert("kim", [{"id": "a", "content": "the ferry leaves"}, {"id": "b", "content": "lasagne"}])
        packet = client.rank("kim", "when does the ferry leave")
        assert packet.items[0].memory.id == "a"
        assert "--embedder wordllama" in packet.degradations[0].message
        with pytest.raises(RankerRpcError, match="keeps no vectors"):
            client.rank("kim", "x", task_embedding=[1.0])


def test_weights_of_ones_own_serve(tmp_path: Path) -> None:
    """Named weights from the settings file are offered, and can be the active ones."""
    text = "[weights]\nactive = 'newest'\n[weights.newest]\nfeatures = {recency = 1.0}\nhalf_life_days = {fact = 3}\n"
    with Sidecar(own(tmp_path, text)) as sidecar, Client(sidecar.listen) as client:
        assert client.status().model_version == "newest"
        assert "newest" in client.status().presets
        assert client.rank("kim", "x", explain="full").weights.half_life_days["fact"] == 3


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("[weights.mine]\nfeatures = {lexicl = 0.5}\n", "weights.mine.features.lexicl"),
        ("[weights.mine]\nfeatures = {lexical = 1.5}\n", "must be in [0, 1]"),
        ("[weights.mine]\n", "weights.mine.features"),
        ("[weights.default]\nfeatures = {lexical = 0.5}\n", "is taken"),
        ("[weights.request]\nfeatures = {lexical = 0.5}\n", "is taken"),
        ("[weights.mine]\nfeatures = {lexical = 'much'}\n", "a table of numbers"),
        ("[weights.mine]\nfeature = {lexical = 0.5}\n", "did you mean 'features'"),
        ("weights = 'smartcxt'\n", "'smartctx'"),
    ],
)
def test_wrong_weights_keep_it_from_starting(tmp_path: Path, text: str, says: str) -> None:
    """Weights that could not serve are refused at the start, with what is wrong with them."""
    with pytest.raises(SettingsError) as caught:
        Sidecar(own(tmp_path, text)).open()
    assert says in caught.value.message


def test_a_proxy_for_the_web_is_none_of_its_business(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With http_proxy set to where nothing answers, client and server of one machine still find each other."""
    for name in ("http_proxy", "https_proxy", "HTTP_PROXY", "HTTPS_PROXY", "grpc_proxy"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    for name in ("no_proxy", "NO_PROXY"):
        monkeypatch.delenv(name, raising=False)
    settings = settings_for("127.0.0.1:0", data=tmp_path / "data", embedder="none")
    with Sidecar(settings) as sidecar, Client(sidecar.listen) as client:
        assert client.status().listen == sidecar.listen


def test_calls_that_run_finish_before_it_stops(tmp_path: Path) -> None:
    """Writes that were under way when the server was told to stop are answered, and are there afterwards."""
    with process(tmp_path) as (server, client):
        client.status()
        saved: list[str] = []
        codes: set[str] = set()

        def write(number: int) -> None:
            for i in range(1000):
                memory_id = f"m{number}-{i}"
                try:
                    client.upsert("kim", [{"id": memory_id, "content": f"note {memory_id}"}], timeout=5)
                except RankerRpcError as error:
                    codes.add(error.code.name)
                    return
                saved.append(memory_id)
                if len(saved) == 50:
                    os.kill(server.pid, signal.SIGTERM)

        threads = [threading.Thread(target=write, args=(number,)) for number in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert ended(server)[0] == 0
    assert len(saved) >= 50
    assert codes <= {"UNAVAILABLE", "CANCELLED", "DEADLINE_EXCEEDED"}
    with running(tmp_path) as again:
        assert set(saved) <= {each.id for each in again.client.list("kim")}


def test_other_weights_move_every_namespace_on(tmp_path: Path) -> None:
    """A packet cached before a start with other weights is stale; a start with the same leaves versions alone."""
    versions: list[int] = []
    for weights in ("default", "default", "engine", "engine"):
        with running(tmp_path, embedder="none", weights=weights) as server:
            if not versions:
                server.client.upsert("kim", [{"id": "m", "content": "the ferry leaves at nine"}])
            versions.append(server.client.status("kim").namespace.score_version)
    assert versions[0] == versions[1] < versions[2] == versions[3]
