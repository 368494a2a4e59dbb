"""What a memory's metadata say outright: a subject, an attribute of it, and its value. Pure."""

from __future__ import annotations

import unicodedata

from sidecar.domain import Memory
from sidecar.retrieval.patterns import late
from sidecar.retrieval.tokenizer import fold, normalize

# Of a whole number what it comes to; 3.10 may be a version, and 007 a name, and they stay as they are written.
_WHOLE = late(r"\+?(-?(?:0|[1-9]\d*))(?:\.0+)?")


def stated(memory: Memory) -> tuple[str, str, str] | None:
    """Subject, attribute and value where the metadata say them; None otherwise. What means the same is the same: 3, 3.0
    and "3", true and "True", "Blue" and " blue "."""
    attribute, value = memory.metadata.get("attribute"), memory.metadata.get("value")
    subject = memory.subject or memory.metadata.get("subject")
    if not (isinstance(attribute, str) and isinstance(subject, str) and isinstance(value, bool | int | float | str)):
        return None
    return plain_words(subject), plain_words(attribute), _meant(value)


def plain_words(text: str) -> str:
    """The words of a text, whatever their case and the space between them."""
    return " ".join(fold(normalize(text)).split())


def _meant(value: bool | float | str) -> str:
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    words = "".join(map(_in_ascii, plain_words(str(value))))
    whole = _WHOLE.fullmatch(words)
    if whole is None:
        return words
    return "0" if whole[1] == "-0" else whole[1]


def _in_ascii(character: str) -> str:
    """A digit of any script as one of 0 to 9."""
    return character if character.isascii() or not character.isdecimal() else str(unicodedata.decimal(character))
