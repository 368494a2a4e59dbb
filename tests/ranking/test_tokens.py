"""The default token counter: at or above real tokenizers, not far above, quick, and never nothing for something."""

from __future__ import annotations

import json
import random
import time
from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sidecar.ranking.tokens import count_tokens
from tests.ranking.real_tokenizers import counters

CORPUS = [
    json.loads(line) for line in Path(__file__).with_name("token_corpus.jsonl").read_text(encoding="utf-8").splitlines()
]
KINDS = list(dict.fromkeys(item["class"] for item in CORPUS))
TEXTS: list[str] = [item["text"] for item in CORPUS]
DEMO = Path(__file__).parents[2] / "sidecar" / "demo" / "store.json"
ANY_TEXT = st.text(st.characters(exclude_categories=()), max_size=200)


def highest(text: str, *names: str) -> int:
    """The highest count of the tokenizers named, or of all."""
    known = counters()
    return max(known[name](text) for name in names or known)


def too_low(texts: Sequence[str]) -> list[tuple[int, int, str]]:
    """The texts that we count below a real tokenizer, with both counts."""
    pairs = ((count_tokens(text), highest(text), text) for text in texts)
    return [(ours, theirs, text) for ours, theirs, text in pairs if ours < theirs]


def mean_overcount(texts: Sequence[str], *names: str) -> float:
    """How far above the highest count of the tokenizers named we are, as a share, on average over the texts."""
    return sum(count_tokens(text) / highest(text, *names) - 1 for text in texts) / len(texts)


@pytest.mark.parametrize("kind", KINDS)
def test_no_text_of_the_corpus_counts_below_a_real_tokenizer(kind: str) -> None:
    """On every text of the corpus the count is at least that of each real tokenizer."""
    assert too_low([item["text"] for item in CORPUS if item["class"] == kind]) == []


def test_the_mean_overcount_is_at_most_35_percent() -> None:
    """Over the corpus, the mean overcount above the larger of GPT-4's and Claude's tokenizer is at most 35 %."""
    assert mean_overcount(TEXTS, "cl100k", "claude") <= 0.35


def test_the_mean_overcount_above_all_three_is_at_most_25_percent() -> None:
    """Above the largest of the three tokenizers, Qwen's too, it is at most 25 %: that one gives each digit a token."""
    assert mean_overcount(TEXTS) <= 0.25


def test_mixtures_count_no_lower_than_real_tokenizers() -> None:
    """Texts put together from whole texts of the corpus, of whatever kinds, are not counted below either."""
    draw = random.Random(20_260_211)
    mixtures = [
        draw.choice((" ", "\n", "\n\n", ": ", "")).join(draw.sample(TEXTS, draw.randint(2, 6))) for _ in range(1500)
    ]
    assert too_low(mixtures) == []


def test_lines_of_windows_count_no_lower_than_real_tokenizers() -> None:
    """Short lines that end in CR and LF, and the corpus with such line ends."""
    short = ["a: 1\r\n  b: 2\r\n" * 20, "ok\r\nno\r\nyes\r\n" * 10, "a\r\nb\r\n" * 60, "y\r\nn\r\n" * 40, "\r\n" * 9]
    assert too_low(short + [text.replace("\n", "\r\n") for text in TEXTS]) == []


def test_the_demo_store_counts_no_lower_than_real_tokenizers() -> None:
    """Memories that took no part in fitting the costs are not counted below, and stay within the 35 %."""
    memories = [memory["content"] for memory in json.loads(DEMO.read_text(encoding="utf-8"))["memories"]]
    assert too_low(memories) == []
    assert mean_overcount(memories, "cl100k", "claude") <= 0.35


@pytest.mark.parametrize(("source", "step"), [("locomo/conv-43.json", 2), ("miracl-ko/miracl-ko.json", 10)])
def test_real_texts_count_no_lower_than_real_tokenizers(shared: Path, source: str, step: int) -> None:
    """English conversations and Korean articles that took no part in fitting the costs are not counted below."""
    texts: list[str] = []

    def gather(value: object) -> None:
        if isinstance(value, str) and len(value) > 40:
            texts.append(value)
        for inner in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
            gather(inner)

    gather(json.loads((shared / source).read_text(encoding="utf-8")))
    ordered = sorted(set(texts))
    sample = ordered[len(ordered) // 2 :: step]  # the costs were fitted to some of the first half
    assert len(sample) > 50
    assert too_low(sample) == []
    assert mean_overcount(sample, "cl100k", "claude") <= 0.35


def test_a_single_character_counts_no_lower_than_real_tokenizers() -> None:
    """Every character of the Basic Multilingual Plane alone, U+FDFA with its eighteen tokens too."""
    characters = [chr(code) for code in range(1, 0x10000) if not 0xD800 <= code < 0xE000]
    assert too_low(characters) == []


@given(ANY_TEXT, ANY_TEXT)
def test_more_text_never_counts_less(text: str, more: str) -> None:
    """Text put behind a text never lowers its count."""
    assert count_tokens(text + more) >= count_tokens(text)


@given(ANY_TEXT)
def test_something_never_counts_as_nothing(text: str) -> None:
    """Only the empty text counts as no tokens, whatever the characters, lone surrogates too; none counts below."""
    assert (count_tokens(text) == 0) == (text == "")
    assert count_tokens(text) >= 0


@pytest.mark.parametrize(
    "piece", ["a", " ", "\n", "-", "7", "xq ", "漢", "ก", "👨‍👩‍👧‍👦", "\u0301", "\ufdfa", "\ud800", "\x00", "A1!é字"]
)
def test_the_time_grows_with_the_length_alone(piece: str) -> None:
    """64 KiB of anything take milliseconds: the bound leaves room for a busy machine and none for a square."""
    text = (piece * 65_536)[:65_536]
    fastest = min(_seconds(text) for _ in range(5))
    assert fastest < 0.1


def _seconds(text: str) -> float:
    start = time.perf_counter()
    count_tokens(text)
    return time.perf_counter() - start
