"""The log comes and goes as JSON Lines: a bad row is refused alone, and nothing counts twice."""

from __future__ import annotations

import datetime
import json
from pathlib import Path

import pytest
from memoryranker.client import Client, RankerRpcError
from memoryranker.v1 import admin_pb2, ranker_pb2

from sidecar.domain import (
    Channel,
    ImportanceLine,
    ImportancePart,
    Micros,
    PartName,
    Rating,
)
from sidecar.store.counts import SessionUse
from sidecar.store.log import LoggedRating, LoggedReport, LogRow, MemoryState, StorePriors
from sidecar.store.log_rows import write_row
from sidecar.store.merge import MILLION, Report
from sidecar.store.pruned import PrunedSession, PrunedUse
from tests.serving import Running, running

NOW: Micros = 1_790_000_000_123_456


def lines(*rows: LogRow) -> bytes:
    return b"".join(write_row("elsewhere", each) for each in rows)


def test_importances_ratings_and_times_come_in(client: Client, namespace: str) -> None:
    """What no caller can write: both parts of the importance, when a memory was changed, and who said what of it."""
    client.upsert(namespace, [{"id": "m", "content": "text"}])
    before = client.status(namespace).namespace.score_version
    state = MemoryState("m", NOW, 0.75, 0.5)
    marks = [LoggedRating("m", "a", Rating.HELPFUL, "why", NOW), LoggedRating("m", "b", Rating.UNHELPFUL, "", NOW)]
    answer = client.import_log(namespace, lines(state, *marks))
    assert (answer.imported_count, answer.known_count, answer.rejected_count) == (3, 0, 0)
    found = client.get(namespace, "m")
    assert (found.importance.content, found.importance.use) == (0.75, 0.5)
    assert (found.ratings.helpful, found.ratings.unhelpful) == (1, 1)
    assert found.update_time.ToMicroseconds() == NOW
    after = client.status(namespace).namespace.score_version
    assert after == before + 1
    packet = client.rank(namespace, "text", max_items=5, dry_run=True)
    assert packet.score_version == after
    assert {each.reason for each in packet.left_out} == {ranker_pb2.LEFT_OUT_REASON_RATED_UNHELPFUL}
    again = client.import_log(namespace, lines(state, *marks))
    assert (again.imported_count, again.known_count) == (0, 3)
    assert client.status(namespace).namespace.score_version == after
    older = LoggedRating("m", "b", Rating.HELPFUL, "", NOW - 1)
    assert client.import_log(namespace, lines(older)).known_count == 1
    assert client.get(namespace, "m").ratings.unhelpful == 1


def test_a_server_that_scores_nothing_takes_no_content_part(tmp_path: Path) -> None:
    """What was scored elsewhere does not count where the switch is off; all else of the row comes in."""
    part = ImportancePart(0.4, NOW, ("a decision",), (ImportanceLine("content", 0.75, 1.0, 0.75),))
    state = MemoryState("m", NOW, 0.75, 0.5, {PartName.CONTENT: part, PartName.USE: part})
    with running(tmp_path, importance_scorer_enabled="false") as server:
        server.client.upsert("n", [{"id": "m", "content": "text"}])
        assert server.client.import_log("n", lines(state)).imported_count == 1
        found = server.client.get("n", "m").importance
        assert not found.HasField("content")
        assert found.use == 0.5
        assert server.client.import_log("n", lines(state)).known_count == 1


def test_what_a_rescore_learned_moves_every_namespace_of_a_store_that_has_learned_nothing(
    running_server: Running,
) -> None:
    """The first priors are taken, and rankings use them at once; later ones are not, as the store has its own."""
    client = running_server.client
    for name in ("a", "b"):
        client.upsert(name, [{"id": "m", "content": "text", "kind": "fact"}])
    before = {each.namespace: each.score_version for each in client.namespaces()}

    def use_rates() -> list[float]:
        found = []
        for name in ("a", "b"):
            packet = client.rank(name, "text", explain="full", dry_run=True, weights={"use_rate": 1.0})
            found.append(packet.items[0].features[list(packet.feature_names).index("use_rate")])
        return found

    first = use_rates()
    answer = client.import_log("a", lines(StorePriors({"fact": (0.5, 8.0)}, (3, 1)), MemoryState("m", NOW, 0.5, None)))
    assert (answer.imported_count, answer.known_count) == (2, 0)
    after = {each.namespace: each.score_version for each in client.namespaces()}
    assert after == {name: version + 1 for name, version in before.items()}
    assert use_rates() != first
    learned = use_rates()
    assert client.import_log("b", lines(StorePriors({"fact": (0.9, 8.0)}, (0, 0)))).known_count == 1
    assert use_rates() == learned
    chunk = b"".join(client.export_log("a"))
    assert [json.loads(each)["type"] for each in chunk.splitlines()] == ["store_priors", "memory_state"]


def test_what_pruned_packets_said_counts_once(client: Client, namespace: str) -> None:
    """Beside the packets that are here: the largest of each session, for its agent; again, it changes nothing."""
    client.upsert(namespace, [{"id": "m", "content": "text"}, {"id": "o", "content": "other"}])
    packet = client.rank(namespace, "text", session_id="s", agent_id="a")
    client.report_use(packet.packet_id, used=["m"], shown=["m"], channel="inferred", confidence=0.25)

    def use_rate(memory_id: str) -> float:
        found = client.rank(namespace, "text", explain="full", dry_run=True, weights={"use_rate": 1.0})
        values = {each.memory.id: each.features for each in found.items}[memory_id]
        return values[list(found.feature_names).index("use_rate")]

    before = use_rate("m"), use_rate("o")
    session = PrunedSession("s:s", "another")
    rows = [PrunedUse("m", session, SessionUse(MILLION, MILLION, NOW)), PrunedUse("o", session, SessionUse(0, MILLION))]
    answer = client.import_log(namespace, lines(session, *rows))
    assert (answer.imported_count, answer.known_count) == (3, 0)
    after = use_rate("m"), use_rate("o")
    assert after[0] > before[0]
    assert after[1] < before[1]
    again = client.import_log(namespace, lines(session, *rows, PrunedUse("m", session, SessionUse(5, 10))))
    assert (again.imported_count, again.known_count) == (0, 4)
    assert (use_rate("m"), use_rate("o")) == after


def test_bad_rows_are_told_by_line_and_the_others_go_in(client: Client, namespace: str) -> None:
    """Lines count over the whole call, blank ones too; a report without its packet and a memory that is not there are
    refused like a line that is cut."""
    client.upsert(namespace, [{"id": "m", "content": "text"}])
    words = Report("r", Channel.EXPLICIT, True, 1.0, None, None, NOW, frozenset(), frozenset(), None)
    report = LoggedReport("nowhere", words, 1.0, "", "", late=False)
    chunk = b"\n".join(
        [
            lines(MemoryState("m", NOW, 0.5, None)).strip(),
            b'{"type": "rat',
            b"",
            lines(MemoryState("gone", NOW, 0.5, None)).strip(),
            lines(report).strip(),
            lines(LoggedRating("m", "a", Rating.HELPFUL, "", NOW)).strip(),
        ]
    )
    answer = client.import_log(namespace, chunk)
    assert (answer.imported_count, answer.rejected_count) == (2, 3)
    assert [each.line for each in answer.rejections] == [2, 4, 5]
    assert "'gone'" in answer.rejections[1].message
    assert "packet before its reports" in answer.rejections[2].message


def test_lines_count_over_all_messages_of_a_call(running_server: Running) -> None:
    """A call in pieces names the line of the whole."""
    requests = [admin_pb2.ImportLogRequest(chunk=b"{\n\n{}\n"), admin_pb2.ImportLogRequest(chunk=b"[]")]
    answer = running_server.client._admin.ImportLog(iter(requests))
    assert [each.line for each in answer.rejections] == [1, 3, 4]


def test_the_log_of_all_namespaces_comes_and_goes_at_once(running_server: Running) -> None:
    """Without a namespace rows keep their own."""
    client = running_server.client
    for name in ("a", "b"):
        client.upsert(name, [{"id": "m", "content": f"text of {name}"}])
        client.report_use(client.rank(name, "text").packet_id, used=["m"])
    chunks = [piece.chunk for piece in client._admin.ExportLog(admin_pb2.ExportLogRequest())]
    found = [json.loads(line) for line in b"".join(chunks).splitlines()]
    assert [(each["namespace"], each["type"]) for each in found] == [
        (name, kind) for name in ("a", "b") for kind in ("memory_state", "packet", "report")
    ]
    answer = client.import_log("", b"".join(chunks))
    assert (answer.imported_count, answer.known_count) == (0, 6)


def test_a_span_of_time_bounds_packets_and_ratings(running_server: Running) -> None:
    """States of memories have no time of their own and stay behind."""
    client = running_server.client
    client.upsert("n", [{"id": "m", "content": "text"}])
    first = client.rank("n", "text").packet_id
    client.rate("n", "m", "helpful")
    middle = datetime.datetime.now(datetime.UTC)
    second = client.rank("n", "text").packet_id

    def named(**times_: datetime.datetime) -> set[str]:
        request = admin_pb2.ExportLogRequest(namespace="n", **times_)
        found = b"".join(piece.chunk for piece in client._admin.ExportLog(request)).splitlines()
        return {each.get("packet_id", each["type"]) for each in map(json.loads, found)}

    assert named(until_time=middle) == {first, "rating"}
    assert named(from_time=middle) == {second}
    assert named() == {first, second, "rating", "memory_state"}


def test_a_log_that_is_longer_than_a_message_comes_in_pieces(running_server: Running) -> None:
    """Whole lines only, and all of them."""
    client = running_server.client
    client.upsert("n", [{"id": f"m{number}", "content": f"text {number}"} for number in range(100)])
    for _ in range(50):
        client.rank("n", "text", max_items=50)
    chunks = list(client.export_log("n"))
    assert len(chunks) > 1
    assert all(chunk.endswith(b"\n") for chunk in chunks)
    assert len(b"".join(chunks).splitlines()) == 150


@pytest.mark.parametrize("namespace_", ["n" * 129, "a\0"])
def test_a_namespace_that_cannot_be_is_refused(client: Client, namespace_: str) -> None:
    """In both directions."""
    with pytest.raises(RankerRpcError, match="namespace"):
        list(client.export_log(namespace_))
    with pytest.raises(RankerRpcError, match="namespace"):
        client.import_log(namespace_, b"")
