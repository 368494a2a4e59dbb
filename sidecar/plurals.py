"""Counts in words, for whatever people read."""

from __future__ import annotations


def counted(number: float, one: str, many: str = "") -> str:
    """1 packet, 1,000 memories, 0.5 days. `many` is how it goes on for any number but 1, where that is not the plural
    of `one`: counted(2, "memory is", "memories are")."""
    plural = f"{one[:-1]}ies" if one.endswith("y") and one[-2] not in "aeiou" else f"{one}s"
    shown = f"{number:,.0f}" if number % 1 == 0 else f"{number:,.6g}"
    return f"{shown} {one if number == 1 else many or plural}"
