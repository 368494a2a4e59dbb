"""Counts a text's tokens, on the safe side, for callers that bring no count of their own.

Pure: needs no tokenizer and no vocabulary.
"""

from __future__ import annotations

_LETTER = bytes(i for i in range(128) if chr(i).isalpha() or chr(i) in " ")


def count_tokens(text: str) -> int:
    """An upper estimate of the tokens of `text`; 0 for the empty text, else at least 1."""
    data = text.encode("utf-8", "surrogatepass")
    letters = len(data) - len(data.translate(None, _LETTER))
    return len(data) - letters + -(-letters // 3)
