"""A model's files: written whole or not at all, and read only when everything about them is right.

An artifact holds manifest.json, weights.json or curves.json, golden.json and whatever else is for people to read. The
manifest names every other file with its hash, and the version is made of the weights themselves, so a version can
never stand for two models.
"""

from __future__ import annotations

import datetime
import hashlib
import json
import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from sidecar.errors import InvalidRequestError, ModelRefusedError
from sidecar.features import FEATURE_NAMES, SCHEMA_HASH
from sidecar.weights.archive import archive_of, read_files, write_files
from sidecar.weights.golden import golden_faults, golden_rows
from sidecar.weights.linear import Weights, make_curve_weights, make_weights
from sidecar.weights.presets import PRESETS

FORMAT = 1
MANIFEST, GOLDEN = "manifest.json", "golden.json"
TABLES = {"linear": "weights.json", "curves": "curves.json"}
"""The file of the weights, by form."""

GATES = "gates.json"
TRAIN_GATES = ("passed", "refused", "skipped")
PROMOTE_GATES = ("automatic", "person", "refused", "skipped")

BASE_VERSION_BYTES = 256
"""The longest base_version: every list of models has it."""
_VERSION = re.compile(r"[a-z0-9][a-z0-9._-]{0,63}")
_OF_NUMBERS = ("features", "caps", "half_life_days", "standard_errors")
_LINEAR_KEYS = {"features", "caps", "use_family_cap", "half_life_days", "standard_errors", "namespaces"}
_CURVES_KEYS = {"curves", "caps", "use_family_cap", "half_life_days", "standard_errors"}


@dataclass(frozen=True, slots=True)
class Provenance:
    """Where a model comes from, as its manifest tells it.

    `create_time` is RFC 3339: the data's ingest cut-off, never the clock, so that the same data makes the same bytes.
    `gates` has `train` and `promote`, of TRAIN_GATES and PROMOTE_GATES.
    """

    create_time: str
    base_version: str
    preview: bool
    window: Mapping[str, str]
    counts: Mapping[str, int]
    seed: int
    library_versions: Mapping[str, str]
    gates: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Artifact:
    """A model that was verified. `namespaces` have weights of their own under the same version; `checks` says in words
    what was verified; `files` are all of it, byte by byte."""

    version: str
    form: str
    provenance: Provenance
    weights: Weights
    namespaces: Mapping[str, Weights]
    files: Mapping[str, bytes] = field(repr=False)
    checks: tuple[str, ...]

    def for_namespace(self, namespace: str) -> Weights:
        """The weights that score in a namespace."""
        return self.namespaces.get(namespace, self.weights)

    @property
    def archive(self) -> bytes:
        """It as a tar archive; the same bytes for the same model."""
        return archive_of(self.files)


def read_artifact(path: Path) -> Artifact:
    """Reads and verifies an artifact, a folder or a tar archive. Raises ModelRefusedError with all that is wrong."""
    return verify(read_files(path))


def write_artifact(
    folder: Path, form: str, table: Mapping[str, Any], provenance: Provenance, others: Mapping[str, bytes] | None = None
) -> Artifact:
    """Writes an artifact into a new folder, which appears whole or not at all, and returns it as `read_artifact` does.

    `table` is what weights.json (form linear) or curves.json (form curves) holds; `others` are files for people
    (gates.json, model_card.md, report.html) by name. The same arguments make the same bytes.

    Raises ModelRefusedError if what is given could not be served, FileExistsError if the folder holds anything.
    """
    version = version_of(form, json_bytes(table), provenance)
    weights, namespaces = _weights(version, form, table)
    files = {
        **(others or {}),
        TABLES[form]: json_bytes(table),
        GOLDEN: json_bytes({"rows": golden_rows(weights, namespaces, provenance.seed)}),
    }
    manifest = {
        "format": FORMAT,
        "version": version,
        "form": form,
        "create_time": provenance.create_time,
        "feature_schema_hash": SCHEMA_HASH,
        "feature_names": list(FEATURE_NAMES),
        "base_version": provenance.base_version,
        "preview": provenance.preview,
        "window": dict(provenance.window),
        "counts": dict(provenance.counts),
        "seed": provenance.seed,
        "library_versions": dict(provenance.library_versions),
        "gates": dict(provenance.gates),
        "files": {name: hashlib.sha256(content).hexdigest() for name, content in files.items()},
    }
    artifact = verify({MANIFEST: json_bytes(manifest), **files})
    write_files(artifact.files, folder)
    return artifact


def json_bytes(value: Any) -> bytes:
    """JSON with sorted keys, in UTF-8: one text for one value, and floats that come back to the last bit."""
    return (json.dumps(value, sort_keys=True, ensure_ascii=False, allow_nan=False, indent=1) + "\n").encode()


def version_of(form: str, table: bytes, provenance: Provenance) -> str:
    """The version of a model: its form and a hash of its weights, window and seed."""
    parts = table + json_bytes({"window": dict(provenance.window), "seed": provenance.seed})
    return f"{form}-{hashlib.sha256(parts).hexdigest()[:12]}"


def verify(files: Mapping[str, bytes]) -> Artifact:
    """The artifact that these files are, if its manifest, hashes, schema, bounds and golden rows are all as they should
    be. Raises ModelRefusedError with everything that is wrong, each by name."""
    if MANIFEST not in files:
        raise ModelRefusedError([f"{MANIFEST} is missing; name the folder that training wrote"])
    manifest = _json(MANIFEST, files[MANIFEST])
    faults = list(_manifest_faults(manifest))
    if not faults:
        faults = _file_faults(manifest, files) or _gate_faults(manifest, files)
        faults += _schema_faults(manifest)
    if faults:
        raise ModelRefusedError(faults)
    form, version = manifest["form"], manifest["version"]
    provenance = Provenance(**{name: manifest[name] for name in _PROVENANCE})
    if version != version_of(form, files[TABLES[form]], provenance):
        raise ModelRefusedError([f"{MANIFEST}: version {version!r} does not belong to these weights, window and seed"])
    weights, namespaces = _weights(version, form, _json(TABLES[form], files[TABLES[form]]))
    rows: Any = _json(GOLDEN, files[GOLDEN]).get("rows")
    if faults := golden_faults(rows, weights, namespaces):
        raise ModelRefusedError(faults)
    checks = (
        f"manifest: format {FORMAT}, {form}, made from data until {provenance.create_time}",
        f"hashes: {len(manifest['files'])} files are as they were written",
        f"feature schema: {SCHEMA_HASH}, {len(FEATURE_NAMES)} features",
        f"bounds: scores stay in [0, 1]; namespaces with weights of their own: {len(namespaces)}",
        f"golden rows: {len(rows)} are scored here as where they were made, to the last bit",
    )
    return Artifact(version, form, provenance, weights, namespaces, dict(files), checks)


def is_as_written(files: Mapping[str, bytes], version: str) -> bool:
    """True if the files are those of this version, byte by byte as the manifest has them; they may still be of no use
    to this program, as those of another feature schema are."""
    try:
        manifest = _json(MANIFEST, files.get(MANIFEST, b""))
        return manifest["version"] == version and not _file_faults(manifest, files)
    except (ModelRefusedError, KeyError, TypeError, AttributeError):
        return False


_TEXTS = {"create_time", "base_version", "feature_schema_hash", "version", "form"}
_TABLES = {"window": str, "counts": int, "library_versions": str, "gates": str, "files": str}
_WORDS = {str: "a text", int: "a whole number"}
_PROVENANCE = ("create_time", "base_version", "preview", "window", "counts", "seed", "library_versions", "gates")


def _json(name: str, content: bytes) -> dict[str, Any]:
    value = _parsed(name, content)
    if not isinstance(value, dict):
        raise ModelRefusedError([f"{name} is not a JSON object"])
    return value


def _parsed(name: str, content: bytes) -> Any:
    try:
        text = content.decode()
        value = json.loads(text)
        if "\\u" in text:  # an escape is how half a character, which no message and no store can hold, gets past UTF-8
            json.dumps(value, ensure_ascii=False).encode()
    except UnicodeEncodeError as error:
        before = error.object[max(0, error.start - 40) : error.start]
        raise ModelRefusedError(
            [f"{name} holds {error.object[error.start]!r} after {before!r}: half a character, which is no text"]
        ) from error
    except (ValueError, RecursionError) as error:
        raise ModelRefusedError([f"{name} is not JSON ({error})"]) from error
    return value


def _manifest_faults(manifest: Mapping[str, Any]) -> list[str]:
    if manifest.get("format") != FORMAT:
        return [f"{MANIFEST}: format is {manifest.get('format')!r}; this version reads format {FORMAT}"]
    faults = [f"{name} is missing or not a text" for name in _TEXTS if not isinstance(manifest.get(name), str)]
    for name, kind in _TABLES.items():
        if not isinstance(table := manifest.get(name), dict):
            faults.append(f"{name} is missing or not an object")
            continue
        faults += [
            f"{name}.{key} is {each!r}; must be {_WORDS[kind]}" for key, each in table.items() if type(each) is not kind
        ]
    if not isinstance(manifest.get("preview"), bool):
        faults.append("preview is missing or neither true nor false")
    if type(manifest.get("seed")) is not int:
        faults.append("seed is missing or not a whole number")
    if faults:
        return [f"{MANIFEST}: {fault}" for fault in sorted(faults)]
    if manifest["form"] not in TABLES:
        faults.append(f"form is {manifest['form']!r}; must be one of {', '.join(TABLES)}")
    if not _VERSION.fullmatch(manifest["version"]) or manifest["version"] in PRESETS:
        faults.append(f"version {manifest['version']!r} is no version that a model may have")
    try:
        time = datetime.datetime.fromisoformat(manifest["create_time"])
        if time.tzinfo is None:
            faults.append(f"create_time {manifest['create_time']!r} has no offset from UTC")
        else:
            time.astimezone(datetime.UTC)
    except ValueError:
        faults.append(f"create_time {manifest['create_time']!r} is no time as RFC 3339 writes it")
    except OverflowError:
        faults.append(f"create_time {manifest['create_time']!r} is not in the years 1 to 9999 of UTC")
    if (size := len(manifest["base_version"].encode())) > BASE_VERSION_BYTES:
        faults.append(f"base_version has {size:,} bytes; at most {BASE_VERSION_BYTES}")
    for gate, allowed in (("train", TRAIN_GATES), ("promote", PROMOTE_GATES)):
        if manifest["gates"].get(gate) not in allowed:
            faults.append(f"gates.{gate} is {manifest['gates'].get(gate)!r}; must be one of {', '.join(allowed)}")
    return [f"{MANIFEST}: {fault}" for fault in faults]


def _file_faults(manifest: Mapping[str, Any], files: Mapping[str, bytes]) -> list[str]:
    named = manifest["files"]
    needed = {TABLES[manifest["form"]], GOLDEN}
    faults = [f"{MANIFEST} names no {name}" for name in sorted(needed - named.keys())]
    faults += [f"{name} is missing" for name in sorted(named.keys() - files.keys())]
    faults += [f"{name} is not in the manifest" for name in sorted(files.keys() - named.keys() - {MANIFEST})]
    faults += [
        f"{name} is damaged: its sha256 is not the manifest's"
        for name in sorted(named.keys() & files.keys())
        if hashlib.sha256(files[name]).hexdigest() != named[name]
    ]
    return faults


def _gate_faults(manifest: Mapping[str, Any], files: Mapping[str, bytes]) -> list[str]:
    """Where the manifest, for which no sum vouches, says passed of what gates.json says that it refused."""
    try:
        rows = _parsed(GATES, files.get(GATES, b"[]"))
        refused = sorted({(row["stage"], row["gate"]) for row in rows if row["passed"] is False})
    except (KeyError, TypeError):
        return [f"{GATES} is no list of gates"]
    return [
        f"{MANIFEST} says gates.{stage} is {verdict}, and {GATES} that {gate} refused"
        for stage, verdict in (("train", "passed"), ("promote", "automatic"))
        for refusing, gate in refused
        if refusing == stage and manifest["gates"][stage] == verdict
    ]


def _schema_faults(manifest: Mapping[str, Any]) -> list[str]:
    of_model, names = manifest["feature_schema_hash"], manifest.get("feature_names")
    if of_model != SCHEMA_HASH:
        return [
            f"it was made for the feature schema {of_model}, and this version has {SCHEMA_HASH}: train again with this"
            " version"
        ]
    if names != list(FEATURE_NAMES):
        return [f"{MANIFEST}: feature_names are not those of its feature schema {SCHEMA_HASH}, in their order"]
    return []


def _weights(version: str, form: str, table: Mapping[str, Any]) -> tuple[Weights, dict[str, Weights]]:
    name = TABLES[form]
    unknown = sorted(table.keys() - (_LINEAR_KEYS if form == "linear" else _CURVES_KEYS))
    if unknown:
        raise ModelRefusedError([f"{name}: {', '.join(unknown)} is not known"])
    if faults := list(_shape_faults(form, table)):
        raise ModelRefusedError([f"{name}: {fault}" for fault in faults])
    shared = {key: table.get(key) for key in ("caps", "use_family_cap", "half_life_days")}
    try:
        if form == "curves":
            return make_curve_weights(version, table["curves"], **shared, path=name), {}
        common = make_weights(version, table["features"], **shared, path=name)
        own = {
            namespace: make_weights(version, given["features"], **shared, path=f"{name} namespaces.{namespace}")
            for namespace, given in table.get("namespaces", {}).items()
        }
    except InvalidRequestError as error:
        raise ModelRefusedError([f"{each.field} {each.description}" for each in error.violations]) from error
    return common, own


def _shape_faults(form: str, table: Mapping[str, Any]) -> Iterator[str]:
    """Where a table is not built as weights are: every object an object, every number a number. What the numbers may be
    is the weights' own matter, but for standard errors, which nothing else reads."""
    needed = "curves" if form == "curves" else "features"
    if not isinstance(table.get(needed), dict):
        yield f"{needed} is missing or not an object"
        return
    of_numbers = {key: table[key] for key in _OF_NUMBERS if table.get(key) is not None}
    if not isinstance(own := table.get("namespaces", {}), dict):
        yield f"namespaces is {own!r:.60}; must be an object"
        own = {}
    for namespace, given in own.items():
        if isinstance(given, dict) and "features" in given:
            of_numbers[f"namespaces.{namespace}.features"] = given["features"]
        else:
            yield f"namespaces.{namespace} has no features; must be an object that holds them"
    for name, given in of_numbers.items():
        if not isinstance(given, dict):
            yield f"{name} is {given!r:.60}; must be an object"
            continue
        for key, each in given.items():
            if not _is_number(each):
                yield f"{name}.{key} is {each!r:.60}; must be a number"
            elif name == "standard_errors" and not 0.0 <= each < math.inf:
                yield f"{name}.{key} is {each!r}; must be 0 or more"
    if (cap := table.get("use_family_cap")) is not None and not _is_number(cap):
        yield f"use_family_cap is {cap!r:.60}; must be a number"


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)
