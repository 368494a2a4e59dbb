"""Reindex: another embedder, or the same again, without ever mixing vectors and without a pause in ranking."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner, Result
from memoryranker.client import Client, RankerRpcError

from sidecar.cli.failures import ExitCode
from sidecar.cli.group import cli
from sidecar.errors import EmbedderMismatchError
from sidecar.features import FEATURE_NAMES
from sidecar.lifecycle import Sidecar
from sidecar.reindex import BATCH, Reindexer
from sidecar.retrieval.embedders import make_embedder
from sidecar.retrieval.embedding import Embedder, identity
from sidecar.retrieval.vectors import Vectors
from sidecar.store import meta
from sidecar.store.check import check
from sidecar.store.store import Store
from tests.serving import Running, running, wait_until_scored

NOWHERE = "unix:/nonexistent/memory-ranker.sock"


class Marked:
    """Vectors that tell who made them: `axis` says which embedder, the rest the length of the text."""

    def __init__(self, name: str, dimension: int, axis: int) -> None:
        self.name = name
        self.fingerprint = f"axis{axis}"
        self.dimension = dimension
        self._axis = axis
        self.gate: threading.Event | None = None
        self.waiting = threading.Event()

    def embed(self, texts: Sequence[str]) -> Vectors:
        if self.gate is not None and len(texts) > 1:  # a walk's batch, not a Rank or a single write
            self.waiting.set()
            assert self.gate.wait(30)
        rows = np.zeros((len(texts), self.dimension), dtype=np.float32)
        rows[:, self._axis] = 0.8
        for row, text in zip(rows, texts, strict=True):
            row[-1 - len(text) % 2] = 0.6
        return rows


def embedders() -> dict[str, Marked]:
    return {"wordllama": Marked("wordllama", 4, 0), "onnx:/new": Marked("new", 6, 1)}


def with_embedders(made: dict[str, Marked]) -> Any:
    def choose(spec: str) -> Embedder:
        return made[spec] if spec in made else make_embedder(spec)

    return lambda settings: Sidecar(settings, make_embedder=choose)


def put(client: Client, count: int, word: str = "ferry", start: int = 0) -> None:
    for first in range(start, start + count, 500):
        last = min(first + 500, start + count)
        client.upsert("kim", [{"id": f"m{i}", "content": f"{word} note {i}"} for i in range(first, last)])


def vectors(store: Store) -> dict[str, tuple[str, Vectors | None]]:
    return {
        each.id: (each.content, each.embedding)
        for summary in store.list_namespaces("", 100)
        for each in store.load(summary.namespace).memories
    }


def assert_all_of(folder: Path, embedder: Embedder) -> None:
    """Every memory has the vector that the embedder gives its content, and the store says so."""
    with Store.open(folder) as store:
        assert store.meta(meta.EMBEDDER) == identity(embedder).encode()
        assert store.meta(meta.REINDEX_TARGET) is None
        for content, vector in vectors(store).values():
            if embedder.dimension:
                assert vector is not None
                assert vector.tobytes() == embedder.embed([content])[0].tobytes()
            else:
                assert vector is None
    assert not check(folder).findings


def semantic(client: Client) -> list[float]:
    """What the meaning of each ranked memory adds to its score."""
    packet = client.rank("kim", "ferry", explain="full", dry_run=True)
    place = FEATURE_NAMES.index("semantic")
    return [item.contributions[place] for item in packet.items]


def command(*arguments: object) -> Result:
    return CliRunner().invoke(cli, [str(each) for each in arguments], prog_name="memory-ranker")


def test_ranking_goes_on_with_the_old_vectors_until_the_next_start(tmp_path: Path) -> None:
    """While another embedder's vectors are made, Rank and writes work as before; the start with it changes over."""
    made = embedders()
    new = made["onnx:/new"]
    new.gate = threading.Event()
    with running(tmp_path, with_embedders(made)) as server:
        client = server.client
        put(client, 300)
        wait_until_scored(client, "kim")
        before = client.rank("kim", "ferry note 7", explain="full", dry_run=True)
        answers = client.reindex("onnx:/new", timeout=60)
        assert (next(answers).done_count, new.waiting.wait(30)) == (0, True)
        during = client.rank("kim", "ferry note 7", explain="full", dry_run=True)
        assert [i.memory.id for i in during.items] == [i.memory.id for i in before.items]
        scores = [i.score for i in before.items]
        assert [i.score for i in during.items] == pytest.approx(scores, abs=1e-6)  # a moment older
        client.upsert("kim", [{"id": "m1", "content": "written over meanwhile"}])
        client.upsert("kim", [{"id": "late", "content": "new meanwhile"}])
        client.delete("kim", ["m2"])
        with pytest.raises(RankerRpcError) as refused:
            list(client.reindex("onnx:/new", timeout=30))
        assert refused.value.reason == "OVERLOADED"
        new.gate.set()
        last = list(answers)[-1]
        assert (last.done_count, last.total_count) == (300, 300)
        assert client.status().embedder == "wordllama@axis0"
        assert (
            client.get("kim", "m1", include_embedding=True).embedding
            == made["wordllama"].embed(["a" * 22])[0].tobytes()
        )
        version = client.status("kim").namespace.score_version
        client.upsert("kim", [{"id": "m3", "content": "written over after it was embedded"}])
    with running(tmp_path, with_embedders(made), embedder="onnx:/new") as server:
        assert server.client.status().dimension == 6
        assert server.client.status("kim").namespace.score_version > version + 1
        assert any(value > 0.05 for value in semantic(server.client))
        assert not server.client.rank("kim", "ferry").degradations
    assert_all_of(tmp_path / "data", new)
    with (
        pytest.raises(EmbedderMismatchError, match="memory-ranker reindex --embedder wordllama"),
        running(tmp_path, with_embedders(made)),
    ):
        pass


def test_no_vectors_are_mixed_under_concurrent_writes(tmp_path: Path) -> None:
    """Writers that rewrite, add and delete during the walk leave each memory with the vector of its last content."""
    made = embedders()
    stop = threading.Event()
    failed: list[BaseException] = []

    def write(listen: str, number: int) -> None:
        try:
            with Client(listen, timeout=30) as client:
                for turn in range(10_000):
                    if stop.is_set():
                        return
                    client.upsert(
                        "kim", [{"id": f"m{(turn * 7 + number) % 600}", "content": f"turn{'x' * (turn % 5)}"}]
                    )
                    if turn % 5 == 0:
                        client.delete("kim", [f"m{(turn * 11 + number) % 600}"])
        except BaseException as error:
            failed.append(error)
            raise

    with running(tmp_path, with_embedders(made)) as server:
        put(server.client, 600)
        writers = [threading.Thread(target=write, args=(server.listen, i)) for i in range(2)]
        for each in writers:
            each.start()
        try:
            for answer in server.client.reindex("onnx:/new", timeout=60):
                assert answer.done_count <= answer.total_count
                assert len(semantic(server.client)) > 0
        finally:
            stop.set()
            for each in writers:
                each.join()
    assert not failed
    with running(tmp_path, with_embedders(made), embedder="onnx:/new"):
        pass
    assert_all_of(tmp_path / "data", made["onnx:/new"])


def test_a_killed_run_goes_on_where_it_was(tmp_path: Path) -> None:
    """After kill -9 in the middle, what was told as done is kept and not embedded again, and the old vectors serve."""
    with running(tmp_path) as server:
        put(server.client, 4 * BATCH)
    code = f"""
import sys, pathlib
from sidecar.reindex import Reindexer
from sidecar.retrieval.embedders import make_embedder
from sidecar.store.store import Store
with Store.open(pathlib.Path({str(tmp_path / "data")!r})) as store:
    target = make_embedder("client:8")
    for done, total in Reindexer(store, target, make_embedder).switch(target):
        print(done, flush=True)
        if done >= {2 * BATCH}:
            sys.stdin.read()
"""
    walk = subprocess.Popen(
        [sys.executable, "-c", code],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )
    assert walk.stdout is not None
    while int(walk.stdout.readline()) < 2 * BATCH:
        pass
    walk.kill()
    walk.communicate()
    with running(tmp_path) as server:
        assert server.client.status().embedder.startswith("wordllama@")
        assert next(iter(server.client.get("kim", "m1", include_embedding=True).embedding), None) is not None
    target = make_embedder("client:8")
    with Store.open(tmp_path / "data") as store:
        steps = list(Reindexer(store, target, make_embedder).switch(target))
    assert steps[0] == (2 * BATCH, 4 * BATCH)
    assert steps[-1] == (4 * BATCH, 4 * BATCH)
    assert_all_of(tmp_path / "data", target)


def test_the_command_changes_the_embedder_without_a_server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """From wordllama to none, to a client's vectors, and back, each refused before and served after."""
    with running(tmp_path) as server:
        put(server.client, 5)
        taken = command("reindex", "--embedder", "none", "--data", tmp_path / "data")
        assert taken.exit_code == ExitCode.TAKEN
    monkeypatch.setenv("MEMORY_RANKER_LISTEN", NOWHERE)
    monkeypatch.setenv("MEMORY_RANKER_DATA", str(tmp_path / "data"))
    for spec in ("none", "client:8", "wordllama"):
        with pytest.raises(EmbedderMismatchError), running(tmp_path, embedder=spec):
            pass
        done = command("reindex", "--embedder", spec, "--json")
        assert done.exit_code == 0, done.output
        assert json.loads(done.stdout) == {"done_count": 5, "total_count": 5, "embedder": spec, "in_use": True}
        assert_all_of(tmp_path / "data", make_embedder(spec))
        with running(tmp_path, embedder=spec) as server:
            assert len(server.client.rank("kim", "ferry").items) == 5
    assert command("reindex", "--embedder", "wordlama").exit_code == ExitCode.USAGE
    assert "no store in" in command("reindex", "--data", tmp_path / "nothing").stderr
    assert not (tmp_path / "nothing").exists()


def test_the_settings_alone_change_no_embedder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without --embedder, a store of another embedder than the settings' is left as it is."""
    with running(tmp_path, embedder="none") as server:
        put(server.client, 2)
    monkeypatch.setenv("MEMORY_RANKER_LISTEN", NOWHERE)
    monkeypatch.setenv("MEMORY_RANKER_DATA", str(tmp_path / "data"))
    refused = command("reindex")
    assert (refused.exit_code, "--embedder wordllama changes the store" in refused.stderr) == (ExitCode.TAKEN, True)
    assert_all_of(tmp_path / "data", make_embedder("none"))


def test_the_stores_own_embedder_mends_vectors_in_place(tmp_path: Path) -> None:
    """Vectors that clients brought or that differ are replaced, in one namespace or all, and Rank sees it at once."""
    made = embedders()
    odd = np.array([0, 0, 0, 1], dtype=np.float32)
    with running(tmp_path, with_embedders(made)) as server:
        client = server.client
        for namespace in ("kim", "lee"):
            client.upsert(namespace, [{"id": "a", "content": "the ferry", "embedding": odd.tobytes()}])
        before = semantic(client)
        assert [each.done_count for each in client.reindex(namespace="kim", timeout=30)][-1] == 1
        right = made["wordllama"].embed(["the ferry"])[0].tobytes()
        assert client.get("kim", "a", include_embedding=True).embedding == right
        assert client.get("lee", "a", include_embedding=True).embedding == odd.tobytes()
        assert semantic(client) != before
        version = client.status("kim").namespace.score_version
        assert [each.done_count for each in client.reindex("wordllama", timeout=30)][-1] == 2
        assert client.get("lee", "a", include_embedding=True).embedding == right
        assert client.status("kim").namespace.score_version == version


def test_what_makes_no_sense_is_refused(tmp_path: Path) -> None:
    """Another embedder for one namespace, an unknown one, and embedding what only clients can."""

    def field(server: Running, *arguments: str) -> str:
        with pytest.raises(RankerRpcError) as refused:
            list(server.client.reindex(*arguments, timeout=30))
        return refused.value.violations[0].field

    with running(tmp_path, embedder="client:4") as server:
        assert field(server, "none", "kim") == "namespace"
        assert field(server, "wordlama") == "embedder"
        assert field(server) == "embedder"


def test_the_command_asks_the_server_and_says_what_is_next(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With a server, the new vectors wait for its next start, and the command says so."""
    with running(tmp_path) as server:
        put(server.client, 3)
        monkeypatch.setenv("MEMORY_RANKER_LISTEN", server.listen)
        done = command("reindex", "--embedder", "none")
        assert done.exit_code == 0, done.output
        assert "3 of 3" in done.stdout
        assert "Start it with --embedder none" in done.stdout
        own = command("reindex", "--json")
        assert json.loads(own.stdout) == {"done_count": 3, "total_count": 3, "embedder": "wordllama", "in_use": True}
    with pytest.raises(EmbedderMismatchError), running(tmp_path, embedder="none"):
        pass
