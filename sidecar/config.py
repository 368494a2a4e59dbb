"""The settings: one frozen object, read once. Flag, else environment, else TOML file, else default; origins are kept.

Unknown names are errors that suggest the nearest known one. Every setting declares its unit, bounds and meaning in
its field's metadata, from which flags, documentation and `config --print` are made. Touches nothing but the file.
"""

from __future__ import annotations

import difflib
import ipaddress
import json
import os
import re
import tomllib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

from sidecar.errors import SettingsError

ENVIRONMENT_PREFIX = "MEMORY_RANKER_"
FILE_VARIABLE = "MEMORY_RANKER_CONFIG"
SOCKET_PATH_BYTES = 107
"""The longest path that a Unix socket can be bound to."""
WEIGHTS_KEYS = ("features", "caps", "use_family_cap", "half_life_days")
"""What a [weights.NAME] table may hold."""


@dataclass(frozen=True, slots=True)
class Rule:
    """What a setting may be: in words, and as a function that takes a TOML value or a text (of a flag or a variable),
    and returns the value or raises ValueError."""

    limit: str
    parse: Callable[[Any], Any]


class _SaidBetterError(ValueError):
    """Says what this value must be better than the rule's limit does."""


def _choice(*allowed: str) -> Rule:
    def parse(given: Any) -> str:
        if given not in allowed:
            raise ValueError
        return str(given)

    return Rule(f"one of {', '.join(allowed)}", parse)


def _whole(low: int, high: int) -> Rule:
    def parse(given: Any) -> int:
        value = int(given) if isinstance(given, str) else given
        if not isinstance(value, int) or isinstance(value, bool) or not low <= value <= high:
            raise ValueError
        return value

    return Rule(f"a whole number from {low} to {high}", parse)


def _number(low: float, high: float) -> Rule:
    def parse(given: Any) -> float:
        if isinstance(given, bool) or not isinstance(given, str | int | float):
            raise ValueError
        value = float(given)
        if not low <= value <= high:
            raise ValueError
        return value

    return Rule(f"a number from {low:g} to {high:g}", parse)


def _parse_text(given: Any) -> str:
    if not isinstance(given, str) or not given.strip():
        raise ValueError
    return given


def _parse_folder(given: Any) -> Path:
    path = given if isinstance(given, Path) else Path(_parse_text(given))
    return Path(os.path.abspath(path.expanduser()))


def _parse_names(given: Any) -> tuple[str, ...]:
    parts = given.split(",") if isinstance(given, str) else given
    if not isinstance(parts, list | tuple) or not all(isinstance(part, str) for part in parts):
        raise ValueError
    return tuple(part.strip() for part in parts if part.strip())


def _parse_listen(given: Any) -> str:
    text = _parse_text(given)
    if text.startswith("unix-abstract:"):
        raise _SaidBetterError("unix:PATH or HOST:PORT; an abstract socket has no file mode that guards it")
    if text.startswith("unix:"):
        path = os.path.abspath(Path(text.removeprefix("unix:").removeprefix("//")).expanduser())
        size = len(os.fsencode(path))
        if size > SOCKET_PATH_BYTES:
            raise _SaidBetterError(f"a socket path of at most {SOCKET_PATH_BYTES} bytes; {path} has {size}")
        return f"unix:{path}"
    host, colon, port = text.rpartition(":")
    host = host.removeprefix("[").removesuffix("]")
    if not colon or not host or not (port.isascii() and port.isdigit()) or int(port) > 65_535:
        raise ValueError
    if not _is_loopback(host):
        raise _SaidBetterError(
            "an address of this machine alone (127.0.0.1, [::1], localhost or a Unix socket), because callers are not "
            "asked who they are"
        )
    # A resolver may send "localhost" anywhere; the address cannot move.
    host = "127.0.0.1" if host == "localhost" else host
    return f"[{host}]:{int(port)}" if ":" in host else f"{host}:{int(port)}"


def _parse_http(given: Any) -> str:
    text = str(given) if isinstance(given, int) and not isinstance(given, bool) else _parse_text(given)
    if text == "off":
        return text
    host, colon, port = text.rpartition(":")
    host = host.removeprefix("[").removesuffix("]") if colon else "127.0.0.1"
    host = "127.0.0.1" if host == "localhost" else host
    if not (port.isascii() and port.isdigit()) or int(port) > 65_535:
        raise ValueError
    address = ipaddress.ip_address(host)
    return f"[{address}]:{int(port)}" if address.version == 6 else f"{address}:{int(port)}"


def _is_loopback(host: str) -> bool:
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _parse_embedder(given: Any) -> str:
    if not isinstance(given, str) or not re.fullmatch(r"wordllama|none|(?:onnx|model2vec):\S.*|client:\d+", given):
        raise ValueError
    return given


_TEXT = Rule("a text that is not empty", _parse_text)
_FOLDER = Rule("the path of a folder", _parse_folder)
_NAMES = Rule("a list of texts (in a flag or a variable: separated by commas)", _parse_names)
_EMBEDDER = Rule("wordllama, none, onnx:FOLDER, model2vec:FOLDER or client:DIMENSION", _parse_embedder)
_HTTP = Rule("off, PORT (of this machine alone), or ADDRESS:PORT (0.0.0.0:PORT for all who reach it)", _parse_http)
_LISTEN = Rule("unix:PATH, or HOST:PORT of this machine alone", _parse_listen)


def _about(rule: Rule, words: str, unit: str = "") -> dict[str, Any]:
    return {"rule": rule, "help": words, "unit": unit}


_ALSO_BARE = {"bare_variable": True}
"""Marks a setting whose variable may also be given without the prefix, as others have known it."""
IMPORTANCE_WEIGHTS = (
    "content_weight",
    "user_signal_weight",
    "access_pattern_weight",
    "emotional_weight",
    "contextual_weight",
)
SUM_TOLERANCE = 1e-6


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """Everything that can be set. Made by `resolve`; `data` and `listen` have defaults that depend on the machine."""

    data: Path = field(metadata=_about(_FOLDER, "folder of the store, on a local disk; made if missing"))
    listen: str = field(metadata=_about(_LISTEN, "address to serve on"))
    socket_access: str = field(
        default="owner",
        metadata=_about(
            _choice("owner", "group"), "who else may use a Unix socket, besides root: the group of its folder"
        ),
    )
    http: str = field(
        default="off",
        metadata=_about(_HTTP, "address of the HTTP port, which has /livez, /readyz and /metrics"),
    )
    embedder: str = field(
        default="wordllama",
        metadata=_about(_EMBEDDER, "what makes vectors of texts; a store keeps the one it was made with"),
    )
    weights: str = field(
        default="default",
        metadata=_about(_TEXT, "name of the weights that serve; weights.active beside [weights.NAME]"),
    )
    threads: int = field(
        default=4,
        metadata=_about(
            _whole(1, 64), "calls that are worked on at a time, and as many again that need no vectors", "threads"
        ),
    )
    streams: int = field(
        default=72,
        metadata=_about(_whole(1, 1024), "long streams at a time; they never take the threads of calls", "threads"),
    )
    max_message_bytes: int = field(
        default=4_194_304,
        metadata=_about(_whole(1_048_576, 67_108_864), "largest message that is taken or sent", "bytes"),
    )
    drain_seconds: float = field(
        default=10.0,
        metadata=_about(_number(0, 600), "how long running calls may take to finish when the server stops", "seconds"),
    )
    reserve_min_reported_sessions: int = field(
        default=5,
        metadata=_about(_whole(0, 1000), "reported sessions from which a memory has had its turns", "sessions"),
    )
    reserve_pool_size: int = field(
        default=24, metadata=_about(_whole(1, 1000), "most memories that reserved slots draw from", "memories")
    )
    reserve_epsilon: float = field(
        default=0.5, metadata=_about(_number(0, 1), "share of a draw that is even over the pool")
    )
    reserve_temperature: float = field(
        default=0.1, metadata=_about(_number(0.001, 100), "how little task fit tilts the rest of a draw")
    )
    reserve_floor: float = field(default=0.05, metadata=_about(_number(0, 1), "least task fit of a reserved memory"))
    reserve_fit_share: float = field(
        default=0.6,
        metadata=_about(_number(0, 1), "least task fit of a reserved memory, as a share of the last ranked one's"),
    )
    use_agent_session_cap: int = field(
        default=20,
        metadata=_about(_whole(1, 1_000_000), "sessions of one memory that one agent weighs at most", "sessions"),
    )
    rescore_max_move: float = field(
        default=0.1, metadata=_about(_number(0, 1), "how far a rescore moves an importance at most in one run")
    )
    prune_keep_days: float = field(
        default=30.0,
        metadata=_about(_number(0, 36_500), "age below which no packet is pruned, for training needs it", "days"),
    )
    quota_bytes: int = field(
        default=0,
        metadata=_about(_whole(0, 2**53), "size of the store from which writes are refused; 0 for no limit", "bytes"),
    )
    log_level: str = field(
        default="info",
        metadata=_about(_choice("debug", "info", "warning", "error"), "least severity that is logged"),
    )
    log_format: str = field(default="text", metadata=_about(_choice("text", "json"), "form of a log line"))
    emotion_namespaces: tuple[str, ...] = field(
        default=(), metadata=_about(_NAMES, "namespaces in which emotional salience counts")
    )
    importance_scorer_enabled: str = field(
        default="true",
        metadata=_about(_choice("true", "false"), "whether importances are scored") | _ALSO_BARE,
    )
    content_weight: float = field(
        default=0.30, metadata=_about(_number(0, 1), "what the content counts in an importance") | _ALSO_BARE
    )
    user_signal_weight: float = field(
        default=0.25, metadata=_about(_number(0, 1), "what ratings and marks count in an importance") | _ALSO_BARE
    )
    access_pattern_weight: float = field(
        default=0.20, metadata=_about(_number(0, 1), "what sessions that used it count in an importance") | _ALSO_BARE
    )
    emotional_weight: float = field(
        default=0.15, metadata=_about(_number(0, 1), "what emotion counts in an importance") | _ALSO_BARE
    )
    contextual_weight: float = field(
        default=0.10,
        metadata=_about(_number(0, 1), "what the context counts in an importance; the five sum to 1") | _ALSO_BARE,
    )
    min_importance: float = field(
        default=0.1, metadata=_about(_number(0, 1), "least importance that is computed") | _ALSO_BARE
    )
    max_importance: float = field(
        default=1.0, metadata=_about(_number(0, 1), "largest importance that is computed") | _ALSO_BARE
    )
    importance_access: str = field(
        default="logarithm",
        metadata=_about(_choice("logarithm", "tiers"), "how sessions that used a memory count in its importance"),
    )
    importance_domain: str = field(
        default="common",
        metadata=_about(
            _TEXT,
            "whose weights of the five signals are taken: common, code, conversation, decisions, or an "
            "[importance.NAME] table of the settings file",
        ),
    )
    presets: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    """Weights by name from the file's [weights.NAME] tables, as written there; checked when weights load."""
    importance_domains: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    """Weights of the five signals by name from the file's [importance.NAME] tables; checked when the server starts."""
    importance_namespaces: Mapping[str, Any] = field(default_factory=dict)
    """Whose weights of the five signals a namespace takes, from the file's table [importance_namespaces]."""


TABLES = ("presets", "importance_domains", "importance_namespaces")
"""The settings that only a settings file can give."""
FIELDS = {each.name: each for each in fields(Settings) if each.metadata}
"""The settings that a flag, a variable or a key may give, by name; metadata has rule, help and unit."""


@dataclass(frozen=True, slots=True)
class Resolved:
    """Settings, and for each name in FIELDS where its value came from, in words."""

    settings: Settings
    origins: Mapping[str, str]

    def as_json(self) -> str:
        """All settings with value, unit and origin, as JSON."""
        rows = {
            name: {
                "value": _plain(getattr(self.settings, name)),
                "unit": each.metadata["unit"],
                "origin": self.origins[name],
            }
            for name, each in FIELDS.items()
        }
        tables = {name: getattr(self.settings, name) for name in TABLES}
        return json.dumps({**rows, **tables}, indent=2, ensure_ascii=False)

    def as_text(self) -> str:
        """All settings as lines of TOML, with the origin of each behind it."""
        lines = [f"{name} = {json.dumps(_plain(getattr(self.settings, name)), ensure_ascii=False)}" for name in FIELDS]
        width = max(map(len, lines))
        lines = [f"{line:<{width}}  # {self.origins[name]}" for line, name in zip(lines, FIELDS, strict=True)]
        tables = [f"weights.{name}" for name in self.settings.presets]
        tables += [f"importance.{name}" for name in self.settings.importance_domains]
        tables += ["importance_namespaces"] if self.settings.importance_namespaces else []
        return "\n".join([*lines, *(f"# and [{name}]" for name in tables)])


def resolve(flags: Mapping[str, Any], environ: Mapping[str, str], file: Path | None = None) -> Resolved:
    """Settles every setting. A flag that is None was not given.

    `file` is the settings file; None means MEMORY_RANKER_CONFIG, else memory-ranker/config.toml below the user's
    configuration folder if it is there. Raises SettingsError, which names setting, value, origin and limit.
    """
    path, is_named = _file_path(environ, file)
    from_file, tables = _read_file(path, is_named)
    given: dict[str, tuple[Any, str]] = {}
    for name, value in from_file.items():
        given[name] = (value, f"file {path}")
    for name, (value, variable) in _read_environment(environ).items():
        given[name] = (value, f"environment {variable}")
    for name, value in flags.items():
        if name not in FIELDS:
            raise SettingsError(f"unknown setting {name!r}{_nearest(name, FIELDS)}")
        if value is not None:
            given[name] = (value, f"flag --{name.replace('_', '-')}")
    values = {name: _parse(name, value, origin) for name, (value, origin) in given.items()}
    origins = {name: given[name][1] if name in given else "default" for name in FIELDS}
    if "data" not in values:
        values["data"] = _parse("data", default_data(environ), "default")
    if "listen" not in values:
        values["listen"] = _parse(
            "listen", f"unix:{_runtime_folder(environ, values['data'])}/memory-ranker.sock", "default"
        )
    settings = Settings(**values, **tables)
    _check_importance(settings)
    return Resolved(settings, origins)


def _check_importance(settings: Settings) -> None:
    """The weights of the five signals sum to 1, and there is room between floor and cap."""
    weights = {name: getattr(settings, name) for name in IMPORTANCE_WEIGHTS}
    if abs(sum(weights.values()) - 1.0) > SUM_TOLERANCE:
        shown = ", ".join(f"{name} {value:g}" for name, value in weights.items())
        raise SettingsError(
            f"{shown}: they sum to {sum(weights.values()):.6g} and must sum to 1; change the others too"
        )
    if not settings.min_importance < settings.max_importance:
        raise SettingsError(
            f"min_importance is {settings.min_importance:g} and must be below max_importance, which is "
            f"{settings.max_importance:g}"
        )


def default_data(environ: Mapping[str, str]) -> str:
    """The folder of the store when none is set. SettingsError if the user has no home folder."""
    home = environ.get("XDG_DATA_HOME") or (environ.get("HOME") and f"{environ['HOME']}/.local/share")
    if not home:
        raise SettingsError("data: neither XDG_DATA_HOME nor HOME is set; name the store's folder, as --data FOLDER")
    return f"{home}/memory-ranker"


def _runtime_folder(environ: Mapping[str, str], data: Path) -> str:
    return environ.get("XDG_RUNTIME_DIR") or str(data)


def _file_path(environ: Mapping[str, str], file: Path | None) -> tuple[Path | None, bool]:
    """The settings file and whether somebody named it (one that is named must exist)."""
    if file is not None:
        return file, True
    if named := environ.get(FILE_VARIABLE):
        return Path(named), True
    home = environ.get("XDG_CONFIG_HOME") or (environ.get("HOME") and f"{environ['HOME']}/.config")
    return (Path(home) / "memory-ranker" / "config.toml" if home else None), False


def _read_file(path: Path | None, is_named: bool) -> tuple[dict[str, Any], dict[str, Any]]:
    """The settings of a file, and its tables by the names of TABLES."""
    if path is None or (not is_named and not path.is_file()):
        return {}, {}
    try:
        table = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise SettingsError(f"cannot read the settings file {path}: {error.strerror}") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise SettingsError(f"the settings file {path} is not TOML: {error}") from error
    presets: dict[str, Mapping[str, Any]] = {}
    if isinstance(table.get("weights"), dict):
        presets = table.pop("weights")
        if "active" in presets:
            table["weights"] = presets.pop("active")
        for name, preset in presets.items():
            _check_shape(path, name, preset)
    tables: dict[str, Any] = {"presets": presets}
    for key, field_name in (("importance", "importance_domains"), ("importance_namespaces", "importance_namespaces")):
        if not isinstance(found := table.pop(key, {}), dict):
            raise SettingsError(f"{key} in {path} is not a table: see docs/importance.md")
        tables[field_name] = found
    for name in table:
        if name not in FIELDS:
            raise SettingsError(f"unknown setting {name!r} in {path}{_nearest(name, FIELDS)}")
    return table, tables


def _check_shape(path: Path, name: str, preset: Any) -> None:
    """Refuses weights that are not written as weights are; what their numbers may be is the weights' own matter."""
    if not isinstance(preset, dict):
        raise SettingsError(
            f"weights.{name} in {path} is not a table: write [weights.{name}]{_nearest(name, ['active'])}"
        )
    for key, value in preset.items():
        at = f"weights.{name}.{key}"
        if key not in WEIGHTS_KEYS:
            raise SettingsError(f"unknown key {at} in {path}{_nearest(key, WEIGHTS_KEYS)}")
        numbers = [value] if key == "use_family_cap" else value.values() if isinstance(value, dict) else [None]
        if not all(isinstance(each, int | float) and not isinstance(each, bool) for each in numbers):
            raise SettingsError(
                f"{at} in {path} is {value!r}: it must be "
                f"{'a number' if key == 'use_family_cap' else 'a table of numbers, as {lexical = 0.5}'}"
            )


def _read_environment(environ: Mapping[str, str]) -> dict[str, tuple[str, str]]:
    """Value and variable by the setting's name; a variable with the prefix goes before one without."""
    known = {ENVIRONMENT_PREFIX + name.upper(): name for name in FIELDS}
    given = {
        name: (environ[name.upper()], name.upper())
        for name, each in FIELDS.items()
        if each.metadata.get("bare_variable") and name.upper() in environ
    }
    for variable, value in environ.items():
        if not variable.startswith(ENVIRONMENT_PREFIX) or variable == FILE_VARIABLE:
            continue
        if variable not in known:
            raise SettingsError(f"unknown variable {variable}{_nearest(variable, [*known, FILE_VARIABLE])}")
        given[known[variable]] = (value, variable)
    return given


def _parse(name: str, value: Any, origin: str) -> Any:
    rule: Rule = FIELDS[name].metadata["rule"]
    try:
        return rule.parse(value)
    except _SaidBetterError as error:
        words = str(error)
    except (ValueError, RuntimeError):
        words = rule.limit
    raise SettingsError(f"{name} is {value!r} (from {origin}): it must be {words}", setting=name)


def _nearest(name: str, known: Any) -> str:
    found = difflib.get_close_matches(name, list(known), n=1)
    return f"; did you mean {found[0]!r}?" if found else f"; known are {', '.join(known)}"


def _plain(value: Any) -> Any:
    return str(value) if isinstance(value, Path) else list(value) if isinstance(value, tuple) else value
