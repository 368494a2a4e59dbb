"""A task that is too long to be read whole is read at both ends, where it says what it is about and what it asks."""

from __future__ import annotations

import re

HEAD_CHARS = 4_096
TAIL_CHARS = 12_288
"""What it is about stands at the beginning, what is asked most often at the end."""

_CHANGING = re.compile(r"\b[0-9a-f-]*\d[0-9a-f-]*\b", re.IGNORECASE)
_BLOB = re.compile(r"[!-~]{256,}")
"""A key, an encoded file, minified code: no words, and in a vector so many pieces that they outweigh the rest."""
_BLOB_CHARS = 16
_QUESTION_MARKS = ("?", "？", "؟", "⸮", "՞", "፧")


def is_too_long(task: str) -> bool:
    """True if it is not read whole."""
    return len(task) > HEAD_CHARS + TAIL_CHARS


def both_ends(task: str) -> str:
    """What is read of a task that is too long: the questions at its ends, or without any, each kind of line there once.

    Lines that differ in numbers alone are of one kind. A pasted log would else drown what is asked beside it. So would
    an encoded file: of what is no word the beginning is read.
    """
    kinds: dict[str, str] = {}
    ends = f"{task[:HEAD_CHARS]}\n{task[-TAIL_CHARS:]}"
    for line in _BLOB.sub(lambda found: found[0][:_BLOB_CHARS], ends).splitlines():
        kinds.setdefault(_CHANGING.sub("0", line).strip(), line)
    asked = [line for kind, line in kinds.items() if kind.endswith(_QUESTION_MARKS)]
    return "\n".join(asked or kinds.values())
