"""How signals become a score and a confidence: the note's shares, and its example number by number."""

from __future__ import annotations

import pytest

from sidecar.domain import summed
from sidecar.importance.access import RECENCY_SHARE, SESSIONS_SHARE, sessions_value
from sidecar.importance.content import PARTS
from sidecar.importance.scoring import Adjustment, Signal, completeness, confidence, is_content_alone, weigh
from sidecar.importance.settings import ImportanceSettings, SignalWeights

WEIGHTS = SignalWeights()
EXAMPLE = {"content": 0.85, "user": 0.85, "access": 0.72, "emotion": 0.60, "context": 0.95}
CONTRIBUTIONS = {"content": 0.255, "user": 0.213, "access": 0.144, "emotion": 0.090, "context": 0.095}
"""The note's report."""


def test_the_six_parts_of_the_content_have_the_note_s_shares() -> None:
    """.20, .15, .20, .15, .15, .15; an absent part hands its share on, and the rest is their weighted mean."""
    assert list(PARTS.values()) == [0.20, 0.15, 0.20, 0.15, 0.15, 0.15]
    assert sum(PARTS.values()) == pytest.approx(1.0)
    values = dict(zip(PARTS, (0.9, 0.2, 0.8, 0.4, 0.6, 0.0), strict=True))
    whole = Signal.of_parts({name: (values[name], share) for name, share in PARTS.items()}).value
    assert whole == pytest.approx(0.18 + 0.03 + 0.16 + 0.06 + 0.09 + 0.0)
    alone = Signal.of_parts({name: (values[name] if name == "entities" else None, 0.15) for name in PARTS}).value
    assert alone == pytest.approx(0.2)


def test_the_note_s_example_number_by_number() -> None:
    """Its five values give its five contributions, which sum to .797; the baseline of semantic memory brings them to
    the .88 that it prints."""
    found = weigh({name: Signal(value) for name, value in EXAMPLE.items()}, WEIGHTS, "semantic", ImportanceSettings())
    lines = {line.factor: line for line in found.lines}
    for name, contribution in CONTRIBUTIONS.items():
        assert lines[name].contribution == pytest.approx(contribution, abs=5.1e-4)
    assert sum(lines[name].contribution for name in EXAMPLE) == pytest.approx(0.797, abs=1e-3)
    assert found.score == pytest.approx(0.88, abs=5e-3)


def test_twelve_sessions_beside_71_are_the_note_s_access() -> None:
    """.6 of log10(13) / log10(72) and .4 of .9 are its .72."""
    assert SESSIONS_SHARE * sessions_value(12, 71) + RECENCY_SHARE * 0.9 == pytest.approx(0.72, abs=5e-4)


def test_confidence_is_the_sum_of_its_three_parts() -> None:
    """.4 for a user signal, .3 of the content's quality, .3 of completeness."""
    assert confidence(has_user_signal=False, quality=0.0, completeness=0.0) == 0.0
    assert confidence(has_user_signal=True, quality=0.0, completeness=0.0) == pytest.approx(0.4)
    assert confidence(has_user_signal=False, quality=0.5, completeness=0.0) == pytest.approx(0.15)
    assert confidence(has_user_signal=False, quality=0.0, completeness=0.5) == pytest.approx(0.15)
    assert confidence(has_user_signal=True, quality=1.0, completeness=1.0) == pytest.approx(1.0)
    # With all five signals known, a quality of .73 gives the note's .92.
    assert confidence(has_user_signal=True, quality=0.73, completeness=1.0) == pytest.approx(0.92, abs=2e-3)


def test_content_alone_is_a_guess_whatever_it_weighs() -> None:
    """Below .5, also where all weight is the content's; any other signal lifts that."""
    signals = {"content": Signal(0.9), "emotion": Signal(None)}
    assert is_content_alone(signals)
    assert not is_content_alone({**signals, "emotion": Signal(0.0)})
    sure = completeness(signals, SignalWeights(1.0, 0.0, 0.0, 0.0, 0.0))
    assert confidence(has_user_signal=False, quality=1.0, completeness=sure, is_content_alone=True) < 0.5
    assert confidence(has_user_signal=False, quality=1.0, completeness=sure) == pytest.approx(0.6)


@pytest.mark.parametrize("kind", ["working", "procedural"])
def test_a_rating_is_reached_to_the_last_bit(kind: str) -> None:
    """From every score, by the lines as a reader adds them up; so is the clamp, from what is below it."""
    settings = ImportanceSettings(lowest=0.1)
    loss = [Adjustment("superseded", 1.0, -0.25), Adjustment("contradiction", 1.0, -0.15)]
    for step in range(101):
        signals = {"content": Signal(step / 101)}
        assert weigh(signals, WEIGHTS, kind, settings, loss).score >= 0.1
        for rating in (0.1, 0.2, 0.3, 0.7, step / 100):
            found = weigh(signals, WEIGHTS, kind, settings, loss, rating=rating)
            assert found.score == rating == summed(found.lines)


def test_completeness_is_the_weight_of_what_is_known() -> None:
    """Of the signals that could be there: emotion that is switched off is not missed."""
    signals = {"content": Signal(0.5), "user": Signal(0.5), "access": Signal(None)}
    assert completeness(signals, WEIGHTS) == pytest.approx(0.55)
    assert completeness(signals, WEIGHTS, ("content", "user", "access", "context")) == pytest.approx(0.55 / 0.85)
    assert completeness(dict.fromkeys(EXAMPLE, Signal(0.5)), WEIGHTS) == pytest.approx(1.0)
