"""Fits what a text's wording tells of its worth (sidecar/importance/wording.json) to labelled pairs of memories.

    python -m training.wording_fit [--write] [PAIRS.jsonl]

A pair says which of two memories of one store is the more worth keeping. Logistic regression on the difference of the
two: beside what the content's parts and the kind's baseline say, which stand as they are, weights of marks and of words
with a Gaussian prior. Prints how often scores agree with pairs of an author whose pairs were left out, and with --write
replaces the file that is shipped. The pairs in tests/data/importance_pairs_fitted.jsonl were written by language
models, each author for itself, without sight of the scorer; those that the score is judged by are others.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize
from scipy.sparse import csr_matrix

from sidecar.domain import Floats, Memory
from sidecar.features.importance import BASELINE
from sidecar.importance.content import PARTS, analyse
from sidecar.importance.language import count_markers
from sidecar.importance.reading import TABLES, read
from sidecar.importance.scoring import BASELINE_SHARE, MIDDLE
from sidecar.importance.wording import FILE, SCALE, statement_of, words_of

PAIRS = Path(__file__).parents[1] / "tests" / "data" / "importance_pairs_fitted.jsonl"
LOWEST, HIGHEST = 0.1, 1.0
"""Scores end here."""
ODDS = 4.0
"""A difference of 1 in the score without wording is one of so much in log-odds of being the one to keep."""
MARK_DEVIATION = 0.95
WORD_DEVIATION = 2.0
"""Prior standard deviations of the weights of marks and of words, in log-odds, chosen by authors left out."""
SPEAK_FOR = frozenset(
    "action preference decision limit stake state value link imperative command density names".split()
)
SPEAK_AGAINST = frozenset(
    "hedge passing past chatter emphasis truism small_talk asks logged shouts speaker many_particulars".split()
)
"""Marks whose weights may not have the other sign, several of them and the words that are such marks included: no rule
is held against a text."""
FEWEST_TEXTS = 2
"""Texts that a feature must stand in to have a weight."""
DIGITS = 3
"""Decimals that are kept, and what is 0 then is left out."""

Side = Literal["statement", "words"]
SIDES: tuple[Side, ...] = ("statement", "words")


@dataclass(frozen=True, slots=True)
class Text:
    """What is fitted to of one memory: the score without wording, how far a wording counts, and the features of each
    side."""

    plain: float
    quality: float
    statement: dict[str, float]
    words: dict[str, float]


@dataclass(frozen=True, slots=True)
class Pair:
    """The more worth keeping, and the other; `author` is who wrote them."""

    author: str
    better: Text
    worse: Text


@dataclass(frozen=True, slots=True)
class Fit:
    """Weights by feature and the middle of the sums, for each side."""

    weights: dict[Side, dict[str, float]]
    middle: dict[Side, float]

    def sums(self, text: Text) -> dict[Side, float]:
        """How far the sums of a text are above the middle."""
        found: dict[Side, float] = {}
        for side in SIDES:
            of_side = self.weights[side]
            features: dict[str, float] = getattr(text, side)
            found[side] = sum(v * of_side.get(name, 0.0) for name, v in features.items()) - self.middle[side]
        return found

    def score(self, text: Text) -> float:
        """The score of a text beside which nothing else is known, as far as pairs go by it."""
        score = min(max(text.plain, LOWEST), HIGHEST)
        for above in self.sums(text).values():
            pull = text.quality * float(np.tanh(above / SCALE))
            score += pull * (HIGHEST - score if pull > 0 else score - LOWEST)
        return score

    def to_json(self) -> str:
        """As it is shipped, one weight a line."""
        found = {
            side: {
                "middle": round(self.middle[side], DIGITS),
                "weights": {
                    name: round(weight, DIGITS)
                    for name, weight in sorted(self.weights[side].items())
                    if round(weight, DIGITS)
                },
            }
            for side in SIDES
        }
        return json.dumps(found, ensure_ascii=False, indent=0) + "\n"


def text_of(content: str, kind: str) -> Text:
    """Reads one memory."""
    memory = Memory(id="", content=content, kind=kind)
    analysis = analyse(memory)
    parts = sum(share * float(getattr(analysis, name, 1.0)) for name, share in PARTS.items())  # alone, it is all new
    baseline = BASELINE.get(kind, BASELINE["default"])
    reading = read(memory)
    plain = parts + BASELINE_SHARE * (baseline - MIDDLE)
    return Text(plain, analysis.quality, statement_of(reading, analysis.density), words_of(reading.text))


def read_pairs(path: Path) -> list[Pair]:
    """The pairs of a JSON Lines file of {"author", "better": {"content", "kind"}, "worse": ...}. Raises OSError,
    ValueError, KeyError."""
    found = []
    for line in path.read_text(encoding="utf-8").splitlines():
        given: dict[str, Any] = json.loads(line)
        better, worse = (text_of(given[side]["content"], given[side]["kind"]) for side in ("better", "worse"))
        found.append(Pair(given["author"], better, worse))
    return found


def loss_of(pairs: Sequence[Pair], names: Sequence[tuple[Side, str]]) -> tuple[Any, int]:
    """The function that is minimised, of weights in the order of `names`: its value, in log-odds with the prior, and
    its gradient."""
    place = {name: at for at, name in enumerate(names)}
    rows: list[int] = []
    columns: list[int] = []
    values: list[float] = []
    for row, pair in enumerate(pairs):
        for text, sign in ((pair.better, 1.0), (pair.worse, -1.0)):
            for side in SIDES:
                features: dict[str, float] = getattr(text, side)
                for name, value in features.items():
                    if (at := place.get((side, name))) is not None:
                        rows.append(row)
                        columns.append(at)
                        values.append(sign * value)
    differences = csr_matrix((values, (rows, columns)), shape=(len(pairs), len(names)))
    plain = ODDS * np.array([pair.better.plain - pair.worse.plain for pair in pairs])
    deviation = np.array([MARK_DEVIATION if side == "statement" else WORD_DEVIATION for side, _ in names])

    def loss(weights: Floats) -> tuple[float, Floats]:
        odds = differences @ weights + plain
        missed = 1.0 / (1.0 + np.exp(np.clip(odds, -500.0, 500.0)))
        value = float(np.logaddexp(0.0, -odds).sum() + np.square(weights / deviation).sum() / 2)
        return value, weights / deviation**2 - differences.T @ missed

    return loss, len(names)


def names_of(pairs: Sequence[Pair]) -> list[tuple[Side, str]]:
    """The features that stand in enough texts, in order."""
    counts: dict[tuple[Side, str], int] = {}
    for pair in pairs:
        for text in (pair.better, pair.worse):
            for side in SIDES:
                for name in getattr(text, side):
                    counts[side, name] = counts.get((side, name), 0) + 1
    return sorted(name for name, count in counts.items() if count >= FEWEST_TEXTS)


@cache
def is_marker(word: str) -> bool:
    """True for a word that marks a statement as one that speaks for a text, in any language."""
    return any(
        count_markers(f" {word} ", language, {language: TABLES[name][language]})
        for name in SPEAK_FOR & TABLES.keys()
        for language in TABLES[name]
    )


def bounds_of(names: Sequence[tuple[Side, str]]) -> list[tuple[float | None, float | None]]:
    """Least and greatest weight of each feature; None for none."""
    found: list[tuple[float | None, float | None]] = []
    for side, name in names:
        mark = name.removeprefix("several:") if side == "statement" else ""
        is_for = is_marker(name) if side == "words" else mark in SPEAK_FOR or mark.startswith("handle:")
        found.append((0.0 if is_for else None, 0.0 if mark in SPEAK_AGAINST else None))
    return found


def fit(pairs: Sequence[Pair]) -> Fit:
    """The weights that make the pairs likeliest, with the prior. The same pairs give the same weights, but for what
    the optimiser leaves in the last digits."""
    names = names_of(pairs)
    loss, count = loss_of(pairs, names)
    found: NDArray[np.float64] = minimize(
        loss,
        np.zeros(count),
        jac=True,
        method="L-BFGS-B",
        bounds=bounds_of(names),
        options={"maxiter": 2_000, "ftol": 1e-10, "gtol": 1e-3},
    ).x
    weights: dict[Side, dict[str, float]] = {side: {} for side in SIDES}
    for (side, name), weight in zip(names, found.tolist(), strict=True):
        weights[side][name] = weight
    off = Fit(weights, dict.fromkeys(SIDES, 0.0))
    sums = [off.sums(text) for pair in pairs for text in (pair.better, pair.worse)]
    return Fit(weights, {side: float(np.median([each[side] for each in sums])) for side in SIDES})


def agreement(found: Fit, pairs: Iterable[Pair]) -> float:
    """The share of pairs of which the better one has the higher score; a tie is half a pair."""
    wins = []
    for pair in pairs:
        better, worse = found.score(pair.better), found.score(pair.worse)
        wins.append(0.5 if better == worse else float(better > worse))
    return float(np.mean(wins))


def main(arguments: Sequence[str] | None = None) -> None:
    """The command."""
    parser = argparse.ArgumentParser(prog="python -m training.wording_fit", description=__doc__)
    parser.add_argument("pairs", nargs="?", type=Path, default=PAIRS, metavar="PAIRS.jsonl")
    parser.add_argument("--write", action="store_true", help="replace the weights that are shipped")
    given = parser.parse_args(arguments)
    pairs = read_pairs(given.pairs)
    for author in sorted({pair.author for pair in pairs}):
        theirs = [pair for pair in pairs if pair.author == author]
        found = fit([pair for pair in pairs if pair.author != author])
        print(f"{author}: {len(theirs)} pairs, left out: {agreement(found, theirs):.3f}", flush=True)
    found = fit(pairs)
    weights = {side: len(found.weights[side]) for side in SIDES}
    print(f"all {len(pairs)}: {agreement(found, pairs):.3f} of those fitted to; weights: {weights}")
    if given.write:
        FILE.write_text(found.to_json(), encoding="utf-8")
        print(f"{FILE.name} is written: raise SCORER_VERSION if stored importances must be worked out anew")


if __name__ == "__main__":
    main()
