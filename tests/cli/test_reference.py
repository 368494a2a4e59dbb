from __future__ import annotations

from pathlib import Path

from sidecar.cli.reference import page

PAGE = Path(__file__).resolve().parents[2] / "docs" / "cli.md"


def test_the_reference_is_current() -> None:
    """docs/cli.md is what the commands say of themselves; `python -m sidecar.cli.reference > docs/cli.md` renews it."""
    assert PAGE.read_text(encoding="utf-8") == page()
