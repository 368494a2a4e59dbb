"""Emotional salience: .4 intensity by a lexicon, .3 markers, .3 personal relevance; all on this machine."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from sidecar.importance import emotion
from sidecar.importance.emotion import SHARES, read_emotion
from sidecar.importance.scoring import Signal
from tests.serving import running


def test_shares_are_the_note_s() -> None:
    """They sum to 1."""
    assert SHARES == {"intensity": 0.4, "markers": 0.3, "personal_relevance": 0.3}


def test_intensity_goes_by_how_strongly_a_text_feels() -> None:
    """Whether it feels good or bad; a plain statement has none."""
    strong = (read_emotion("I love this, it is wonderful!").intensity, read_emotion("I hate this, terrible!").intensity)
    plain = read_emotion("The table has four legs.").intensity
    mild = read_emotion("This is good.").intensity
    assert plain == 0.0
    assert mild is not None
    assert all(value is not None and 0.6 < value <= 1.0 for value in strong)
    assert min(value for value in strong if value is not None) > mild > plain


@pytest.mark.parametrize(
    ("text", "markers"),
    [
        ("The table has four legs.", 0),
        ("My approach has four steps.", 1),
        ("That is critical for the launch.", 1),
        ("Tom prefers tabs.", 1),
        ("They concluded that it works.", 1),
        ("I prefer tabs, that is important, so we decided on them.", 4),
    ],
)
def test_each_sort_of_marker_counts_once(text: str, markers: int) -> None:
    """First person, value words, preferences, decisions; each further one is worth half of what is left."""
    assert read_emotion(text).markers == 1.0 - 0.5**markers


def test_personal_relevance_is_about_the_one_who_speaks() -> None:
    """Most where the speaker says what they want or value; none in a statement about something else."""
    own = read_emotion("I prefer tabs and that is important to me").personal_relevance
    said = read_emotion("I parked behind the house").personal_relevance
    other = read_emotion("The car stands behind the house").personal_relevance
    assert own > said > other == 0.0


@pytest.mark.parametrize(
    ("text", "language"),
    [
        ("나는 커피를 좋아한다", "ko"),
        ("我喜欢咖啡", "zh"),
        ("私はコーヒーが好き", "ja"),
        ("ich mag den Kaffee nicht", "de"),
    ],
)
def test_other_languages_go_by_markers(text: str, language: str) -> None:
    """The lexicon knows English and emoji: where it says nothing, intensity is absent and hands its share on."""
    found = read_emotion(text)
    assert found.intensity is None
    assert found.markers > 0.0
    parts = {name: (getattr(found, name), share) for name, share in SHARES.items()}
    assert Signal.of_parts(parts).value == pytest.approx((found.markers + found.personal_relevance) / 2)
    assert read_emotion(f"{text} 😍😍").intensity is not None


def test_without_the_lexicon_intensity_is_absent(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is an extra; markers and personal relevance need nothing."""
    monkeypatch.setitem(sys.modules, "vader", None)
    emotion._scorer.cache_clear()
    try:
        found = read_emotion("I love this, it is wonderful!")
        assert not emotion.has_lexicon()
    finally:
        monkeypatch.undo()
        emotion._scorer.cache_clear()
    assert found.intensity is None
    assert found.markers > 0.0
    assert emotion.has_lexicon()


def test_a_missing_lexicon_is_named_at_the_start(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Where emotion is switched on, and with what to install; nothing is said where it is off."""
    monkeypatch.setitem(sys.modules, "vader", None)
    emotion._scorer.cache_clear()
    try:
        with running(tmp_path):
            pass
        assert "memory-ranker[emotion]" not in caplog.text
        with running(tmp_path, emotion_namespaces=["n"]):
            pass
        assert "memory-ranker[emotion]" in caplog.text
    finally:
        monkeypatch.undo()
        emotion._scorer.cache_clear()
