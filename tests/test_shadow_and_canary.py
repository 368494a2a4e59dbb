"""Models that score beside the one that serves, or serve a share of the sessions."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from memoryranker.client import Client, RankerRpcError

from sidecar.domain import SECOND
from sidecar.lifecycle import Sidecar
from sidecar.weights.holder import chance
from tests.serving import Running, running
from tests.test_models import TASK, stock
from tests.weights.making import LINEAR, make_artifact


def exported(client: Client) -> list[dict[str, Any]]:
    return [json.loads(line) for chunk in client.export_log("n") for line in chunk.splitlines()]


def test_a_shadow_scores_beside_and_changes_nothing(tmp_path: Path) -> None:
    """Answers are the same with it and without; the log has its scores and contributions for items and pool, as the
    model itself would have scored them, and an export carries them bit for bit."""
    model = make_artifact(tmp_path / "model", {**LINEAR, "half_life_days": {"fact": 0.5}})
    with running(tmp_path, lambda settings: Sidecar(settings, clock=lambda: 1_790_000_000 * SECOND)) as server:
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


def test_the_chance_of_a_session_is_even() -> None:
    """Over 10,000 sessions the hash fills ten tenths evenly: chi-square with 9 degrees of freedom below its .999."""
    counts = Counter(int(10 * chance(b"salt", "v", "n", f"s:{n}")) for n in range(10_000))
    assert sum((counts[tenth] - 1_000) ** 2 / 1_000 for tenth in range(10)) < 27.9
