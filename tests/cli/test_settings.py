from __future__ import annotations

import json
import tomllib
from pathlib import Path

import pytest
from click.testing import CliRunner

from sidecar.cli.group import cli
from sidecar.cli.settings import template
from sidecar.config import FIELDS, resolve
from sidecar.errors import SettingsError
from sidecar.lifecycle import Sidecar


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in ("XDG_CONFIG_HOME", "XDG_RUNTIME_DIR", "XDG_DATA_HOME", "MEMORY_RANKER_CONFIG", "MEMORY_RANKER_LISTEN"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    return tmp_path


def test_every_setting_is_a_flag_of_serve_and_of_config() -> None:
    """Flags are made from the settings: none is missing, and each says its meaning, its limit and its default."""
    for name in ("serve", "config"):
        options = {each.name: each for each in cli.commands[name].params}
        for setting, field in FIELDS.items():
            words = getattr(options[setting], "help", "")
            assert field.metadata["help"][1:] in words
            assert field.metadata["rule"].limit in words
            assert "[default: " in words


def test_config_tells_where_each_value_comes_from(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A flag wins over the environment, that over the file, and that over the default."""
    file = home / "config.toml"
    file.write_text("threads = 2\nstreams = 9\nquota_bytes = 7\n")
    monkeypatch.setenv("MEMORY_RANKER_STREAMS", "10")
    monkeypatch.setenv("MEMORY_RANKER_THREADS", "3")
    monkeypatch.setenv("MEMORY_RANKER_NAMESPACE", "mine")
    result = CliRunner().invoke(cli, ["config", "--json", "--config", str(file), "--threads", "5"])
    assert result.exit_code == 0, result.output
    found = json.loads(result.stdout)
    assert (found["threads"]["value"], found["threads"]["origin"]) == (5, "flag --threads")
    assert (found["streams"]["value"], found["streams"]["origin"]) == (10, "environment MEMORY_RANKER_STREAMS")
    assert (found["quota_bytes"]["value"], found["quota_bytes"]["origin"]) == (7, f"file {file}")
    assert found["log_level"]["origin"] == "default"


def test_the_template_is_toml_with_every_default(home: Path) -> None:
    """With all its comments taken away, it is a settings file that changes nothing but folder and address."""
    text = template()
    settings = [
        line.removeprefix("# ") for line in text.splitlines() if line.removeprefix("# ").split(" = ")[0] in FIELDS
    ]
    given = tomllib.loads("\n".join(settings))
    assert given.keys() == FIELDS.keys()
    file = home / "config.toml"
    file.write_text("\n".join(line for line in settings if "..." not in line))
    assert resolve({}, {"HOME": str(home)}, file).settings == resolve({}, {"HOME": str(home)}).settings
    tomllib.loads(text)
    for line in text.splitlines():
        assert len(line) <= 400


def test_a_wrong_variable_is_told_by_name(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also when the command only looks for the address."""
    monkeypatch.setenv("MEMORY_RANKER_THRAEDS", "3")
    result = CliRunner().invoke(cli, ["status"])
    assert result.exit_code == 2
    assert "did you mean 'MEMORY_RANKER_THREADS'" in result.stderr


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("[weights.mine]\nfeatures = {lexical = 0.5, sematic = 0.3}\n", "weights.mine.features.sematic"),
        (
            "[weights.mine]\nfeatures = {lexical = 0.5}\nhalf_life_days = {fact = -1}\n",
            "weights.mine.half_life_days.fact",
        ),
        ("[weights.mine]\nfeatures = {lexical = 0.9, semantic = 0.9}\n", "weights.mine.features"),
        ("[weights.default]\nfeatures = {lexical = 0.5}\n", "weights.default: the name is taken"),
        ('[weights."".features]\nlexical = 0.5\n', "weights.'': a name must not be empty"),
        ("embedder = 'client:0'\n", "client:0 needs a dimension from 1 to 4,096"),
        ("embedder = 'onnx:/nothere'\n", "onnx finds no tokenizer.json in /nothere"),
        ("[weights]\nactive = 'nope'\n", "none named 'nope'"),
    ],
)
def test_what_would_not_serve_is_refused_in_the_words_of_the_server(home: Path, text: str, says: str) -> None:
    """`config` says what `serve` would, with the same exit code."""
    file = home / "config.toml"
    file.write_text(text)
    for form in ("--print", "--json"):
        refused = CliRunner().invoke(cli, ["config", form, "--config", str(file)])
        assert refused.exit_code == 2
        assert says in refused.stderr
    with pytest.raises(SettingsError) as caught:
        Sidecar(resolve({"data": str(home / "data")}, {"HOME": str(home)}, file).settings).open()
    assert caught.value.message in refused.stderr
