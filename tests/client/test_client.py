"""The client against real servers: deadlines, retries, errors, and what it needs."""

from __future__ import annotations

import socket
import subprocess
import sys
import threading
import time
from pathlib import Path

import grpc
import pytest
from memoryranker.client import Client, RankerRpcError
from memoryranker.v1 import admin_pb2, admin_pb2_grpc

from sidecar.errors import OverloadedError, StoreUnavailableError
from tests.serving import Running, serve, started


class Flaky(admin_pb2_grpc.AdminServiceServicer):
    """Fails the first calls of GetStatus, and then answers."""

    def __init__(self, failures: int, error: Exception) -> None:
        self.failures = failures
        self.error = error
        self.calls = 0

    def GetStatus(
        self, request: admin_pb2.GetStatusRequest, context: grpc.ServicerContext
    ) -> admin_pb2.GetStatusResponse:
        self.calls += 1
        if self.calls <= self.failures:
            raise self.error
        return admin_pb2.GetStatusResponse(server_version="x")


def test_it_needs_nothing_of_the_server() -> None:
    """An agent that imports the client loads neither the server nor NumPy or FAISS."""
    code = (
        "import sys, memoryranker.client\n"
        "heavy = {'numpy', 'faiss', 'lightgbm', 'wordllama', 'sidecar', 'training', 'sqlite3'} & set(sys.modules)\n"
        "sys.exit(', '.join(sorted(heavy)) or 0)\n"
    )
    done = subprocess.run([sys.executable, "-W", "error", "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(
    ("error", "calls"),
    [(StoreUnavailableError("the store is closing"), 3), (OverloadedError("too much"), 1), (ValueError("a bug"), 1)],
)
def test_only_what_may_pass_is_tried_again(tmp_path: Path, error: Exception, calls: int) -> None:
    """UNAVAILABLE is tried again within the deadline; every other error is told at once."""
    with started(f"unix:{tmp_path}/s") as server, Client(server.listen) as client:
        flaky = Flaky(2, error)
        serve(server, flaky)
        if calls == 3:
            assert client.status().server_version == "x"
        else:
            with pytest.raises(RankerRpcError):
                client.status()
        assert flaky.calls == calls


def test_a_deadline_holds_also_where_nobody_answers(tmp_path: Path) -> None:
    """A server that accepts and says nothing costs no more than the deadline; nor does waiting for one to come."""
    with socket.socket(socket.AF_UNIX) as silent:
        silent.bind(f"{tmp_path}/s")
        silent.listen()
        for waits in (False, True):
            begin = time.monotonic()
            client = Client(f"unix:{tmp_path}/s", timeout=0.3, wait_for_ready=waits)
            with client, pytest.raises(RankerRpcError) as caught:
                client.status()
            assert time.monotonic() - begin < 3
            assert caught.value.reason in ("DEADLINE_EXCEEDED", "UNAVAILABLE")


def test_it_waits_for_a_server_that_is_not_up_yet(tmp_path: Path) -> None:
    """With wait_for_ready a call made before the start is answered after it."""
    answers: list[str] = []
    with Client(f"unix:{tmp_path}/s", timeout=20, wait_for_ready=True) as client:
        caller = threading.Thread(target=lambda: answers.append(client.status().server_version))
        caller.start()
        with started(f"unix:{tmp_path}/s") as server:
            serve(server, Flaky(0, ValueError()))
            caller.join(20)
    assert answers == ["x"]


def test_it_waits_for_a_server_that_loads(tmp_path: Path) -> None:
    """Also without wait_for_ready a call that meets a loading server is answered once that has loaded; at its deadline
    it says that the server loads."""
    at = f"unix:{tmp_path}/s"
    answers: list[str] = []
    with started(at) as server, Client(at, timeout=20) as client:
        with pytest.raises(RankerRpcError) as caught:
            client.status(timeout=1.5)
        assert caught.value.reason == "NOT_READY"
        caller = threading.Thread(target=lambda: answers.append(client.status().server_version))
        caller.start()
        serve(server, Flaky(0, ValueError()))
        caller.join(20)
    assert answers == ["x"]


def test_it_finds_the_server_by_the_environment(
    shared_server: Running, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """MEMORY_RANKER_LISTEN names the server, unless the code does."""
    monkeypatch.setenv("MEMORY_RANKER_LISTEN", shared_server.listen)
    with Client() as client:
        assert client.status().listen == shared_server.listen
    with Client(f"unix:{tmp_path}/none") as client:
        assert client.address == f"unix:{tmp_path}/none"


def test_writes_and_ranks_carry_a_request_id(client: Client, namespace: str) -> None:
    """Two calls are two requests; the id only makes the retry of one call count once."""
    client.upsert(namespace, [{"id": "m", "content": "one"}])
    client.upsert(namespace, [{"id": "m", "content": "two"}])
    client.upsert(namespace, [{"id": "m", "content": "one"}])
    assert client.get(namespace, "m").content == "one"
    one, two = (client.rank(namespace, "x") for _ in range(2))
    assert one.packet_id != two.packet_id
    assert not two.replayed


def test_one_text_is_no_list_of_ids(client: Client, namespace: str) -> None:
    """What would be taken letter by letter is refused before it is sent."""
    with pytest.raises(TypeError, match="not the text"):
        client.report_use("p", "m1")
    with pytest.raises(TypeError, match="not the text"):
        client.delete(namespace, "m1")


def test_an_error_is_for_people_and_for_programs(client: Client, namespace: str) -> None:
    """The text has reason and message; the rest is there to be read."""
    with pytest.raises(RankerRpcError) as caught:
        client.rank("", max_items=0)
    error = caught.value
    assert str(error).startswith("INVALID_REQUEST: namespace: is empty")
    assert {each.field for each in error.violations} == {"namespace", "max_items"}
    assert error.metadata["violations_total"] == "2"
    assert isinstance(error.__cause__, grpc.RpcError)


def test_many_threads_share_one_client(client: Client, namespace: str) -> None:
    """Calls from eight threads at once are all answered, each with its own answer."""
    failures: list[BaseException] = []

    def work(number: int) -> None:
        try:
            for i in range(20):
                memory_id = f"m{number}-{i}"
                client.upsert(namespace, [{"id": memory_id, "content": f"about {memory_id}"}])
                assert client.get(namespace, memory_id).content == f"about {memory_id}"
                assert client.rank(namespace, memory_id).items
        except BaseException as error:  # noqa: BLE001 - shown by the assertion below
            failures.append(error)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
    assert len(list(client.list(namespace))) == 160
