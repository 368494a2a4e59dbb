"""Importance from the write on: what is stored of it, how it ranks, when it is scored, and what the switch does."""

from __future__ import annotations

import datetime
import logging
from pathlib import Path

import grpc
import pytest
from memoryranker.client import Client
from memoryranker.v1 import memory_pb2, memory_pb2_grpc

from tests.rpc.test_importance import line, score, subject
from tests.serving import Running, channel_to, process, running, wait_until_scored

DECISION = (
    "We decided on 2026-03-01 to keep PostgreSQL 16 with pgvector on db-1.internal; never restart it before 18:00"
)
CHAT = "ok thanks, sounds good!"


def parts(server: Running, namespace: str, memory_id: str) -> dict[str, memory_pb2.ImportancePart]:
    with channel_to(server.listen) as channel:
        request = memory_pb2.GetMemoryRequest(namespace=namespace, memory_id=memory_id)
        answer = memory_pb2_grpc.MemoryServiceStub(channel).GetMemory(request, timeout=30)
    return {each.part: each for each in answer.importance_parts}


def summed(lines: list[memory_pb2.ImportanceLine]) -> float:
    total = 0.0
    for each in lines:
        if "." not in each.factor:
            total += each.contribution
    return total


def test_a_write_stores_what_the_content_is_worth(client: Client, shared_server: Running, namespace: str) -> None:
    """Score, breakdown, confidence, factors and time; what says something is worth more than a greeting."""
    began = datetime.datetime.now(datetime.UTC)
    client.upsert(namespace, [{"id": "d", "content": DECISION, "kind": "decision"}, {"id": "c", "content": CHAT}])
    decided, chat = (client.get(namespace, each).importance for each in ("d", "c"))
    assert decided.score == decided.content > chat.score == chat.content >= 0.1
    part = parts(shared_server, namespace, "d")["content"]
    assert part.score == decided.content == summed(list(part.lines))
    assert 0.0 < part.confidence < 0.6
    assert {"content", "content.actionability", "content.uniqueness", "baseline"} <= {x.factor for x in part.lines}
    assert "a decision" in part.factors
    assert began <= part.time.ToDatetime(datetime.UTC) <= datetime.datetime.now(datetime.UTC)


def test_the_stored_score_is_what_ranks(client: Client, namespace: str) -> None:
    """The feature importance has the content part where nobody said or used anything, and the user's word where
    somebody did."""
    client.upsert(
        namespace,
        [
            {"id": "d", "content": DECISION, "kind": "decision"},
            {"id": "c", "content": CHAT},
            {"id": "u", "content": "Lunch is at noon", "importance_override": 0.95},
        ],
    )
    packet = client.rank(namespace, weights={"importance": 1.0}, reserved_slots=0)
    assert [item.memory.id for item in packet.items] == ["u", "d", "c"]
    shown = {item.memory.id: item.score for item in packet.items}
    assert shown == {each: client.get(namespace, each).importance.score for each in ("u", "d", "c")}
    assert shown["u"] == 0.95


def test_writing_again_keeps_use_and_user_and_follows_the_content(
    client: Client, shared_server: Running, namespace: str
) -> None:
    """The same content is scored once; another one anew; what use and user say stays."""
    client.upsert(namespace, [{"id": "m", "content": DECISION}, {"id": "n", "content": CHAT}])
    client.update(namespace, "m", importance_override=0.4)
    for number in range(6):
        packet = client.rank(namespace, "keep PostgreSQL", session_id=f"s{number}", agent_id=f"a{number}")
        client.report_use(packet.packet_id, ["m"])
    assert client.rescore(namespace, apply=True).moved_count
    before = parts(shared_server, namespace, "m")
    assert list(before) == ["content", "use", "user"]
    assert before["user"].score == 0.4
    assert before["use"].score > before["content"].score
    assert "used in 6 of 6 reported sessions" in before["use"].factors[0]

    version = client.status(namespace).namespace.score_version
    client.upsert(namespace, [{"id": "m", "content": DECISION}])
    assert parts(shared_server, namespace, "m") == before
    assert client.status(namespace).namespace.score_version == version

    client.upsert(namespace, [{"id": "m", "content": CHAT}])
    after = parts(shared_server, namespace, "m")
    assert after["content"].score < before["content"].score
    assert (after["use"], after["user"]) == (before["use"], before["user"])
    assert client.get(namespace, "m").importance.score == 0.4


def test_another_kind_is_scored_anew(client: Client, namespace: str) -> None:
    """The content part follows all that it was made of."""
    client.upsert(namespace, [{"id": "m", "content": DECISION, "kind": "working"}])
    before = client.get(namespace, "m").importance.content
    client.update(namespace, "m", kind="procedural")
    assert client.get(namespace, "m").importance.content > before


def test_a_newer_memory_that_contradicts_an_older_one_lowers_it(
    client: Client, shared_server: Running, namespace: str
) -> None:
    """The older one is scored anew, and says which is newer; the newer one keeps its worth."""
    client.upsert(namespace, [{"id": "old", "content": "The database port of the staging server is 5432"}])
    before = client.get(namespace, "old").importance.content
    client.upsert(namespace, [{"id": "new", "content": "The database port of the staging server is 6543"}])
    wait_until_scored(client, namespace)
    older, newer = (parts(shared_server, namespace, each)["content"] for each in ("old", "new"))
    assert older.score < before
    assert "contradicted by new, which is newer" in older.factors
    assert "says another value than old, which is older" in newer.factors
    assert "contradiction" not in {each.factor for each in newer.lines}


def test_a_theme_that_recurs_and_a_replacement_are_seen_as_they_are_written(
    client: Client, shared_server: Running, namespace: str
) -> None:
    """What was said in other sessions gains, the first that said it, too; what is replaced loses; both say so."""
    said = "The nightly export fails when the warehouse disk is full"
    for number, content in enumerate([said, "Warehouse disk full: the nightly export fails", f"Again: {said}"]):
        client.upsert(namespace, [{"id": f"m{number}", "content": content, "source_thread": f"t{number}"}])
        if not number:
            alone = parts(shared_server, namespace, "m0")["content"]
    wait_until_scored(client, namespace)
    assert "theme" not in {each.factor for each in alone.lines}
    first, last = (parts(shared_server, namespace, each)["content"] for each in ("m0", "m2"))
    for each in (first, last):
        assert next(x.contribution for x in each.lines if x.factor == "theme") > 0
        assert any(words.startswith("recurring theme: 3 sessions") for words in each.factors)
    client.update(namespace, "m0", superseded_by="m2")
    wait_until_scored(client, namespace)
    replaced = parts(shared_server, namespace, "m0")["content"]
    assert replaced.score < first.score
    assert "superseded by a newer memory" in replaced.factors


def test_many_memories_are_scored_after_they_are_written(tmp_path: Path) -> None:
    """A long batch or stream is acknowledged before it is scored; then every memory has a content part, the score
    version has moved, and the most alike are told from what is new."""
    with running(tmp_path) as server:
        client = server.client
        texts = [f"{DECISION}, says ticket OPS-{number}" for number in range(300)]
        client.ingest("n", [{"id": f"m{n:03}", "content": text} for n, text in enumerate(texts)], chunk_size=150)
        wait_until_scored(client, "n")
        version = client.status("n").namespace.score_version
        found = {each.id: each.importance for each in client.list("n")}
        assert all(each.HasField("content") for each in found.values())
        assert client.status("n").namespace.score_version == version
        assert found["m299"].content < client.get("n", "m000").importance.content


def test_what_was_not_scored_before_a_kill_is_scored_after_it(tmp_path: Path) -> None:
    """Nothing but the store says what is still to be scored."""
    with process(tmp_path) as (server, client):
        client.ingest("n", [{"id": f"m{n}", "content": f"{DECISION} {n}"} for n in range(500)], chunk_size=500)
        server.kill()
        server.wait()
    with process(tmp_path) as (_, client):
        wait_until_scored(client, "n")
        assert all(each.importance.HasField("content") for each in client.list("n"))


def test_off_means_inert(tmp_path: Path) -> None:
    """Nothing is scored on a write or after it, and what was scored while it was on does not rank."""
    memories = [{"id": "d", "content": DECISION, "kind": "decision"}, {"id": "c", "content": CHAT, "kind": "decision"}]
    with running(tmp_path) as server:
        server.client.upsert("n", memories)
        on = server.client.rank("n", weights={"importance": 1.0}, reserved_slots=0)
        assert on.items[0].score > on.items[1].score
        version = server.client.status("n").namespace.score_version
    with running(tmp_path, importance_scorer_enabled="false") as server:
        client = server.client
        assert client.status("n").namespace.score_version > version
        client.upsert("n", [{"id": f"e{n}", "content": DECISION + str(n), "kind": "decision"} for n in range(3)])
        assert client.status("n").namespace.unscored_count == 0
        off = client.rank("n", weights={"importance": 1.0}, reserved_slots=0)
        assert {item.score for item in off.items} == {0.8}
        assert client.get("n", "d").importance.score == 0.8
        assert not client.get("n", "e0").importance.HasField("content")
        client.update("n", "c", importance_override=0.9)
        assert client.get("n", "c").importance.score == 0.9
    with running(tmp_path) as server:
        wait_until_scored(server.client, "n")
        again = server.client.rank("n", weights={"importance": 1.0}, reserved_slots=0, filter={"ids": ["d", "e0"]})
        assert all(item.memory.importance.HasField("content") for item in again.items)


def test_no_word_of_a_memory_is_logged(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """Not when it is written, scored, contradicted or promoted, at any level."""
    caplog.set_level(logging.DEBUG)
    secret = "zanzibarium"
    with running(tmp_path, emotion_namespaces=["n"], log_level="debug") as server:
        client = server.client
        client.upsert("n", [{"id": "a", "content": f"The {secret} port of the server is 1", "kind": "semantic"}])
        client.upsert("n", [{"id": "b", "content": f"The {secret} port of the server is 2", "kind": "semantic"}])
        client.ingest("n", [{"id": f"m{n}", "content": f"I love my {secret} {n}"} for n in range(100)])
        wait_until_scored(client, "n")
        score(server, "n", subject(id="a"), subject(f"my {secret}"))
        stored = parts(server, "n", "a")["content"]
    assert secret not in caplog.text
    assert secret not in str(stored)


def test_emotion_is_stored_only_where_it_is_switched_on(tmp_path: Path) -> None:
    """By namespace: the same words have an emotion line in the one, and none in the other."""
    with running(tmp_path, emotion_namespaces=["felt"]) as server:
        for namespace in ("felt", "plain"):
            server.client.upsert(namespace, [{"id": "m", "content": "I prefer tea, and this is important to me"}])
        felt, plain = ({x.factor for x in parts(server, name, "m")["content"].lines} for name in ("felt", "plain"))
    assert "emotion" in felt
    assert not {each for each in plain if each.startswith("emotion")}


def test_agents_scores_come_to_a_consensus(shared_server: Running, namespace: str) -> None:
    """Their mean by confidence and their spread are shown and named, and move no score."""
    asked = subject("The staging server runs in Frankfurt")
    (alone,) = score(shared_server, namespace, asked)
    asked.agent_scores.add(agent_id="planner", score=0.9)
    asked.agent_scores.add(agent_id="critic", score=0.3, confidence=0.5)
    (found,) = score(shared_server, namespace, asked)
    assert found.consensus.score == pytest.approx(0.7)
    assert found.consensus.spread == pytest.approx(0.08**0.5)
    assert found.consensus.agents == 2
    assert "2 agents disagree around 0.70 (spread 0.28)" in found.importance.factors
    assert found.importance.score == alone.importance.score
    assert not alone.HasField("consensus")
    asked.agent_scores.add(agent_id="critic", score=1.5)
    (refused,) = score(shared_server, namespace, asked)
    assert refused.status.code == 3
    assert "agent_scores[2]" in refused.status.message


def test_a_domain_weighs_the_signals_in_its_own_way(shared_server: Running, namespace: str) -> None:
    """code, conversation and decisions are shipped; an unknown one is refused with those there are."""
    asked = subject("The staging server runs in Frankfurt", use_sessions=3, recency=0.5, emotion=0.9)
    weights = {}
    for domain in ("common", "code", "conversation", "decisions"):
        with channel_to(shared_server.listen) as channel:
            request = memory_pb2.ScoreImportanceRequest(namespace=namespace, subjects=[asked], domain=domain)
            (found,) = memory_pb2_grpc.MemoryServiceStub(channel).ScoreImportance(request, timeout=30).results
        weights[domain] = line(found, "emotion").weight
    assert weights["conversation"] > weights["common"] > weights["code"] > 0
    assert weights["code"] < weights["decisions"] < weights["common"]
    unknown = memory_pb2.ScoreImportanceRequest(namespace=namespace, subjects=[asked], domain="cod")
    with channel_to(shared_server.listen) as channel:
        stub = memory_pb2_grpc.MemoryServiceStub(channel)
        with pytest.raises(grpc.RpcError, match="common, code, conversation, decisions"):
            stub.ScoreImportance(unknown, timeout=30)


def test_importance_fades_by_kind_unless_it_is_pinned_or_rated(client: Client, namespace: str) -> None:
    """After one half-life half of what is above the floor is left; the half-life is shown; a pinned memory and the
    user's word stand."""
    days = {"working": 1, "episodic": 30, "decision": 180}
    now = datetime.datetime.now(datetime.UTC)
    memories = [
        {"id": kind, "content": DECISION, "kind": kind, "create_time": now - datetime.timedelta(days=half_life)}
        for kind, half_life in days.items()
    ]
    pinned = {**memories[0], "id": "pinned", "pinned": True}
    rated = {**memories[0], "id": "rated", "importance_override": 0.9}
    client.upsert(namespace, [*memories, pinned, rated])
    with channel_to(client.address) as channel:
        request = memory_pb2.ScoreImportanceRequest(
            namespace=namespace, subjects=[subject(id=each) for each in (*days, "pinned", "rated")]
        )
        found = list(memory_pb2_grpc.MemoryServiceStub(channel).ScoreImportance(request, timeout=30).results)
    for result, half_life in zip(found, days.values(), strict=False):
        assert result.half_life_days == half_life
        assert result.retention == pytest.approx(0.5, abs=1e-3)
        assert result.decayed_score == pytest.approx(0.1 + (result.importance.score - 0.1) / 2, abs=1e-3)
    for result in found[3:]:
        assert result.retention == 1.0
        assert result.decayed_score == result.importance.score


def test_what_is_worth_keeping_can_be_asked_for(client: Client, shared_server: Running, namespace: str) -> None:
    """Working and episodic memories of high score and high confidence, page by page; other kinds, what is replaced and
    what is uncertain are left where they are."""
    client.upsert(
        namespace,
        [
            {"id": "kept", "content": DECISION, "kind": "working", "importance_override": 0.9},
            {"id": "other", "content": DECISION + "!", "kind": "episodic", "importance_override": 0.8},
            {"id": "semantic", "content": DECISION, "kind": "semantic", "importance_override": 0.9},
            {"id": "unsure", "content": "Ran the tests", "kind": "episodic"},
            {"id": "low", "content": DECISION, "kind": "working", "importance_override": 0.2},
            {"id": "gone", "content": DECISION, "kind": "working", "importance_override": 0.9, "superseded_by": "kept"},
        ],
    )
    for number in range(3):
        packet = client.rank(namespace, "keep PostgreSQL", session_id=f"s{number}", agent_id=f"a{number}")
        client.report_use(packet.packet_id, ["kept", "other"])
    asked = memory_pb2.ListPromotionCandidatesRequest(namespace=namespace, page_size=2)
    found: list[memory_pb2.PromotionCandidate] = []
    with channel_to(shared_server.listen) as channel:
        stub = memory_pb2_grpc.MemoryServiceStub(channel)
        while True:
            page = stub.ListPromotionCandidates(asked, timeout=30)
            found += page.candidates
            asked.page_token = page.next_page_token
            if not asked.page_token:
                break
        assert [each.memory.id for each in found] == ["kept", "other"]
        assert all(each.result.importance.score >= 0.7 for each in found)
        assert all(each.result.confidence_tier.startswith("high confidence") for each in found)
        assert all(each.result.promotion_candidate for each in found)
        lower = memory_pb2.ListPromotionCandidatesRequest(namespace=namespace, min_score=0.0, min_confidence=0.0)
        assert {each.memory.id for each in stub.ListPromotionCandidates(lower, timeout=30).candidates} == {
            *("kept", "other", "unsure", "low"),
        }
    assert client.get(namespace, "kept").kind == "working"
    asked_by_id = client.score_importance(namespace, [{"memory": {"id": name}} for name in ("kept", "gone")])
    assert [each.promotion_candidate for each in asked_by_id.results] == [True, False]
