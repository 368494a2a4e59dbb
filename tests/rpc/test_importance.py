"""ScoreImportance over a real socket: the five signals, what they sum to, and how sure they are."""

from __future__ import annotations

import pytest
from memoryranker.client import Client
from memoryranker.v1 import memory_pb2, memory_pb2_grpc, types_pb2

from tests.serving import Running, channel_to, running

SUMS = pytest.approx


def score(
    server: Running, namespace: str, *subjects: memory_pb2.ImportanceSubject, **context: list[str]
) -> list[memory_pb2.ImportanceResult]:
    with channel_to(server.listen) as channel:
        request = memory_pb2.ScoreImportanceRequest(
            namespace=namespace, subjects=subjects, context=types_pb2.Context(**context)
        )
        return list(memory_pb2_grpc.MemoryServiceStub(channel).ScoreImportance(request, timeout=30).results)


def subject(content: str = "", kind: str = "", id: str = "", **given: float) -> memory_pb2.ImportanceSubject:
    return memory_pb2.ImportanceSubject(memory=types_pb2.Memory(id=id, content=content, kind=kind), **given)  # type: ignore[arg-type]


def line(result: memory_pb2.ImportanceResult, factor: str) -> memory_pb2.ImportanceLine:
    return next(each for each in result.lines if each.factor == factor)


def sum_of(result: memory_pb2.ImportanceResult) -> float:
    total = 0.0
    for each in result.lines:
        if "." not in each.factor:
            total += each.contribution
    return total


def example() -> memory_pb2.ImportanceSubject:
    """The note's: a rated decision, used in 12 sessions."""
    found = memory_pb2.ImportanceSubject(
        memory=types_pb2.Memory(content="Decision: Use PostgreSQL with pgvector for semantic search", kind="semantic"),
        user_rating=0.85,
        use_sessions=12,
        recency=0.9,
        emotion=0.6,
        contextual_relevance=0.95,
    )
    found.memory.metadata.update(
        {"project": "AgeMem", "decisionType": "architecture", "alternatives": ["Redis", "Pinecone", "Weaviate"]}
    )
    return found


def test_the_contributions_shown_sum_to_the_score(shared_server: Running, namespace: str) -> None:
    """From first to last, parts of a signal left aside; so does a reader add up."""
    for each in score(
        shared_server, namespace, example(), subject("Never deploy on Fridays", "procedural"), subject("ok")
    ):
        assert sum_of(each) == each.importance.score


def test_the_note_s_example_has_all_five_signals(shared_server: Running, namespace: str) -> None:
    """The user's word stands as the score; each line adds its weight times its value; high confidence; the factors of
    the note are named."""
    (found,) = score(shared_server, namespace, example())
    assert found.importance.score == 0.85
    for factor, weight, value in (("user", 0.25, 0.85), ("emotion", 0.15, 0.60), ("context", 0.10, 0.95)):
        assert line(found, factor).weight == SUMS(weight)
        assert line(found, factor).value == SUMS(value)
        assert line(found, factor).contribution == SUMS(weight * value)
    assert line(found, "access").contribution == SUMS(0.20 * (0.6 * 1.0 + 0.4 * 0.9))
    assert found.importance.confidence >= 0.8
    words = " ".join(found.importance.factors)
    for part in (
        "high user rating (0.85)",
        "strong contextual relevance (0.95)",
        "12 sessions",
        "architectural decision",
        "moderate emotional salience (0.60)",
    ):
        assert part in words


def test_the_note_s_confidence_comes_of_its_own_formula(client: Client, shared_server: Running, namespace: str) -> None:
    """.4 for the rating, .3 of a content that six telling words make three quarters sure, .3 for signals that are all
    there: the .92 that the note prints. Beside no other memory, novelty is not known and it is less."""
    (alone,) = score(shared_server, namespace, example())
    assert alone.importance.confidence == SUMS(0.4 + 0.3 * 0.75 * 0.8 + 0.3)
    client.upsert(namespace, [{"id": "other", "content": "Redis keeps the sessions of the shop"}])
    (found,) = score(shared_server, namespace, example())
    assert found.importance.confidence == SUMS(0.4 + 0.3 * 0.75 + 0.3) == SUMS(0.925)
    without = example()
    without.ClearField("emotion")
    without.ClearField("use_sessions")
    without.ClearField("recency")
    (less,) = score(shared_server, namespace, without)
    # Emotion is not expected where it is off; access is, and weighs .20 of .85.
    assert less.importance.confidence == SUMS(0.4 + 0.3 * 0.75 + 0.3 * 0.65 / 0.85)


def test_content_alone_is_a_guess(shared_server: Running, namespace: str) -> None:
    """At least .1, confidence below .5; the signals that are absent hand their weight to it, and are no zeros."""
    (found,) = score(shared_server, namespace, subject("Test content"))
    assert found.importance.score >= 0.1
    assert found.importance.confidence < 0.5
    assert line(found, "content").weight == 1.0
    assert not line(found, "access").HasField("value")
    assert line(found, "access").weight == 0.0


def test_kinds_have_baselines(shared_server: Running, namespace: str) -> None:
    """The same words are worth more as a procedure than as working memory."""
    kinds = ("procedural", "semantic", "archival", "episodic", "working")
    found = score(shared_server, namespace, *(subject("How to do something", kind) for kind in kinds))
    scores = [each.importance.score for each in found]
    assert scores[0] > scores[1] > scores[-1]
    assert [line(each, "baseline").value for each in found] == [0.8, 0.7, 0.6, 0.5, 0.3]


def test_a_rating_of_the_user_stands(shared_server: Running, namespace: str) -> None:
    """Exactly, whatever the signals say; what it overrides is shown beside it."""
    for rating in (0.0, 0.1, 0.2, 0.3, 0.9, 1.0, 0.07, 1 / 3):
        (found,) = score(shared_server, namespace, subject("Test content", user_rating=rating))
        assert found.importance.score == rating
        assert sum_of(found) == rating
        weighted = rating - line(found, "override").contribution
        assert 0.1 - 1e-9 <= weighted <= 1.0


def test_scoring_writes_nothing(client: Client, shared_server: Running, namespace: str) -> None:
    """A memory that is scored is neither stored nor changed."""
    client.upsert(namespace, [{"id": "m1", "content": "The staging server runs in Frankfurt"}])
    before = client.get(namespace, "m1").SerializeToString(deterministic=True)
    version = client.status(namespace).namespace.score_version
    score(shared_server, namespace, subject(id="m1"), subject("Something else"))
    assert client.get(namespace, "m1").SerializeToString(deterministic=True) == before
    assert client.status(namespace).namespace.score_version == version
    assert len(list(client.list(namespace))) == 1


def test_what_is_known_already_is_less_unique(client: Client, shared_server: Running, namespace: str) -> None:
    """Against the namespace's vectors; a memory is not its own neighbour."""
    client.upsert(namespace, [{"id": "m1", "content": "The staging server runs in Frankfurt"}])
    again, other, itself = score(
        shared_server,
        namespace,
        subject("the staging server runs in Frankfurt!"),
        subject("Anna is allergic to peanuts"),
        subject(id="m1"),
    )
    assert line(again, "content.uniqueness").value < 0.1 < line(other, "content.uniqueness").value
    assert not line(itself, "content.uniqueness").HasField("value")
    assert any("m1" in words for words in again.importance.factors)


def test_a_contradicted_memory_loses(client: Client, shared_server: Running, namespace: str) -> None:
    """Of two values of one attribute the older loses, and is told which is newer; in several scripts."""
    pairs = [
        ("The database port is 5432", "The database port is 6543"),
        ("데이터베이스 포트는 5432이다", "데이터베이스 포트는 6543이다"),
        ("数据库端口是5432", "数据库端口是6543"),
        ("منفذ قاعدة البيانات هو 5432", "منفذ قاعدة البيانات هو 6543"),
    ]
    for number, (old, new) in enumerate(pairs):
        client.upsert(namespace, [{"id": f"old{number}", "content": old}])
        client.upsert(namespace, [{"id": f"new{number}", "content": new}])
        older, newer = score(shared_server, namespace, subject(id=f"old{number}"), subject(id=f"new{number}"))
        assert line(older, "contradiction").contribution < 0
        assert all(each.factor != "contradiction" for each in newer.lines)
        assert f"new{number}" in " ".join(older.importance.factors)


def test_a_superseded_memory_loses(client: Client, shared_server: Running, namespace: str) -> None:
    """While what replaces it lives."""
    client.upsert(namespace, [{"id": "new", "content": "Deploys go through Argo"}])
    client.upsert(namespace, [{"id": "old", "content": "Releases were made by hand", "superseded_by": "new"}])
    (found,) = score(shared_server, namespace, subject(id="old"))
    assert line(found, "superseded").contribution < 0


def test_a_theme_that_recurs_gains(client: Client, shared_server: Running, namespace: str) -> None:
    """What several sessions say counts for more than what one says several times."""
    text = "The nightly export fails when the warehouse disk is full"
    others = [
        "Nightly export failed again, the warehouse disk was full",
        "Warehouse disk full: the nightly export fails",
    ]
    for name, threads in (("one", ["a", "a"]), ("many", ["b", "c"])):
        memories = [
            {"id": f"{name}{n}", "content": other, "source_thread": thread}
            for n, (other, thread) in enumerate(zip(others, threads, strict=True))
        ]
        client.upsert(f"{namespace}-{name}", memories)
    asked = memory_pb2.ImportanceSubject(memory=types_pb2.Memory(content=text, source_thread="a"))
    (one,) = score(shared_server, f"{namespace}-one", asked)
    (many,) = score(shared_server, f"{namespace}-many", asked)
    assert line(many, "theme").contribution > 0
    assert all(each.factor != "theme" for each in one.lines)


def test_the_context_counts(shared_server: Running, namespace: str) -> None:
    """What fits the current goal is worth more than what does not."""
    fits, not_fits = score(
        shared_server,
        namespace,
        subject("The login page must use the new session tokens"),
        subject("The cafeteria serves pasta on Mondays"),
        goals=["rework login and session tokens"],
    )
    assert line(fits, "context").value > line(not_fits, "context").value


def test_emotion_is_off_unless_switched_on(running_server: Running) -> None:
    """No lexicon reads a text of a namespace that has not opted in; a value that the caller brings is taken."""
    loved = "I love this so much, it is the best and most important decision I ever made!"
    off, brought = score(running_server, "ns", subject(loved), subject(loved, emotion=0.6))
    assert not line(off, "emotion").HasField("value")
    assert line(brought, "emotion").value == 0.6


def test_emotion_is_read_where_it_is_on(tmp_path_factory: pytest.TempPathFactory) -> None:
    """Markers in the first person, values, preferences and decisions are found; a plain fact has fewer."""
    with running(tmp_path_factory.mktemp("s"), emotion_namespaces=["ns"]) as server:
        felt, plain = score(
            server, "ns", subject("I prefer tea, and my decision is important to me"), subject("The server has 8 cores")
        )
    assert line(felt, "emotion").value > line(plain, "emotion").value
    assert line(felt, "emotion.markers").value > 0.5


def test_a_bad_subject_is_refused_alone(shared_server: Running, namespace: str) -> None:
    """With every fault of it; the others are scored."""
    bad, good = score(shared_server, namespace, subject("x", user_rating=2.0, recency=-1.0), subject("A fact"))
    assert bad.status.code == 3
    assert not bad.HasField("importance")
    assert good.status.code == 0
    (unknown,) = score(shared_server, namespace, subject(id="nobody"))
    assert "content" in unknown.status.message


def test_every_language_of_the_cases_is_scored(shared_server: Running, namespace: str) -> None:
    """What says something is worth more than a greeting, in each."""
    pairs = [
        ("Never restart the payment server before 18:00; ask Dana first", "ok thanks!"),
        ("결제 서버는 18:00 이전에 절대 재시작하지 마세요. 김민수 님의 결정입니다", "안녕하세요 감사합니다"),
        ("決済サーバーは18:00前に必ず再起動しないでください。田中さんの決定です", "こんにちは、ありがとう"),
        ("支付服务器18:00之前禁止重启，这是李明的决定", "你好，谢谢"),
        ("يجب عدم إعادة تشغيل خادم الدفع قبل 18:00، قرار الدكتور أحمد", "مرحبا شكرا"),
        ("ห้ามรีสตาร์ทเซิร์ฟเวอร์ชำระเงินก่อน 18:00 เป็นการตัดสินใจของคุณสมชาย", "สวัสดี ขอบคุณ"),
        ("Den Zahlungsserver niemals vor 18:00 neu starten, das hat Dana entschieden", "Hallo, danke"),
        ("Никогда не перезапускайте сервер оплаты до 18:00, так решила Дана", "Привет, спасибо"),
    ]
    found = score(shared_server, namespace, *(subject(text) for pair in pairs for text in pair))
    for telling, greeting in zip(found[::2], found[1::2], strict=True):
        assert telling.importance.score > greeting.importance.score
