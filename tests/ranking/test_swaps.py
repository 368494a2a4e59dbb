"""`swap_near_ties`: the first two places by chance, where scores are near."""

from __future__ import annotations

from pathlib import Path

import pytest

from sidecar.ranking.reserved import ReserveSettings
from sidecar.store.log_reading import read_log
from tests.serving import Running, running, wait_until_scored
from training.dataset import build_dataset

TASK = "harbour pilot"
MEMORIES = [{"id": f"m{n}", "content": f"harbour pilot {n} boards ship {n * n} at gate {n % 7}"} for n in range(20)]


def firsts(server: Running, times: int, **asked: object) -> list[list[str]]:
    """The first two of each of so many packets."""
    found = []
    for _ in range(times):
        packet = server.client.rank("n", TASK, max_items=8, **asked)  # type: ignore[arg-type]
        assert [item.swapped for item in packet.items[2:]] == [False] * (len(packet.items) - 2)
        first, second = packet.items[:2]
        assert first.swapped == second.swapped
        assert first.swapped or first.segment != second.segment or first.score >= second.score
        found.append([item.memory.id for item in packet.items[:2]])
    return found


def test_near_ties_take_the_first_places_by_chance(tmp_path: Path) -> None:
    """About half of 60 packets are the other way round, marked and logged with a probability of 1/2; a dry run and a
    packet with a pin are in order; all else stands where it stood."""
    with running(tmp_path, embedder="none", swap_near_ties=0.1) as server:
        server.client.upsert("n", MEMORIES)
        wait_until_scored(server.client, "n")
        found = firsts(server, 60, reserved_slots=1)
        pairs = {tuple(each) for each in found}
        one, other = sorted(pairs)
        assert one == other[::-1]
        assert 15 <= sum(tuple(each) == one for each in found) <= 45  # 99.99 % of a fair coin
        dry = {tuple(each) for each in firsts(server, 20, dry_run=True)}
        assert len(dry) == 1
        server.client.upsert("n", [{**MEMORIES[3], "pinned": True}])
        wait_until_scored(server.client, "n")
        assert len({tuple(each) for each in firsts(server, 20)}) == 1
    dataset = build_dataset(read_log(tmp_path / "data" / "memories.db"))
    first = dataset.place <= 2
    swappable = (dataset.packet < 60) & first
    assert set(dataset.position_probability[swappable]) == {0.5}
    assert set(dataset.position_probability[(dataset.packet >= 60) & first]) == {1.0}
    assert 0.25 < dataset.swapped[swappable].mean() < 0.75


def test_it_is_off_unless_asked_for(tmp_path: Path) -> None:
    """And the exploration policy has then the name that it had before there were swaps."""
    with running(tmp_path, embedder="none") as server:
        server.client.upsert("n", MEMORIES)
        wait_until_scored(server.client, "n")
        assert len({tuple(each) for each in firsts(server, 20)}) == 1
    assert "swap" not in ReserveSettings().policy
    assert ReserveSettings.of_policy(ReserveSettings().policy) == ReserveSettings()
    with_swaps = ReserveSettings(swap_within=0.01)
    assert ReserveSettings.of_policy(with_swaps.policy) == with_swaps


@pytest.mark.parametrize("gap", [0.5, 0.0])
def test_scores_that_are_apart_stay_in_order(tmp_path: Path, gap: float) -> None:
    """With weights of relevance alone: memories that are far apart never swap."""
    with running(tmp_path, embedder="none", swap_near_ties=0.1) as server:
        worth = {"a": 0.9, "b": 0.9 - gap}
        server.client.upsert("n", [{"id": k, "content": f"word {k}", "relevance": v} for k, v in worth.items()])
        packets = [server.client.rank("n", "x", weights={"relevance": 1.0}) for _ in range(24)]
    orders = {tuple(item.memory.id for item in packet.items) for packet in packets}
    assert len(orders) == (1 if gap else 2)
    assert {packet.items[0].position_probability for packet in packets} == {1.0 if gap else 0.5}
