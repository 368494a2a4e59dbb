"""`make bench`: measures, prints a table, and writes build/bench.json and build/bench-machine.json.

Only ratios within this run are claims; the milliseconds are there to read along. --short is what CI runs, with bounds
that leave room for a noisy machine.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import sys
import tempfile
from collections.abc import Callable, Iterable
from dataclasses import asdict
from importlib.metadata import version
from pathlib import Path
from typing import TypeAlias

from tests.bench.calls import measure_calls
from tests.bench.forms import measure_forms
from tests.bench.loads import measure_loads
from tests.bench.rows import Row, show
from tests.bench.sizes import measure_sizes
from tests.bench.starts import measure_start
from tests.bench.versus import measure_peers

BUILD = Path("build")
MIB = 2**20


def machine() -> dict[str, object]:
    """What the figures were taken on."""
    packages = ("numpy", "faiss-cpu", "grpcio", "protobuf", "wordllama", "memory-ranker")
    return {
        "cpus": os.cpu_count(),
        "machine": platform.machine(),
        "python": platform.python_version(),
        "system": platform.system(),
        "packages": {name: version(name) for name in packages},
        "seed": 1,
    }


PARTS = ("calls", "loads", "start", "sizes", "forms", "peers")
"""What can be measured, in this order."""
Parts: TypeAlias = dict[str, Callable[[], Iterable[Row]]]


def _short(arguments: argparse.Namespace) -> Parts:
    bounds = {"rank_p50": 60.0, "rank_p99": 80.0, "report": 15.0, "callers": 0.01}
    bounds |= {"stream": 500.0, "mixed": 40.0, "fresh": 1_000.0, "importance": 100.0}
    return {
        "calls": lambda: measure_calls(20, 10, 2.0, bounds),
        "loads": lambda: measure_loads(400, bounds),
        "start": lambda: measure_start(5_000, 15.0, 800 * MIB),
        "sizes": lambda: measure_sizes((1_000, 5_000), 3, 20, arguments.keep),
        "forms": lambda: measure_forms(2_000, 5, 20, 2.0),
        "peers": lambda: measure_peers((1_000,), 50) if arguments.peers else (),
    }


def _full(arguments: argparse.Namespace) -> Parts:
    bounds = {"rank_p50": 2.5, "rank_p99": 3.0, "report": 1.3, "callers": 0.5}
    bounds |= {"stream": 3_000.0, "mixed": 2.0, "fresh": 50.0, "importance": 20.0}
    sizes = (10_000, 100_000, *((1_000_000,) if arguments.million else ()))
    return {
        "calls": lambda: measure_calls(100, 20, 10.0, bounds),
        "loads": lambda: measure_loads(2_000, bounds),
        "start": lambda: measure_start(100_000, 0.5, 400 * MIB),
        "sizes": lambda: measure_sizes(sizes, 20, 100, arguments.keep),
        "forms": lambda: measure_forms(10_000, 20, 100, 1.15),
        "peers": lambda: measure_peers((10_000, 100_000), 2_000) if arguments.peers else (),
    }


def main() -> int:
    """Runs the bench; exit code 1 if a bound is not kept."""
    parser = argparse.ArgumentParser(prog="make bench", description=__doc__)
    parser.add_argument("--short", action="store_true", help="fewer calls and generous bounds, for CI")
    parser.add_argument("--peers", action="store_true", help="also other libraries, installed by `make peers`")
    parser.add_argument("--million", action="store_true", help="also a million memories: half an hour, 5 GB of disk")
    parser.add_argument("--only", nargs="+", choices=PARTS, default=PARTS, help="these parts alone")
    parser.add_argument("--keep", type=Path, metavar="FOLDER", help="where the stores of `sizes` stay for the next run")
    arguments = parser.parse_args()
    parts = _short(arguments) if arguments.short else _full(arguments)
    rows = [row for name in arguments.only for row in parts[name]()]
    show("")
    BUILD.mkdir(exist_ok=True)
    for name, content in (("bench.json", [asdict(row) for row in rows]), ("bench-machine.json", machine())):
        with tempfile.NamedTemporaryFile("w", dir=BUILD, delete=False) as file:
            json.dump(content, file, indent=2)
        Path(file.name).replace(BUILD / name)
    print("| measured | value | unit | goal | ok |\n|---|---:|---|---|---|")
    for row in rows:
        verdict = {True: "yes", False: "NO", None: ""}[row.ok]
        value = "" if row.value is None else f"{row.value:.3g}"
        print(f"| {row.name} | {value} | {row.unit} | {row.goal or ''} | {verdict} |")
    return 0 if all(row.ok is not False for row in rows) else 1


if __name__ == "__main__":
    sys.exit(main())
