"""Which weights serve, and by which names others may be asked for."""

from __future__ import annotations

import pytest

from sidecar.errors import UnknownWeightsError
from sidecar.weights import PRESETS, WeightsHolder, make_weights


def test_the_shipped_names_are_there_and_the_default_serves() -> None:
    """A holder knows default, engine and smartctx, sorted, and serves the default."""
    holder = WeightsHolder()
    assert holder.names == ("default", "engine", "smartctx")
    assert holder.active is PRESETS["default"]
    assert holder.named("engine") is PRESETS["engine"]


def test_ones_own_weights_stand_beside_the_shipped_ones() -> None:
    """Configured weights can be asked for and can serve."""
    mine = make_weights("mine", {"lexical": 1.0})
    holder = WeightsHolder("mine", {"mine": mine})
    assert holder.active is mine
    assert holder.named("mine") is mine
    assert holder.names == ("default", "engine", "mine", "smartctx")


def test_a_swap_puts_weights_to_work_and_keeps_the_old_ones_by_name() -> None:
    """After a swap the new weights serve and have a name; what served before can still be asked for."""
    holder = WeightsHolder()
    learned = make_weights("m-2026-01-01", {"lexical": 0.6, "semantic": 0.4})
    holder.swap(learned)
    assert holder.active is learned
    assert holder.named("m-2026-01-01") is learned
    assert holder.named("default") is PRESETS["default"]


def test_a_swap_does_not_reach_other_holders() -> None:
    """The shipped table is no one's to change."""
    WeightsHolder().swap(make_weights("m-1", {"lexical": 1.0}))
    assert "m-1" not in PRESETS
    assert "m-1" not in WeightsHolder().names


@pytest.mark.parametrize(
    ("asked", "hint"), [("smartcxt", "'smartctx'"), ("Engine", "'engine'"), ("defualt", "'default'")]
)
def test_an_unknown_name_suggests_the_nearest(asked: str, hint: str) -> None:
    """A misspelt name is answered with the one that was most likely meant, and with all there are."""
    with pytest.raises(UnknownWeightsError, match=f"Did you mean {hint}\\?") as caught:
        WeightsHolder().named(asked)
    assert repr(asked) in caught.value.message
    assert "default, engine, smartctx" in caught.value.message
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
