"""The weights of task features are fitted by one command, on the data that it is pointed at."""

from __future__ import annotations

import tomllib
from pathlib import Path

import numpy as np
import pytest

from sidecar.features import FEATURE_NAMES
from sidecar.weights import PRESETS, make_weights
from training.fit_default import FITTED, Example, fit, main, whole

pytest.importorskip("scipy", reason="needs the extra train")
STORE = Path(__file__).resolve().parents[2] / "sidecar" / "demo" / "store.json"


def test_the_feature_that_tells_gets_the_weight() -> None:
    """Where only `lexical` tells relevant memories from others, it gets nearly all; nothing is below 0."""
    rng = np.random.default_rng(0)
    tasks = []
    for _ in range(50):
        features = rng.random((20, len(FITTED)))
        tasks.append(Example(features, [int(features[:, FITTED.index("lexical")].argmax())]))
    found = fit(tasks)
    assert sum(found.values()) == pytest.approx(1.0)
    assert min(found.values()) >= 0.0
    assert found["lexical"] > 0.9


def test_what_is_not_fitted_stays_and_the_sum_too() -> None:
    """Fitted weights share what the committed ones have together, in steps of a thousandth."""
    found = whole(dict.fromkeys(FITTED, 1 / len(FITTED)))
    committed = dict(zip(FEATURE_NAMES, PRESETS["default"].values.tolist(), strict=True))
    for name in set(FEATURE_NAMES) - set(FITTED):
        assert found[name] == pytest.approx(committed[name])
    assert sum(found.values()) == pytest.approx(1.0)
    make_weights("fitted", found)


def test_the_command_writes_weights_that_load(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """One data set, no figures to leave out, and a file for --weights."""
    out = tmp_path / "mine.toml"
    assert main([str(STORE), "--embedder", "none", "--out", str(out)]) == 0
    assert str(out) in capsys.readouterr().out
    weights = make_weights("mine", tomllib.loads(out.read_text(encoding="utf-8"))["features"])
    assert weights.values[FEATURE_NAMES.index("semantic")] == 0.0  # there were no vectors to learn from


def test_a_file_that_is_missing_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    """The command ends with a usage error."""
    with pytest.raises(SystemExit):
        main(["nowhere.json"])
    assert "nowhere.json" in capsys.readouterr().err
