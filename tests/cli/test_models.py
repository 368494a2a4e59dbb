"""`promote`, `rollback` and `models`, against a server of their own, and against a store without one."""

from __future__ import annotations

import contextlib
import json
import re
import socket
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from sidecar.cli.group import cli
from sidecar.store.store import Store
from sidecar.weights.artifact import read_artifact
from tests.serving import Running, running
from tests.weights.making import CURVES, make_artifact, numbered

Call = Callable[..., Result]


@pytest.fixture
def call(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Call:
    """Runs the command line in the test's folder, where its server would be."""
    monkeypatch.setenv("MEMORY_RANKER_LISTEN", f"unix:{tmp_path}/socket")
    monkeypatch.setenv("MEMORY_RANKER_DATA", str(tmp_path / "data"))
    monkeypatch.chdir(tmp_path)
    return lambda *arguments: CliRunner().invoke(cli, arguments, prog_name="memory-ranker")


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Running]:
    with running(tmp_path) as found:
        found.client.upsert("n", [{"id": "m1", "content": "Deploys are on Tuesdays."}])
        yield found


def document(result: Result) -> dict[str, Any]:
    assert result.exit_code == 0, result.output
    found: dict[str, Any] = json.loads(result.stdout)
    return found


def test_a_model_is_promoted_listed_copied_and_rolled_back(call: Call, server: Running, tmp_path: Path) -> None:
    """From the folder, by its checks in words; the list has its role and the history; a copy verifies; and back."""
    model = make_artifact(tmp_path / "model")
    promoted = call("promote", "model")
    assert promoted.exit_code == 0, promoted.output
    assert "golden rows" in promoted.stdout
    assert f"{model.version} is active now." in promoted.stdout
    listed = call("models").stdout
    assert f"serving: {model.version}" in listed
    assert re.search(f"{model.version} +active +automatic", listed)
    found = document(call("models", "--json"))
    assert [each["version"] for each in found["models"]] == [model.version]
    assert found["events"][0]["action"] == "promoted"
    assert call("models", "--get", model.version, "--out", "copied").exit_code == 0
    assert read_artifact(tmp_path / "copied").files == model.files
    assert call("models", "--get", model.version, "--out", "copied").exit_code == 1
    assert call("models", "--get", model.version).exit_code == 2
    back = call("rollback", "--reason", "worse on Tuesdays")
    assert "default serves now." in back.stdout
    assert "worse on Tuesdays" in call("models").stdout
    assert call("rollback").exit_code == 3
    assert document(call("rollback", model.version, "--json"))["model"]["role"] == "active"


def test_a_model_that_was_compared_with_other_weights_than_serve_is_warned_of(
    call: Call, server: Running, tmp_path: Path
) -> None:
    """Before a promotion and with it, in words and in the JSON; not where it started from what serves, or serves."""
    other = make_artifact(tmp_path / "other", base_version="engine")
    words = "warning: default serves, and the gates compared this model with engine"
    assert words in call("promote", "other", "--validate-only").stdout
    assert "warning" not in call("promote", "other", "--role", "shadow").stdout  # changes no answer
    made = document(call("promote", "other", "--json"))
    assert [words in each for each in made["checks"] if each.startswith("warning")] == [True]
    assert "warning" not in call("promote", other.version).stdout
    numbered(tmp_path / "next", 1, base_version=other.version)
    assert "warning" not in call("promote", "next").stdout
    numbered(tmp_path / "late", 2, base_version="default")
    assert "compared this model with default" in call("promote", "late").stdout


def test_the_exit_code_says_how_a_promotion_ended(call: Call, server: Running, tmp_path: Path) -> None:
    """0 promoted, 2 a wrong command line, 3 not there, 4 damaged, 9 gated; nothing but 0 changes what serves."""
    make_artifact(tmp_path / "person", seed=1, gates={"train": "passed", "promote": "person"})
    make_artifact(tmp_path / "refused", seed=2, gates={"train": "passed", "promote": "refused"})
    make_artifact(tmp_path / "preview", seed=3, preview=True)
    make_artifact(tmp_path / "damaged", seed=4)
    (tmp_path / "damaged" / "weights.json").write_bytes(b"{}")
    codes = {
        ("person",): 9,
        ("person", "--validate-only"): 9,
        ("refused",): 9,
        ("refused", "--yes"): 9,
        ("preview",): 9,
        ("preview", "--force", "please"): 9,
        ("damaged",): 4,
        ("damaged", "--force", "please"): 4,
        ("nothing",): 3,
        ("linear-000000000000",): 3,
        ("person", "--share", "0.1"): 2,
        ("person", "--role", "canary"): 2,
        ("person", "--role", "canary", "--share", "1.5"): 4,
    }
    for arguments, code in codes.items():
        assert call("promote", *arguments).exit_code == code, arguments
        assert server.client.status().model_version == "default"
    assert call("promote", "person", "--yes").exit_code == 0
    assert call("promote", "refused", "--force", "our own bench").exit_code == 0
    assert "our own bench" in call("models").stdout
    error = json.loads(call("promote", "preview", "--json").stderr)["error"]
    assert (error["reason"], error["exit_code"]) == ("MODEL_GATED", 9)


def test_a_server_that_is_slow_to_greet_is_asked(
    call: Call, server: Running, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A busy server lets half a second pass before it answers to a connection. It is there all the same, and the store
    under its lock is not reached for."""
    model = make_artifact(tmp_path / "model")
    monkeypatch.setenv("MEMORY_RANKER_LISTEN", f"unix:{tmp_path}/front")
    with socket.socket(socket.AF_UNIX) as front:
        front.bind(f"{tmp_path}/front")
        front.listen()
        busy = threading.Thread(target=_passed_on, args=(front, f"{tmp_path}/socket", 0.5))
        busy.start()
        promoted = call("promote", "model")
        front.shutdown(socket.SHUT_RDWR)
        busy.join()
    assert promoted.exit_code == 0, promoted.stderr
    assert server.client.status().model_version == model.version


def _passed_on(front: socket.socket, behind: str, after: float) -> None:
    """Connects who comes to the socket behind, each after so many seconds, until `front` is shut."""
    with contextlib.suppress(OSError):
        while True:
            caller, _ = front.accept()
            threading.Timer(after, _both_ways, (caller, behind)).start()


def _both_ways(caller: socket.socket, behind: str) -> None:
    with contextlib.suppress(OSError), caller, socket.socket(socket.AF_UNIX) as server:
        server.connect(behind)
        back = threading.Thread(target=_pump, args=(server, caller))
        back.start()
        _pump(caller, server)
        back.join()


def _pump(source: socket.socket, sink: socket.socket) -> None:
    with contextlib.suppress(OSError):
        while data := source.recv(65_536):
            sink.sendall(data)
        sink.shutdown(socket.SHUT_RDWR)


def test_canary_and_shadow_come_and_go(call: Call, server: Running, tmp_path: Path) -> None:
    """Both show in status and in the list; retired ends them."""
    canary, shadow = make_artifact(tmp_path / "canary"), make_artifact(tmp_path / "shadow", CURVES)
    assert "canary for 0.25 of the sessions" in call("promote", "canary", "--role", "canary", "--share", "0.25").stdout
    assert call("promote", "shadow", "--role", "shadow").exit_code == 0
    status = document(call("status", "--json"))
    assert (status["canary_version"], status["canary_share"]) == (canary.version, 0.25)
    assert status["shadow_version"] == shadow.version
    listed = call("models").stdout
    assert re.search(f"{canary.version} +canary +0.25", listed)
    assert re.search(f"{shadow.version} +shadow", listed)
    for version in (canary.version, shadow.version):
        assert "retired" in call("promote", version, "--role", "retired").stdout
    assert document(call("status", "--json"))["canary_version"] == ""
    history = call("models").stdout
    assert re.search(f"stopped +canary +{canary.version}", history)
    assert re.search(f"stopped +shadow +{shadow.version}", history)


def test_without_a_server_the_store_is_changed_under_its_lock(call: Call, tmp_path: Path) -> None:
    """Promote and rollback do it themselves, with the same answers; the next server serves the model; while another
    has the store's lock they are refused; without any store they say so."""
    first, second = (numbered(tmp_path / f"m{n}", n) for n in (1, 2))
    assert call("promote", "m1").exit_code == 3
    with running(tmp_path) as server:
        server.client.upsert("n", [{"id": "m1", "content": "Deploys are on Tuesdays."}])
        before = server.client.rank("n", "deploys").score_version
    for model in (first, second):
        found = document(call("promote", f"m{(first, second).index(model) + 1}", "--json"))
        assert found["model"]["version"] == model.version
    (tmp_path / "m1" / "golden.json").write_bytes(b"{}")
    assert call("promote", "m1").exit_code == 4
    assert f"{first.version} serves now." in call("rollback", "--data", str(tmp_path / "data")).stdout
    with Store.open(tmp_path / "data"):
        refused = call("rollback")
        assert refused.exit_code == 7
        assert "STORE_LOCKED" in refused.stderr
        assert "That server was asked first, and not reached" in refused.stderr
        assert "No such file or directory" in refused.stderr
    with running(tmp_path) as server:
        packet = server.client.rank("n", "deploys")
        assert packet.model_version == first.version
        assert packet.score_version > before
