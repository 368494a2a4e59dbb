"""Fixtures that every test may ask for."""

import os
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent


@pytest.fixture(scope="session")
def shared() -> Path:
    """The data folder beside the repository; MEMORY_RANKER_SHARED names another. A test that needs it skips without."""
    folder = Path(os.environ.get("MEMORY_RANKER_SHARED", ROOT.parent / "shared"))
    if not folder.is_dir():
        pytest.skip("../shared is not here")
    return folder
