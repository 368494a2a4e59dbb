"""Which format a file has, by its name and its first bytes. Pure."""

from __future__ import annotations

from pathlib import PurePath

from sidecar.formats import jsonl
from sidecar.formats.documents import LISTS

FORMATS = ("jsonl", "json", "markdown")
HEAD_BYTES = 1 << 20
"""How much of a file is looked at."""

_BY_ENDING = {
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
    ".md": "markdown",
    ".markdown": "markdown",
    ".txt": "markdown",
}


def detect(name: str, head: bytes) -> str:
    """One of FORMATS. `name` may be "-"; `head` is the file's beginning. ValueError where neither tells it."""
    ending = PurePath(name).suffix.lower()
    if ending in _BY_ENDING:
        return _BY_ENDING[ending]
    text = head.removeprefix(b"\xef\xbb\xbf").lstrip()
    if text.startswith(b"["):
        return "json"
    if not text.startswith(b"{"):
        if ending:
            raise ValueError(
                f"{name} has the ending {ending} and does not begin as JSON; say what it is with --format, "
                f"{' or '.join(FORMATS)}"
            )
        return "markdown"
    try:
        first = jsonl.parse(text.split(b"\n", 1)[0].decode())
    except ValueError:
        # The first object goes on on the next line, or is too long to be seen whole.
        return "json"
    is_document = isinstance(first, dict) and any(isinstance(first.get(name), list) for name in LISTS)
    return "json" if is_document and "content" not in first else "jsonl"
