"""How long the stages of a Rank took, by a clock that tests turn."""

from __future__ import annotations

from sidecar.ranking.stages import LOG, READ, Stopwatch


def test_each_lap_ends_the_stage_it_names() -> None:
    """Time goes to the stage whose end is named; one that ends twice has the sum."""
    times = iter((10.0, 10.5, 12.5, 12.75))
    watch = Stopwatch(lambda: next(times))
    watch.lap(READ)
    watch.lap(LOG)
    watch.lap(READ)
    assert watch.seconds == {READ: 0.75, LOG: 2.0}
    assert str(watch) == "read;dur=750.000, log;dur=2000.000"
