"""What comes back on a packet over a real socket: reports by channel, ratings, and what they move."""

from __future__ import annotations

import datetime
from collections.abc import Callable

from memoryranker.client import Client, RankerRpcError
from memoryranker.v1 import types_pb2

from tests.rpc.test_ranker_service import TOMORROW, ids_of


def test_a_report_tells_what_became_of_each_id(client: Client, filled: str) -> None:
    """Ids that are not in the packet are told apart, in the order used, unused, shown; the rest counts."""
    packet = client.rank(filled, "ferry", session_id="s1")
    one, two, three = ids_of(packet)[:3]
    report = client.report_use(
        packet.packet_id, [one, one[:2], one], unused=[two, one, "typo"], shown=[one, two, three, "x"]
    )
    assert [(each.memory_id, each.status.code) for each in report.results] == [
        (one, 0),
        (one[:2], 5),
        (one, 0),
        (two, 0),
        (one, 3),
        ("typo", 5),
        (one, 0),
        (two, 0),
        (three, 0),
        ("x", 5),
    ]
    assert (report.used_count, report.unused_count) == (1, 2)
    assert report.report_state == types_pb2.REPORT_STATE_REPORTED
    logged = client.get_packet(filled, packet.packet_id)
    assert {use.memory_id: use.used for use in logged.uses} == {one: True, two: False, three: False}


def test_the_smallest_report_is_a_packet_and_its_used_ids(client: Client, filled: str) -> None:
    """What is not named in it was not used; the same words again change nothing and say so."""
    packet = client.rank(filled, "ferry")
    used = ids_of(packet)[:1]
    first = client.report_use(packet.packet_id, used, request_id="r1")
    version = client.status(filled).namespace.score_version
    assert (first.used_count, first.unused_count, first.replayed) == (1, 9, False)
    again = client.report_use(packet.packet_id, used, request_id="r1")
    assert (again.report_id, again.replayed) == (first.report_id, True)
    assert client.status(filled).namespace.score_version == version
    assert client.status(filled).namespace.reported_packet_count == 1


def test_a_verdict_can_be_taken_back(client: Client, filled: str) -> None:
    """The later word on a memory stands alone."""
    packet = client.rank(filled, "ferry")
    memory_id = ids_of(packet)[0]
    client.report_use(packet.packet_id, [memory_id], sequence=1)
    client.report_use(packet.packet_id, unused=[memory_id], sequence=2)
    uses = [use for use in client.get_packet(filled, packet.packet_id).uses if use.memory_id == memory_id]
    assert [use.used for use in uses] == [False]


def test_the_other_channels(client: Client, filled: str) -> None:
    """INFERRED keeps its confidence, PACKET names no memory; neither says anything of those it does not name."""
    packet = client.rank(filled, "ferry")
    memory_id = ids_of(packet)[0]
    inferred = client.report_use(packet.packet_id, [memory_id], channel="inferred", confidence=0.6)
    assert (inferred.used_count, inferred.unused_count) == (1, 0)
    whole = client.report_use(packet.packet_id, channel="packet", outcome=0.5)
    assert (whole.used_count, whole.unused_count) == (0, 0)
    (use,) = client.get_packet(filled, packet.packet_id).uses
    assert (use.channel, use.used, use.confidence) == (types_pb2.CHANNEL_INFERRED, True, 0.6)


def test_serving_never_raises_a_memory_and_use_does(client: Client, namespace: str) -> None:
    """Fifty serves leave a score as it was; one report of use lifts it."""
    client.upsert(namespace, [{"id": f"m{i}", "content": f"note {i} on the ferry"} for i in range(4)])

    def scores() -> dict[str, float]:
        packet = client.rank(namespace, "ferry", dry_run=True, as_of_time=TOMORROW)
        return {item.memory.id: item.score for item in packet.items}

    before = scores()
    for _ in range(50):
        packet = client.rank(namespace, "ferry")
    assert scores() == before
    client.report_use(packet.packet_id, ["m2"], complete=False)
    after = scores()
    assert after["m2"] > before["m2"]


def test_a_report_of_a_future_use_keeps_every_value_in_its_range(client: Client, filled: str) -> None:
    """A reporter's clock that runs two days ahead moves nothing out of [0, 1]."""
    packet = client.rank(filled, "ferry")
    ahead = datetime.datetime.now(datetime.UTC) + datetime.timedelta(days=2)
    client.report_use(packet.packet_id, ids_of(packet)[:1], report_time=ahead)
    for item in client.rank(filled, "ferry", explain="full").items:
        assert all(0 <= value <= 1 for value in item.features)


def test_a_rating_moves_and_can_be_withdrawn(
    client: Client, filled: str, refused: Callable[..., RankerRpcError]
) -> None:
    """Unhelpful leaves a memory out, and says why; each rater's latest word stands."""
    first = ids_of(client.rank(filled, "ferry", dry_run=True))[0]
    marked = client.rate(filled, first, "unhelpful", agent_id="a")
    assert (marked.ratings.helpful, marked.ratings.unhelpful, marked.left_out) == (0, 1, True)
    assert first not in ids_of(client.rank(filled, "ferry", max_items=40))
    marked = client.rate(filled, first, "helpful", agent_id="b")
    assert (marked.ratings.helpful, marked.ratings.unhelpful, marked.left_out) == (1, 1, True)
    marked = client.rate(filled, first, "withdrawn", agent_id="a")
    assert (marked.ratings.helpful, marked.ratings.unhelpful, marked.left_out) == (1, 0, False)
    assert first in ids_of(client.rank(filled, "ferry"))
    assert client.get(filled, first).ratings.helpful == 1
    assert refused("rate", filled, first[:2], "helpful").reason == "MEMORY_NOT_FOUND"
