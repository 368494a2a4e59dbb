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


TOPIC_WORDS = 60
MEMORIES_PER_TOPIC = 400


def _topics(count: int, known: list[str], rng: np.random.Generator) -> list[np.ndarray]:
    return [rng.choice(len(known), TOPIC_WORDS, replace=False) for _ in range(max(20, count // MEMORIES_PER_TOPIC))]


def _about(topic: np.ndarray, length: int, known: list[str], rng: np.random.Generator) -> str:
    common = np.minimum(rng.zipf(1.25, length), VOCABULARY) - 1
    own = topic[np.minimum(rng.zipf(1.3, length), TOPIC_WORDS) - 1]
    return " ".join(known[i] for i in np.where(rng.random(length) < 0.5, common, own).tolist())


def topical_words(count: int, seed: int = 1) -> tuple[np.ndarray, np.ndarray]:
    """Of `count` memories like those of `topical`: all their words, as numbers, one memory after the other; and how
    many each has. Quick for a million."""
    known, rng = words(seed), np.random.default_rng(seed)
    topics = np.stack(_topics(count, known, rng))
    lengths = rng.integers(8, 45, count)
    thread = np.repeat(np.arange(count) // 20, lengths)
    topic = rng.integers(0, len(topics), count // 20 + 1)[thread]
    common = np.minimum(rng.zipf(1.25, len(topic)), VOCABULARY) - 1
    own = topics[topic, np.minimum(rng.zipf(1.3, len(topic)), TOPIC_WORDS) - 1]
    return np.where(rng.random(len(topic)) < 0.5, common, own), lengths


def topical(count: int, seed: int = 1) -> Iterator[dict[str, object]]:
    """`count` memories in threads of twenty, each thread about one of many topics with words of its own: texts that
    lie in heaps, as real ones do."""
    known, rng = words(seed), np.random.default_rng(seed)
    topics = _topics(count, known, rng)
    of_thread = rng.integers(0, len(topics), count // 20 + 1)
    for number in range(count):
        yield {
            "id": f"m{number:07d}",
            "content": _about(topics[of_thread[number // 20]], int(rng.integers(8, 45)), known, rng),
            "kind": KINDS[number % len(KINDS)],
            "source_thread": f"t{number // 20}",
            "source_sequence": number % 20,
        }


def topical_tasks(count: int, of: int, seed: int = 2) -> list[str]:
    """Tasks of four to nine words, each about a topic of `topical(of)`."""
    known = words(1)
    topics, rng = _topics(of, known, np.random.default_rng(1)), np.random.default_rng(seed)
    return [_about(topics[rng.integers(len(topics))], int(rng.integers(4, 10)), known, rng) for _ in range(count)]
