"""What the notes say of use, shown on a running server: uses count, serves do not, and ratings stand."""

from __future__ import annotations

from google.protobuf import json_format
from memoryranker.client import Client
from memoryranker.v1 import feedback_pb2, ranker_pb2, types_pb2

from tests.notes_store import TASK, WORDS_AND_USE, part, scores, serve_only, write_alike

# Serves and uses


def test_serving_a_memory_moves_no_score(client: Client, namespace: str) -> None:
    """However often memories are served, every score stays what it was, to the last bit."""
    write_alike(client, namespace, 8)
    before = scores(client, namespace)
    for number in range(20):
        assert len(client.rank(namespace, TASK, session_id=f"s{number}", max_items=3).items) == 3
    assert scores(client, namespace) == before


def test_every_serve_is_logged_and_moves_no_score(client: Client, namespace: str) -> None:
    """A packet is kept as an offer, with session, agent, surface, time and places, and says nothing of use."""
    write_alike(client, namespace, 4)
    before = scores(client, namespace)
    served = client.rank(namespace, TASK, session_id="s1", agent_id="a1", surface="voice")
    logged = client.get_packet(namespace, served.packet_id)
    assert [item.memory.id for item in logged.packet.items] == [item.memory.id for item in served.items]
    assert [item.place for item in logged.packet.items] == [1, 2, 3, 4]
    assert (logged.session_id, logged.agent_id, logged.surface) == ("s1", "a1", "voice")
    assert logged.HasField("create_time")
    assert logged.report_state == types_pb2.REPORT_STATE_OPEN
    assert not logged.uses
    assert scores(client, namespace) == before


def test_the_smallest_report_is_enough(client: Client, namespace: str) -> None:
    """A packet id and the used ids are a whole report, and it is an explicit one."""
    write_alike(client, namespace, 3)
    packet = client.rank(namespace, TASK)
    report = client.report_use(packet.packet_id, ["m0", "m2"])
    assert report.used_count == 2
    uses = {use.memory_id: use for use in client.get_packet(namespace, packet.packet_id).uses}
    assert {name: use.used for name, use in uses.items()} == {"m0": True, "m1": False, "m2": True}
    assert {use.channel for use in uses.values()} == {types_pb2.CHANNEL_EXPLICIT}


def test_the_smallest_report_in_json_has_the_names_of_the_note() -> None:
    """`packet_id` and `used_memory_ids` are read as they are; nothing else is required."""
    report = json_format.Parse(
        '{"packet_id": "pkt_8f3a", "used_memory_ids": ["mem_42", "mem_77"]}', feedback_pb2.ReportUseRequest()
    )
    assert (report.packet_id, list(report.used_memory_ids)) == ("pkt_8f3a", ["mem_42", "mem_77"])


def test_a_reported_use_raises_a_memory(client: Client, namespace: str) -> None:
    """What was used stands higher in the next packet, what was shown and not used does not."""
    write_alike(client, namespace, 3)
    before = scores(client, namespace)
    packet = client.rank(namespace, TASK, session_id="s1")
    client.report_use(packet.packet_id, ["m2"])
    after = scores(client, namespace)
    assert after["m2"] > before["m2"]
    assert after["m0"] <= before["m0"]
    assert after["m1"] <= before["m1"]
    assert next(iter(scores(client, namespace, weights=WORDS_AND_USE))) == "m2"


def test_a_good_turn_credits_no_memory(client: Client, namespace: str) -> None:
    """That a turn went well is kept with the packet, and moves no memory's score: it says not which one helped."""
    write_alike(client, namespace, 3)
    before = scores(client, namespace)
    packet = client.rank(namespace, TASK, session_id="s1", surface="voice")
    report = client.report_use(packet.packet_id, channel="packet", outcome=1.0)
    assert report.report_id
    assert not client.get_packet(namespace, packet.packet_id).uses
    assert scores(client, namespace) == before


def test_an_echo_moves_no_score(client: Client, namespace: str) -> None:
    """That the text of memories was repeated moves nothing, however often."""
    write_alike(client, namespace, 3)
    before = scores(client, namespace)
    for number in range(5):
        packet = client.rank(namespace, TASK, session_id=f"s{number}")
        client.report_use(packet.packet_id, ["m0", "m1"], channel="echo")
    assert scores(client, namespace) == before


def test_explicit_ids_outweigh_what_was_inferred(client: Client, namespace: str) -> None:
    """An inferred use counts for less than a named one, and nothing at all once the agent says what it used."""
    write_alike(client, namespace, 3)
    untouched = part(client, namespace, "m0", "use_rate")
    packets = [client.rank(namespace, TASK, session_id=f"s{number}") for number in range(2)]
    client.report_use(packets[0].packet_id, ["m1"], channel="inferred", confidence=0.8)
    client.report_use(packets[1].packet_id, ["m2"], complete=True, unused=["m1"])
    named, inferred = (part(client, namespace, name, "use_rate") for name in ("m2", "m1"))
    assert named > inferred
    client.report_use(packets[0].packet_id, ["m0"])
    taken_back = part(client, namespace, "m1", "use_rate")
    assert taken_back < min(untouched, inferred)


def test_used_beats_served(client: Client, namespace: str) -> None:
    """One use outweighs thirty serves."""
    write_alike(client, namespace, 2)
    before = scores(client, namespace)
    for number in range(30):
        serve_only(client, namespace, "m0", f"s{number}")
    client.report_use(serve_only(client, namespace, "m1", "s30").packet_id, ["m1"])
    after = scores(client, namespace)
    assert after["m0"] == before["m0"]
    assert after["m1"] > before["m1"]
    assert list(scores(client, namespace, weights=WORDS_AND_USE)) == ["m1", "m0"]


def test_uses_count_once_a_session(client: Client, namespace: str) -> None:
    """Fifty uses in one session are one; one in each of fifty sessions is far more."""
    write_alike(client, namespace, 3)
    for number in range(50):
        client.report_use(serve_only(client, namespace, "m0", "one long session").packet_id, ["m0"])
        client.report_use(serve_only(client, namespace, "m1", f"session {number}").packet_id, ["m1"])
    client.report_use(serve_only(client, namespace, "m2", "another session").packet_id, ["m2"])
    for feature in ("frequency", "use_rate"):
        crowned, known, once = (part(client, namespace, name, feature) for name in ("m0", "m1", "m2"))
        assert crowned == once, feature
        assert known > crowned, feature


def test_a_new_memory_gets_a_turn(client: Client, namespace: str) -> None:
    """Memories that never make the ranked part are drawn for the reserved slot; without one they never appear."""
    write_alike(client, namespace, 8)
    for number in range(10):  # the first five have had their turns, and are ranked from now on
        packet = client.rank(
            namespace, TASK, session_id=f"s{number}", filter={"ids": [f"m{row}" for row in range(5)]}, reserved_slots=0
        )
        client.report_use(packet.packet_id, [f"m{row}" for row in range(5)])
    new = {"m5", "m6", "m7"}
    without, drawn = set[str](), set[str]()
    for number in range(100):
        packet = client.rank(
            namespace, TASK, session_id=f"none {number}", max_items=5, reserved_slots=0, weights=WORDS_AND_USE
        )
        without |= {item.memory.id for item in packet.items}
        packet = client.rank(namespace, TASK, session_id=f"one {number}", max_items=6, weights=WORDS_AND_USE)
        assert packet.reserved_slots == 1
        drawn |= {item.memory.id for item in packet.items if item.segment == types_pb2.SEGMENT_RESERVED}
    assert not without & new
    assert drawn == new


def test_the_score_version_moves_with_everything_that_can_change_a_ranking(client: Client, namespace: str) -> None:
    """Writes, marks and reports are a new score version, so that a cached packet is known to be stale; a serve is
    not."""
    write_alike(client, namespace, 2)
    packet = client.rank(namespace, TASK)
    seen = [packet.score_version]

    def version() -> int:
        return client.rank(namespace, TASK).score_version

    assert version() == seen[-1]
    for change in (
        lambda: client.report_use(packet.packet_id, ["m0"]),
        lambda: client.rate(namespace, "m0", "helpful"),
        lambda: client.update(namespace, "m1", pinned=True),
        lambda: client.upsert(namespace, [{"id": "m9", "content": "one more"}]),
        lambda: client.delete(namespace, ["m9"]),
    ):
        change()
        seen.append(version())
    assert seen == sorted(set(seen))
    assert client.status(namespace).namespace.score_version == seen[-1]


# Ratings and the user's word


def test_an_unhelpful_mark_hides_a_memory_and_can_be_taken_back(client: Client, namespace: str) -> None:
    """A memory rated unhelpful is in no packet and is still there; with the mark withdrawn it is what it was."""
    write_alike(client, namespace, 2)
    before = scores(client, namespace)
    client.rate(namespace, "m0", "unhelpful")
    packet = client.rank(namespace, TASK)
    assert [item.memory.id for item in packet.items] == ["m1"]
    assert [(left.reason, left.count) for left in packet.left_out] == [(ranker_pb2.LEFT_OUT_REASON_RATED_UNHELPFUL, 1)]
    assert client.get(namespace, "m0").content == f"{TASK} while harbour pilots board ships"
    client.rate(namespace, "m0", "withdrawn")
    assert scores(client, namespace) == before


def test_a_helpful_mark_is_a_durable_boost(client: Client, namespace: str) -> None:
    """A memory rated helpful stands higher, and still does after twenty more packets."""
    write_alike(client, namespace, 2)
    before = scores(client, namespace)
    client.rate(namespace, "m1", "helpful")
    boosted = scores(client, namespace)
    assert boosted["m1"] > before["m1"]
    assert list(scores(client, namespace, weights=WORDS_AND_USE)) == ["m1", "m0"]
    for number in range(20):
        client.rank(namespace, TASK, session_id=f"s{number}")
    assert scores(client, namespace) == boosted


def test_the_users_word_on_importance_wins(client: Client, namespace: str) -> None:
    """An override is the importance that counts, up and down, until it is cleared."""
    write_alike(client, namespace, 1)
    plain = scores(client, namespace)["m0"]
    for word in (0.0, 1.0):
        client.update(namespace, "m0", importance_override=word)
        assert client.get(namespace, "m0").importance.score == word
        assert (scores(client, namespace)["m0"] > plain) == (word == 1.0)
    client.update(namespace, "m0", importance_override=None)
    assert scores(client, namespace)["m0"] == plain
