"""The registry of models: promotion, gates, lists and the way back, through a whole server."""

from __future__ import annotations

import functools
import operator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from memoryranker.client import Client, RankerRpcError

from sidecar.features import FEATURE_NAMES
from tests.observe.asking import ask, samples
from tests.serving import Running, running, wait_until_scored
from tests.weights.making import CURVES, LINEAR, make_artifact, numbered
from tests.weights.test_artifact import DAMAGES

TASK = "which port does the gate use"


def stock(client: Client, namespace: str = "n", count: int = 30) -> None:
    client.upsert(
        namespace,
        [{"id": f"m{n}", "content": f"Gate {n} uses port {8000 + n} and lock {n * n}."} for n in range(count)],
    )
    wait_until_scored(client, namespace)


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
