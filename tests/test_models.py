"""The registry of models: promotion, shadow, canary and the way back, through a whole server."""

from __future__ import annotations

import functools
import json
import operator
import os
import signal
import sqlite3
import subprocess
import sys
import threading
from collections import Counter
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from memoryranker.client import Client, RankerRpcError

from sidecar.domain import SECOND
from sidecar.features import FEATURE_NAMES
from sidecar.lifecycle import Sidecar
from sidecar.weights import WeightsHolder
from sidecar.weights.artifact import read_artifact
from sidecar.weights.holder import chance
from tests.observe.asking import ask, samples
from tests.serving import Running, running, wait_until_scored
from tests.weights.making import CURVES, LINEAR, make_artifact, numbered
from tests.weights.test_artifact import DAMAGES

NOW = 1_790_000_000 * SECOND
OF_TASK = [FEATURE_NAMES.index(name) for name in ("lexical", "semantic")]
TASK = "which port does the gate use"


def stock(client: Client, namespace: str = "n", count: int = 30) -> None:
    client.upsert(
        namespace,
        [{"id": f"m{n}", "content": f"Gate {n} uses port {8000 + n} and lock {n * n}."} for n in range(count)],
    )
    wait_until_scored(client, namespace)


def exported(client: Client) -> list[dict[str, Any]]:
    return [json.loads(line) for chunk in client.export_log("n") for line in chunk.splitlines()]


def test_a_promoted_model_serves_until_it_is_rolled_back(tmp_path: Path) -> None:
    """Promotion moves every score version on and names the model in packet and status; it serves after a restart; one
    call leads back; packets of before show what they were scored by."""
    model = make_artifact(tmp_path / "model")
    with running(tmp_path) as server:
        client = server.client
        stock(client)
        stock(client, "ops")
        before = client.rank("n", TASK)
        loaded = client.load_model(str(tmp_path / "model"))
        assert loaded.model.version == model.version
        assert loaded.model.role == 1
        assert len(loaded.checks) == 6
        assert client.status().model_version == model.version
        for namespace in ("n", "ops"):
            after = client.rank(namespace, TASK, explain="full")
            assert after.model_version == model.version
            own = model.for_namespace(namespace)
            assert [after.weights.features[name] for name in FEATURE_NAMES] == own.values.tolist()
        assert client.rank("n", TASK).score_version == before.score_version + 1
        replayed = client.get_packet("n", before.packet_id).packet
        assert replayed.model_version == "default"
        assert [list(item.contributions) for item in replayed.items] == [
            list(item.contributions) for item in before.items
        ]
    with running(tmp_path) as server:
        client = server.client
        packet = client.rank("n", TASK)
        assert packet.model_version == model.version
        assert packet.score_version == before.score_version + 1
        back = client.rollback_model(reason="a test")
        assert back.model.version == "default"
        assert client.status().model_version == "default"
        assert client.rank("n", TASK).score_version == before.score_version + 2
        shown = client.get_packet("n", packet.packet_id).packet
        assert shown.model_version == model.version
        assert [item.score for item in shown.items] == [item.score for item in packet.items]
        events = next(iter(client.models())).events
        assert [(each.version, each.action, each.reason) for each in events] == [
            ("", 3, "a test"),
            (model.version, 1, ""),
        ]
        with pytest.raises(RankerRpcError, match="no model before") as none:
            client.rollback_model()
        assert none.value.reason == "MODEL_NOT_FOUND"


def test_the_way_back_leads_along_the_line(tmp_path: Path) -> None:
    """From the third model back to the second and to the first; a version by name, also forward again; never to what
    has not served."""
    models = [numbered(tmp_path / f"m{n}", n) for n in range(4)]
    with running(tmp_path) as server:
        client = server.client
        for model in models[:3]:
            client.load_model(archive=model.archive)
        client.load_model(archive=models[3].archive, role="shadow")
        assert client.rollback_model().model.version == models[1].version
        assert client.rollback_model().model.version == models[0].version
        assert client.rollback_model(models[2].version).model.version == models[2].version
        assert client.rollback_model("default").model.version == "default"
        with pytest.raises(RankerRpcError, match="has served"):
            client.rollback_model(models[3].version)
        with pytest.raises(RankerRpcError) as unknown:
            client.rollback_model("linear-000000000000")
        assert unknown.value.reason == "MODEL_NOT_FOUND"
        assert "in the registry" in unknown.value.message
        with pytest.raises(RankerRpcError, match="the setting weights = 'engine'") as preset:
            client.rollback_model("engine")
        assert preset.value.reason == "MODEL_NOT_FOUND"
        assert client.status().model_version == "default"


@pytest.mark.parametrize("kind", DAMAGES)
def test_a_damaged_model_is_refused_by_name_and_the_old_one_serves(
    running_server: Running, tmp_path: Path, kind: str
) -> None:
    """Whatever is wrong with it: the words say what, the status too, and ranking goes on unmoved."""
    client = running_server.client
    stock(client, count=3)
    before = client.rank("n", TASK)
    make_artifact(tmp_path / "model")
    damage, words = DAMAGES[kind]
    damage(tmp_path / "model")
    with pytest.raises(RankerRpcError) as refused:
        client.load_model(str(tmp_path / "model"))
    assert refused.value.reason == "MODEL_REFUSED"
    assert words in refused.value.message or len(refused.value.message.encode()) > 500
    after = client.rank("n", TASK)
    assert (after.model_version, after.score_version) == ("default", before.score_version)
    assert any("refused" in problem and "default serves on" in problem for problem in client.status().problems)
    client.load_model(archive=make_artifact(tmp_path / "sound").archive)
    assert list(client.status().problems) == []


def test_the_gates_decide(running_server: Running, tmp_path: Path) -> None:
    """Automatic goes through; person needs a person; refused and skipped need force, whose reason stays in the history;
    a preview never serves, and may be a shadow."""
    client = running_server.client

    def load(seed: int, promote: str, train: str = "passed", *, preview: bool = False, **options: object) -> str:
        model = make_artifact(
            tmp_path / f"{seed}", LINEAR, seed=seed, preview=preview, gates={"train": train, "promote": promote}
        )
        try:
            client.load_model(archive=model.archive, **options)  # type: ignore[arg-type]
        except RankerRpcError as error:
            return error.reason
        return ""

    assert load(1, "automatic") == ""
    assert load(2, "person") == "MODEL_GATED"
    assert load(3, "person", by_person=True) == ""
    for seed, (promote, train) in enumerate((("refused", "passed"), ("skipped", "passed"), ("automatic", "refused"))):
        assert load(10 + seed, promote, train) == "MODEL_GATED"
        assert load(20 + seed, promote, train, by_person=True) == "MODEL_GATED"
        assert load(30 + seed, promote, train, force_reason="the bench says so") == ""
    assert load(40, "skipped", "skipped", preview=True, force_reason="please") == "MODEL_GATED"
    assert load(41, "automatic", preview=True) == "MODEL_GATED"
    assert load(42, "automatic", preview=True, role="canary", canary_share=0.1, force_reason="please") == "MODEL_GATED"
    assert load(43, "skipped", "skipped", preview=True, role="shadow") == ""
    newest = next(iter(client.models()))
    assert newest.models[0].preview
    forced = [each for each in newest.models if each.force_reason]
    assert [each.force_reason for each in forced] == ["the bench says so"] * 3
    with pytest.raises(RankerRpcError) as gated:
        client.load_model(version=newest.models[0].version, force_reason="please")
    assert gated.value.reason == "MODEL_GATED"


def test_validate_only_changes_nothing(running_server: Running, tmp_path: Path) -> None:
    """It tells what was checked, the gates among it, and neither registry nor score versions move."""
    client = running_server.client
    stock(client, count=3)
    before = client.rank("n", TASK).score_version
    model = make_artifact(tmp_path / "model", gates={"train": "passed", "promote": "refused"})
    loaded = client.load_model(archive=model.archive, validate_only=True)
    assert "refused" in loaded.checks[-1]
    assert loaded.model.problem
    assert list(next(iter(client.models())).models) == []
    after = client.rank("n", TASK)
    assert (after.model_version, after.score_version) == ("default", before)


def test_a_validation_that_refuses_raises_no_alarm(tmp_path: Path) -> None:
    """The caller hears of it; neither status nor metrics do, and what was a problem before still is."""
    damage, words = DAMAGES["weights cut"]
    make_artifact(tmp_path / "model")
    damage(tmp_path / "model")
    sound = make_artifact(tmp_path / "sound").archive
    with running(tmp_path, embedder="none", http="0") as server:
        client = server.client

        def standing() -> tuple[list[str], dict[str, float]]:
            values = samples(ask(server.sidecar.http, "/metrics").text)
            return list(client.status().problems), {name: values[name] for name in values if "_ranker_model_" in name}

        at_first = standing()
        with pytest.raises(RankerRpcError, match=words):
            client.load_model(str(tmp_path / "model"), validate_only=True)
        assert standing() == at_first
        with pytest.raises(RankerRpcError, match=words):
            client.load_model(str(tmp_path / "model"))
        refused = standing()
        assert refused != at_first
        client.load_model(archive=sound, validate_only=True)
        assert standing() == refused


@pytest.mark.parametrize(
    ("options", "field"),
    [
        ({}, "path"),
        ({"path": "/a", "archive": b"x"}, "path"),
        ({"path": "relative"}, "path"),
        ({"path": "/" + "x" * 5_000}, "path"),
        ({"version": "x" * 300}, "version"),
        ({"archive": b"x", "role": "canary"}, "canary_share"),
        ({"archive": b"x", "role": "canary", "canary_share": 1.0}, "canary_share"),
        ({"archive": b"x", "role": "canary", "canary_share": float("nan")}, "canary_share"),
        ({"archive": b"x", "role": "active", "canary_share": 0.5}, "canary_share"),
        ({"archive": b"x", "role": "retired"}, "role"),
        ({"archive": b"x", "force_reason": "x" * 1_025}, "force_reason"),
    ],
)
def test_a_bad_load_is_refused_with_its_field(running_server: Running, options: dict[str, object], field: str) -> None:
    """Each bound is told with the field's name."""
    with pytest.raises(RankerRpcError) as refused:
        running_server.client.load_model(**options)  # type: ignore[arg-type]
    assert field in [each.field for each in refused.value.violations]


def test_models_are_listed_page_by_page_and_come_back_as_they_were(running_server: Running, tmp_path: Path) -> None:
    """Newest first; a token belongs to its list; the files of each come back byte by byte."""
    from memoryranker.v1 import admin_pb2

    client = running_server.client
    made = [numbered(tmp_path / f"m{n}", n) for n in range(5)]
    for model in made:
        client.load_model(archive=model.archive, role="shadow")
    found: list[str] = []
    request = admin_pb2.ListModelsRequest(page_size=2)
    while True:
        page = client._admin.ListModels(request)
        found += [each.version for each in page.models]
        if not page.next_page_token:
            break
        request.page_token = page.next_page_token
    assert found == [model.version for model in reversed(made)]
    for model in made:
        assert client.model(model.version).archive == model.archive
    with pytest.raises(RankerRpcError) as unknown:
        client.model("linear-000000000000")
    assert unknown.value.reason == "MODEL_NOT_FOUND"


def test_a_request_may_name_a_model_of_the_registry(running_server: Running, tmp_path: Path) -> None:
    """By version, in whatever role; an unknown version is refused; one that is damaged by now falls back in words."""
    client = running_server.client
    stock(client, "ops")
    model = make_artifact(tmp_path / "model", CURVES)
    client.load_model(archive=model.archive, role="shadow")
    packet = client.rank("ops", TASK, model=model.version, explain="full")
    assert packet.model_version == model.version
    assert not packet.degradations
    index = FEATURE_NAMES.index("lexical")
    curve = model.weights.curves[index]
    assert curve is not None
    for item in packet.items:
        assert item.contributions[index] == curve(np.array([item.features[index]]))[0]
    with pytest.raises(RankerRpcError) as unknown:
        client.rank("ops", TASK, model="curves-000000000000")
    assert unknown.value.reason == "UNKNOWN_WEIGHTS"


@pytest.mark.parametrize("table", [LINEAR, CURVES], ids=["linear", "curves"])
def test_the_score_shown_by_learned_weights_is_the_one_sorted_by(
    running_server: Running, tmp_path: Path, table: dict[str, Any]
) -> None:
    """In both forms the ranked segment descends by the score shown, which is the sum, left to right, of the
    contributions shown."""
    client = running_server.client
    stock(client, count=12)
    client.upsert("n", [{"id": f"o{n}", "content": f"Lunch on day {n} is soup number {n}."} for n in range(12)])
    client.load_model(archive=make_artifact(tmp_path / "model", table).archive)
    packet = client.rank("n", TASK, max_items=20, reserved_slots=0)
    scores = [item.score for item in packet.items]
    assert len(scores) == 20
    assert scores == sorted(scores, reverse=True)
    assert len(set(scores)) > 1
    for item in packet.items:
        assert functools.reduce(operator.add, item.contributions, 0.0) == item.score


def test_a_shadow_scores_beside_and_changes_nothing(tmp_path: Path) -> None:
    """Answers are the same with it and without; the log has its scores and contributions for items and pool, as the
    model itself would have scored them, and an export carries them bit for bit."""
    model = make_artifact(tmp_path / "model", {**LINEAR, "half_life_days": {"fact": 0.5}})
    with running(tmp_path, lambda settings: Sidecar(settings, clock=lambda: NOW)) as server:
        client = server.client
        stock(client)
        plain = client.rank("n", TASK, reserved_slots=0)
        client.load_model(archive=model.archive, role="shadow")
        beside = client.rank("n", TASK, reserved_slots=0)
        assert [(i.memory.id, i.score) for i in beside.items] == [(i.memory.id, i.score) for i in plain.items]
        assert beside.score_version == plain.score_version
        assert client.status().shadow_version == model.version
        reserved = client.rank("n", TASK, reserved_slots=2, max_items=8)
        own = client.rank("n", TASK, model=model.version, reserved_slots=0, max_items=30)
        of_model = {item.memory.id: item for item in own.items}
        rows = exported(client)
        logged = {row["packet_id"]: row for row in rows if row["type"] == "packet"}
        assert "shadow" not in logged[plain.packet_id]
        row = logged[reserved.packet_id]
        assert row["shadow"]["version"] == model.version
        shown = client.get_packet("n", reserved.packet_id)
        assert shown.shadow_version == model.version
        assert list(shown.shadow_scores) == [
            *(each["score"] for each in row["shadow"]["items"]),
            *row["shadow"]["undrawn_scores"],
        ]
        assert client.get_packet("n", plain.packet_id).shadow_version == ""
        assert len(row["shadow"]["undrawn_scores"]) == len(row["undrawn"]) > 0
        ids = [each["memory_id"] for each in row["items"]]
        for memory_id, shadow in zip(ids, row["shadow"]["items"], strict=True):
            assert shadow["score"] == of_model[memory_id].score
            assert shadow["contributions"] == list(of_model[memory_id].contributions)
        for undrawn, score in zip(row["undrawn"], row["shadow"]["undrawn_scores"], strict=True):
            assert score == of_model[undrawn["memory_id"]].score
        other = client.rank("n", TASK, dry_run=True)
        assert not other.packet_id
    with running(tmp_path / "other") as server:
        stock(server.client)
        lines = b"".join(json.dumps(each).encode() + b"\n" for each in rows)
        taken = server.client.import_log("n", lines)
        assert not taken.rejections
        again = exported(server.client)
        assert [each["shadow"] for each in again if "shadow" in each] == [
            each["shadow"] for each in rows if "shadow" in each
        ]


def test_a_canary_serves_its_share_of_sessions(tmp_path: Path) -> None:
    """By a keyed hash of the session: the same session always by the same model, packets without a session each for
    itself; status names it; stopping it ends it."""
    canary = make_artifact(tmp_path / "canary")
    with running(tmp_path) as server:
        client = server.client
        stock(client, count=5)
        first = client.rank("n", TASK).score_version
        client.load_model(archive=canary.archive, role="canary", canary_share=0.4)
        status = client.status()
        assert (status.model_version, status.canary_version, status.canary_share) == ("default", canary.version, 0.4)
        of_session = {
            f"session {n}": {client.rank("n", TASK, session_id=f"session {n}").model_version for _ in range(2)}
            for n in range(60)
        }
        assert all(len(each) == 1 for each in of_session.values())
        served = Counter(next(iter(each)) for each in of_session.values())
        assert set(served) == {"default", canary.version}
        assert 10 <= served[canary.version] <= 40
        alone = Counter(client.rank("n", TASK).model_version for _ in range(60))
        assert set(alone) == {"default", canary.version}
        assert client.rank("n", TASK).score_version == first + 1
        assert client.rank("n", TASK, weights="engine", session_id="session 1").model_version == "engine"
        assert client.load_model(version=canary.version, role="retired").model.role == 4
        assert client.rank("n", TASK).score_version == first + 2
        assert {client.rank("n", TASK, session_id=each).model_version for each in of_session} == {"default"}
        assert client.status().canary_version == ""


def test_an_audit_tells_the_models_apart(running_server: Running, tmp_path: Path) -> None:
    """Packets, the share reported on and the share used stand there for each model that scored."""
    client = running_server.client
    stock(client)
    model = make_artifact(tmp_path / "model")
    for used in (1, 2):
        packet = client.rank("n", TASK, max_items=4, reserved_slots=0)
        client.report_use(packet.packet_id, [item.memory.id for item in packet.items[:used]])
        client.rank("n", TASK)
        client.load_model(archive=model.archive)
    figures = {(each.name, each.about): each.value for each in client.audit().figures}
    for version, share in (("default", 0.25), (model.version, 0.5)):
        assert figures["packets_by_model", version] == 2
        assert figures["packets_with_feedback_by_model", version] == 0.5
        assert figures["used_by_model", version] == share


def test_a_canary_that_is_promoted_is_a_canary_no_more(running_server: Running, tmp_path: Path) -> None:
    """A model has one role; what serves cannot be made its own canary."""
    client = running_server.client
    model = make_artifact(tmp_path / "model")
    client.load_model(archive=model.archive, role="canary", canary_share=0.1)
    client.load_model(version=model.version)
    status = client.status()
    assert (status.model_version, status.canary_version) == (model.version, "")
    with pytest.raises(RankerRpcError, match="has one role"):
        client.load_model(version=model.version, role="shadow")
    with pytest.raises(RankerRpcError, match="rollback ends it"):
        client.load_model(version=model.version, role="retired")


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


def test_the_chance_of_a_session_is_even() -> None:
    """Over 10,000 sessions the hash fills ten tenths evenly: chi-square with 9 degrees of freedom below its .999."""
    counts = Counter(int(10 * chance(b"salt", "v", "n", f"s:{n}")) for n in range(10_000))
    assert sum((counts[tenth] - 1_000) ** 2 / 1_000 for tenth in range(10)) < 27.9


def test_an_artifact_of_the_registry_reads_back(running_server: Running, tmp_path: Path) -> None:
    """What GetModel sends is an artifact like any other."""
    model = make_artifact(tmp_path / "model")
    running_server.client.load_model(archive=model.archive)
    (tmp_path / "out.tar").write_bytes(running_server.client.model(model.version).archive)
    assert read_artifact(tmp_path / "out.tar").version == model.version
