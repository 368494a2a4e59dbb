"""What the bench stores and asks: made-up memories with the word frequencies of real text, from a seed."""

from __future__ import annotations

import random
from collections.abc import Iterator

import numpy as np

KINDS = ("decision", "fact", "preference", "failure", "attempt", "debugging")
SYLLABLES = "ba ke lo mi nu ra se ti vo zu dra kle pho sti gru mon tel ver nis car".split()
VOCABULARY = 20_000


def words(seed: int) -> list[str]:
    """Distinct made-up words."""
    dice = random.Random(seed)
    found: dict[str, None] = {}
    while len(found) < VOCABULARY:
        found["".join(dice.choices(SYLLABLES, k=dice.randint(2, 4)))] = None
    return list(found)


def memories(count: int, seed: int = 1, vectors: int = 0) -> Iterator[dict[str, object]]:
    """`count` memories of about thirty words by Zipf's law, in threads of twenty; with random unit vectors of that
    dimension if `vectors` is given, so that the embedder does not set the pace."""
    known = words(seed)
    rng = np.random.default_rng(seed)
    for number in range(count):
        length = int(rng.integers(10, 50))
        drawn = np.minimum(rng.zipf(1.25, length), VOCABULARY) - 1
        memory: dict[str, object] = {
            "id": f"m{number:07d}",
            "content": " ".join(known[i] for i in drawn.tolist()),
            "kind": KINDS[number % len(KINDS)],
            "source_thread": f"t{number // 20}",
            "source_sequence": number % 20,
        }
        if vectors:
            vector = rng.standard_normal(vectors)
            memory["embedding"] = (vector / np.linalg.norm(vector)).tolist()
        yield memory


def tasks(count: int, seed: int = 1) -> list[str]:
    """Tasks of five to ten words, common ones and rare ones."""
    known = words(seed)
    rng = np.random.default_rng(seed + 1)
    return [
        " ".join(known[i] for i in (np.minimum(rng.zipf(1.25, int(rng.integers(5, 11))), VOCABULARY) - 1).tolist())
        for _ in range(count)
    ]
