"""The programs that check deploy/, where they are there."""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path

import pytest

CHECKED = pytest.mark.skipif("DEPLOY" not in os.environ, reason="needs linters and podman: `make deploy-check`")


def need(way_out: str, *names: str) -> None:
    """Fails in CI, and skips elsewhere, if one of these programs is missing; the way out says how to get it."""
    missing = [name for name in names if shutil.which(name, path=path()) is None]
    if missing:
        refuse(f"{', '.join(missing)} is not on the path: {way_out}")


def refuse(reason: str) -> None:
    """Fails in CI, and skips elsewhere."""
    if os.environ.get("CI"):
        pytest.fail(reason)
    pytest.skip(reason)


def path() -> str:
    """Where programs are looked for: beside our Python first."""
    return f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
