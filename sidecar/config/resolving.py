"""Where the value of each setting comes from: flag, else environment, else TOML file, else default; origins are kept.

Unknown names are errors that suggest the nearest known one. Touches nothing but the file.
"""

from __future__ import annotations

import difflib
import json
import tomllib
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sidecar.config.rules import Rule, SaidBetterError
from sidecar.config.settings import FIELDS, IMPORTANCE_WEIGHTS, TABLES, Settings
from sidecar.errors import Faults, SettingsError

ENVIRONMENT_PREFIX = "MEMORY_RANKER_"
FILE_VARIABLE = "MEMORY_RANKER_CONFIG"
WEIGHTS_KEYS = ("features", "caps", "use_family_cap", "half_life_days")
"""What a [weights.NAME] table may hold."""
SUM_TOLERANCE = 1e-6


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


def resolve(
    flags: Mapping[str, Any],
    environ: Mapping[str, str],
    file: Path | None = None,
    settle_tables: Callable[[Settings], object] = lambda _: None,
) -> Resolved:
    """Settles every setting. A flag that is None was not given.

    `file` is the settings file; None means MEMORY_RANKER_CONFIG, else memory-ranker/config.toml below the user's
    configuration folder if it is there. Raises SettingsError, which names setting, value, origin and limit of all that
    are wrong. What the numbers of the tables may be is not looked at here: once something else is wrong,
    `settle_tables` is asked, which raises SettingsError too, so that all is told at once.
    """
    path, is_named = _file_path(environ, file)
    faults = Faults()
    told: list[str] = []
    from_file, tables = _read_file(path, is_named, faults, told)
    in_file = f"file {path}"
    given: dict[str, tuple[Any, str]] = {}
    for name, value in from_file.items():
        given[name] = (value, in_file)
    for name, (value, variable) in _read_environment(environ, faults).items():
        given[name] = (value, f"environment {variable}")
    for name, value in flags.items():
        if name not in FIELDS:
            faults.found.append(f"unknown setting {name!r}{_nearest(name, FIELDS)}")
        elif value is not None:
            given[name] = (value, f"flag --{name.replace('_', '-')}")
    values: dict[str, Any] = {}
    for name, (value, origin) in given.items():
        with faults.noted():
            values[name] = _parse(name, value, origin, in_file=origin == in_file)
    origins = {name: given[name][1] if name in given else "default" for name in FIELDS}
    if "data" not in given:
        with faults.noted():
            values["data"] = _parse("data", _default_data(environ), "default")
    if "listen" not in given and "data" in values:
        with faults.noted():
            values["listen"] = _parse(
                "listen", f"unix:{_runtime_folder(environ, values['data'])}/memory-ranker.sock", "default"
            )
    settings = Settings(**{"data": Path(), "listen": "", **values}, **tables)  # all of it counts only without a fault
    faults.found.extend(_importance_faults(settings, given.keys() - values.keys()))
    if faults.found:
        try:
            settle_tables(settings)
        except SettingsError as error:
            faults.found.extend(each for each in error.faults if not each.startswith(tuple(told)))
    faults.raise_if_any()
    return Resolved(settings, origins)


def _importance_faults(settings: Settings, unknown: Collection[str]) -> Iterator[str]:
    """The weights of the five signals sum to 1, and there is room between floor and cap. Nothing is said of what is
    `unknown`."""
    weights = {name: getattr(settings, name) for name in IMPORTANCE_WEIGHTS}
    if not weights.keys() & unknown and abs(sum(weights.values()) - 1.0) > SUM_TOLERANCE:
        shown = ", ".join(f"{name} {value:g}" for name, value in weights.items())
        yield f"{shown}: they sum to {sum(weights.values()):.12g} and must sum to 1; change the others too"
    bounds = {"min_importance", "max_importance"}
    if not bounds & set(unknown) and not settings.min_importance < settings.max_importance:
        yield (
            f"min_importance is {settings.min_importance:g} and must be below max_importance, which is "
            f"{settings.max_importance:g}"
        )


def _default_data(environ: Mapping[str, str]) -> str:
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


def _read_file(
    path: Path | None, is_named: bool, faults: Faults, told: list[str]
) -> tuple[dict[str, Any], dict[str, Any]]:
    """The settings of a file, and its tables by the names of TABLES, as far as they are as they should be; notes what
    is no setting and no table. `told` takes what a fault begins with that would only follow from those."""
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
        named = table.pop("weights")
        if "active" in named:
            table["weights"] = named.pop("active")
        presets = {name: _read_weights(path, name, preset, faults, told) for name, preset in named.items()}
    tables: dict[str, Any] = {"presets": presets}
    for key, field_name in (("importance", "importance_domains"), ("importance_namespaces", "importance_namespaces")):
        if not isinstance(found := table.pop(key, {}), dict):
            faults.found.append(f"{key} in {path} is not a table: see docs/importance.md")
            found = {}
        tables[field_name] = found
    unknown = [name for name in table if name not in FIELDS]
    faults.found.extend(f"unknown setting {name!r} in {path}{_nearest(name, FIELDS)}" for name in unknown)
    return {name: value for name, value in table.items() if name in FIELDS}, tables


def _read_weights(path: Path, name: str, preset: Any, faults: Faults, told: list[str]) -> dict[str, Any]:
    """What of a table of weights is written as weights are; notes the rest. What their numbers may be is the weights'
    own matter."""
    if not isinstance(preset, dict):
        faults.found.append(
            f"weights.{name} in {path} is not a table: write [weights.{name}]{_nearest(name, ['active'])}"
        )
        told.append(f"weights.{name}.")
        return {}
    found: dict[str, Any] = {}
    for key, value in preset.items():
        at = f"weights.{name}.{key}"
        if key not in WEIGHTS_KEYS:
            faults.found.append(f"unknown key {at} in {path}{_nearest(key, WEIGHTS_KEYS)}")
            if "features" not in preset:
                told.append(f"weights.{name}.features ")
            continue
        if key == "use_family_cap":
            what, is_sound = "a number", _is_number(value)
            found |= {key: value} if is_sound else {}
        else:
            what, numbers = "a table of numbers, as {lexical = 0.5}", value if isinstance(value, dict) else {None: None}
            found[key] = {each: number for each, number in numbers.items() if _is_number(number)}
            is_sound = len(found[key]) == len(numbers)
        if not is_sound:
            faults.found.append(f"{at} in {path} is {value!r}: it must be {what}")
            told.append(f"{at} ")
    return found


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _read_environment(environ: Mapping[str, str], faults: Faults) -> dict[str, tuple[str, str]]:
    """Value and variable by the setting's name; a variable with the prefix goes before one without. Notes what is no
    setting."""
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
            faults.found.append(f"unknown variable {variable}{_nearest(variable, [*known, FILE_VARIABLE])}")
            continue
        given[known[variable]] = (value, variable)
    return given


def _parse(name: str, value: Any, origin: str, *, in_file: bool = False) -> Any:
    rule: Rule = FIELDS[name].metadata["rule"]
    is_text = rule.of_text is not None and isinstance(value, str)
    try:
        return rule.parse(rule.of_text(value) if rule.of_text and is_text and not in_file else value)
    except SaidBetterError as error:
        words = str(error)
    except (ValueError, RuntimeError):
        words = rule.limit + (", without quotes" if is_text and in_file else "")
    raise SettingsError(f"{name} is {value!r} (from {origin}): it must be {words}")


def _nearest(name: str, known: Any) -> str:
    found = difflib.get_close_matches(name, list(known), n=1)
    return f"; did you mean {found[0]!r}?" if found else f"; known are {', '.join(known)}"


def _plain(value: Any) -> Any:
    return str(value) if isinstance(value, Path) else list(value) if isinstance(value, tuple) else value
