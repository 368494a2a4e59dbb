"""The simulation on the made-up memories that come with the package; `python -m training.simulate` is its long form."""

from __future__ import annotations

import random
from dataclasses import replace
from importlib import resources
from pathlib import Path

import pytest

from sidecar.audit.datasets import Dataset, read_dataset
from sidecar.audit.verdict import Verdict
from training.simulate import diagnose, discover, main, run
from training.simulated_world import NAMESPACE, Plan, world

STORE = Path(str(resources.files("sidecar") / "demo" / "store.json"))


@pytest.fixture(scope="module")
def data() -> Dataset:
    return read_dataset(STORE)


def test_a_world_can_be_run_again(data: Dataset) -> None:
    """The same seed gives the same packets, draws, uses and verdict."""

    def turns() -> tuple[list[tuple[str, tuple[str, ...], tuple[str, ...]]], Verdict]:
        with world(data, 3) as there:
            seen = [
                (turn.packet.packet_id, turn.packet.memory_ids, turn.used)
                for turn in run(there, Plan(requests=40, at_first=0.5), random.Random(3))
            ]
            return seen, there.verdict()

    assert turns() == turns()


def test_new_memories_come_to_their_turn_as_often_as_the_log_says(data: Dataset) -> None:
    """First turns in reserved slots are within bounds of the logged propensities; without slots, what is in no top K is
    never served."""
    plan = Plan(requests=150, at_first=0.2)
    found = discover([data, replace(data, id="again")], 2, plan)
    assert found.new >= 300
    assert found.first >= 80
    assert 0.75 <= found.ratio <= 1.25  # a shorter run than the one whose bounds are .85 to 1.15
    assert found.never_ranked > 0
    assert found.served_without == 0
    assert found.found_with > 0
    assert 0 < found.requests <= plan.requests


@pytest.mark.parametrize("seed", [1, 2])
def test_the_audit_calls_each_illness_by_its_name(data: Dataset, seed: int) -> None:
    """Four sick worlds and a healthy one, which differ in nothing else."""
    assert diagnose(data, seed, 250) == {verdict: verdict for verdict in Verdict if verdict is not Verdict.TOO_LITTLE}


def test_use_lifts_what_is_used_off_the_floor(data: Dataset) -> None:
    """Day zero is flat; once reports flow and are rescored a spread appears, with what is asked for on top."""
    with world(data, 5) as there:
        relevant = {memory_id for task in data.tasks for memory_id in task.relevant}
        plan = Plan(requests=200, rescore_every=50)
        lifted = []
        for turn in run(there, plan, random.Random(5)):
            if turn.number % 50 == 49:
                moved = {
                    memory.id: memory.importance.use
                    for memory in there.client.list(NAMESPACE, page_size=1000)
                    if memory.importance.HasField("use")
                }
                lifted.append(len(moved))
                top = sorted(moved, key=lambda each: -moved[each])[:20]
    assert lifted == sorted(lifted)
    assert sum(each in relevant for each in top) >= 16


def test_the_command_says_what_holds(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """Figures on standard output; code 2 and a reason for a data set that cannot be read."""
    assert main([str(STORE), "--only", "illnesses", "--seeds", "1", "--requests", "200"]) == 0
    assert "healthy        1" in capsys.readouterr().out
    main([str(STORE), "--only", "discovery", "--requests", "40"])
    assert "ratio" in capsys.readouterr().out
    (tmp_path / "bad.json").write_text("{}")
    assert main([str(tmp_path / "bad.json")]) == 2
    assert "must hold" in capsys.readouterr().err
