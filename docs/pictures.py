"""`python docs/pictures.py`: the pictures of the documentation, as SVG that is readable on light and on dark.

What they show of scores and chances is worked out by the code itself, from made-up memories; what they show of cost
was measured (`python -m tests.bench.growth`, which writes docs/growth.json).
"""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Sequence
from html import escape
from pathlib import Path

import numpy as np

from sidecar.features import FEATURE_NAMES, PARTLY_FED_BY_USE
from sidecar.ranking.reserved import ReserveSettings, draw
from sidecar.weights import PRESETS
from sidecar.weights.linear import contributions

FOLDER = Path(__file__).with_name("pictures")

# Class: colour on light, colour on dark.
COLOURS = {
    "paper": ("#ffffff", "#151a21"),
    "panel": ("#f2f4f7", "#222a35"),
    "ink": ("#1c2128", "#e8ecf1"),
    "soft": ("#57606a", "#a5b0bd"),
    "a": ("#1a5fd0", "#6cb0ff"),
    "b": ("#9a5b00", "#e0a44a"),
    "c": ("#1a7f4b", "#5fce93"),
    "d": ("#8b3fc4", "#c99bf5"),
}
SHOWN = 4
"""Contributions that a bar names; the others are one part together."""

EXAMPLE: dict[str, dict[str, float]] = {
    "canary": {
        "thread": 0.55,
        "semantic": 0.62,
        "lexical": 0.71,
        "subject": 0.0,
        "use_rate": 0.6,
        "frequency": 0.5,
        "importance": 0.7,
        "kind_prior": 1.0,
        "recency": 0.4,
        "statement": 1.0,
    },
    "rollback": {
        "thread": 0.42,
        "semantic": 0.55,
        "lexical": 0.44,
        "use_rate": 0.2,
        "importance": 0.5,
        "kind_prior": 0.71,
        "recency": 0.8,
        "statement": 1.0,
    },
    "lunch": {"thread": 0.05, "semantic": 0.12, "use_rate": 0.9, "frequency": 1.0, "importance": 0.6, "recency": 0.9},
}
"""Feature values of three memories for the task "deploy the payment service"."""

COLOUR_OF = {"thread": "a", "semantic": "b", "use_rate": "c", "statement": "d"}

POOL = {"new 1": 0.52, "new 2": 0.40, "new 3": 0.31, "new 4": 0.28}
"""Task fits of four memories that nobody reported on yet."""


def pictures() -> dict[str, str]:
    """Every picture by its file name."""
    return {
        "roads.svg": roads(),
        "packet.svg": packet(),
        "contributions.svg": score_bars(),
        "reserved.svg": chances(),
        "growth.svg": growth(),
    }


def roads() -> str:
    """The two one-way roads and what lies between them."""
    serve = ("task", "candidates", "features", "weights", "packing", "packet")
    learn = ("report of use", "feedback log", "use rates", "fit", "checks", "weights")
    parts = [_text(20, 34, "Serve: reads weights, and moves no score", "ink", bold=True)]
    parts += _chain(serve, 50, "a")
    parts += [_line(716, 94, 716, 118, "soft"), _box(660, 120, 112, 44, "packet log", "b")]
    parts += [
        _text(100, 134, "the agent works with the packet, and says what it used", "soft"),
        '<polyline class="soft" points="660,142 76,142 76,186" style="fill:none" stroke-width="2" '
        'marker-end="url(#end)"/>',
    ]
    parts += _chain(learn, 188, "c")
    parts.append(_text(20, 262, "Learn: the only road on which a score can move", "ink", bold=True))
    return _svg(800, 282, "Two one-way roads: serving reads weights, learning writes them", parts)


def packet() -> str:
    """The parts of a packet, with its budget."""
    rows = (
        ("1", "pinned", "always, while valid", "d", 120),
        ("2", "ranked", "by score, the best first", "a", 200),
        ("3", "ranked", "", "a", 170),
        ("4", "reserved", "drawn, at a random place", "c", 110),
        ("5", "ranked", "", "a", 150),
    )
    parts = [_text(20, 34, "A packet: the answer to one Rank", "ink", bold=True)]
    for i, (place, segment, words, colour, tokens) in enumerate(rows):
        y = 54 + 40 * i
        parts.append(_text(24, y + 21, place, "soft"))
        parts.append(_box(44, y, 2 * tokens, 32, f"{segment}, {tokens} tokens", colour))
        parts.append(_text(60 + 2 * tokens, y + 21, words, "soft"))
    total = sum(row[4] for row in rows)
    parts.append(_text(44, 278, f"{total} of 800 tokens; left out: 12 outranked, 2 near-duplicates, 1 expired", "ink"))
    return _svg(700, 300, "A packet holds pinned, ranked and reserved memories inside a token budget", parts)


def score_bars() -> str:
    """Scores as sums, by the default weights."""
    values = np.array([[each.get(name, 0.0) for name in FEATURE_NAMES] for each in EXAMPLE.values()])
    without_use = {name: values[:, FEATURE_NAMES.index(name)] for name in PARTLY_FED_BY_USE}
    found = contributions(values, without_use, PRESETS["default"])
    scale = 520 / float(found.score.max())
    parts = [_text(20, 34, "A score is the sum of what is shown (weights: default)", "ink", bold=True)]
    for i, name in enumerate(EXAMPLE):
        y, x = 56 + 92 * i, 110.0
        parts += [_text(20, y + 26, name, "ink"), _text(20, y + 46, f"{found.score[i]:.3f}", "soft")]
        named: list[str] = []
        for feature, amount in _strongest(found.matrix[i]):
            width = amount * scale
            parts.append(_rect(x, y, width, 40, COLOUR_OF.get(feature, "soft")))
            named.append(f"{feature} {amount:.3f}")
            x += width + 2
        parts.append(_text(110, y + 60, " + ".join(named), "soft", size=12))
    parts.append(_text(20, 338, "lunch was used often. All that use feeds shares one cap, so it stays below.", "ink"))
    return _svg(760, 356, "Three memories, their scores as stacked contributions", parts)


def chances() -> str:
    """The reserved slot: chances of a draw."""
    fit = np.array(list(POOL.values()))
    chance = draw(fit, [0] * len(fit), 1, lambda _: 0.0, ReserveSettings()).inclusion_propensity
    parts = [_text(20, 34, "One reserved slot: who may be drawn, and how likely", "ink", bold=True)]
    for i, (name, value) in enumerate(POOL.items()):
        y = 54 + 44 * i
        parts.append(_text(20, y + 21, f"{name}, fit {value:.2f}", "ink"))
        parts.append(_rect(170, y, 900 * float(chance[i]), 30, "c"))
        parts.append(_text(180 + 900 * float(chance[i]), y + 21, f"{chance[i]:.2f}", "soft"))
    parts.append(_text(20, 252, "The chances are logged with the packet, so that learning can divide by them.", "ink"))
    return _svg(640, 270, "Chances of four pool members for one reserved slot", parts)


def growth() -> str:
    """What finding and scoring costs as a namespace grows, on logarithmic axes, against ten thousand memories."""
    rows = json.loads(Path(__file__).with_name("growth.json").read_text(encoding="utf-8"))
    unit = next(row["exact_ms"] for row in rows if row["memories"] == 10_000)

    def x(memories: float) -> float:
        return 90 + 180 * math.log10(memories / 1_000)

    def y(ratio: float) -> float:
        return 250 - 90 * math.log10(ratio)

    parts = [_text(20, 34, "Finding and scoring, in CPU time, against 10,000 memories all scored", "ink", bold=True)]
    for memories, words in ((1_000, "1,000"), (10_000, "10,000"), (100_000, "100,000"), (1_000_000, "1,000,000")):
        parts.append(_text(x(memories) - 22, 332, words, "soft"))
    for ratio in (1, 10, 100):
        parts += [_text(30, y(ratio) + 5, f"{ratio} x", "soft"), _rect(90, y(ratio), 560, 1, "soft")]
    for name, colour, words in (("exact_ms", "a", "all scored"), ("candidates_ms", "c", "candidates")):
        points = [(x(row["memories"]), y(row[name] / unit)) for row in rows]
        line = " ".join(f"{across:.1f},{down:.1f}" for across, down in points)
        parts.append(f'<polyline class="{colour}" points="{line}" style="fill:none" stroke-width="3"/>')
        parts.append(_text(points[-1][0] + 12, points[-1][1] + 5, words, colour, bold=True))
    return _svg(760, 350, "Cost of finding and scoring by the number of memories", parts)


def _strongest(row: np.ndarray) -> list[tuple[str, float]]:
    order = sorted(range(len(row)), key=lambda i: -row[i])
    found = [(FEATURE_NAMES[i], float(row[i])) for i in order[:SHOWN] if row[i] > 0]
    rest = float(row.sum()) - sum(amount for _, amount in found)
    return [*found, ("others", rest)] if rest > 1e-9 else found


def _chain(words: Sequence[str], y: int, colour: str) -> list[str]:
    parts: list[str] = []
    for i, word in enumerate(words):
        x = 20 + 128 * i
        parts.append(_box(x, y, 112, 44, word, colour))
        if i:
            parts.append(_line(x - 16, y + 22, x - 2, y + 22, "soft"))
    return parts


def _box(x: float, y: float, width: float, height: float, words: str, colour: str) -> str:
    shape = (
        f'<rect class="panel" x="{x:g}" y="{y:g}" width="{width:g}" height="{height:g}" rx="5"/>'
        f'<rect class="{colour}" x="{x:g}" y="{y:g}" width="4" height="{height:g}"/>'
    )
    return shape + _text(x + 14, y + height / 2 + 5, words, "ink")


def _rect(x: float, y: float, width: float, height: float, colour: str) -> str:
    return f'<rect class="{colour}" x="{x:.1f}" y="{y:g}" width="{width:.1f}" height="{height:g}"/>'


def _text(x: float, y: float, words: str, colour: str, *, bold: bool = False, size: int = 14) -> str:
    weight = ' font-weight="600"' if bold else ""
    return f'<text class="{colour}" x="{x:.1f}" y="{y:g}" font-size="{size}"{weight}>{escape(words)}</text>'


def _line(x1: float, y1: float, x2: float, y2: float, colour: str) -> str:
    at = f'x1="{x1:g}" y1="{y1:g}" x2="{x2:g}" y2="{y2:g}"'
    return f'<line class="{colour}" {at} stroke-width="2" marker-end="url(#end)"/>'


def _svg(width: int, height: int, title: str, parts: Sequence[str]) -> str:
    def style(place: int) -> str:
        rules = (f".{name}{{fill:{both[place]};stroke:{both[place]}}}" for name, both in COLOURS.items())
        return "".join(rules) + "text{stroke:none}"

    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}"'
        f' role="img" font-family="system-ui, sans-serif">\n<title>{escape(title)}</title>\n'
        f"<style>rect,text{{stroke-width:0}}{style(0)}@media(prefers-color-scheme:dark){{{style(1)}}}</style>\n"
        '<defs><marker id="end" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="5" markerHeight="5" orient="auto">'
        '<path class="soft" d="M0 0L8 4L0 8z"/></marker></defs>\n'
        f'<rect class="paper" width="{width}" height="{height}" rx="8"/>\n'
    )
    return head + "\n".join(part for part in parts if part) + "\n</svg>\n"


if __name__ == "__main__":
    FOLDER.mkdir(exist_ok=True)
    for name, picture in pictures().items():
        (FOLDER / name).write_text(picture, encoding="utf-8")
    sys.stdout.write(f"{len(pictures())} pictures in {FOLDER}\n")
