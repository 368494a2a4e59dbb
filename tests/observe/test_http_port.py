"""The HTTP port of real servers: what is on it, when it says ready, and that nobody can hold it up."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from memoryranker.client import Client

from sidecar.observe.http_port import CONNECTIONS, HttpPort
from tests.observe.asking import ask, samples
from tests.promises.parts import Held, with_parts
from tests.serving import finished, process, running


@pytest.fixture
def port() -> Iterator[HttpPort]:
    """A port with metrics of one line."""
    made = HttpPort("127.0.0.1:0", lambda: b"up 1\n", "text/plain")
    yield made
    made.close()


def test_nothing_but_three_paths_is_on_it(port: HttpPort) -> None:
    """Each answers to GET and HEAD and ends its connection; other methods are refused, other paths are not there."""
    port.set_ready()
    for path, body in (
        ("/livez", "alive\n"),
        ("/readyz", "ready\n"),
        ("/metrics", "up 1\n"),
        ("/livez?verbose", "alive\n"),
        ("http://sidecar.example:9464/readyz", "ready\n"),
        ("HTTPS://[::1]/livez?verbose", "alive\n"),
    ):
        found = ask(port.listen, path)
        assert (found.status, found.text, found.headers["connection"]) == (200, body, "close")
        bare = ask(port.listen, path, "HEAD")
        assert (bare.status, bare.text, bare.headers["content-length"]) == (200, "", str(len(body)))
        for method in ("POST", "PUT", "DELETE", "OPTIONS", "PATCH"):
            refused = ask(port.listen, path, method)
            assert (refused.status, refused.headers["allow"]) == (405, "GET, HEAD")
    for path in (
        "/",
        "/metrics/",
        "/debug",
        "//livez",
        "/livez/../metrics",
        "/healthz",
        "*",
        "http://host",
        "http://livez",
        "ftp://host/livez",
    ):
        assert ask(port.listen, path).status == 404, path


@pytest.mark.parametrize(
    ("sent", "status"),
    [
        (b"GET /livez\r\n\r\n", 400),
        (b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n", 400),
        (b"GET /livez HTTP/1.1\r\nx: " + b"a" * 20_000 + b"\r\n\r\n", 431),
        (b"GET /livez HTTP/1.0\r\n\r\n", 200),
    ],
)
def test_what_is_no_http_is_refused(port: HttpPort, sent: bytes, status: int) -> None:
    """Foreign protocols and heads too long are told off in HTTP; the next one is answered."""
    host, _, number = port.listen.rpartition(":")
    with socket.create_connection((host, int(number)), timeout=10) as caller:
        caller.sendall(sent)
        assert caller.recv(100).startswith(f"HTTP/1.1 {status} ".encode())
    assert ask(port.listen, "/livez").status == 200


def test_silent_callers_hold_nothing_up(port: HttpPort) -> None:
    """However many connections send nothing, or half a request, a probe is answered at once; those that have been
    silent longest are hung up on for it, the latest are not, and nobody keeps the port from closing."""
    host, _, number = port.listen.rpartition(":")
    silent = []
    try:
        for _ in range(2 * CONNECTIONS):
            silent.append(socket.create_connection((host, int(number)), timeout=10))
            if len(silent) % 2:
                silent[-1].sendall(b"GET /livez HTT")
            assert ask(port.listen, "/livez").status == 200
        for caller in silent[: CONNECTIONS // 2]:
            with contextlib.suppress(ConnectionResetError):
                assert caller.recv(100) == b""
        silent[-1].sendall(b"GET /livez HTTP/1.1\r\n\r\n")
        assert silent[-1].recv(100).startswith(b"HTTP/1.1 200 ")
        port.close()
    finally:
        for caller in silent:
            caller.close()


def test_callers_that_are_being_answered_are_not_hung_up_on() -> None:
    """While scrapes wait on all connections but one, a silent one gives way to a probe, and they are answered."""
    gate = threading.Event()

    def slow() -> bytes:
        gate.wait(30)
        return b"up 1\n"

    port = HttpPort("127.0.0.1:0", slow, "text/plain")
    host, _, number = port.listen.rpartition(":")
    callers = []
    try:
        for _ in range(CONNECTIONS - 1):
            callers.append(socket.create_connection((host, int(number)), timeout=10))
            callers[-1].sendall(b"GET /metrics HTTP/1.1\r\n\r\n")
        assert ask(port.listen, "/livez").status == 200  # it has heard those before, too
        with socket.create_connection((host, int(number)), timeout=10) as silent:
            assert ask(port.listen, "/livez").status == 200
            with contextlib.suppress(ConnectionResetError):
                assert silent.recv(100) == b""
        gate.set()
        for caller in callers:
            assert caller.recv(100).startswith(b"HTTP/1.1 200 ")
    finally:
        gate.set()
        for caller in callers:
            caller.close()
        port.close()


def test_a_slow_reading_of_metrics_holds_no_probe_up() -> None:
    """While one scrape waits, /livez and /readyz are answered."""
    gate, entered = threading.Event(), threading.Event()

    def slow() -> bytes:
        entered.set()
        gate.wait(30)
        return b"up 1\n"

    port = HttpPort("127.0.0.1:0", slow, "text/plain")
    try:
        scraper = threading.Thread(target=ask, args=(port.listen, "/metrics"))
        scraper.start()
        assert entered.wait(10)
        assert ask(port.listen, "/livez").status == 200
        assert ask(port.listen, "/readyz").status == 503
        gate.set()
        scraper.join()
    finally:
        gate.set()
        port.close()


def test_metrics_that_cannot_be_read_are_said_to_be_so(caplog: pytest.LogCaptureFixture) -> None:
    """The scraper gets a 500 without a word of what went wrong; the log has it, and the probes go on."""

    def broken() -> bytes:
        raise RuntimeError("secret")

    port = HttpPort("127.0.0.1:0", broken, "text/plain")
    try:
        found = ask(port.listen, "/metrics")
        assert (found.status, found.text) == (500, "internal server error\n")
        assert "secret" in caplog.text
        assert ask(port.listen, "/livez").status == 200
    finally:
        port.close()


def test_it_is_not_ready_from_the_moment_it_drains(tmp_path: Path) -> None:
    """A call that runs is finished while /readyz says draining and /livez goes on; then the port is closed."""
    embedder = Held()
    with running(tmp_path, with_parts(embedder=embedder), http="0") as server:
        address = server.sidecar.http
        assert ask(address, "/readyz").text == "ready\n"
        server.client.upsert("kim", [{"id": "m", "content": "the ferry leaves at nine"}])
        answers: list[object] = []
        caller = threading.Thread(target=lambda: answers.append(server.client.rank("kim", "HOLD the ferry")))
        caller.start()
        assert embedder.entered.acquire(timeout=10)
        drainer = threading.Thread(target=server.sidecar.drain)
        drainer.start()
        while (found := ask(address, "/readyz")).status == 200:
            pass
        assert (found.status, found.text) == (503, "draining\n")
        assert ask(address, "/livez").status == 200
        embedder.release()
        caller.join()
        drainer.join()
        assert len(answers) == 1
        with pytest.raises(ConnectionError):
            ask(address, "/livez")


def test_it_is_not_ready_before_everything_is_loaded(tmp_path: Path) -> None:
    """While a store of 20,000 is loaded, /livez answers and /readyz says loading; at the first ready a Rank is
    answered from all of them, and /metrics knows them all."""
    count = 20_000
    with running(tmp_path, embedder="none") as server:
        for first in range(0, count, 1_000):
            server.client.upsert("kim", [{"id": f"m{i}", "content": f"ferry {i}"} for i in range(first, first + 1_000)])
    with socket.create_server(("127.0.0.1", 0)) as free:
        address = f"127.0.0.1:{free.getsockname()[1]}"
    with process(tmp_path, MEMORY_RANKER_EMBEDDER="none", MEMORY_RANKER_HTTP=address) as (server_process, client):
        seen: list[int] = []
        while seen[-1:] != [200]:
            try:
                seen.append(ask(address, "/readyz").status)
                assert ask(address, "/livez").status == 200
            except ConnectionRefusedError:
                assert server_process.poll() is None
                assert not seen
        assert set(seen) == {503, 200}
        assert len(client.rank("kim", f"ferry {count - 1}", timeout=5).items) > 0
        assert samples(ask(address, "/metrics").text)["memory_ranker_memories"] == count


def test_a_taken_port_is_a_clear_error(tmp_path: Path) -> None:
    """The server does not start, names port and way out in one line, ends with the code of what is taken, and leaves
    no socket behind."""
    with socket.create_server(("127.0.0.1", 0)) as other:
        address = f"127.0.0.1:{other.getsockname()[1]}"
        command = ["serve", "--data", f"{tmp_path}/data", "--listen", f"unix:{tmp_path}/s", "--http", address]
        ended = subprocess.run(
            [sys.executable, "-m", "sidecar.cli", *command, "--embedder", "none"],
            env={"PATH": os.environ["PATH"]},
            capture_output=True,
            text=True,
            timeout=60,
        )
    assert ended.returncode == 7
    (line,) = ended.stderr.strip().splitlines()
    assert line.startswith(f"Error: CANNOT_LISTEN: http is {address}: it cannot be bound")
    assert "--http" in line
    assert not (tmp_path / "s").exists()


def test_without_the_setting_nothing_listens(tmp_path: Path) -> None:
    """A server by default opens no TCP port at all."""
    with process(tmp_path, MEMORY_RANKER_EMBEDDER="none") as (server, client):
        client.status()
        table = Path(f"/proc/{server.pid}/net/tcp").read_text(encoding="ascii")
        inodes = {os.readlink(link) for link in Path(f"/proc/{server.pid}/fd").iterdir() if link.is_symlink()}
        ours = [row for row in table.splitlines()[1:] if f"socket:[{row.split()[9]}]" in inodes]
        assert ours == []
        server.send_signal(signal.SIGTERM)
        assert finished(server).returncode == 0


def test_it_is_this_machines_alone_unless_told_otherwise(tmp_path: Path) -> None:
    """A bare port is bound to loopback; another address is what an operator writes out."""
    with running(tmp_path, embedder="none", http="0") as server:
        assert server.sidecar.http.startswith("127.0.0.1:")
    with running(tmp_path, embedder="none", http="0.0.0.0:0") as server:
        assert server.sidecar.http.startswith("0.0.0.0:")
        assert ask(server.sidecar.http.replace("0.0.0.0", "127.0.0.2"), "/livez").status == 200


def test_it_stays_ready_through_a_reload(tmp_path: Path) -> None:
    """While all vectors are made anew, /readyz never wavers."""
    with running(tmp_path, http="0") as server, Client(server.listen, timeout=60) as other:
        other.upsert("kim", [{"id": f"m{i}", "content": f"note {i} on the ferry"} for i in range(300)])
        over = threading.Event()
        statuses: set[int] = set()

        def poll() -> None:
            while not over.is_set():
                statuses.add(ask(server.sidecar.http, "/readyz").status)

        poller = threading.Thread(target=poll)
        poller.start()
        for _ in other.reindex():
            pass
        over.set()
        poller.join()
        assert statuses == {200}
