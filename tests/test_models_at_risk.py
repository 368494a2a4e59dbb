"""Models through what may befall a server: damage, kills, restores, and promotions under load."""

from __future__ import annotations

import os
import signal
import sqlite3
import subprocess
import sys
import threading
from contextlib import closing
from pathlib import Path

import pytest
from memoryranker.client import Client, RankerRpcError

from sidecar.features import FEATURE_NAMES
from sidecar.weights import WeightsHolder
from sidecar.weights.artifact import read_artifact
from tests.serving import Running, running
from tests.test_models import TASK, stock
from tests.weights.making import make_artifact, numbered

OF_TASK = [FEATURE_NAMES.index(name) for name in ("lexical", "semantic")]


def damage_stored(folder: Path, version: str, old: bytes, new: bytes) -> None:
    """Changes a few bytes of a model in the store, as a bad disk would."""
    with closing(sqlite3.connect(folder / "data" / "memories.db")) as database:
        (archive,) = database.execute("SELECT archive FROM models WHERE version = ?", (version,)).fetchone()
        assert old in archive
        database.execute("UPDATE models SET archive = ? WHERE version = ?", (archive.replace(old, new, 1), version))
        database.commit()


def test_a_model_that_no_longer_verifies_does_not_serve_at_start(tmp_path: Path) -> None:
    """The one before it does, and where that is damaged too, the settings' weights; the status says so, and both the
    way back and another promotion work."""
    first, second = numbered(tmp_path / "m1", 1), numbered(tmp_path / "m2", 2)
    with running(tmp_path) as server:
        stock(server.client)
        for model in (first, second):
            server.client.load_model(archive=model.archive)
    damage_stored(tmp_path, second.version, b'"lexical": 0.12', b'"lexical": 0.92')
    with running(tmp_path) as server:
        client = server.client
        assert client.rank("n", TASK).model_version == first.version
        status = client.status()
        assert status.model_version == first.version
        assert any(second.version in each and "weights.json is damaged" in each for each in status.problems)
        named = client.rank("n", TASK, model=second.version)
        assert named.model_version == first.version
        assert [each.reason for each in named.degradations] == [4]
        listed = {each.version: each.problem for each in next(iter(client.models())).models}
        assert "damaged" in listed[second.version]
        assert listed[first.version] == ""
    damage_stored(tmp_path, first.version, b'"score"', b'"scope"')
    with running(tmp_path) as server:
        client = server.client
        assert client.rank("n", TASK).model_version == "default"
        assert len(client.status().problems) == 2
        with pytest.raises(RankerRpcError) as refused:
            client.rollback_model()
        assert refused.value.reason == "MODEL_REFUSED"
        client.load_model(archive=second.archive)
        assert client.rank("n", TASK).model_version == second.version
        assert not any(each.startswith(f"the model {second.version} ") for each in client.status().problems)


def test_ranking_goes_on_through_promotions_and_rollbacks(tmp_path: Path) -> None:
    """Eight callers rank without a pause through 20 promotions and rollbacks: no call fails, every packet is scored by
    exactly one model, the one it names, and a later score version never has the model of before."""
    models = [numbered(tmp_path / f"m{n}", n) for n in range(4)]
    weights = {model.version: model.weights for model in models} | {"default": WeightsHolder().active}
    packets: list[list[tuple[int, str]]] = [[] for _ in range(8)]
    faults: list[BaseException] = []
    stop = threading.Event()
    with running(tmp_path) as server:
        stock(server.client)

        def caller(number: int) -> None:
            with Client(server.listen, timeout=30) as client:
                while not stop.is_set():
                    try:
                        packet = client.rank("n", TASK, max_items=3, session_id=f"s{number}", explain="full")
                        # A step of a linear model is one product: any other model's weights would give another number.
                        own = weights[packet.model_version].values
                        for item in packet.items:
                            for j in OF_TASK:
                                assert item.contributions[j] == item.features[j] * own[j]
                    except BaseException as error:  # noqa: BLE001 - told below
                        faults.append(error)
                        return
                    packets[number].append((packet.score_version, packet.model_version))

        first = server.client.rank("n", TASK).score_version
        threads = [threading.Thread(target=caller, args=(number,)) for number in range(8)]
        for thread in threads:
            thread.start()
        of_version: dict[int, str] = {first: "default"}
        for step in range(20):
            if step % 3 == 2:
                server.client.rollback_model()
            else:
                server.client.load_model(archive=models[step % 4].archive)
            found = server.client.rank("n", TASK, max_items=3)
            of_version[found.score_version] = found.model_version
        stop.set()
        for thread in threads:
            thread.join()
    assert not faults
    assert all(len(each) > 20 for each in packets)
    for each in packets:
        versions = [score_version for score_version, _ in each]
        assert versions == sorted(versions)
        for score_version, model_version in each:
            # A swap comes before its score version is out: a packet may be younger than its version says, never older.
            assert model_version in {model for version, model in of_version.items() if version >= score_version}


SERVE_AND_DIE = """
import os, signal, sys, threading
from pathlib import Path
from sidecar.config import resolve
from sidecar.lifecycle import Sidecar
from sidecar.store import models, writer
from memoryranker.client import Client
folder, archive, step = Path(sys.argv[1]), Path(sys.argv[2]).read_bytes(), sys.argv[3]
settings = resolve({"listen": f"unix:{folder}/socket", "data": folder / "data"}, {"HOME": "/nowhere"}).settings
def die(*_): os.kill(os.getpid(), signal.SIGKILL)
with Sidecar(settings) as sidecar, Client(sidecar.listen, timeout=30) as client:
    place = models.place
    if step == "before":
        models.place = die
    elif step == "inside":
        def inside(*given):
            place(*given)
            die()
        models.place = inside
    elif step == "after commit":
        from sidecar.weights.holder import WeightsHolder
        WeightsHolder.swap = die
    elif step == "after swap":
        from sidecar.retrieval.namespaces import Namespaces
        from sidecar.rpc import admin_models
        admin_models.write_model = die
    client.load_model(archive=archive)
"""


@pytest.mark.parametrize(
    ("step", "serves_new"), [("before", False), ("inside", False), ("after commit", True), ("after swap", True)]
)
def test_a_kill_between_the_steps_leaves_the_old_or_the_new(tmp_path: Path, step: str, serves_new: bool) -> None:
    """Killed before, inside and after the transaction: the next start serves the old model or the new one, whole."""
    old, new = numbered(tmp_path / "m1", 1), numbered(tmp_path / "m2", 2)
    with running(tmp_path) as server:
        stock(server.client)
        server.client.load_model(archive=old.archive)
        before = server.client.rank("n", TASK)
    (tmp_path / "new.tar").write_bytes(new.archive)
    done = subprocess.run(
        [sys.executable, "-c", SERVE_AND_DIE, str(tmp_path), str(tmp_path / "new.tar"), step],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        capture_output=True,
        check=False,
        timeout=60,
    )
    assert done.returncode == -signal.SIGKILL, done.stderr.decode()
    with running(tmp_path) as server:
        packet = server.client.rank("n", TASK)
        assert packet.model_version == (new if serves_new else old).version
        assert (packet.score_version > before.score_version) == serves_new
        assert list(server.client.status().problems) == []
        known = [each.version for each in next(iter(server.client.models())).models]
        assert (new.version in known) == serves_new


def test_a_backup_has_the_models(tmp_path: Path) -> None:
    """A store that is restored from a backup serves the model that served, files and history included."""
    from sidecar.store.restore import restore

    model = make_artifact(tmp_path / "model")
    with running(tmp_path) as server:
        stock(server.client)
        server.client.load_model(archive=model.archive)
        server.client.backup(str(tmp_path / "backup"))
    restore(tmp_path / "backup", tmp_path / "restored" / "data", 1)
    with running(tmp_path / "restored") as server:
        assert server.client.rank("n", TASK).model_version == model.version
        assert server.client.model(model.version).archive == model.archive


def test_an_artifact_of_the_registry_reads_back(running_server: Running, tmp_path: Path) -> None:
    """What GetModel sends is an artifact like any other."""
    model = make_artifact(tmp_path / "model")
    running_server.client.load_model(archive=model.archive)
    (tmp_path / "out.tar").write_bytes(running_server.client.model(model.version).archive)
    assert read_artifact(tmp_path / "out.tar").version == model.version
