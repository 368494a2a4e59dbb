"""How settings are found, and what is refused."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path

import pytest
from memoryranker.client import default_address

from sidecar.config import FIELDS, resolve
from sidecar.errors import SettingsError
from sidecar.settled import settled

HOME = {"HOME": "/home/kim"}


def write(folder: Path, text: str) -> Path:
    path = folder / "config.toml"
    path.write_text(text, encoding="utf-8")
    return path


def test_flag_beats_environment_beats_file_beats_default(tmp_path: Path) -> None:
    """Of several values the nearest one counts, and each value's origin is kept."""
    file = write(tmp_path, "threads = 2\nstreams = 10\nquota_bytes = 5\n")
    found = resolve({"threads": 8, "streams": None}, {**HOME, "MEMORY_RANKER_STREAMS": "20"}, file)
    settings = found.settings
    assert (settings.threads, settings.streams, settings.quota_bytes, settings.log_level) == (8, 20, 5, "info")
    assert found.origins["threads"] == "flag --threads"
    assert found.origins["streams"] == "environment MEMORY_RANKER_STREAMS"
    assert found.origins["quota_bytes"] == f"file {file}"
    assert found.origins["log_level"] == "default"


@pytest.mark.parametrize(
    ("environ", "data", "listen"),
    [
        (HOME, "/home/kim/.local/share/memory-ranker", "unix:/home/kim/.local/share/memory-ranker/memory-ranker.sock"),
        ({**HOME, "XDG_DATA_HOME": "/d"}, "/d/memory-ranker", "unix:/d/memory-ranker/memory-ranker.sock"),
        (
            {**HOME, "XDG_RUNTIME_DIR": "/run/u"},
            "/home/kim/.local/share/memory-ranker",
            "unix:/run/u/memory-ranker.sock",
        ),
        ({"MEMORY_RANKER_DATA": "/data"}, "/data", "unix:/data/memory-ranker.sock"),
        ({**HOME, "MEMORY_RANKER_LISTEN": "unix:/s"}, "/home/kim/.local/share/memory-ranker", "unix:/s"),
    ],
)
def test_server_and_client_agree_on_the_address(environ: dict[str, str], data: str, listen: str) -> None:
    """A client that is told nothing finds the server that was told nothing in the same environment."""
    settings = resolve({}, environ).settings
    assert (str(settings.data), settings.listen) == (data, listen)
    assert default_address(environ) == listen


def test_a_user_without_a_home_is_told_to_name_a_folder() -> None:
    """Without HOME there is no default folder, and the error names the setting."""
    with pytest.raises(SettingsError, match=r"data: .*--data"):
        resolve({}, {})


@pytest.mark.parametrize(
    ("text", "hint"),
    [
        ("thread = 3", "did you mean 'threads'"),
        ("[weights.mine]\nfeatures = {}\n[wieghts.other]\n", "did you mean 'weights'"),
        ("[weights]\nactiv = 'mine'\n", "did you mean 'active'"),
    ],
)
def test_an_unknown_key_suggests_the_nearest(tmp_path: Path, text: str, hint: str) -> None:
    """A misspelt key in the file is an error that names the right one."""
    with pytest.raises(SettingsError, match=hint):
        resolve({}, HOME, write(tmp_path, text))


def test_all_that_is_wrong_is_told_at_once(tmp_path: Path) -> None:
    """Of the file, the environment and the flags; a value that another overrules is none of it."""
    text = """
        threads = "4"
        thread = 3
        log_level = "loud"
        drain_seconds = -1
        [weights.mine]
        feature = {lexical = 0.5}
    """
    with pytest.raises(SettingsError) as caught:
        resolve(
            {"http": "on", "drain_seconds": "2"},
            {**HOME, "MEMORY_RANKER_STREAMS": "0", "MEMORY_RANKER_TREADS": "3"},
            write(tmp_path, text),
        )
    first, *told = caught.value.message.splitlines()
    assert first == "7 faults:"
    for words in (
        "threads is '4'",
        "without quotes",
        "unknown setting 'thread'",
        "log_level is 'loud'",
        "unknown key weights.mine.feature",
        "http is 'on'",
        "streams is '0'",
        "unknown variable MEMORY_RANKER_TREADS",
    ):
        assert len([line for line in told if words in line]) == 1, words


def test_what_tables_hold_is_told_with_the_rest(tmp_path: Path) -> None:
    """All that is wrong in any of them, once; what would only follow from a fault that is told is none."""
    text = """
        threads = 0
        importance_domain = "recipes"
        [weights]
        active = "mine"
        [weights.mine]
        features = {sematic = 0.3, lexical = 2, recency = "0.1"}
        half_life_days = {fact = -1}
        [weights.other]
        feature = {lexical = 0.5}
        use_family_cap = 7
        [importance.recipes]
        content = 3
        uses = 1
        [importance_namespaces]
        kitchen = "cakes"
    """
    file = write(tmp_path, text)
    with pytest.raises(SettingsError) as caught:
        resolve({}, HOME, file, settled)
    expected = [
        "threads is 0",
        "weights.mine.features in ",
        "weights.mine.features.sematic is no feature",
        "weights.mine.features.lexical is 2",
        "weights.mine.half_life_days.fact is -1",
        "unknown key weights.other.feature",
        "weights.other.use_family_cap is 7",
        "[importance.recipes]: content is 3",
        "[importance.recipes]: 'uses' is no signal",
        "[importance_namespaces]: kitchen names the domain 'cakes'",
    ]
    assert {words: [each.startswith(words) for each in caught.value.faults].count(True) for words in expected} == (
        dict.fromkeys(expected, 1)
    )
    assert len(caught.value.faults) == len(expected)


def test_weights_of_a_sum_are_judged_where_all_are_known() -> None:
    """A weight that is none is the one fault, and the sum without it is not."""
    with pytest.raises(SettingsError) as caught:
        resolve({"content_weight": "-1", "min_importance": "2", "max_importance": "0"}, HOME)
    assert [each.split(" ")[0] for each in caught.value.faults] == ["content_weight", "min_importance"]


def test_an_unknown_variable_suggests_the_nearest() -> None:
    """A misspelt MEMORY_RANKER_ variable is an error; other variables are none of ours."""
    with pytest.raises(SettingsError, match="did you mean 'MEMORY_RANKER_THREADS'"):
        resolve({}, {**HOME, "MEMORY_RANKER_TREADS": "3"})
    resolve({}, {**HOME, "MEMORYRANKER_THREADS": "3", "THREADS": "x"})


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("threads", "0"),
        ("threads", "many"),
        ("threads", "2.5"),
        ("drain_seconds", "nan"),
        ("drain_seconds", "-1"),
        ("reserve_fit_share", "1.01"),
        ("embedder", "gpt"),
        ("log_level", "INFO"),
        ("weights", " "),
        ("listen", "tcp"),
        ("listen", "unix:"),
        ("listen", ":50051"),
        ("listen", "127.0.0.1:70000"),
        ("socket_access", "all"),
        ("http", "on"),
        ("http", "example.org:80"),
        ("http", "127.0.0.1:70000"),
        ("http", ":9464"),
    ],
)
def test_a_bad_value_names_setting_value_and_limit(name: str, value: str) -> None:
    """A value out of its bounds is refused with everything that is needed to put it right."""
    with pytest.raises(SettingsError) as caught:
        resolve({}, {**HOME, f"MEMORY_RANKER_{name.upper()}": value})
    rule = FIELDS[name].metadata["rule"]
    assert caught.value.message == (
        f"{name} is {value!r} (from environment MEMORY_RANKER_{name.upper()}): it must be {rule.limit}"
    )


@pytest.mark.parametrize(
    "text",
    [
        "threads = true",
        "threads = '4'",
        "threads = 4.0",
        "drain_seconds = '1'",
        f"drain_seconds = 1{'0' * 400}",
        "weights = 3",
        "emotion_namespaces = 'a'",
    ],
)
def test_the_file_is_held_to_its_types(tmp_path: Path, text: str) -> None:
    """A value of the wrong type in the file is refused like any other."""
    with pytest.raises(SettingsError, match="it must be"):
        resolve({}, HOME, write(tmp_path, text))


@pytest.mark.parametrize(
    ("given", "listen"),
    [
        ("localhost:7", "127.0.0.1:7"),
        ("127.8.8.8:0", "127.8.8.8:0"),
        ("[::1]:50051", "[::1]:50051"),
        ("unix:///run/a.sock", "unix:/run/a.sock"),
        ("unix:/run/../a", "unix:/a"),
    ],
)
def test_addresses_are_written_one_way(given: str, listen: str) -> None:
    """The forms in which an address can be given come out the same."""
    assert resolve({"listen": given}, HOME).settings.listen == listen


@pytest.mark.parametrize("given", ["0.0.0.0:50051", "[::]:1", "192.168.1.2:1", "example.org:1", "127.0.0.1.example:1"])
def test_other_machines_cannot_be_served(given: str) -> None:
    """Whoever can reach the address can read every memory, so it must be this machine's own."""
    with pytest.raises(SettingsError, match="callers are not asked who they are"):
        resolve({"listen": given}, HOME)


def test_a_socket_path_ends_at_107_bytes() -> None:
    """The system cuts longer ones off; the error says how long it is, in bytes."""
    resolve({"listen": f"unix:/{'a' * 106}"}, HOME)
    with pytest.raises(SettingsError, match=r"at most 107 bytes; /é.* has 109"):
        resolve({"listen": f"unix:/{'é' * 54}"}, HOME)


def test_weights_of_ones_own_are_kept_as_written(tmp_path: Path) -> None:
    """[weights.NAME] tables come through as they are, beside the name of the active ones."""
    file = write(tmp_path, "[weights]\nactive = 'mine'\n[weights.mine]\nfeatures = {lexical = 0.5}\n")
    settings = resolve({}, HOME, file).settings
    assert settings.weights == "mine"
    assert settings.presets == {"mine": {"features": {"lexical": 0.5}}}


def test_a_named_file_must_be_there_and_be_toml(tmp_path: Path) -> None:
    """Only the file that nobody named may be missing."""
    with pytest.raises(SettingsError, match="cannot read"):
        resolve({}, HOME, tmp_path / "none.toml")
    with pytest.raises(SettingsError, match="cannot read"):
        resolve({}, {**HOME, "MEMORY_RANKER_CONFIG": str(tmp_path / "none.toml")})
    with pytest.raises(SettingsError, match="is not TOML"):
        resolve({}, HOME, write(tmp_path, "threads ="))
    (tmp_path / "memory-ranker").mkdir()
    write(tmp_path / "memory-ranker", "threads = 7")
    assert resolve({}, {**HOME, "XDG_CONFIG_HOME": str(tmp_path)}).settings.threads == 7


def test_what_is_printed_can_be_read_back(tmp_path: Path) -> None:
    """The text form is a settings file that gives the same settings; the JSON form has value, unit and origin."""
    found = resolve({"emotion_namespaces": "a, b", "drain_seconds": "2.5"}, HOME)
    again = resolve({}, HOME, write(tmp_path, found.as_text()))
    assert again.settings == found.settings
    assert set(tomllib.loads(found.as_text())) == set(FIELDS)
    assert json.loads(found.as_json())["drain_seconds"] == {
        "value": 2.5,
        "unit": "seconds",
        "origin": "flag --drain-seconds",
    }
    assert "# flag --drain-seconds" in found.as_text()


def test_every_setting_says_what_it_is() -> None:
    """Each setting has its limit and its meaning in words, and its default keeps its own limit."""
    settings = resolve({}, HOME).settings
    for name, each in FIELDS.items():
        assert each.metadata["help"]
        assert each.metadata["rule"].limit
        assert each.metadata["rule"].parse(getattr(settings, name)) == getattr(settings, name)


@pytest.mark.parametrize(
    ("given", "http"),
    [
        ("off", "off"),
        ("9464", "127.0.0.1:9464"),
        ("localhost:9464", "127.0.0.1:9464"),
        ("0.0.0.0:9464", "0.0.0.0:9464"),
        ("[::1]:9464", "[::1]:9464"),
    ],
)
def test_a_bare_http_port_is_this_machines_alone(given: str, http: str) -> None:
    """Only an address that is written out is another than loopback."""
    assert resolve({"http": given}, HOME).settings.http == http
