"""What the installed distribution promises."""

import importlib.metadata
import re
from pathlib import Path

import pytest

import sidecar

ROOT = Path(__file__).resolve().parent.parent


def test_the_version_is_written_in_one_place() -> None:
    """The distribution's version is the one in sidecar/__init__.py."""
    assert importlib.metadata.version("memory-ranker") == sidecar.__version__


def test_the_command_is_installed() -> None:
    """Installing the distribution brings the command memory-ranker."""
    scripts = importlib.metadata.distribution("memory-ranker").entry_points.select(group="console_scripts")
    assert [(script.name, script.value) for script in scripts] == [("memory-ranker", "sidecar.cli:main")]


@pytest.mark.parametrize("name", ["dev", "protogen", "oldest", "build", "deploy", "run", "train"])
def test_every_locked_requirement_is_pinned_and_hashed(name: str) -> None:
    """A requirement file names exact versions with hashes, and no place to fetch them from."""
    text = (ROOT / "requirements" / f"{name}.txt").read_text(encoding="utf-8")
    entries = re.split(r"\n(?=\S)", re.sub(r"(?m)^#.*\n", "", text).strip())
    assert entries
    for entry in entries:
        assert re.match(r"[a-z0-9-]+==\S+ .*--hash=sha256:[0-9a-f]{64}", entry, re.DOTALL), entry
        assert "://" not in entry
