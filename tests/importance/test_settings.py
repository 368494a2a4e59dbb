"""What can be set of importance: by flag, file and environment; weights that do not sum to 1 are refused in words."""

from __future__ import annotations

from pathlib import Path

import pytest
from memoryranker.v1 import memory_pb2, memory_pb2_grpc

from sidecar.config import Settings, resolve
from sidecar.errors import SettingsError
from sidecar.importance.access import recency_value, sessions_value
from sidecar.importance.scoring import confidence_words
from sidecar.importance.settings import DOMAINS, AccessForm, SignalWeights
from sidecar.importance.settled import settled_importance
from tests.serving import channel_to, running

HOME = {"HOME": "/nowhere"}


def resolved(environ: dict[str, str], **flags: object) -> Settings:
    return resolve(flags, {**HOME, **environ}).settings


def test_the_defaults_are_the_note_s() -> None:
    """.30, .25, .20, .15, .10, between .1 and 1, and on."""
    found = resolved({})
    weights = (
        found.content_weight,
        found.user_signal_weight,
        found.access_pattern_weight,
        found.emotional_weight,
        found.contextual_weight,
    )
    assert weights == (0.30, 0.25, 0.20, 0.15, 0.10)
    assert (found.min_importance, found.max_importance) == (0.1, 1.0)
    assert found.importance_scorer_enabled == "true"


def test_the_note_s_variables_are_read(tmp_path: Path) -> None:
    """Without our prefix, too; a flag goes before them, and a file comes after."""
    environ = {
        "CONTENT_WEIGHT": "0.4",
        "USER_SIGNAL_WEIGHT": "0.2",
        "ACCESS_PATTERN_WEIGHT": "0.2",
        "EMOTIONAL_WEIGHT": "0.1",
        "CONTEXTUAL_WEIGHT": "0.1",
        "MIN_IMPORTANCE": "0.2",
        "MAX_IMPORTANCE": "0.9",
        "IMPORTANCE_SCORER_ENABLED": "false",
    }
    found = resolved(environ)
    assert (found.content_weight, found.emotional_weight) == (0.4, 0.1)
    assert (found.min_importance, found.max_importance) == (0.2, 0.9)
    assert found.importance_scorer_enabled == "false"
    assert resolved(environ, max_importance="0.8").max_importance == 0.8
    file = tmp_path / "config.toml"
    file.write_text("content_weight = 0.2\nuser_signal_weight = 0.35\nmin_importance = 0.05\n")
    assert resolve({}, HOME, file).settings.user_signal_weight == 0.35
    assert resolve({}, {**HOME, "MIN_IMPORTANCE": "0.3"}, file).settings.min_importance == 0.3


def test_weights_that_do_not_sum_to_one_are_refused() -> None:
    """The error shows all five, and what they come to; so do a floor above the cap and a weight out of range."""
    with pytest.raises(SettingsError, match=r"content_weight 0.5.* sum to 1.2 and must sum to 1"):
        resolved({"CONTENT_WEIGHT": "0.5"})
    with pytest.raises(SettingsError, match=r"min_importance is 0.9 and must be below max_importance, which is 0.5"):
        resolved({"MIN_IMPORTANCE": "0.9", "MAX_IMPORTANCE": "0.5"})
    with pytest.raises(SettingsError, match=r"content_weight is .-1.* environment CONTENT_WEIGHT"):
        resolved({"CONTENT_WEIGHT": "-1"})


def from_file(folder: Path, text: str) -> Settings:
    file = folder / "config.toml"
    file.write_text(text)
    return resolve({}, HOME, file).settings


def test_a_domain_of_ones_own_has_its_weights(tmp_path: Path) -> None:
    """From a table of the settings file; a namespace takes them by its name, a call by theirs, and the rest has the
    common ones."""
    found = settled_importance(
        from_file(
            tmp_path,
            "[importance.recipes]\ncontent = 0.6\nuser = 0.4\n[importance.code]\naccess = 1\n"
            "[importance_namespaces]\nkitchen = 'recipes'\nhall = 'common'\n",
        )
    )
    recipes = SignalWeights(content=0.6, user=0.4, access=0.0, emotion=0.0, context=0.0)
    assert found.of_domain("recipes") == found.of_domain(namespace="kitchen") == recipes
    assert found.of_domain("code", "kitchen").access == 1.0
    assert found.of_domain("decisions") == DOMAINS["decisions"]
    assert found.of_domain() == found.of_domain(namespace="hall") == found.of_domain("common", "kitchen")
    assert found.of_domain() == SignalWeights()
    assert settled_importance(resolved({}, importance_domain="decisions")).of_domain() == DOMAINS["decisions"]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("importance = 3", "importance in .* is not a table"),
        ("[importance]\ncode = 3", "importance.code is not a table"),
        ("[importance.recipes]\ncontent = 0.6", r"\[importance.recipes\]: .*sum to 0.6.* must sum to 1"),
        ("[importance.recipes]\nuses = 1", "'uses' is no signal; the signals are content, user"),
        ("[importance.recipes]\ncontent = '1'", "content is '1'; it must be a number"),
        ("[importance.common]\ncontent = 1", "the common weights are set by content_weight"),
        ("[importance_namespaces]\nkitchen = 'recipes'", "kitchen names the domain 'recipes'; known are common, code"),
        ("importance_domain = 'recipes'", "there is none named 'recipes'; known are common, code"),
    ],
)
def test_a_bad_domain_is_refused(tmp_path: Path, text: str, words: str) -> None:
    """In words, before anything is scored."""
    with pytest.raises(SettingsError, match=words):
        settled_importance(from_file(tmp_path, text))


def test_one_setting_switches_it_off(tmp_path: Path) -> None:
    """The server then says so."""
    with running(tmp_path, importance_scorer_enabled="false") as server, channel_to(server.listen) as channel:
        request = memory_pb2.ScoreImportanceRequest(namespace="ns")
        with pytest.raises(Exception, match="importance_scorer_enabled"):
            memory_pb2_grpc.MemoryServiceStub(channel).ScoreImportance(request, timeout=10)


def test_the_switch_may_be_written_as_toml_writes_it(tmp_path: Path) -> None:
    """Without quotes, as any truth value of a settings file."""
    assert not settled_importance(from_file(tmp_path, "importance_scorer_enabled = false\n")).enabled
    assert settled_importance(from_file(tmp_path, "importance_scorer_enabled = true\n")).enabled


def test_access_is_a_logarithm_of_sessions() -> None:
    """log10(n + 1) / log10(most + 1); at no use at all log10(1) / log10(1) is 0."""
    assert sessions_value(0, 0) == 0.0
    assert sessions_value(9, 99) == 0.5
    assert sessions_value(99, 99) == 1.0


@pytest.mark.parametrize(
    ("sessions", "value"),
    [
        (0, 0.0),
        (1, 0.2),
        (2, 0.2),
        (3, 0.4),
        (5, 0.4),
        (6, 0.6),
        (10, 0.6),
        (11, 0.8),
        (20, 0.8),
        (21, 1.0),
        (500, 1.0),
    ],
)
def test_the_note_s_tiers_are_the_other_form(sessions: int, value: float) -> None:
    """0, 1-2, 3-5, 6-10, 11-20, 21+ sessions."""
    assert sessions_value(sessions, 1_000, AccessForm.TIERS) == value


def test_recency_halves_with_the_half_life() -> None:
    """And what lies ahead is no fresher than now."""
    day = 86_400_000_000
    assert recency_value(30 * day, 30.0) == 0.5
    assert recency_value(-day, 30.0) == 1.0


@pytest.mark.parametrize(
    ("value", "words"),
    [
        (1.0, "high"),
        (0.8, "high"),
        (0.79, "moderate"),
        (0.6, "moderate"),
        (0.4, "low"),
        (0.39, "very low"),
        (0.0, "very"),
    ],
)
def test_confidence_has_four_tiers(value: float, words: str) -> None:
    """In the note's words."""
    assert confidence_words(value).startswith(words)
