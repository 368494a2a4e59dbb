"""Rescore and restore on a running server."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from memoryranker.client import Client, RankerRpcError

from tests.serving import Running, running

TASK = "invoice export timeout"
SUBJECTS = (
    *("harbour pilots board ships", "kitchen knives need whetstones", "physics lectures cover optics"),
    *("opera tickets sell early", "garden roses like sunshine", "tunnel workers wear helmets"),
)


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Running]:
    with running(tmp_path, embedder="none") as server:
        yield server


def write(client: Client, namespace: str, count: int = 4) -> None:
    contents = [f"{TASK} while {SUBJECTS[n]}" for n in range(count)]
    client.upsert(namespace, [{"id": f"m{n}", "content": content} for n, content in enumerate(contents)])


def use(client: Client, namespace: str, memory_id: str, sessions: int, start: int = 0) -> None:
    for n in range(start, start + sessions):
        packet = client.rank(namespace, TASK, session_id=f"s{n}", agent_id=f"agent-{n % 7}")
        client.report_use(packet.packet_id, [memory_id])


def importances(client: Client, namespace: str) -> dict[str, float]:
    return {memory.id: memory.importance.score for memory in client.list(namespace)}


def version(client: Client, namespace: str) -> int:
    return client.status(namespace).namespace.score_version


def test_a_rescore_shows_what_would_move_and_writes_nothing(server: Running) -> None:
    """By default it is a dry run: who moves, by how much and why."""
    client = server.client
    write(client, "n")
    use(client, "n", "m1", 6)
    before, at = importances(client, "n"), version(client, "n")
    shown = client.rescore("n")
    assert (shown.run_id, shown.memory_count, shown.moved_count) == ("", 4, 4)
    first = shown.moves[0]
    assert {move.memory_id: move.to_score > move.from_score for move in shown.moves} == {
        "m0": False,
        "m1": True,
        "m2": False,
        "m3": False,
    }
    assert first.from_score == pytest.approx(before[first.memory_id])
    assert "reported sessions" in first.reason
    assert importances(client, "n") == before
    assert version(client, "n") == at


def test_an_applied_rescore_moves_scores_and_the_score_version(server: Running) -> None:
    """The scores are those of the diff; the next packet is ranked by them; a second run finds nothing more to do, but
    where the cap held it back."""
    client = server.client
    write(client, "n")
    use(client, "n", "m1", 6)
    at = version(client, "n")
    applied = client.rescore("n", apply=True)
    assert applied.run_id
    scores = importances(client, "n")
    assert {move.memory_id: pytest.approx(move.to_score) for move in applied.moves} == scores
    assert version(client, "n") == at + 1
    ranked = client.rank("n", TASK, weights={"importance": 1.0}, dry_run=True)
    assert ranked.items[0].memory.id == "m1"
    assert ranked.score_version == at + 1
    for _ in range(20):
        if not client.rescore("n", apply=True).moved_count:
            break
    else:
        pytest.fail("it never came to rest")


def test_restore_brings_back_the_scores_from_before(server: Running) -> None:
    """Also over later runs; an unknown run is not found."""
    client = server.client
    write(client, "n")
    use(client, "n", "m1", 4)
    before = importances(client, "n")
    first = client.rescore("n", apply=True).run_id
    middle = importances(client, "n")
    use(client, "n", "m2", 12, start=10)
    second = client.rescore("n", apply=True).run_id
    assert importances(client, "n") != middle
    at = version(client, "n")
    assert client.restore_scores(second).restored_count > 0
    assert importances(client, "n") == middle
    assert version(client, "n") == at + 1
    client.rescore("n", apply=True)
    assert client.restore_scores(first).restored_count == 4
    assert importances(client, "n") == before
    with pytest.raises(RankerRpcError) as unknown:
        client.restore_scores("no-such-run")
    assert unknown.value.reason == "RUN_NOT_FOUND"


def test_a_run_over_all_namespaces_moves_the_priors_with_the_scores(server: Running) -> None:
    """mu and kappa are fitted again, in force at once and after a restart; restoring brings the old ones back."""
    client, folder = server.client, server.folder
    for number in range(6):
        write(client, f"n{number}", 6)
        use(client, f"n{number}", "m1", 5)

    def rate(asked: Client) -> dict[str, float]:
        items = asked.rank("n0", TASK, weights={"use_rate": 1.0}, dry_run=True).items
        return {item.memory.id: item.score for item in items}

    before = rate(client)
    run = client.rescore(apply=True)
    after = rate(client)
    assert after != before
    assert after["m1"] > after["m0"]
    server.sidecar.close()
    with running(folder, embedder="none") as again:
        assert rate(again.client) == after
        again.client.restore_scores(run.run_id)
        assert rate(again.client) == before


def test_a_half_applied_run_cannot_be_seen(server: Running) -> None:
    """While runs are applied and restored, every packet shows all scores from before or all from after: packets of one
    score version are ranked alike, in every namespace."""
    client = server.client
    for name in ("a", "b", "c"):
        write(client, name, 6)
        use(client, name, "m1", 12)
    seen: dict[tuple[str, int], set[tuple[tuple[str, float], ...]]] = {}
    stop = threading.Event()

    def watch(name: str) -> None:
        with Client(server.listen, timeout=30) as own:
            while not stop.is_set():
                weights = {"importance": 0.5, "use_rate": 0.5}
                answer = own.rank(name, TASK, weights=weights, dry_run=True)
                shown = tuple((item.memory.id, item.score) for item in answer.items)
                seen.setdefault((name, answer.score_version), set()).add(shown)

    threads = [threading.Thread(target=watch, args=(name,)) for name in ("a", "b", "c")]
    for thread in threads:
        thread.start()
    for _ in range(10):
        client.restore_scores(client.rescore(apply=True).run_id)
    stop.set()
    for thread in threads:
        thread.join()
    assert all(len(rankings) == 1 for rankings in seen.values())
    assert len(seen) > 3


def test_what_was_deleted_stays_deleted(server: Running) -> None:
    """A run and its undoing leave a memory that was deleted since, and one of its id that is new, alone."""
    client = server.client
    write(client, "n")
    use(client, "n", "m1", 6)
    run = client.rescore("n", apply=True).run_id
    client.delete("n", ["m1"])
    client.upsert("n", [{"id": "m1", "content": "another thing altogether"}])
    new = client.get("n", "m1").importance
    assert not new.HasField("use")
    assert client.restore_scores(run).restored_count == 3
    assert client.get("n", "m1").importance == new


def test_a_cached_packet_is_stale_after_a_rescore(server: Running) -> None:
    """A client that keys its cache on the score version, which a cheap call returns, cannot serve a packet from before
    a rescore, a report, a rating or a write."""
    client = server.client
    write(client, "n")
    use(client, "n", "m1", 6)
    cache = {}

    def packet() -> int:
        at = version(client, "n")
        if at not in cache:
            cache[at] = client.rank("n", TASK, max_items=3)
        return int(cache[at].score_version)

    changes = (
        lambda: client.rescore("n", apply=True),
        lambda: client.report_use(client.rank("n", TASK, session_id="x").packet_id, ["m2"]),
        lambda: client.rate("n", "m3", "helpful"),
        lambda: client.update("n", "m0", tags=["t"]),
    )
    for change in changes:
        old = packet()
        assert packet() == old
        change()
        assert packet() > old
        assert packet() == version(client, "n")


def test_inferred_uses_are_weighed_by_how_often_they_were_confirmed(server: Running) -> None:
    """A run over all namespaces counts, on packets with both words, how often explicit reports confirmed an inferred
    use; later outputs are that much surer."""
    client = server.client
    client.upsert("n", [{"id": "m1", "content": "see OPS-1"}, {"id": "m2", "content": "see OPS-2"}])

    def sure() -> float:
        packet = client.rank("n", "which ticket", session_id="later")
        return client.report_output(packet.packet_id, "It is OPS-1.").matches[0].confidence

    first = sure()
    for number in range(12):
        packet = client.rank("n", "which ticket", session_id=f"s{number}").packet_id
        client.report_output(packet, "It is OPS-1.")
        client.report_use(packet, ["m1"])
    assert sure() == first
    client.rescore(apply=True)
    assert sure() > first
    assert sure() == pytest.approx((8 + 12) / (10 + 12))
