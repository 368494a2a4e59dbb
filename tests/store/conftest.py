from collections.abc import Iterator
from pathlib import Path

import pytest

from sidecar.store import Store


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    """An open, empty store."""
    with Store.open(tmp_path / "data") as opened:
        yield opened
