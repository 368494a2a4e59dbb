"""The weights that are shipped: two that repeat known notes, worked by hand, and our own."""

from __future__ import annotations

import numpy as np
import pytest

from sidecar.features import FEATURE_NAMES, Columns, TextMatches, feature_matrix, known_values
from sidecar.weights import PRESETS, Contributions, Weights, contributions
from tests.features.building import columns, days_ago, match, no_match, view


def scored(weights: Weights, memories: Columns, text: TextMatches) -> Contributions:
    """The memories' contributions, by the road that a request takes."""
    seen = view(memories, text, half_life_days=weights.half_life_days, variants=weights.variants)
    return contributions(feature_matrix(seen), known_values(seen).without_use, weights)


# The task has five words. By hand: kind + .30 relevance + .25 matched / 5 + min(sessions / 50, .10).
SMARTCTX_TASK = "fix the invoice export timeout"
SMARTCTX_EXAMPLES = [
    # kind, relevance, sessions, content, score
    ("decision", 0.8, 0, "We decided to stream the invoice export", 0.35 + 0.24 + 0.15 + 0.00),
    ("fact", 0.5, 3, "The export timeout is 30 seconds", 0.30 + 0.15 + 0.15 + 0.06),
    ("preference", 0.0, 400, "Prefers short answers", 0.25 + 0.00 + 0.00 + 0.10),
    ("failure", 1.0, 5, "Tried to fix the timeout by retrying", 0.20 + 0.30 + 0.15 + 0.10),
    ("attempt", 0.2, 1, "Invoice numbers start anew each year", 0.05 + 0.06 + 0.05 + 0.02),
    ("episodic", 0.6, 0, "fix the invoice export timeout", 0.00 + 0.18 + 0.25 + 0.00),
    ("decision", 0.0, 51, "Ship on Fridays", 0.35 + 0.00 + 0.00 + 0.10),
    ("attempt", 0.0, 0, "Ship on Mondays", 0.05 + 0.00 + 0.00 + 0.00),
]


def test_smartctx_scores_as_its_note_does() -> None:
    """Eight memories worked by hand, in cases where a token and a substring agree."""
    kinds, relevance, sessions, contents, expected = zip(*SMARTCTX_EXAMPLES, strict=True)
    ages = [days_ago(100 * row) for row in range(len(kinds))]  # age is no part of that note
    memories = columns(len(kinds), kinds=kinds, relevance=relevance, use_sessions=sessions, create_time=ages)
    found = scored(PRESETS["smartctx"], memories, match(contents, SMARTCTX_TASK))
    assert found.score == pytest.approx(expected, abs=1e-12)


def test_smartctx_caps_its_access_bonus() -> None:
    """The bonus is sessions / 50 and stops at .10, so five sessions are as good as ten thousand."""
    memories = columns(4, use_sessions=[0, 4, 5, 10_000])
    found = scored(PRESETS["smartctx"], memories, no_match(4))
    bonus = found.matrix[:, FEATURE_NAMES.index("frequency")]
    assert bonus == pytest.approx([0.0, 0.08, 0.10, 0.10], abs=1e-15)


def test_popular_noise_does_not_outrank_a_fresh_decision_under_smartctx() -> None:
    """An attempt that was used in every session stays below a decision that never was."""
    memories = columns(2, kinds=["attempt", "decision"], use_sessions=[10_000, 0])
    noise, fresh = scored(PRESETS["smartctx"], memories, no_match(2)).score
    assert noise < fresh


# By hand: .40 max(cosine, 0) + .25 * 2^(-age / half-life) + .20 log(1 + sessions) / log(51) + .15 (1 - 2^-helpful).
ENGINE_EXAMPLES = [
    # kind, age in days, cosine, sessions, helpful, score
    ("decision", 180, 0.5, 0, 0, 0.200 + 0.1250 + 0.0 + 0.0),
    ("fact", 0, 1.0, 50, 1, 0.400 + 0.2500 + 0.2 + 0.075),
    ("debugging", 14, 0.25, 7, 2, 0.100 + 0.0625 + 0.1057747 + 0.1125),  # log 8 / log 51 = .5288737
    ("preference", 240, -0.5, 0, 0, 0.000 + 0.0625 + 0.0 + 0.0),
    ("attempt", 28, 0.9, 1, 0, 0.360 + 0.0625 + 0.0352583 + 0.0),  # log 2 / log 51 = .1762912
    ("failure", 45, 0.0, 10_000, 0, 0.000 + 0.1250 + 0.2 + 0.0),
]


def test_engine_scores_as_its_note_does() -> None:
    """Six memories worked by hand: semantic 40 %, recency 25 %, frequency 20 %, feedback 15 %."""
    kinds, ages, cosines, sessions, helpful, expected = zip(*ENGINE_EXAMPLES, strict=True)
    memories = columns(
        len(kinds), kinds=kinds, create_time=[days_ago(age) for age in ages], use_sessions=sessions, helpful=helpful
    )
    found = scored(PRESETS["engine"], memories, no_match(len(kinds), cosine=cosines))
    assert found.score == pytest.approx(expected, abs=1e-6)


# By hand: .55 of content and user + .12 log10(1 + n) / log10(1 + most) + .08 * 2^(-age / half-life) + .15 emotion
# + .10 context. The user's word stands for both; marks weigh .25 to the content's .30.
IMPORTANCE_EXAMPLES = [
    # kind, content, user's word, (helpful, unhelpful), sessions, age in days, emotion, score
    ("decision", 0.85, 0.85, (0, 0), 99, 0, 0.6, 0.4675 + 0.12 + 0.08 + 0.09),
    ("fact", 0.60, None, (0, 0), 0, 90, 0.0, 0.3300 + 0.00 + 0.04 + 0.00),
    ("fact", 0.60, None, (1, 0), 9, 0, 0.0, 0.3675 + 0.06 + 0.08 + 0.00),  # .30 * .60 + .25 * .75
    ("preference", 0.60, None, (0, 3), 0, 0, 1.0, 0.21125 + 0.00 + 0.08 + 0.15),  # .30 * .60 + .25 * .125
    ("procedural", None, None, (0, 0), 0, 180, 0.0, 0.4400 + 0.00 + 0.04 + 0.00),  # the baseline, .8
    ("working", 0.90, 0.10, (4, 0), 0, 1, 0.0, 0.0550 + 0.00 + 0.04 + 0.00),  # the word wins over content and marks
]


def test_importance_scores_as_its_note_does() -> None:
    """Six memories worked by hand: content 30 %, user 25 %, access 20 %, emotion 15 %, context 10 %."""
    kinds, contents, words, marks, sessions, ages, emotions, expected = zip(*IMPORTANCE_EXAMPLES, strict=True)
    memories = columns(
        len(kinds),
        kinds=kinds,
        importance_content=[np.nan if each is None else each for each in contents],
        importance_override=[np.nan if each is None else each for each in words],
        helpful=[each[0] for each in marks],
        unhelpful=[each[1] for each in marks],
        use_sessions=sessions,
        create_time=[days_ago(age) for age in ages],
        emotion=emotions,
    )
    weights = PRESETS["importance"]
    seen = view(
        memories,
        no_match(len(kinds)),
        half_life_days=weights.half_life_days,
        variants=weights.variants,
        emotion_enabled=True,
    )
    found = contributions(feature_matrix(seen), known_values(seen).without_use, weights)
    assert found.score == pytest.approx(expected, abs=1e-12)


def test_the_access_term_of_importance_is_nothing_where_nothing_was_used() -> None:
    """log10(1) / log10(1) at no use is 0, and no number beside it is spoilt."""
    found = scored(PRESETS["importance"], columns(3, use_sessions=[0, 0, 0]), no_match(3))
    assert found.matrix[:, FEATURE_NAMES.index("frequency")].tolist() == [0.0, 0.0, 0.0]
    assert np.isfinite(found.score).all()
    one = scored(PRESETS["importance"], columns(2, use_sessions=[1, 0]), no_match(2))
    assert one.matrix[:, FEATURE_NAMES.index("frequency")] == pytest.approx([0.12, 0.0])


def test_an_old_decision_can_outrank_yesterdays_preference() -> None:
    """Under engine, what fits the task beats what is merely new.

    By hand: .40 * .7 + .25 * 2^(-90 / 180) = .4568 against .40 * .1 + .25 * 2^(-1 / 120) = .2886.
    """
    memories = columns(2, kinds=["decision", "preference"], create_time=[days_ago(90), days_ago(1)])
    found = scored(PRESETS["engine"], memories, no_match(2, cosine=[0.7, 0.1])).score
    assert found == pytest.approx([0.4568, 0.2886], abs=5e-5)


def test_importance_raises_a_memory_under_the_default() -> None:
    """Of two memories that are alike but for the user's word, the more important one stands first."""
    little, much = scored(PRESETS["default"], columns(2, importance_override=[0.2, 0.9]), no_match(2)).score
    assert little < much


def test_the_weights_of_the_notes_are_the_notes() -> None:
    """smartctx weighs kind .35, relevance .30, overlap .25 and access .10; engine 40, 25, 20 and 15 %; importance
    content and user 55, access 20, emotion 15 and context 10 %."""
    assert _nonzero(PRESETS["smartctx"]) == {"kind_prior": 0.35, "relevance": 0.30, "lexical": 0.25, "frequency": 0.10}
    assert _nonzero(PRESETS["engine"]) == {"semantic": 0.40, "recency": 0.25, "frequency": 0.20, "rating": 0.15}
    noted = _nonzero(PRESETS["importance"])
    assert noted["importance"] == pytest.approx(0.30 + 0.25)
    assert noted["frequency"] + noted["recency"] == pytest.approx(0.20)
    assert (noted["emotion"], noted["context"]) == (0.15, 0.10)


def test_a_preset_that_repeats_a_note_caps_use_at_the_sum_of_its_use_terms() -> None:
    """The use family's cap takes nothing from what the note itself adds for use."""
    assert PRESETS["smartctx"].use_family_cap == 0.10
    assert PRESETS["engine"].use_family_cap == pytest.approx(0.20 + 0.15)
    assert PRESETS["importance"].use_family_cap == pytest.approx(0.20 + 0.25)


@pytest.mark.parametrize("weights", PRESETS.values(), ids=list(PRESETS))
def test_every_preset_sums_to_one(weights: Weights) -> None:
    """The best possible memory scores 1."""
    assert weights.values.sum() == pytest.approx(1.0)
    assert (weights.caps == weights.values).all()


@pytest.mark.parametrize("weights", PRESETS.values(), ids=list(PRESETS))
def test_a_preset_names_only_variants_that_exist(weights: Weights) -> None:
    """A preset scores any view without an error."""
    assert np.isfinite(scored(weights, columns(2), match(["a log", "a dialog"], "log")).score).all()


@pytest.mark.parametrize("weights", PRESETS.values(), ids=list(PRESETS))
def test_an_opposite_vector_is_within_range_and_never_above_another(weights: Weights) -> None:
    """A cosine of -1 takes nothing off: the score stays in [0, 1], and what is nearer is not below it."""
    opposite, unrelated, near = scored(weights, columns(3), no_match(3, cosine=[-1.0, 0.0, 2**-0.5])).score
    assert 0.0 <= opposite <= unrelated <= near <= 1.0


def test_ten_thousand_uses_do_not_beat_the_answer() -> None:
    """Under the shipped default, a memory used everywhere and off the task stands below an unused one that answers."""
    memories = columns(
        2, use_sessions=[10_000, 0], used=[10_000.0, 0.0], seen=[10_000.0, 0.0], helpful=[9, 0], importance_use=[1.0, 0]
    )
    text = match(["Lunch is at noon", "The invoice export timeout is 30 seconds"], "invoice export timeout")
    popular, answer = scored(PRESETS["default"], memories, text).score
    assert popular < answer


def test_the_same_memory_scores_by_the_task() -> None:
    """A score is made for a task and not kept with the memory: relevant for one, irrelevant for another."""
    memories = columns(2)
    contents = ["Login uses short-lived tokens", "Invoices go out on Mondays"]
    login = scored(PRESETS["default"], memories, match(contents, "login tokens")).score
    invoices = scored(PRESETS["default"], memories, match(contents, "invoices mondays")).score
    assert login[0] > login[1]
    assert invoices[0] < invoices[1]


def _nonzero(weights: Weights) -> dict[str, float]:
    return {name: value for name, value in zip(FEATURE_NAMES, weights.values.tolist(), strict=True) if value}
