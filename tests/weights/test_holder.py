"""Which weights serve, and by which names others may be asked for."""

from __future__ import annotations

from pathlib import Path

import pytest

from sidecar.errors import UnknownWeightsError
from sidecar.weights import PRESETS, WeightsHolder, make_weights
from sidecar.weights.holder import AtWork
from tests.weights.making import CURVES, LINEAR, make_artifact


def test_the_shipped_names_are_there_and_the_default_serves() -> None:
    """A holder knows default, engine, importance and smartctx, sorted, and serves the default."""
    holder = WeightsHolder()
    assert holder.names == ("default", "engine", "importance", "smartctx")
    assert holder.active is PRESETS["default"]
    assert holder.named("engine") is PRESETS["engine"]


def test_ones_own_weights_stand_beside_the_shipped_ones() -> None:
    """Configured weights can be asked for and can serve."""
    mine = make_weights("mine", {"lexical": 1.0})
    holder = WeightsHolder("mine", {"mine": mine})
    assert holder.active is mine
    assert holder.named("mine") is mine
    assert holder.names == ("default", "engine", "importance", "mine", "smartctx")


def test_a_swap_puts_a_model_to_work_and_keeps_the_others_by_name(tmp_path: Path) -> None:
    """After a swap the model serves and can be asked for by version, each namespace by its own weights; the settings'
    weights can still be asked for, and serve again once no model does."""
    holder = WeightsHolder()
    model = make_artifact(tmp_path / "model")
    holder.swap(AtWork(active=model))
    assert holder.active is model.weights
    assert holder.active_for("ops") is model.namespaces["ops"]
    assert holder.named(model.version, "ops") is model.namespaces["ops"]
    assert holder.named("default") is PRESETS["default"]
    assert model.version not in WeightsHolder().names
    holder.swap(AtWork())
    assert holder.active is PRESETS["default"]


def test_what_a_swap_changes_shows_in_the_identity(tmp_path: Path) -> None:
    """A model, its namespaces, a canary and its share make another identity; a shadow changes no answer, and none."""
    holder = WeightsHolder()
    model, other = make_artifact(tmp_path / "model"), make_artifact(tmp_path / "other", CURVES)
    same = make_artifact(tmp_path / "same", {**LINEAR, "namespaces": {}})
    works = [
        AtWork(),
        AtWork(active=model),
        AtWork(active=same),
        AtWork(canary=model, share=0.1),
        AtWork(canary=model, share=0.2),
        AtWork(active=model, canary=other, share=0.2),
    ]
    found = [holder.identity_of(work) for work in works]
    assert len(set(found)) == len(works)
    assert found[0] == PRESETS["default"].identity
    assert holder.identity_of(AtWork(active=model, shadow=other)) == found[1]


def test_a_canary_has_its_share_of_the_sessions_and_keeps_them(tmp_path: Path) -> None:
    """The share holds over sessions, a session stays where it is, a larger share keeps those who were in, and another
    canary or namespace takes others. Without a session no canary serves."""
    holder = WeightsHolder()
    canary, other = make_artifact(tmp_path / "canary"), make_artifact(tmp_path / "other", CURVES)
    sessions = [f"s:{number}" for number in range(4_000)]

    def taken(work: AtWork, namespace: str = "n", salt: bytes = b"salt") -> set[str]:
        holder.swap(work)
        version = work.canary.version if work.canary else ""
        return {each for each in sessions if holder.serving(namespace, each, salt)[0].version == version}

    few, more = taken(AtWork(canary=canary, share=0.1)), taken(AtWork(canary=canary, share=0.3))
    assert abs(len(few) - 400) < 100
    assert abs(len(more) - 1_200) < 150
    assert few < more
    assert few == taken(AtWork(canary=canary, share=0.1))
    for another in (
        taken(AtWork(canary=other, share=0.1)),
        taken(AtWork(canary=canary, share=0.1), namespace="m"),
        taken(AtWork(canary=canary, share=0.1), salt=b"other"),
    ):
        assert abs(len(another & few) - 40) < 30
    holder.swap(AtWork(canary=canary, share=0.999))
    assert holder.serving("n", "", b"salt")[0] is PRESETS["default"]


@pytest.mark.parametrize(
    ("asked", "hint"), [("smartcxt", "'smartctx'"), ("Engine", "'engine'"), ("defualt", "'default'")]
)
def test_an_unknown_name_suggests_the_nearest(asked: str, hint: str) -> None:
    """A misspelt name is answered with the one that was most likely meant, and with all there are."""
    with pytest.raises(UnknownWeightsError, match=f"Did you mean {hint}\\?") as caught:
        WeightsHolder().named(asked)
    assert repr(asked) in caught.value.message
    assert "default, engine, importance, smartctx" in caught.value.message
    assert caught.value.metadata == {"weights": asked}


def test_a_name_like_no_other_gets_no_hint() -> None:
    """Nothing is suggested where nothing is near."""
    with pytest.raises(UnknownWeightsError) as caught:
        WeightsHolder().named("zzz")
    assert "Did you mean" not in caught.value.message


def test_an_unknown_name_cannot_start_to_serve() -> None:
    """A holder is not made with weights that are not there."""
    with pytest.raises(UnknownWeightsError):
        WeightsHolder("nonsense")
