"""Faults of feedback that were seen elsewhere, tried here."""

from __future__ import annotations

import pytest
from memoryranker.client import Client, RankerRpcError
from memoryranker.v1 import ranker_pb2

from sidecar.features import FEATURE_NAMES, USE_FAMILY
from tests.promises.frozen import ids, left_out, text


def use_part(client: Client, namespace: str, memory_id: str) -> list[float]:
    """What use adds to a memory, feature by feature."""
    (item,) = client.rank(namespace, filter={"ids": [memory_id]}, dry_run=True).items
    return [item.contributions[FEATURE_NAMES.index(name)] for name in USE_FAMILY]


def test_fb_02_a_verdict_that_changes_replaces_the_first(client: Client, namespace: str) -> None:
    """Used, then named as not used: one word stands, the later one, and the counts are as if it had been the only
    one."""
    for where in (namespace, f"{namespace} once"):
        client.upsert(where, [{"id": "m2", "content": text(1)}, {"id": "m3", "content": text(2)}])
    changed = client.rank(namespace, session_id="s").packet_id
    client.report_use(changed, ["m2"], sequence=1)
    assert use_part(client, namespace, "m2") > use_part(client, namespace, "m3")
    client.report_use(changed, [], unused=["m2"], sequence=2)
    once = client.rank(f"{namespace} once", session_id="s").packet_id
    client.report_use(once, [], unused=["m2"])
    (use,) = (use for use in client.get_packet(namespace, changed).uses if use.memory_id == "m2")
    assert not use.used
    assert use_part(client, namespace, "m2") == use_part(client, f"{namespace} once", "m2")


def test_fb_04_another_tenant_s_packet_or_memory_is_not_found(client: Client, namespace: str) -> None:
    """Tenant B reports on A's packet, and on A's memory in its own packet: not found, and A's counts stay."""
    mine, theirs = f"{namespace} a", f"{namespace} b"
    client.upsert(mine, [{"id": "of a", "content": text(1)}])
    client.upsert(theirs, [{"id": "of b", "content": text(2)}])
    before = use_part(client, mine, "of a")
    packet = client.rank(mine)
    with pytest.raises(RankerRpcError) as caught:
        client.report_use(packet.packet_id, ["of a"], namespace=theirs)
    assert caught.value.reason == "PACKET_NOT_FOUND"
    reported = client.report_use(client.rank(theirs).packet_id, ["of a"])
    assert reported.used_count == 0
    assert reported.results[0].status.code != 0
    assert use_part(client, mine, "of a") == before


def test_fb_06_what_was_served_and_is_said_to_be_shown_counts_once(client: Client, namespace: str) -> None:
    """The log knows what was served; a report that lists it as shown, once and again, adds nothing."""
    for where in (namespace, f"{namespace} plain"):
        client.upsert(where, [{"id": f"m{i}", "content": text(i)} for i in range(3)])
    packet = client.rank(namespace, session_id="s").packet_id
    for _ in range(2):
        client.report_use(packet, ["m1"], shown=["m0", "m1", "m2"])
    plain = client.rank(f"{namespace} plain", session_id="s").packet_id
    client.report_use(plain, ["m1"])
    for name in ("m0", "m1", "m2"):
        assert use_part(client, namespace, name) == use_part(client, f"{namespace} plain", name)


def test_fb_08_fetching_never_outweighs_a_bad_mark(client: Client, namespace: str) -> None:
    """Rated unhelpful once and asked for ten times: it stays out of packets until the mark is taken back."""
    client.upsert(namespace, [{"id": "m1", "content": "the ferry leaves at noon"}, {"id": "m2", "content": text(1)}])
    client.rate(namespace, "m1", "unhelpful")
    for _ in range(10):
        packet = client.rank(namespace, "when does the ferry leave")
        assert ids(packet) == ["m2"]
        assert left_out(packet) == {ranker_pb2.LEFT_OUT_REASON_RATED_UNHELPFUL: 1}
    client.rate(namespace, "m1", "withdrawn")
    assert ids(client.rank(namespace, "when does the ferry leave"))[0] == "m1"


def test_fb_10_uses_have_a_ceiling(client: Client, namespace: str) -> None:
    """A hundred and fifty sessions used an off-topic memory: the one that answers stands first, and the last fifty
    added next to nothing."""
    client.upsert(namespace, [{"id": "m1", "content": text(1)}, {"id": "m2", "content": "the ferry leaves at noon"}])
    bonus = []
    for number in range(150):
        packet = client.rank(namespace, session_id=f"s{number}", agent_id=f"a{number}", filter={"ids": ["m1"]})
        client.report_use(packet.packet_id, ["m1"])
        bonus.append(sum(use_part(client, namespace, "m1")))
    for preset in ("default", "smartctx"):
        assert ids(client.rank(namespace, "when does the ferry leave", weights=preset)) == ["m2", "m1"]
    assert bonus == sorted(bonus)
    assert bonus[149] - bonus[99] < 0.1 * (bonus[49] - bonus[0])
