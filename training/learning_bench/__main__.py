"""`make learning-bench`: measures what learning comes to, prints a table, writes docs/figures.md and
build/learning.json.

    python -m training.learning_bench [--short] [--only PART ...] [--shared FOLDER]

LoCoMo, MIRACL-ko and LightGBM's example are read from a folder beside the checkout (or SHARED); parts
that need them say so where it is not there. --short is what CI runs: fewer seeds, the same code. Seeds are fixed: a
run can be repeated. Ends with code 1 if a figure misses its goal.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict
from functools import cache
from pathlib import Path

from sidecar.audit.datasets import read_dataset
from sidecar.retrieval.embedders import DEFAULT_EMBEDDER, make_embedder
from training.learning_bench.adapting import adapting, drift, only_one_kind, ten_rounds
from training.learning_bench.forms import SESSIONS as FORM_SESSIONS
from training.learning_bench.forms import forms
from training.learning_bench.promotions import promotions
from training.learning_bench.recovery import chain, recovery
from training.learning_bench.rows import Row, together
from training.learning_bench.statistics import coverage, large, missing, published
from training.worlds import World, only_recent, world_of

ROOT = Path(__file__).parents[2]
SHARED = Path(os.environ.get("SHARED", ROOT.parent / "shared"))
TABLE = ROOT / "docs" / "figures.md"
BUILD = Path("build")


@cache
def world(path: Path) -> World:
    """The world of one file."""
    return world_of(read_dataset(path), make_embedder(DEFAULT_EMBEDDER))


def locomo() -> list[World]:
    """The conversations."""
    return [world(path) for path in sorted((SHARED / "locomo").glob("*.json"))]


def needs() -> list[World]:
    """Namespaces whose agents need different things."""
    first, second, *_ = locomo()
    korean = world(SHARED / "miracl-ko" / "miracl-ko.json")
    demo = world(ROOT / "sidecar" / "demo" / "store.json")
    return [first, korean, demo, only_recent(first, "only-recent"), only_one_kind(second, "only-one-kind")]


def main(arguments: Sequence[str] | None = None) -> int:
    """The command. Returns its exit code."""
    parser = argparse.ArgumentParser(prog="python -m training.learning_bench", description=__doc__)
    parser.add_argument("--short", action="store_true", help="fewer seeds, as CI runs it")
    parser.add_argument("--only", action="append", metavar="PART", help="this part alone; repeat")
    given = parser.parse_args(arguments)
    short = given.short

    def say(text: str) -> None:
        print(f"[{time.perf_counter() - begun:6.0f} s] {text}", file=sys.stderr, flush=True)

    parts: dict[str, Callable[[], list[Row]]] = {
        # First: what others leave in memory would count.
        "large": lambda: large(world(SHARED / "locomo" / "conv-26.json"), 4_000 if short else 100_000, say),
        "recovery": lambda: recovery(locomo()[:2] if short else locomo(), 1 if short else 4, say),
        "chain": lambda: [] if short else chain(locomo(), say),
        "adapting": lambda: adapting(needs(), say),
        "drift": lambda: [] if short else drift(locomo()[0], only_recent(locomo()[0], "only-recent"), say),
        "rounds": lambda: ten_rounds(together(locomo()[:2], "two conversations"), 1 if short else 20, say),
        "forms": lambda: [] if short else forms(locomo(), FORM_SESSIONS, say),
        "promotions": lambda: promotions(locomo(), 4 if short else 100, say),
        "coverage": lambda: coverage(100 if short else 2_000, say),
        "missing": lambda: missing(8_000 if short else 60_000, say),
        "published": lambda: published(SHARED / "ltr", say),
    }
    unknown = set(given.only or ()) - set(parts)
    if unknown:
        parser.error(f"there is no part {', '.join(sorted(unknown))}; the parts are {', '.join(parts)}")
    begun = time.perf_counter()
    if not SHARED.is_dir():
        print(f"There is no {SHARED}: without its data sets only coverage and missing can be measured.")
        parts = {name: part for name, part in parts.items() if name in ("coverage", "missing")}
    rows: list[Row] = []
    for name, part in parts.items():
        if not given.only or name in given.only:
            came = part()
            for each in came:
                say(f"{each.name}: {each.value:.4g} {each.unit} (goal {each.goal or 'none'})")
            rows += came
    print(table(rows))
    BUILD.mkdir(exist_ok=True)
    (BUILD / "learning.json").write_text(json.dumps([asdict(row) for row in rows], indent=1) + "\n", encoding="utf-8")
    if not short and not given.only and SHARED.is_dir():
        TABLE.write_text(f"{HEAD}\n{table(rows)}\n", encoding="utf-8")
    missed = [row.name for row in rows if row.ok is False]
    for row in missed:
        print(f"not reached: {row}", file=sys.stderr)
    return 1 if missed and not short else 0


HEAD = """# What learning from use comes to

Written by `make learning-bench`, from worlds with a known truth (`training/worlds.py`): tasks of real data sets, whose
memories agents use and report with stated habits. Five LoCoMo conversations, MIRACL-ko and LightGBM's lambdarank
example are read from beside the checkout. Every figure has fixed seeds; goals that are not reached say so.
"""


def table(rows: Sequence[Row]) -> str:
    """As Markdown."""
    lines = ["| what | value | goal | reached | how |", "|---|---|---|---|---|"]
    for row in rows:
        reached = {True: "yes", False: "**no**", None: ""}[row.ok]
        lines.append(f"| {row.name} | {row.value:.4g} {row.unit} | {row.goal or ''} | {reached} | {row.note} |")
    return "\n".join(lines)


if __name__ == "__main__":
    sys.exit(main())
