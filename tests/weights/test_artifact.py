"""A model's files: the same bytes for the same model, and nothing that is wrong with them goes unseen."""

from __future__ import annotations

import hashlib
import io
import json
import tarfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from sidecar.errors import ModelRefusedError
from sidecar.features import FEATURE_NAMES
from sidecar.weights.archive import MAX_BYTES
from sidecar.weights.artifact import json_bytes, read_artifact, version_of, write_artifact
from tests.weights.making import CURVES, LINEAR, PROVENANCE, make_artifact
from training.run import MOST_OWN


@pytest.mark.parametrize("table", [LINEAR, CURVES], ids=["linear", "curves"])
def test_an_artifact_reads_back_as_it_was_written(tmp_path: Path, table: dict[str, Any]) -> None:
    """From its folder and from a tar archive of it, byte by byte."""
    made = make_artifact(tmp_path / "model", table)
    (tmp_path / "model.tar").write_bytes(made.archive)
    for read in (read_artifact(tmp_path / "model"), read_artifact(tmp_path / "model.tar")):
        assert read.files == made.files
        assert read.provenance == made.provenance
        assert read.weights.identity == made.weights.identity
        assert read.namespaces.keys() == made.namespaces.keys()
    assert made.weights.version == made.version
    assert made.version.startswith(made.form + "-")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["model", "model.tar"]


def test_the_largest_ranker_fits(tmp_path: Path) -> None:
    """200 trees of seven thresholds each, all different, or as many namespaces as one run gives weights of their own:
    with half of all bytes to spare for what people read."""
    count = 200 * 7 // len(FEATURE_NAMES)
    curves = {
        name: {
            "thresholds": [(i + 0.3) / (count + n / 7) for i in range(count)],
            "values": [i / (count + 1 / 3) / len(FEATURE_NAMES) for i in range(count + 1)],
        }
        for n, name in enumerate(FEATURE_NAMES)
    }
    made = make_artifact(tmp_path / "model", {**CURVES, "curves": curves})
    assert sum(map(len, made.files.values())) < MAX_BYTES / 2
    own = {f"{i:04}": {"features": dict.fromkeys(FEATURE_NAMES, 0.06)} for i in range(MOST_OWN)}
    assert sum(map(len, make_artifact(tmp_path / "own", {**LINEAR, "namespaces": own}).files.values())) < MAX_BYTES / 2
    steps = {"thresholds": [(i + 0.3) / 1_400 for i in range(1_400)], "values": [i / 1_401 for i in range(1_401)]}
    one = {"lexical": steps}
    assert sum(map(len, make_artifact(tmp_path / "one", {**CURVES, "curves": one}).files.values())) < MAX_BYTES / 2


def test_the_same_model_makes_the_same_bytes(tmp_path: Path) -> None:
    """Two writes differ in nothing; another seed is another version."""
    first, second = make_artifact(tmp_path / "a"), make_artifact(tmp_path / "b")
    assert first.files == second.files
    assert first.archive == second.archive
    assert make_artifact(tmp_path / "c", seed=8).version != first.version


def test_a_namespace_has_its_own_weights(tmp_path: Path) -> None:
    """Where an artifact holds weights for a namespace, those score there, under the same version."""
    made = make_artifact(tmp_path / "model")
    own = made.for_namespace("ops")
    assert own.version == made.version
    assert own.values.tolist() != made.weights.values.tolist()
    assert made.for_namespace("elsewhere") is made.weights


def test_an_artifact_is_written_whole_or_not_at_all(tmp_path: Path) -> None:
    """A folder that holds anything is left as it is, and what cannot be served is not written."""
    make_artifact(tmp_path / "model")
    before = {path.name: path.read_bytes() for path in (tmp_path / "model").iterdir()}
    with pytest.raises(OSError, match="not empty"):
        make_artifact(tmp_path / "model", seed=9)
    assert {path.name: path.read_bytes() for path in (tmp_path / "model").iterdir()} == before
    with pytest.raises(ModelRefusedError, match="sum to 2"):
        make_artifact(tmp_path / "other", {"features": {"lexical": 1.0, "semantic": 1.0}})
    assert [path.name for path in tmp_path.iterdir()] == ["model"]


def _edit(name: str, change: Callable[[dict[str, Any]], Any], *, consistent: bool = False) -> Callable[[Path], None]:
    """Changes a JSON file; `consistent` also gives the manifest the new hash and version, as a forger would."""

    def damage(folder: Path) -> None:
        value = json.loads((folder / name).read_bytes())
        change(value)
        (folder / name).write_bytes(json_bytes(value))
        if consistent:
            _vouch(folder, name)

    return damage


def _swap(name: str, old: bytes, new: bytes, *, consistent: bool = False) -> Callable[[Path], None]:
    """The same for what `json_bytes` would not write."""

    def damage(folder: Path) -> None:
        content = (folder / name).read_bytes()
        assert old in content
        (folder / name).write_bytes(content.replace(old, new))
        if consistent:
            _vouch(folder, name)

    return damage


def _vouch(folder: Path, name: str) -> None:
    manifest = json.loads((folder / "manifest.json").read_bytes())
    manifest["files"][name] = hashlib.sha256((folder / name).read_bytes()).hexdigest()
    table = "curves.json" if manifest["form"] == "curves" else "weights.json"
    manifest["version"] = version_of(manifest["form"], (folder / table).read_bytes(), PROVENANCE)
    (folder / "manifest.json").write_bytes(json_bytes(manifest))


def _cut(name: str) -> Callable[[Path], object]:
    return lambda folder: (folder / name).write_bytes((folder / name).read_bytes()[:-20])


def _put(name: str, content: bytes) -> Callable[[Path], object]:
    return lambda folder: (folder / name).write_bytes(content)


DAMAGES: dict[str, tuple[Callable[[Path], object], str]] = {
    "no manifest": (lambda folder: (folder / "manifest.json").unlink(), "manifest.json is missing"),
    "manifest cut": (_cut("manifest.json"), "manifest.json is not JSON"),
    "manifest no object": (_put("manifest.json", b"[]"), "manifest.json is not a JSON object"),
    "newer format": (_edit("manifest.json", lambda m: m.update(format=2)), "format is 2"),
    "no seed": (_edit("manifest.json", lambda m: m.pop("seed")), "seed is missing"),
    "preview a word": (_edit("manifest.json", lambda m: m.update(preview="no")), "preview is missing or neither"),
    "form unknown": (_edit("manifest.json", lambda m: m.update(form="forest")), "form is 'forest'"),
    "time without offset": (_edit("manifest.json", lambda m: m.update(create_time="2026-05-01")), "no offset"),
    "time no time": (_edit("manifest.json", lambda m: m.update(create_time="May")), "no time"),
    "time before all": (
        _edit("manifest.json", lambda m: m.update(create_time="0001-01-01T00:00:00+23:59")),
        "is not in the years 1 to 9999 of UTC",
    ),
    "time after all": (
        _edit("manifest.json", lambda m: m.update(create_time="9999-12-31T23:59:59-23:59")),
        "is not in the years 1 to 9999 of UTC",
    ),
    "base too long": (
        _edit("manifest.json", lambda m: m.update(base_version="x" * 257)),
        "base_version has 257 bytes; at most 256",
    ),
    "gate unknown": (_edit("manifest.json", lambda m: m["gates"].update(promote="yes")), "gates.promote is 'yes'"),
    "a preset's name": (_edit("manifest.json", lambda m: m.update(version="default")), "version 'default'"),
    "a path as version": (_edit("manifest.json", lambda m: m.update(version="../x")), "version '../x'"),
    "another's version": (
        _edit("manifest.json", lambda m: m.update(version="linear-000000000000")),
        "does not belong to these weights",
    ),
    "other schema": (
        _edit("manifest.json", lambda m: m.update(feature_schema_hash="0" * 16)),
        "made for the feature schema 0000000000000000",
    ),
    "other names": (_edit("manifest.json", lambda m: m["feature_names"].reverse()), "feature_names are not those of"),
    "no names": (_edit("manifest.json", lambda m: m.pop("feature_names")), "feature_names are not those of"),
    "window no text": (
        _swap("manifest.json", b'"2026-01-01T00:00:00Z"', b"NaN"),
        "window.from_time is nan; must be a text",
    ),
    "window half a character": (
        _swap("manifest.json", b'"2026-01-01T00:00:00Z"', rb'"\ud800"'),
        "half a character, which is no text",
    ),
    "base half a character": (
        _swap("manifest.json", b'"base_version": "default"', rb'"base_version": "\ud800"'),
        "half a character, which is no text",
    ),
    "a half in bytes": (_swap("manifest.json", b"default", b"\xed\xa0\x80"), "manifest.json is not JSON"),
    "counts no number": (
        _edit("manifest.json", lambda m: m["counts"].update(sessions=True)),
        "counts.sessions is True; must be a whole number",
    ),
    "a sum no text": (
        _edit("manifest.json", lambda m: m["files"].update({"golden.json": 3})),
        "files.golden.json is 3",
    ),
    "weights cut": (_cut("weights.json"), "weights.json is damaged"),
    "golden cut": (_cut("golden.json"), "golden.json is damaged"),
    "card changed": (_put("model_card.md", b"# Another\n"), "model_card.md is damaged"),
    "weights gone": (lambda folder: (folder / "weights.json").unlink(), "weights.json is missing"),
    "weights not named": (_edit("manifest.json", lambda m: m["files"].pop("weights.json")), "names no weights.json"),
    "a file too many": (_put("extra.txt", b"x"), "extra.txt is not in the manifest"),
    "a folder inside": (lambda folder: (folder / "inner").mkdir(), "'inner' is not a plain file"),
    "a link inside": (lambda folder: (folder / "link").symlink_to("/etc/passwd"), "'link' is not a plain file"),
    "too large": (_put("model_card.md", b"x" * (MAX_BYTES + 1)), "at most"),
    "weight above 1": (
        _edit("weights.json", lambda w: w["features"].update(lexical=1.5), consistent=True),
        "features.lexical is 1.5",
    ),
    "unknown feature": (
        _edit("weights.json", lambda w: w["features"].update(luck=0.1), consistent=True),
        "features.luck is no feature",
    ),
    "weights no numbers": (
        _edit("weights.json", lambda w: w["features"].update(lexical="much"), consistent=True),
        "weights.json: features.lexical is 'much'; must be a number",
    ),
    "weight true": (
        _edit("weights.json", lambda w: w["features"].update(lexical=True), consistent=True),
        "features.lexical is True; must be a number",
    ),
    "weights a list": (
        _edit("weights.json", lambda w: w.update(features=[0.5]), consistent=True),
        "features is missing or not an object",
    ),
    "caps a list": (
        _edit("weights.json", lambda w: w.update(caps=[0.5]), consistent=True),
        "caps is [0.5]; must be an object",
    ),
    "family cap a text": (
        _edit("weights.json", lambda w: w.update(use_family_cap="0.1"), consistent=True),
        "use_family_cap is '0.1'; must be a number",
    ),
    "half-life a text": (
        _edit("weights.json", lambda w: w["half_life_days"].update(fact="long"), consistent=True),
        "half_life_days.fact is 'long'; must be a number",
    ),
    "standard error negative": (
        _edit("weights.json", lambda w: w["standard_errors"].update(lexical=-0.1), consistent=True),
        "standard_errors.lexical is -0.1; must be 0 or more",
    ),
    "standard error no number": (
        _swap("weights.json", b'"lexical": 0.01', b'"lexical": NaN', consistent=True),
        "standard_errors.lexical is nan; must be 0 or more",
    ),
    "namespaces a list": (
        _edit("weights.json", lambda w: w.update(namespaces=["ops"]), consistent=True),
        "namespaces is ['ops']; must be an object",
    ),
    "a namespace without features": (
        _edit("weights.json", lambda w: w["namespaces"].update(ops={"lexical": 0.9}), consistent=True),
        "namespaces.ops has no features",
    ),
    "a namespace's weight a text": (
        _edit("weights.json", lambda w: w["namespaces"]["ops"]["features"].update(lexical="9"), consistent=True),
        "namespaces.ops.features.lexical is '9'; must be a number",
    ),
    "a key unknown": (_edit("weights.json", lambda w: w.update(bias=1.0), consistent=True), "bias is not known"),
    "half-life 0": (
        _edit("weights.json", lambda w: w["half_life_days"].update(fact=0.0), consistent=True),
        "half_life_days.fact is 0.0",
    ),
    "a namespace out of bounds": (
        _edit("weights.json", lambda w: w["namespaces"]["ops"]["features"].update(lexical=2.0), consistent=True),
        "namespaces.ops.features.lexical is 2.0",
    ),
    "weights swapped": (
        _edit("weights.json", lambda w: w["features"].update(lexical=0.4), consistent=True),
        "is scored",
    ),
    "a namespace's weights swapped": (
        _edit("weights.json", lambda w: w["namespaces"]["ops"]["features"].update(lexical=0.8), consistent=True),
        "is scored",
    ),
    "golden too few": (_edit("golden.json", lambda g: g.update(rows=g["rows"][:9]), consistent=True), "has 9 rows"),
    "golden no rows": (_edit("golden.json", lambda g: g.pop("rows"), consistent=True), "has no rows"),
    "golden short": (
        _edit("golden.json", lambda g: g["rows"][3]["features"].pop(), consistent=True),
        "golden row 3 cannot be read",
    ),
    "golden huge": (
        _edit("golden.json", lambda g: g["rows"][3]["features"].__setitem__(0, 10**400), consistent=True),
        "golden row 3 cannot be read",
    ),
    "golden last bit": (
        _edit("golden.json", lambda g: g["rows"][1].update(score=g["rows"][1]["score"] + 2**-50), consistent=True),
        "golden row 1 is scored",
    ),
}


@pytest.mark.parametrize("kind", DAMAGES)
def test_every_kind_of_damage_is_named(tmp_path: Path, kind: str) -> None:
    """Whatever is wrong with an artifact, it is refused, and the words say what it is."""
    make_artifact(tmp_path / "model")
    damage, words = DAMAGES[kind]
    damage(tmp_path / "model")
    with pytest.raises(ModelRefusedError) as caught:
        read_artifact(tmp_path / "model")
    assert words in caught.value.message


def test_every_single_changed_byte_is_seen(tmp_path: Path) -> None:
    """A bit that flips anywhere in the files that decide how a memory scores is found."""
    make_artifact(tmp_path / "model", CURVES)
    for name in ("curves.json", "golden.json"):
        content = (tmp_path / "model" / name).read_bytes()
        for at in range(0, len(content), max(1, len(content) // 40)):
            (tmp_path / "model" / name).write_bytes(content[:at] + bytes([content[at] ^ 1]) + content[at + 1 :])
            with pytest.raises(ModelRefusedError, match=f"{name} is damaged"):
                read_artifact(tmp_path / "model")
        (tmp_path / "model" / name).write_bytes(content)
    read_artifact(tmp_path / "model")


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("../manifest.json", tarfile.REGTYPE),
        ("/etc/passwd", tarfile.REGTYPE),
        ("inner/manifest.json", tarfile.REGTYPE),
        ("manifest.json", tarfile.SYMTYPE),
        ("manifest.json", tarfile.LNKTYPE),
        ("manifest.json", tarfile.FIFOTYPE),
        ("inner", tarfile.DIRTYPE),
    ],
)
def test_an_archive_may_hold_plain_files_only(tmp_path: Path, name: str, kind: bytes) -> None:
    """No name that leads elsewhere, no link and no device is taken from an archive."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as tar:
        entry = tarfile.TarInfo(name)
        entry.type, entry.linkname = kind, "/etc/passwd"
        tar.addfile(entry)
    (tmp_path / "model.tar").write_bytes(buffer.getvalue())
    with pytest.raises(ModelRefusedError):
        read_artifact(tmp_path / "model.tar")


def test_what_is_no_artifact_is_refused_in_words(tmp_path: Path) -> None:
    """Nothing there, no archive, a compressed one, one that is cut off."""
    with pytest.raises(ModelRefusedError, match="No such file"):
        read_artifact(tmp_path / "nothing")
    made = make_artifact(tmp_path / "model")
    for content in (b"", b"no archive at all", made.archive[:700]):
        (tmp_path / "model.tar").write_bytes(content)
        with pytest.raises(ModelRefusedError):
            read_artifact(tmp_path / "model.tar")
    with tarfile.open(tmp_path / "model.tar", "w:gz") as tar:
        tar.add(tmp_path / "model", arcname=".")
    with pytest.raises(ModelRefusedError, match="uncompressed"):
        read_artifact(tmp_path / "model.tar")
    with tarfile.open(tmp_path / "model.tar", "w") as tar:
        tar.add(tmp_path / "model", arcname=".")
    assert read_artifact(tmp_path / "model.tar").files == made.files


@pytest.mark.parametrize("stage", ["train", "promote"])
def test_a_manifest_cannot_say_passed_of_what_a_gate_refused(tmp_path: Path, stage: str) -> None:
    """No sum vouches for the manifest; the gates that it sums up lie beside it."""
    gates = json_bytes([{"stage": stage, "gate": "ndcg", "passed": False}])
    with pytest.raises(ModelRefusedError, match="that ndcg refused"):
        write_artifact(tmp_path / "model", "linear", LINEAR, PROVENANCE, {"gates.json": gates})
