from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from sidecar.domain import Packet, Segment
from sidecar.features import FEATURE_NAMES, PARTLY_FED_BY_USE
from sidecar.store.log import LoggedReport
from sidecar.weights import PRESETS, make_weights
from training.dataset import Cutoffs, build_dataset
from training.learning_bench.__main__ import main, table
from training.learning_bench.adapting import holds, only_one_kind
from training.learning_bench.rows import at_least, at_most, beside, learned, trained
from training.model import Model
from training.reserved_draws import reserved_draws
from training.rounds import Course, play_rounds, served_next
from training.run import TrainSettings
from training.worlds import Habits, Task, World, ndcg, of_memories, only_recent, play

FOREVER = 2**62
SEMANTIC, LEXICAL, RECENCY = (FEATURE_NAMES.index(name) for name in ("semantic", "lexical", "recency"))
LEXICAL_ALONE = make_weights("lexical-alone", {"semantic": 0.1, "lexical": 0.9})


@pytest.fixture(scope="module")
def world() -> World:
    """Forty tasks over thirty memories, of which the three of the highest cosine are worth using."""
    dice = np.random.default_rng(1)
    tasks = []
    for _ in range(40):
        features = np.zeros((30, len(FEATURE_NAMES)))
        features[:, [SEMANTIC, LEXICAL, RECENCY]] = dice.random((30, 3))
        worth = (features[:, SEMANTIC] >= np.sort(features[:, SEMANTIC])[-3]).astype(float)
        own = features[:, [FEATURE_NAMES.index(name) for name in PARTLY_FED_BY_USE]]
        tasks.append(Task(features, own, worth, tuple(f"m{n:02}" for n in range(30))))
    return World("n", tuple(tasks))


def test_a_played_packet_is_one_that_the_sidecar_could_have_logged(world: World) -> None:
    """Best first but for the drawn ones in the last places, slots apart, propensities of draws in (0, 1), and the same
    chances when they are computed again from the log."""
    log = play(world, PRESETS["default"], np.random.default_rng(2), sessions=50)
    for packet in (row for row in log if isinstance(row, Packet)):
        ranked = [item.score for item in packet.items if item.segment is Segment.RANKED]
        drawn = [item for item in packet.items if item.segment is Segment.RESERVED]
        assert ranked == sorted(ranked, reverse=True)
        assert len(packet.items) == 12
        assert len(drawn) == 2
        assert all(0 < item.inclusion_propensity < 1 for item in drawn)
        ids = [each.memory_id for each in packet.items] + [each.memory_id for each in packet.undrawn]
        assert len(set(ids)) == len(ids)
    draws = reserved_draws(build_dataset(log, Cutoffs(FOREVER, FOREVER)), Model(PRESETS["default"]))
    assert draws is not None
    assert draws.target == pytest.approx(draws.propensity, abs=1e-12)


def test_agents_use_and_report_as_they_are_wont_to(world: World) -> None:
    """One reports a tenth of its packets and one all; only what is worth it is used without slips; patience ends."""
    habits = [Habits("silent", slip=0.0, report=0.1), Habits("loud", use=1.0, slip=0.0, patience=0.5)]
    log = play(world, PRESETS["default"], np.random.default_rng(3), sessions=600, habits=habits)
    packets = {row.packet_id: row for row in log if isinstance(row, Packet)}
    reports = [row for row in log if isinstance(row, LoggedReport)]
    by_agent = {name: [row for row in reports if row.agent_id == name] for name in ("silent", "loud")}
    asked = {name: sum(each.agent_id == name for each in packets.values()) for name in by_agent}
    assert len(by_agent["loud"]) == asked["loud"]
    assert 0.03 < len(by_agent["silent"]) / asked["silent"] < 0.2
    worth = {row.tobytes(): each for task in world.tasks for row, each in zip(task.features, task.worth, strict=True)}
    for row in reports:
        items = {item.memory_id: item for item in packets[row.packet_id].items}
        assert all(worth[items[used].features.tobytes()] == 1.0 for used in row.report.used)
    first = sum(packets[row.packet_id].items[0].memory_id in row.report.used for row in by_agent["loud"])
    last = sum(packets[row.packet_id].items[9].memory_id in row.report.used for row in by_agent["loud"])
    assert first > 5 * last


def test_the_same_dice_play_the_same_log(world: World) -> None:
    """Packet for packet, report for report."""
    one, other = (play(world, PRESETS["default"], np.random.default_rng(4), sessions=20) for _ in range(2))
    assert [row.packet_id for row in one] == [row.packet_id for row in other]  # type: ignore[union-attr]
    assert [r.report.used for r in one if isinstance(r, LoggedReport)] == [
        r.report.used for r in other if isinstance(r, LoggedReport)
    ]


def test_weights_learned_from_a_world_suit_it(world: World) -> None:
    """From weights that look at the wrong feature almost alone, use leads back to the one that matters."""
    seen, held = world.split(0.5, seed=1)
    log = play(seen, LEXICAL_ALONE, np.random.default_rng(5), sessions=150)
    weights = learned(log, LEXICAL_ALONE)
    assert weights.values[SEMANTIC] > 0.8
    assert held.ndcg(weights) > held.ndcg(LEXICAL_ALONE) + 0.3
    assert len(seen.tasks) == len(held.tasks) == 20


def test_needs_can_be_made_to_differ(world: World) -> None:
    """Where only recent memories are used their recency says which; where only decisions are, their kind does."""
    recent = only_recent(world, "recent")
    for task in recent.tasks:
        assert task.features[task.worth > 0, RECENCY].min() > task.features[task.worth == 0, RECENCY].max() + 0.005
    kind = FEATURE_NAMES.index("kind_prior")
    for task in only_one_kind(world, "kind").tasks:
        assert task.features[task.worth > 0, kind].tolist() == [1.0] * int(task.worth.sum())


def test_weights_change_only_by_a_promotion(world: World) -> None:
    """A run that the gates refuse leaves what serves; one that they promote, or a preview, is served next."""
    log = play(world, LEXICAL_ALONE, np.random.default_rng(6), sessions=120)
    refused = trained(log, LEXICAL_ALONE, TrainSettings())
    assert served_next(refused, LEXICAL_ALONE) is LEXICAL_ALONE
    preview = trained(log, LEXICAL_ALONE)
    assert served_next(preview, LEXICAL_ALONE).values[SEMANTIC] > 0.8


def test_rounds_lead_to_what_agents_need(world: World) -> None:
    """From weights that look at the wrong feature, previews end near the best; refused runs serve on; each round's
    weights are those that the one before let serve, and the same seed is the same course."""
    course = Course(rounds=3, sessions=60, settings=TrainSettings(preview=True, own_namespaces=False))
    found = list(play_rounds(world, LEXICAL_ALONE, course))
    assert [each.number for each in found] == [1, 2, 3]
    assert all(each.serves for each in found)
    assert found[-1].served > found[0].served + 0.3
    assert [each.served for each in found[1:]] == [each.learned for each in found[:-1]]
    assert [each.served for each in play_rounds(world, LEXICAL_ALONE, course)] == [each.served for each in found]
    gated = list(play_rounds(world, LEXICAL_ALONE, replace(course, settings=TrainSettings(own_namespaces=False))))
    assert [(each.learned, each.serves) for each in gated] == [(None, False)] * 3
    assert {each.served for each in gated} == {found[0].served}


def test_memories_arrive_and_needs_change_from_their_round_on(world: World) -> None:
    """No packet has a memory that is not there yet; what is new is served later; from the round of the drift on,
    weights that suited are worse than those that are learned from the last round alone."""
    settings = TrainSettings(preview=True, own_namespaces=False)
    course = Course(rounds=4, sessions=80, at_first=0.5, drift=3, window=1, settings=settings)
    found = list(play_rounds(world, PRESETS["default"], course))
    assert [each.memories for each in found] == [15, 20, 25, 30]
    served: set[str] = set()
    for each in found:
        before = set(served)
        served |= {item.memory_id for row in each.rows if isinstance(row, Packet) for item in row.items}
        assert before < served
        assert len(served) <= each.memories
    learned = found[2].learned
    assert learned is not None
    assert learned > found[2].served + 0.1
    few = of_memories(world, {"m00", "m01"})
    assert 0 < len(few.tasks) < len(world.tasks)
    assert all(task.ids == ("m00", "m01") and task.features.shape[0] == 2 for task in few.tasks)
    with pytest.raises(ValueError, match="round 1: of 1 task too few"):
        next(play_rounds(replace(world, tasks=world.tasks[:1]), PRESETS["default"], course))


@pytest.mark.parametrize(
    ("of_use", "expected"),
    [([0.2, 0.4, 0.397, 0.5], True), ([0.2, 0.4, 0.39, 0.5], False), ([0.4, 0.4, 0.4, 0.4], False)],
)
def test_rounds_hold_if_nothing_is_lost_on_the_way_and_something_is_won(of_use: list[float], expected: bool) -> None:
    """A fall of .003 is let go, one of .01 is not; to stay where one was is no success."""
    assert holds(of_use) is expected


def test_ndcg_of_a_task_is_pinned(world: World) -> None:
    """1 for an order with all that is worth it in front, 0 where none is among the first k."""
    task = world.tasks[0]
    assert ndcg(task, task.worth) == pytest.approx(1.0)
    assert ndcg(task, -task.worth) == 0.0
    assert ndcg(replace(task, worth=np.zeros(30)), task.worth) == 0.0


def test_the_table_says_what_was_not_reached() -> None:
    """In words, beside value and goal; figures without a goal stand without a verdict."""
    rows = [at_least("a", 0.5, 0.9, "share"), at_most("b", 1, 2, "s"), beside("c", 3, "x", "how")]
    lines = table(rows).splitlines()[2:]
    assert [line.split(" | ")[3] for line in lines] == ["**no**", "yes", ""]
    assert lines[2].endswith("| how |")


def test_an_unknown_part_is_an_error(capsys: pytest.CaptureFixture[str]) -> None:
    """That names the parts there are."""
    with pytest.raises(SystemExit, match="2"):
        main(["--only", "miracle"])
    assert "there is no part miracle; the parts are large, recovery" in capsys.readouterr().err
