from __future__ import annotations

import json
import logging
from collections.abc import Iterator

import pytest

from sidecar.observe import logs


@pytest.fixture
def untouched() -> Iterator[None]:
    root, ours = logging.getLogger(), logging.getLogger("sidecar")
    before = (list(root.handlers), root.level, ours.level)
    yield
    root.handlers, root.level, ours.level = before[0], before[1], before[2]


@pytest.mark.usefixtures("untouched")
def test_an_event_is_one_line_in_either_form(capsys: pytest.CaptureFixture[str]) -> None:
    """A line break in a message does not make a second line, and JSON is one object a line."""
    for form in ("text", "json"):
        logs.set_up("info", form)
        logging.getLogger("sidecar.test").info("serving on %s", "a\nb")
        logging.getLogger("sidecar.test").debug("not shown")
        logging.getLogger("library").info("not shown")
    text, line = capsys.readouterr().err.splitlines()
    assert text.endswith(" info serving on a\\nb")
    found = json.loads(line)
    assert (found["level"], found["logger"], found["message"]) == ("info", "sidecar.test", "serving on a\nb")
    assert found["time"].endswith("Z")


@pytest.mark.usefixtures("untouched")
def test_a_traceback_is_logged_with_its_event(capsys: pytest.CaptureFixture[str]) -> None:
    """In JSON it is a field of the same line."""
    logs.set_up("error", "json")
    try:
        raise RuntimeError("broken")
    except RuntimeError:
        logging.getLogger("sidecar.test").exception("failed")
    assert "RuntimeError: broken" in json.loads(capsys.readouterr().err)["error"]
