"""Words as numbers: what the index is keyed by, so that no word stands in it, neither in memory nor in a file.

A hash is keyed with the store's own secret and has 64 bits: among ten million different words two share one with a
chance of one in 400,000, and then a memory looks as if it bore a word more than it does.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from hashlib import blake2b

REMEMBERED = 65_536
"""Hashes that are kept at hand; then all are forgotten and begin anew."""


class Hasher:
    """Hashes of keys: a text, or a tuple of texts and scalars. Safe to use from many threads."""

    def __init__(self, secret: bytes = b"") -> None:
        """`secret` has at most 64 bytes."""
        self._secret = secret
        self._known: dict[Hashable, int] = {}

    def of(self, key: Hashable) -> int:
        """The hash of a key, in [0, 2^64). Equal in every process with the same secret."""
        found = self._known.get(key)
        if found is None:
            if len(self._known) >= REMEMBERED:
                self._known = {}
            found = self._known[key] = self.of_text(key if isinstance(key, str) else _flat(key))
        return found

    def of_all(self, keys: Iterable[Hashable]) -> list[int]:
        """The hashes of many keys, in their order."""
        known = self._known
        return [known[key] if key in known else self.of(key) for key in keys]

    def of_text(self, text: str) -> int:
        """The hash of a text that will not be asked for again."""
        digest = blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8, key=self._secret).digest()
        return int.from_bytes(digest, "little")


PLAIN = Hasher()
"""For what never reaches a file."""


def _flat(key: Hashable) -> str:
    """A tuple as one text. It begins with what no term begins with, so that it is none."""
    return "\0" + "\0".join(map(str, key if isinstance(key, tuple) else (key,)))
