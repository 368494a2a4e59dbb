"""ReportOutput on a running server: what an agent said and did becomes reports that count."""

from __future__ import annotations

import pytest
from memoryranker.client import Client, RankerRpcError
from memoryranker.v1 import ranker_pb2, types_pb2

CONTENTS = {
    "m1": "The nightly import times out in svc/import/batch.py, see OPS-4412.",
    "m2": "Imports are owned by Soledad Quispe since the reorganisation of the data team in spring.",
    "m3": "Imports run at night.",
}
TASK = "why does the nightly import fail"


def serve(client: Client, namespace: str, task: str = TASK, **options: object) -> ranker_pb2.RankResponse:
    client.upsert(namespace, [{"id": name, "content": content} for name, content in CONTENTS.items()])
    packet = client.rank(namespace, task, **options)  # type: ignore[arg-type]
    assert {item.memory.id for item in packet.items} == set(CONTENTS)
    return packet


def uses(client: Client, namespace: str, packet_id: str) -> dict[tuple[str, int], bool]:
    return {(use.memory_id, use.channel): use.used for use in client.get_packet(namespace, packet_id).uses}


def test_handles_in_the_output_become_inferred_uses(client: Client, namespace: str) -> None:
    """Which handle gave which use is told; what has a handle that was not found counts as not used; a memory without
    any handle stays unknown."""
    packet = serve(client, namespace)
    answer = client.report_output(packet.packet_id, "It is OPS-4412 again: the batch is too large.")
    assert [(match.memory_id, match.handle_kind, match.handle) for match in answer.matches] == [
        ("m1", "ticket", "ops-4412")
    ]
    assert answer.matches[0].confidence == pytest.approx(0.8)
    assert answer.report_id
    assert answer.report_state == types_pb2.REPORT_STATE_REPORTED
    assert uses(client, namespace, packet.packet_id) == {
        ("m1", types_pb2.CHANNEL_INFERRED): True,
        ("m2", types_pb2.CHANNEL_INFERRED): False,
    }


def test_tool_calls_are_read_too(client: Client, namespace: str) -> None:
    """What an agent did counts as what it said."""
    packet = serve(client, namespace)
    calls = [("edit", '{"path": "svc/import/batch.py"}')]
    answer = client.report_output(packet.packet_id, tool_calls=calls)
    assert [match.memory_id for match in answer.matches] == ["m1"]


def test_a_handle_that_the_task_has_is_ignored(client: Client, namespace: str) -> None:
    """The packet keeps the task that it was asked for, and its context."""
    packet = serve(client, namespace, "what is OPS-4412", files=["svc/import/batch.py"])
    answer = client.report_output(packet.packet_id, "OPS-4412 is about svc/import/batch.py.")
    assert not answer.matches


def test_an_echo_moves_no_score_and_is_kept(client: Client, namespace: str) -> None:
    """A memory that was read aloud is recorded as ECHO, never as INFERRED."""
    packet = serve(client, namespace)
    before = client.status(namespace).namespace.score_version
    answer = client.report_output(packet.packet_id, f"My notes say: {CONTENTS['m2']}", shown=["m2"])
    assert list(answer.echoed_memory_ids) == ["m2"]
    assert not answer.matches
    assert uses(client, namespace, packet.packet_id) == {("m2", types_pb2.CHANNEL_ECHO): True}
    assert client.status(namespace).namespace.score_version == before


def test_only_what_was_shown_is_judged(client: Client, namespace: str) -> None:
    """A memory that was trimmed from the prompt is neither used nor unused."""
    packet = serve(client, namespace)
    answer = client.report_output(packet.packet_id, "OPS-4412, says Soledad Quispe.", shown=["m2"])
    assert {match.memory_id for match in answer.matches} == {"m2"}
    assert set(uses(client, namespace, packet.packet_id)) == {("m2", types_pb2.CHANNEL_INFERRED)}
    with pytest.raises(RankerRpcError) as refused:
        client.report_output(packet.packet_id, "x", shown=["m2", "typo"])
    assert [each.field for each in refused.value.violations] == ["shown_memory_ids[1]"]


def test_an_output_without_a_sign_of_any_memory_is_no_report(client: Client, namespace: str) -> None:
    """Where no memory could have been found nothing is recorded, and the packet stays open."""
    packet = serve(client, namespace)
    answer = client.report_output(packet.packet_id, "They run at night.", shown=["m3"])
    assert (answer.report_id, list(answer.matches)) == ("", [])
    assert answer.report_state == types_pb2.REPORT_STATE_OPEN


def test_the_agents_own_word_goes_over_what_was_inferred(client: Client, namespace: str) -> None:
    """EXPLICIT replaces INFERRED, also for "not used", in whichever order they come."""
    packet = serve(client, namespace)
    client.report_use(packet.packet_id, ["m3"])
    client.report_output(packet.packet_id, "It is OPS-4412.")
    found = uses(client, namespace, packet.packet_id)
    assert found["m1", types_pb2.CHANNEL_EXPLICIT] is False
    assert found["m1", types_pb2.CHANNEL_INFERRED] is True


def test_a_retry_is_answered_as_the_first_call(client: Client, namespace: str) -> None:
    """The same request id counts once and is answered alike, handles and all; the answer that is kept for it holds no
    text of a memory, so that a deleted memory's handle is not told any more."""
    packet = serve(client, namespace)
    first = client.report_output(packet.packet_id, "OPS-4412.", request_id="r1")
    version = client.status(namespace).namespace.score_version
    assert client.report_output(packet.packet_id, "OPS-4412.", request_id="r1") == first
    assert client.status(namespace).namespace.score_version == version
    client.delete(namespace, ["m1"])
    again = client.report_output(packet.packet_id, "OPS-4412.", request_id="r1")
    assert again.report_id == first.report_id
    assert [match.handle for match in again.matches] == [""]


def test_a_request_id_stands_for_one_output_also_if_that_says_nothing(client: Client, namespace: str) -> None:
    """A retry of an output that named nobody is answered as it was, and another output by the same id is an error."""
    said = "the worker of the queue wants a long and calm restart on every single quiet evening"
    client.upsert(namespace, [{"id": "plain", "content": said}])
    packet = client.rank(namespace, "worker")
    first = client.report_output(packet.packet_id, "Hello.", request_id="r2")
    assert not uses(client, namespace, packet.packet_id)
    assert client.report_output(packet.packet_id, "Hello.", request_id="r2") == first
    with pytest.raises(RankerRpcError, match="request_id"):
        client.report_output(packet.packet_id, said, request_id="r2")
    assert not uses(client, namespace, packet.packet_id)


def test_a_second_output_of_the_same_packet_adds_and_takes_nothing_back(client: Client, namespace: str) -> None:
    """An agent that goes on may use what it did not use at first; what it used stays used."""
    packet = serve(client, namespace)
    client.report_output(packet.packet_id, "It is OPS-4412.")
    client.report_output(packet.packet_id, "I asked Soledad Quispe.")
    found = uses(client, namespace, packet.packet_id)
    assert found["m1", types_pb2.CHANNEL_INFERRED]
    assert found["m2", types_pb2.CHANNEL_INFERRED]


def test_a_voice_turn_credits_only_what_it_carries(client: Client, namespace: str) -> None:
    """A surface without text reports that the turn went well, and hands over what was heard: a memory gets credit only
    where one of its handles was said."""
    packet = serve(client, namespace, surface="voice")
    client.report_use(packet.packet_id, channel="packet", outcome=1.0)
    assert not uses(client, namespace, packet.packet_id)
    client.report_output(packet.packet_id, "yes please ask soledad quispe about it")
    assert uses(client, namespace, packet.packet_id)["m2", types_pb2.CHANNEL_INFERRED]


def test_unknown_packets_and_bad_fields_are_refused(client: Client, namespace: str) -> None:
    """Every violation is told at once; a packet of another namespace is not there."""
    packet = serve(client, namespace)
    with pytest.raises(RankerRpcError) as unknown:
        client.report_output("no-such-packet", "x")
    assert unknown.value.reason == "PACKET_NOT_FOUND"
    with pytest.raises(RankerRpcError) as foreign:
        client.report_output(packet.packet_id, "x", namespace="another")
    assert foreign.value.reason == "PACKET_NOT_FOUND"
    with pytest.raises(RankerRpcError) as bad:
        client.report_output(packet.packet_id, "x" * 1_048_577, tool_calls=[("t" * 257, "a" * 65_537)], namespace="")
    assert {each.field for each in bad.value.violations} == {
        *("namespace", "output", "tool_calls[0].name", "tool_calls[0].arguments"),
    }
