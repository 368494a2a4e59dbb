"""The distributions, as a stranger has them: built from the sources, put into empty environments, used elsewhere."""

from __future__ import annotations

import functools
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest

import sidecar
from tests.serving import TELLING, finished

ROOT = Path(__file__).resolve().parents[2]
UV = ROOT / ".venv-lock" / "bin" / "uv"
SUPPORTED = re.findall(r"Python :: (3\.\d+)", (ROOT / "pyproject.toml").read_text(encoding="utf-8"))
NOT_IN_THE_CORE = ("lightgbm", "pyarrow", "scipy", "onnxruntime", "vader", "pytest", "grpc_tools")

pytestmark = pytest.mark.timeout(600)


def run(*command: str | Path, folder: Path | None = None) -> str:
    """What the command prints, in an environment without any setting of ours or of Python's."""
    plain = {name: value for name, value in os.environ.items() if not name.startswith(("MEMORY_RANKER_", "PYTHON"))}
    ended = subprocess.run(
        [str(part) for part in command], cwd=folder, env=plain, capture_output=True, text=True, timeout=500
    )
    assert ended.returncode == 0, ended.stdout + ended.stderr
    return ended.stdout


@pytest.fixture(scope="module")
def built() -> Iterator[dict[str, Path]]:
    """The sdist, made of the checkout, and the wheel, made of the sdist alone."""
    with tempfile.TemporaryDirectory(prefix="mr-") as name:
        folder = Path(name)
        hatchling = (sys.executable, "-m", "hatchling", "build", "-d", folder)
        run(*hatchling, "-t", "sdist", folder=ROOT)
        (sdist,) = folder.glob("*.tar.gz")
        with tarfile.open(sdist) as archive:
            archive.extractall(folder / "unpacked", filter="data")
        (sources,) = (folder / "unpacked").iterdir()
        run(*hatchling, "-t", "wheel", folder=sources)
        (wheel,) = folder.glob("*.whl")
        yield {"sdist": sdist, "wheel": wheel, "sources": sources}


@functools.cache
def interpreter(version: str) -> str | None:
    """A Python of this version that runs: the one in use, one on the path, or one of pyenv's."""
    kept = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv")) / "versions"
    on_path = shutil.which(f"python{version}")
    others = [*([on_path] if on_path else []), *(str(each) for each in sorted(kept.glob(f"{version}.*/bin/python")))]
    for each in [sys.executable, *others]:
        asked = subprocess.run([each, "-c", "import sys; print(*sys.version_info[:2], sep='.')"], capture_output=True)
        if asked.returncode == 0 and asked.stdout.decode().strip() == version:
            return each
    return None


@pytest.mark.parametrize("version", SUPPORTED)
def test_the_wheel_serves_from_an_empty_environment(built: dict[str, Path], version: str) -> None:
    """With what `run.txt` pins and nothing else, in a folder that knows nothing of the sources: every requirement of
    the wheel is met, the server starts, and a Rank is answered with the memory that was put."""
    found = interpreter(version)
    if found is None:
        pytest.skip(f"no Python {version} on this machine")
    if not UV.exists():
        pytest.skip("`make test` installs uv, which installs into empty environments")
    with tempfile.TemporaryDirectory(prefix="mr-") as name:
        folder = Path(name)
        bin = folder / "venv" / "bin"
        run(UV, "venv", "--quiet", "--no-python-downloads", "--python", found, folder / "venv")
        install = (UV, "pip", "install", "--quiet", "--python", bin / "python", "--only-binary", ":all:")
        run(*install, "--require-hashes", "-r", ROOT / "requirements" / "run.txt")
        run(*install, "--no-deps", built["wheel"])
        run(UV, "pip", "check", "--quiet", "--python", bin / "python")
        assert run(bin / "memory-ranker", "--version").split() == ["memory-ranker", sidecar.__version__]
        asked = f"""import importlib.util as util, sidecar
print(sidecar.__file__, *(name for name in {NOT_IN_THE_CORE!r} if util.find_spec(name)))"""
        assert run(bin / "python", "-c", asked, folder=folder).startswith(f"{folder.resolve()}/venv/")
        assert serves(bin / "memory-ranker", folder) == ["canary"]
        if found == sys.executable:
            # What training needs is an extra: without it its commands say so, with it the log of that server is read.
            for command in ("train", "evaluate", "simulate", "train-importance", "export-log"):
                assert f"  {command}  " in run(bin / "memory-ranker", "--help")
            export = [
                str(bin / "memory-ranker"),
                "export-log",
                str(folder / "data"),
                "--out",
                str(folder / "l.parquet"),
            ]
            lean = subprocess.run(export, capture_output=True, text=True, timeout=60, check=False)
            assert (lean.returncode, "pip install 'memory-ranker[train]'" in lean.stderr) == (1, True), lean.stderr
            run(*install, "--require-hashes", "-r", ROOT / "requirements" / "train.txt")
            run(UV, "pip", "check", "--quiet", "--python", bin / "python")
            assert "1 row of packets and reports" in run(*export)


def serves(command: Path, folder: Path) -> list[str]:
    """Ids that a server started by `command` in `folder` ranks, of two memories, for a task about one of them."""
    at = ("--address", f"unix:{folder}/socket", "--timeout", "60")
    log = folder / "log"
    with log.open("w") as errors:
        server = subprocess.Popen(
            [command, "serve", "--data", folder / "data", "--listen", f"unix:{folder}/socket", "--http", "off"],
            cwd=folder,
            env={"PATH": os.environ["PATH"], "HOME": str(folder), **TELLING},
            stderr=errors,
            text=True,
        )
    try:
        while "serving on" not in log.read_text():
            assert server.poll() is None, log.read_text()
        run(command, "put", "Deploys need a green canary for 30 minutes", "--id", "canary", *at, folder=folder)
        run(command, "put", "Lasagne takes an hour", "--id", "lasagne", *at, folder=folder)
        packet = json.loads(run(command, "rank", "deploy it", "--max-items", "1", "--json", *at, folder=folder))
        server.send_signal(signal.SIGTERM)
        assert finished(server).returncode == 0, log.read_text()
    finally:
        server.kill()
        server.wait()
    return [item["memory"]["id"] for item in packet["items"]]


def test_the_sdist_is_the_sources_and_nothing_else(built: dict[str, Path]) -> None:
    """It holds tracked files alone, and of the program, its API, tests and pages all of them."""
    tracked = set(run("git", "ls-files", folder=ROOT).splitlines())
    with tarfile.open(built["sdist"]) as archive:
        held = {name.partition("/")[2] for name in archive.getnames()}
    assert held - tracked == {"PKG-INFO"}
    folders = ("sidecar/", "training/", "proto/", "tests/", "docs/", "deploy/", "requirements/")
    assert {each for each in tracked if each.startswith(folders)} <= held
    assert {"pyproject.toml", "README.md", "LICENSE", "CHANGELOG.md", "Makefile"} <= held


def test_the_wheel_holds_the_packages_and_what_they_read(built: dict[str, Path]) -> None:
    """Every file of the three packages is in it, tests and pages are not, and its facts are those of the sources."""
    tracked = run("git", "ls-files", "sidecar", "training", "proto/python/memoryranker", folder=ROOT).splitlines()
    with zipfile.ZipFile(built["wheel"]) as archive:
        held = {name for name in archive.namelist() if ".dist-info/" not in name}
        (facts,) = (name for name in archive.namelist() if name.endswith(".dist-info/METADATA"))
        metadata = archive.read(facts).decode()
    assert held == {name.removeprefix("proto/python/") for name in tracked}
    assert f"\nVersion: {sidecar.__version__}\n" in metadata
    assert "\nLicense-Expression: Apache-2.0\n" in metadata


def test_an_extra_that_is_named_exists(built: dict[str, Path]) -> None:
    """Whatever tells people to install memory-ranker[EXTRA] names one that the wheel has."""
    with zipfile.ZipFile(built["wheel"]) as archive:
        (facts,) = (name for name in archive.namelist() if name.endswith(".dist-info/METADATA"))
        extras = set(re.findall(r"^Provides-Extra: (\S+)$", archive.read(facts).decode(), re.MULTILINE))
    pages = [*ROOT.glob("sidecar/**/*.py"), *ROOT.glob("training/**/*.py"), *ROOT.glob("docs/*.md"), ROOT / "README.md"]
    named = {name for page in pages for name in re.findall(r"memory-ranker\[(\w+)\]", page.read_text(encoding="utf-8"))}
    assert named
    assert named <= extras
