"""The other examples of the note importance-scorer, over a real socket."""

from __future__ import annotations

import pytest

from tests.rpc.test_importance import line, score, subject
from tests.serving import Running


def test_the_note_s_batch_is_scored_in_one_call(shared_server: Running, namespace: str) -> None:
    """A preference, notes of a meeting, a method: one result each, in their order, by their kinds' baselines."""
    found = score(
        shared_server,
        namespace,
        subject("User prefers dark mode", "semantic"),
        subject("Meeting notes from 2024-01-15", "episodic"),
        subject("How to deploy to Kubernetes", "procedural"),
    )
    assert [line(each, "baseline").value for each in found] == [0.7, 0.5, 0.8]
    assert all(each.status.code == 0 for each in found)
    preference, meeting, method = (each.importance.score for each in found)
    assert meeting < min(preference, method)


def test_uses_count_before_a_memory_is_added(shared_server: Running, namespace: str) -> None:
    """The caller says in how many sessions it was used; more raise it."""
    text = "User's preferred development workflow"
    never, five, many = score(
        shared_server, namespace, *(subject(text, "semantic", use_sessions=count, recency=1.0) for count in (0, 5, 40))
    )
    # With no other use in the namespace any use is the most there is.
    assert line(five, "access.sessions").value == line(many, "access.sessions").value == pytest.approx(1.0)
    assert line(never, "access.sessions").value == 0.0
    assert five.importance.score > never.importance.score
    assert "5 sessions" in " ".join(five.importance.factors)


def test_moderate_emotion_is_a_factor_in_words(shared_server: Running, namespace: str) -> None:
    """Of .6, as in the note's report; words say it, no sign."""
    (found,) = score(shared_server, namespace, subject("Use PostgreSQL with pgvector", "semantic", emotion=0.6))
    assert "moderate emotional salience (0.60)" in found.importance.factors


def test_quality_and_completeness_raise_confidence(shared_server: Running, namespace: str) -> None:
    """A text with more to go by, and a signal more, are surer."""
    short, longer, known = score(
        shared_server,
        namespace,
        subject("Use PostgreSQL"),
        subject("Use PostgreSQL with pgvector for semantic search over all agents' memories and documents"),
        subject("Use PostgreSQL", contextual_relevance=0.5),
    )
    assert longer.importance.confidence > short.importance.confidence
    assert known.importance.confidence > short.importance.confidence
